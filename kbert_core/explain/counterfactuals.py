"""Counterfactuals: the smallest changes of the graph that flip a prediction.

A search over removing, replacing and adding triples: single changes first,
then pairs, then larger sets, those first whose changes came nearest one by
one. Every set is tried by making its edits and reading the text with the
edited graph, K-Query and K-Inject included, so what is found is what the
edits do when they are made.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from kbert_core.errors import GraphEditError, OptionError
from kbert_core.explain.candidates import KINDS, Candidates, Kind
from kbert_core.explain.result import Plain, Result, final, signed_bars
from kbert_core.explain.target import Target
from kbert_core.explain.variants import Case, Outcome, Scored
from kbert_core.knowledge.graph import Edit
from kbert_core.reader import Reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGET = 200  # model runs
MOST_EDITS = 3  # of one set
MOST_FOUND = 20
PER_PLACE = 12  # changes of one kind for one triple or mention
AT_ONCE = 16  # readings a batch: a result, or a stop, is never farther off
NEAREST = 5  # single changes that are told where they don't flip it
COMBINED = 24  # the single changes that came nearest are combined
MOST_SETS = 20_000  # of one size; of large sets fewer single changes are combined
FOR_SINGLES = 2 / 3  # of the budget, where larger sets are wanted too

Ended = Literal["", "all", "budget", "enough"]


@dataclass(frozen=True)
class Search:
    """How to search.

    Attributes:
        kinds: of changes.
        to: what the prediction shall become: a label or token, or O; None:
            anything else than it is.
        most_edits: the size of the largest sets.
        larger_too: whether to go on to larger sets once smaller ones are found.
        budget: in model runs.
        most_found: stop when so many are found.
        per_place: how many new tails and relations a triple gets, and new
            triples a mention.
        seed: of the changes that are drawn.
    """

    kinds: tuple[Kind, ...] = KINDS
    to: str | None = None
    most_edits: int = MOST_EDITS
    larger_too: bool = False
    budget: int = BUDGET
    most_found: int = MOST_FOUND
    per_place: int = PER_PLACE
    seed: int = 0

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise OptionError(f"The kind is '{kind}', expected one of {', '.join(KINDS)}.")
        for name in ("most_edits", "budget", "most_found", "per_place"):
            value = getattr(self, name)
            if value < 1:
                raise OptionError(f"{name} is {value}, expected at least 1.")


@dataclass(frozen=True)
class Counterfactual(Plain):
    """A set of edits, and what becomes of the prediction.

    Attributes:
        edits: to the graph, to be made in this order.
        before, after: score and answer.
        prediction: the task's, with the edits made.
        runs: after how many model runs it was tried.
        flips: whether the prediction becomes what was looked for.
    """

    edits: tuple[Edit, ...]
    before: Outcome
    after: Outcome
    prediction: Any
    runs: int
    flips: bool = False

    keys: ClassVar = "edits after change runs"

    @property
    def change(self) -> float:
        """Of the score, in nats."""
        return self.after.score - self.before.score

    @property
    def said(self) -> str:
        """The edits in a line."""
        return "; ".join(map(str, self.edits))

    @property
    def size(self) -> int:
        """How many edits."""
        return len(self.edits)


@dataclass(frozen=True)
class Counterfactuals(Result):
    """What a search has found, so far or in the end.

    Attributes:
        sentences: the text.
        target: what is followed: what was to be explained, or what the
            prediction shall become.
        base: the prediction as it is.
        search: what was looked for.
        found: sets that flip the prediction, none with a smaller one in it,
            the smallest first.
        nearest: of the single changes that don't, those that come nearest.
        size: the size of the sets tried last.
        runs: model runs so far, one of them the prediction as it is.
        unread: changes that leave what the model reads as it is, so that they
            cost no run.
        ended: "" while the search goes on; then why it ended: "all" that it
            looks at was tried, "budget" used up, or "enough" found.
        complete: whether all of the graph was looked at for candidates.
    """

    sentences: tuple[str, ...]
    target: Target
    base: Outcome
    search: Search
    found: tuple[Counterfactual, ...] = ()
    nearest: tuple[Counterfactual, ...] = ()
    size: int = 1
    runs: int = 1
    unread: int = 0
    ended: Ended = ""
    complete: bool = True

    keys: ClassVar = (
        "text=sentences target base to=search.to found nearest runs budget=search.budget "
        "largest_set=size ended graph_read_to_the_end=complete"
    )
    columns: ClassVar = (
        "edits=said size flips before=before.answer after=after.answer "
        "score_before=before.score score_after=after.score change runs"
    )

    @property
    def each(self) -> tuple[Counterfactual, ...]:
        """The sets of edits, those that flip the prediction first."""
        return (*self.found, *self.nearest)

    def figure(self) -> "Figure":
        """A bar for every set of edits found: what it does to the score."""
        shown = self.found or self.nearest
        return signed_bars(
            [f"{one.said}  → {one.after.answer}" for one in shown],
            [one.change for one in shown],
            axis=f"change of {self.target}, nats",
            title=f"{'What flips' if self.found else 'Nothing found flips; nearest to it'}: "
            f"{self.base.answer}",
        )


def stream_counterfactuals(
    case: Case, search: Search | None = None, *, at_once: int = AT_ONCE
) -> Iterator[Counterfactuals]:
    """Search for the smallest changes of the graph that flip a prediction; yields batch by batch.

    Close the iterator to stop the search.

    Args:
        case: a text as it was read.
        search: how to search.
        at_once: readings a batch; fewer of a long text.
    """
    yield from _Searcher(case, search or Search(), at_once).run()


counterfactuals = final(stream_counterfactuals)


class _Searcher:
    """One search: what was tried, what was found, and what to try next."""

    def __init__(self, case: Case, search: Search, at_once: int) -> None:
        answer = case.target.answer(case.base.prediction)
        if search.to == answer:
            raise OptionError(
                f"The prediction is '{answer}' already, so nothing has to make it so. "
                "Name another label, or none for any."
            )
        if search.to is not None:
            case = replace(case, target=replace(case.target, label=search.to))
        self.case, self.search, self.at_once = case, search, case.at_once(at_once)
        self.candidates = Candidates(case, per_place=search.per_place, seed=search.seed)
        self.sign = -1.0 if answer == case.target.label else 1.0  # of a change that comes nearer
        self.state = Counterfactuals(
            case.sentences,
            case.target,
            Outcome(case.base.score, answer),
            search,
            complete=self.candidates.facts.complete,
        )
        self.seen: set[Hashable] = {case.key(case.reading)}
        self.singles: list[Counterfactual] = []  # that don't flip it

    def run(self) -> Iterator[Counterfactuals]:
        search = self.search
        if search.budget == self.state.runs:
            self.state = replace(self.state, ended="budget")
        yield self.state
        larger = range(2, search.most_edits + 1)
        singles = self._readings((edit,) for edit in self.candidates.edits(search.kinds))
        yield from self._try(singles, int(search.budget * (FOR_SINGLES if larger else 1)))
        for size in larger:
            if not self.state.ended and (search.larger_too or not self.state.found):
                self.state = replace(self.state, size=size)
                yield from self._try(self._readings(self._combined(size)), search.budget)
        if not self.state.ended:
            yield from self._try(singles, search.budget)
        if not self.state.ended:
            self.state = replace(self.state, ended="all")
            yield self.state

    def _try(
        self, readings: Iterator[tuple[tuple[Edit, ...], Reading]], last: int
    ) -> Iterator[Counterfactuals]:
        """Run readings until all are through or ``last`` runs are used."""
        while not self.state.ended:
            some = list(islice(readings, max(0, min(self.at_once, last - self.state.runs))))
            if not some:
                return
            scored = self.case.run((variant for _, variant in some), at_once=self.at_once)
            for (edits, _), one in zip(some, scored, strict=True):
                self._keep(edits, one)
            if len(self.state.found) >= self.search.most_found:
                self.state = replace(self.state, ended="enough")
            elif self.state.runs >= self.search.budget:
                self.state = replace(self.state, ended="budget")
            yield self.state

    def _readings(
        self, sets: Iterable[tuple[Edit, ...]]
    ) -> Iterator[tuple[tuple[Edit, ...], Reading]]:
        """Read the text with the edits made, where they fit and what is read is new."""
        for edits in sets:
            if any(set(one.edits) <= set(edits) for one in self.state.found):
                continue  # a smaller set does it
            try:
                variant = self.case.read_with(self.case.graph.apply(*edits))
            except GraphEditError:
                continue  # two edits of one triple
            if self.case.key(variant) in self.seen:
                self.state = replace(self.state, unread=self.state.unread + 1)
                continue
            self.seen.add(self.case.key(variant))
            yield edits, variant

    def _keep(self, edits: tuple[Edit, ...], scored: Scored) -> None:
        """Put a set of edits where it belongs."""
        base, runs = self.state.base, self.state.runs + 1
        after = Outcome(scored.score, self.case.target.answer(scored.prediction))
        flips = after.answer != base.answer and self.search.to in (None, after.answer)
        one = Counterfactual(edits, base, after, scored.prediction, runs, flips)
        found = self.state.found
        if flips:
            smallest = [other for other in found if not set(edits) < set(other.edits)]
            found = tuple(sorted([*smallest, one], key=lambda o: (o.size, -abs(o.change))))
        elif one.size == 1:
            self.singles.append(one)
        nearest = sorted(self.singles, key=self._gain, reverse=True)[:NEAREST]
        self.state = replace(self.state, found=found, nearest=tuple(nearest), runs=runs)

    def _combined(self, size: int) -> Iterator[tuple[Edit, ...]]:
        """Sets of the single changes that came nearest, the largest sum of gains first."""
        most = next(n for n in range(COMBINED, -1, -1) if comb(n, size) <= MOST_SETS)
        best = sorted(self.singles, key=self._gain, reverse=True)[:most]
        sets = combinations(best, size)
        for some in sorted(sets, key=lambda some: -sum(map(self._gain, some))):
            yield tuple(one.edits[0] for one in some)

    def _gain(self, one: Counterfactual) -> float:
        """How much nearer to a flip a change brings the prediction, in nats."""
        return self.sign * one.change
