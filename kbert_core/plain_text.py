"""Triples as plain text: the control that has K-BERT's knowledge and none of its mechanism.

The triples that K-Query finds are written out after the text, ``[CLS] text [SEP] head relation
tail [SEP] ...``, with ordinary positions, and every token sees every other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from kbert_core.kbert.flat_tree import FlatTree, Run
from kbert_core.kbert.interventions import Intervention
from kbert_core.kbert.kbert import KBertReader, KBertReading
from kbert_core.kbert.sentence_tree import Branch, SentenceTree
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.selection import LeftOut, Rule
from kbert_core.knowledge.triple import Triple
from kbert_core.systems import SystemConfig
from kbert_core.tokens import Special

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

    def flatten(
        self, trees: Sequence[SentenceTree], config: Any, *, windows: bool
    ) -> list[KBertReading]:
        """Lay texts out with their triples; a long text's windows have their own triples."""
        readings = super().flatten(trees, config, windows=windows)
        return [
            replace(own, rows=tuple(_written_out(row, config.max_length) for row in own.rows))
            for own in readings
        ]

    def rows_with(
        self, rows: Sequence[FlatTree], keep: Callable[[int, Triple], bool]
    ) -> tuple[FlatTree, ...]:
        """Take all triples out of rows but those to keep; those after one move up."""

        def kept(row: FlatTree) -> FlatTree:
            runs, stays = [], True
            for run in row.runs:  # a special token after a triple stays or goes with it
                if isinstance(run.source, Branch):
                    stays = keep(run.anchor - 1, run.source.triple)
                if stays:
                    runs.append(run)
            return replace(row, tree=row.tree.keeping(keep), runs=runs).with_hard_positions()

        return tuple(map(kept, rows))


def _written_out(row: FlatTree, max_length: int | None) -> FlatTree:
    """Take the branches off a flat tree's trunk and write their triples after it.

    Each is closed by the text's last special token. One that doesn't fit whole is left out.
    """
    runs, left_out = list(row.keeping(lambda *_: False).runs), list(row.left_out)
    special = [run for run in runs if isinstance(run.source, Special)]
    closing = [run._replace(segment=SEGMENT) for run in special[-1:]]
    length = sum(len(run.ids) for run in runs)
    for node, branch, *_ in row.branches:
        triple = branch.triple
        texts = (triple.head, triple.relation, triple.tail)
        pieces = row.tokenizer.tokenize_branches(texts)
        ids = [token for tokens in pieces for token in tokens.ids]
        size = len(ids) + len(closing)
        if max_length is not None and length + size > max_length:
            left_out.append((node, LeftOut(triple, Rule.LENGTH)))
            continue
        runs += [Run(ids, SEGMENT, node + 1, replace(branch, texts=texts)), *closing]
        length += size
    return replace(row, runs=runs, left_out=tuple(left_out)).with_hard_positions()
