"""TripleSource: what a KnowledgeGraph reads triples from; in memory, or several graphs as one."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cached_property, reduce
from typing import Protocol

from kbert_core.knowledge.name_index import JoinedNames, NameLookup, Names
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.surface_forms import forms_of
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations, Triple


class TripleSource(Protocol):
    """Triples by entity, never changed: shared by a graph and all that is edited from it."""

    @property
    def names(self) -> NameLookup:
        """The names of every entity."""

    @property
    def off(self) -> Set[Triple]:
        """The triples that are switched off."""

    @property
    def aliases(self) -> AliasRelations:
        """The relations that say another name."""

    @property
    def fingerprint(self) -> str:
        """Two with the same one hold the same triples in the same order."""

    def __len__(self) -> int:
        """Count the triples."""

    def triples_of(self, entity: str) -> tuple[Triple, ...]:
        """Return the triples of an entity, on or off, in order; none for one not known."""

    def items(self) -> Iterable[tuple[str, tuple[Triple, ...]]]:
        """Every entity, as names are compared, with its triples, in an order that stays."""


class InMemory:
    """Triples in a dict, in the order in which they came; a repeated triple counts once."""

    def __init__(
        self,
        triples: Iterable[Triple],
        aliases: AliasRelations = ALIAS_RELATIONS,
        off: Iterable[Triple] = (),
    ) -> None:
        by_entity: dict[str, dict[Triple, None]] = {}
        for triple in triples:
            by_entity.setdefault(normalise_name(triple.head), {})[triple] = None
        by_entity.pop("", None)  # a head of nothing but invisible characters
        self._by_entity = {entity: tuple(found) for entity, found in by_entity.items()}
        self._count = sum(map(len, self._by_entity.values()))
        self.aliases = aliases
        self.off = frozenset(off)
        self.names: NameLookup = Names.of(
            form
            for entity, found in self._by_entity.items()
            for form in forms_of(entity, found, aliases)
        )

    def __len__(self) -> int:
        return self._count

    def triples_of(self, entity: str) -> tuple[Triple, ...]:
        """See ``TripleSource.triples_of``."""
        return self._by_entity.get(entity, ())

    def items(self) -> Iterable[tuple[str, tuple[Triple, ...]]]:
        """See ``TripleSource.items``."""
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
        self.names = JoinedNames([graph.names for graph in self._graphs])
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

    def triples_of(self, entity: str) -> tuple[Triple, ...]:
        """The first graph's triples of an entity, then what others add."""
        found = [triples for graph in self._graphs if (triples := graph.triples_of(entity))]
        if len(found) < 2:
            return found[0] if found else ()
        return tuple(dict.fromkeys(triple for triples in found for triple in triples))

    def items(self) -> Iterator[tuple[str, tuple[Triple, ...]]]:
        """The entities of the first graph, then those that others add."""
        for number, graph in enumerate(self._graphs):
            earlier = self._graphs[:number]
            for entity, _ in graph.items():
                if not any(other.triples_of(entity) for other in earlier):
                    yield entity, self.triples_of(entity)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the graphs', in order."""
        all_of_them = "+".join(graph.fingerprint for graph in self._graphs)
        return hashlib.sha256(all_of_them.encode()).hexdigest()
