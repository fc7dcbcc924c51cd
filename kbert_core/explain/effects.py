"""Effects: what every triple does to a prediction, and every two beyond the sum, by leaving out.

The effect of a triple z is exact, not estimated: score(all) - score(all but z),
with the rest of the selection held fixed. Deleting z from the graph is
another question, as the mention's next triple may move up; both are answered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

from kbert_core.drawing import BLUE, ORANGE
from kbert_core.explain.result import (
    Plain,
    Result,
    batches,
    clipped,
    final,
    mention_text,
    name_of,
    nats,
    signed_bars,
)
from kbert_core.explain.target import Target
from kbert_core.explain.variants import Case, Outcome
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.triple import Triple
from kbert_core.reader import Piece, Reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Effect(Plain):
    """What one piece of knowledge does.

    Attributes:
        piece: a triple, everywhere or at one mention.
        mentions: where it hangs.
        base: with all knowledge.
        without: with all but this piece, and nothing in its place.
        deleted: with the triple gone from the graph; None where that wasn't
            asked for, or the piece is of one mention (a graph has a triple
            once, for all of them).
        moved_up: the triples that then come into the text.
        moved_out: and those that leave it besides, as when the triple gave
            its head another name.
    """

    piece: Piece
    mentions: tuple[Mention, ...]
    base: Outcome
    without: Outcome
    deleted: Outcome | None = None
    moved_up: tuple[Triple, ...] = ()
    moved_out: tuple[Triple, ...] = ()

    keys: ClassVar = (
        "triple=piece.triple mentions effect flips without deleted_effect deleted_flips deleted "
        "moved_up moved_out"
    )

    @property
    def effect(self) -> float:
        """Score with all minus score without it, in nats; positive: it raises the score."""
        return self.base.score - self.without.score

    @property
    def flips(self) -> bool:
        """Whether the prediction changes where it is left out."""
        return self.without.answer != self.base.answer

    @property
    def deleted_effect(self) -> float | None:
        """Score as it is minus score with the triple deleted from the graph."""
        return None if self.deleted is None else self.base.score - self.deleted.score

    @property
    def deleted_flips(self) -> bool | None:
        """Whether the prediction changes where the triple is deleted."""
        return None if self.deleted is None else self.deleted.answer != self.base.answer


@dataclass(frozen=True)
class Effects(Result):
    """What every piece of knowledge of a text does to its prediction.

    Attributes:
        sentences: the text.
        target: what of the prediction is followed.
        base: with all knowledge.
        plain: with none.
        each: the effects, in reading order of the pieces.
        total: how many pieces there are; more than ``each`` while effects are
            still coming.
        runs: how many readings were run.
    """

    sentences: tuple[str, ...]
    target: Target
    base: Outcome
    plain: Outcome
    each: tuple[Effect, ...]
    total: int
    runs: int

    keys: ClassVar = (
        "text=sentences target base plain whole_effect=whole flips_without_any=flips effects=each "
        "runs"
    )
    columns: ClassVar = (
        "triple=piece.triple mentions effect flips "
        "score_without=without.score answer_without=without.answer deleted_effect deleted_flips "
        "score_deleted=deleted.score answer_deleted=deleted.answer moved_up moved_out"
    )

    @property
    def whole(self) -> float:
        """What all knowledge does together: score with all minus score with none, in nats."""
        return self.base.score - self.plain.score

    @property
    def flips(self) -> bool:
        """Whether the prediction is another without any knowledge."""
        return self.base.answer != self.plain.answer

    @property
    def ranked(self) -> tuple[Effect, ...]:
        """The effects, the largest first whatever its sign."""
        return tuple(sorted(self.each, key=lambda effect: -abs(effect.effect)))

    def figure(self) -> "Figure":
        """A bar a piece, the largest on top; diamonds where the triple is deleted instead."""
        ranked = self.ranked
        deleted = [effect.deleted_effect for effect in ranked]
        return signed_bars(
            [self.name(effect.piece, effect.mentions) for effect in ranked],
            [effect.effect for effect in ranked],
            axis=f"effect on {self.target}, nats",
            title=f"Left out one by one; all together {nats(self.whole)}",
            marks=deleted if any(value is not None for value in deleted) else None,
            mark_name="deleted from the graph",
        )

    def name(self, piece: Piece, mentions: Sequence[Mention]) -> str:
        """A piece in a line."""
        said = name_of(piece.triple)
        if piece.node is None:
            return said
        return f"{said} @ {mention_text(self.sentences, mentions[0])} {mentions[0].start}"


def stream_effects(
    case: Case, *, by_mention: bool = False, deleted: bool = True
) -> Iterator[Effects]:
    """Measure what every triple of a text does to its prediction; yields batch by batch.

    Args:
        case: a text as it was read.
        by_mention: one piece for each mention that a triple hangs from.
        deleted: also delete each triple from the graph.

    Yields:
        Results with more and more effects.
    """
    base, plain = case.outcomes([case.reading, case.without_knowledge()])
    pieces = case.pieces_by_mention if by_mention else case.pieces
    deleted = deleted and not by_mention
    result = Effects(case.sentences, case.target, base, plain, (), len(pieces), 2)
    if not pieces:
        yield result
    size = max(1, case.at_once() // 2) if deleted else case.at_once()
    for some in batches(pieces, size):
        measured, runs = _effects_of(case, some, base, deleted)
        result = replace(result, each=(*result.each, *measured), runs=result.runs + runs)
        yield result


effects = final(stream_effects)


def _effects_of(
    case: Case, pieces: Sequence[Piece], base: Outcome, deleted: bool
) -> tuple[list[Effect], int]:
    """The effects of some pieces, run together; also the number of readings."""
    without = [case.without([piece]) for piece in pieces]
    gone = [case.read_with(case.graph.remove(piece.triple)) for piece in pieces if deleted]
    # Where nothing takes the place of a deleted triple, the two readings are one.
    different = {case.key(variant): variant for variant in (*without, *gone)}
    outcomes = dict(zip(different, case.outcomes(different.values()), strict=True))
    measured = []
    for number, piece in enumerate(pieces):
        effect = Effect(piece, case.mentions_of(piece), base, outcomes[case.key(without[number])])
        if deleted:
            up, out = _moved(case, piece, gone[number])
            outcome = outcomes[case.key(gone[number])]
            effect = replace(effect, deleted=outcome, moved_up=up, moved_out=out)
        measured.append(effect)
    return measured, len(different)


def _moved(
    case: Case, piece: Piece, other: Reading
) -> tuple[tuple[Triple, ...], tuple[Triple, ...]]:
    """The triples that hang where none of them did, and those that don't any more."""
    before, after = _hanging(case.reading), _hanging(other)
    up = dict.fromkeys(branch[2] for branch in after if branch not in before)
    out = dict.fromkeys(branch[2] for branch in before if branch not in after)
    out.pop(piece.triple, None)
    return tuple(up), tuple(out)


