"""Flattening: the sentence trees of many texts → reading order, all at once.

The trunks are laid end to end, and the branches inserted after their mentions.
Only texts over the length limit, and mentions that share a token, are looked
at one by one.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from kbert_core.errors import OptionError
from kbert_core.kbert.flat_tree import (
    ANCHORS,
    BRANCHES,
    IDS,
    POSITIONS,
    RULES,
    SEGMENTS,
    Codes,
    FlatTrees,
    Origins,
)
from kbert_core.kbert.sentence_tree import SentenceTree, Trees
from kbert_core.text import Ints, Layout, TokenizedTexts, Tokenizer, before, counting

KNOWLEDGE_ROOM = 0.25  # of a window, kept free for branches
OVERLAP = 0.25  # of a window's trunk, shared with the next window
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
    layouts = {size: tokenizer.layout(size) for size in np.unique(trees.nodes.sizes).tolist()}
    if windows and 2 in layouts:
        raise OptionError("Windows are for one sentence; a pair of sentences is cut instead.")
    texts, parts, nodes = _within(trees, trunk, layouts, max_length, windows)
    line = _Trunk(trees, trunk, layouts, texts, parts)
    nodes = line.anchored(nodes)
    ids, branches = _branches(trees, tokenizer, nodes)
    rows = parts[0, nodes[0, branches[0]]]
    if max_length is not None:
        free = max_length - line.lengths
        over = np.bincount(rows, branches[2], len(texts)) > free
        for row in np.flatnonzero(over).tolist():
            _leave_out(branches[:, slice(*np.searchsorted(rows, (row, row + 1)))], free[row])
    kept = branches[3] == 0
    values = line.with_inserted(
        nodes, branches[:, kept], ids[np.repeat(kept, branches[2])], rows[kept]
    )
    lengths = line.lengths + np.bincount(rows[kept], branches[2, kept], len(texts)).astype(int)
    origins = Origins(trunk, layouts, parts, nodes, branches)
    return FlatTrees(values, lengths, texts, trees, tokenizer, windows, origins)


def _within(
    trees: Trees,
    trunk: TokenizedTexts,
    layouts: Mapping[int, Layout],
    max_length: int | None,
    windows: bool,
) -> tuple[Ints, Ints, Ints]:
    """Say which tokens of which sentence stand in which row, and which nodes concern them.

    Returns:
        (R,) the text of each row, (4, P) the parts, and (2, Q) the part and
        the number of each node; see :class:`Origins`.
    """
    sizes, rows = trees.nodes.sizes, trees.nodes.mentions.rows
    texts, sentences = np.arange(len(sizes)), np.arange(len(trunk))
    parts = np.array([np.repeat(texts, sizes), sentences, 0 * sentences, trunk.sizes])
    nodes = np.array([rows, np.arange(len(rows))])
    if max_length is None:
        return texts, parts, nodes
    rooms = {size: _room(layout.count, max_length) for size, layout in layouts.items()}
    room = np.array([0, rooms.get(1, 0), rooms.get(2, 0)])[sizes]
    long = np.flatnonzero(np.bincount(parts[0], trunk.sizes, len(sizes)) > room).tolist()
    if windows and long:
        return _in_windows(trees, trunk, {text: int(room[text]) for text in long})
    for text in long:
        some = slice(*trees.nodes.begins[text : text + 2].tolist())
        parts[3, some] = _sizes_within(trunk.sizes[some].tolist(), int(room[text]))
    return texts, parts, nodes


def _room(special: int, max_length: int) -> int:
    if max_length <= special:
        raise OptionError(
            f"The length limit is {max_length} tokens, and {special} of them are special. "
            f"Give at least {special + 1}."
        )
    return max_length - special


def _sizes_within(sizes: Sequence[int], room: int) -> Sequence[int]:
    """Cut one sentence, or the longer of two, to the tokens that there is room for."""
    if len(sizes) == 1:
        return [room]
    first, second = sizes
    half = room // 2
    if first <= half:
        return [first, room - first]
    if second <= room - half:
        return [room - second, second]
    return [half, room - half]


def _in_windows(
    trees: Trees, trunk: TokenizedTexts, rooms: Mapping[int, int]
) -> tuple[Ints, Ints, Ints]:
    """Do what :func:`_within` does for texts of one sentence each.

    Args:
        rooms: by text that is too long, the tokens that there is room for.
    """
    spans = {text: _windows(int(trunk.sizes[text]), room) for text, room in rooms.items()}
    counts = np.ones(len(trunk), np.int64)
    counts[list(spans)] = [len(some) for some in spans.values()]
    firsts, texts = before(counts), np.repeat(np.arange(len(trunk)), counts)
    rows = np.arange(len(texts))
    parts = np.array([rows, texts, np.zeros_like(texts), trunk.sizes[texts]])
    mentions = trees.nodes.mentions
    whole = np.flatnonzero(~np.isin(mentions.rows, list(spans)))
    nodes = [np.array([firsts[mentions.rows[whole]], whole])]
    for text, some in spans.items():
        first = firsts[text]
        parts[2:, first : first + len(some)] = np.array(some).T
        begin, end = trees.nodes.firsts[text : text + 2].tolist()
        borders = zip(mentions.starts[begin:end], mentions.ends[begin:end], strict=True)
        tokens = trunk[text]
        inside = _nodes_of_windows([tokens.over(*border) for border in borders], some)
        nodes += [np.array([[first + i] * len(own), own]) for i, own in enumerate(inside)]
        for placed in nodes[-len(some) :]:
            placed[1] += begin
    every = np.concatenate(nodes, axis=1).astype(np.int64)
    return texts, parts, every[:, np.argsort(every[0], kind="stable")]


def _windows(total: int, room: int) -> list[tuple[int, int]]:
    """Cut so many tokens into overlapping windows."""
    size = max(1, int(room * (1 - KNOWLEDGE_ROOM)))
    step = max(1, int(size * (1 - OVERLAP)))
    starts = [min(start, total - size) for start in range(0, total - size + step, step)]
    return [(start, start + size) for start in dict.fromkeys(starts)]


def _nodes_of_windows(
    places: Sequence[tuple[int, int]], windows: Sequence[tuple[int, int]]
) -> list[list[int]]:
    """Give each window the mentions wholly inside it; one inside none goes to the first it touches.

    Args:
        places: of each mention its tokens [first, last), in order.
        windows: their tokens.

    Returns:
        Per window indices of mentions, in order.
    """
    firsts, lasts = [first for first, _ in places], [last for _, last in places]
    inside = [
        list(range(bisect_left(firsts, begin), bisect_right(lasts, stop)))
        for begin, stop in windows
    ]
    nowhere = set(range(len(places))).difference(*inside)
    stops = [stop for _, stop in windows]
    for number in nowhere:
        insort(inside[bisect_right(stops, firsts[number])], number)
    return inside


class _Trunk:
    """The trunks of R rows with their special tokens, end to end: M tokens.

    Args:
        parts: see :class:`Origins`.
        texts: (R,) of which text a row is.

    Attributes:
        values: (5, M) their codes.
        lengths: (R,) tokens.
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
        counts = trees.nodes.sizes[texts][rows]
        numbers = sentences - trees.nodes.begins[texts][rows]
        ahead, behind, self.segments = np.zeros((3, len(rows)), np.int64)
        of_layout = [
            (np.flatnonzero((counts == size) & (numbers == number)), layout, number)
            for size, layout in layouts.items()
            for number in range(size)
        ]
        for some, layout, number in of_layout:
            ahead[some] = len(layout.before[number])
            behind[some] = len(layout.after) * (number == len(layout.before) - 1)
            self.segments[some] = layout.segments[number]
        sizes = stops - begins
        widths = ahead + sizes + behind
        offsets = before(widths)
        self.firsts = offsets + ahead - begins  # where a sentence's token 0 stands, or would
        self.lengths = np.bincount(rows, widths, len(texts)).astype(np.int64)
        self.values = np.zeros((5, int(widths.sum())), np.int32)
        self.values[POSITIONS] = counting(self.lengths)
        self.values[SEGMENTS] = np.repeat(self.segments, widths)
        tokens = counting(sizes) + np.repeat(begins, sizes)
        ids = trunk.ids[np.repeat(before(trunk.sizes)[sentences], sizes) + tokens]
        self.values[IDS, np.repeat(self.firsts, sizes) + tokens] = ids
        for some, layout, number in of_layout:
            ends = (offsets + widths - behind)[some]
            after = layout.after if number == len(layout.before) - 1 else ()
            for specials, places in ((layout.before[number], offsets[some]), (after, ends)):
                for shift, special in enumerate(specials):
                    self.values[IDS, places + shift] = special.id
                    self.values[SEGMENTS, places + shift] = special.segment

    def anchored(self, nodes: Ints) -> Ints:
        """Number the tokens of mentions.

        Args:
            nodes: (2, Q) part and number.

        Returns:
            (5, Q) see :class:`Origins`.
        """
        mentions = self.trees.nodes.mentions
        if not nodes.size:
            return np.zeros((5, 0), np.int64)
        lengths = np.fromiter(map(len, self.trees.sentences), np.int64, len(self.trunk)) + 1
        shift = before(lengths)
        along = np.repeat(shift, self.trunk.sizes)
        owner = mentions.rows
        first = np.searchsorted(self.trunk.ends + along, mentions.starts + shift[owner], "right")
        last = np.searchsorted(self.trunk.starts + along, mentions.ends + shift[owner], "left")
        places = np.array([first, last]) - before(self.trunk.sizes)[owner]
        part, number = nodes
        first, last = places[:, number]
        rules = _rules(part, first, last, *self.parts[2:, part])
        own = number - self.trees.nodes.firsts[self.texts][self.parts[0, part]]
        in_tree = rules == 0
        sizes = (last - first)[in_tree]
        to = np.repeat((self.firsts[part] + first)[in_tree], sizes) + counting(sizes)
        self.values[ANCHORS, to] = np.repeat(1 + own[in_tree], sizes)
        return np.array([part, number, first, last, rules])

    def with_inserted(self, nodes: Ints, branches: Ints, ids: Ints, rows: Ints) -> Codes:
        """Insert branches, each after its mention's last token.

        Args:
            nodes, branches: (5, Q) and (4, K), see :class:`Origins`; K of those that are in.
            ids: of the branches' tokens, end to end.
            rows: (K,) of each branch.
        """
        part, last = nodes[0, branches[0]], nodes[3, branches[0]]
        places, sizes = self.firsts[part] + last, branches[2]
        count = self.values.shape[1]
        moved = np.cumsum(np.bincount(places, sizes, count + 1).astype(np.int64))[:count]
        values = np.empty((5, count + int(sizes.sum())), np.int32)
        values[:, np.arange(count) + moved] = self.values
        along = counting(sizes)
        at = np.repeat(places + before(sizes), sizes) + along
        mention = self.values[:, places - 1]  # its last token
        values[IDS, at] = ids
        values[POSITIONS, at] = np.repeat(mention[POSITIONS] + 1, sizes) + along
        number = 1 + counting(np.bincount(rows, minlength=len(self.texts)))
        values[BRANCHES, at] = np.repeat(number, sizes)
        values[ANCHORS, at] = np.repeat(mention[ANCHORS], sizes)
        values[SEGMENTS, at] = np.repeat(self.segments[part], sizes)
        return values


