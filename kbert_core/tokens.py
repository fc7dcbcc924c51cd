"""Tokens and their places in texts and in rows; characters → tokens by table."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbert_core.errors import OptionError, TextError

CodePoints = NDArray[np.uint32]
Ints = NDArray[np.int64]
NO_TOKEN, IN_RUN, EXTENDS = -1, -2, -3  # in place of a character's id
OVERLAP = 0.25  # of a window, shared with the next


@dataclass(frozen=True, slots=True)
class Tokens:
    """T tokens of one text.

    Attributes:
        ids: T vocabulary ids; 0 where there is no vocabulary.
        starts, ends: the span of each token in characters, end exclusive;
            tokens share a span if one character makes several tokens.
    """

    ids: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]

    def __len__(self) -> int:
        return len(self.ids)

    def first(self, count: int) -> "Tokens":
        """Return only the first ``count`` tokens."""
        if count == len(self):
            return self
        return Tokens(self.ids[:count], self.starts[:count], self.ends[:count])

    def over(self, start: int, end: int) -> tuple[int, int]:
        """Find the tokens that cover the characters [start, end): first, last + 1."""
        return bisect_right(self.ends, start), bisect_left(self.starts, end)


@dataclass(frozen=True)
class TokenizedTexts:
    """T tokens of B texts as arrays, end to end.

    Attributes:
        ids: (T,) as in ``Tokens``.
        starts, ends: (T,) in characters of all texts joined.
        sizes: (B,) tokens of each text.
        begins: (B,) the first character of each text.
        plain: whether every character is one token.
    """

    ids: Ints
    starts: Ints
    ends: Ints
    sizes: Ints
    begins: Ints
    plain: bool = False

    def split(self) -> list[Tokens]:
        """Return the tokens of each text, with places in that text."""
        shift = self.begins.repeat(self.sizes)
        columns = (self.ids, self.starts - shift, self.ends - shift)
        ids, starts, ends = (column.tolist() for column in columns)
        stops = self.sizes.cumsum().tolist()
        return [
            Tokens(ids[first:stop], starts[first:stop], ends[first:stop])
            for first, stop in pairwise([0, *stops])
        ]


def tokenize_by_table(
    lengths: Ints,
    ids: Ints,
    of_runs: Callable[[list[tuple[int, int]]], Sequence[Tokens]],
) -> TokenizedTexts:
    """Turn characters into tokens by table; runs of characters that need a tokenizer go to it.

    Args:
        lengths: (B,) characters of each text; together K.
        ids: (K,) the id of each character's token; ``NO_TOKEN`` if it has none, ``IN_RUN``
            if it is read together with neighbours of its kind, ``EXTENDS`` if it is read
            together with the character before it, too. The array is changed.
        of_runs: takes spans of the joined texts and returns the tokens of each.
    """
    least = ids.min(initial=0)
    places = np.arange(len(ids) + 1)
    begins = lengths.cumsum() - lengths
    if least >= 0:
        return TokenizedTexts(ids, places[:-1], places[1:], lengths, begins, plain=True)
    cut = np.zeros(len(ids) + 1, bool)
    cut[begins] = True
    if least <= EXTENDS:
        ids[:-1][(ids[1:] == EXTENDS) & ~cut[1:-1]] = IN_RUN
    in_run = (ids <= IN_RUN).nonzero()[0]
    if not len(in_run):
        kept = (ids >= 0).nonzero()[0]
        sizes = np.diff(kept.searchsorted(np.append(begins, len(ids))))
        return TokenizedTexts(ids[kept], kept, kept + 1, sizes, begins)
    first = np.ones(len(in_run) + 1, bool)
    first[1:-1] = (in_run[1:] != in_run[:-1] + 1) | cut[in_run[1:]]
    firsts, ends = in_run[first[:-1]], in_run[first[1:]] + 1
    runs = of_runs(list(zip(firsts.tolist(), ends.tolist(), strict=True)))
    counts = (ids >= 0).astype(np.int64)
    own = np.fromiter(map(len, runs), np.int64, len(runs))
    counts[firsts] = own
    after = np.append(0, counts.cumsum())
    starts = places[:-1].repeat(counts)
    of_tokens, ends = ids[starts], starts + 1
    before = own.cumsum() - own
    to = (after[firsts] - before).repeat(own) + np.arange(own.sum())
    of_tokens[to], begin, last = (
        np.fromiter(chain.from_iterable(getattr(run, name) for run in runs), np.int64)
        for name in ("ids", "starts", "ends")
    )
    ends[to] = starts[to] + last
    starts[to] += begin
    sizes = np.diff(after[np.append(begins, len(ids))])
    return TokenizedTexts(of_tokens, starts, ends, sizes, begins)


@lru_cache(maxsize=65_536)
def extends(character: str) -> bool:
    """Say whether a character may combine with the one before it, as an accent does."""
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"


class CharacterTable:
    """A function of code points as a table, filled as characters are met."""

    UNKNOWN = np.iinfo(np.int64).min

    def __init__(self, function: Callable[[list[int]], Sequence[int]]) -> None:
        self.function = function
        self.table = np.full(1, self.UNKNOWN)  # as long as the highest code point met

    def __call__(self, codes: CodePoints) -> Ints:
        """Return the function's values for code points, (K,)."""
        table = self.table
        try:
            values: Ints = table[codes]
        except IndexError:
            table = np.full(int(codes.max()) + 1, self.UNKNOWN)
            table[: len(self.table)] = self.table
            self.table, values = table, table[codes]
        if values.min(initial=0) == self.UNKNOWN:
            met = np.unique(codes[values == self.UNKNOWN])
            table[met] = self.function(met.tolist())
            values = table[codes]
        return values


