"""Flattening: sentence trees of many texts → reading order, soft positions and branch codes.

All texts are done at once, in arrays: find which tokens of which sentence stand in which row,
which tokens a mention has, which of its branches fit, and insert these after it. Only texts over
the length limit, and mentions that share a token, are handled one by one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np

from kbert_core.kbert.flat_tree import ANCHORS, IDS, RULES, SEGMENTS, Codes, FlatTrees
from kbert_core.kbert.sentence_tree import Branches, Nodes, SentenceTree, Trees
from kbert_core.text import Tokenizer
from kbert_core.tokens import (
    Ints,
    Layout,
    Special,
    TokenizedTexts,
    before,
    counting,
    room_for_last,
    room_within,
    sizes_within,
    windows_of,
)

NO_TOKENS, SHARED_TOKEN, TRUNK_CUT, LENGTH = range(1, len(RULES))
KNOWLEDGE_ROOM = 0.25  # of a window, kept free for branches


def flatten(
    trees: Sequence[SentenceTree],
    tokenizer: Tokenizer,
    *,
    max_length: int | None = None,
    windows: bool = False,
) -> FlatTrees:
    """Put sentence trees into reading order.

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

    Raises:
        OptionError: the limit has no room for a single token of text.
        TextError: the first of two sentences leaves no room for windows of the second.
    """
    trees = Trees.of(trees)
    nodes, trunk = trees.nodes, tokenizer.tokenize(trees.sentences)
    layouts = {size: tokenizer.layout(size) for size in set(nodes.sizes.tolist())}
    texts, parts = _parts(trunk, nodes.sizes, layouts, max_length, windows)
    runs = _Runs(trunk, nodes.sizes, _Sides.of(*layouts.values()), parts, len(texts))

    # of each mention its part, its node, its tokens [first, last), and why it is out
    part, number, firsts, lasts, out = _mentions(trunk, nodes, parts)
    rows = parts[0][part]
    anchors = number - nodes.firsts[texts[rows]] + 1

    # of each of their branches the mention that it is on, its tokens, and why it is out
    tokens, names = _BranchTokens.of(nodes.branches, tokenizer), nodes.names[number]
    counts = tokens.counts[names]
    ends, on = counts.cumsum(), np.arange(len(part)).repeat(counts)
    branch = counting(tokens.firsts[names], counts)
    sizes, rules = tokens.sizes[branch], out[on]
    rules[(sizes | rules) == 0] = NO_TOKENS
    if max_length is not None:
        _leave_out(rules, sizes, rows[on], runs.lengths, max_length)

    placed = rules == 0
    sums = np.append(0, (sizes * placed).cumsum())[ends - counts]  # before each mention
    on, branch, sizes = on[placed], branch[placed], sizes[placed]
    ids = tokens.ids[counting(tokens.begins[branch], sizes)]
    values, laid = runs.with_branches(part[on], lasts[on], anchors[on], sizes, ids)
    lengths = runs.lengths + np.bincount(rows[on], sizes, len(texts)).astype(np.int64)

    # the tokens of mentions have moved by those of the branches before them
    inside = (out == 0).nonzero()[0]
    begins, own = (firsts + runs.shifts[part] + sums)[inside], (lasts - firsts)[inside]
    values[ANCHORS, counting(begins, own)] = anchors[inside].repeat(own)
    return FlatTrees(
        values,
        laid,
        lengths=lengths,
        texts=texts,
        specials=runs.sides.size,
        nodes=np.array([rows, number, ends - counts, ends]),
        rules=rules,
        trees=trees,
        trunk=trunk,
        tokenizer=tokenizer,
        windows=windows,
    )


def _parts(
    trunk: TokenizedTexts,
    sizes: Ints,
    layouts: Mapping[int, Layout],
    max_length: int | None,
    windows: bool,
) -> tuple[Ints, Ints]:
    """Find the part of each sentence that is read in each row, within the length limit.

    Args:
        sizes: (B,) the number of sentences of each text.

    Returns:
        (R,) the text of each row, and (4, P) the parts: row, sentence, and tokens [begin, stop)
        counted over all texts. A sentence has one part, or one for each window of its text.
    """
    texts = np.arange(len(sizes))
    parts = np.array([texts.repeat(sizes), np.arange(len(trunk)), trunk.firsts, trunk.sizes])
    parts[3] += trunk.firsts
    if max_length is None:
        return texts, parts
    rooms = {size: room_within(layout, max_length) for size, layout in layouts.items()}
    if trunk.sizes.max(initial=0) * max(layouts, default=1) <= min(rooms.values(), default=0):
        return texts, parts
    room = np.array([0, rooms.get(1, 0), rooms.get(2, 0)])[sizes]
    is_long = np.bincount(parts[0], trunk.sizes, len(sizes)) > room
    long = is_long.nonzero()[0].tolist()
    if not windows or not long:
        for text in long:
            own = slice(*parts[0].searchsorted((text, text + 1)).tolist())
            parts[3, own] = sizes_within(trunk.sizes[own].tolist(), int(room[text]))
            parts[3, own] += trunk.firsts[own]
        return texts, parts
    rows: list[list[tuple[int, int, int]]] = []  # of each its parts: sentence, begin and stop
    counts = np.ones(len(sizes), np.int64)
    places, totals = trunk.firsts.tolist(), trunk.sizes.tolist()
    for text, end in enumerate(sizes.cumsum().tolist()):
        first, last = end - int(sizes[text]), end - 1
        spans = [(0, totals[last])]
        if is_long[text]:
            size = int(room[text] * (1 - KNOWLEDGE_ROOM))
            spans = windows_of(totals[last], room_for_last(totals[first:end], size))
        whole = [(n, places[n], places[n] + totals[n]) for n in range(first, last)]
        at = places[last]
        rows += [[*whole, (last, at + begin, at + stop)] for begin, stop in spans]
        counts[text] = len(spans)
    owners = np.arange(len(rows)).repeat([len(row) for row in rows])
    return texts.repeat(counts), np.array([owners, *np.array(list(chain(*rows))).T])


def _mentions(trunk: TokenizedTexts, nodes: Nodes, parts: Ints) -> tuple[Ints, ...]:
    """Find the tokens of mentions, and the parts that they are in.

    A mention is in every window that holds all of it; if none does, in the first it touches.

    Args:
        parts: (4, P) from :func:`_parts`.

    Returns:
        (Q,) arrays, in reading order: the part, the node, the tokens [first, last), and the
        rule by which the mention is left out.
    """
    mentions, owners = nodes.mentions, nodes.mentions.rows
    number, begin = np.arange(len(owners)), trunk.begins[owners]
    firsts = trunk.ends.searchsorted(mentions.starts + begin, "right")
    lasts = trunk.starts.searchsorted(mentions.ends + begin, "left")
    _, sentences, begins, stops = parts
    if len(sentences) == len(trunk):
        return owners, number, firsts, lasts, _rules(owners, firsts, lasts, begins, stops)
    low = np.maximum(firsts.searchsorted(begins), owners.searchsorted(sentences))
    high = np.minimum(lasts.searchsorted(stops, "right"), owners.searchsorted(sentences, "right"))
    counts = np.maximum(high - low, 0)
    inside = counting(low, counts)
    nowhere = np.setdiff1d(number, inside)
    order = np.lexsort((stops, sentences))  # the first of two sentences stands in every window
    touched = stops[order].searchsorted(firsts[nowhere], "right")
    last = sentences[order].searchsorted(owners[nowhere], "right") - 1
    part = np.append(np.arange(len(low)).repeat(counts), order[np.minimum(touched, last)])
    number = np.append(inside, nowhere)
    order = np.lexsort((number, part))
    part, number = part[order], number[order]
    firsts, lasts = firsts[number], lasts[number]
    return part, number, firsts, lasts, _rules(part, firsts, lasts, begins, stops)


@dataclass(frozen=True)
class _Sides:
    """Special tokens around sentences of three kinds: one alone, the first and second of two.

    Attributes:
        counts: (3, 2) how many stand before a sentence, and after it.
        begins: (3, 2) the number of the first of these among all C special tokens.
        specials: (2, C) ids and segments of all special tokens.
        segments: (3,) the segment of each kind of sentence.
    """

    counts: Ints
    begins: Ints
    specials: Ints
    segments: Ints
    plain: bool  # whether all segments are 0

    @property
    def size(self) -> int:
        """C, the number of special tokens."""
        return self.specials.shape[1]

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, *layouts: Layout) -> "_Sides":
        """Number the special tokens of layouts for one sentence or two."""
        sides: list[tuple[Special, ...]] = [()] * 6
        segments = np.zeros(3, np.int64)
        for layout in layouts:
            for number, segment in enumerate(layout.segments):
                kind = number + len(layout.segments) - 1
                sides[2 * kind : 2 * kind + 2] = layout.around(number)
                segments[kind] = segment
        counts = np.array(list(map(len, sides)))
        specials = [(special.id, special.segment) for side in sides for special in side]
        table = np.array(specials, np.int64).reshape(-1, 2).T
        plain = not (table[1].any() or segments.any())
        return cls(counts.reshape(3, 2), before(counts).reshape(3, 2), table, segments, plain)


class _Runs:
    """The trunks of all rows as runs of tokens: special ones, a part of a sentence, special ones.

    Args:
        sizes: (B,) the number of sentences of each text.
        parts: (4, P) from :func:`_parts`.
        rows: R, the number of rows.

    Attributes:
        lengths: (R,) tokens of each row.
        shifts: (P,) what to add to a token's number among all texts to get its place here.
        table: (6, 3P) for each run: where it comes from, minus its place; its first position, minus
            its place; 0 for no branch; 0 for no anchor; its segment; its place.
    """

    def __init__(
        self, trunk: TokenizedTexts, sizes: Ints, sides: _Sides, parts: Ints, rows: int
    ) -> None:
        self.trunk, self.sides, self.parts = trunk, sides, parts
        kinds = counting(sizes - 1, sizes)[parts[1]]
        lengths = np.empty((len(kinds), 3), np.int64)
        lengths[:, ::2], lengths[:, 1] = sides.counts[kinds], parts[3] - parts[2]
        self.lengths = np.bincount(parts[0], lengths.sum(1), rows).astype(np.int64)
        self.total = int(self.lengths.sum())
        table = np.zeros((6, *lengths.shape), np.int64)
        table[0, :, ::2], table[0, :, 1] = sides.begins[kinds] + len(trunk.ids), parts[2]
        table[1] = -before(self.lengths)[parts[0], None]
        if not sides.plain:
            table[4] = sides.segments[kinds, None]
        self.table = table.reshape(6, -1)
        self.table[5] = before(lengths.ravel())
        self.table[0] -= self.table[5]
        self.shifts = -self.table[0, 1::3]

    def with_branches(
        self, parts: Ints, lasts: Ints, anchors: Ints, sizes: Ints, ids: Ints
    ) -> tuple[Codes, Ints]:
        """Insert branches after their mentions, and put the tokens of all runs end to end.

        Args:
            parts, lasts, anchors, sizes: (K,) for each branch in reading order: the part, the
                last token + 1 of the mention, the anchor, and the number of tokens.
            ids: the ids of all their tokens.

        Returns:
            Values, without the anchors of mentions, and runs as in :class:`FlatTrees`: a branch
            divides the run of its sentence in two.
        """
        words, specials = len(self.trunk.ids), self.sides.specials
        known = words + self.sides.size
        on, rows = 3 * parts + 1, self.parts[0][parts]
        at = 2 * np.arange(len(parts)) + on + 1  # the branch among all runs
        codes = self.table.repeat(1 + 2 * np.bincount(on, minlength=self.table.shape[1]), axis=1)
        cuts = codes[5]  # where each begins, without branches
        cuts[at] = cuts[at + 1] = lasts + self.shifts[parts]
        codes[:2] += cuts
        cuts[:-1] = cuts[1:] - cuts[:-1]
        cuts[-1:] = self.total - cuts[-1:]
        codes[0, at], codes[5, at] = known + before(sizes), sizes
        codes[2, at] = np.arange(1, len(at) + 1) - rows.searchsorted(rows)
        codes[3, at] = anchors

        begins = before(codes[5])
        runs = np.array([codes[0], begins, codes[5]])
        codes[:2] -= begins
        values = codes[:5].repeat(codes[5], axis=1)
        values[:2] += np.arange(values.shape[1])
        values[IDS] = np.concatenate([self.trunk.ids, specials[0], ids])[values[IDS]]
        if not self.sides.plain:
            special = (runs[0] >= words) & (runs[0] < known)
            sources, begins, sizes = runs[:, special]
            values[SEGMENTS, counting(begins, sizes)] = specials[1][
                counting(sources - words, sizes)
            ]
        return values, runs


def _rules(parts: Ints, firsts: Ints, lasts: Ints, begins: Ints, stops: Ints) -> Ints:
    """Find mentions that have no token, share one with the mention before them, or are cut.

    Args:
        parts, firsts, lasts: (Q,) the part and tokens [first, last) of each mention, in order.
        begins, stops: (P,) the tokens of each part that stand in its row.
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


