"""Mention: a place in a text that names an entity of the graph."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import NormalisedText, is_word_character, normalise


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity name in a text.

    Attributes:
        start, end: in characters of the text as given; end exclusive.
        entity: the name as names are compared, the key in the graph.
        sentence: 0 for the first sentence of the input, 1 for the second.
        others: other entities that the same name may mean, in graph order.
    """

    start: int
    end: int
    entity: str
    sentence: int = 0
    others: tuple[str, ...] = ()

    @property
    def entities(self) -> tuple[str, ...]:
        """Every entity that the name may mean."""
        return (self.entity, *self.others)


def find_mentions(
    text: str,
    graph: KnowledgeGraph,
    *,
    words: Sequence[tuple[int, int]] | None = None,
    sentence: int = 0,
) -> tuple[Mention, ...]:
    """Find the entities that a text names: leftmost-longest, non-overlapping.

    A name that begins or ends with a Latin letter or digit counts only at a
    word boundary there, and that is tested before the longest is chosen, so
    'cat' is found where 'cats' would run on into a longer word. Chinese
    names are found anywhere. White space inside a name may be of any kind
    and length.

    Args:
        text: as given; it is normalised here and the offsets lead back.
        graph: whose heads are looked for.
        words: for a text that is split into words already, their spans in
            characters: a mention then is one or more whole words, and the
            space between two Chinese words doesn't part a name.
        sentence: stored in every mention.
    """
    normal = normalise(text)
    if words is None:
        return _leftmost_longest(_candidates(normal, graph, sentence))
    begins = {start for start, _ in words}
    stops = {end for _, end in words}
    found = [
        mention
        for view in (normal, _joined_words(normal))
        for mention in _candidates(view, graph, sentence)
        if mention.start in begins and mention.end in stops
    ]
    return _leftmost_longest(sorted(found, key=lambda mention: (mention.start, -mention.end)))


def _candidates(normal: NormalisedText, graph: KnowledgeGraph, sentence: int) -> Iterator[Mention]:
    """Yield every name that stands alone: by its start, the longest first."""
    for place, names in graph.names_in(normal.text):
        for name in reversed(names):
            end = place + len(name)
            if _stands_alone(normal, place, end):
                yield Mention(normal.starts[place], normal.ends[end - 1], name, sentence)


def _leftmost_longest(candidates: Iterable[Mention]) -> tuple[Mention, ...]:
    """Take each candidate that doesn't overlap the one taken before it."""
    taken: list[Mention] = []
    for mention in candidates:
        if not taken or mention.start >= taken[-1].end:
            taken.append(mention)
    return tuple(taken)


def _stands_alone(normal: NormalisedText, start: int, end: int) -> bool:
    """Test the borders of a candidate: characters not cut, words not cut."""
    text = normal.text
    if start and (
        normal.starts[start - 1] == normal.starts[start]
        or (is_word_character(text[start]) and is_word_character(text[start - 1]))
    ):
        return False
    return end == len(text) or not (
        normal.starts[end] == normal.starts[end - 1]
        or (is_word_character(text[end - 1]) and is_word_character(text[end]))
    )


def _joined_words(normal: NormalisedText) -> NormalisedText:
    """Drop the spaces that stand between two words written without spaces."""
    text = normal.text
    kept = [
        i
        for i, c in enumerate(text)
        if c != " "
        or i in (0, len(text) - 1)
        or is_word_character(text[i - 1])
        or is_word_character(text[i + 1])
    ]
    return NormalisedText(
        "".join(text[i] for i in kept),
        [normal.starts[i] for i in kept],
        [normal.ends[i] for i in kept],
    )
