"""Mentions: the places in texts that name an entity of the graph.

The texts are normalised and joined, and a few array operations find every place where a name may
begin. Python looks at those places only, and finds out once for each name what it means.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbert_core.knowledge.graph import KnowledgeGraph, refuse_no_graph
from kbert_core.knowledge.names import (
    DASHES,
    UNSPACED,
    loosen,
    normalise_name,
    word_characters,
)
from kbert_core.knowledge.respelling import in_compound
from kbert_core.knowledge.surface_forms import (
    ALL_RULES,
    NameRule,
    NameRules,
    agreement,
    plural_end,
    with_dashes,
    without_spaces_between_words,
)
from kbert_core.text import refuse_single
from kbert_core.tokens import CodePoints, Ints, Many

Spans = Sequence[tuple[int, int]]
Meanings = list[tuple[str, tuple[NameRule, ...]]]  # entities, each with the rules that it took
ZERO_WIDTH_JOINER = 0x200D  # makes one emoji of several
FEW = 48  # characters that are sooner looked at one by one than filtered
MOST_NAMES = 20_000  # kept with a graph
_growing = Lock()


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity name in a text."""

    start: int  # in characters of the text as given
    end: int  # exclusive
    entity: str  # its name as names are compared, the key in the graph
    sentence: int = 0  # 0 for the first sentence of the input, 1 for the second
    others: tuple[str, ...] = ()  # that the same name may mean, in the order of :func:`meanings`
    rules: tuple[NameRule, ...] = ()  # by which the name is read so; empty: as the graph writes it

    @property
    def entities(self) -> tuple[str, ...]:
        """Every entity that the name may mean."""
        return (self.entity, *self.others)


@dataclass(frozen=True)
class Mentions(Many[tuple[Mention, ...]]):
    """M mentions in B texts, in reading order; an item is one text's."""

    texts: Sequence[str]  # B
    rows: Ints  # (M,) which text a mention is in
    starts: Ints  # (M,) in characters of that text
    ends: Ints  # (M,) exclusive
    names: Ints  # (M,) which of the different names it is
    spans: Sequence[str]  # of each different name, there or in other texts, how it is written
    meanings: Sequence[Meanings]  # of each different name what it may mean

    def __len__(self) -> int:
        return len(self.texts)

    def item(self, index: int) -> tuple[Mention, ...]:
        """The mentions of one text."""
        first, end = self.rows.searchsorted((index, index + 1)).tolist()
        return tuple(self.mention(number) for number in range(first, end))

    def mention(self, number: int, sentence: int = 0) -> Mention:
        """Make one of the M mentions, in the first or the second sentence of an input."""
        start, end = int(self.starts[number]), int(self.ends[number])
        return _mention(self.meanings[self.names[number]], start, end, sentence)

    def alone(self, name: int) -> Mention:
        """Make a mention of a name alone, as if the name were the whole text."""
        return _mention(self.meanings[name], 0, len(self.spans[name]))


