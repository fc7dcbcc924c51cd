"""Mentions: the places in texts that name an entity of the graph.

The texts are normalised and joined, and a few array operations find every place where a name may
begin. Python looks at those places only, and finds out once for each name what it means.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

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
from kbert_core.tokens import CodePoints

Spans = Sequence[tuple[int, int]]
Meanings = list[tuple[str, tuple[NameRule, ...]]]  # entities, each with the rules that it took
ZERO_WIDTH_JOINER = 0x200D  # makes one emoji of several
FEW = 48  # characters that are sooner looked at one by one than filtered
MOST_NAMES = 20_000  # kept with a graph


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


def find_mentions(
    texts: Sequence[str],
    graph: KnowledgeGraph,
    *,
    rules: NameRules = ALL_RULES,
    words: Sequence[Spans | None] | None = None,
    masks: Sequence[Spans | None] | None = None,
) -> list[tuple[Mention, ...]]:
    """Find the entities that each text names, in reading order: leftmost-longest, non-overlapping.

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
    found = _Search(texts, graph, rules, words).leftmost_longest()
    if masks is None or not any(masks):
        return found

    def touches(mention: Mention, hidden: Spans | None) -> bool:
        return any(mention.start < end and start < mention.end for start, end in hidden or ())

    return [
        tuple(mention for mention in mentions if not touches(mention, hidden))
        for mentions, hidden in zip(found, masks, strict=True)
    ]


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
    search = _Search([text], graph, rules, [words], sentence)
    (taken,), (every,) = search.leftmost_longest(), search.leftmost_longest(every=True)
    ends = [mention.end for mention in taken]
    passed_over = []
    for mention in every:
        first = bisect_right(ends, mention.start)  # of those taken that end after its start
        if first < len(taken) and taken[first] != mention:
            passed_over.append(PassedOver(mention, taken[first]))
    return tuple(taken), tuple(passed_over)


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


def _kept_meanings(graph: KnowledgeGraph, rules: NameRules) -> list[Callable[..., Meanings]]:
    """Return :func:`meanings` by the rules and by the basic ones; kept for names met in texts."""

    def make(rules: NameRules) -> Callable[..., Meanings]:
        return lru_cache(MOST_NAMES)(lambda key, span: meanings(graph, key, span, rules))

    return graph.kept((find_mentions, rules), lambda: [make(rules), make(rules.basic)])


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
        sentence: int = 0,
    ) -> None:
        refuse_single(texts)
        refuse_no_graph(graph)
        self.texts, self.graph, self.rules, self.sentence = texts, graph, rules, sentence
        self.words = words if words is not None and any(w is not None for w in words) else None
        self.meanings = _kept_meanings(graph, rules)
        self.joined = "\0".join([*texts, ""])
        self.loose = loosen(texts)
        self.borders = [  # per text where its words begin, and where they end
            None if spans is None else [{begin + span[side] for span in spans} for side in (0, 1)]
            for spans, begin in zip(self.words or (), self.loose.begins.tolist(), strict=False)
        ]

    def leftmost_longest(self, *, every: bool = False) -> list[tuple[Mention, ...]]:
        """Look at the places where names may begin, and choose the leftmost and longest names.

        Args:
            every: find overlapping names, too, ordered by their starts, the longest first.
        """
        loose, joined = self.loose, self.joined
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
        is_odd, begins = odd.tobytes(), loose.begins.tolist()
        mentions: list[list[Mention]] = [[] for _ in self.texts]
        taken = 0  # the first character after the last mention
        for place, keys in zip(places, lookup.keys_at(text, places), strict=True):
            if not keys or starts[place] < taken:
                continue
            meaning_of = self.meanings[is_basic[place]]
            for key in reversed(keys):
                after = place + len(key)
                start, end = starts[place], ends[after - 1]
                if is_odd[place] or is_odd[after]:
                    start, end, meant = self._looked_at(key, start, after, cut, is_basic[place])
                else:
                    meant = meaning_of(key, joined[start:end])
                if not meant or start < taken:
                    continue
                row = bisect_right(begins, start) - 1
                (entity, by), *others = meant
                more, before = tuple([other for other, _ in others]), begins[row]
                own = Mention(start - before, end - before, entity, self.sentence, more, by)
                mentions[row].append(own)
                if not every:
                    taken = end
                    break
        return list(map(tuple, mentions))

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
    ) -> tuple[int, int, Meanings]:
        """Check a key that was found in the loosened texts: plural endings, dashes beside it, and
        word boundaries.

        Returns:
            Start and end in characters of the joined texts, and what the name means; empty: none.
        """
        text, meaning_of = self.joined, self.meanings[basic]
        last = int(self.loose.ends[after - 1])
        end: int | None = last
        if cut[after]:
            end = plural_end(text, last) if self.rules.plural else None
        borders = None
        if self.borders:
            borders = self.borders[int(self.loose.begins.searchsorted(start, "right")) - 1]
        if end is None or (borders and not (start in borders[0] and end in borders[1])):
            return start, start, []
        best = start, end, meaning_of(key, text[start:end])
        if text[end] in DASHES or (start and text[start - 1] in DASHES):
            if self.rules.whole and not basic and in_compound(text, start, end):
                return start, start, []
            for begin, stop in with_dashes(text, start, end):
                meant = meaning_of(key, text[begin:stop])
                if meant and (not best[2] or _cost(meant[0][1]) <= _cost(best[2][0][1])):
                    best = begin, stop, meant  # it is written more like the graph's
        if borders and (not best[2] or best[:2] != (start, end)):
            span = text[start:end]
            meant = meaning_of(key, span) or meaning_of(key, without_spaces_between_words(span))
            best = start, end, meant
        return best
