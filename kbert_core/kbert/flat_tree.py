"""Flat trees: sentence trees of many texts in reading order, as the encoder takes them.

A branch stands right after its mention's last token. Soft positions (the paper's soft-position
embedding) number the trunk as if there were no branches, and every branch on from its mention.
Branch codes say in two small integers per token everything the visible matrix says in N x N.

The flat trees of many texts lie in arrays (:class:`FlatTrees`). A single :class:`FlatTree`, which
says where each token comes from, is made when asked for. :func:`collate` pads several to a batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, compress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbert_core.errors import ShapeError
from kbert_core.kbert.sentence_tree import Branch, SentenceTree, Trees
from kbert_core.knowledge.selection import LeftOut, Rule
from kbert_core.knowledge.triple import Triple
from kbert_core.text import Tokenizer
from kbert_core.tokens import Ints, Many, Special, TokenizedTexts, Tokens, TrunkPart, before

if TYPE_CHECKING:  # PyTorch takes seconds to start, and codes alone do without
    import torch
    from torch import Tensor

CODES = ("input_ids", "soft_positions", "branch_ids", "anchor_ids", "token_type_ids")
IDS, POSITIONS, BRANCHES, ANCHORS, SEGMENTS = range(5)
RULES = (None, Rule.NO_TOKENS, Rule.SHARED_TOKEN, Rule.TRUNK_CUT, Rule.LENGTH)
PAD_BRANCH = -1
Codes = NDArray[np.int64]


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


def _listed(code: int) -> "cached_property[list[int]]":
    return cached_property(lambda flat: flat.codes[code].tolist())


@dataclass(frozen=True, eq=False, repr=False)
class FlatTree:
    """N tokens in reading order.

    Attributes:
        tree: what was flattened.
        codes: (5, N) the codes below, in the order of ``CODES``.
        branches: the branches that stand in the row, in reading order.
        trunk_parts: the runs of the trunk's tokens, between branches and special tokens.
        trunk_tokens: per sentence all its tokens, also those that were cut.
        specials: where special tokens stand.
        left_out: every triple that isn't in the row: the index of its node, and the rule.
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
    tokenizer: Tokenizer

    def __len__(self) -> int:
        return self.codes.shape[1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FlatTree):
            return NotImplemented
        same = (self.tree, self.branches, self.left_out)
        same_codes = np.array_equal(self.codes, other.codes)
        return same_codes and same == (other.tree, other.branches, other.left_out)

    input_ids = _listed(IDS)  # N vocabulary ids; 0 without a vocabulary
    soft_positions = _listed(POSITIONS)  # N positions, from 0 for the first token
    branch_ids = _listed(BRANCHES)  # N: 0 trunk, 1.. branches
    anchor_ids = _listed(ANCHORS)  # N: 1 + index of the node a token is of or hangs from; 0 none
    token_type_ids = _listed(SEGMENTS)  # N segments

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
        codes = self.codes.copy()
        codes[POSITIONS] = range(len(self))
        return replace(self, codes=codes)

    def keeping(
        self, keep: Callable[[int, Triple], bool], owners: Codes | None = None
    ) -> "FlatTree":
        """Take branches out; every other token keeps its soft position and its order.

        Without a length limit this equals flattening the tree without these branches. With
        one, a branch that had no room before doesn't come in.

        Args:
            keep: says, for the index of a node and a triple, whether the branch stays.
            owners: (N,) the branch with which a token is taken out, 0 for none; None: its own.
        """
        kept = [True, *(keep(placed.node, placed.branch.triple) for placed in self.branches)]
        stays = np.array(kept)[self.codes[BRANCHES] if owners is None else owners]
        codes = self.codes[:, stays]
        codes[BRANCHES] = (np.cumsum(kept) - 1)[codes[BRANCHES]]
        at = [0, *np.cumsum(stays).tolist()]  # of each token, its place among those that stay
        return replace(
            self,
            tree=self.tree.keeping(keep),
            codes=codes,
            branches=tuple(
                placed._replace(start=at[placed.start], end=at[placed.end])
                for placed in compress(self.branches, kept[1:])
            ),
            trunk_parts=tuple(
                part._replace(start=at[part.start], end=at[part.end]) for part in self.trunk_parts
            ),
            specials=tuple((at[i], special) for i, special in self.specials if stays[i]),
        )


