"""Triples as plain text: the control that has K-BERT's knowledge and none of its mechanism.

The triples that K-Query finds are written out after the text, ``[CLS] text [SEP] head relation
tail [SEP] ...``, with ordinary positions, and every token sees every other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from kbert_core.kbert.flat_tree import IDS, FlatTree, PlacedBranch
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
        return tuple(
            _after_text(
                _text_of(row),
                [
                    (placed, row.codes[IDS, placed.start : placed.end].tolist())
                    for placed in row.branches
                    if keep(placed.node, placed.branch.triple)
                ],
                tree=row.tree.keeping(keep),
            )
            for row in rows
        )


def _written_out(row: FlatTree, tokenizer: WordPieces, max_length: int | None) -> FlatTree:
    """Take the branches off a flat tree's trunk and write their triples after it."""
    sentences = []
    for placed in row.branches:
        triple = placed.branch.triple
        branch = replace(placed.branch, texts=(triple.head, triple.relation, triple.tail))
        pieces = list(tokenizer.tokenize_branches(branch.texts))
        ids = [token for piece in pieces for token in piece.ids]
        sentences.append((replace(placed, branch=branch, tokens=branch.reads(pieces)), ids))
    return _after_text(row.keeping(lambda *_: False), sentences, max_length, tree=row.tree)


def _after_text(
    text: FlatTree,
    sentences: Sequence[tuple[PlacedBranch, list[int]]],
    max_length: int | None = None,
    *,
    tree: SentenceTree,
) -> FlatTree:
    """Put triples with their ids after a text, each closed by its last special token.

    A triple that doesn't fit whole into the length is left out.
    """
    ids, segments = list(text.input_ids), list(text.token_type_ids)
    branches, anchors = list(text.branch_ids), list(text.anchor_ids)
    specials, placed, left_out = list(text.specials), [], list(text.left_out)
    closing = [specials[-1][1]] if specials else []
    for branch, tokens in sentences:
        if max_length is not None and len(ids) + len(tokens) + len(closing) > max_length:
            left_out.append((branch.node, LeftOut(branch.branch.triple, Rule.LENGTH)))
            continue
        placed.append(replace(branch, start=len(ids), end=len(ids) + len(tokens)))
        specials += [(len(ids) + len(tokens), special) for special in closing]
        ids += [*tokens, *(special.id for special in closing)]
        branches += [len(placed)] * len(tokens) + [0] * len(closing)
        anchors += [branch.node + 1] * len(tokens) + [0] * len(closing)
    segments += [SEGMENT] * (len(ids) - len(segments))
    return replace(
        text,
        tree=tree,
        codes=np.array([ids, range(len(ids)), branches, anchors, segments], np.int32),
        branches=tuple(placed),
        left_out=tuple(left_out),
        specials=tuple(specials),
    )


def _text_of(row: FlatTree) -> FlatTree:
    """A row without what is written after its text."""
    end = row.branches[0].start if row.branches else len(row)
    specials = tuple(own for own in row.specials if own[0] < end)
    return replace(row, codes=row.codes[:, :end], branches=(), specials=specials)
