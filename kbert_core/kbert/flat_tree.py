"""FlatTree: a sentence tree in reading order, as the encoder takes it.

A branch stands right after its mention's last token. Soft positions (the
paper's soft-position embedding) number the trunk as if there were no
branches and every branch on from its mention. Branch codes say in two small
integers per token everything the visible matrix says in N x N.

The trees of many texts are flattened into arrays (:class:`FlatTrees`). A single
:class:`FlatTree`, which says where each token comes from, is made when asked for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kbert_core.kbert.sentence_tree import Branch, SentenceTree, Trees
from kbert_core.knowledge.selection import LeftOut, Rule
from kbert_core.knowledge.triple import Triple
from kbert_core.layout import Layout, Special, TrunkPart
from kbert_core.text import Tokenizer
from kbert_core.tokens import Ints, Many, TokenizedTexts, Tokens, before

CODES = ("input_ids", "soft_positions", "branch_ids", "anchor_ids", "token_type_ids")
IDS, POSITIONS, BRANCHES, ANCHORS, SEGMENTS = range(5)
RULES = (Rule.NO_TOKENS, Rule.SHARED_TOKEN, Rule.TRUNK_CUT, Rule.LENGTH)
Codes = NDArray[np.int64]


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

    flats: ClassVar["FlatTrees | None"] = None  # of an instance: the many that it is one of
    row: ClassVar[int] = 0  # its place among them

    @classmethod
    def of(cls, flats: "FlatTrees", row: int) -> "FlatTree":
        """Make a row of many, of which everything is found out when it is first asked for."""
        flat = object.__new__(cls)
        flat.__dict__.update(flats=flats, row=row)
        return flat

    def __getattr__(self, name: str) -> Any:
        if self.flats is None or name not in _FIELDS:
            raise AttributeError(f"A FlatTree has no attribute '{name}'.", name=name, obj=self)
        self.__dict__.update(_Walk(self.flats, self.row).fields())
        return self.__dict__[name]

    def __len__(self) -> int:
        return self.codes.shape[1] if self.flats is None else self.flats.sizes[self.row]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FlatTree):
            return NotImplemented
        alike = all(getattr(self, name) == getattr(other, name) for name in _FIELDS - {"codes"})
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


_FIELDS = {each.name for each in fields(FlatTree)}


@dataclass(frozen=True)
class Origins:
    """Where the tokens of R rows come from; each array in reading order.

    Attributes:
        trunk: the tokens of every sentence.
        layouts: special tokens, by how many sentences a text has.
        parts: (4, P) row, sentence, and its tokens [begin, stop) that are in:
            of each sentence one part, or one a window.
        nodes: (5, Q) part, node, the mention's tokens [first, last) in its
            sentence, and why its branches are out: a number of ``RULES``, from 1.
        branches: (4, K) which of the Q, which of its node's branches, how many
            tokens, and why it is out.
    """

    trunk: TokenizedTexts
    layouts: Mapping[int, Layout]
    parts: Ints
    nodes: Ints
    branches: Ints


@dataclass(frozen=True)
class FlatTrees(Many[FlatTree]):
    """R flat trees, end to end: M tokens. An item is one with all that is known of it.

    Attributes:
        values: (5, M) the codes of every :class:`FlatTree`.
        lengths: (R,) tokens.
        texts: (R,) which tree a row is of; a long text in windows has several rows.
        trees: what was flattened.
    """

    values: Codes
    lengths: Ints
    texts: Ints
    trees: Trees
    tokenizer: Tokenizer
    windows: bool
    origins: Origins
    _known: dict[int, tuple[SentenceTree, tuple[Tokens, ...]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lengths)

    def item(self, index: int) -> FlatTree:
        """One row."""
        return FlatTree.of(self, index)

    def __iter__(self) -> Iterator[FlatTree]:
        return map(FlatTree.of, repeat(self), range(len(self)))

    def some(self, rows: Ints) -> "SomeTrees":
        """Choose rows, in any order."""
        return SomeTrees(self, rows)

    @cached_property
    def sizes(self) -> list[int]:
        """R, the lengths."""
        return self.lengths.tolist()

    @cached_property
    def starts(self) -> Ints:
        """(R,) the first token of each among the M."""
        return before(self.lengths)

    def text(self, number: int) -> tuple[SentenceTree, tuple[Tokens, ...]]:
        """The tree of a text and the tokens of its sentences; its windows share them."""
        if number not in self._known:
            rows = range(*self.trees.nodes.begins[number : number + 2].tolist())
            tokens = tuple(self.origins.trunk[row] for row in rows)
            self._known[number] = self.trees[number], tokens
        return self._known[number]


@dataclass(frozen=True)
class SomeTrees(Many[FlatTree]):
    """Some of many flat trees.

    Attributes:
        numbers: (B,) which.
    """

    flats: FlatTrees
    numbers: Ints

    @classmethod
    def of(cls, flats: Sequence[FlatTree]) -> "SomeTrees | None":
        """See flat trees as some of many; None where they aren't of the same."""
        if isinstance(flats, SomeTrees):
            return flats
        many = flats[0].flats
        if many is None or any(flat.flats is not many for flat in flats):
            return None
        return cls(many, np.fromiter([flat.row for flat in flats], np.int64, len(flats)))

    def __len__(self) -> int:
        return len(self.numbers)

    def item(self, index: int) -> FlatTree:
        """One of them."""
        return self.flats[int(self.numbers[index])]


