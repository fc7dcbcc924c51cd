"""Flat trees: sentence trees in reading order, as the encoder takes them.

A branch stands right after its mention's last token. Soft positions (the paper's soft-position
embedding) number the trunk as if there were no branches, and every branch on from its mention.
Branch codes say in two small integers per token everything the visible matrix says in N x N.

:func:`flatten` makes flat trees, within a length limit; :func:`collate` pads several to a batch.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kbert_core.errors import ShapeError, TextError
from kbert_core.kbert.sentence_tree import Branch, SentenceTree
from kbert_core.knowledge.selection import LeftOut, Rule
from kbert_core.knowledge.triple import Triple
from kbert_core.text import Tokenizer
from kbert_core.tokens import Layout, Special, Tokens, TrunkPart, cut_to_length

if TYPE_CHECKING:  # PyTorch takes seconds to start, and codes alone do without
    import torch
    from torch import Tensor

CODES = ("input_ids", "soft_positions", "branch_ids", "anchor_ids", "token_type_ids")
PAD_BRANCH = -1
KNOWLEDGE_ROOM = 0.25  # of a window, kept free for branches
MOST_BRANCHES = 20_000  # whose tokens a tokenizer keeps


@dataclass(frozen=True, slots=True)
class TrunkCut:
    """Text beyond the length limit: the tokens [kept, total) of a sentence were cut."""

    sentence: int
    kept: int
    total: int


class PlacedBranch(NamedTuple):
    """A branch of ``tree.nodes[node]``, at the tokens [start, end) along N."""

    node: int
    branch: Branch
    start: int
    end: int


class Run(NamedTuple):
    """Tokens that stand together in a row: a special one, a part of the trunk, or a branch.

    Attributes:
        anchor: 1 + index of the node that the tokens are of or hang from; 0 none.
        source: the special token; or the sentence and its first token here; or the branch.
    """

    ids: Sequence[int]
    segment: int
    anchor: int
    source: "Special | tuple[int, int] | Branch"


@dataclass(frozen=True, repr=False)
class FlatTree:
    """N tokens in reading order.

    Attributes:
        tree: what was flattened.
        runs: the tokens, and where they come from.
        left_out: every triple that isn't in the row: the index of its node, and the rule.
        trunk_tokens: per sentence all its tokens, also those that were cut.
        trunk_cuts: what the length limit cut from the text.
        input_ids: N vocabulary ids; 0 without a vocabulary.
        soft_positions: N positions, from 0 for the first token.
        branch_ids: N; 0 trunk, 1.. branches.
        anchor_ids: N; 1 + index of the node a token is of or hangs from, 0 none.
        token_type_ids: N segments.
        branches: the branches that stand in the row, in reading order.
        trunk_parts: the parts of the trunk, between branches and special tokens.
        specials: where special tokens stand.
    """

    tree: SentenceTree
    runs: Sequence[Run] = field(compare=False)
    left_out: tuple[tuple[int, LeftOut], ...]
    trunk_tokens: tuple[Tokens, ...] = field(compare=False)
    trunk_cuts: tuple[TrunkCut, ...] = field(compare=False)
    tokenizer: Tokenizer = field(compare=False)
    input_ids: list[int] = field(init=False, default_factory=list)
    soft_positions: list[int] = field(init=False, default_factory=list)
    branch_ids: list[int] = field(init=False, default_factory=list)
    anchor_ids: list[int] = field(init=False, default_factory=list)
    token_type_ids: list[int] = field(init=False, default_factory=list)
    branches: list[PlacedBranch] = field(init=False, default_factory=list)
    trunk_parts: list[TrunkPart] = field(init=False, compare=False, default_factory=list)
    specials: list[tuple[int, Special]] = field(init=False, compare=False, default_factory=list)

    def __post_init__(self) -> None:
        """Give each token its soft position and its codes, run after run."""
        position = 0  # of the trunk's next token
        for ids, segment, anchor, source in self.runs:
            start, size, branch = len(self.input_ids), len(ids), 0
            self.input_ids.extend(ids)
            self.soft_positions.extend(range(position, position + size))
            match source:
                case Branch():
                    self.branches.append(PlacedBranch(anchor - 1, source, start, start + size))
                    branch = len(self.branches)
                case Special():
                    self.specials.append((start, source))
                case sentence, first:
                    self._add_to_trunk(TrunkPart(sentence, first, start, start + size))
            if not branch:  # after a branch the trunk goes on as if it weren't there
                position += size
            self.branch_ids.extend([branch] * size)
            self.anchor_ids.extend([anchor] * size)
            self.token_type_ids.extend([segment] * size)

    def _add_to_trunk(self, part: TrunkPart) -> None:
        """Add a part of the trunk; it goes on with the part before where nothing is between."""
        last = self.trunk_parts[-1] if self.trunk_parts else None
        if last and (last.sentence, last.end) == (part.sentence, part.start):
            self.trunk_parts[-1] = last._replace(end=part.end)
        else:
            self.trunk_parts.append(part)

    def __len__(self) -> int:
        return len(self.input_ids)

    @cached_property
    def trunk_places(self) -> list[tuple[int, int]]:
        """For each token (sentence, index among its tokens); (-1, -1) if it isn't on the trunk."""
        places = [(-1, -1)] * len(self)
        for sentence, first, start, end in self.trunk_parts:
            shift = first - start
            places[start:end] = [(sentence, at + shift) for at in range(start, end)]
        return places

    @cached_property
    def tokens(self) -> list[str]:
        """The characters of each token, as the text or the triple writes them."""
        texts = [""] * len(self)
        for index, special in self.specials:
            texts[index] = special.text
        for index, (sentence, at) in enumerate(self.trunk_places):
            if sentence >= 0:
                own = self.trunk_tokens[sentence]
                texts[index] = self.tree.sentences[sentence][own.starts[at] : own.ends[at]]
        for placed in self.branches:
            pieces = self.tokenizer.tokenize_branches(placed.branch.texts)
            texts[placed.start : placed.end] = [
                read[start:end]
                for read, own in zip(placed.branch.texts, pieces, strict=True)
                for start, end in zip(own.starts, own.ends, strict=True)
            ]
        return texts

    @cached_property
    def identities(self) -> list[tuple[object, ...]]:
        """A name for each token that stays the same when other knowledge changes.

        ("trunk", sentence, index), ("branch", sentence, mention start,
        triple, offset) or ("special", number). Two trees are compared by these names.
        """
        names: list[tuple[object, ...]] = [("trunk", *place) for place in self.trunk_places]
        for number, (index, _) in enumerate(self.specials):
            names[index] = ("special", number)
        for placed in self.branches:
            mention = self.tree.nodes[placed.node].mention
            name = ("branch", mention.sentence, mention.start, placed.branch.triple)
            for offset in range(placed.end - placed.start):
                names[placed.start + offset] = (*name, offset)
        return names

    def __repr__(self) -> str:
        return f"<FlatTree: {len(self)} tokens, {len(self.branches)} branches>"

    def _repr_html_(self) -> str:
        from kbert_core.markup import tree_html

        return tree_html(self)

    def with_hard_positions(self) -> "FlatTree":
        """Return the tree with hard positions: the ablation without soft positions."""
        hard = replace(self)
        hard.soft_positions[:] = range(len(self))
        return hard

    def keeping(self, keep: Callable[[int, Triple], bool]) -> "FlatTree":
        """Take branches out; every other token keeps its soft position and its order.

        Without a length limit this equals flattening the tree without these branches. With
        one, a branch that had no room before doesn't come in.

        Args:
            keep: says, for the index of a node and a triple, whether the branch stays.
        """
        runs = [
            run
            for run in self.runs
            if not isinstance(run.source, Branch) or keep(run.anchor - 1, run.source.triple)
        ]
        return replace(self, tree=self.tree.keeping(keep), runs=runs)


