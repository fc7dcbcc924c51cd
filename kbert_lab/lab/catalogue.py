"""A graph as the Knowledge page looks through it: in memory or in its file, with edits on top."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import TYPE_RELATIONS, Triple
from kbert_lab.graphs.search import Facets, Found, GraphSearch, Query
from kbert_lab.graphs.store.log import Change
from kbert_lab.lab.edit_log import OpenWorkspace
from kbert_lab.lab.log import Log

PAGE = 200  # triples that are shown at a time
EDITED = 100_000  # of a visitor's own triples that are found


@dataclass(frozen=True)
class Catalogue:
    """What there is to look through, and how it came to be."""

    graph: KnowledgeGraph  # with all edits made
    base: KnowledgeGraph  # before this visitor's own edits; of a workspace, the same
    search: GraphSearch  # of the graph, where it is in memory; else of the base, a graph file
    facets_of_search: Facets  # of the same
    log: Log | OpenWorkspace  # this visitor's edits
    source: str = ""  # the file the base came from
    # of that file, by triple, as far as they are known
    lines: Mapping[Triple, int] = field(default_factory=dict)

    @property
    def changed(self) -> set[str]:
        """The entities that this visitor edited."""
        return entities_of(self.log.done)

    @property
    def unsearched(self) -> set[str]:
        """The entities of which the search doesn't know the edits."""
        return set() if self.search.in_memory else self.changed

    def find(self, query: Query, start: Any = None) -> Found:
        """Find a page of triples; those of edited entities come first in a graph file."""
        changed = self.unsearched
        found = self.search.find(query, start=start, most=PAGE, without=changed)
        if not changed:
            return found
        of_edited = (triple for e in sorted(changed) for triple in self.graph.triples_of(e))
        off = self.graph.off
        edited = GraphSearch.of(KnowledgeGraph(of_edited, off=off)).find(query, most=EDITED)
        total = None if found.total is None else found.total + len(edited.triples)
        if start is not None:
            return replace(found, total=total)
        triples, on = (*edited.triples, *found.triples), (*edited.on, *found.on)
        return replace(found, triples=triples, on=on, total=total)

    def facets(self) -> Facets:
        """Count relations and types as edited."""
        changed = self.unsearched
        if not changed:
            return self.facets_of_search
        gone = [t for entity in changed for t in self.base.triples_of(entity)]
        come = [t for entity in changed for t in self.graph.triples_of(entity)]
        return self.facets_of_search.changed(gone, come, TYPE_RELATIONS)

    def heads(self, start: str, most: int = 6) -> list[str]:
        """Return heads that begin with a text, as the graph writes them."""
        folded = normalise_name(start)
        if not folded:
            return []
        own = sorted(name for name in self.changed if name.startswith(folded))
        found: dict[str, None] = {}
        for name in (*own, *self.search.heads(start, most + len(own))):
            triples = self.graph.triples_of(name)
            if triples:
                found[triples[0].head] = None
        return list(islice(found, most))

    def around(self, triple: Triple, most: int = 80) -> list[Triple]:
        """Return the triples of an entity, and others that lead to it, as far as is known."""
        own = list(self.graph.triples_of(triple.head))
        leading = self.search.leading_to(triple.head)
        return [*own, *(t for t in leading if t in self.graph and t not in own)][:most]

    def told_of(self, triples: Iterable[Triple]) -> list[Triple]:
        """Return the triples of all heads and tails of some."""
        names = dict.fromkeys(name for x in triples for name in (x.head, x.tail))
        return [triple for name in names for triple in self.graph.triples_of(name)]


def entities_of(edits: Iterable[Edit]) -> set[str]:
    """The entities whose triples edits are about."""
    triples = (t for edit in edits for t in (edit.triple, edit.new) if t is not None)
    return {normalise_name(triple.head) for triple in triples}


def kind(change: Change) -> str:
    """Name what a change is."""
    if change.before is None:
        return "added"
    if change.after is None:
        return "removed"
    if change.before != change.after:
        return "changed"
    return "on" if change.is_on else "off"
