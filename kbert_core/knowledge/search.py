"""Looking through a graph in memory: by text, relation, type; and what there is to choose from.

``store.search`` does the same in a graph file, where it may have millions of triples.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import chain, islice
from typing import Any, Literal

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.tools.check import TYPE_RELATIONS
from kbert_core.knowledge.triple import Triple

Where = Literal["anywhere", "head", "head_starts", "tail"]


@dataclass(frozen=True)
class Query:
    """What is looked for; all of it has to hold.

    Attributes:
        text: stands in the triple, in any case or width; "": any triple.
        where: in which field.
        relations: one of these; none given: any.
        types: the entity has one of these types; none given: any.
        off: only triples that are switched off.
    """

    text: str = ""
    where: Where = "anywhere"
    relations: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    off: bool = False

    @property
    def folded(self) -> str:
        """The text as names are compared."""
        return normalise_name(self.text)

    @property
    def everything(self) -> bool:
        """Whether every triple is found."""
        return not (self.folded or self.relations or self.types or self.off)


@dataclass(frozen=True)
class Found:
    """One page of what was found.

    Attributes:
        triples: in order.
        on: for each, whether it is switched on.
        total: how many are found on all pages; None: they were not counted.
        next: where the next page begins; None: this is the last.
        complete: False: the time was over before the page was full.
    """

    triples: tuple[Triple, ...] = ()
    on: tuple[bool, ...] = ()
    total: int | None = None
    next: Any = None
    complete: bool = True


@dataclass(frozen=True)
class Facets:
    """How many triples have each relation, and how many each type, the most first.

    Attributes:
        relations, types: counts by name.
        complete: False: the time was over before all were counted.
    """

    relations: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    complete: bool = True

    @classmethod
    def of(cls, relations: Counter[str], types: Counter[str], *, complete: bool = True) -> "Facets":
        """Put counts into order; what is there no more is left out."""
        known, kinds = (
            {name: count for name, count in counts.most_common() if count > 0}
            for counts in (relations, types)
        )
        return cls(known, kinds, complete)

    def changed(
        self, gone: Collection[Triple], come: Collection[Triple], types: Collection[str]
    ) -> "Facets":
        """Return the counts once some triples are gone and others have come."""
        relations, kinds = Counter(self.relations), Counter(self.types)
        for triples, sign in ((gone, -1), (come, 1)):
            for triple in triples:
                relations[triple.relation] += sign
                if triple.relation in types:
                    kinds[triple.tail] += sign
        return Facets.of(relations, kinds, complete=self.complete)


class TripleIndex:
    """Looks through a graph in memory, entity by entity.

    Args:
        graph: whose triples are counted, and whose names are completed.

    Attributes:
        facets: of the graph.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph
        self._folded = _Folded()
        relations = Counter(triple.relation for triple in graph)
        types = Counter(triple.tail for triple in graph if triple.relation in TYPE_RELATIONS)
        self.facets = Facets.of(relations, types)

    def __len__(self) -> int:
        return len(self._graph)

    def find(
        self,
        query: Query,
        *,
        graph: KnowledgeGraph | None = None,
        changed: Collection[str] = (),
        start: int | None = None,
        most: int | None = None,
    ) -> Found:
        """Find triples of the graph, or of one that was edited from it.

        Args:
            query: what is looked for.
            graph: as edited.
            changed: the entities that were edited.
            start: the page's first, a ``Found.next``.
            most: of the page; None: all.

        Returns:
            In graph order, entities that came by edits first; of those found
            by a text, first the entity called so, then those that begin so.
        """
        graph = graph or self._graph
        begin = start or 0
        end = None if most is None else begin + most
        new = {entity for entity in changed if not self._graph.triples_of(entity)}
        items = chain(
            ((entity, graph.triples_of(entity)) for entity in sorted(new)),
            (item for item in graph.items() if item[0] not in new),
        )
        matches = list(matching(query, graph, items, self._folded))
        if wanted := query.folded:
            heads = (normalise_name(triple.head) for triple in matches)
            ranks = [(head != wanted) + (not head.startswith(wanted)) for head in heads]
            matches = [matches[i] for i in sorted(range(len(matches)), key=ranks.__getitem__)]
        page = matches[begin:end]
        following = end if end is not None and len(matches) > end else None
        return Found(tuple(page), tuple(map(graph.is_on, page)), len(matches), following)

    def heads(self, start: str, most: int = 8) -> list[str]:
        """Return names of entities that begin with a text, the shortest first."""
        folded = normalise_name(start)
        near = (entity for entity in self._graph.entities() if entity.startswith(folded))
        return nsmallest(most, near, key=len)

    def tails(self, relation: str, start: str, most: int = 8) -> list[str]:
        """Return tails of a relation, "": of any, that begin with a text."""
        folded = normalise_name(start)
        counts = Counter(
            triple.tail
            for triple in self._graph
            if relation in ("", triple.relation) and self._folded[triple.tail].startswith(folded)
        )
        return [tail for tail, _ in counts.most_common(most)]

    def tailed(self, name: str, most: int = 20) -> list[Triple]:
        """Return triples whose tail is a name."""
        folded = normalise_name(name)
        return list(islice((t for t in self._graph if self._folded[t.tail] == folded), most))


class _Folded(dict[str, str]):
    """A name → as names are compared; relations and tails repeat."""

    def __missing__(self, name: str) -> str:
        folded = self[name] = normalise_name(name)
        return folded


def matching(
    query: Query,
    graph: KnowledgeGraph,
    items: Iterable[tuple[str, tuple[Triple, ...]]],
    folded: dict[str, str] | None = None,
) -> Iterator[Triple]:
    """Yield the triples that a query finds.

    Args:
        query: what is looked for.
        graph: says which of them are on.
        items: entities, each with its triples.
        folded: names as they are compared, by name, to be added to.
    """
    folded = _Folded() if folded is None else folded
    found = _text_test(query, folded)
    for entity, triples in items:
        if query.types and not any(
            t.tail in query.types for t in triples if t.relation in TYPE_RELATIONS
        ):
            continue
        for triple in triples:
            if (
                (found is None or found(entity, triple))
                and (not query.relations or triple.relation in query.relations)
                and not (query.off and graph.is_on(triple))
            ):
                yield triple


def _text_test(query: Query, folded: dict[str, str]) -> Callable[[str, Triple], bool] | None:
    """Whether a query's text is in a triple of an entity; None: there is no text."""
    wanted = query.folded
    if not wanted:
        return None
    if query.where == "head":
        return lambda entity, triple: wanted in entity
    if query.where == "head_starts":
        return lambda entity, triple: entity.startswith(wanted)
    if query.where == "tail":
        return lambda entity, triple: wanted in folded[triple.tail]
    return lambda entity, triple: (
        wanted in entity or wanted in folded[triple.relation] or wanted in folded[triple.tail]
    )