def flatten(
    trees: Sequence[SentenceTree],
    tokenizer: Tokenizer,
    *,
    max_length: int | None = None,
    windows: bool = False,
) -> list[FlatTree]:
    """Put sentence trees into reading order, one after the other.

    The trunk is placed first. If it is over the limit, its end is cut (of two
    sentences, the longer one's). With ``windows`` its last sentence is read in
    overlapping windows with room for branches: every token is in at least one
    window, and each has the whole first sentence. Then branches follow in order:
    one that doesn't fit as a whole is left out, and the next one is tried.

    Args:
        trees: from :func:`grow_trees`, or made by hand.
        tokenizer: for trunk and branches.
        max_length: in tokens, special tokens included; None: no limit.
        windows: whether a long text is read in windows instead of being cut.

    Returns:
        A row for each tree; in windows a long text has several.

    Raises:
        OptionError: the limit has no room for a single token of text.
        TextError: the first of two sentences leaves no room for windows of the second.
    """
    rows = rows_of_trees(trees, tokenizer, max_length=max_length, windows=windows)
    return list(chain.from_iterable(rows))


def rows_of_trees(
    trees: Sequence[SentenceTree],
    tokenizer: Tokenizer,
    *,
    max_length: int | None = None,
    windows: bool = False,
) -> list[tuple[FlatTree, ...]]:
    """Return the rows of each tree; arguments and errors are those of :func:`flatten`."""
    for tree in trees:
        if not isinstance(tree, SentenceTree):
            raise TextError(
                f"Got {tree!r:.60}, expected a sentence tree. Make trees of texts with "
                "grow_trees, or with k_inject of what k_query finds."
            )
    of_branches = _tokens_of_branches(trees, tokenizer)
    of_texts = iter(tokenizer.tokenize([text for tree in trees for text in tree.sentences]))
    rows = []
    for tree in trees:
        trunk = tuple(islice(of_texts, len(tree.sentences)))
        flattening = _Flattening(tree, trunk, of_branches, tokenizer, max_length, windows)
        rows.append(flattening.rows())
    return rows


