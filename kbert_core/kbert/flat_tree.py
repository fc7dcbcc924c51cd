"""FlatTree: a sentence tree in reading order, as the encoder takes it.

A branch stands right after its mention's last token. Soft positions (the
paper's soft-position embedding) number the trunk as if there were no
branches and every branch on from its mention. Branch codes say in two small
integers per token everything the visible matrix says in N x N.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from kbert_core.errors import OptionError
from kbert_core.kbert.sentence_tree import Branch, Node, SentenceTree
from kbert_core.knowledge.selection import LeftOut, Rule
from kbert_core.text import Layout, Special, Tokenizer, Tokens, TrunkPart

if TYPE_CHECKING:  # PyTorch takes seconds to start, and only a batch needs it
    import torch
    from torch import Tensor

PAD_BRANCH = -1
KNOWLEDGE_ROOM = 0.25  # of a window, kept free for branches
OVERLAP = 0.25  # of a window's trunk, shared with the next window


@dataclass(frozen=True, slots=True)
class TrunkCut:
    """Text that was over the length limit: tokens [kept, total) of a sentence."""

    sentence: int
    kept: int
    total: int


@dataclass(frozen=True, slots=True)
class Hung:
    """A branch with its place in the flat tree.

    Attributes:
        node: index of its mention in ``tree.nodes``.
        branch: what it says.
        start, end: its tokens, as indices along N; end exclusive.
    """

    node: int
    branch: Branch
    start: int
    end: int


@dataclass(frozen=True)
class FlatTree:
    """N tokens in reading order. All sequences have length N.

    Attributes:
        tree: what was flattened.
        input_ids: vocabulary ids; 0 without a vocabulary.
        soft_positions: from 0 for the first token.
        branch_ids: 0 trunk, 1.. branches.
        anchor_ids: 1 + index in ``tree.nodes`` of the mention a token belongs
            to or hangs from; 0 none.
        token_type_ids: segments.
        hung: the branches that are in, in reading order.
        left_out: every triple that is not, each with its rule.
        trunk_cuts: what the length limit cut from the text.
        trunk_tokens: per sentence all its tokens, also those cut.
    """

    tree: SentenceTree
    input_ids: list[int]
    soft_positions: list[int]
    branch_ids: list[int]
    anchor_ids: list[int]
    token_type_ids: list[int]
    hung: tuple[Hung, ...]
    trunk_parts: tuple[TrunkPart, ...]
    trunk_tokens: tuple[Tokens, ...]
    left_out: tuple[tuple[int, LeftOut], ...] = ()
    trunk_cuts: tuple[TrunkCut, ...] = ()
    specials: tuple[tuple[int, Special], ...] = ()
    branch_texts: tuple[tuple[str, ...], ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.input_ids)

    @cached_property
    def tokens(self) -> list[str]:
        """What each token reads, in the text's own characters."""
        texts = [""] * len(self)
        for index, special in self.specials:
            texts[index] = special.text
        for index, (sentence, at) in enumerate(self.trunk_places):
            if sentence >= 0:
                own = self.trunk_tokens[sentence]
                texts[index] = self.tree.sentences[sentence][own.starts[at] : own.ends[at]]
        for hung, reads in zip(self.hung, self.branch_texts, strict=True):
            texts[hung.start : hung.end] = reads
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
        for hung in self.hung:
            mention = self.tree.nodes[hung.node].mention
            for offset in range(hung.end - hung.start):
                names[hung.start + offset] = (
                    "branch",
                    mention.sentence,
                    mention.start,
                    hung.branch.triple,
                    offset,
                )
        return names


def flatten(tree: SentenceTree, tokenizer: Tokenizer, *, max_length: int | None = None) -> FlatTree:
    """Put a sentence tree into reading order.

    The trunk goes first: if it is over the limit, its end is cut (of two
    sentences the longer one's). Then branches in order: one that doesn't fit
    whole is left out, and the next is still tried.

    Args:
        tree: T.
        tokenizer: for trunk and branches.
        max_length: in tokens, special tokens included; None: no limit.

    Raises:
        OptionError: the limit has no room for a single token of text.
    """
    trunk = tuple(tokenizer.tokenize(tree.sentences))
    layout = tokenizer.layout(len(trunk))
    sizes = _sizes_within([len(t) for t in trunk], layout.count, max_length)
    return _Flattener(
        tree, tokenizer, layout, trunk, [(0, size) for size in sizes], max_length
    ).run()


