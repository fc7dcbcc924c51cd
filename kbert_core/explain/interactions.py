"""Interactions: what two triples do together beyond the sum of what each does."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from kbert_core.drawing import BLUE, ORANGE
from kbert_core.explain.figures import clipped, signed_bars
from kbert_core.explain.tables import frame, name_of, target_dict, triple_dict
from kbert_core.explain.target import Target
from kbert_core.explain.variants import Case, Piece, case_of
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.pipeline import Pipeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

MEANING = {"together above the sum": BLUE, "together below the sum": ORANGE}


@dataclass(frozen=True, slots=True)
class Interaction:
    """What two pieces do together beyond what each does.

    Attributes:
        pieces: the two.
        value: score(all) - score(without one) - score(without the other) +
            score(without both), in nats. Positive: together they raise the
            score by more, or lower it by less, than the sum of what each does
            without the other. Negative: they raise it by less, or lower it by
            more. So of two that raise it, negative says that each stands in
            for the other; of two that lower it, positive does. Zero: they add
            up.
    """

    pieces: tuple[Piece, Piece]
    value: float


@dataclass(frozen=True)
class Interactions:
    """What every two pieces of knowledge do together.

    Attributes:
        sentences: the text.
        target: what of the prediction is followed.
        each: every pair, in reading order.
        total: how many pairs there are.
        runs: how many readings were run.
    """

    sentences: tuple[str, ...]
    target: Target
    each: tuple[Interaction, ...]
    total: int
    runs: int

    @property
    def ranked(self) -> tuple[Interaction, ...]:
        """The pairs, the largest first whatever its sign."""
        return tuple(sorted(self.each, key=lambda pair: -abs(pair.value)))

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        return {
            "text": list(self.sentences),
            "target": target_dict(self.target),
            "interactions": [
                {
                    "one": triple_dict(pair.pieces[0].triple),
                    "other": triple_dict(pair.pieces[1].triple),
                    "interaction": pair.value,
                }
                for pair in self.each
            ],
            "runs": self.runs,
        }

    def to_frame(self) -> "DataFrame":
        """A row a pair."""
        rows = [
            {
                **{f"{k}_1": v for k, v in triple_dict(pair.pieces[0].triple).items()},
                **{f"{k}_2": v for k, v in triple_dict(pair.pieces[1].triple).items()},
                "interaction": pair.value,
            }
            for pair in self.each
        ]
        names = [f"{name}_{number}" for number in (1, 2) for name in ("head", "relation", "tail")]
        return frame(rows, (*names, "interaction"))

    def figure(self) -> "Figure":
        """A bar a pair, the largest on top."""
        ranked = self.ranked
        return signed_bars(
            [" & ".join(clipped(name_of(p.triple), 24) for p in pair.pieces) for pair in ranked],
            [pair.value for pair in ranked],
            axis=f"interaction on {self.target}, nats",
            title="What two triples do beyond the sum",
            colours=MEANING,
        )


def interactions(
    case: Case | Pipeline,
    *sentences: str,
    pieces: Sequence[Piece] | None = None,
    graph: KnowledgeGraph | None = None,
    target: Target | None = None,
    **reading: Any,
) -> Interactions:
    """Measure what every two triples of a text do together; see :class:`Interaction`.

    Args:
        case: a text as it was read; or a model, with the text to read.
        pieces: which; None: all the case's.
        other arguments: as for :func:`effects`.
    """
    made = case_of(case, sentences, graph=graph, target=target, **reading)
    *_, last = stream_interactions(made, pieces)
    return last


def stream_interactions(
    case: Case, pieces: Sequence[Piece] | None = None
) -> Iterator[Interactions]:
    """The same, batch by batch: every result has no fewer pairs than the one before.

    The first ones have none: each piece is left out by itself before any two are.
    """
    chosen = tuple(case.pieces if pieces is None else pieces)
    pairs = list(combinations(chosen, 2))
    alone = [(), *((piece,) for piece in chosen)]
    made = Interactions(case.sentences, case.target, (), len(pairs), 0)
    size = case.at_once()
    scores: list[float] = []
    for start in range(0, len(alone), size):
        single = [case.without(gone) for gone in alone[start : start + size]]
        scores += [outcome.score for outcome in case.outcomes(single)]
        made = replace(made, runs=len(scores))
        yield made
    base, *left = scores
    without = dict(zip(chosen, left, strict=True))
    for start in range(0, len(pairs), size):
        some = pairs[start : start + size]
        both = case.outcomes([case.without(pair) for pair in some])
        found = tuple(
            Interaction((a, b), base - without[a] - without[b] + outcome.score)
            for (a, b), outcome in zip(some, both, strict=True)
        )
        made = replace(made, each=(*made.each, *found), runs=made.runs + len(some))
        yield made