def _mention(meanings: Meanings, start: int, end: int, sentence: int = 0) -> Mention:
    (entity, rules), *others = meanings
    return Mention(start, end, entity, sentence, tuple(other for other, _ in others), rules)


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A name in a text that is no mention, because it overlaps the mention ``taken``."""

    mention: Mention
    taken: Mention

    @property
    def inside(self) -> bool:
        """Whether it is part of ``taken``."""
        return self.taken.start <= self.mention.start and self.mention.end <= self.taken.end

    @property
    def why(self) -> str:
        """The reason, in words."""
        return "inside a longer name" if self.inside else "overlaps the name before it"


def names_of_heads(
    names: Iterable[str], graph: KnowledgeGraph, rules: NameRules = ALL_RULES
) -> set[str]:
    """Return those of some names that name a head, each looked up as a text of its own."""
    own = sorted({*names})
    found = zip(own, find_mentions(own, graph, rules=rules), strict=True)
    return {name for name, of in found if of and (of[0].start, of[0].end) == (0, len(name))}


def find_mentions(
    texts: Sequence[str],
    graph: KnowledgeGraph,
    *,
    rules: NameRules = ALL_RULES,
    words: Sequence[Spans | None] | None = None,
    masks: Sequence[Spans | None] | None = None,
) -> Mentions:
    """Find the entities that texts name: leftmost-longest, non-overlapping.

    If a name begins or ends with a Latin letter or digit, there must be a word boundary there;
    this is tested before the longest name is chosen. Chinese names are found anywhere. White space
    inside a name may be of any kind and length.

    Args:
        texts: as given; offsets are characters of these texts.
        graph: its entities are searched, by their heads and aliases.
        rules: how a name may differ from the graph's.
        words: for texts already split into words, their spans in characters: a mention is then
            one or more whole words, and a name may span the space between two Chinese words.
        masks: for each text the spans of its mask tokens; a name that touches one is no mention.
    """
    search = _Search(texts, graph, rules, words)
    columns = search.leftmost_longest()
    if masks is not None and any(masks):
        touches = [
            any(start < last and first < end for first, last in masks[row] or ())
            for row, start, end, _ in columns.T.tolist()
        ]
        columns = columns[:, ~np.array(touches, bool)]
    return search.mentions(columns)


def find_all_names(
    text: str,
    graph: KnowledgeGraph,
    *,
    words: Spans | None = None,
    sentence: int = 0,
    rules: NameRules = ALL_RULES,
) -> tuple[tuple[Mention, ...], tuple[PassedOver, ...]]:
    """Find the mentions of one text, and the names that overlap these mentions.

    Args:
        sentence: stored in every mention; other arguments as for :func:`find_mentions`.
    """
    search = _Search([text], graph, rules, [words])
    taken, every = (
        [found.mention(number, sentence) for number in range(len(found.rows))]
        for found in (
            search.mentions(search.leftmost_longest()),
            search.mentions(search.leftmost_longest(every=True)),
        )
    )
    ends = [mention.end for mention in taken]
    passed_over = []
    for mention in every:
        first = bisect_right(ends, mention.start)  # of those taken that end after its start
        if first < len(taken) and taken[first] != mention:
            passed_over.append(PassedOver(mention, taken[first]))
    return tuple(taken), tuple(passed_over)


class MetNames:
    """The different names met in texts, kept with the graph; a name keeps its number.

    Attributes:
        spans, meanings: see :class:`Mentions`.
        numbers: (basic, key, span) → the number of the name; -1: it means no entity. ``basic``:
            whether it stands in a text that is read by the basic rules alone.
        as_written: span → number, for spans that are equal to their keys; then those in such texts.
    """

    def __init__(self, graph: KnowledgeGraph, rules: NameRules) -> None:
        self.graph, self.rules = graph, rules
        self.spans: list[str] = []
        self.meanings: list[Meanings] = []
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.as_written: tuple[dict[str, int], dict[str, int]] = ({}, {})

    @classmethod
    def of(cls, graph: KnowledgeGraph, rules: NameRules) -> "MetNames":
        """Return the names kept with a graph; once there are too many, start again with none."""
        names = graph.kept((cls, rules), lambda: cls(graph, rules))
        if len(names.numbers) >= MOST_NAMES:
            graph.forget((cls, rules))
            names = graph.kept((cls, rules), lambda: cls(graph, rules))
        return names

    def number(self, basic: int, key: str, span: str, read_as: str | None = None) -> int:
        """Return the number of a name as the text writes it; -1: it means no entity."""
        what = (basic, key, span) if read_as is None else (basic, key, span, read_as)
        number = self.numbers.get(what)
        if number is None:
            rules = self.rules.basic if basic else self.rules
            name = meanings(self.graph, key, span if read_as is None else read_as, rules)
            with _growing:
                number = self.numbers.get(what, len(self.spans) if name else -1)
                if number == len(self.spans):
                    self.meanings.append(name)
                    self.spans.append(span)
                self.numbers[what] = number
                if key == span and read_as is None:
                    self.as_written[basic][key] = number
        return number


def meanings(graph: KnowledgeGraph, key: str, span: str, rules: NameRules) -> Meanings:
    """Return the entities that a span of a text, found by a key, may mean.

    Returns:
        Those spelt most like the text. The entity with exactly this name comes first, then those
        with this name and a sense, then those with this alias; each group in graph order.
    """
    meant = graph.meant_by(key)
    if not meant:
        return []
    if meant == (key,) and key == span and span.upper() == span and rules.width:
        return [(key, ())]  # no letter whose case, and nothing whose width could differ
    found: dict[str, tuple[NameRule, ...]] = {}
    for entity in meant:
        triples = graph.triples_of(entity)
        heads = dict.fromkeys(triple.head for triple in triples)
        said: list[tuple[str, Iterable[str], tuple[NameRule, ...]]] = [(entity, heads, ())]
        for triple in triples if rules.alias else ():
            alias = graph.aliases.aliases_in(triple)
            if alias is not None and graph.is_on(triple):
                named = normalise_name(alias[1])
                if graph.triples_of(named):
                    said.append((named, alias[:1], (NameRule.ALIAS,)))
        for named, names, more in said:
            taken = agreement(span, names, rules)
            if taken is not None:
                taken += more
                found[named] = min(found.get(named, taken), taken, key=_cost)
    nearest = min((_cost(taken)[0] for taken in found.values()), default=0)
    ordered = [(e, found[e]) for e in meant if e in found and _cost(found[e])[0] == nearest]
    return sorted(ordered, key=lambda item: len(item[1]))


def _cost(taken: tuple[NameRule, ...]) -> tuple[int, int]:
    """Return how many rules about spelling a match needs, and how many rules in all."""
    return sum(rule not in (NameRule.SENSE, NameRule.ALIAS) for rule in taken), len(taken)


class _Search:
    """Looks for names in texts; the arguments are those of :func:`find_mentions`."""

    def __init__(
        self,
        texts: Sequence[str],
        graph: KnowledgeGraph,
        rules: NameRules,
        words: Sequence[Spans | None] | None,
    ) -> None:
        refuse_single(texts)
        refuse_no_graph(graph)
        self.texts, self.graph, self.rules = texts, graph, rules
        self.words = words if words is not None and any(w is not None for w in words) else None
        self.names = MetNames.of(graph, rules)
        self.joined = "\0".join([*texts, ""])
        self.loose = loosen(texts)
        self.borders = [  # per text where its words begin, and where they end
            None if spans is None else [{begin + span[side] for span in spans} for side in (0, 1)]
            for spans, begin in zip(self.words or (), self.loose.begins.tolist(), strict=False)
        ]

    def leftmost_longest(self, *, every: bool = False) -> Ints:
        """Look at the places where names may begin, and choose the leftmost and longest names.

        Args:
            every: find overlapping names, too, ordered by their starts, the longest first.

        Returns:
            (4, M) the rows, starts, ends and names of :class:`Mentions`.
        """
        loose, joined, as_written = self.loose, self.joined, self.names.as_written
        codes = loose.ids.astype(np.uint32)
        basic = self._basic(codes)
        is_basic = basic.tobytes()
        cut, odd = self._marks(codes, basic)
        lookup = self.graph.names
        may_start = ~cut[:-1]
        if len(codes) > FEW or lookup.large:
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
            in_basic = is_basic[place]
            for key in reversed(keys):
                after = place + len(key)
                begin = starts[place]
                if is_odd[place] or is_odd[after]:
                    begin, stop, number = self._looked_at(key, begin, after, cut, in_basic)
                    if number < 0 or begin < taken:
                        continue
                    if not every:
                        free, taken = bisect_left(starts, stop), stop
                else:
                    stop = ends[after - 1]
                    same = joined.startswith(key, begin)
                    number = as_written[in_basic].get(key, -2) if same else -2
                    if number == -2:
                        number = self.names.number(in_basic, key, joined[begin:stop])
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

    def _basic(self, codes: CodePoints) -> NDArray[np.bool_]:
        """(T,) whether a character stands in a text that is read by the basic rules alone."""
        if self.rules is self.rules.basic or self.joined.isascii():
            return np.zeros(len(codes), bool)
        unspaced = [UNSPACED.search(text) is not None for text in self.texts]
        return np.array(unspaced, bool).repeat(self.loose.sizes)

    def _marks(
        self, codes: CodePoints, basic: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Mark borders between the T characters of the loosened texts.

        Returns:
            (T + 1,) bool twice: where a border would cut a word or a character; where it needs a
            closer look, because characters were dropped or became several.
        """
        loose = self.loose
        starts, ends = loose.starts, loose.ends
        word = word_characters(codes).astype(bool)
        cut = np.zeros(len(codes) + 1, bool)
        np.logical_and(word[1:], word[:-1], out=cut[1:-1])
        if self.rules.whole and ("." in self.joined or chr(ZERO_WIDTH_JOINER) in self.joined):
            joins = codes == ZERO_WIDTH_JOINER
            digit = (codes >= ord("0")) & (codes <= ord("9"))
            joins[1:-1] |= (codes[1:-1] == ord(".")) & digit[:-2] & digit[2:]
            joins &= ~basic
            cut[1:] |= joins
            cut[:-1] |= joins
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
        self, key: str, start: int, after: int, cut: NDArray[np.bool_], basic: int
    ) -> tuple[int, int, int]:
        """Check a key that was found in the loosened texts: plural endings, dashes beside it, and
        word boundaries.

        Returns:
            Start and end in characters of the joined texts, and the name's number; -1: no name.
        """
        text, number_of = self.joined, self.names.number
        last = int(self.loose.ends[after - 1])
        end: int | None = last
        if cut[after]:
            end = plural_end(text, last) if self.rules.plural else None
        borders = None
        if self.borders:
            borders = self.borders[int(self.loose.begins.searchsorted(start, "right")) - 1]
        if end is None or (borders and not (start in borders[0] and end in borders[1])):
            return start, start, -1
        if not (text[end] in DASHES or (start and text[start - 1] in DASHES)):
            best = start, end, number_of(basic, key, text[start:end])
        elif self.rules.whole and not basic and in_compound(text, start, end):
            return start, start, -1
        else:  # the name with or without them that is written most like the graph's
            best, least = (start, end, -1), None
            for begin, stop in with_dashes(text, start, end):
                number = number_of(basic, key, text[begin:stop])
                if number >= 0:
                    cost = _cost(self.names.meanings[number][0][1])
                    if least is None or cost <= least:
                        best, least = (begin, stop, number), cost
        if borders and (best[2] < 0 or best[:2] != (start, end)):
            number = number_of(basic, key, span := text[start:end])
            if number < 0:
                number = number_of(basic, key, span, without_spaces_between_words(span))
            best = start, end, number
        return best

    def mentions(self, columns: Ints) -> Mentions:
        """Turn the (4, M) result of :meth:`leftmost_longest` into mentions."""
        rows, starts, ends, names = columns
        spans, meant = self.names.spans, self.names.meanings
        return Mentions(self.texts, rows, starts, ends, names, spans, meant)