class _Walk:
    """A walk along one row, that says of each token what it is."""

    def __init__(self, flats: FlatTrees, row: int) -> None:
        self.flats, self.row, self.origins = flats, row, flats.origins
        self.text = int(flats.texts[row])
        self.tree, self.tokens = flats.text(self.text)
        self.at = 0  # along N
        self.trunk_parts: list[TrunkPart] = []
        self.branches: list[PlacedBranch] = []
        self.left_out: list[tuple[int, LeftOut]] = []

    def fields(self) -> dict[str, Any]:
        flats, origins = self.flats, self.origins
        layout = origins.layouts[len(self.tree.sentences)]
        specials, cuts = [], []
        for part in range(*_span(origins.parts[0], self.row)):
            _, row, begin, stop = origins.parts[:, part].tolist()
            sentence = row - int(flats.trees.nodes.begins[self.text])
            for special in layout.before[sentence]:
                specials.append((self.at, special))
                self.at += 1
            self._walk(part, sentence, begin, stop)
            total = len(self.tokens[sentence])
            if stop < total and not flats.windows:
                cuts.append(TrunkCut(sentence, stop, total))
        specials += [(self.at + i, special) for i, special in enumerate(layout.after)]
        start = int(flats.starts[self.row])
        return {
            "tree": self.tree,
            "codes": flats.values[:, start : start + flats.sizes[self.row]],
            "branches": tuple(self.branches),
            "trunk_parts": tuple(self.trunk_parts),
            "trunk_tokens": self.tokens,
            "specials": tuple(specials),
            "left_out": tuple(self.left_out),
            "trunk_cuts": tuple(cuts),
        }

    def _walk(self, part: int, sentence: int, begin: int, stop: int) -> None:
        """Go along one sentence."""
        origins, nodes = self.origins, self.flats.trees.nodes
        for place in range(*_span(origins.nodes[0], part)):
            _, number, first, last, rule = origins.nodes[:, place].tolist()
            number -= int(nodes.firsts[self.text])
            node = self.tree.nodes[number]
            self.left_out += [(number, item) for item in node.left_out]
            if rule:
                out = (LeftOut(branch.triple, RULES[rule - 1]) for branch in node.branches)
                self.left_out += [(number, item) for item in out]
                continue
            self._trunk(sentence, begin, first)
            self._trunk(sentence, first, last)
            for branch in range(*_span(origins.branches[0], place)):
                self._branch(number, *origins.branches[1:, branch].tolist())
            begin = last
        self._trunk(sentence, begin, stop)

    def _trunk(self, sentence: int, first: int, last: int) -> None:
        if last > first:
            end = self.at + last - first
            self.trunk_parts.append(TrunkPart(sentence, first, self.at, end))
            self.at = end

    def _branch(self, number: int, place: int, size: int, rule: int) -> None:
        branch = self.tree.nodes[number].branches[place]
        if rule:
            self.left_out.append((number, LeftOut(branch.triple, RULES[rule - 1])))
            return
        pieces = self.flats.tokenizer.tokenize_branches(branch.texts)
        reads = branch.reads(pieces)
        self.branches.append(PlacedBranch(number, branch, self.at, self.at + size, reads))
        self.at += size


def _span(values: Ints, value: int) -> list[int]:
    """Where a value stands in ascending values: first, last + 1."""
    return np.searchsorted(values, (value, value + 1)).tolist()