def _tokens_of_branches(
    trees: Sequence[SentenceTree], tokenizer: Tokenizer
) -> dict[tuple[str, ...], list[int]]:
    """Tokenize the branches of trees, all new ones at once; they are kept with the tokenizer."""
    if len(tokenizer.known_branches) > MOST_BRANCHES:
        tokenizer.known_branches = {}
    known = tokenizer.known_branches
    every = (branch.texts for tree in trees for node in tree.nodes for branch in node.branches)
    if new := list(dict.fromkeys(texts for texts in every if texts not in known)):
        pieces = iter(tokenizer.tokenize_branches([text for texts in new for text in texts]))
        for texts in new:
            known[texts] = [token for _ in texts for token in next(pieces).ids]
    return known


@dataclass(frozen=True)
class _Flattening:
    """One tree on its way to a row, or to a row for each window.

    Attributes:
        trunk: the tokens of each sentence.
        of_branches: the tokens of branches, by their texts.
        tokenizer, max_length, windows: see :func:`flatten`.
    """

    tree: SentenceTree
    trunk: tuple[Tokens, ...]
    of_branches: Mapping[tuple[str, ...], list[int]]
    tokenizer: Tokenizer
    max_length: int | None
    windows: bool

    @cached_property
    def layout(self) -> Layout:
        """The special tokens around the sentences."""
        return self.tokenizer.layout(len(self.trunk))

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """The tokens [first, stop) of each mention, among those of its sentence."""
        mentions = (node.mention for node in self.tree.nodes)
        return [self.trunk[m.sentence].over(m.start, m.end) for m in mentions]

    def rows(self) -> tuple[FlatTree, ...]:
        """Cut the trunk to the length limit, and write each part of it with its branches."""
        sizes, share = list(map(len, self.trunk)), 1 - KNOWLEDGE_ROOM
        parts = cut_to_length(
            sizes, self.layout, self.max_length, windows=self.windows, share=share
        )
        if len(parts) == 1:
            return (self.row(parts[0], range(len(self.tree.nodes))),)
        return tuple(map(self.row, parts, self.nodes_of(parts)))

    def nodes_of(self, parts: Sequence[Sequence[tuple[int, int]]]) -> list[list[int]]:
        """Return the nodes that each window reads: those whose mention it holds whole.

        Every window has the first of two sentences. A mention that no window holds whole is read,
        and left out, in the first that it touches.
        """
        nodes: list[list[int]] = [[] for _ in parts]
        begins, stops = zip(*(part[-1] for part in parts), strict=True)
        for number, (first, stop) in enumerate(self.places):
            windows = range(bisect_left(stops, stop), bisect_right(begins, first))
            if self.tree.nodes[number].mention.sentence < len(self.trunk) - 1:
                windows = range(len(parts))
            elif not windows:
                touched = min(bisect_right(stops, first), len(parts) - 1)
                windows = range(touched, touched + 1)
            for window in windows:
                nodes[window].append(number)
        return nodes

    def row(self, parts: Sequence[tuple[int, int]], nodes: Sequence[int]) -> FlatTree:
        """Write the tokens [first, stop) of each sentence, and branches after their mentions."""
        runs: list[Run] = []
        left_out: list[tuple[int, LeftOut]] = []
        room = math.inf
        if self.max_length is not None:
            trunk = self.layout.count + sum(stop - first for first, stop in parts)
            room = self.max_length - trunk
        for sentence, (first, stop) in enumerate(parts):
            ids, segment = self.trunk[sentence].ids, self.layout.segments[sentence]
            before, after = self.layout.around(sentence)
            runs += [Run([special.id], special.segment, 0, special) for special in before]
            at, free = first, 0  # the token that is next, and the first after the last mention
            for number in nodes:
                node, (begin, end) = self.tree.nodes[number], self.places[number]
                if node.mention.sentence != sentence:
                    continue
                rule = None
                if end <= begin:
                    rule = Rule.NO_TOKENS
                elif begin < free:
                    rule = Rule.SHARED_TOKEN
                elif begin < first or end > stop:
                    rule = Rule.TRUNK_CUT
                else:
                    runs.append(Run(ids[at:begin], segment, 0, (sentence, at)))
                    runs.append(Run(ids[begin:end], segment, number + 1, (sentence, begin)))
                    at = free = end
                left_out += [(number, other) for other in node.left_out]
                for branch in node.branches:
                    own = self.of_branches[branch.texts]
                    why = rule or (Rule.NO_TOKENS if not own else None)
                    why = why or (Rule.LENGTH if len(own) > room else None)
                    if why:
                        left_out.append((number, LeftOut(branch.triple, why)))
                    else:
                        runs.append(Run(own, segment, number + 1, branch))
                        room -= len(own)
            runs.append(Run(ids[at:stop], segment, 0, (sentence, at)))
            runs += [Run([special.id], special.segment, 0, special) for special in after]
        cuts = [
            TrunkCut(sentence, stop, len(tokens))
            for sentence, (tokens, (_, stop)) in enumerate(zip(self.trunk, parts, strict=True))
            if stop < len(tokens) and not self.windows
        ]
        made = [run for run in runs if run.ids]
        return FlatTree(self.tree, made, tuple(left_out), self.trunk, tuple(cuts), self.tokenizer)


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


def collate(flats: Sequence[FlatTree], *, pad_id: int = 0) -> Batch:
    """Pad flat trees to the longest of them and stack them to a batch.

    Raises:
        ShapeError: there are none.
    """
    import torch

    if not flats:
        raise ShapeError("A batch of no rows was asked for. Give at least one flat tree.")
    longest = max(map(len, flats))

    def padded(code: str, fill: int) -> "Tensor":
        rows = [getattr(flat, code) + [fill] * (longest - len(flat)) for flat in flats]
        return torch.from_numpy(np.array(rows, np.int64))

    return Batch(*map(padded, CODES, (pad_id, 0, PAD_BRANCH, 0, 0)))
