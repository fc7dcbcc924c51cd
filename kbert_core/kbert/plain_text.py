"""Triples as plain text: the control that has K-BERT's knowledge and none of its mechanism.

The triples that K-Query finds are written out after the text, ``[CLS] text [SEP] head relation
tail [SEP] ...``, with ordinary positions, and every token sees every other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from kbert_core.kbert.ablation import Ablation
from kbert_core.kbert.flat_tree import FlatTree, Hung
from kbert_core.kbert.interventions import Intervention
from kbert_core.kbert.reader import KBertReader, with_branches
from kbert_core.kbert.sentence_tree import Branch, SentenceTree
from kbert_core.knowledge.selection import InjectionOptions, LeftOut, Rule
from kbert_core.knowledge.triple import Triple
from kbert_core.text import WordPieces

SEGMENT = 1  # token_type_id of the triples


@dataclass(frozen=True)
class PlainTextConfig:
    """How a text with its triples after it is read.

    Attributes:
        options: how many triples a mention gets, and which.
        max_length: in tokens, special tokens included; None: as many as the encoder takes.
    """

    system: ClassVar[str] = "plain-text"
    options: InjectionOptions = InjectionOptions()
    max_length: int | None = None
    ablation: ClassVar[Ablation] = Ablation(positions="hard", visible="all")
    interventions: ClassVar[tuple[Intervention, ...]] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what :meth:`as_dict` wrote; what is missing has its default.

        Raises:
            OptionError, TypeError, ValueError, AttributeError: it is something else.
        """
        given = dict(data)
        return cls(InjectionOptions.from_dict(given.pop("injection", {})), **given)

    def as_dict(self) -> dict[str, Any]:
        """The configuration as plain data, for JSON."""
        return {"injection": self.options.as_dict(), "max_length": self.max_length}


class PlainTextReader(KBertReader):
    """The triples of a text's entities stand after it, as text."""

    config_class: ClassVar[type] = PlainTextConfig

    def rows_of(self, tree: SentenceTree, config: Any, windows: bool) -> tuple[FlatTree, ...]:
        """Lay one tree out as rows of tokens; a long text's windows have their own triples."""
        rows = super().rows_of(tree, config, windows)
        return tuple(written_out(row, self.tokenizer, config.max_length) for row in rows)

    def rows_with(
        self, rows: Sequence[FlatTree], keep: Callable[[int, Triple], bool]
    ) -> tuple[FlatTree, ...]:
        """Take all triples out of rows but those to keep; those after one move up."""
        return tuple(_after_text(_text_of(row), _sentences(row, keep)) for row in rows)


def written_out(row: FlatTree, tokenizer: WordPieces, max_length: int | None) -> FlatTree:
    """Take the branches off a flat tree's trunk and write their triples after it.

    Args:
        row: the text's tokens, and the branches that K-BERT would read.
        max_length: in tokens; a triple that doesn't fit whole is left out.
    """
    sentences = []
    for placed in row.hung:
        triple = placed.branch.triple
        texts = (triple.head, triple.relation, triple.tail)
        pieces = tokenizer.tokenize_branches(texts)
        reads = tuple(
            text[start:end]
            for text, piece in zip(texts, pieces, strict=True)
            for start, end in zip(piece.starts, piece.ends, strict=True)
        )
        branch = replace(placed.branch, texts=texts)
        ids = [token for piece in pieces for token in piece.ids]
        sentences.append((placed.node, branch, ids, reads))
    text = replace(with_branches(row, lambda *_: False), tree=row.tree)
    return _after_text(text, sentences, max_length)


Sentence = tuple[int, Branch, list[int], tuple[str, ...]]  # node, triple, ids, texts of tokens


def _after_text(
    text: FlatTree, sentences: Sequence[Sentence], max_length: int | None = None
) -> FlatTree:
    """Put sentences after a text, each closed by the text's last special token."""
    ids, segments = list(text.input_ids), list(text.token_type_ids)
    branches, anchors = list(text.branch_ids), list(text.anchor_ids)
    specials, placed, reads, left_out = list(text.specials), [], [], list(text.left_out)
    closing = [specials[-1][1]] if specials else []
    for node, branch, own, texts in sentences:
        if max_length is not None and len(ids) + len(own) + len(closing) > max_length:
            left_out.append((node, LeftOut(branch.triple, Rule.LENGTH)))
            continue
        placed.append(Hung(node, branch, len(ids), len(ids) + len(own)))
        reads.append(texts)
        ids += own
        branches += [len(placed)] * len(own)
        anchors += [node + 1] * len(own)
        for special in closing:
            specials.append((len(ids), special))
            ids.append(special.id)
            branches.append(0)
            anchors.append(0)
        segments += [SEGMENT] * (len(ids) - len(segments))
    in_it = {(own.node, own.branch.triple) for own in placed}
    nodes = tuple(
        replace(node, branches=tuple(b for b in node.branches if (number, b.triple) in in_it))
        for number, node in enumerate(text.tree.nodes)
    )
    return replace(
        text,
        tree=replace(text.tree, nodes=nodes),
        input_ids=ids,
        soft_positions=list(range(len(ids))),
        branch_ids=branches,
        anchor_ids=anchors,
        token_type_ids=segments,
        hung=tuple(placed),
        left_out=tuple(left_out),
        specials=tuple(specials),
        branch_texts=tuple(reads),
    )


def _text_of(row: FlatTree) -> FlatTree:
    """A row without what is written after its text."""
    end = row.hung[0].start if row.hung else len(row)
    return replace(
        row,
        input_ids=row.input_ids[:end],
        branch_ids=row.branch_ids[:end],
        anchor_ids=row.anchor_ids[:end],
        token_type_ids=row.token_type_ids[:end],
        specials=tuple(own for own in row.specials if own[0] < end),
    )


def _sentences(row: FlatTree, keep: Callable[[int, Triple], bool]) -> list[Sentence]:
    """The triples written after a row's text, those to keep."""
    return [
        (placed.node, placed.branch, row.input_ids[placed.start : placed.end], texts)
        for placed, texts in zip(row.hung, row.branch_texts, strict=True)
        if keep(placed.node, placed.branch.triple)
    ]
