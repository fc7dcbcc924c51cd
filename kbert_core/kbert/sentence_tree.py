"""SentenceTree: a text with the triples of its entities hung on as branches.

The two steps of the paper's knowledge layer: K-Query finds the triples,
K-Inject hangs them on.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from kbert_core.errors import TextError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention, PassedOver, find_all_names, find_mentions
from kbert_core.knowledge.selection import (
    Asked,
    InjectionOptions,
    LeftOut,
    Reason,
    TripleScorer,
    select_all,
)
from kbert_core.knowledge.surface_forms import ALL_RULES, NameRules
from kbert_core.knowledge.triple import Triple

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Queried:
    """One mention with the triples K-Query chose for it.

    Attributes:
        mention: where in the text.
        used: triples to inject, the best first; in graph order where the
            strategy finds none better.
        left_out: its other triples, each with its rule.
        reasons: why each of ``used`` is.
    """

    mention: Mention
    used: tuple[Triple, ...]
    left_out: tuple[LeftOut, ...]
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A triple hanging from a mention.

    Attributes:
        triple: what the branch says.
        texts: what it reads: relation and tail, or the tail alone.
        reason: why it was chosen; None where nobody chose.
    """

    triple: Triple
    texts: tuple[str, ...]
    reason: Reason | None = field(default=None, compare=False)


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
    scorer: TripleScorer | None = None,
) -> tuple[Queried, ...]:
    """Find the entities of a text and their triples: E = K_Query(s, K) (Eq. 1).

    Args:
        sentences: one or two texts.
        graph: K.
        options: how many triples a mention gets, and which.
        words: per sentence the spans of its words, if the text is split.
        scorer: for options that score triples with a model.

    Raises:
        TextError: not one or two sentences, or a character that is none.
        OptionError: the options need a scorer, and there is none.
    """
    found = list(mentions_in(sentences, graph, words=words, rules=options.names))
    return choose([(sentences, found)], graph, options, scorer=scorer)[0]


def mentions_in(
    sentences: Sequence[str],
    graph: KnowledgeGraph,
    *,
    words: Sequence[Sequence[tuple[int, int]]] | None = None,
    rules: NameRules = ALL_RULES,
) -> Iterator[Mention]:
    """Find the entities that a text names, in reading order; arguments as for :func:`k_query`."""
    if not 1 <= len(sentences) <= 2:
        raise TextError(f"Got {len(sentences)} sentences, expected one or two.")
    for number, text in enumerate(sentences):
        check_characters(text)
        spans = words[number] if words is not None else None
        yield from find_mentions(text, graph, words=spans, sentence=number, rules=rules)


def choose(
    found: Sequence[tuple[Sequence[str], Sequence[Mention]]],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    *,
    scorer: TripleScorer | None = None,
) -> list[tuple[Queried, ...]]:
    """Choose the triples of the mentions of many texts, all at once.

    Args:
        found: per text its sentences and its mentions.
        other arguments: as for :func:`k_query`.
    """
    asked = [Asked(tuple(texts), mention) for texts, mentions in found for mention in mentions]
    chosen = iter(zip(asked, select_all(asked, graph, options, scorer), strict=True))
    return [
        tuple(
            Queried(one.mention, made.used, made.left_out, made.reasons)
            for one, made in islice(chosen, len(mentions))
        )
        for _, mentions in found
    ]


def passed_over(
    tree: SentenceTree, graph: KnowledgeGraph, rules: NameRules = ALL_RULES
) -> tuple[PassedOver, ...]:
    """Find the names in a tree's text that are no mentions, as they overlap one.

    Args:
        tree: grown with the same graph and rules.
    """
    found: list[PassedOver] = []
    for number, text in enumerate(tree.sentences):
        words = tree.words[number] if tree.words is not None else None
        _, over = find_all_names(text, graph, words=words, sentence=number, rules=rules)
        found += over
    return tuple(found)


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
    nodes = tuple(Node(q.mention, _branches(q, options), q.left_out) for q in queried)
    split = tuple(tuple(spans) for spans in words) if words is not None else None
    return SentenceTree(tuple(sentences), nodes, split)


def _branches(queried: Queried, options: InjectionOptions) -> tuple[Branch, ...]:
    reasons = queried.reasons or (None,) * len(queried.used)
    pairs = zip(queried.used, reasons, strict=True)
    return tuple(branch_of(triple, options, reason) for triple, reason in pairs)


def branch_of(triple: Triple, options: InjectionOptions, reason: Reason | None = None) -> Branch:
    """Say what the branch of a triple reads."""
    texts = (triple.tail,) if options.tail_only else (triple.relation, triple.tail)
    return Branch(triple, texts, reason)


def grow_tree(
    sentences: Sequence[str],
    graph: KnowledgeGraph,
    options: InjectionOptions = InjectionOptions(),
    *,
    words: Sequence[Sequence[tuple[int, int]]] | None = None,
    scorer: TripleScorer | None = None,
) -> SentenceTree:
    """K-Query, then K-Inject: the whole knowledge layer; arguments as for :func:`k_query`."""
    queried = k_query(sentences, graph, options, words=words, scorer=scorer)
    return k_inject(sentences, queried, options, words=words)
