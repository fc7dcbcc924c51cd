"""Texts as rows and batches without knowledge in them, for systems that keep it beside the text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor, nn

from kbert_core.tokens import Layout, Tokens, TrunkPart, cut_to_length


@dataclass(frozen=True)
class TextRow:
    """One or two sentences with special tokens around them, as N tokens.

    Attributes:
        input_ids, token_type_ids: N of each.
        trunk_parts: where the text's own tokens stand.
    """

    input_ids: Sequence[int]
    token_type_ids: Sequence[int]
    trunk_parts: Sequence[TrunkPart]

    def __len__(self) -> int:
        return len(self.input_ids)


def text_rows(
    tokens: Sequence[Tokens], layout: Layout, max_length: int | None, *, windows: bool = False
) -> list[TextRow]:
    """Write one or two sentences as a row, or as one for each window.

    Arguments and errors are those of :func:`cut_to_length`.
    """
    rows = []
    for row in cut_to_length([len(own) for own in tokens], layout, max_length, windows=windows):
        ids: list[int] = []
        segments: list[int] = []
        parts = []
        for number, (own, (first, stop)) in enumerate(zip(tokens, row, strict=True)):
            before, after = layout.around(number)
            ids += [special.id for special in before]
            parts.append(TrunkPart(number, first, len(ids), len(ids) + stop - first))
            ids += [*own.ids[first:stop], *(special.id for special in after)]
            segments += [special.segment for special in before]
            segments += [layout.segments[number]] * (stop - first)
            segments += [special.segment for special in after]
        rows.append(TextRow(ids, segments, tuple(parts)))
    return rows


@dataclass(frozen=True)
class TextBatch:
    """B rows padded to the longest, N tokens.

    Attributes:
        input_ids, attention_mask, token_type_ids: (B, N) int64; the mask is 0 at padding.
    """

    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor

    @classmethod
    def of(cls, rows: Sequence[TextRow], pad_id: int) -> "TextBatch":
        """Pad rows to the longest."""
        return TextBatch(
            padded([row.input_ids for row in rows], pad_id),
            padded([[1] * len(row) for row in rows], 0),
            padded([row.token_type_ids for row in rows], 0),
        )

    def to(self, device: torch.device | str) -> Self:
        """Move every tensor to a device."""
        given = {name: own for name, own in vars(self).items() if isinstance(own, Tensor)}
        return replace(self, **{name: own.to(device) for name, own in given.items()})


def padded(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
    """Return rows of numbers as one tensor (B, N), the shorter ones filled up."""
    tensors = [torch.tensor(row) for row in rows]
    return nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=fill)
