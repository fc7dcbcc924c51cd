"""Batch: flat trees as the encoder's tensors, padded to the longest or packed into rows."""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kbert_core.kbert.flat_tree import Codes, FlatTree, SomeTrees
from kbert_core.tokens import Ints, before

if TYPE_CHECKING:  # PyTorch takes seconds to start, and codes alone do without
    import torch
    from torch import Tensor

PAD_BRANCH = -1
FILLS = (0, PAD_BRANCH, 0, 0)  # at padding, in all codes but the ids


@dataclass(frozen=True)
class Batch:
    """B flat trees padded to the longest, N tokens.

    Attributes:
        input_ids, soft_positions, branch_ids, anchor_ids, token_type_ids:
            (B, N) int64; ``branch_ids`` is -1 at padding.
    """

    input_ids: "Tensor"
    soft_positions: "Tensor"
    branch_ids: "Tensor"
    anchor_ids: "Tensor"
    token_type_ids: "Tensor"

    def to(self, device: "torch.device | str") -> "Batch":
        """Move every tensor to a device."""
        moved = {name: getattr(self, name).to(device) for name in self.__dataclass_fields__}
        return replace(self, **moved)

    @property
    def real(self) -> "Tensor":
        """(B, N) bool, False at padding."""
        return self.branch_ids != PAD_BRANCH


@dataclass(frozen=True)
class PackedBatch(Batch):
    """Several flat trees a row, so that hardly a position is padding.

    Attributes:
        tree_ids: (B, N) int64, which tree of its row a token belongs to; -1
            at padding. No tree sees another.
    """

    tree_ids: "Tensor"


@dataclass(frozen=True)
class Packed:
    """A packed batch, and where every flat tree is in it.

    Attributes:
        batch: R rows of N tokens.
        places: of each flat tree, in the order given: row, start, end.
    """

    batch: PackedBatch
    places: tuple[tuple[int, int, int], ...]

    def apart(self, values: "Tensor") -> "list[Tensor]":
        """Take the encoder's (R, N, ...) output apart, one (n, ...) a flat tree."""
        return [values[row, start:end] for row, start, end in self.places]


def collate(flats: Sequence[FlatTree], *, pad_id: int = 0) -> Batch:
    """Pad flat trees to the longest of them."""
    some = SomeTrees.of(flats)
    if some is not None:  # they lie in one array
        many, rows = some.flats, some.numbers
        values, starts, lengths = many.values, many.starts[rows], many.lengths[rows]
    else:
        values = np.concatenate([flat.codes for flat in flats], axis=1)
        lengths = np.fromiter(map(len, flats), np.int64, len(flats))
        starts = before(lengths)
    return Batch(*padded(values, starts, lengths, (pad_id, *FILLS)))


def pack_trees(flats: Sequence[FlatTree], *, max_length: int, pad_id: int = 0) -> Packed:
    """Put several flat trees into each row, the longest first, where they fit best.

    For tasks that read every token (named entities, fill-mask); a class is
    read from [CLS], of which a packed row has several.

    Args:
        flats: in any order.
        max_length: tokens a row; all rows are as long as the longest tree where that is longer.
        pad_id: of the vocabulary.
    """
    order = sorted(range(len(flats)), key=lambda i: -len(flats[i]))
    rows = best_fit(order, [len(flat) for flat in flats], max(max_length, *map(len, flats)))
    places = [(0, 0, 0)] * len(flats)
    values, lengths = [], []
    for row, numbers in enumerate(rows):
        at = 0
        for tree, number in enumerate(numbers):
            size = len(flats[number])
            places[number] = (row, at, at + size)
            values.append(np.vstack([flats[number].codes, np.full(size, tree)]))
            at += size
        lengths.append(at)
    sizes = np.array(lengths, np.int64)
    codes = padded(np.concatenate(values, axis=1), before(sizes), sizes, (pad_id, *FILLS, -1))
    return Packed(PackedBatch(*codes), tuple(places))


def best_fit(
    order: Iterable[int], sizes: Sequence[int], room: int, *, most_open: int | None = None
) -> list[list[int]]:
    """Put numbers into rows, one after the other, each where the least room stays.

    Args:
        order: the numbers.
        sizes: of each number, at most ``room``.
        most_open: so many rows still take a number; of more the fullest is closed.
    """
    rows: list[list[int]] = []
    left: list[tuple[int, int]] = []  # (room, row) of those open, sorted
    closed: list[int] = []
    for number in order:
        best = bisect_left(left, (sizes[number], -1))
        if best == len(left):
            left.append((room, len(rows)))
            rows.append([])
        there, row = left.pop(best)
        rows[row].append(number)
        insort(left, (there - sizes[number], row))
        if most_open is not None and len(left) > most_open:
            closed.append(left.pop(0)[1])
    return [rows[row] for row in (*closed, *sorted(row for _, row in left))]


def padded(values: Codes, starts: Ints, lengths: Ints, fills: Sequence[int]) -> "Tensor":
    """Cut rows out of codes that lie end to end, and pad them to the longest.

    Args:
        values: (C, M) codes.
        starts, lengths: (B,) of each row.
        fills: C values at padding.

    Returns:
        (C, B, N) int64.
    """
    import torch

    columns = np.arange(int(lengths.max()))
    codes = values.take(starts[:, None] + columns, axis=1, mode="clip")
    least = int(lengths.min())
    padding = columns[least:] >= lengths[:, None]
    np.copyto(codes[:, :, least:], np.array(fills)[:, None, None], where=padding)
    return torch.from_numpy(codes)
