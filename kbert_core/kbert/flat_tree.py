"""FlatTree: a sentence tree in reading order, as the encoder takes it.

A branch stands right after its mention's last token. Soft positions (the
paper's soft-position embedding) number the trunk as if there were no
branches and every branch on from its mention. Branch codes say in two small
integers per token everything the visible matrix says in N x N.

The trees of many texts are flattened into arrays (``flattening.FlatTrees``), and
batches are cut from these. A single :class:`FlatTree`, which says where each
token comes from, is made when it is asked for.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kbert_core.kbert.sentence_tree import Branch, SentenceTree
from kbert_core.knowledge.selection import LeftOut
from kbert_core.knowledge.triple import Triple
from kbert_core.text import Ints, Special, Tokens, TrunkPart, before

if TYPE_CHECKING:  # PyTorch takes seconds to start, and only a batch needs it
    import torch
    from torch import Tensor

PAD_BRANCH = -1
FILLS = (0, PAD_BRANCH, 0, 0)  # at padding, in all codes but the ids
CODES = ("input_ids", "soft_positions", "branch_ids", "anchor_ids", "token_type_ids")
IDS, POSITIONS, BRANCHES, ANCHORS, SEGMENTS = range(5)
Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TrunkCut:
    """Text that was over the length limit: tokens [kept, total) of a sentence."""

    sentence: int
    kept: int
    total: int


@dataclass(frozen=True, slots=True)
class PlacedBranch:
    """A branch with its place in the flat tree.

    Attributes:
        node: index of its mention in ``tree.nodes``.
        branch: what it says.
        start, end: its tokens, as indices along N; end exclusive.
        tokens: what each of them reads.
    """

    node: int
    branch: Branch
    start: int
    end: int
    tokens: tuple[str, ...] = ()


class RowsOfCodes(Protocol):
    """Many flat trees, end to end; see ``flattening.FlatTrees``."""

    @property
    def sizes(self) -> list[int]:
        """How many tokens each has."""

    def origin(self, row: int) -> dict[str, Any]:
        """The fields of one."""

    def batch(self, rows: Sequence[int], *, pad_id: int = 0) -> "Batch":
        """Pad some to the longest of them."""


@dataclass(frozen=True, eq=False)
class FlatTree:
    """N tokens in reading order.

    Attributes:
        tree: what was flattened.
        codes: (5, N) the codes below, in the order of ``CODES``.
        branches: those that are in, in reading order.
        trunk_parts: the runs of the trunk.
        trunk_tokens: per sentence all its tokens, also those cut.
        specials: where special tokens stand.
        left_out: every triple that is not in, with the index of its node and
            its rule.
        trunk_cuts: what the length limit cut from the text.
    """

    tree: SentenceTree
    codes: Codes
    branches: tuple[PlacedBranch, ...]
    trunk_parts: tuple[TrunkPart, ...]
    trunk_tokens: tuple[Tokens, ...]
    specials: tuple[tuple[int, Special], ...]
    left_out: tuple[tuple[int, LeftOut], ...]
    trunk_cuts: tuple[TrunkCut, ...]

    @classmethod
    def of(cls, flats: "RowsOfCodes", row: int) -> "FlatTree":
        """Make a row of many, of which everything is found out when it is first asked for."""
        flat = object.__new__(cls)
        flat.__dict__["place"] = flats, row
        return flat

    def __getattr__(self, name: str) -> Any:
        if name not in FlatTree.__dataclass_fields__ or "place" not in self.__dict__:
            raise AttributeError(f"A FlatTree has no attribute '{name}'.", name=name, obj=self)
        flats, row = self.__dict__["place"]
        self.__dict__.update(flats.origin(row))
        return self.__dict__[name]

    def __len__(self) -> int:
        place = self.__dict__.get("place")
        return place[0].sizes[place[1]] if place else self.codes.shape[1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FlatTree):
            return NotImplemented
        names = [name for name in FlatTree.__dataclass_fields__ if name != "codes"]
        alike = all(getattr(self, name) == getattr(other, name) for name in names)
        return alike and np.array_equal(self.codes, other.codes)

    @cached_property
    def input_ids(self) -> list[int]:
        """N vocabulary ids; 0 without a vocabulary."""
        return self.codes[IDS].tolist()

    @cached_property
    def soft_positions(self) -> list[int]:
        """N positions, from 0 for the first token."""
        return self.codes[POSITIONS].tolist()

    @cached_property
    def branch_ids(self) -> list[int]:
        """N: 0 trunk, 1.. branches."""
        return self.codes[BRANCHES].tolist()

    @cached_property
    def anchor_ids(self) -> list[int]:
        """N: 1 + index of the node a token belongs to or hangs from; 0 none."""
        return self.codes[ANCHORS].tolist()

    @cached_property
    def token_type_ids(self) -> list[int]:
        """N segments."""
        return self.codes[SEGMENTS].tolist()

    @cached_property
    def tokens(self) -> list[str]:
        """What each token reads, in the text's own characters."""
        texts = [""] * len(self)
        for index, special in self.specials:
            texts[index] = special.text
        for index, (sentence, at) in enumerate(self.trunk_places):
            if sentence >= 0:
                tokens = self.trunk_tokens[sentence]
                texts[index] = self.tree.sentences[sentence][tokens.starts[at] : tokens.ends[at]]
        for placed in self.branches:
            texts[placed.start : placed.end] = placed.tokens
        return texts

    @cached_property
    def trunk_places(self) -> list[tuple[int, int]]:
        """Per token (sentence, index in that sentence's tokens); (-1, -1) off the trunk."""
        places = [(-1, -1)] * len(self)
        for part in self.trunk_parts:
            for shift in range(part.end - part.start):
                places[part.start + shift] = (part.sentence, part.first + shift)
        return places

    @cached_property
    def identities(self) -> list[tuple[object, ...]]:
        """Per token a name that stays when other knowledge changes.

        ("trunk", sentence, index), ("branch", sentence, mention start,
        triple, offset) or ("special", number): differences join on it.
        """
        names: list[tuple[object, ...]] = [()] * len(self)
        for number, (index, _) in enumerate(self.specials):
            names[index] = ("special", number)
        for index, (sentence, at) in enumerate(self.trunk_places):
            if sentence >= 0:
                names[index] = ("trunk", sentence, at)
        for placed in self.branches:
            mention = self.tree.nodes[placed.node].mention
            name = ("branch", mention.sentence, mention.start, placed.branch.triple)
            for offset in range(placed.end - placed.start):
                names[placed.start + offset] = (*name, offset)
        return names

    def with_hard_positions(self) -> "FlatTree":
        """Count the positions straight through: the ablation without soft positions."""
        codes = self.codes.copy()
        codes[POSITIONS] = range(len(self))
        return replace(self, codes=codes)

    def keeping(self, keep: Callable[[int, Triple], bool]) -> "FlatTree":
        """Take branches out; every other token keeps its soft position and its place.

        The same as flattening the tree without them where no limit cuts it;
        where one does, no other branch takes the room.

        Args:
            keep: says of a node's index and a triple whether its branch stays.
        """
        kept = [keep(placed.node, placed.branch.triple) for placed in self.branches]
        stays = np.array([True, *kept])[self.codes[BRANCHES]]
        codes = self.codes[:, stays]
        codes[BRANCHES] = (np.cumsum([True, *kept]) - 1)[codes[BRANCHES]]
        place = [0, *np.cumsum(stays).tolist()]  # of each token among those that stay
        return replace(
            self,
            tree=self.tree.keeping(keep),
            codes=codes,
            branches=tuple(
                replace(placed, start=place[placed.start], end=place[placed.end])
                for placed, here in zip(self.branches, kept, strict=True)
                if here
            ),
            trunk_parts=tuple(
                replace(part, start=place[part.start], end=place[part.end])
                for part in self.trunk_parts
            ),
            specials=tuple((place[index], special) for index, special in self.specials),
        )


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
    places = [flat.__dict__.get("place", (None, 0)) for flat in flats]
    many = places[0][0]
    if many is not None and all(place[0] is many for place in places):
        return many.batch([row for _, row in places], pad_id=pad_id)
    lengths = np.fromiter(map(len, flats), np.int64, len(flats))
    values = np.concatenate([flat.codes for flat in flats], axis=1)
    return Batch(*padded(values, before(lengths), lengths, (pad_id, *FILLS)))


