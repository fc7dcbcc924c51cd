"""Counterfactuals: the smallest changes of the graph that flip a prediction.

Single changes are tried first, then pairs, then larger sets; sets of changes
that came near a flip when tried alone come first. To try a set, the graph is
edited and the text is read again. Changes use only what the graph says: a new
tail is another tail of the same relation; a new relation is one that the tail,
or another entity of the type, has; a new triple is said of others of the type.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice, zip_longest
from math import comb
from typing import Any, ClassVar, Literal, TypeVar

from kbert_core.errors import GraphEditError, OptionError
from kbert_core.explain.case import Case, Outcome, Scored
from kbert_core.explain.result import Plain, Result, final
from kbert_core.explain.targets import NO_SPAN
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import TYPE_RELATIONS, Triple
from kbert_core.options import Options, option
from kbert_core.reader import Reading
from kbert_lab.explain.drawing import Figure, nats_bars

Kind = Literal["remove", "replace", "add"]
KINDS: tuple[Kind, ...] = ("remove", "replace", "add")
AT_ONCE = 16  # readings a batch: a result, or a stop, is never farther off
NEAREST = 5  # single changes that are told where they don't flip it
COMBINED = 24  # the single changes that came nearest are combined
MOST_SETS = 20_000  # of one size; of large sets fewer single changes are combined
MOST_READ = 200_000  # triples of a large graph that are looked at
MOST_ALIKE = 500  # entities of the same type that are looked at
FOR_SINGLES = 2 / 3  # of the budget, where larger sets are wanted too
Ended = Literal["", "all", "budget", "enough"]
T = TypeVar("T")


@dataclass(frozen=True)
class Search(Options):
    """How to search."""

    kinds: tuple[Kind, ...] = KINDS  # of changes
    to: str | None = None  # label, O or token that it shall become; None: any other
    most_edits: int = option(3, least=1)  # the size of the largest sets
    larger_too: bool = False  # go on to larger sets once smaller ones are found
    budget: int = option(200, least=1)  # in model runs
    most_found: int = option(20, least=1)  # stop when so many are found
    # new tails and relations per triple, and new triples per mention
    per_place: int = option(12, least=1)
    seed: int = 0  # of the changes that are drawn

    def __post_init__(self) -> None:
        super().__post_init__()
        for kind in self.kinds:
            if kind not in KINDS:
                raise OptionError(f"The kind is '{kind}', expected one of {', '.join(KINDS)}.")


@dataclass(frozen=True)
class Counterfactual(Plain):
    """A set of edits, and the prediction after them."""

    edits: tuple[Edit, ...]  # to the graph, to be made in this order
    before: Outcome
    after: Outcome
    prediction: Any  # the task's, with the edits made
    runs: int  # after how many model runs it was tried

    keys: ClassVar = "edits after change runs"

    def __str__(self) -> str:
        return "; ".join(map(str, self.edits))

    @property
    def change(self) -> float:
        """The change of the score, in nats."""
        return self.after.score - self.before.score


@dataclass(frozen=True)
class Counterfactuals(Result):
    """What a search has found, so far or in the end.

    ``found`` are the sets of edits that flip the prediction, the smallest first; none
    contains another. ``nearest`` are the single changes that came nearest to a flip.
    """

    base: Outcome  # the prediction as it is
    search: Search
    found: tuple[Counterfactual, ...] = ()
    nearest: tuple[Counterfactual, ...] = ()
    size: int = 1  # of the sets tried last
    runs: int = 1  # of the model so far, one of them the prediction as it is
    unread: int = 0  # changes that leave what the model reads as it is, and cost no run
    ended: Ended = ""  # while it goes on; then "all" was tried, "budget" used up, "enough" found
    complete: bool = True  # whether all of the graph was looked at for candidates

    rows: ClassVar = "found nearest"
    keys: ClassVar = (
        "text=sentences target base to=search.to found nearest runs budget=search.budget "
        "largest_set=size ended graph_read_to_the_end=complete"
    )

    def figure(self) -> Figure:
        """Draw a bar for every set of edits found: its change of the score."""
        shown = self.found or self.nearest
        return nats_bars(
            [f"{one}  → {one.after.answer}" for one in shown],
            [one.change for one in shown],
            axis=f"change of {self.target}, nats",
            title=f"{'What flips' if self.found else 'Nothing found flips; nearest to it'}: "
            f"{self.base.answer}",
        )


def stream_counterfactuals(
    case: Case, search: Search | None = None, *, at_once: int = AT_ONCE
) -> Iterator[Counterfactuals]:
    """Search for the smallest changes of the graph that flip a prediction; yields batch by batch.

    Close the iterator to stop the search. ``at_once``: readings in a batch, fewer if they are long.

    Raises:
        OptionError: the prediction is already the one asked for.
    """
    yield from _Searcher(case, search or Search(), at_once).run()


counterfactuals = final(stream_counterfactuals)
Sets = Iterator[tuple[tuple[Edit, ...], Reading]]  # of edits, and the text read with them


class _Searcher:
    """One search: what was tried, what was found, and what to try next."""

    def __init__(self, case: Case, search: Search, at_once: int) -> None:
        answer = case.base.outcome.answer
        if search.to == answer:
            raise OptionError(
                f"The prediction is already '{answer}', so there is nothing to search for. Name "
                "another label, or none to allow any."
            )
        if search.to is not None:
            target = case.target.towards(search.to, case.base.prediction, case.reading)
            case = replace(case, target=target)
        self.case, self.search, self.at_once = case, search, case.at_once(at_once)
        self.candidates = Candidates(case, per_place=search.per_place, seed=search.seed)
        self.base = case.base.outcome
        self.sign = -1.0 if answer == case.target.label else 1.0  # of what comes nearer
        self.found: list[Counterfactual] = []
        self.singles: list[Counterfactual] = []  # that don't flip it
        self.seen: set[Hashable] = {case.key(case.reading)}
        self.size = self.runs = 1
        self.unread = 0

    def state(self, ended: Ended = "") -> Counterfactuals:
        """Return what was found so far; ``ended`` says why the search is over."""
        if len(self.found) >= self.search.most_found:
            ended = "enough"
        elif self.runs >= self.search.budget:
            ended = "budget"
        return Counterfactuals(
            *(self.case.sentences, self.case.target, self.base, self.search),
            found=tuple(self.found),
            nearest=tuple(self.nearest(NEAREST)),
            **{name: getattr(self, name) for name in ("size", "runs", "unread")},
            ended=ended,
            complete=self.candidates.complete,
        )

    def run(self) -> Iterator[Counterfactuals]:
        """Try single edits, then larger sets, then single edits that are left."""
        search = self.search
        yield self.state()
        larger = range(2, search.most_edits + 1)
        singles = self.readings((edit,) for edit in self.candidates.edits(search.kinds))
        yield from self.tried(singles, int(search.budget * (FOR_SINGLES if larger else 1)))
        for size in larger:
            if not self.state().ended and (search.larger_too or not self.found):
                self.size = size
                yield from self.tried(self.readings(self.combined(size)), search.budget)
        yield from self.tried(singles, search.budget)
        if not self.state().ended:
            yield self.state("all")

    def tried(self, sets: Sets, last: int) -> Iterator[Counterfactuals]:
        """Run readings until all are done or ``last`` runs are used up."""
        while not self.state().ended:
            some = list(islice(sets, max(0, min(self.at_once, last - self.runs))))
            if not some:
                return
            scored = self.case.run((variant for _, variant in some), at_once=self.at_once)
            for (edits, _), one in zip(some, scored, strict=True):
                self.keep(edits, one)
            yield self.state()

    def readings(self, sets: Iterable[tuple[Edit, ...]]) -> Sets:
        """Read the text after each set of edits, if it fits and gives a new reading."""
        for edits in sets:
            if any(set(one.edits) <= set(edits) for one in self.found):
                continue  # a smaller set does it
            try:
                variant = self.case.read_with(self.case.graph.apply(*edits))
            except GraphEditError:
                continue  # two edits of one triple
            if self.case.key(variant) in self.seen:
                self.unread += 1
                continue
            self.seen.add(self.case.key(variant))
            yield edits, variant

    def keep(self, edits: tuple[Edit, ...], scored: Scored) -> None:
        """Put a set of edits among those found, or among those to combine."""
        self.runs += 1
        one = Counterfactual(edits, self.base, scored.outcome, scored.prediction, self.runs)
        if one.after.answer != self.base.answer and self.search.to in (None, one.after.answer):
            smallest = [other for other in self.found if not set(edits) < set(other.edits)]
            self.found = sorted([*smallest, one], key=lambda o: (len(o.edits), -abs(o.change)))
        elif len(edits) == 1:
            self.singles.append(one)

    def nearest(self, most: int) -> list[Counterfactual]:
        """The single changes that bring the prediction nearest to a flip."""
        return sorted(self.singles, key=lambda one: -self.sign * one.change)[:most]

    def combined(self, size: int) -> Iterator[tuple[Edit, ...]]:
        """Yield sets of the nearest single changes, the largest sum of gains first."""
        most = next(n for n in range(COMBINED, -1, -1) if comb(n, size) <= MOST_SETS)
        sets = combinations(self.nearest(most), size)
        for some in sorted(sets, key=lambda some: -self.sign * sum(one.change for one in some)):
            yield tuple(one.edits[0] for one in some)


# What is tried


class Candidates:
    """Single changes for a text, the most promising places first.

    Args:
        case: a text as it was read.
        per_place: how many new tails, relations and triples each place gets.
        seed: half of the changes are drawn at random with it; the others are the most frequent.
    """

    def __init__(self, case: Case, *, per_place: int, seed: int) -> None:
        self.case, self.graph = case, case.graph
        self.per_place, self.seed = per_place, seed
        self.tails: dict[str, Counter[str]] = defaultdict(Counter)  # of each relation
        self.relations: dict[str, Counter[str]] = defaultdict(Counter)  # of each tail
        typed: dict[str, list[str]] = defaultdict(list)
        untyped: dict[str, list[str]] = defaultdict(list)
        read, self.complete = 0, True
        for entity, triples in self.graph.items():
            if read >= MOST_READ:
                self.complete = False
                break
            read += len(triples)
            for triple in self._usable(triples):
                self.tails[triple.relation][triple.tail] += 1
                self.relations[triple.tail][triple.relation] += 1
                if triple.relation in TYPE_RELATIONS:
                    typed[triple.tail].append(entity)
                else:
                    untyped[triple.relation].append(entity)
        self.of_type = typed or untyped  # entities; by relation, where none has a type

    def edits(self, kinds: Iterable[Kind] = KINDS) -> Iterator[Edit]:
        """Yield changes, first removals; the places take turns, beginning at the target."""
        kinds = tuple(kinds)
        target, mentions = self.case.target, self.case.reading.mentions
        away = {
            n: target.start == NO_SPAN
            or m.sentence != target.sentence
            or m.start >= target.end
            or m.end <= target.start
            for n, m in enumerate(mentions)
        }
        order = sorted(away, key=lambda n: away[n])
        facts = self.case.facts_by_mention
        triples = dict.fromkeys(p.triple for n in order for p in facts if p.node == n)
        if "remove" in kinds:
            yield from (Edit("remove", triple) for triple in triples)
        others: list[Iterator[Edit]] = []
        if "replace" in kinds:
            others += [self._replaced(triple) for triple in triples if not self._is_name(triple)]
        if "add" in kinds:
            others += [self._added(e) for e in dict.fromkeys(mentions[n].entity for n in order)]
        yield from in_turn(others)

    def _replaced(self, triple: Triple) -> Iterator[Edit]:
        """Yield a triple with other tails and with other relations, in turn."""
        head, relation, tail = triple.head, triple.relation, triple.tail
        relations = Counter(self.relations.get(tail, ()))
        for other in self._alike(head):
            relations.update(list(dict.fromkeys(t.relation for t in other)))
        dice = self._dice(triple)
        with_tails = (Triple(head, relation, t) for t in chosen(self.tails[relation], dice))
        with_relations = (Triple(head, r, tail) for r in chosen(relations, dice))
        others = filter(self._is_new, in_turn([with_tails, with_relations]))
        yield from islice((Edit("replace", triple, other) for other in others), self.per_place)

    def _added(self, entity: str) -> Iterator[Edit]:
        """Yield triples of similar entities, and new tails for the entity's relations, in turn."""
        triples = self.graph.triples_of(entity)
        if not triples:
            return
        of_others = Counter((t.relation, t.tail) for other in self._alike(entity) for t in other)
        of_relations = Counter(
            {
                (relation, tail): count
                for relation in dict.fromkeys(t.relation for t in triples if not self._is_name(t))
                for tail, count in self.tails[relation].items()
            }
        )
        dice = self._dice(Triple(entity, "", ""))
        pairs = in_turn([chosen(of_relations, dice), chosen(of_others, dice)])
        new = filter(self._is_new, (Triple(triples[0].head, *p) for p in dict.fromkeys(pairs)))
        yield from islice((Edit("add", triple, index=0) for triple in new), self.per_place)

    def _alike(self, entity: str) -> list[list[Triple]]:
        """Return what is said of entities that share a type, or else a relation."""
        name = normalise_name(entity)
        triples = self._usable(self.graph.triples_of(name))
        types = [t.tail for t in triples if t.relation in TYPE_RELATIONS]
        shared = types or [t.relation for t in triples]
        found = chain.from_iterable(self.of_type.get(what, ()) for what in shared)
        alike = islice(dict.fromkeys(e for e in found if e != name), MOST_ALIKE)
        return [self._usable(self.graph.triples_of(other)) for other in alike]

    def _usable(self, triples: Iterable[Triple]) -> list[Triple]:
        return [t for t in triples if self.graph.is_on(t) and not self._is_name(t)]

    def _is_name(self, triple: Triple) -> bool:
        """Say whether a triple gives its head another name."""
        return self.graph.aliases.aliases_in(triple) is not None

    def _is_new(self, triple: Triple) -> bool:
        itself = normalise_name(triple.tail) == normalise_name(triple.head)
        return not itself and triple not in self.graph and triple.problem() is None

    def _dice(self, triple: Triple) -> random.Random:
        """Return a random generator for one place, so that its draws don't depend on others."""
        return random.Random(f"{self.seed}\n{triple.head}\n{triple.relation}\n{triple.tail}")


def chosen(counts: Counter[T], dice: random.Random) -> Iterator[T]:
    """Yield in turn the most frequent item and a random one of the others, until none is left."""
    ranked = [item for item, _ in counts.most_common()]
    drawn = dice.sample(ranked, len(ranked))
    yield from dict.fromkeys(in_turn([iter(ranked), iter(drawn)]))


def in_turn(parts: Iterable[Iterable[T]]) -> Iterator[T]:
    """Yield the first item of each part, then the second of each, and so on."""
    end = object()
    for some in zip_longest(*parts, fillvalue=end):
        yield from (item for item in some if item is not end)  # type: ignore[misc]
