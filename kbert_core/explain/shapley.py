"""Shapley values: the whole effect shared out among the triples, fairly and without a rest.

phi(z) is the mean, over all orders in which the triples could come in, of
what z changes when it does (Shapley 1953). With few triples every subset is
run and the values are exact; else orders are drawn, each with its reverse
(antithetic, which balances what comes early and late), and the values have an
interval. In every order the changes sum to score(all) - score(none), so the
values do too, however few orders were drawn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kbert_core.errors import OptionError
from kbert_core.explain.figures import nats, signed_bars
from kbert_core.explain.tables import frame, name_of, target_dict, triple_dict
from kbert_core.explain.target import Target
from kbert_core.explain.variants import AT_ONCE, Case, Piece, case_of
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.pipeline import Pipeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

EXACT_UP_TO = 6  # pieces: 64 readings
MOST_EXACT = 12  # on request: 4,096 readings
ORDERS = 128  # drawn where nothing else is said
LEVEL = 0.95

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ShapleyValue:
    """One piece's share of the whole effect.

    Attributes:
        piece: a triple, everywhere or at one mention.
        value: in nats.
        low, high: 95 % interval of the sampling; the value itself where it is
            exact, None where a single pair of orders was drawn.
    """

    piece: Piece
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Shapley:
    """The whole effect, shared out.

    Attributes:
        sentences: the text.
        target: what of the prediction is followed.
        each: the values, in reading order of the pieces.
        whole: score with all minus score with none, in nats: their sum.
        exact: whether every subset was run.
        orders: how many orders were drawn; 0 where the values are exact.
        total: how many were asked for.
        runs: how many readings were run; a subset that comes again isn't run again.
        seed: of the orders.
    """

    sentences: tuple[str, ...]
    target: Target
    each: tuple[ShapleyValue, ...]
    whole: float
    exact: bool
    orders: int
    total: int
    runs: int
    seed: int

    @property
    def ranked(self) -> tuple[ShapleyValue, ...]:
        """The values, the largest first whatever its sign."""
        return tuple(sorted(self.each, key=lambda share: -abs(share.value)))

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        return {
            "text": list(self.sentences),
            "target": target_dict(self.target),
            "whole_effect": self.whole,
            "exact": self.exact,
            "orders": self.orders,
            "runs": self.runs,
            "seed": self.seed,
            "values": [
                {
                    "triple": triple_dict(share.piece.triple),
                    "mention": share.piece.node,
                    "value": share.value,
                    "low": share.low,
                    "high": share.high,
                }
                for share in self.each
            ],
        }

    def to_frame(self) -> "DataFrame":
        """A row a piece, in reading order."""
        rows = [
            {
                **triple_dict(share.piece.triple),
                "mention": share.piece.node,
                "value": share.value,
                "low": share.low,
                "high": share.high,
            }
            for share in self.each
        ]
        return frame(rows, ("head", "relation", "tail", "mention", "value", "low", "high"))

    def figure(self) -> "Figure":
        """A bar a piece, the largest on top, with its interval."""
        how = "exact, all subsets" if self.exact else f"{self.orders} orders, line 95 %"
        ranked = self.ranked
        return signed_bars(
            [name_of(share.piece.triple) for share in ranked],
            [share.value for share in ranked],
            axis=f"share of the effect on {self.target}, nats",
            title=f"Shapley values ({how}); sum {nats(self.whole)}",
            intervals=None
            if self.exact
            else [
                (s.value, s.value) if s.low is None or s.high is None else (s.low, s.high)
                for s in ranked
            ],
        )


def shapley(
    case: Case | Pipeline,
    *sentences: str,
    graph: KnowledgeGraph | None = None,
    target: Target | None = None,
    by_mention: bool = False,
    orders: int = ORDERS,
    seed: int = 0,
    exact: bool | None = None,
    **reading: Any,
) -> Shapley:
    """Share a text's whole effect of knowledge out among its triples.

    Args:
        case: a text as it was read; or a model, with the text to read.
        sentences, graph, target: with a model: the text, K, and what to
            explain (None: what is predicted).
        by_mention: one piece for each mention that a triple hangs from.
        orders: how many to draw; an odd number gets one more.
        seed: of the draw.
        exact: run every subset; None: where there are few pieces.
        reading: further arguments of :meth:`Case.of`.

    Raises:
        OptionError: too many pieces for every subset, or no orders.
        KBertError: a text, option or target that can't be used.
    """
    made = case_of(case, sentences, graph=graph, target=target, **reading)
    *_, last = stream_shapley(made, by_mention=by_mention, orders=orders, seed=seed, exact=exact)
    return last


def stream_shapley(
    case: Case,
    *,
    by_mention: bool = False,
    orders: int = ORDERS,
    seed: int = 0,
    exact: bool | None = None,
) -> Iterator[Shapley]:
    """The same, batch by batch: each result rests on no fewer orders than the one before.

    The first ones may hold no values yet, and exact values come at the end.
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
    game = _Game(case, pieces)
    for _ in game.need([frozenset(), game.everyone]):
        pass  # the whole effect
    yield from _exact(game) if exact else _drawn(game, orders + orders % 2, seed)


