"""A graph as the Knowledge page looks through it: in memory or in its file, with edits on top."""

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import Any

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import TYPE_RELATIONS, Triple
from kbert_lab.graphs.search import Facets, Found, GraphSearch, Query
from kbert_lab.lab.log import AnyLog

PAGE = 200  # triples that are shown at a time
EDITED = 100_000  # of a visitor's own triples that are found


@dataclass(frozen=True)
class Catalogue:
    """What there is to look through, and how it came to be."""

    graph: KnowledgeGraph  # with all edits made
    base: KnowledgeGraph  # before this visitor's own edits
    search: GraphSearch  # of the graph, where it is in memory; else of the base, a graph file
    facets_of_search: Facets  # of the same
    log: AnyLog  # this visitor's edits

    @property
    def unsearched(self) -> Set[str]:
        """The entities of which the search doesn't know the edits."""
        return frozenset() if self.search.in_memory else self.log.edited

    def find(self, query: Query, start: Any = None) -> Found:
        """Find a page of triples; those of edited entities come first in a graph file."""
        changed = self.unsearched
        found = self.search.find(query, start=start, most=PAGE, without=changed)
        if not changed:
            return found
        own = KnowledgeGraph(self._triples_of(self.graph, sorted(changed)), off=self.graph.off)
        edited = GraphSearch.of(own).find(query, most=EDITED)
        total = None if found.total is None else found.total + len(edited.triples)
        if start is not None:
            return replace(found, total=total)
        triples, on = (*edited.triples, *found.triples), (*edited.on, *found.on)
        return replace(found, triples=triples, on=on, total=total)

    @property
    def facets(self) -> Facets:
        """Relations and types as edited, counted."""
        gone = self._triples_of(self.base, self.unsearched)
        come = self._triples_of(self.graph, self.unsearched)
        return self.facets_of_search.changed(gone, come, TYPE_RELATIONS)

    def heads(self, start: str, most: int = 6) -> list[str]:
        """Return heads that begin with a text, as the graph writes them."""
        folded = normalise_name(start)
        own = sorted(name for name in self.unsearched if name.startswith(folded))
        near = self.search.heads(start, most + len(own)) if folded else ()
        found = (self.graph.triples_of(name) for name in (*own, *near) if folded)
        return list(dict.fromkeys(triples[0].head for triples in found if triples))[:most]

    def around(self, triple: Triple, most: int = 80) -> list[Triple]:
        """Return the triples of an entity, and others that lead to it, as far as is known."""
        own = list(self.graph.triples_of(triple.head))
        leading = self.search.leading_to(triple.head)
        return [*own, *(t for t in leading if t in self.graph and t not in own)][:most]

    def told_of(self, triples: Iterable[Triple]) -> list[Triple]:
        """Return the triples of all heads and tails of some."""
        names = dict.fromkeys(name for x in triples for name in (x.head, x.tail))
        return self._triples_of(self.graph, names)

    @staticmethod
    def _triples_of(graph: KnowledgeGraph, names: Iterable[str]) -> list[Triple]:
        return [triple for name in names for triple in graph.triples_of(name)]
