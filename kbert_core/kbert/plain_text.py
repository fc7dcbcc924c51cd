"""Triples as plain text: the control that has K-BERT's knowledge and none of its mechanism.

The triples that K-Query finds are written out after the text, ``[CLS] text [SEP] head relation
tail [SEP] ...``, with ordinary positions, and every token sees every other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, ClassVar

import numpy as np

from kbert_core.kbert.flat_tree import ANCHORS, BRANCHES, IDS, POSITIONS, SEGMENTS, FlatTree
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
        return tuple(_keeping(row, keep) for row in rows)


def _keeping(row: FlatTree, keep: Callable[[int, Triple], bool]) -> FlatTree:
    kept = [keep(node, branch.triple) for node, branch in row.hung]
    of_triples = np.maximum.accumulate(row.codes[BRANCHES])  # the special token after one, too
    stays = np.array([True, *kept])[of_triples]
    codes = row.codes[:, stays]
    codes[BRANCHES] = (np.cumsum([True, *kept]) - 1)[codes[BRANCHES]]
    codes[POSITIONS] = range(codes.shape[1])
    specials = len(row.special_tokens)
    if specials:
        specials -= kept.count(False)
    return replace(
        row,
        tree=row.tree.keeping(keep),
        codes=codes,
        places=row.places[:, stays],
        hung=tuple(compress(row.hung, kept)),
        special_tokens=row.special_tokens[:specials],
    )


def _written_out(row: FlatTree, tokenizer: WordPieces, max_length: int | None) -> FlatTree:
    """Take the branches off a flat tree's trunk and write their triples after it.

    Each is closed by the text's last special token. One that doesn't fit whole is left out.
    """
    text = row.keeping(lambda *_: False)
    closing = text.special_tokens[-1:]
    codes, hung, left_out = [text.codes], [], list(row.left_out)
    length = len(text)
    for node, branch in row.hung:
        triple = branch.triple
        texts = (triple.head, triple.relation, triple.tail)
        ids = tokenizer.tokenize_branches(texts).ids
        size = len(ids) + len(closing)
        if max_length is not None and length + size > max_length:
            left_out.append((node, LeftOut(triple, Rule.LENGTH)))
            continue
        hung.append((node, replace(branch, texts=texts)))
        added = np.zeros((len(text.codes), size), np.int64)
        added[IDS] = [*ids, *(special.id for special in closing)]
        added[BRANCHES, : len(ids)], added[ANCHORS, : len(ids)] = len(hung), node + 1
        added[SEGMENTS] = SEGMENT
        codes.append(added)
        length += size
    whole = np.concatenate(codes, axis=1)
    whole[POSITIONS] = range(length)
    return replace(
        text,
        tree=row.tree,
        codes=whole,
        places=np.pad(text.places, ((0, 0), (0, length - len(text))), constant_values=-1),
        hung=tuple(hung),
        left_out=tuple(left_out),
        special_tokens=text.special_tokens + closing * len(hung),
    )
