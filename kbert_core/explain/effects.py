"""What every triple does to a prediction: effects, interactions of two, Shapley values.

The effect of a triple z is exact, not estimated: score(all) - score(all but z);
all other triples stay. Deleting z from the graph is another question, as the
mention's next triple may move up; both are answered.

The Shapley value phi(z) is what z changes when it is added, averaged over all
orders in which the triples could be added (Shapley 1953). With few triples every
subset is run and the values are exact. Otherwise orders are drawn, each with its
reverse (antithetic sampling, which balances early and late places). In every
order the changes sum to score(all) - score(none), so the values do, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations
from math import comb
from operator import or_
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kbert_core.errors import OptionError
from kbert_core.explain.case import AT_ONCE, Case, Outcome
from kbert_core.explain.result import Plain, Result, batches, final, name_of
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.triple import Triple
from kbert_core.reader import Fact, Reading

EXACT_UP_TO, MOST_EXACT = 6, 12  # facts: 64 readings, and on request 4,096
ORDERS = 128  # drawn where nothing else is said
LEVEL = 0.95
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Effect(Plain):
    """What one fact does: a triple, everywhere or at one mention."""

    fact: Fact
    mentions: tuple[Mention, ...]  # where it hangs
    base: Outcome  # with all knowledge
    without: Outcome  # with all but this fact, and nothing in its place
    deleted: Outcome | None = None  # with the triple gone from the graph; None: not asked for
    moved_up: tuple[Triple, ...] = ()  # the triples that then come into the text
    moved_out: tuple[Triple, ...] = ()  # and that leave it too, where the triple gave a name

    keys: ClassVar = (
        "triple=fact.triple mentions effect flips without deleted_effect deleted_flips deleted "
        "moved_up moved_out"
    )

    @property
    def effect(self) -> float:
        """Score with all minus score without it, in nats; positive: it raises the score."""
        return self.base.score - self.without.score

    @property
    def flips(self) -> bool:
        """Whether the prediction changes if the fact is left out."""
        return self.without.answer != self.base.answer

    @property
    def deleted_effect(self) -> float | None:
        """Score as it is minus score with the triple deleted from the graph."""
        return None if self.deleted is None else self.base.score - self.deleted.score

    @property
    def deleted_flips(self) -> bool | None:
        """Whether the prediction changes if the triple is deleted."""
        return None if self.deleted is None else self.deleted.answer != self.base.answer


@dataclass(frozen=True)
class Effects(Result):
    """What every fact of a text does to its prediction."""

    base: Outcome  # with all knowledge
    plain: Outcome  # with none
    each: tuple[Effect, ...]  # in reading order of the facts
    total: int  # facts; more than ``each`` while effects are still coming
    runs: int  # readings that were run

    measure: ClassVar = "effect"
    rows: ClassVar = "effects"
    keys: ClassVar = (
        "text=sentences target base plain whole_effect=whole flips_without_any=flips effects=each "
        "runs"
    )

    @property
    def whole(self) -> float:
        """What all knowledge does together: score with all minus score with none, in nats."""
        return self.base.score - self.plain.score

    @property
    def flips(self) -> bool:
        """Whether the prediction changes without any knowledge."""
        return self.base.answer != self.plain.answer

    def name(self, effect: Effect) -> str:
        """Return a fact in one line."""
        name = name_of(effect.fact.triple)
        if effect.fact.node is None:
            return name
        at = effect.mentions[0]
        return f"{name} @ {self.sentences[at.sentence][at.start : at.end]} {at.start}"


def stream_effects(
    case: Case, *, by_mention: bool = False, deleted: bool = True
) -> Iterator[Effects]:
    """Measure what every triple of a text does to its prediction; each result has more effects.

    ``by_mention`` takes the triple of each mention separately; ``deleted`` also deletes it from
    the graph.
    """
    both = [case.reading, case.without_knowledge()]
    base, plain = (scored.outcome for scored in case.run(both))
    facts = case.facts_by_mention if by_mention else case.facts
    deleted = deleted and not by_mention
    result = Effects(case.sentences, case.target, base, plain, (), len(facts), 2)
    size = max(1, case.at_once() // (1 + deleted))
    for some in batches(facts, size) if facts else [()]:
        measured, runs = _effects_of(case, some, base, deleted)
        result = replace(result, each=(*result.each, *measured), runs=result.runs + runs)
        yield result


effects = final(stream_effects)


def _effects_of(
    case: Case, facts: Sequence[Fact], base: Outcome, deleted: bool
) -> tuple[list[Effect], int]:
    """Return the effects of some facts, run together, and the number of readings."""
    without = {fact: case.without([fact]) for fact in facts}
    gone = {fact: case.read_with(case.graph.remove(fact.triple)) for fact in facts if deleted}
    # Where nothing takes the place of a deleted triple, the two readings are one.
    different = {case.key(variant): variant for variant in (*without.values(), *gone.values())}
    runs = case.run(different.values())
    outcomes = {key: scored.outcome for key, scored in zip(different, runs, strict=True)}
    before, measured = _hanging(case.reading), []
    for fact, less in without.items():
        effect = Effect(fact, case.mentions_of(fact), base, outcomes[case.key(less)])
        if deleted:
            after = _hanging(gone[fact])
            up = dict.fromkeys(place[2] for place in after if place not in before)
            out = dict.fromkeys(place[2] for place in before if place not in after)
            out.pop(fact.triple, None)
            outcome = outcomes[case.key(gone[fact])]
            effect = replace(effect, deleted=outcome, moved_up=tuple(up), moved_out=tuple(out))
        measured.append(effect)
    return measured, len(different)


def _hanging(reading: Reading) -> dict[tuple[int, int, Triple], None]:
    """Return every triple of a reading: sentence, start of its mention, triple."""
    places = [(reading.mentions[p.node], p.triple) for p in reading.facts if p.node is not None]
    return dict.fromkeys((mention.sentence, mention.start, triple) for mention, triple in places)


@dataclass(frozen=True, slots=True)
class Interaction(Plain):
    """score(all) - score(without one) - score(without the other) + score(without both), in nats.

    If two triples raise the score, a negative number says that one can replace the
    other; if both lower it, a positive number says so.
    """

    facts: tuple[Fact, Fact]
    value: float

    keys: ClassVar = "one=facts.0 other=facts.1 interaction=value"


@dataclass(frozen=True)
class Interactions(Result):
    """What every two facts do together."""

    each: tuple[Interaction, ...]  # in reading order
    total: int  # pairs
    runs: int  # readings that were run

    rows: ClassVar = "interactions"
    keys: ClassVar = "text=sentences target interactions=each runs"


def stream_interactions(case: Case, facts: Sequence[Fact] | None = None) -> Iterator[Interactions]:
    """Measure what every two triples, or ``facts``, do together; each result has more pairs.

    The first results have none: each fact is left out alone before pairs are left out.
    """
    chosen = tuple(case.facts if facts is None else facts)
    pairs = list(combinations(chosen, 2))
    result = Interactions(case.sentences, case.target, (), len(pairs), 0)
    scores: dict[tuple[Fact, ...], float] = {}
    alone = [(), *((fact,) for fact in chosen)]
    for some in (*batches(alone, case.at_once()), *batches(pairs, case.at_once())):
        for gone, scored in zip(some, case.run(map(case.without, some)), strict=True):
            scores[gone] = scored.score
        more = (
            Interaction(pair, scores[()] - sum(scores[p,] for p in pair) + scores[pair])
            for pair in some
            if len(pair) == 2
        )
        result = replace(result, each=(*result.each, *more), runs=len(scores))
        yield result


interactions = final(stream_interactions)


# The whole effect, shared out


@dataclass(frozen=True, slots=True)
class ShapleyValue(Plain):
    """One fact's share of the whole effect, in nats, with the 95 % interval of sampling.

    For an exact value the interval is the value itself; for one pair of orders it is None.
    """

    fact: Fact
    value: float
    low: float | None
    high: float | None

    keys: ClassVar = "triple=fact.triple mention=fact.node value low high"


@dataclass(frozen=True)
class Shapley(Result):
    """The whole effect, divided among the facts."""

    each: tuple[ShapleyValue, ...]  # in reading order of the facts
    whole: float  # score with all minus score with none, in nats: the values' sum
    exact: bool  # whether every subset was run
    orders: int  # how many were drawn; 0 where the values are exact
    total: int  # how many were asked for
    runs: int  # readings that were run; a subset that comes again isn't run again
    seed: int  # of the orders

    rows: ClassVar = "values"
    keys: ClassVar = "text=sentences target whole_effect=whole exact orders runs seed values=each"


def stream_shapley(
    case: Case,
    *,
    by_mention: bool = False,
    orders: int = ORDERS,
    seed: int = 0,
    exact: bool | None = None,
) -> Iterator[Shapley]:
    """Divide the effect of a text's knowledge among its triples; yield batch by batch.

    Args:
        by_mention: take the triple of each mention separately.
        orders: how many orders to draw with the seed; an odd number gets one more.
        exact: run every subset; None: only if there are few facts.

    Yields:
        Results from more and more orders. The first ones may have no values
        yet, and exact values come at the end.

    Raises:
        OptionError: too many facts for every subset, or no orders.
    """
    facts = case.facts_by_mention if by_mention else case.facts
    if exact is None:
        exact = len(facts) <= EXACT_UP_TO
    if exact and len(facts) > MOST_EXACT:
        raise OptionError(
            f"{len(facts)} triples have {2 ** len(facts):,} subsets; at most {MOST_EXACT} "
            "triples can be computed exactly. Draw orders instead."
        )
    if orders < 1:
        raise OptionError(f"{orders} orders are asked for. Draw at least 1.")
    scores, everyone = _SetScores(case, facts), (1 << len(facts)) - 1
    list(scores.run([0, everyone]))
    whole, total = scores[everyone] - scores[0], orders + orders % 2
    drawn = (0, 0, 0, 0) if exact else (0, total, 0, seed)
    result = Shapley(case.sentences, case.target, (), whole, exact, *drawn)
    for grown in _exact(scores, result) if exact else _drawn(scores, result):
        yield replace(grown, runs=len(scores))


shapley = final(stream_shapley)


class _SetScores(dict[int, float]):
    """The score of every set of facts, run once; a set is a number with a bit for each fact."""

    def __init__(self, case: Case, facts: Sequence[Fact]) -> None:
        super().__init__()
        self.case, self.facts = case, tuple(facts)

    def run(self, sets: Sequence[int]) -> Iterator[None]:
        """Run the sets that weren't run yet; yield after each batch."""
        missing = [members for members in dict.fromkeys(sets) if members not in self]
        for some in batches(missing, self.case.at_once()):
            variants = [
                self.case.with_only([p for i, p in enumerate(self.facts) if members >> i & 1])
                for members in some
            ]
            for members, scored in zip(some, self.case.run(variants), strict=True):
                self[members] = scored.score
            yield

    def changes(self, order: Sequence[int]) -> Floats:
        """Return what each fact changes when it is added, in this order: (n,)."""
        changes = np.zeros(len(order))
        changes[list(order)] = np.diff([self[members] for members in _prefixes(order)])
        return changes


