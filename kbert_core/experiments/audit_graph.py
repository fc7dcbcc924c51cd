"""A graph as an audit sees it: what its heads are, and how clearly it says so."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kbert_core.data.labelled import Example
from kbert_core.experiments.audit_values import Group, Heads, Share
from kbert_core.experiments.dictionary import learn_tail_labels
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import Triple

HEADS_OF_A_TYPE = 10  # a relation says types if a tail of it is shared by so many heads on average
SHOWN_GROUPS = 20
SHOWN_EXAMPLES = 10


@dataclass(frozen=True)
class AuditedGraph:
    """A graph, and what its heads are.

    Attributes:
        graph: only of triples that can be injected.
        triples: of each of its heads, as names are compared.
        relation: that looks like a type; see ``Heads``.
        tails: per head its tails under that relation.
        tail_labels: tail → label, learnt from the training set.
    """

    graph: KnowledgeGraph
    triples: Mapping[str, Sequence[Triple]]
    relation: str | None
    tails: Mapping[str, tuple[str, ...]]
    tail_labels: Mapping[str, str]

    @classmethod
    def of(
        cls, graph: KnowledgeGraph, options: InjectionOptions, train: Sequence[Example]
    ) -> "AuditedGraph":
        """Look at the triples that the options let in; learn labels from the training set."""
        kept = _usable(graph, options)
        triples = {entity: kept.triples_of(entity) for entity in kept.entities()}
        relation = _type_relation(triples)
        tails: dict[str, tuple[str, ...]] = {}
        for entity, its_triples in triples.items():
            own = [t.tail for t in its_triples if t.relation == relation]
            if own:
                tails[entity] = tuple(dict.fromkeys(own) if len(own) > 1 else own)
        return cls(kept, triples, relation, tails, learn_tail_labels(train, kept))

    @property
    def entities(self) -> Collection[str]:
        """Its heads, as names are compared."""
        return self.triples.keys()

    def is_ambiguous(self, entity: str) -> bool:
        """Whether a head has several types, or without types tails of several labels."""
        if self.relation is None:
            return len(self._labels(t.tail for t in self.triples[entity])) > 1
        return len(self.tails.get(entity, ())) > 1

    def ambiguity(self, task: str) -> Heads:
        """How clearly the graph says what its heads are."""
        several = [entity for entity, tails in self.tails.items() if len(tails) > 1]
        labels = None
        if task == "ner":
            counts = [len(self._labels(tails)) for tails in self._telling()]
            labels = Share(sum(n > 1 for n in counts), sum(n > 0 for n in counts))
        return Heads(
            self.relation,
            Share(len(several), len(self.tails)),
            tuple((entity, self.tails[entity]) for entity in several[:SHOWN_EXAMPLES]),
            labels,
        )

    def groups(self, gold: set[str]) -> list[tuple[Group, set[str]]]:
        """What heads have in common, with those heads that are gold; the largest group first."""
        heads: dict[str, set[str]] = {}
        for entity, its_triples in self.triples.items():
            names: Iterable[str] = self.tails.get(entity, ())
            if self.relation is None:
                names = {triple.relation for triple in its_triples}
            for name in names:
                heads.setdefault(name, set()).add(entity)
        made = [
            (Group(name, Share(len(own & gold), len(own))), own & gold)
            for name, own in heads.items()
        ]
        return sorted(made, key=lambda item: (-item[0].gold.total, item[0].name))

    def most_used_tails(self) -> dict[str, str]:
        """What the most frequent tails stand for: of types, if there are types."""
        counts = Counter(
            t.tail
            for its_triples in self.triples.values()
            for t in its_triples
            if t.tail in self.tail_labels and self.relation in (None, t.relation)
        )
        return {tail: self.tail_labels[tail] for tail, _ in counts.most_common(SHOWN_GROUPS)}

    def _telling(self) -> Iterable[Iterable[str]]:
        """The tails that say what a head is: its types, or all of them without types."""
        if self.relation is not None:
            return self.tails.values()
        return ([t.tail for t in its_triples] for its_triples in self.triples.values())

    def _labels(self, tails: Iterable[str]) -> set[str]:
        """The labels that tails stand for."""
        return {self.tail_labels[tail] for tail in tails if tail in self.tail_labels}


def _usable(graph: KnowledgeGraph, options: InjectionOptions) -> KnowledgeGraph:
    """The graph of the triples that can be injected."""
    if graph.all_on and options.relations is None and not options.not_relations:
        return graph
    usable = [t for t in graph if graph.is_on(t) and options.allows(t.relation)]
    return KnowledgeGraph(usable, name=graph.name, aliases=graph.aliases)


def _type_relation(by_entity: Mapping[str, Sequence[Triple]]) -> str | None:
    heads: Counter[str] = Counter()
    tails: dict[str, set[str]] = {}
    for its_triples in by_entity.values():
        for relation in {triple.relation for triple in its_triples}:
            heads[relation] += 1
        for triple in its_triples:
            tails.setdefault(triple.relation, set()).add(triple.tail)
    types = [r for r in heads if heads[r] >= HEADS_OF_A_TYPE * len(tails[r])]
    return max(types, key=lambda relation: heads[relation], default=None)