def flatten_windows(
    tree: SentenceTree, tokenizer: Tokenizer, *, max_length: int | None = None
) -> list[FlatTree]:
    """Put a tree of one sentence into reading order without losing any text.

    A trunk over the limit is read in overlapping windows, each with room for
    branches, so that every token stands in at least one; a trunk within the
    limit makes one window, the same as :func:`flatten`.
    """
    trunk = tuple(tokenizer.tokenize(tree.sentences))
    layout = tokenizer.layout(len(trunk))
    if len(trunk) != 1:
        raise OptionError("Windows are for one sentence; a pair of sentences is cut instead.")
    total = len(trunk[0])
    if max_length is None or total + layout.count <= max_length:
        return [flatten(tree, tokenizer, max_length=max_length)]
    room = _room(layout.count, max_length)
    size = max(1, int(room * (1 - KNOWLEDGE_ROOM)))
    step = max(1, int(size * (1 - OVERLAP)))
    starts = list(range(0, max(total - size, 0) + step, step))
    spans = [(min(start, total - size), min(start, total - size) + size) for start in starts]
    spans = list(dict.fromkeys(spans))
    windows = [
        _Flattener(tree, tokenizer, layout, trunk, [span], max_length, nodes).run()
        for span, nodes in zip(spans, _nodes_of_windows(tree, trunk[0], spans), strict=True)
    ]
    return [replace(window, trunk_cuts=()) for window in windows]


def _nodes_of_windows(
    tree: SentenceTree, tokens: Tokens, spans: Sequence[tuple[int, int]]
) -> list[list[int]]:
    """Give each window the mentions wholly inside it; one inside none goes to the first it touches.

    Returns:
        Per window indices into ``tree.nodes``, in order.
    """
    places = [tokens.over(node.mention.start, node.mention.end) for node in tree.nodes]
    firsts, lasts = [first for first, _ in places], [last for _, last in places]
    inside = [
        list(range(bisect_left(firsts, begin), bisect_right(lasts, stop))) for begin, stop in spans
    ]
    nowhere = set(range(len(places))).difference(*inside)
    stops = [stop for _, stop in spans]
    for number in nowhere:
        insort(inside[bisect_right(stops, firsts[number])], number)
    return inside


def hard_positions(flat: FlatTree) -> list[int]:
    """Positions that count straight through: the ablation without soft positions."""
    return list(range(len(flat)))


def _room(special: int, max_length: int) -> int:
    if max_length <= special:
        raise OptionError(
            f"The length limit is {max_length} tokens, and {special} of them are special. "
            f"Give at least {special + 1}."
        )
    return max_length - special


def _sizes_within(sizes: list[int], special: int, max_length: int | None) -> list[int]:
    if max_length is None:
        return sizes
    room = _room(special, max_length)
    if len(sizes) == 1:
        return [min(sizes[0], room)]
    first, second = sizes
    if first + second <= room:
        return sizes
    half = room // 2
    if first <= half:
        return [first, room - first]
    if second <= room - half:
        return [room - second, second]
    return [half, room - half]