class _Game:
    """What every set of pieces scores, each set run once."""

    def __init__(self, case: Case, pieces: Sequence[Piece]) -> None:
        self.case, self.pieces = case, tuple(pieces)
        self.everyone = frozenset(range(len(self.pieces)))
        self._scores: dict[int, float] = {}  # by ``_number``, as sets would fill the memory

    def __getitem__(self, members: frozenset[int]) -> float:
        return self._scores[_number(members)]

    def __contains__(self, members: frozenset[int]) -> bool:
        return _number(members) in self._scores

    def need(self, sets: Sequence[frozenset[int]]) -> Iterator[None]:
        """Run those of the sets that weren't yet; yields after each batch."""
        new = [members for members in dict.fromkeys(sets) if members not in self]
        size = self.case.at_once()
        for start in range(0, len(new), size):
            some = new[start : start + size]
            variants = [self.case.with_only([self.pieces[i] for i in s]) for s in some]
            for members, scored in zip(some, self.case.run(variants), strict=True):
                self._scores[_number(members)] = scored.score
            yield

    def missing(self, sets: Sequence[frozenset[int]]) -> int:
        """How many of the sets weren't run yet."""
        return len({members for members in sets if members not in self})

    @property
    def whole(self) -> float:
        return self[self.everyone] - self[frozenset()]

    def shared(
        self,
        values: Sequence[ShapleyValue],
        *,
        exact: bool,
        orders: int = 0,
        total: int = 0,
        seed: int = 0,
    ) -> Shapley:
        return Shapley(
            self.case.sentences,
            self.case.target,
            tuple(values),
            self.whole,
            exact,
            orders,
            total,
            len(self._scores),
            seed,
        )


def _number(members: frozenset[int]) -> int:
    """A set as one number, a bit a member."""
    return sum(1 << member for member in members)


def _exact(game: _Game) -> Iterator[Shapley]:
    """phi(i) = sum over subsets S without i of |S|! (n-|S|-1)! / n! (v(S + i) - v(S))."""
    count = len(game.pieces)
    sets = [frozenset(s) for k in range(count + 1) for s in combinations(range(count), k)]
    for _ in game.need(sets):
        yield game.shared((), exact=True)
    values = []
    for i, piece in enumerate(game.pieces):
        value = sum(
            (game[s | {i}] - game[s]) / (count * comb(count - 1, len(s)))
            for s in sets
            if i not in s
        )
        values.append(ShapleyValue(piece, value, value, value))
    yield game.shared(values, exact=True)


def _drawn(game: _Game, orders: int, seed: int) -> Iterator[Shapley]:
    """Draw orders in pairs, one the reverse of the other, as many at once as fill a batch."""
    random = np.random.default_rng(seed)
    count = len(game.pieces)
    pairs: list[Floats] = []  # per pair the mean change of each piece, (n,)
    waiting: list[list[int]] = []
    sets: list[frozenset[int]] = []
    made = game.shared((), exact=False, total=orders, seed=seed)
    for number in range(orders // 2):
        order = random.permutation(count).tolist()
        waiting.append(order)
        sets += [*_prefixes(order), *_prefixes(order[::-1])]
        last = number + 1 == orders // 2
        if not last and len(waiting) < AT_ONCE and game.missing(sets) < AT_ONCE:
            continue
        for _ in game.need(sets):
            yield made
        for one in waiting:
            pairs.append((_changes(game, one) + _changes(game, one[::-1])) / 2)
        waiting, sets = [], []
        values = _estimates(game, np.array(pairs))
        made = game.shared(values, exact=False, orders=2 * len(pairs), total=orders, seed=seed)
        yield made


def _prefixes(order: Sequence[int]) -> list[frozenset[int]]:
    """Who is there, from nobody to everybody."""
    return [frozenset(order[:size]) for size in range(len(order) + 1)]


def _changes(game: _Game, order: Sequence[int]) -> Floats:
    """What each piece changes when it comes in, in this order: (n,)."""
    scores = [game[members] for members in _prefixes(order)]
    changes = np.zeros(len(order))
    changes[list(order)] = np.diff(scores)
    return changes


def _estimates(game: _Game, pairs: Floats) -> list[ShapleyValue]:
    """Means over the pairs, (P, n), with their interval by Student's t."""
    from scipy.stats import t  # slow to start

    means = pairs.mean(axis=0).tolist()
    if len(pairs) < 2:
        return [ShapleyValue(p, m, None, None) for p, m in zip(game.pieces, means, strict=True)]
    wide = t.ppf((1 + LEVEL) / 2, len(pairs) - 1)
    errors = (wide * pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs))).tolist()
    return [
        ShapleyValue(piece, mean, mean - error, mean + error)
        for piece, mean, error in zip(game.pieces, means, errors, strict=True)
    ]
