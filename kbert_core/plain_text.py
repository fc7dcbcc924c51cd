"""Triples as plain text: the control that has K-BERT's knowledge and none of its mechanism.

The triples that K-Query finds are written out after the text, ``[CLS] text [SEP] head relation
tail [SEP] ...``, with ordinary positions, and every token sees every other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from kbert_core.kbert.flat_tree import (
    ANCHORS,
    BRANCHES,
    IDS,
    POSITIONS,
    SEGMENTS,
    FlatTree,
    PlacedBranch,
)
from kbert_core.kbert.interventions import Intervention
from kbert_core.kbert.reader import KBertReader, KBertReading
from kbert_core.kbert.sentence_tree import SentenceTree
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.selection import LeftOut, Rule
from kbert_core.knowledge.triple import Triple
from kbert_core.systems import SystemConfig
from kbert_core.text import WordPieces

SEGMENT = 1  # token_type_id of the triples


@dataclass(frozen=True)
class PlainTextConfig(SystemConfig):
    """How a text with its triples after it is read."""

    system: ClassVar[str] = "plain-text"
    ablation: ClassVar[Ablation] = Ablation(positions="hard", visible="all")
    interventions: ClassVar[tuple[Intervention, ...]] = ()


class PlainTextReader(KBertReader):
    """The triples of a text's entities stand after it, as text."""

    config_class: ClassVar[type] = PlainTextConfig

    def lay(
        self, trees: Sequence[SentenceTree], config: Any = None, *, windows: bool
    ) -> list[KBertReading]:
        """Lay texts out with their triples; a long text's windows have their own triples."""
        config = self.configured(config)
        return [
            replace(
                own,
                rows=tuple(
                    _written_out(row, self.tokenizer, config.max_length) for row in own.rows
                ),
            )
            for own in super().lay(trees, config, windows=windows)
        ]

    def rows_with(
        self, rows: Sequence[FlatTree], keep: Callable[[int, Triple], bool]
    ) -> tuple[FlatTree, ...]:
        """Take all triples out of rows but those to keep; those after one move up."""
        owners = [np.maximum.accumulate(row.codes[BRANCHES]) for row in rows]  # the [SEP] too
        return tuple(
            row.keeping(keep, of_triples).with_hard_positions()
            for row, of_triples in zip(rows, owners, strict=True)
        )


def _written_out(row: FlatTree, tokenizer: WordPieces, max_length: int | None) -> FlatTree:
    """Take the branches off a flat tree's trunk and write their triples after it.

    Each is closed by the text's last special token. One that doesn't fit whole is left out.
    """
    text = row.keeping(lambda *_: False)
    closing = [special for _, special in text.specials[-1:]]
    codes, placed, left_out, specials = [text.codes], [], list(row.left_out), list(text.specials)
    length = len(text)
    for node, branch, *_ in row.branches:
        triple = branch.triple
        texts = (triple.head, triple.relation, triple.tail)
        ids = tokenizer.tokenize_branches(texts).ids
        size = len(ids) + len(closing)
        if max_length is not None and length + size > max_length:
            left_out.append((node, LeftOut(triple, Rule.LENGTH)))
            continue
        end = length + len(ids)
        placed.append(PlacedBranch(node, replace(branch, texts=texts), length, end))
        specials += [(end, special) for special in closing]
        added = np.zeros((len(text.codes), size), np.int64)
        added[IDS] = [*ids, *(special.id for special in closing)]
        added[BRANCHES, : len(ids)], added[ANCHORS, : len(ids)] = len(placed), node + 1
        added[SEGMENTS] = SEGMENT
        codes.append(added)
        length += size
    whole = np.concatenate(codes, axis=1)
    whole[POSITIONS] = range(length)
    return replace(
        text,
        tree=row.tree,
        codes=whole,
        branches=tuple(placed),
        left_out=tuple(left_out),
        specials=tuple(specials),
    )