def _rules(parts: Ints, firsts: Ints, lasts: Ints, begins: Ints, stops: Ints) -> Ints:
    """Say which mentions have no token, share one with the mention before, or are cut.

    Args:
        parts, firsts, lasts: (Q,) as of the nodes of :class:`Origins`.
        begins, stops: (Q,) of each one's part.
    """
    rules = np.where((firsts < begins) | (lasts > stops), TRUNK_CUT, 0)
    rules[lasts <= firsts] = NO_TOKENS
    some = np.flatnonzero(rules != NO_TOKENS)
    shared = (firsts[some][1:] < lasts[some][:-1]) & (parts[some][1:] == parts[some][:-1])
    for part in np.unique(parts[some][1:][shared]).tolist():
        end = 0  # of the last mention that is in
        for place in some[slice(*np.searchsorted(parts[some], (part, part + 1)))].tolist():
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
    every, names = trees.nodes.branches, trees.nodes.names
    counts = np.fromiter(map(len, every), np.int64, len(every))  # of each different node
    numbers: dict[tuple[str, ...], int] = {}
    which = np.array(
        [numbers.setdefault(branch.texts, len(numbers)) for some in every for branch in some],
        np.int64,
    )
    pieces = np.fromiter(map(len, numbers), np.int64, len(numbers))
    tokens = tokenizer.tokenize_branches(list(chain.from_iterable(numbers)))
    ends = np.append(0, np.cumsum(tokens.sizes))[np.append(0, np.cumsum(pieces))]

    places = np.flatnonzero(nodes[4] == 0)
    own = names[nodes[1, places]]
    hung = np.repeat(places, counts[own])
    number = counting(counts[own])
    kind = which[np.repeat(before(counts)[own], counts[own]) + number]
    sizes = np.diff(ends)[kind]
    ids = tokens.ids[np.repeat(ends[kind], sizes) + counting(sizes)]
    return ids, np.array([hung, number, sizes, np.where(sizes == 0, NO_TOKENS, 0)])


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
