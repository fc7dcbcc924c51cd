"""Mentions: the places in texts that name an entity of the graph.

The texts are normalised and joined, and every place where a name may begin is
found in a few array operations; Python looks at those places only.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.meanings import Meanings, MetNames
from kbert_core.knowledge.names import DASHES, loosen, word_characters
from kbert_core.knowledge.surface_forms import ALL_RULES, NameRule, NameRules, plural_end
from kbert_core.tokens import CodePoints, Ints, Many


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity name in a text.

    Attributes:
        start, end: in characters of the text as given; end exclusive.
        entity: its name as names are compared, the key in the graph.
        sentence: 0 for the first sentence of the input, 1 for the second.
        others: other entities that the same name may mean, in the order of
            ``meanings.meanings``.
        rules: what it took to read the entity's name here; empty: it is
            written as in the graph.
    """

    start: int
    end: int
    entity: str
    sentence: int = 0
    others: tuple[str, ...] = ()
    rules: tuple[NameRule, ...] = ()

    @property
    def entities(self) -> tuple[str, ...]:
        """Every entity that the name may mean."""
        return (self.entity, *self.others)


Spans = Sequence[tuple[int, int]]
FEW = 48  # characters that are sooner looked at one by one than filtered


@dataclass(frozen=True)
class Mentions(Many[tuple[Mention, ...]]):
    """M mentions in B texts, in reading order; an item is one text's.

    Attributes:
        texts: B.
        rows: (M,) which text a mention is in.
        starts, ends: (M,) in characters of that text; end exclusive.
        names: (M,) which of the different names it is.
        spans: of each different name, there or in other texts, how the text writes it.
        meanings: of each different name what it may mean.
    """

    texts: Sequence[str]
    rows: Ints
    starts: Ints
    ends: Ints
    names: Ints
    spans: Sequence[str]
    meanings: Sequence[Meanings]

    def __len__(self) -> int:
        return len(self.texts)

    def item(self, index: int) -> tuple[Mention, ...]:
        """The mentions of one text."""
        first, end = self.rows.searchsorted((index, index + 1)).tolist()
        return tuple(self.mention(number) for number in range(first, end))

    def mention(self, number: int, sentence: int = 0) -> Mention:
        """Make one of the M, in the first or the second sentence of an input."""
        span = int(self.starts[number]), int(self.ends[number])
        return _mention(self.meanings[self.names[number]], *span, sentence)

    def alone(self, name: int) -> Mention:
        """Make one of a name by itself, as if the name were the whole text."""
        return _mention(self.meanings[name], 0, len(self.spans[name]))


