"""Effects: what every triple does to a prediction, and every two beyond the sum, by leaving out.

The effect of a triple z is exact, not estimated: score(all) - score(all but z),
with the rest of the selection held fixed. Deleting z from the graph is
another question, as the mention's next triple may move up; both are answered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

from kbert_core.explain.case import Case, Outcome
from kbert_core.explain.drawing import BLUE, ORANGE, Figure
from kbert_core.explain.result import (
    Plain,
    Result,
    batches,
    clipped,
    final,
    mention_text,
    name_of,
    nats,
)
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.triple import Triple
from kbert_core.reader import Piece, Reading


@dataclass(frozen=True, slots=True)
class Effect(Plain):
    """What one piece of knowledge does: a triple, everywhere or at one mention."""

    piece: Piece
    mentions: tuple[Mention, ...]  # where it hangs
    base: Outcome  # with all knowledge
    without: Outcome  # with all but this piece, and nothing in its place
    deleted: Outcome | None = None  # with the triple gone from the graph; None: not asked for
    moved_up: tuple[Triple, ...] = ()  # the triples that then come into the text
    moved_out: tuple[Triple, ...] = ()  # and that leave it too, where the triple gave a name

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
    """What every piece of knowledge of a text does to its prediction."""

    base: Outcome  # with all knowledge
    plain: Outcome  # with none
    each: tuple[Effect, ...]  # in reading order of the pieces
    total: int  # pieces; more than ``each`` while effects are still coming
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
        """Whether the prediction is another without any knowledge."""
        return self.base.answer != self.plain.answer

    def figure(self) -> Figure:
        """A bar a piece, the largest on top; diamonds where the triple is deleted instead."""
        title = f"Left out one by one; all together {nats(self.whole)}"
        marks = [effect.deleted_effect for effect in self.ranked]
        return self.bars(
            self.name, "effect on", title, marks=marks, mark_name="deleted from the graph"
        )

    def name(self, effect: Effect) -> str:
        """A piece in a line."""
        name = name_of(effect.piece.triple)
        if effect.piece.node is None:
            return name
        mention = effect.mentions[0]
        return f"{name} @ {mention_text(self.sentences, mention)} {mention.start}"


def stream_effects(
    case: Case, *, by_mention: bool = False, deleted: bool = True
) -> Iterator[Effects]:
    """Measure what every triple of a text does to its prediction; yields more and more effects.

    Args:
        by_mention: one piece for each mention that a triple hangs from.
        deleted: also delete each triple from the graph, not by mention.
    """
    whole = case.run([case.reading, case.without_knowledge()])
    base, plain = (scored.outcome for scored in whole)
    pieces = case.pieces_by_mention if by_mention else case.pieces
    deleted = deleted and not by_mention
    result = Effects(case.sentences, case.target, base, plain, (), len(pieces), 2)
    if not pieces:
        yield result
    for some in batches(pieces, max(1, case.at_once() // (1 + deleted))):
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
    runs = case.run(different.values())
    outcomes = {key: scored.outcome for key, scored in zip(different, runs, strict=True)}
    before, measured = _hanging(case.reading), []
    for number, piece in enumerate(pieces):
        effect = Effect(piece, case.mentions_of(piece), base, outcomes[case.key(without[number])])
        if deleted:
            after = _hanging(gone[number])
            up = dict.fromkeys(place[2] for place in after if place not in before)
            out = dict.fromkeys(place[2] for place in before if place not in after)
            out.pop(piece.triple, None)
            outcome = outcomes[case.key(gone[number])]
            effect = replace(effect, deleted=outcome, moved_up=tuple(up), moved_out=tuple(out))
        measured.append(effect)
    return measured, len(different)


def _hanging(reading: Reading) -> dict[tuple[int, int, Triple], None]:
    """Every triple of a reading in reading order: sentence, start of its mention, triple."""
    places = [(reading.mentions[p.node], p.triple) for p in reading.pieces if p.node is not None]
    return dict.fromkeys((mention.sentence, mention.start, triple) for mention, triple in places)


# Two together


@dataclass(frozen=True, slots=True)
class Interaction(Plain):
    """What two pieces do together beyond what each does, in nats.

    score(all) - score(without one) - score(without the other) + score(without
    both). Of two that raise the score, negative says that each stands in for
    the other; of two that lower it, positive does.
    """

    pieces: tuple[Piece, Piece]
    value: float

    keys: ClassVar = "one=pieces.0 other=pieces.1 interaction=value"


@dataclass(frozen=True)
class Interactions(Result):
    """What every two pieces of knowledge do together."""

    each: tuple[Interaction, ...]  # in reading order
    total: int  # pairs
    runs: int  # readings that were run

    rows: ClassVar = "interactions"
    keys: ClassVar = "text=sentences target interactions=each runs"

    def figure(self) -> Figure:
        """A bar a pair, the largest on top."""
        return self.bars(
            lambda pair: " & ".join(clipped(name_of(p.triple), 24) for p in pair.pieces),
            "interaction on",
            "What two triples do beyond the sum",
            colours={"together above the sum": BLUE, "together below the sum": ORANGE},
        )


def stream_interactions(
    case: Case, pieces: Sequence[Piece] | None = None
) -> Iterator[Interactions]:
    """Measure what every two triples of a text do together; yields more and more pairs.

    The first results have none: each piece is left out by itself before any two are.

    Args:
        pieces: which; None: all the case's.
    """
    chosen = tuple(case.pieces if pieces is None else pieces)
    pairs = list(combinations(chosen, 2))
    result = Interactions(case.sentences, case.target, (), len(pairs), 0)
    scores: dict[tuple[Piece, ...], float] = {}
    alone = [(), *((piece,) for piece in chosen)]
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
