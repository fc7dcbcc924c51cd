"""Mentions: the places in texts that name an entity of the graph.

The texts are normalised and joined, and every place where a name may begin is
found in a few array operations; Python looks at those places only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import (
    DASHES,
    is_word_character,
    loosen,
    normalise_name,
    word_characters,
)
from kbert_core.knowledge.surface_forms import (
    ALL_RULES,
    NameRule,
    NameRules,
    agreement,
    plural_end,
)
from kbert_core.text import Ints, before


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity name in a text.

    Attributes:
        start, end: in characters of the text as given; end exclusive.
        entity: its name as names are compared, the key in the graph.
        sentence: 0 for the first sentence of the input, 1 for the second.
        others: other entities that the same name may mean, in the order of
            :func:`meanings`.
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


Meanings = list[tuple[str, tuple[NameRule, ...]]]
Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Mentions(Sequence[tuple[Mention, ...]]):
    """M mentions in B texts, in reading order; an item is one text's.

    Attributes:
        texts: B.
        rows: (M,) which text a mention is in.
        starts, ends: (M,) in characters of that text; end exclusive.
        names: (M,) which of the different names it is.
        spans: of each different name how the text writes it.
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

    @overload
    def __getitem__(self, index: int) -> tuple[Mention, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[Mention, ...]]: ...
    def __getitem__(
        self, index: int | slice
    ) -> tuple[Mention, ...] | Sequence[tuple[Mention, ...]]:
        if isinstance(index, slice):
            return [self[row] for row in range(len(self))[index]]
        row = range(len(self))[index]
        first, end = np.searchsorted(self.rows, (row, row + 1)).tolist()
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

    Attributes:
        spans, meanings: see :class:`Mentions`.
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
        self.spans: list[str] = []
        self.meanings: list[Meanings] = []
        self._numbers: dict[tuple[str, ...], int] = {}  # by key and span

    def leftmost_longest(self, *, every: bool = False) -> Ints:
        """Look at the places where names may begin: at those that stand alone there.

        Args:
            every: whether names that overlap are found too: by their starts,
                the longest first.

        Returns:
            (4, M) the rows, starts, ends and names of :class:`Mentions`.
        """
        loose = loosen(self.texts)
        codes = loose.ids.astype(np.uint32)
        firsts = before(loose.sizes)
        text = codes.tobytes().decode("utf-32-le", "replace")
        word = word_characters(codes).astype(bool)
        cut = np.zeros(len(codes) + 1, bool)  # a border here would cut a word or a character
        cut[1:-1] = word[1:] & word[:-1] & (loose.ends[:-1] == loose.starts[1:])
        cut[1:-1] |= loose.starts[1:] == loose.starts[:-1]
        cut[firsts] = False
        places = np.flatnonzero(self.graph.names.may_start(codes) & ~cut[:-1])
        rows = np.searchsorted(firsts, places, "right") - 1

        names_at, numbers, plural = self.graph.names.keys_at, self._numbers, self.rules.plural
        inside, ends = cut.tobytes(), memoryview(loose.ends.data)
        found: list[int] = []
        current, free = -1, 0
        begins = stops = None
        for place, row, start, limit in zip(
            places.tolist(),
            rows.tolist(),
            loose.starts[places].tolist(),
            (firsts + loose.sizes)[rows].tolist(),
            strict=True,
        ):
            if row != current:
                current, given, free = row, self.texts[row], 0
                if self.words is not None:
                    begins, stops = self._borders(row)
            if start < free or (begins is not None and start not in begins):
                continue
            for key in reversed(names_at(text, place)):
                after = place + len(key)
                if after > limit:
                    continue
                end: int | None = ends[after - 1]
                if inside[after]:
                    end = plural_end(given, ends[after - 1]) if plural else None
                if end is None or (stops is not None and end not in stops):
                    continue
                if given[end : end + 1] in DASHES or (start and given[start - 1] in DASHES):
                    begin, stop, number = self._beside_dashes(key, given, start, end)
                else:
                    begin, stop = start, end
                    number = numbers.get((key, given[start:end]), -2)
                    if number == -2:
                        number = self._number(key, given[start:end])
                if stops is not None and (number < 0 or (begin, stop) != (start, end)):
                    begin, stop = start, end
                    number = self._of_words(key, given[start:end])
                if number >= 0 and begin >= free:
                    found += (row, begin, stop, number)
                    if not every:
                        free = stop
                        break
        return np.array(found, np.int64).reshape(-1, 4).T

    def mentions(self, columns: Ints) -> Mentions:
        """Make what was found an answer; (4, M) as it was returned."""
        rows, starts, ends, names = columns
        return Mentions(self.texts, rows, starts, ends, names, self.spans, self.meanings)

    def _borders(self, row: int) -> tuple[set[int] | None, set[int] | None]:
        words = self.words[row] if self.words is not None else None
        if words is None:
            return None, None
        return {start for start, _ in words}, {end for _, end in words}

    def _number(self, key: str, span: str, read_as: str | None = None) -> int:
        """Number a name as the text writes it; -1: it means nothing."""
        what = (key, span) if read_as is None else (key, span, read_as)
        number = self._numbers.get(what)
        if number is None:
            name = meanings(self.graph, key, span if read_as is None else read_as, self.rules)
            number = self._numbers[what] = len(self.spans) if name else -1
            if name:
                self.spans.append(span)
                self.meanings.append(name)
        return number

    def _of_words(self, key: str, span: str) -> int:
        number = self._number(key, span)
        joined = _without_spaces_between_words(span)
        return number if number >= 0 else self._number(key, span, joined)

    def _beside_dashes(self, key: str, text: str, start: int, end: int) -> tuple[int, int, int]:
        """Number a name, a dash beside it taken along where it is part of it.

        Returns:
            Start, end and number of the one that is written most like the graph's.
        """
        best, least = (start, end, -1), None
        for begin, stop in _with_dashes(text, start, end):
            number = self._number(key, text[begin:stop])
            if number < 0:
                continue
            cost = _cost(self.meanings[number][0][1])
            if least is None or cost <= least:
                best, least = (begin, stop, number), cost
        return best


