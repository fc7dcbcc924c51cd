"""Effects: what every triple does to a prediction, by leaving it out.

The effect of a triple z is exact, not estimated: score(all) - score(all but z),
with the rest of the selection held fixed. Deleting z from the graph is
another question, as the mention's next triple may move up; both are answered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kbert_core.explain.figures import nats, signed_bars
from kbert_core.explain.tables import (
    frame,
    mention_dict,
    mention_text,
    name_of,
    outcome_dict,
    target_dict,
    triple_dict,
)
from kbert_core.explain.target import Target
from kbert_core.explain.variants import Case, Outcome, Piece, Variant, case_of
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.triple import Triple
from kbert_core.pipeline import Pipeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

Hangs = tuple[int, int, Triple]  # a branch: sentence, where its mention starts, triple


@dataclass(frozen=True, slots=True)
class Effect:
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
class Effects:
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

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        return {
            "text": list(self.sentences),
            "target": target_dict(self.target),
            "base": outcome_dict(self.base),
            "plain": outcome_dict(self.plain),
            "whole_effect": self.whole,
            "flips_without_any": self.flips,
            "effects": [self._row(effect) for effect in self.each],
            "runs": self.runs,
        }

    def to_frame(self) -> "DataFrame":
        """A row a piece, in reading order."""
        rows = []
        for effect in self.each:
            row = self._row(effect)
            for name in ("without", "deleted"):
                outcome = row.pop(name)
                row[f"score_{name}"] = outcome and outcome["score"]
                row[f"answer_{name}"] = outcome and outcome["answer"]
            rows.append({**row, **row.pop("triple")})
        return frame(rows, FRAME)

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

    def _row(self, effect: Effect) -> dict[str, Any]:
        return {
            "triple": triple_dict(effect.piece.triple),
            "mentions": [mention_dict(self.sentences, mention) for mention in effect.mentions],
            "effect": effect.effect,
            "flips": effect.flips,
            "without": outcome_dict(effect.without),
            "deleted_effect": effect.deleted_effect,
            "deleted_flips": effect.deleted_flips,
            "deleted": None if effect.deleted is None else outcome_dict(effect.deleted),
            "moved_up": [triple_dict(triple) for triple in effect.moved_up],
            "moved_out": [triple_dict(triple) for triple in effect.moved_out],
        }


FRAME = (
    *("head", "relation", "tail", "mentions"),
    *("effect", "flips", "score_without", "answer_without"),
    *("deleted_effect", "deleted_flips", "score_deleted", "answer_deleted"),
    *("moved_up", "moved_out"),
)


def effects(
    case: Case | Pipeline,
    *sentences: str,
    graph: KnowledgeGraph | None = None,
    target: Target | None = None,
    by_mention: bool = False,
    deleted: bool = True,
    **reading: Any,
) -> Effects:
    """Measure what every triple of a text does to its prediction.

    Args:
        case: a text as it was read; or a model, with the text to read.
        sentences, graph, target: with a model: the text, K, and what to
            explain (None: what is predicted).
        by_mention: one piece for each mention that a triple hangs from.
        deleted: also delete each triple from the graph.
        reading: further arguments of :meth:`Case.of`.

    Raises:
        KBertError: a text, option or target that can't be used.
    """
    made = case_of(case, sentences, graph=graph, target=target, **reading)
    *_, last = stream_effects(made, by_mention=by_mention, deleted=deleted)
    return last


def stream_effects(
    case: Case, *, by_mention: bool = False, deleted: bool = True
) -> Iterator[Effects]:
    """The same, batch by batch: every result has more effects than the one before."""
    base, plain = case.outcomes([case.as_it_is(), case.without_knowledge()])
    pieces = case.pieces_by_mention if by_mention else case.pieces
    deleted = deleted and not by_mention
    made = Effects(case.sentences, case.target, base, plain, (), len(pieces), 2)
    if not pieces:
        yield made
    size = max(1, case.at_once() // 2) if deleted else case.at_once()
    for start in range(0, len(pieces), size):
        some = pieces[start : start + size]
        found, runs = _effects_of(case, some, base, deleted)
        made = replace(made, each=(*made.each, *found), runs=made.runs + runs)
        yield made


def _effects_of(
    case: Case, pieces: Sequence[Piece], base: Outcome, deleted: bool
) -> tuple[list[Effect], int]:
    """The effects of some pieces, run together; also the number of readings."""
    without = [case.without([piece]) for piece in pieces]
    gone = [
        case.read_with(case.graph.remove(piece.triple)) if deleted else None for piece in pieces
    ]
    own = [  # where nothing takes the triple's place, the two readings are one
        other is not None and variant.key != other.key
        for variant, other in zip(without, gone, strict=True)
    ]
    more = [variant for variant, runs in zip(gone, own, strict=True) if variant and runs]
    outcomes = case.outcomes([*without, *more])
    left = [next(outcomes) for _ in pieces]
    found = []
    for number, piece in enumerate(pieces):
        other = gone[number]
        up: tuple[Triple, ...] = ()
        out: tuple[Triple, ...] = ()
        outcome = None
        if other is not None:
            outcome = next(outcomes) if own[number] else left[number]
            up, out = _moved(case, piece, other)
        mentions = case.mentions_of(piece)
        found.append(Effect(piece, mentions, base, left[number], outcome, up, out))
    return found, len(without) + len(more)


def _moved(
    case: Case, piece: Piece, other: Variant
) -> tuple[tuple[Triple, ...], tuple[Triple, ...]]:
    """The triples that hang where none of them did, and those that don't any more."""
    before, after = _hanging(case.as_it_is()), _hanging(other)
    up = dict.fromkeys(branch[2] for branch in after if branch not in before)
    out = dict.fromkeys(branch[2] for branch in before if branch not in after)
    out.pop(piece.triple, None)
    return tuple(up), tuple(out)


def _hanging(variant: Variant) -> dict[Hangs, None]:
    """Every branch of a reading, in reading order."""
    return dict.fromkeys(
        (mention.sentence, mention.start, hung.branch.triple)
        for row in variant.rows
        for hung in row.hung
        for mention in (row.tree.nodes[hung.node].mention,)
    )
