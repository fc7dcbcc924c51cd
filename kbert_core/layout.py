"""How a text's tokens stand in rows: special tokens around them, cut to a limit or in windows."""

from collections.abc import Sequence
from dataclasses import dataclass

from kbert_core.errors import OptionError
from kbert_core.tokens import Tokens

OVERLAP = 0.25  # of a window, shared with the next


@dataclass(frozen=True, slots=True)
class TrunkPart:
    """A run of one sentence's tokens that stand side by side in a row.

    Attributes:
        sentence: which.
        first: index of the run's first token in its sentence.
        start, end: the run, as indices along N; end exclusive.
    """

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
        before: per sentence the special tokens ahead of it.
        after: those at the end.
        segments: token_type_id of each sentence.
    """

    before: tuple[tuple[Special, ...], ...]
    after: tuple[Special, ...]
    segments: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many special tokens there are."""
        return sum(map(len, self.before)) + len(self.after)

    @property
    def sentences(self) -> int:
        """For how many sentences it is."""
        return len(self.before)

    def around(self, sentence: int) -> tuple[tuple[Special, ...], tuple[Special, ...]]:
        """The special tokens that stand ahead of a sentence, and those behind it."""
        last = sentence == self.sentences - 1
        return self.before[sentence], self.after if last else ()


def room_within(layout: Layout, max_length: int) -> int:
    """Count the tokens of text that a row has room for.

    Raises:
        OptionError: there is none.
    """
    if max_length <= layout.count:
        raise OptionError(
            f"The length limit is {max_length} tokens, and {layout.count} of them are special. "
            f"Give at least {layout.count + 1}."
        )
    return max_length - layout.count


def sizes_within(sizes: Sequence[int], room: int) -> Sequence[int]:
    """Cut one sentence, or the longer of two, to the tokens that there is room for."""
    if sum(sizes) <= room:
        return sizes
    if len(sizes) == 1:
        return [room]
    first, second = sizes
    half = room // 2
    if first <= half:
        return [first, room - first]
    if second <= room - half:
        return [room - second, second]
    return [half, room - half]


def windows_of(total: int, size: int) -> list[tuple[int, int]]:
    """Cut so many tokens into overlapping windows of a size: first, last + 1 of each."""
    size = min(total, max(1, size))
    step = max(1, int(size * (1 - OVERLAP)))
    starts = [min(start, total - size) for start in range(0, total - size + step, step)]
    return [(start, start + size) for start in dict.fromkeys(starts)]


def text_rows(
    tokens: Sequence[Tokens], layout: Layout, max_length: int | None, *, windows: bool = False
) -> list[tuple[list[int], list[int], tuple[TrunkPart, ...]]]:
    """Lay one or two sentences out as rows, special tokens around them.

    A text over the limit is cut at the end of its longer sentence, or one sentence is read in
    overlapping windows.

    Args:
        tokens: of each sentence.
        layout: of the special tokens.
        max_length: of a row in tokens, special ones included; None: no limit.
        windows: whether to read a long text in windows.

    Returns:
        Per row ids, token_type_ids, and where the text's own tokens stand.

    Raises:
        OptionError: the limit has no room for a token; windows are asked for a pair.
    """
    if windows and len(tokens) > 1:
        raise OptionError("Windows are for one sentence; a pair of sentences is cut instead.")
    sizes = [len(own) for own in tokens]
    room = sum(sizes) if max_length is None else room_within(layout, max_length)
    if windows:
        return [_row(tokens, layout, [span]) for span in windows_of(sizes[0], room)]
    return [_row(tokens, layout, [(0, size) for size in sizes_within(sizes, room)])]


def _row(
    tokens: Sequence[Tokens], layout: Layout, spans: Sequence[tuple[int, int]]
) -> tuple[list[int], list[int], tuple[TrunkPart, ...]]:
    ids: list[int] = []
    segments: list[int] = []
    parts = []
    for number, (own, (first, last)) in enumerate(zip(tokens, spans, strict=True)):
        ids += [special.id for special in layout.before[number]]
        segments += [special.segment for special in layout.before[number]]
        parts.append(TrunkPart(number, first, len(ids), len(ids) + last - first))
        ids += own.ids[first:last]
        segments += [layout.segments[number]] * (last - first)
    ids += [special.id for special in layout.after]
    segments += [special.segment for special in layout.after]
    return ids, segments, tuple(parts)
