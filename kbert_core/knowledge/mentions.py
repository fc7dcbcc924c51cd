"""Mention: a place in a text that names an entity of the graph."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import NormalisedText, is_word_character, loosen, normalise_name
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
    for mention in every:
        over = next(t for t in taken if t.start < mention.end and mention.start < t.end)
        if over != mention:
            passed_over.append(PassedOver(mention, over))
    return taken, tuple(passed_over)


def meanings(
    graph: KnowledgeGraph, key: str, span: str, rules: NameRules
) -> list[tuple[str, tuple[NameRule, ...]]]:
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
    for entity in meant:
        heads = dict.fromkeys(triple.head for triple in graph.triples_of(entity))
        taken = agreement(span, heads, rules)
        if taken is not None:
            found[entity] = taken
    if rules.alias:
        found |= _by_other_names(graph, meant, span, rules, found)
    nearest = min((_spelling(taken) for taken in found.values()), default=0)
    ordered = [(e, found[e]) for e in meant if e in found and _spelling(found[e]) == nearest]
    return sorted(ordered, key=lambda item: len(item[1]))


def _spelling(taken: tuple[NameRule, ...]) -> int:
    """Count the rules that forgive how a name is spelt."""
    return sum(rule not in (NameRule.SENSE, NameRule.ALIAS) for rule in taken)


def _by_other_names(
    graph: KnowledgeGraph,
    meant: Sequence[str],
    span: str,
    rules: NameRules,
    own: dict[str, tuple[NameRule, ...]],
) -> dict[str, tuple[NameRule, ...]]:
    """The entities that a triple says another name of, and the text has that name."""
    found: dict[str, tuple[NameRule, ...]] = {}
    aliases = graph.aliases
    for entity in meant:
        for triple in graph.triples_of(entity):
            said = aliases.aliases_in(triple)
            if said is None or not graph.is_on(triple):
                continue
            alias, named = said
            named = normalise_name(named)
            if named in own or named in found or not graph.triples_of(named):
                continue
            taken = agreement(span, (alias,), rules)
            if taken is not None:
                found[named] = (*taken, NameRule.ALIAS)
    return found


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
            found = meanings(graph, key, text[start:end], rules)
            if not found and words is not None:
                span = _without_spaces_between_words(text[start:end])
                found = meanings(graph, key, span, rules)
            if found:
                (entity, by_rules), *more = found
                others = tuple(other for other, _ in more)
                yield Mention(start, end, entity, sentence, others, by_rules)


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
