"""The knowledge layer: a text, with its entities' triples hung on as branches (K-BERT, Eq. 1, 2).

The two steps of the paper's knowledge layer, each over a list of texts:
K-Query finds the entities and their triples, K-Inject hangs the triples on.
Inside, all trees are arrays; a tree, its nodes and its mentions are made when asked for.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from kbert_core.errors import TextError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import (
    Mention,
    Mentions,
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
from kbert_core.tokens import Ints, Many, before

WordSpans = Sequence[Spans]  # per sentence the spans of its words
_growing = Lock()


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
    """A trunk of one or two sentences with branches of depth 1 (Eq. 2), at nodes in reading order.

    Attributes:
        words: the spans of the words of each sentence, if the text was given as words.
    """

    sentences: tuple[str, ...]
    nodes: tuple[Node, ...]
    words: WordSpans | None = None

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


class Branches:
    """The branches of different names, by number; names are added and never removed.

    Attributes:
        used, left_out: for each name, see :class:`Node`.
        spans: the names as the texts write them, if the branches are kept with a graph.
        tokens: the tokens of all branches, for each tokenizer.
    """

    def __init__(self, spans: Sequence[str] = ()) -> None:
        self.spans = spans
        self.used: list[tuple[Branch, ...]] = []
        self.left_out: list[tuple[LeftOut, ...]] = []
        self.tokens: MutableMapping[Any, Any] = WeakKeyDictionary()

    def add(self, selections: Iterable[Selection], options: InjectionOptions) -> None:
        """Add what was chosen for more names."""
        for selection in selections:
            own = map(branch_of, selection.used, repeat(options), selection.reasons)
            self.left_out.append(selection.left_out)
            self.used.append(tuple(own))

    @classmethod
    def of(cls, mentions: Mentions, graph: KnowledgeGraph, options: InjectionOptions) -> "Branches":
        """Choose triples for names whose choice is the same in every text; kept with the graph."""
        spans = mentions.spans
        branches = graph.kept((cls, options), lambda: cls(spans))
        if branches.spans is not spans:  # the names were begun anew
            graph.forget((cls, options))
            return cls.of(mentions, graph, options)
        if len(branches.used) < len(spans):
            with _growing:
                new = range(len(branches.used), len(spans))
                asked = [mentions.alone(name) for name in new]
                read = [(spans[name],) for name in new]
                branches.add(select_triples(read, asked, graph, options), options)
        return branches


@dataclass(frozen=True)
class Nodes(Many[tuple[Node, ...]]):
    """The M nodes of B texts; an item is the nodes of one text.

    Attributes:
        mentions: the M mentions in the S sentences of all texts.
        sizes: (B,) the number of sentences of each text.
        names: (M,) the name, by its number in ``branches``, to which a node belongs.
        branches: the branches of different names.
    """

    mentions: Mentions
    sizes: Ints
    names: Ints
    branches: Branches

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def begins(self) -> Ints:
        """(B + 1,) the first sentence of each text, and S."""
        return np.concatenate([[0], self.sizes.cumsum()])

    @cached_property
    def firsts(self) -> Ints:
        """(B + 1,) the first node of each text, and M."""
        return self.mentions.rows.searchsorted(self.begins)

    def item(self, index: int) -> tuple[Node, ...]:
        """The nodes of one text."""
        nodes, branches = [], self.branches
        for number in range(*self.firsts[index : index + 2].tolist()):
            sentence = int(self.mentions.rows[number] - self.begins[index])
            mention, name = self.mentions.mention(number, sentence), self.names[number]
            nodes.append(Node(mention, branches.used[name], branches.left_out[name]))
        return tuple(nodes)


@dataclass(frozen=True)
class Trees(Many[SentenceTree]):
    """The sentence trees of B texts.

    Attributes:
        nodes: the nodes of all trees.
        words: for each text as in :class:`SentenceTree`; None: no text was given as words.
        given: the trees themselves, if they were made one by one.
    """

    nodes: Nodes
    words: Sequence[WordSpans | None] | None = None
    given: Sequence[SentenceTree] | None = None

    @classmethod
    def of(cls, trees: Sequence[SentenceTree]) -> "Trees":
        """Put trees that were made or changed one by one into arrays.

        Raises:
            TextError: something is no tree.
        """
        if isinstance(trees, Trees):
            return trees
        for tree in trees:
            if not isinstance(tree, SentenceTree):
                raise TextError(
                    f"Got {tree!r:.60}, expected a sentence tree. Make trees of texts with "
                    "grow_trees, or with k_inject of what k_query finds."
                )
        sizes = np.fromiter((len(tree.sentences) for tree in trees), np.int64, len(trees))
        begins = zip(before(sizes).tolist(), trees, strict=True)
        every = [(begin, node) for begin, tree in begins for node in tree.nodes]
        places = [(at + n.mention.sentence, n.mention.start, n.mention.end) for at, n in every]
        sentences = [sentence for tree in trees for sentence in tree.sentences]
        names, branches = np.arange(len(every)), Branches()
        branches.used = [node.branches for _, node in every]
        branches.left_out = [node.left_out for _, node in every]
        rows, starts, ends = np.array(places, np.int64).reshape(-1, 3).T
        mentions = Mentions(sentences, rows, starts, ends, names, (), ())
        nodes = Nodes(mentions, sizes, names, branches)
        return cls(nodes, given=list(trees))

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def sentences(self) -> Sequence[str]:
        """The S sentences of all texts."""
        return self.nodes.mentions.texts

    def item(self, index: int) -> SentenceTree:
        """The tree of one text."""
        if self.given is not None:
            return self.given[index]
        sentences = self.sentences[slice(*self.nodes.begins[index : index + 2].tolist())]
        words = self.words[index] if self.words is not None else None
        words = words if words is None else tuple(map(tuple, words))
        return SentenceTree(tuple(sentences), self.nodes[index], words)


def k_query(
    texts: Sequence[Text],
    graph: KnowledgeGraph,
    options: InjectionOptions = InjectionOptions(),
    *,
    words: Sequence[WordSpans | None] | None = None,
    masks: Sequence[Sequence[Spans]] | None = None,
    scorer: TripleScorer | None = None,
) -> Nodes:
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
    sentences = list(chain.from_iterable(pairs))
    sizes = np.fromiter(map(len, pairs), np.int64, len(pairs))
    _check(sizes, sentences)
    of_words, of_masks = (_by_sentence(spans, pairs) for spans in (words, masks))
    mentions = find_mentions(sentences, graph, rules=options.names, words=of_words, masks=of_masks)
    if not options.by_text:
        return Nodes(mentions, sizes, mentions.names, Branches.of(mentions, graph, options))
    names = np.arange(len(mentions.rows))
    numbers = np.repeat(np.arange(len(pairs)), sizes)[mentions.rows]
    read = [pairs[number] for number in numbers.tolist()]
    within = (mentions.rows - before(sizes)[numbers]).tolist()
    asked = list(map(mentions.mention, names.tolist(), within))
    branches = Branches()
    branches.add(select_triples(read, asked, graph, options, scorer), options)
    return Nodes(mentions, sizes, names, branches)


def k_inject(
    texts: Sequence[Text],
    nodes: Sequence[Sequence[Node]],
    *,
    words: Sequence[WordSpans | None] | None = None,
) -> Trees:
    """Hang the triples on their mentions: t = K_Inject(s, E) (Eq. 2).

    Args:
        texts, words: as for :func:`k_query`.
        nodes: E, as k_query returned it, or changed.
    """
    if isinstance(nodes, Nodes):
        return Trees(nodes, words)
    words = words or [None] * len(texts)
    return Trees.of(list(map(SentenceTree, sentences_of(texts), map(tuple, nodes), words)))


def grow_trees(
    texts: Sequence[Text],
    graph: KnowledgeGraph,
    options: InjectionOptions = InjectionOptions(),
    *,
    words: Sequence[WordSpans | None] | None = None,
    masks: Sequence[Sequence[Spans]] | None = None,
    scorer: TripleScorer | None = None,
) -> Trees:
    """Run K-Query, then K-Inject: the whole knowledge layer; arguments as for :func:`k_query`."""
    nodes = k_query(texts, graph, options, words=words, masks=masks, scorer=scorer)
    return k_inject(texts, nodes, words=words)


def branch_of(triple: Triple, options: InjectionOptions, reason: Reason | None = None) -> Branch:
    """Return the words of a triple's branch."""
    texts = (triple.tail,) if options.tail_only else (triple.relation, triple.tail)
    return Branch(triple, texts, reason)


def passed_over(
    tree: SentenceTree, graph: KnowledgeGraph, rules: NameRules = ALL_RULES
) -> tuple[PassedOver, ...]:
    """Find the names in a tree's text that are no mentions because they overlap a mention."""
    names: list[PassedOver] = []
    for number, text in enumerate(tree.sentences):
        words = tree.words[number] if tree.words is not None else None
        names += find_all_names(text, graph, words=words, sentence=number, rules=rules)[1]
    return tuple(names)


def _by_sentence(
    spans: Sequence[WordSpans | None] | None, pairs: Sequence[tuple[str, ...]]
) -> list[Spans | None] | None:
    if spans is None:
        return None
    per_text = zip(pairs, spans, strict=True)
    return [one for pair, some in per_text for one in (some or repeat(None, len(pair)))]


def _check(sizes: Ints, sentences: Sequence[str]) -> None:
    """Refuse texts that aren't one or two sentences, and half characters."""
    for wrong in sizes[(sizes < 1) | (sizes > 2)].tolist():
        raise TextError(f"Got {wrong} sentences, expected one or two.")
    refuse_half_characters(sentences)