@dataclass(frozen=True)
class FlatTrees(Many[FlatTree]):
    """R flat trees, end to end: M tokens. An item is one :class:`FlatTree`.

    Attributes:
        values: (5, M) the codes of every :class:`FlatTree`.
        runs: (3, S) of each run the number of its first token, its place among the M, and its
            length. Numbers count the tokens of ``trunk``, then special ones, then branches.
        specials: how many special tokens are numbered.
        lengths: (R,) tokens of each row.
        texts: (R,) the tree of each row; a long text in windows has several rows.
        nodes: (4, Q) row, node, and its branches [first, last) among the K.
        rules: (K,) why a branch was left out, as a number of ``RULES``; 0: it stands in its row.
        trees, trunk, tokenizer, windows: what was flattened, and how.
    """

    values: Codes
    runs: Ints
    specials: int
    lengths: Ints
    texts: Ints
    nodes: Ints
    rules: Ints
    trees: Trees
    trunk: TokenizedTexts
    tokenizer: Tokenizer
    windows: bool
    _known: dict[int, tuple[SentenceTree, tuple[Tokens, ...]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> Ints:
        """(R,) the first token of each row among the M."""
        return before(self.lengths)

    def item(self, index: int) -> FlatTree:
        """One row."""
        text, start = int(self.texts[index]), int(self.starts[index])
        end = start + int(self.lengths[index])
        tree, tokens = self._text(text)
        hung, left_out = self._chosen(index, tree)
        words = len(self.trunk.ids)
        first, second = int(self.trunk.firsts[int(self.trees.nodes.begins[text])]), len(tokens[0])
        layout = self.tokenizer.layout(len(tokens))
        texts, chosen = iter((*chain(*layout.before), *layout.after)), iter(hung)
        branches, parts, specials = [], [], []
        kept = [0] * len(tokens)
        own = slice(*self.runs[1].searchsorted((start, end)).tolist())
        for source, begin, size in self.runs[:, own].T.tolist():
            at, stop = begin - start, begin - start + size
            if not size:
                continue
            if source >= words + self.specials:
                branches.append(PlacedBranch(*next(chosen), at, stop))
            elif source >= words:
                specials += [(place, next(texts)) for place in range(at, stop)]
            else:
                source -= first
                sentence = int(len(tokens) > 1 and source >= second)
                parts.append(TrunkPart(sentence, source - second * sentence, at, stop))
                kept[sentence] += size
        cuts = [] if self.windows else zip(range(len(tokens)), kept, map(len, tokens), strict=True)
        return FlatTree(
            tree,
            self.values[:, start:end],
            tuple(branches),
            tuple(parts),
            tokens,
            tuple(specials),
            tuple(left_out),
            tuple(TrunkCut(*cut) for cut in cuts if cut[1] < cut[2]),
            self.tokenizer,
        )

    def _chosen(
        self, index: int, tree: SentenceTree
    ) -> tuple[list[tuple[int, Branch]], list[tuple[int, LeftOut]]]:
        """Return the branches that stand in a row, and every triple that was left out."""
        hung: list[tuple[int, Branch]] = []
        left_out: list[tuple[int, LeftOut]] = []
        own = slice(*self.nodes[0].searchsorted((index, index + 1)).tolist())
        first = int(self.trees.nodes.firsts[int(self.texts[index])])
        numbers, begins, ends = self.nodes[1:, own].tolist()
        rules = iter(self.rules[begins[0] : ends[-1]].tolist() if numbers else ())
        for number in numbers:
            node = tree.nodes[number - first]
            left_out += [(number - first, item) for item in node.left_out]
            for branch, rule in zip(node.branches, rules, strict=False):
                if (why := RULES[rule]) is None:
                    hung.append((number - first, branch))
                else:
                    left_out.append((number - first, LeftOut(branch.triple, why)))
        return hung, left_out

    def _text(self, number: int) -> tuple[SentenceTree, tuple[Tokens, ...]]:
        """Return a text's tree and the tokens of its sentences; its windows share these."""
        if number not in self._known:
            rows = range(*self.trees.nodes.begins[number : number + 2].tolist())
            self._known[number] = self.trees[number], tuple(map(self.trunk.item, rows))
        return self._known[number]


@dataclass(frozen=True)
class SomeTrees(Many[FlatTree]):
    """Some of many flat trees, chosen by their numbers (B,)."""

    flats: FlatTrees
    numbers: Ints

    def __len__(self) -> int:
        return len(self.numbers)

    def item(self, index: int) -> FlatTree:
        """One of them."""
        return self.flats[int(self.numbers[index])]


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

    if not len(flats):
        raise ShapeError("A batch of no rows was asked for. Give at least one flat tree.")
    if isinstance(flats, SomeTrees):  # they lie in one array
        many, rows = flats.flats, flats.numbers
        values, starts, lengths = many.values, many.starts[rows], many.lengths[rows]
    else:
        values = np.concatenate([flat.codes for flat in flats], axis=1)
        lengths = np.fromiter(map(len, flats), np.int64, len(flats))
        starts = before(lengths)
    columns = np.arange(int(lengths.max()))
    codes = values.take(starts[:, None] + columns, axis=1, mode="clip")  # (5, B, N)
    least = int(lengths.min())
    padding = columns[least:] >= lengths[:, None]
    fills = np.array([pad_id, 0, PAD_BRANCH, 0, 0])
    np.copyto(codes[:, :, least:], fills[:, None, None], where=padding)
    return Batch(*torch.from_numpy(codes))
