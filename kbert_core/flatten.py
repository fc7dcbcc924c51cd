"""FlatTree: a sentence tree in reading order, as the encoder takes it.

A branch stands right after its mention's last token. Soft positions (the
paper's soft-position embedding) number the trunk as if there were no
branches and every branch on from its mention. Branch codes say in two small
integers per token everything the visible matrix says in N x N.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from kbert_core.errors import OptionError
from kbert_core.knowledge.selection import LeftOut, Rule
from kbert_core.sentence_tree import Branch, SentenceTree
from kbert_core.tokens import Layout, Special, Tokenizer, Tokens

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


@dataclass(frozen=True, slots=True)
class TrunkPart:
    """A run of trunk tokens of one sentence that stand side by side.

    Attributes:
        sentence: which.
        first: index of the run's first token in its sentence.
        start, end: the run, as indices along N; end exclusive.
    """

    sentence: int
    first: int
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


def flatten(
    tree: SentenceTree, tokenizer: Tokenizer, *, max_length: int | None = None
) -> FlatTree:
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
    trunk = tuple(map(tokenizer.tokenize, tree.sentences))
    layout = tokenizer.layout(len(trunk))
    sizes = _sizes_within([len(t) for t in trunk], layout.count, max_length)
    return _flat(tree, tokenizer, layout, trunk, [(0, size) for size in sizes], max_length)


def flatten_windows(
    tree: SentenceTree, tokenizer: Tokenizer, *, max_length: int | None = None
) -> list[FlatTree]:
    """Put a tree of one sentence into reading order without losing any text.

    A trunk over the limit is read in overlapping windows, each with room for
    branches, so that every token stands in at least one; a trunk within the
    limit makes one window, the same as :func:`flatten`.
    """
    trunk = tuple(map(tokenizer.tokenize, tree.sentences))
    layout = tokenizer.layout(len(trunk))
    if len(trunk) != 1:
        raise OptionError("Windows are for one sentence; a pair of sentences is cut instead.")
    total = len(trunk[0])
    if max_length is None or total + layout.count <= max_length:
        return [_flat(tree, tokenizer, layout, trunk, [(0, total)], max_length)]
    room = _room(layout.count, max_length)
    size = max(1, int(room * (1 - KNOWLEDGE_ROOM)))
    step = max(1, int(size * (1 - OVERLAP)))
    starts = list(range(0, max(total - size, 0) + step, step))
    spans = [(min(start, total - size), min(start, total - size) + size) for start in starts]
    windows = [
        _flat(tree, tokenizer, layout, trunk, [span], max_length) for span in dict.fromkeys(spans)
    ]
    return [replace(window, trunk_cuts=()) for window in windows]


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


def _flat(
    tree: SentenceTree,
    tokenizer: Tokenizer,
    layout: Layout,
    trunk: tuple[Tokens, ...],
    spans: Sequence[tuple[int, int]],
    max_length: int | None,
) -> FlatTree:
    """Flatten the given span of each sentence's tokens, and what hangs there."""
    free = None
    if max_length is not None:
        free = max_length - layout.count - sum(end - start for start, end in spans)
    ids: list[int] = []
    soft: list[int] = []
    branch: list[int] = []
    anchor: list[int] = []
    types: list[int] = []
    hung: list[Hung] = []
    reads: list[tuple[str, ...]] = []
    parts: list[TrunkPart] = []
    specials: list[tuple[int, Special]] = []
    left_out: list[tuple[int, LeftOut]] = []
    position = 0
    node_number = 0

    def put_special(tokens: tuple[Special, ...]) -> None:
        nonlocal position
        for special in tokens:
            specials.append((len(ids), special))
            ids.append(special.id)
            soft.append(position)
            branch.append(0)
            anchor.append(0)
            types.append(special.segment)
            position += 1

    def put_trunk(sentence: int, first: int, last: int, node: int) -> None:
        nonlocal position
        size = last - first
        if size <= 0:
            return
        parts.append(TrunkPart(sentence, first, len(ids), len(ids) + size))
        ids.extend(trunk[sentence].ids[first:last])
        soft.extend(range(position, position + size))
        branch.extend([0] * size)
        anchor.extend([node] * size)
        types.extend([layout.segments[sentence]] * size)
        position += size

    for sentence, (tokens, (begin, stop)) in enumerate(zip(trunk, spans, strict=True)):
        put_special(layout.before[sentence])
        at = begin
        before = 0  # end of the mention before, in all the sentence's tokens
        while node_number < len(tree.nodes):
            node = tree.nodes[node_number]
            mention = node.mention
            if mention.sentence != sentence:
                break
            node_number += 1
            left_out.extend((node_number - 1, item) for item in node.left_out)
            first = bisect_right(tokens.ends, mention.start)
            last = bisect_left(tokens.starts, mention.end)
            rule = None
            if last <= first:
                rule = Rule.NO_TOKENS
            elif first < before:
                rule = Rule.SHARED_TOKEN
            elif first < begin or last > stop:
                rule = Rule.TRUNK_CUT
            if rule is not None:
                left_out.extend(
                    (node_number - 1, LeftOut(b.triple, rule)) for b in node.branches
                )
                continue
            before = last
            put_trunk(sentence, at, first, 0)
            put_trunk(sentence, first, last, node_number)
            at = last
            for item in node.branches:
                pieces = [(text, tokenizer.tokenize_branch(text)) for text in item.texts]
                size = sum(len(piece) for _, piece in pieces)
                if not size or (free is not None and size > free):
                    rule = Rule.LENGTH if size else Rule.NO_TOKENS
                    left_out.append((node_number - 1, LeftOut(item.triple, rule)))
                    continue
                if free is not None:
                    free -= size
                start = len(ids)
                for _, piece in pieces:
                    ids.extend(piece.ids)
                hung.append(Hung(node_number - 1, item, start, len(ids)))
                reads.append(
                    tuple(
                        text[s:e]
                        for text, piece in pieces
                        for s, e in zip(piece.starts, piece.ends, strict=True)
                    )
                )
                soft.extend(range(position, position + size))
                branch.extend([len(hung)] * size)
                anchor.extend([node_number] * size)
                types.extend([layout.segments[sentence]] * size)
        put_trunk(sentence, at, stop, 0)
    put_special(layout.after)
    cuts = tuple(
        TrunkCut(number, end - start, len(tokens))
        for number, (tokens, (start, end)) in enumerate(zip(trunk, spans, strict=True))
        if end - start < len(tokens)
    )
    return FlatTree(
        tree,
        ids,
        soft,
        branch,
        anchor,
        types,
        tuple(hung),
        tuple(parts),
        trunk,
        tuple(left_out),
        cuts,
        tuple(specials),
        tuple(reads),
    )


@dataclass(frozen=True)
class Batch:
    """B flat trees padded to the longest, N tokens.

    Attributes:
        input_ids, soft_positions, branch_ids, anchor_ids, token_type_ids:
            (B, N) int64; ``branch_ids`` is -1 at padding.
    """

    input_ids: Tensor
    soft_positions: Tensor
    branch_ids: Tensor
    anchor_ids: Tensor
    token_type_ids: Tensor

    def to(self, device: torch.device | str) -> "Batch":
        """Move every tensor to a device."""
        return Batch(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))

    @property
    def real(self) -> Tensor:
        """(B, N) bool, False at padding."""
        return self.branch_ids != PAD_BRANCH


def collate(flats: Sequence[FlatTree], *, pad_id: int = 0) -> Batch:
    """Pad flat trees to the longest of them."""
    width = max(map(len, flats))

    def padded(name: str, value: int) -> Tensor:
        rows = [getattr(flat, name) for flat in flats]
        return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows])

    return Batch(
        padded("input_ids", pad_id),
        padded("soft_positions", 0),
        padded("branch_ids", PAD_BRANCH),
        padded("anchor_ids", 0),
        padded("token_type_ids", 0),
    )