def _prefixes(order: Sequence[int]) -> list[int]:
    """Return the sets of facts that an order passes through, from none to all."""
    return list(accumulate((1 << fact for fact in order), or_, initial=0))


def _exact(scores: _SetScores, result: Shapley) -> Iterator[Shapley]:
    """phi(i) = sum over subsets S without i of |S|! (n-|S|-1)! / n! (v(S + i) - v(S))."""
    count = len(scores.facts)
    sets = sorted(range(1 << count), key=int.bit_count)
    for _ in scores.run(sets):
        yield result
    values = [
        sum(
            (scores[s | 1 << i] - scores[s]) / (count * comb(count - 1, s.bit_count()))
            for s in sets
            if not s >> i & 1
        )
        for i in range(count)
    ]
    each = tuple(ShapleyValue(p, v, v, v) for p, v in zip(scores.facts, values, strict=True))
    yield replace(result, each=each)


def _drawn(scores: _SetScores, result: Shapley) -> Iterator[Shapley]:
    """Draw orders in pairs, each with its reverse; as many at once as fill a batch."""
    random, count = np.random.default_rng(result.seed), len(scores.facts)
    orders = [random.permutation(count).tolist() for _ in range(result.total // 2)]
    pairs: list[Floats] = []  # per pair the mean change of each fact, (n,)
    for some in batches(orders, max(1, AT_ONCE // (2 * max(1, count)))):
        both = [way for order in some for way in (order, order[::-1])]
        for _ in scores.run([members for order in both for members in _prefixes(order)]):
            yield result
        pairs += [(scores.changes(one) + scores.changes(one[::-1])) / 2 for one in some]
        values = _estimates(scores.facts, np.array(pairs))
        result = replace(result, each=values, orders=2 * len(pairs))
        yield result


def _estimates(facts: Sequence[Fact], pairs: Floats) -> tuple[ShapleyValue, ...]:
    """Means over the pairs, (P, n), with their interval by Student's t."""
    from scipy.special import stdtrit  # slow to start

    means, errors = pairs.mean(axis=0), np.full(pairs.shape[1], np.nan)
    if len(pairs) > 1:
        wide = stdtrit(len(pairs) - 1, (1 + LEVEL) / 2)
        errors = wide * pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))
    return tuple(
        ShapleyValue(
            fact, mean, *((None, None) if error != error else (mean - error, mean + error))
        )
        for fact, mean, error in zip(facts, means.tolist(), errors.tolist(), strict=True)
    )
