"""What the names in texts mean: entities, and by which rules; names once met are kept."""

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import DASHES, is_word_character, normalise_name
from kbert_core.knowledge.surface_forms import NameRule, NameRules, agreement

Meanings = list[tuple[str, tuple[NameRule, ...]]]  # entities, each with the rules that it took
MOST_NAMES = 20_000  # kept with a graph
_growing = Lock()


class MetNames:
    """The different names met in texts, as texts write them, for one graph and set of rules.

    They are kept with the graph; numbers stay, and lists only grow.

    Attributes:
        spans, meanings: see ``mentions.Mentions``.
        numbers: of a key and a span; -1: it means nothing.
        as_written: the same of spans that are their keys.
    """

    def __init__(self, graph: KnowledgeGraph, rules: NameRules) -> None:
        self.graph, self.rules = graph, rules
        self.spans: list[str] = []
        self.meanings: list[Meanings] = []
        self.numbers: dict[tuple[str, ...], int] = {}
        self.as_written: dict[str, int] = {}

    @classmethod
    def of(cls, graph: KnowledgeGraph, rules: NameRules) -> "MetNames":
        """Those kept with a graph; begun anew when they are many."""
        names = graph.kept((cls, rules), lambda: cls(graph, rules))
        if len(names.numbers) < MOST_NAMES:
            return names
        graph.forget((cls, rules))
        return cls.of(graph, rules)

    def number(self, key: str, span: str, read_as: str | None = None) -> int:
        """Number a name as the text writes it; -1: it means nothing."""
        what = (key, span) if read_as is None else (key, span, read_as)
        number = self.numbers.get(what)
        if number is None:
            name = meanings(self.graph, key, span if read_as is None else read_as, self.rules)
            with _growing:
                number = self.numbers.get(what, len(self.spans) if name else -1)
                if number == len(self.spans):
                    self.meanings.append(name)
                    self.spans.append(span)
                self.numbers[what] = number
                if what == (key, key):
                    self.as_written[key] = number
        return number

    def of_words(self, key: str, span: str) -> int:
        """Number a name that is made of whole words."""
        number = self.number(key, span)
        joined = _without_spaces_between_words(span)
        return number if number >= 0 else self.number(key, span, joined)

    def beside_dashes(self, key: str, text: str, start: int, end: int) -> tuple[int, int, int]:
        """Number a name, a dash beside it taken along where it is part of it.

        Returns:
            Start, end and number of the one that is written most like the graph's.
        """
        best, least = (start, end, -1), None
        for begin, stop in _with_dashes(text, start, end):
            number = self.number(key, text[begin:stop])
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