def meanings(graph: KnowledgeGraph, key: str, span: str, rules: NameRules) -> Meanings:
    """Say which entities a name in a text may mean, and by which rules.

    Args:
        graph: K.
        key: under which the name is looked up.
        span: the name as it stands in the text.
        rules: those that are on.

    Returns:
        Those spelt most like the text: the entity of that very name first,
        then those the graph names so with a sense, then by another name; each
        in graph order.
    """
    meant = graph.meant_by(key)
    if not meant:
        return []
    if meant == (key,) and key == span and span.upper() == span and rules.width:
        return [(key, ())]  # no letter whose case, and nothing whose width could differ
    found: dict[str, tuple[NameRule, ...]] = {}
    for entity, names, by_alias in _names(graph, meant, rules):
        taken = agreement(span, names, rules)
        if taken is None:
            continue
        taken = (*taken, NameRule.ALIAS) if by_alias else taken
        if entity not in found or _cost(taken) < _cost(found[entity]):
            found[entity] = taken
    nearest = min((_spelling(taken) for taken in found.values()), default=0)
    ordered = [(e, found[e]) for e in meant if e in found and _spelling(found[e]) == nearest]
    return sorted(ordered, key=lambda item: len(item[1]))


def _names(
    graph: KnowledgeGraph, meant: Sequence[str], rules: NameRules
) -> Iterator[tuple[str, Iterable[str], bool]]:
    """Yield entities with names of theirs: their heads, and what triples that are on say."""
    for entity in meant:
        triples = graph.triples_of(entity)
        yield entity, dict.fromkeys(triple.head for triple in triples), False
        if not rules.alias:
            continue
        for triple in triples:
            said = graph.aliases.aliases_in(triple)
            if said is not None and graph.is_on(triple):
                alias, named = said[0], normalise_name(said[1])
                if graph.triples_of(named):
                    yield named, (alias,), True


def _cost(taken: tuple[NameRule, ...]) -> tuple[int, int]:
    return _spelling(taken), len(taken)


def _spelling(taken: tuple[NameRule, ...]) -> int:
    """Count the rules that forgive how a name is spelt."""
    return sum(rule not in (NameRule.SENSE, NameRule.ALIAS) for rule in taken)


def _with_dashes(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a span, and where a dash stands beside it the span with it."""
    before = start > 0 and text[start - 1] in DASHES
    after = end < len(text) and text[end] in DASHES
    yield start, end
    if after:
        yield start, end + 1
    if before:
        yield start - 1, end
    if before and after:
        yield start - 1, end + 1


def _without_spaces_between_words(span: str) -> str:
    """Drop the spaces that stand between two words written without spaces."""
    if " " not in span:
        return span
    return "".join(
        c
        for i, c in enumerate(span)
        if c != " " or is_word_character(span[i - 1]) or is_word_character(span[i + 1])
    )