def pack_trees(flats: Sequence[FlatTree], *, max_length: int, pad_id: int = 0) -> Packed:
    """Put several flat trees into each row, the longest first, where they fit best.

    For tasks that read every token (named entities, fill-mask); a class is
    read from [CLS], of which a packed row has several.

    Args:
        flats: in any order.
        max_length: tokens a row; a longer tree has a row of its own.
        pad_id: of the vocabulary.
    """
    rows: list[list[int]] = []
    room: list[tuple[int, int]] = []  # (tokens left, row), sorted
    for number in sorted(range(len(flats)), key=lambda i: -len(flats[i])):
        size = len(flats[number])
        best = bisect_left(room, (size, -1))
        if best == len(room):
            rows.append([number])
            insort(room, (max_length - size, len(rows) - 1))
        else:
            left, row = room.pop(best)
            rows[row].append(number)
            insort(room, (left - size, row))
    places = [(0, 0, 0)] * len(flats)
    values, lengths = [], []
    for row, numbers in enumerate(rows):
        at = 0
        for tree, number in enumerate(numbers):
            size = len(flats[number])
            places[number] = (row, at, at + size)
            values.append(np.vstack([flats[number].codes, np.full(size, tree, np.int32)]))
            at += size
        lengths.append(at)
    sizes = np.array(lengths, np.int64)
    codes = padded(np.concatenate(values, axis=1), before(sizes), sizes, (pad_id, *FILLS, -1))
    return Packed(PackedBatch(*codes), tuple(places))


def padded(values: Codes, starts: Ints, lengths: Ints, fills: Sequence[int]) -> "Tensor":
    """Cut rows out of codes that lie end to end, and pad them to the longest.

    Args:
        values: (C, M) codes.
        starts, lengths: (B,) of each row.
        fills: C values at padding.

    Returns:
        (C, B, N) int64.
    """
    import torch  # it takes seconds to start, and codes alone do without

    columns = np.arange(int(lengths.max()))
    real = columns < lengths[:, None]
    rows = values[:, np.where(real, starts[:, None] + columns, 0)]
    for row, fill in zip(rows, fills, strict=True):
        row[~real] = fill
    return torch.from_numpy(rows).long()
