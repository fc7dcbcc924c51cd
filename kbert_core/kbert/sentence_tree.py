"""The knowledge layer: a text, with its entities' triples hung on as branches (K-BERT, Eq. 1, 2).

K-Query finds the entities of texts and their triples, K-Inject hangs these on a text. Names are
found in many texts at once; a tree is of one text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any

from kbert_core.errors import TextError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import (
    MOST_NAMES,
    Mention,
    PassedOver,
    Spans,
    find_all_names,
    find_mentions,
)
from kbert_core.knowledge.selection import (
    InjectionOptions,
    LeftOut,
    Reason,
    Selection,
    TripleScorer,
)
from kbert_core.knowledge.strategies import select_triples
from kbert_core.knowledge.surface_forms import ALL_RULES, NameRules
from kbert_core.knowledge.triple import Triple
from kbert_core.text import Text, refuse_half_characters, sentences_of

WordSpans = Sequence[Spans]  # per sentence the spans of its words


@dataclass(frozen=True, slots=True)
class Branch:
    """A triple hanging from a mention.

    Attributes:
        texts: its words: relation and tail, or the tail alone.
        reason: why it was chosen; None if it was not chosen but given.
    """

    triple: Triple
    texts: tuple[str, ...]
    reason: Reason | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Node:
    """A mention in the tree, with the branches chosen for it, the best first.

    Attributes:
        left_out: its other triples, each with the rule that left it out.
    """

    mention: Mention
    branches: tuple[Branch, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def used(self) -> tuple[Triple, ...]:
        """The triples that hang on the mention."""
        return tuple(branch.triple for branch in self.branches)

    def edited(self, changes: Mapping[Triple, Triple | None], options: InjectionOptions) -> "Node":
        """Return the node with some triples replaced; a triple replaced by None is taken off."""
        new = [(own, changes.get(own.triple, own.triple)) for own in self.branches]
        kept = (own if t is own.triple else branch_of(t, options) for own, t in new if t)
        return replace(self, branches=tuple(kept))


@dataclass(frozen=True, slots=True)
class SentenceTree:
    """A trunk of one or two sentences, with branches of depth 1 (Eq. 2); nodes in reading order."""

    sentences: tuple[str, ...]
    nodes: tuple[Node, ...]

    @property
    def used(self) -> tuple[Triple, ...]:
        """The triples that hang in the tree, in reading order."""
        return tuple(branch.triple for node in self.nodes for branch in node.branches)

    @property
    def by_mention(self) -> tuple[tuple[Mention, tuple[Triple, ...]], ...]:
        """Each mention with the triples that hang on it."""
        return tuple((node.mention, node.used) for node in self.nodes)

    def with_nodes(self, nodes: Sequence[Node]) -> "SentenceTree":
        """Return the same text with other nodes, in reading order."""
        return replace(self, nodes=tuple(nodes))

    @staticmethod
    def node(mention: Mention, triple: Triple, options: InjectionOptions) -> Node:
        """Make a node of a triple."""
        return Node(mention, (branch_of(triple, options),))

    def keeping(self, keep: Callable[[int, Triple], bool]) -> "SentenceTree":
        """Return the tree with only some of its branches.

        Args:
            keep: says, for the index of a node and a triple, whether the branch stays.
        """
        nodes = tuple(
            replace(node, branches=tuple(b for b in node.branches if keep(number, b.triple)))
            for number, node in enumerate(self.nodes)
        )
        return replace(self, nodes=nodes)


def k_query(
    texts: Sequence[Text],
    graph: KnowledgeGraph,
    options: InjectionOptions = InjectionOptions(),
    *,
    words: Sequence[WordSpans | None] | None = None,
    masks: Sequence[Sequence[Spans]] | None = None,
    scorer: TripleScorer | None = None,
) -> list[tuple[Node, ...]]:
    """Find the entities of texts and their triples: E = K_Query(s, K) (Eq. 1).

    Args:
        texts: each a sentence, or a pair of them.
        graph: K.
        options: how many triples a mention gets, and which.
        words: for each text and sentence the spans of its words, if it is split.
        masks: for each text and sentence the spans of its mask tokens; a name
            that touches one is no mention.
        scorer: scores triples, if the options ask for that.

    Raises:
        TextError: a text has more than two sentences or none, or half a character.
        OptionError: the options need a scorer, but none is given.
    """
    pairs = list(sentences_of(texts))
    for sentences in pairs:
        if not 1 <= len(sentences) <= 2:
            raise TextError(f"Got {len(sentences)} sentences, expected one or two.")
    every = list(chain.from_iterable(pairs))
    refuse_half_characters(every)
    of_words, of_masks = (_by_sentence(spans, pairs) for spans in (words, masks))
    found = iter(find_mentions(every, graph, rules=options.names, words=of_words, masks=of_masks))
    mentions = [
        [replace(m, sentence=n) if n else m for n in range(len(pair)) for m in next(found)]
        for pair in pairs
    ]
    asked = [(pair, m) for pair, own in zip(pairs, mentions, strict=True) for m in own]
    selected = iter(_selected(asked, graph, options, scorer))
    return [tuple(Node(mention, *next(selected)) for mention in own) for own in mentions]


def k_inject(text: Text, nodes: Sequence[Node]) -> SentenceTree:
    """Hang the triples on their mentions: t = K_Inject(s, E) (Eq. 2).

    Args:
        text: s, a sentence or a pair of them.
        nodes: E, as k_query returned it, or changed.
    """
    (sentences,) = sentences_of([text])
    return SentenceTree(sentences, tuple(nodes))


def grow_trees(
    texts: Sequence[Text],
    graph: KnowledgeGraph,
    options: InjectionOptions = InjectionOptions(),
    **how: Any,
) -> list[SentenceTree]:
    """Run K-Query, then K-Inject: the whole knowledge layer; arguments as for :func:`k_query`."""
    nodes = k_query(texts, graph, options, **how)
    return [k_inject(text, own) for text, own in zip(texts, nodes, strict=True)]


Hung = tuple[tuple[Branch, ...], tuple[LeftOut, ...]]  # what a node has beside its mention


def _selected(
    asked: Sequence[tuple[tuple[str, ...], Mention]],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    scorer: TripleScorer | None,
) -> list[Hung]:
    """Choose the triples of mentions, each in its text.

    Unless the options ask for the text, a name has the same triples in every text. They are then
    kept with the graph.
    """

    def hung(selection: Selection) -> Hung:
        branches = map(branch_of, selection.used, repeat(options), selection.reasons)
        return tuple(branches), selection.left_out

    if options.by_text:
        texts, mentions = [text for text, _ in asked], [mention for _, mention in asked]
        return list(map(hung, select_triples(texts, mentions, graph, options, scorer)))
    key = _selected, options
    kept: dict[tuple[str, tuple[str, ...]], Hung] = graph.kept(key, dict, most=MOST_NAMES)
    names = [(text[m.sentence][m.start : m.end], m.entities) for text, m in asked]
    new = [name for name in dict.fromkeys(names) if name not in kept]
    alone = [Mention(0, len(name), entity, others=tuple(others)) for name, (entity, *others) in new]
    selections = select_triples([(name,) for name, _ in new], alone, graph, options)
    kept.update(zip(new, map(hung, selections), strict=True))
    return [kept[name] for name in names]


def branch_of(triple: Triple, options: InjectionOptions, reason: Reason | None = None) -> Branch:
    """Return the words of a triple's branch."""
    texts = (triple.tail,) if options.tail_only else (triple.relation, triple.tail)
    return Branch(triple, texts, reason)


def passed_over(
    tree: SentenceTree,
    graph: KnowledgeGraph,
    rules: NameRules = ALL_RULES,
    words: WordSpans | None = None,
) -> tuple[PassedOver, ...]:
    """Find the names in a tree's text that are no mentions because they overlap a mention."""
    of_words = words or repeat(None, len(tree.sentences))
    names: list[PassedOver] = []
    for number, (text, split) in enumerate(zip(tree.sentences, of_words, strict=True)):
        names += find_all_names(text, graph, words=split, sentence=number, rules=rules)[1]
    return tuple(names)


def _by_sentence(
    spans: Sequence[WordSpans | None] | None, pairs: Sequence[tuple[str, ...]]
) -> list[Spans | None] | None:
    if spans is None:
        return None
    per_text = zip(pairs, spans, strict=True)
    return [one for pair, some in per_text for one in (some or repeat(None, len(pair)))]
