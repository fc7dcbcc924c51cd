"""What of a text is read within a length limit: all, its beginning, or overlapping windows."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence

import numpy as np

from kbert_core.kbert.sentence_tree import Trees
from kbert_core.layout import Layout, room_within, sizes_within, windows_of
from kbert_core.tokens import Ints, TokenizedTexts, before

KNOWLEDGE_ROOM = 0.25  # of a window, kept free for branches


def parts_within(
    trees: Trees,
    trunk: TokenizedTexts,
    layouts: Mapping[int, Layout],
    max_length: int | None,
    windows: bool,
) -> tuple[Ints, Ints, Ints]:
    """Say which tokens of which sentence stand in which row, and which nodes concern them.

    Returns:
        (R,) the text of each row, (4, P) the parts, and (2, Q) the part and
        the number of each node; see ``flat_tree.Origins``.
    """
    sizes, rows = trees.nodes.sizes, trees.nodes.mentions.rows
    texts, sentences = np.arange(len(sizes)), np.arange(len(trunk))
    of_texts = texts if len(layouts) == 1 and 1 in layouts else texts.repeat(sizes)
    parts = np.array([of_texts, sentences, 0 * sentences, trunk.sizes])
    nodes = np.array([rows, np.arange(len(rows))])
    if max_length is None:
        return texts, parts, nodes
    rooms = {size: room_within(layout, max_length) for size, layout in layouts.items()}
    if trunk.sizes.max(initial=0) * max(layouts) <= min(rooms.values()):
        return texts, parts, nodes
    room = np.array([0, rooms.get(1, 0), rooms.get(2, 0)])[sizes]
    long = np.flatnonzero(np.bincount(parts[0], trunk.sizes, len(sizes)) > room).tolist()
    if windows and long:
        return _in_windows(trees, trunk, {text: int(room[text]) for text in long})
    for text in long:
        some = slice(*trees.nodes.begins[text : text + 2].tolist())
        parts[3, some] = sizes_within(trunk.sizes[some].tolist(), int(room[text]))
    return texts, parts, nodes


def _in_windows(
    trees: Trees, trunk: TokenizedTexts, rooms: Mapping[int, int]
) -> tuple[Ints, Ints, Ints]:
    """Do what :func:`parts_within` does for texts of one sentence each.

    Args:
        rooms: by text that is too long, the tokens that there is room for.
    """
    spans = {
        text: windows_of(int(trunk.sizes[text]), int(room * (1 - KNOWLEDGE_ROOM)))
        for text, room in rooms.items()
    }
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
