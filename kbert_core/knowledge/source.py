"""TripleSource: what a KnowledgeGraph reads triples from; in memory, or several graphs as one."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property, reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kbert_core.knowledge.aliases import ALIAS_RELATIONS, AliasRelations
from kbert_core.knowledge.name_index import NameIndex
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.surface_forms import forms_of
from kbert_core.knowledge.triple import Triple


class Names(Protocol):
    """Keys of names, for finding those that a text goes on with; see ``NameIndex``."""

    def at(self, text: str, start: int) -> list[str]:
        """Return the keys that stand in a text from a place on, the shortest first."""

    def meant_by(self, key: str) -> tuple[str, ...]:
        """Return the entities that a key may mean; a few too many do no harm."""

    def places(self, text: str) -> list[int]:
        """Return where in a text a key may begin, in order; a few too many do no harm."""

    def may_begin(self, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Say the same for every place of a long text: (M,) code points, (M,) bool."""


class TripleSource(Protocol):
    """Triples by entity, never changed: shared by a graph and all that is edited from it.

    Attributes:
        names: of every entity.
        off: the triples that are switched off.
        aliases: the relations that say another name.
        fingerprint: two with the same one hold the same triples in the same order.
    """

    @property
    def names(self) -> Names:
        """See above."""

    @property
    def off(self) -> Set[Triple]:
        """See above."""

    @property
    def aliases(self) -> AliasRelations:
        """See above."""

    @property
    def fingerprint(self) -> str:
        """See above."""

    def __len__(self) -> int:
        """Count the triples."""

    def entities(self) -> Iterator[str]:
        """Every entity, as names are compared, each once, in an order that stays."""

    def triples_of(self, entity: str) -> tuple[Triple, ...]:
        """Return the triples of an entity, on or off, in order; none for one not known."""

    def items(self) -> Iterable[tuple[str, tuple[Triple, ...]]]:
        """Every entity with its triples, in the order of :meth:`entities`."""


class InMemory:
    """Triples in a dict; a repeated triple counts once."""

    off: frozenset[Triple] = frozenset()

    def __init__(
        self, triples: Iterable[Triple], aliases: AliasRelations = ALIAS_RELATIONS
    ) -> None:
        by_entity: dict[str, dict[Triple, None]] = {}
        for triple in triples:
            by_entity.setdefault(normalise_name(triple.head), {})[triple] = None
        by_entity.pop("", None)  # a head of nothing but invisible characters
        self._by_entity = {entity: tuple(found) for entity, found in by_entity.items()}
        self._count = sum(map(len, self._by_entity.values()))
        self.aliases = aliases
        self.names = NameIndex(
            form
            for entity, found in self._by_entity.items()
            for form in forms_of(entity, found, aliases)
        )

    def __len__(self) -> int:
        return self._count

    def entities(self) -> Iterator[str]:
        """In the order in which they were met first."""
        return iter(self._by_entity)

    def triples_of(self, entity: str) -> tuple[Triple, ...]:
        """In the order in which they were met first."""
        return self._by_entity.get(entity, ())

    def items(self) -> Iterable[tuple[str, tuple[Triple, ...]]]:
        """Every entity with its triples."""
        return self._by_entity.items()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every triple and their order."""
        digest = hashlib.sha256()
        if self.aliases != ALIAS_RELATIONS:
            said = (sorted(self.aliases.names_of_head), sorted(self.aliases.names_of_tail))
            digest.update(repr(said).encode())
        for triples in self._by_entity.values():
            for t in triples:
                digest.update(f"{t.head}\t{t.relation}\t{t.tail}\n".encode())
        return digest.hexdigest()


class Union:
    """Several graphs, none copied: first the first one's triples; a repeated one counts once."""

    def __init__(self, graphs: Sequence[TripleSource]) -> None:
        self._graphs = tuple(graphs) or (InMemory(()),)
        self.names = _UnionNames([graph.names for graph in self._graphs])
        self.aliases = reduce(AliasRelations.joined, (graph.aliases for graph in self._graphs))
        self.off = frozenset(triple for graph in graphs for triple in graph.off)

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        largest = max(self._graphs, key=len)
        count = len(largest)
        counted = [largest]
        for graph in self._graphs:
            if graph is largest:
                continue
            for entity, triples in graph.items():
                known = {t for other in counted for t in other.triples_of(entity)}
                count += len({*triples} - known)
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


class _UnionNames:
    """The names of several sources; see ``Names``."""

    def __init__(self, parts: Sequence[Names]) -> None:
        self._parts = parts

    def at(self, text: str, start: int) -> list[str]:
        return sorted({key for part in self._parts for key in part.at(text, start)}, key=len)

    def meant_by(self, key: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(e for part in self._parts for e in part.meant_by(key)))

    def places(self, text: str) -> list[int]:
        return sorted({place for part in self._parts for place in part.places(text)})

    def may_begin(self, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        return reduce(np.logical_or, (part.may_begin(codes) for part in self._parts))
