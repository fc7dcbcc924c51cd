"""Flattening: sentence trees of many texts → reading order, soft positions and branch codes.

A row is made of *runs* of tokens: special tokens, the trunk before, between and after mentions,
mentions, branches. Where each run comes from and what its codes are is found for all rows in
arrays, and the tokens follow. Only texts over the length limit, and mentions that share a token,
are looked at one by one.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from kbert_core.errors import OptionError
from kbert_core.kbert.flat_tree import (
    ANCHORS,
    IDS,
    RULES,
    SEGMENTS,
    Codes,
    FlatTrees,
    Origins,
)
from kbert_core.kbert.sentence_tree import Branch, Branches, SentenceTree, Trees
from kbert_core.kbert.windows import parts_within
from kbert_core.layout import Layout
from kbert_core.text import Tokenizer
from kbert_core.tokens import Ints, TokenizedTexts, before, counting

NO_TOKENS, SHARED_TOKEN, TRUNK_CUT, LENGTH = range(1, len(RULES) + 1)


def flatten(
    trees: Sequence[SentenceTree],
    tokenizer: Tokenizer,
    *,
    max_length: int | None = None,
    windows: bool = False,
) -> FlatTrees:
    """Put sentence trees into reading order.

    The trunk goes first: if it is over the limit, its end is cut (of two
    sentences the longer one's), or it is read in overlapping windows, each
    with room for branches, so that every token stands in at least one. Then
    branches in order: one that doesn't fit whole is left out, and the next is
    still tried.

    Args:
        trees: as they were grown, or made by hand.
        tokenizer: for trunk and branches.
        max_length: in tokens, special tokens included; None: no limit.
        windows: whether a long text is read in windows instead of being cut.

    Raises:
        OptionError: the limit has no room for a single token of text; or
            windows are asked for a pair of sentences.
    """
    trees = Trees.of(trees)
    trunk = tokenizer.tokenize(trees.sentences)
    sizes = trees.nodes.sizes
    some = (1,) if len(trunk) == len(sizes) else (1, 2) if (sizes == 1).any() else (2,)
    layouts = {size: tokenizer.layout(size) for size in some}
    if windows and 2 in layouts:
        raise OptionError("Windows are for one sentence; a pair of sentences is cut instead.")
    texts, parts, nodes = parts_within(trees, trunk, layouts, max_length, windows)
    runs = _Runs(trees, trunk, layouts, texts, parts)
    nodes = runs.hung(nodes)
    ids, branches = _branches(trees, tokenizer, nodes)
    rows = parts[0][nodes[0][branches[0]]]
    if max_length is not None and len(rows):
        over = np.bincount(rows, branches[2], len(texts)) > max_length - runs.lengths
        for row in over.nonzero()[0].tolist():
            own = branches[:, slice(*rows.searchsorted((row, row + 1)))]
            _leave_out(own, max_length - int(runs.lengths[row]))
    values, lengths = runs.codes(nodes, branches, ids)
    origins = Origins(trunk, layouts, parts, nodes, branches)
    return FlatTrees(values, lengths, texts, trees, tokenizer, windows, origins)


class _Runs:
    """The rows as runs of tokens.

    Args:
        texts: (R,) of which text a row is.
        parts: see :class:`Origins`.

    Attributes:
        lengths: (R,) tokens of each row's trunk, special tokens included.
    """

    def __init__(
        self,
        trees: Trees,
        trunk: TokenizedTexts,
        layouts: Mapping[int, Layout],
        texts: Ints,
        parts: Ints,
    ) -> None:
        self.trees, self.trunk, self.texts, self.parts = trees, trunk, texts, parts
        rows, sentences, begins, stops = parts
        kinds = [
            (layout, number) for layout in layouts.values() for number in range(layout.sentences)
        ]
        self.specials = [layout.around(number) for layout, number in kinds]
        self.kinds = np.zeros(len(rows), np.int64)  # of each part, one of these
        if len(kinds) > 1:
            numbers = sentences - trees.nodes.begins[texts[rows]]
            pairs = trees.nodes.sizes[texts[rows]] == 2
            self.kinds = numbers + (pairs if len(kinds) == 3 else 0)
        counts = np.array([[len(ahead), len(behind)] for ahead, behind in self.specials])
        self.ahead, self.behind = counts[self.kinds].T
        segments = [layout.segments[number] for layout, number in kinds]
        self.segments = np.array(segments)[self.kinds]
        sizes = self.ahead + stops - begins + self.behind
        ends = sizes.cumsum()
        if len(rows) == len(texts):
            self.lengths, starts = sizes, self.ahead
        else:
            self.lengths = np.bincount(rows, sizes, len(texts)).astype(np.int64)
            starts = ends - sizes - before(self.lengths)[rows] + self.ahead
        self.positions = starts - begins  # of a sentence's token 0, or where it would be

    def hung(self, nodes: Ints) -> Ints:
        """Find the tokens of mentions, and which of them are in.

        Args:
            nodes: (2, Q) part and number.

        Returns:
            (5, Q) see :class:`Origins`.
        """
        part, number = nodes
        if not len(part):
            return np.zeros((5, 0), np.int64)
        mentions, trunk = self.trees.nodes.mentions, self.trunk
        owner = mentions.rows[number]
        shift, base = trunk.begins[owner], trunk.firsts[owner]
        first = trunk.ends.searchsorted(mentions.starts[number] + shift, "right") - base
        last = trunk.starts.searchsorted(mentions.ends[number] + shift, "left") - base
        _, _, begins, stops = self.parts
        return np.array([part, number, first, last, _rules(part, first, last, begins, stops)])

    def codes(self, nodes: Ints, branches: Ints, ids: Ints) -> tuple[Codes, Ints]:
        """Lay the tokens of all runs end to end.

        Args:
            nodes, branches: see :class:`Origins`.
            ids: of the branches' tokens, end to end.

        Returns:
            (5, M) codes, and (R,) the tokens of each row.
        """
        inside = (nodes[4] == 0).nonzero()[0]
        nodes = nodes[:, inside]
        sources = (before(branches[2]) + len(self.trunk.ids))[branches[3] == 0]
        branches = branches[:, branches[3] == 0]
        on = inside.searchsorted(branches[0])  # of each branch its node among those that are in
        counts = np.bincount(on, minlength=len(inside))
        at_part, at_node, at_behind = self._numbered(nodes[0], counts)
        total = int(at_behind[-1] + self.behind[-1]) if len(at_behind) else 0
        runs = np.zeros((6, total), np.int64)
        self._put_trunk(runs, at_part, nodes, at_node, at_node + counts + 1)
        lengths = self.lengths
        if len(on):
            of_rows = self.parts[0][nodes[0][on]]
            lengths = lengths + np.bincount(of_rows, branches[2], len(lengths)).astype(np.int64)
            order = np.arange(len(on))
            at = at_node[on] + 1 + order - before(counts)[on]
            number = 1 + order - of_rows.searchsorted(of_rows)
            position = (self.positions[nodes[0]] + nodes[3])[on]
            anchor, segment = runs[ANCHORS, at_node][on], runs[SEGMENTS, at_node][on]
            runs[:, at] = sources, position, number, anchor, segment, branches[2]
        every = [special for sides in self.specials for side in sides for special in side]
        if every:
            self._put_specials(runs, at_part, at_behind, len(self.trunk.ids) + len(ids))
        of_specials = np.array([special.id for special in every], np.int64)
        return _laid(runs, np.concatenate([self.trunk.ids, ids, of_specials])), lengths

    def _numbered(self, part: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
        """Number the runs in reading order.

        Args:
            part, counts: (Q,) of each node that is in its part, and how many branches it has.

        Returns:
            (P,) the first run of each part's trunk, (Q,) each mention's, which its branches' and
            that of the trunk after it follow, and (P,) that after the last of the part's trunk.
        """
        through = (counts + 2).cumsum()
        at_part = (self.ahead + self.behind + 1).cumsum() - self.behind - 1
        at_node = through - counts - 1 + at_part[part]
        if not len(part):
            return at_part, at_node, at_part + 1
        upto = np.concatenate([[0], through])[part.searchsorted(np.arange(len(at_part) + 1))]
        return at_part + upto[:-1], at_node, at_part + 1 + upto[1:]

    def _put_trunk(
        self, runs: Ints, at_part: Ints, nodes: Ints, at_node: Ints, after: Ints
    ) -> None:
        """Put each part's trunk up to its first mention, mentions, and the trunk after each.

        Args:
            runs: (6, S), changed.
            at_part, at_node: see :meth:`_numbered`.
            nodes: (5, Q) those that are in.
            after: (Q,) the run of the trunk after each mention.
        """
        source, position, _, anchor, segment, length = runs
        rows, sentences, begins, stops = self.parts
        tokens = self.trunk.firsts[sentences]  # of each part its sentence's token 0
        source[at_part], position[at_part] = tokens + begins, self.positions + begins
        segment[at_part], length[at_part] = self.segments, stops - begins
        part, number, first, last, _ = nodes
        if not len(part):
            return
        ends = np.append(first[1:], 0)  # where the trunk after a mention ends
        lasts = np.append(part[1:] != part[:-1], True)
        ends[lasts] = stops[part[lasts]]
        firsts = np.append(True, lasts[:-1])
        length[at_part[part[firsts]]] = first[firsts] - begins[part[firsts]]
        base, place = tokens[part], self.positions[part]
        source[at_node], source[after] = base + first, base + last
        position[at_node], position[after] = place + first, place + last
        segment[at_node] = segment[after] = self.segments[part]
        length[at_node], length[after] = last - first, ends - last
        anchor[at_node] = number - self.trees.nodes.firsts[self.texts[rows[part]]] + 1

    def _put_specials(self, runs: Ints, at_part: Ints, at_behind: Ints, begin: int) -> None:
        """Put special tokens ahead of the sentences and behind them.

        Args:
            runs: (6, S), changed.
            at_part, at_behind: (P,) the first run of each part's trunk, and that after its last.
            begin: the place of the first special token's id.
        """
        source, position, _, _, segment, length = runs
        _, _, begins, stops = self.parts
        for kind, sides in enumerate(self.specials):
            some = slice(None) if len(self.specials) == 1 else self.kinds == kind
            for at, place, tokens in (
                (at_part, self.positions + begins, sides[0][::-1]),
                (at_behind - 1, self.positions + stops - 1, sides[1]),
            ):
                step = -1 if at is at_part else 1
                for shift, special in enumerate(tokens, start=1):
                    to = at[some] + step * shift
                    source[to] = begin + (len(tokens) - shift if step < 0 else shift - 1)
                    position[to] = place[some] + step * shift
                    segment[to] = special.segment
                    length[to] = 1
                begin += len(tokens)


def _laid(runs: Ints, ids: Ints) -> Codes:
    """Make the (5, M) codes of runs (6, S), whose tokens have their ids from a place on."""
    runs = runs[:, runs[5] > 0]
    ends = runs[5].cumsum()
    starts = ends - runs[5]
    runs[:2] -= starts
    codes = runs[:5].repeat(runs[5], axis=1)
    codes[:2] += np.arange(codes.shape[1])
    codes[IDS] = ids[codes[IDS]]
    return codes


def _rules(parts: Ints, firsts: Ints, lasts: Ints, begins: Ints, stops: Ints) -> Ints:
    """Say which mentions have no token, share one with the mention before, or are cut.

    Args:
        parts, firsts, lasts: (Q,) as of the nodes of :class:`Origins`.
        begins, stops: (P,) tokens that are in of each part.
    """
    rules = TRUNK_CUT * ((firsts < begins[parts]) | (lasts > stops[parts]))
    rules[lasts <= firsts] = NO_TOKENS
    some = (rules != NO_TOKENS).nonzero()[0]
    own = parts[some]
    shared = (firsts[some][1:] < lasts[some][:-1]) & (own[1:] == own[:-1])
    for part in np.unique(own[1:][shared]).tolist() if shared.any() else ():
        end = 0  # of the last mention that is in
        for place in some[slice(*own.searchsorted((part, part + 1)))].tolist():
            if firsts[place] < end:
                rules[place] = SHARED_TOKEN
            elif not rules[place]:
                end = lasts[place]
    return rules


def _branches(trees: Trees, tokenizer: Tokenizer, nodes: Ints) -> tuple[Ints, Ints]:
    """Cut the branches of the nodes that are in into tokens.

    Returns:
        The ids of their tokens, end to end, and (4, K) the branches; see :class:`Origins`.
    """
    tokens = _BranchTokens.of(trees.nodes.branches, tokenizer)
    places = (nodes[4] == 0).nonzero()[0]
    own = trees.nodes.names[nodes[1][places]]
    counts = tokens.counts[own]
    if not counts.any():
        return np.zeros(0, np.int64), np.zeros((4, 0), np.int64)
    hung, number = places.repeat(counts), counting(counts)
    branch = tokens.firsts[own].repeat(counts) + number
    sizes = tokens.sizes[branch]
    ids = tokens.ids[tokens.begins[branch].repeat(sizes) + counting(sizes)]
    return ids, np.array([hung, number, sizes, np.where(sizes == 0, NO_TOKENS, 0)])


class _BranchTokens:
    """The tokens of all that hangs on different names.

    Attributes:
        counts, firsts: of each name how many branches, and the first of them.
        sizes, begins: of each branch how many tokens, and the first of them.
        ids: of the tokens.
    """

    def __init__(self) -> None:
        self.counts, self.firsts, self.sizes, self.begins, self.ids = np.zeros((5, 0), np.int64)

    @classmethod
    def of(cls, branches: Branches, tokenizer: Tokenizer) -> "_BranchTokens":
        """Those kept with branches, and of branches that are new."""
        known: _BranchTokens | None = branches.tokens.get(tokenizer)
        known = known or cls()
        if len(known.counts) < len(branches.used):
            known = known._with(branches.used[len(known.counts) :], tokenizer)
            branches.tokens[tokenizer] = known
        return known

    def _with(self, new: Sequence[tuple[Branch, ...]], tokenizer: Tokenizer) -> "_BranchTokens":
        counts = np.fromiter(map(len, new), np.int64, len(new))
        texts = [branch.texts for some in new for branch in some]
        numbers = {text: number for number, text in enumerate(dict.fromkeys(chain(*texts)))}
        pieces = tokenizer.tokenize_branches(list(numbers))
        which = np.array([numbers[text] for text in chain(*texts)], np.int64)
        of_pieces = pieces.sizes[which]
        ids = pieces.ids[pieces.firsts[which].repeat(of_pieces) + counting(of_pieces)]
        ends = np.fromiter(map(len, texts), np.int64, len(texts)).cumsum()
        sizes = np.diff(np.append(0, of_pieces.cumsum())[np.append(0, ends)])
        made = _BranchTokens()
        made.counts = np.append(self.counts, counts)
        made.firsts = before(made.counts)
        made.sizes = np.append(self.sizes, sizes)
        made.begins = before(made.sizes)
        made.ids = np.append(self.ids, ids)
        return made


def _leave_out(branches: Ints, free: int) -> None:
    """Leave the branches of one row out that there is no room for, in order.

    Args:
        branches: (4, K) of the row; changed.
        free: tokens.
    """
    for place, size in enumerate(branches[2].tolist()):
        if size > free:
            branches[3, place] = LENGTH
        else:
            free -= size
