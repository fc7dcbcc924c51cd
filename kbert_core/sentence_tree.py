"""SentenceTree: a text with the triples of its entities hung on as branches.

The two steps of the paper's knowledge layer: K-Query finds the triples,
K-Inject hangs them on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kbert_core.errors import TextError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention, find_mentions
from kbert_core.knowledge.selection import InjectionOptions, LeftOut, select
from kbert_core.knowledge.triples import Triple

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Queried:
    """One mention with the triples K-Query chose for it.

    Attributes:
        mention: where in the text.
        used: triples to inject, in graph order.
        left_out: the entity's other triples, each with its rule.
    """

    mention: Mention
    used: tuple[Triple, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """A triple hanging from a mention.

    Attributes:
        triple: what the branch says.
        texts: what it reads: relation and tail, or the tail alone.
    """

    triple: Triple
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A mention in the tree, and its branches in reading order."""

    mention: Mention
    branches: tuple[Branch, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class SentenceTree:
    """A trunk of one or two sentences with branches of depth 1 (Eq. 2).

    Attributes:
        sentences: the texts as given.
        nodes: the mentions in reading order.
        words: per sentence the spans of its words, for a text that came split.
    """

    sentences: tuple[str, ...]
    nodes: tuple[Node, ...]
    words: tuple[tuple[tuple[int, int], ...], ...] | None = None

    @property
    def used(self) -> tuple[Triple, ...]:
        """The triples that hang in the tree, in reading order."""
        return tuple(branch.triple for node in self.nodes for branch in node.branches)


def k_query(
    sentences: Sequence[str],
    graph: KnowledgeGraph,
    options: InjectionOptions = InjectionOptions(),
    *,
    words: Sequence[Sequence[tuple[int, int]]] | None = None,
) -> tuple[Queried, ...]:
    """Find the entities of a text and their triples: E = K_Query(s, K) (Eq. 1).

    Args:
        sentences: one or two texts.
        graph: K.
        options: how many triples a mention gets, and which.
        words: per sentence the spans of its words, if the text is split.

    Raises:
        TextError: not one or two sentences, or a character that is none.
    """
    if not 1 <= len(sentences) <= 2:
        raise TextError(f"Got {len(sentences)} sentences, expected one or two.")
    queried = []
    for number, text in enumerate(sentences):
        check_characters(text)
        spans = words[number] if words is not None else None
        for mention in find_mentions(text, graph, words=spans, sentence=number):
            used, left_out = select(mention.entity, graph, options)
            queried.append(Queried(mention, used, left_out))
    return tuple(queried)


def check_characters(text: str) -> None:
    """Refuse a text that holds half a character.

    Raises:
        TextError: with its place.
    """
    broken = _SURROGATE.search(text)
    if broken:
        raise TextError(
            f"Character {broken.start()} of the text is half a character "
            f"(surrogate U+{ord(broken.group()):04X}). Take it out."
        )


def k_inject(
    sentences: Sequence[str],
    queried: Sequence[Queried],
    options: InjectionOptions = InjectionOptions(),
    *,
    words: Sequence[Sequence[tuple[int, int]]] | None = None,
) -> SentenceTree:
    """Hang the triples on their mentions: t = K_Inject(s, E) (Eq. 2)."""
    nodes = tuple(
        Node(q.mention, tuple(branch_of(triple, options) for triple in q.used), q.left_out)
        for q in queried
    )
    split = tuple(tuple(spans) for spans in words) if words is not None else None
    return SentenceTree(tuple(sentences), nodes, split)


def branch_of(triple: Triple, options: InjectionOptions) -> Branch:
    """Say what the branch of a triple reads."""
    texts = (triple.tail,) if options.tail_only else (triple.relation, triple.tail)
    return Branch(triple, texts)


def grow_tree(
    sentences: Sequence[str],
    graph: KnowledgeGraph,
    options: InjectionOptions = InjectionOptions(),
    *,
    words: Sequence[Sequence[tuple[int, int]]] | None = None,
) -> SentenceTree:
    """K-Query, then K-Inject: the whole knowledge layer."""
    queried = k_query(sentences, graph, options, words=words)
    return k_inject(sentences, queried, options, words=words)