def code_points(text: str) -> CodePoints:
    """Return the code points (K,) of a text's characters; half characters count, too."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


class TrunkPart(NamedTuple):
    """A run of one sentence's tokens, from its token ``first`` on, at [start, end) along N."""

    sentence: int
    first: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Special:
    """A token the encoder wants around sentences, such as [CLS]."""

    text: str
    id: int
    segment: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where special tokens stand around one or two sentences.

    Attributes:
        before: for each sentence the special tokens before it.
        after: the special tokens at the end.
        segments: token_type_id of each sentence.
    """

    before: tuple[tuple[Special, ...], ...]
    after: tuple[Special, ...]
    segments: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many special tokens there are."""
        return sum(map(len, self.before)) + len(self.after)

    def around(self, sentence: int) -> tuple[tuple[Special, ...], tuple[Special, ...]]:
        """Return the special tokens before a sentence, and those after it."""
        last = sentence == len(self.before) - 1
        return self.before[sentence], self.after if last else ()


def cut_to_length(
    sizes: Sequence[int],
    layout: Layout,
    max_length: int | None,
    *,
    windows: bool = False,
    share: float = 1,
) -> list[list[tuple[int, int]]]:
    """Say which tokens of each sentence stand in each row, within the length limit.

    If a text is over the limit, the end of its longer sentence is cut. With ``windows`` its last
    sentence is read in overlapping windows, and each window has the whole first sentence.

    Args:
        sizes: tokens of each sentence, one or two.
        layout: the special tokens around them.
        max_length: of a row in tokens, special ones included; None: no limit.
        windows: whether to read a long text in windows.
        share: how much of a window is for the text; the rest is for knowledge.

    Returns:
        For each row, of each sentence the tokens [first, stop).

    Raises:
        OptionError: the limit has no room for a single token of text.
        TextError: the first of two sentences leaves no room for windows of the second.
    """
    whole = [(0, size) for size in sizes]
    if max_length is None:
        return [whole]
    room = max_length - layout.count
    if room <= 0:
        raise OptionError(
            f"The length limit is {max_length} tokens, and {layout.count} of them are special. "
            f"Give at least {layout.count + 1}."
        )
    if sum(sizes) <= room:
        return [whole]
    if windows:
        return [[*whole[:-1], window] for window in _windows(sizes, int(room * share))]
    if len(sizes) == 1:
        return [[(0, room)]]
    half, free = room - room // 2, room - sizes[0]  # what the first sentence leaves free
    second = min(sizes[1], max(half, free))
    return [[(0, room - second), (0, second)]]


def _windows(sizes: Sequence[int], room: int) -> list[tuple[int, int]]:
    """Cut the last sentence into overlapping windows of one size: the first one stands beside."""
    total, first = sizes[-1], sum(sizes[:-1])
    if first > room // 2:
        raise TextError(
            f"The first text has {first} tokens. Every window repeats it and has room for {room} "
            "tokens, and it may use at most half of them. Shorten the first text, or raise the "
            "length limit."
        )
    size = min(total, max(1, room - first))
    step = max(1, int(size * (1 - OVERLAP)))
    starts = [min(start, total - size) for start in range(0, total - size + step, step)]
    return [(start, start + size) for start in dict.fromkeys(starts)]


def tokens_read(
    tokens: Sequence[Tokens], rows: Iterable[Iterable[TrunkPart]]
) -> tuple[Tokens, ...]:
    """Keep of each sentence only the tokens that stand in some row."""
    read = [0] * len(tokens)
    for part in chain.from_iterable(rows):
        read[part.sentence] = max(read[part.sentence], part.first + part.end - part.start)
    return tuple(own.first(count) for own, count in zip(tokens, read, strict=True))


def text_places(
    rows: Sequence[Sequence[TrunkPart]], sizes: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find for each token of a text the row where it has most text on both sides, and its place.

    Args:
        rows: for each row its runs of the text's tokens.
        sizes: for each sentence its number of tokens, T in all.

    Returns:
        (T,) numbers of rows, and (T,) indices along N.
    """
    before = np.cumsum([0, *sizes])
    context = np.full(before[-1], -1)
    of_row, of_place = np.zeros(before[-1], int), np.zeros(before[-1], int)
    for number, row in enumerate(rows):
        for sentence, total in enumerate(sizes):
            parts = [part for part in row if part.sentence == sentence and part.end > part.start]
            if not parts:
                continue
            at = np.concatenate([np.arange(p.end - p.start) + p.first for p in parts])
            place = np.concatenate([np.arange(p.start, p.end) for p in parts])
            left = at - at[0] if at[0] else np.full(len(at), total)
            right = at[-1] - at if at[-1] + 1 < total else np.full(len(at), total)
            near, at = np.minimum(left, right), at + before[sentence]
            better = near > context[at]
            context[at[better]] = near[better]
            of_row[at[better]], of_place[at[better]] = number, place[better]
    return of_row, of_place
