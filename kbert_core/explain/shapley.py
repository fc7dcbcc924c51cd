"""Shapley values: the whole effect shared out among the triples, fairly and without a rest.

phi(z) is the mean, over all orders in which the triples could come in, of
what z changes when it does (Shapley 1953). With few triples every subset is
run and the values are exact; else orders are drawn, each with its reverse
(antithetic, which balances what comes early and late). In every order the
changes sum to score(all) - score(none), so the values do too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import comb
from operator import or_
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kbert_core.errors import OptionError
from kbert_core.explain.case import AT_ONCE, Case
from kbert_core.explain.drawing import Figure
from kbert_core.explain.result import Plain, Result, batches, final, name_of, nats
from kbert_core.reader import Piece

EXACT_UP_TO = 6  # pieces: 64 readings
MOST_EXACT = 12  # on request: 4,096 readings
ORDERS = 128  # drawn where nothing else is said
LEVEL = 0.95
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ShapleyValue(Plain):
    """One piece's share of the whole effect, in nats, with the 95 % interval of the sampling.

    The interval is the value itself where it is exact, None of a single pair of orders.
    """

    piece: Piece
    value: float
    low: float | None
    high: float | None

    keys: ClassVar = "triple=piece.triple mention=piece.node value low high"


@dataclass(frozen=True)
class Shapley(Result):
    """The whole effect, shared out."""

    each: tuple[ShapleyValue, ...]  # in reading order of the pieces
    whole: float  # score with all minus score with none, in nats: the values' sum
    exact: bool  # whether every subset was run
    orders: int  # how many were drawn; 0 where the values are exact
    total: int  # how many were asked for
    runs: int  # readings that were run; a subset that comes again isn't run again
    seed: int  # of the orders

    rows: ClassVar = "values"
    keys: ClassVar = "text=sentences target whole_effect=whole exact orders runs seed values=each"

    def figure(self) -> Figure:
        """A bar a piece, the largest on top, with its interval."""
        how = "exact, all subsets" if self.exact else f"{self.orders} orders, line 95 %"
        title = f"Shapley values ({how}); sum {nats(self.whole)}"
        lines = [(s.value, s.value) if s.low is None else (s.low, s.high) for s in self.ranked]
        more = {} if self.exact else {"intervals": lines}
        return self.bars(lambda s: name_of(s.piece.triple), "share of the effect on", title, **more)


def stream_shapley(
    case: Case,
    *,
    by_mention: bool = False,
    orders: int = ORDERS,
    seed: int = 0,
    exact: bool | None = None,
) -> Iterator[Shapley]:
    """Share a text's whole effect of knowledge out among its triples; yields batch by batch.

    Args:
        by_mention: one piece for each mention that a triple hangs from.
        orders: how many to draw; an odd number gets one more.
        seed: of the draw.
        exact: run every subset; None: where there are few pieces.

    Yields:
        Results that rest on no fewer orders than before. The first may hold
        no values yet, and exact values come at the end.

    Raises:
        OptionError: too many pieces for every subset, or no orders.
    """
    pieces = case.pieces_by_mention if by_mention else case.pieces
    if exact is None:
        exact = len(pieces) <= EXACT_UP_TO
    if exact and len(pieces) > MOST_EXACT:
        raise OptionError(
            f"{len(pieces)} triples have {2 ** len(pieces):,} subsets; at most {MOST_EXACT} "
            "triples are done exactly. Draw orders instead."
        )
    if orders < 1:
        raise OptionError(f"{orders} orders are asked for. Draw at least 1.")
    scores, everyone = _SetScores(case, pieces), (1 << len(pieces)) - 1
    for _ in scores.run([0, everyone]):
        pass
    whole, total = scores[everyone] - scores[0], 0 if exact else orders + orders % 2
    seed = 0 if exact else seed
    result = Shapley(case.sentences, case.target, (), whole, exact, 0, total, 0, seed)
    for grown in _exact(scores, result) if exact else _drawn(scores, result):
        yield replace(grown, runs=len(scores))


shapley = final(stream_shapley)


class _SetScores(dict[int, float]):
    """What every set of pieces scores, each set run once; a set is a number, a bit a piece."""

    def __init__(self, case: Case, pieces: Sequence[Piece]) -> None:
        super().__init__()
        self.case, self.pieces = case, tuple(pieces)

    def run(self, sets: Sequence[int]) -> Iterator[None]:
        """Run those of the sets that weren't yet; yields after each batch."""
        missing = [members for members in dict.fromkeys(sets) if members not in self]
        for some in batches(missing, self.case.at_once()):
            variants = [
                self.case.with_only([p for i, p in enumerate(self.pieces) if members >> i & 1])
                for members in some
            ]
            for members, scored in zip(some, self.case.run(variants), strict=True):
                self[members] = scored.score
            yield

    def changes(self, order: Sequence[int]) -> Floats:
        """(n,): what each piece changes when it comes in, in this order."""
        changes = np.zeros(len(order))
        changes[list(order)] = np.diff([self[members] for members in _prefixes(order)])
        return changes


def _prefixes(order: Sequence[int]) -> list[int]:
    """Who is there, from nobody to everybody."""
    return list(accumulate((1 << piece for piece in order), or_, initial=0))


def _exact(scores: _SetScores, result: Shapley) -> Iterator[Shapley]:
    """phi(i) = sum over subsets S without i of |S|! (n-|S|-1)! / n! (v(S + i) - v(S))."""
    count = len(scores.pieces)
    sets = sorted(range(1 << count), key=int.bit_count)
    for _ in scores.run(sets):
        yield result
    values = []
    for i, piece in enumerate(scores.pieces):
        value = sum(
            (scores[s | 1 << i] - scores[s]) / (count * comb(count - 1, s.bit_count()))
            for s in sets
            if not s >> i & 1
        )
        values.append(ShapleyValue(piece, value, value, value))
    yield replace(result, each=tuple(values))


def _drawn(scores: _SetScores, result: Shapley) -> Iterator[Shapley]:
    """Draw orders in pairs, one the reverse of the other, as many at once as fill a batch."""
    random, count = np.random.default_rng(result.seed), len(scores.pieces)
    orders = [random.permutation(count).tolist() for _ in range(result.total // 2)]
    pairs: list[Floats] = []  # per pair the mean change of each piece, (n,)
    for some in batches(orders, max(1, AT_ONCE // (2 * max(1, count)))):
        both = [way for order in some for way in (order, order[::-1])]
        for _ in scores.run([members for order in both for members in _prefixes(order)]):
            yield result
        pairs += [(scores.changes(one) + scores.changes(one[::-1])) / 2 for one in some]
        values = _estimates(scores.pieces, np.array(pairs))
        result = replace(result, each=values, orders=2 * len(pairs))
        yield result


def _estimates(pieces: Sequence[Piece], pairs: Floats) -> tuple[ShapleyValue, ...]:
    """Means over the pairs, (P, n), with their interval by Student's t."""
    from scipy.special import stdtrit  # slow to start

    means, errors = pairs.mean(axis=0), np.full(pairs.shape[1], np.nan)
    if len(pairs) > 1:
        wide = stdtrit(len(pairs) - 1, (1 + LEVEL) / 2)
        errors = wide * pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))
    return tuple(
        ShapleyValue(
            piece, mean, *((None, None) if error != error else (mean - error, mean + error))
        )
        for piece, mean, error in zip(pieces, means.tolist(), errors.tolist(), strict=True)
    )
