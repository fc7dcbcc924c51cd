"""Several graphs as one, none of them copied: the first one's triples come first."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from kbert_core.knowledge.aliases import AliasRelations
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple


class Joined:
    """The triples of several graphs; see ``loaded.Loaded``. A repeated triple counts once."""

    def __init__(self, graphs: Sequence[KnowledgeGraph]) -> None:
        self._graphs = tuple(graphs)
        self.names = _JoinedNames(self._graphs)
        self.aliases = reduce(AliasRelations.joined, (graph.aliases for graph in graphs))
        self.off = frozenset(triple for graph in graphs for triple in graph.off)

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        largest = max(self._graphs, key=len)
        count = len(largest)
        counted = [largest]
        for graph in self._graphs:
            if graph is not largest:
                count += sum(not any(t in other for other in counted) for t in graph)
                counted.append(graph)
        return count

    def entities(self) -> Iterator[str]:
        """Those of the first graph, then those that others add."""
        for number, graph in enumerate(self._graphs):
            for entity in graph.entities():
                if not any(earlier.triples_of(entity) for earlier in self._graphs[:number]):
                    yield entity

    def triples_of(self, entity: str) -> tuple[Triple, ...]:
        """The first graph's triples of an entity, then what others add."""
        found = [triples for graph in self._graphs if (triples := graph.triples_of(entity))]
        if len(found) < 2:
            return found[0] if found else ()
        return tuple(dict.fromkeys(triple for triples in found for triple in triples))

    def items(self) -> Iterator[tuple[str, tuple[Triple, ...]]]:
        """Every entity with its triples."""
        return ((entity, self.triples_of(entity)) for entity in self.entities())

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the graphs', in order."""
        all_of_them = "+".join(graph.fingerprint for graph in self._graphs)
        return hashlib.sha256(all_of_them.encode()).hexdigest()


class _JoinedNames:
    """The names of several graphs; see ``loaded.Names``."""

    def __init__(self, graphs: tuple[KnowledgeGraph, ...]) -> None:
        self._graphs = graphs

    def at(self, text: str, start: int) -> list[str]:
        return sorted({name for g in self._graphs for name in g.names_at(text, start)}, key=len)

    def meant_by(self, key: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(e for graph in self._graphs for e in graph.meant_by(key)))

    def places(self, text: str) -> list[int]:
        return sorted({place for graph in self._graphs for place in graph.places(text)})

    def may_begin(self, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        return reduce(np.logical_or, (graph.may_begin(codes) for graph in self._graphs))
