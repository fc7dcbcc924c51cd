"""Mention: a place in a text that names an entity of the graph."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import (
    DASHES,
    NormalisedText,
    is_word_character,
    loosen,
    normalise_name,
)
from kbert_core.knowledge.surface_forms import (
    ALL_RULES,
    NameRule,
    NameRules,
    agreement,
    plural_end,
)


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
Known = dict[tuple[str, str], Meanings]  # by key and span


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
    text: str,
    graph: KnowledgeGraph,
    *,
    words: Sequence[tuple[int, int]] | None = None,
    sentence: int = 0,
    rules: NameRules = ALL_RULES,
) -> tuple[Mention, ...]:
    """Find the entities that a text names: leftmost-longest, non-overlapping.

    A name that begins or ends with a Latin letter or digit counts only at a
    word boundary there, and that is tested before the longest is chosen, so
    'cat' is found where 'cats' would run on into a longer word. Chinese
    names are found anywhere. White space inside a name may be of any kind
    and length.

    Args:
        text: as given; the offsets are in it.
        graph: whose entities are looked for, by their heads and other names.
        words: for a text that is split into words already, their spans in
            characters: a mention then is one or more whole words, and the
            space between two Chinese words doesn't part a name.
        sentence: stored in every mention.
        rules: how a name may differ from the graph's.
    """
    taken: list[Mention] = []
    for mention in _candidates(text, graph, words, sentence, rules, taken):
        if not taken or mention.start >= taken[-1].end:
            taken.append(mention)
    return tuple(taken)


def find_all_names(
    text: str,
    graph: KnowledgeGraph,
    *,
    words: Sequence[tuple[int, int]] | None = None,
    sentence: int = 0,
    rules: NameRules = ALL_RULES,
) -> tuple[tuple[Mention, ...], tuple[PassedOver, ...]]:
    """Find the mentions, and the names that were passed over for them.

    Args:
        as for :func:`find_mentions`.
    """
    every = list(_candidates(text, graph, words, sentence, rules))
    taken = find_mentions(text, graph, words=words, sentence=sentence, rules=rules)
    passed_over = []
    following = iter(taken)
    over = next(following, None)
    for mention in every:  # by their starts
        while over is not None and over.end <= mention.start:
            over = next(following, None)
        if over is not None and over != mention:
            passed_over.append(PassedOver(mention, over))
    return taken, tuple(passed_over)


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


def read_at(
    graph: KnowledgeGraph,
    key: str,
    text: str,
    span: tuple[int, int],
    rules: NameRules,
    known: Known,
) -> tuple[tuple[int, int], Meanings]:
    """Say what a name in a text may mean, a dash beside it taken along where it is part of it.

    Args:
        key: under which the name is looked up.
        text: as given.
        span: of the name in it, without the dashes around it.
        known: what was found out before about the same graph and rules; added to.

    Returns:
        The span, wider by such dashes, and the meanings.
    """
    best: tuple[tuple[int, int], Meanings] = span, []
    for start, end in _with_dashes(text, *span):
        what = key, text[start:end]
        if what not in known:
            known[what] = meanings(graph, *what, rules)
        found = known[what]
        if found and (not best[1] or _cost(found[0][1]) <= _cost(best[1][0][1])):
            best = (start, end), found
    return best


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


def _candidates(
    text: str,
    graph: KnowledgeGraph,
    words: Sequence[tuple[int, int]] | None,
    sentence: int,
    rules: NameRules,
    taken: Sequence[Mention] = (),
) -> Iterator[Mention]:
    """Yield every name that stands alone: by its start, the longest first.

    Args:
        taken: no name is looked for before the end of the last of these; it
            may grow meanwhile.
    """
    loose = loosen(text)
    starts, ends = loose.starts, loose.ends
    known: Known = {}
    begins = stops = None
    if words is not None:
        begins, stops = {start for start, _ in words}, {end for _, end in words}
    for place in graph.places(loose.text):
        start = starts[place]
        if taken and start < taken[-1].end:
            continue
        keys = graph.names_at(loose.text, place)
        if not keys or _cut(loose, place) or (begins is not None and start not in begins):
            continue
        for key in reversed(keys):
            after = place + len(key)
            end: int | None = ends[after - 1]
            if _cut(loose, after):
                end = plural_end(text, ends[after - 1]) if rules.plural else None
            if end is None or (stops is not None and end not in stops):
                continue
            span, found = read_at(graph, key, text, (start, end), rules, known)
            if words is not None and (not found or span != (start, end)):
                span, apart = (start, end), text[start:end]
                joined = _without_spaces_between_words(apart)
                found = known[key, apart] or meanings(graph, key, joined, rules)
            if found:
                (entity, by_rules), *more = found
                others = tuple(other for other, _ in more)
                yield Mention(*span, entity, sentence, others, by_rules)


def _cut(loose: NormalisedText, place: int) -> bool:
    """Say whether a border before a character would cut a character, or a word."""
    text = loose.text
    if not 0 < place < len(text):
        return False
    if loose.starts[place] == loose.starts[place - 1]:
        return True
    return (
        loose.ends[place - 1] == loose.starts[place]  # else something stands between
        and is_word_character(text[place])
        and is_word_character(text[place - 1])
    )


def _without_spaces_between_words(span: str) -> str:
    """Drop the spaces that stand between two words written without spaces."""
    if " " not in span:
        return span
    return "".join(
        c
        for i, c in enumerate(span)
        if c != " " or is_word_character(span[i - 1]) or is_word_character(span[i + 1])
    )
