"""Looking through a graph in memory: by text, relation, type; and what there is to choose from.

``store.search`` does the same in a graph file, where it may have millions of triples.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice
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
    """The triples of a graph that stays as it is, made ready for searching.

    Args:
        graph: read through once.
        type_relations: whose tails are types.
    """

    def __init__(
        self, graph: KnowledgeGraph, *, type_relations: Collection[str] = TYPE_RELATIONS
    ) -> None:
        self._type_relations = frozenset(type_relations)
        self.triples: list[Triple] = []
        self.entities: list[str] = []
        self.folded: list[str] = []
        self._types: dict[str, set[str]] = {}
        relations: Counter[str] = Counter()
        types: Counter[str] = Counter()
        parts: dict[str, str] = {}  # relations and tails repeat
        for entity, triples in graph.items():
            for triple in triples:
                for name in (triple.relation, triple.tail):
                    if name not in parts:
                        parts[name] = normalise_name(name)
                self.triples.append(triple)
                self.entities.append(entity)
                self.folded.append(f"{entity}\n{parts[triple.relation]}\n{parts[triple.tail]}")
                relations[triple.relation] += 1
                if triple.relation in self._type_relations:
                    types[triple.tail] += 1
                    self._types.setdefault(entity, set()).add(triple.tail)
        self.facets = Facets.of(relations, types)
        self._heads = dict.fromkeys(self.entities)

    def find(
        self,
        query: Query,
        *,
        graph: KnowledgeGraph,
        changed: Collection[str] = (),
        start: int | None = None,
        most: int | None = None,
    ) -> Found:
        """Find triples of a graph that was edited from the one indexed.

        Args:
            query: what is looked for.
            graph: as edited.
            changed: the entities whose triples aren't those indexed.
            start: the page's first, a ``Found.next``.
            most: of the page; None: all.

        Returns:
            In graph order, entities that came by edits first; of those found
            by a text, first the entity called so, then those that begin so.
        """
        begin = start or 0
        end = None if most is None else begin + most
        matches = list(self._matches(query, graph, changed))
        wanted = query.folded
        if wanted:
            parts: tuple[list[Triple], ...] = ([], [], [])
            for triple in matches:
                head = normalise_name(triple.head)
                parts[0 if head == wanted else 1 if head.startswith(wanted) else 2].append(triple)
            matches = [triple for part in parts for triple in part]
        found = matches[begin:end]
        more = end is not None and len(matches) > end
        on = tuple(map(graph.is_on, found))
        return Found(tuple(found), on, len(matches), end if more else None)

    def heads(self, start: str, most: int = 8) -> list[str]:
        """Return names of entities that begin with a text, the shortest first."""
        folded = normalise_name(start)
        near = (entity for entity in self._heads if entity.startswith(folded))
        return nsmallest(most, near, key=len)

    def tails(self, relation: str, start: str, most: int = 8) -> list[str]:
        """Return tails of a relation, "": of any, that begin with a text."""
        folded = normalise_name(start)
        counts = Counter(
            triple.tail
            for triple, text in zip(self.triples, self.folded, strict=True)
            if relation in ("", triple.relation) and text.rpartition("\n")[2].startswith(folded)
        )
        return [tail for tail, _ in counts.most_common(most)]

    def tailed(self, name: str, most: int = 20) -> list[Triple]:
        """Return triples whose tail is a name."""
        ending = f"\n{normalise_name(name)}"
        rows = zip(self.triples, self.folded, strict=True)
        return list(islice((triple for triple, text in rows if text.endswith(ending)), most))

    def _matches(
        self, query: Query, graph: KnowledgeGraph, changed: Collection[str]
    ) -> Iterator[Triple]:
        changed = set(changed)
        for entity in sorted(changed - self._heads.keys()):
            yield from edited_matches(query, graph, entity, self._type_relations)
        test = _test(query)
        relations = frozenset(query.relations)
        types = frozenset(query.types)
        done: set[str] = set()
        for triple, entity, text in zip(self.triples, self.entities, self.folded, strict=True):
            if entity in changed:
                if entity not in done:
                    done.add(entity)
                    yield from edited_matches(query, graph, entity, self._type_relations)
                continue
            if test is not None and not test(entity, text):
                continue
            if relations and triple.relation not in relations:
                continue
            if types and types.isdisjoint(self._types.get(entity, ())):
                continue
            if query.off and graph.is_on(triple):
                continue
            yield triple


def edited_matches(
    query: Query,
    graph: KnowledgeGraph,
    entity: str,
    type_relations: Collection[str] = TYPE_RELATIONS,
) -> Iterator[Triple]:
    """Yield the triples of one entity that a query finds."""
    triples = graph.triples_of(entity)
    own = {triple.tail for triple in triples if triple.relation in type_relations}
    if query.types and own.isdisjoint(query.types):
        return
    test = _test(query)
    for triple in triples:
        text = f"{entity}\n{normalise_name(triple.relation)}\n{normalise_name(triple.tail)}"
        if (
            (test is None or test(entity, text))
            and (not query.relations or triple.relation in query.relations)
            and not (query.off and graph.is_on(triple))
        ):
            yield triple


def _test(query: Query) -> Callable[[str, str], bool] | None:
    """Whether the text is found: of an entity and the three fields, folded."""
    wanted = query.folded
    if not wanted:
        return None
    if query.where == "head":
        return lambda entity, text: wanted in entity
    if query.where == "head_starts":
        return lambda entity, text: entity.startswith(wanted)
    if query.where == "tail":
        return lambda entity, text: wanted in text.rpartition("\n")[2]
    return lambda entity, text: wanted in text