@dataclass(frozen=True)
class _BranchTokens:
    """The tokens of the branches of different names, made with one tokenizer.

    Attributes:
        counts: the number of branches of each name.
        sizes: the number of tokens of each branch.
        ids: the ids of all these tokens.
    """

    counts: Ints
    sizes: Ints
    ids: Ints

    @cached_property
    def firsts(self) -> Ints:
        """The number of each name's first branch."""
        return before(self.counts)

    @cached_property
    def begins(self) -> Ints:
        """The number of each branch's first token."""
        return before(self.sizes)

    @classmethod
    def of(cls, branches: Branches, tokenizer: Tokenizer) -> "_BranchTokens":
        """Return the tokens kept with the branches, and tokenize the branches that are new."""
        known: _BranchTokens = branches.tokens.get(tokenizer) or cls(*np.zeros((3, 0), np.int64))
        new = branches.used[len(known.counts) :]
        if new:
            texts = [branch.texts for some in new for branch in some]
            pieces = tokenizer.tokenize_branches(list(chain(*texts)))
            ends = np.cumsum([0, *map(len, texts)])
            sizes = np.diff(np.append(0, pieces.sizes.cumsum())[ends])
            counts = np.array([len(some) for some in new])
            known = cls(
                np.append(known.counts, counts),
                np.append(known.sizes, sizes),
                np.append(known.ids, pieces.ids),
            )
            branches.tokens[tokenizer] = known
        return known


def _leave_out(rules: Ints, sizes: Ints, rows: Ints, lengths: Ints, max_length: int) -> None:
    """Leave out, in order, the branches that don't fit into their row.

    Args:
        rules, sizes, rows: (K,) for each branch; the rules are changed.
        lengths: (R,) the tokens of each row without branches.
    """
    needed = lengths + np.bincount(rows, sizes * (rules == 0), len(lengths))
    for row in (needed > max_length).nonzero()[0].tolist():
        free = max_length - int(lengths[row])
        for place in range(*rows.searchsorted((row, row + 1)).tolist()):
            if rules[place]:
                continue
            if sizes[place] > free:
                rules[place] = LENGTH
            else:
                free -= int(sizes[place])