def _hanging(reading: Reading) -> dict[tuple[int, int, Triple], None]:
    """Every branch of a reading in reading order: sentence, start of its mention, triple."""
    return dict.fromkeys(
        (mention.sentence, mention.start, piece.triple)
        for piece in reading.pieces
        if piece.node is not None
        for mention in (reading.mentions[piece.node],)
    )


# Two together


@dataclass(frozen=True, slots=True)
class Interaction(Plain):
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

    keys: ClassVar = "one=pieces.0 other=pieces.1 interaction=value"


@dataclass(frozen=True)
class Interactions(Result):
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

    keys: ClassVar = "text=sentences target interactions=each runs"
    columns: ClassVar = "triple_1=pieces.0.triple triple_2=pieces.1.triple interaction=value"

    @property
    def ranked(self) -> tuple[Interaction, ...]:
        """The pairs, the largest first whatever its sign."""
        return tuple(sorted(self.each, key=lambda pair: -abs(pair.value)))

    def figure(self) -> "Figure":
        """A bar a pair, the largest on top."""
        ranked = self.ranked
        return signed_bars(
            [" & ".join(clipped(name_of(p.triple), 24) for p in pair.pieces) for pair in ranked],
            [pair.value for pair in ranked],
            axis=f"interaction on {self.target}, nats",
            title="What two triples do beyond the sum",
            colours={"together above the sum": BLUE, "together below the sum": ORANGE},
        )


def stream_interactions(
    case: Case, pieces: Sequence[Piece] | None = None
) -> Iterator[Interactions]:
    """Measure what every two triples of a text do together; yields batch by batch.

    Args:
        case: a text as it was read.
        pieces: which; None: all the case's.

    Yields:
        Results with no fewer pairs than before; the first have none, as each
        piece is left out by itself before any two are.
    """
    chosen = tuple(case.pieces if pieces is None else pieces)
    pairs = list(combinations(chosen, 2))
    result = Interactions(case.sentences, case.target, (), len(pairs), 0)
    scores: list[float] = []
    for some in batches([(), *((piece,) for piece in chosen)], case.at_once()):
        scores += [outcome.score for outcome in case.outcomes(map(case.without, some))]
        result = replace(result, runs=len(scores))
        yield result
    base, *left = scores
    without = dict(zip(chosen, left, strict=True))
    for two in batches(pairs, case.at_once()):
        both = case.outcomes(map(case.without, two))
        measured = tuple(
            Interaction((a, b), base - without[a] - without[b] + outcome.score)
            for (a, b), outcome in zip(two, both, strict=True)
        )
        result = replace(result, each=(*result.each, *measured), runs=result.runs + len(two))
        yield result


interactions = final(stream_interactions)