def _mention(meanings: Meanings, start: int, end: int, sentence: int = 0) -> Mention:
    (entity, rules), *others = meanings
    return Mention(start, end, entity, sentence, tuple(other for other, _ in others), rules)


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A name in a text that is no mention of its tree, because it shares characters with one.

    Attributes:
        mention: the name.
        taken: the mention it overlaps.
    """

    mention: Mention
    taken: Mention

    @property
    def inside(self) -> bool:
        """Whether it is part of the mention it overlaps."""
        return self.taken.start <= self.mention.start and self.mention.end <= self.taken.end

    @property
    def why(self) -> str:
        """In words."""
        return "inside a longer name" if self.inside else "overlaps the name before it"


def find_mentions(
    texts: Sequence[str],
    graph: KnowledgeGraph,
    *,
    rules: NameRules = ALL_RULES,
    words: Sequence[Spans | None] | None = None,
    masks: Sequence[Spans | None] | None = None,
) -> Mentions:
    """Find the entities that texts name: leftmost-longest, non-overlapping.

    A name that begins or ends with a Latin letter or digit counts only at a
    word boundary there, and that is tested before the longest is chosen, so
    'cat' is found where 'cats' would run on into a longer word. Chinese
    names are found anywhere. White space inside a name may be of any kind
    and length.

    Args:
        texts: as given; the offsets are in them.
        graph: whose entities are looked for, by their heads and other names.
        rules: how a name may differ from the graph's.
        words: for texts that are split into words already, their spans in
            characters: a mention then is one or more whole words, and the
            space between two Chinese words doesn't part a name.
        masks: per text the spans of its mask tokens: what touches one is no
            mention.
    """
    search = _Search(texts, graph, rules, words)
    columns = search.leftmost_longest()
    if masks is not None and any(masks):
        touches = np.array(
            [
                any(start < last and first < end for first, last in masks[row] or ())
                for row, start, end, _ in columns.T.tolist()
            ],
            bool,
        )
        columns = columns[:, ~touches]
    return search.mentions(columns)


def find_all_names(
    text: str,
    graph: KnowledgeGraph,
    *,
    words: Spans | None = None,
    sentence: int = 0,
    rules: NameRules = ALL_RULES,
) -> tuple[tuple[Mention, ...], tuple[PassedOver, ...]]:
    """Find the mentions, and the names that were passed over for them.

    Args:
        text: one.
        sentence: stored in every mention.
        other arguments: as for :func:`find_mentions`.
    """
    search = _Search([text], graph, rules, [words])
    taken, every = (
        [found.mention(number, sentence) for number in range(len(found.rows))]
        for found in (
            search.mentions(search.leftmost_longest()),
            search.mentions(search.leftmost_longest(every=True)),
        )
    )
    passed_over = []
    following = iter(taken)
    over = next(following, None)
    for mention in every:  # by their starts
        while over is not None and over.end <= mention.start:
            over = next(following, None)
        if over is not None and over != mention:
            passed_over.append(PassedOver(mention, over))
    return tuple(taken), tuple(passed_over)


class _Search:
    """Looks for names in texts.

    Args:
        as of :func:`find_mentions`.
    """

    def __init__(
        self,
        texts: Sequence[str],
        graph: KnowledgeGraph,
        rules: NameRules,
        words: Sequence[Spans | None] | None,
    ) -> None:
        self.texts, self.graph, self.rules = texts, graph, rules
        self.words = words if words is not None and any(w is not None for w in words) else None
        self.names = MetNames.of(graph, rules)
        self.joined = "\0".join([*texts, ""])
        self.loose = loosen(texts)
        self._borders: dict[int, tuple[set[int], set[int]] | None] = {}

    def leftmost_longest(self, *, every: bool = False) -> Ints:
        """Look at the places where names may begin: at those that stand alone there.

        Args:
            every: whether names that overlap are found too: by their starts,
                the longest first.

        Returns:
            (4, M) the rows, starts, ends and names of :class:`Mentions`.
        """
        loose, joined, as_written = self.loose, self.joined, self.names.as_written
        codes = loose.ids.astype(np.uint32)
        cut, odd = self._marks(codes)
        lookup = self.graph.names
        may_start = ~cut[:-1]
        if len(codes) > FEW:
            may_start &= lookup.may_start(codes)
        places = may_start.nonzero()[0].tolist()
        text = codes.tobytes().decode("utf-32-le", "replace")
        starts, ends = memoryview(loose.starts.data), memoryview(loose.ends.data)
        is_odd = odd.tobytes()
        found: list[int] = []
        free = taken = 0  # the first place, and the first character, after the last mention
        for place, keys in zip(places, lookup.keys_at(text, places), strict=True):
            if not keys or place < free:
                continue
            for key in reversed(keys):
                after = place + len(key)
                begin = starts[place]
                if is_odd[place] or is_odd[after]:
                    begin, stop, number = self._looked_at(key, begin, after, cut)
                    if number < 0 or begin < taken:
                        continue
                    if not every:
                        free, taken = bisect_left(starts, stop), stop
                else:
                    stop = ends[after - 1]
                    same = joined.startswith(key, begin)
                    number = as_written.get(key, -2) if same else -2
                    if number == -2:
                        number = self.names.number(key, joined[begin:stop])
                    if number < 0:
                        continue
                    if not every:
                        free, taken = after, stop
                found += (begin, stop, number)
                if not every:
                    break
        first, last, names = np.array(found, np.int64).reshape(-1, 3).T
        rows = loose.begins.searchsorted(first, "right") - 1
        begins = loose.begins[rows]
        return np.array([rows, first - begins, last - begins, names])

    def _marks(self, codes: CodePoints) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Mark borders between the T characters of the loosened texts.

        Returns:
            (T + 1,) where a border would cut a word or a character, and where it must be looked
            at closely: as something was dropped there, or one character became several.
        """
        loose = self.loose
        starts, ends = loose.starts, loose.ends
        word = word_characters(codes).astype(bool)
        cut = np.zeros(len(codes) + 1, bool)
        np.logical_and(word[1:], word[:-1], out=cut[1:-1])
        if loose.plain:
            odd = cut.copy()
        else:
            apart = ends[:-1] != starts[1:]
            cut[1:-1] &= ~apart
            cut[1:-1] |= starts[1:] == starts[:-1]
            odd = cut.copy()
            odd[1:-1] |= apart
            odd[0] = True
            wide = ends - starts != 1
            odd[:-1] |= wide
            odd[1:] |= wide
        if self.words is not None:
            odd[:] = True
        return cut, odd

    def _looked_at(
        self, key: str, start: int, after: int, cut: NDArray[np.bool_]
    ) -> tuple[int, int, int]:
        """Look closely at a key: at a plural's ending, at dashes beside it, at words.

        Args:
            start: its first character.
            after: the place after it in the loosened texts.

        Returns:
            Start and end in characters of the joined texts, and its number; -1: it is no name.
        """
        text = self.joined
        last = int(self.loose.ends[after - 1])
        end: int | None = last
        if cut[after]:
            end = plural_end(text, last) if self.rules.plural else None
        borders = self._words_at(start)
        if end is None or (borders and not (start in borders[0] and end in borders[1])):
            return start, start, -1
        if text[end] in DASHES or (start and text[start - 1] in DASHES):
            begin, stop, number = self.names.beside_dashes(key, text, start, end)
        else:
            begin, stop, number = start, end, self.names.number(key, text[start:end])
        if borders and (number < 0 or (begin, stop) != (start, end)):
            begin, stop = start, end
            number = self.names.of_words(key, text[start:end])
        return begin, stop, number

    def _words_at(self, start: int) -> tuple[set[int], set[int]] | None:
        """Where words begin and end in the text that has a character; None: it isn't split."""
        if self.words is None:
            return None
        row = int(self.loose.begins.searchsorted(start, "right")) - 1
        if row not in self._borders:
            words, begin = self.words[row], int(self.loose.begins[row])
            self._borders[row] = None
            if words is not None:
                firsts, lasts = ({begin + word[side] for word in words} for side in (0, 1))
                self._borders[row] = firsts, lasts
        return self._borders[row]

    def mentions(self, columns: Ints) -> Mentions:
        """Make what was found an answer; (4, M) as it was returned."""
        rows, starts, ends, names = columns
        spans, meant = self.names.spans, self.names.meanings
        return Mentions(self.texts, rows, starts, ends, names, spans, meant)