class _Flattener:
    """Lays a tree's tokens down one run at a time: special, trunk or branch.

    Args:
        spans: per sentence which of its tokens to lay down.
        nodes: which of the tree's mentions concern them; None: all.
        others: as for :func:`flatten`.
    """

    def __init__(
        self,
        tree: SentenceTree,
        tokenizer: Tokenizer,
        layout: Layout,
        trunk: tuple[Tokens, ...],
        spans: Sequence[tuple[int, int]],
        max_length: int | None,
        nodes: Sequence[int] | None = None,
    ) -> None:
        self.nodes = range(len(tree.nodes)) if nodes is None else nodes
        self.tree, self.trunk, self.spans = tree, trunk, spans
        self.tokenizer, self.layout = tokenizer, layout
        self.free = float("inf")  # tokens left for branches
        if max_length is not None:
            self.free = max_length - layout.count - sum(end - start for start, end in spans)
        self.position = 0  # soft position of the trunk's next token
        self.input_ids: list[int] = []
        self.soft_positions: list[int] = []
        self.branch_ids: list[int] = []
        self.anchor_ids: list[int] = []
        self.token_type_ids: list[int] = []
        self.hung: list[Hung] = []
        self.branch_texts: list[tuple[str, ...]] = []
        self.trunk_parts: list[TrunkPart] = []
        self.specials: list[tuple[int, Special]] = []
        self.left_out: list[tuple[int, LeftOut]] = []

    def run(self) -> FlatTree:
        nodes = [(number, self.tree.nodes[number]) for number in self.nodes]
        for sentence in range(len(self.trunk)):
            self.put_specials(self.layout.before[sentence])
            own = [item for item in nodes if item[1].mention.sentence == sentence]
            self.put_sentence(sentence, own)
        self.put_specials(self.layout.after)
        return FlatTree(
            self.tree,
            self.input_ids,
            self.soft_positions,
            self.branch_ids,
            self.anchor_ids,
            self.token_type_ids,
            tuple(self.hung),
            tuple(self.trunk_parts),
            self.trunk,
            tuple(self.left_out),
            tuple(self.trunk_cuts()),
            tuple(self.specials),
            tuple(self.branch_texts),
        )

    def trunk_cuts(self) -> Iterator[TrunkCut]:
        for number, (tokens, (start, end)) in enumerate(zip(self.trunk, self.spans, strict=True)):
            if end - start < len(tokens):
                yield TrunkCut(number, end - start, len(tokens))

    def put_sentence(self, sentence: int, nodes: list[tuple[int, Node]]) -> None:
        begin, stop = self.spans[sentence]
        tokens = self.trunk[sentence]
        at = begin  # next token to lay down
        before = 0  # end of the mention before, among all the sentence's tokens
        for number, node in nodes:
            self.left_out += [(number, item) for item in node.left_out]
            first, last = tokens.over(node.mention.start, node.mention.end)
            rule = None
            if last <= first:
                rule = Rule.NO_TOKENS
            elif first < before:
                rule = Rule.SHARED_TOKEN
            elif first < begin or last > stop:
                rule = Rule.TRUNK_CUT
            if rule is not None:
                self.left_out += [(number, LeftOut(b.triple, rule)) for b in node.branches]
                continue
            self.put_trunk(sentence, at, first, 0)
            self.put_trunk(sentence, first, last, number + 1)
            for branch in node.branches:
                self.put_branch(number, branch, self.layout.segments[sentence])
            at = before = last
        self.put_trunk(sentence, at, stop, 0)

    def put_specials(self, specials: tuple[Special, ...]) -> None:
        for special in specials:
            self.specials.append((len(self.input_ids), special))
            self.put((special.id,), 0, 0, special.segment)
            self.position += 1

    def put_trunk(self, sentence: int, first: int, last: int, anchor: int) -> None:
        if last > first:
            start = len(self.input_ids)
            self.trunk_parts.append(TrunkPart(sentence, first, start, start + last - first))
            ids = self.trunk[sentence].ids[first:last]
            self.put(ids, 0, anchor, self.layout.segments[sentence])
            self.position += last - first

    def put_branch(self, node: int, branch: Branch, segment: int) -> None:
        pieces = list(self.tokenizer.tokenize_branches(branch.texts))
        ids = [token for piece in pieces for token in piece.ids]
        if not ids or len(ids) > self.free:
            rule = Rule.LENGTH if ids else Rule.NO_TOKENS
            self.left_out.append((node, LeftOut(branch.triple, rule)))
            return
        self.free -= len(ids)
        start = len(self.input_ids)
        self.hung.append(Hung(node, branch, start, start + len(ids)))
        self.branch_texts.append(
            tuple(
                text[start:end]
                for text, piece in zip(branch.texts, pieces, strict=True)
                for start, end in zip(piece.starts, piece.ends, strict=True)
            )
        )
        self.put(ids, len(self.hung), node + 1, segment)

    def put(self, ids: Sequence[int], branch: int, anchor: int, segment: int) -> None:
        """Lay down a run that goes on from the trunk's position."""
        size = len(ids)
        self.input_ids += ids
        self.soft_positions += range(self.position, self.position + size)
        self.branch_ids += [branch] * size
        self.anchor_ids += [anchor] * size
        self.token_type_ids += [segment] * size


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
    return _padded([[flat] for flat in flats], pad_id)


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
    import torch

    places = [(0, 0, 0)] * len(flats)
    for row, numbers in enumerate(rows):
        at = 0
        for number in numbers:
            places[number] = (row, at, at + len(flats[number]))
            at += len(flats[number])
    batch = _padded([[flats[number] for number in numbers] for numbers in rows], pad_id)
    tree_ids = torch.full_like(batch.input_ids, -1)
    for numbers in rows:
        for tree, number in enumerate(numbers):
            row, start, end = places[number]
            tree_ids[row, start:end] = tree
    return Packed(PackedBatch(**vars(batch), tree_ids=tree_ids), tuple(places))


def _padded(rows: Sequence[Sequence[FlatTree]], pad_id: int) -> Batch:
    """Each row's flat trees one after the other, padded to the longest row."""
    import torch

    width = max(sum(map(len, row)) for row in rows)

    def padded(name: str, value: int) -> "Tensor":
        joined = [[code for flat in row for code in getattr(flat, name)] for row in rows]
        return torch.tensor(
            [row + [value] * (width - len(row)) for row in joined], dtype=torch.int64
        )

    return Batch(
        padded("input_ids", pad_id),
        padded("soft_positions", 0),
        padded("branch_ids", PAD_BRANCH),
        padded("anchor_ids", 0),
        padded("token_type_ids", 0),
    )
