"""KnowledgeGraph: the triples of every entity, in order, and edits to them.

A graph is a value. Edits return a new graph that shares everything they didn't touch with the
old one, remembers them, and leads back to the old one; the file the triples came from is never
written. What a graph reads from is a ``TripleSource``: triples in memory, several graphs as one,
or a graph file (``store.store``).
"""

import hashlib
import math
import operator
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from rpds import HashTrieMap

from kbert_core.errors import GraphEditError, GraphFileError
from kbert_core.knowledge.name_index import JoinedNames, Names
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.surface_forms import forms_of
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations, Triple, refuse_no_triple

if TYPE_CHECKING:
    from kbert_core.knowledge.edit import Edit

T = TypeVar("T")
Triples = tuple[Triple, ...]


class TripleSource(Protocol):
    """Triples by entity that never change; a graph and all its edited versions share them."""

    @property
    def names(self) -> Names:
        """The names of every entity."""

    @property
    def off(self) -> AbstractSet[Triple]:
        """The triples that are switched off."""

    @property
    def aliases(self) -> AliasRelations:
        """The relations that say another name."""

    @property
    def fingerprint(self) -> str:
        """A hash; sources with the same one hold the same triples in the same order."""

    def __len__(self) -> int:
        """Count the triples."""

    def triples_of(self, entity: str) -> Triples:
        """Return an entity's triples, on or off, in order; empty if the entity isn't known."""

    def items(self) -> Iterable[tuple[str, Triples]]:
        """Yield every entity, in the form in which names are compared, and its triples."""


class InMemory:
    """Triples in a dict, in the order in which they came; a repeated triple counts once."""

    def __init__(
        self, triples: Iterable[Triple], aliases: AliasRelations, off: Iterable[Triple]
    ) -> None:
        by_entity: dict[str, dict[Triple, None]] = {}
        if isinstance(triples, str) or not isinstance(triples, Iterable):
            refuse_no_graph(triples)
        for triple in triples:
            if not isinstance(triple, Triple):
                refuse_no_triple(triple)
            triple.usable()
            by_entity.setdefault(normalise_name(triple.head), {})[triple] = None
        by_entity.pop("", None)  # a head of nothing but invisible characters
        self._by_entity = {entity: tuple(found) for entity, found in by_entity.items()}
        self._count = sum(map(len, self._by_entity.values()))
        self.aliases = aliases
        self.off = frozenset(off)
        for triple in self.off:
            refuse_no_triple(triple)
        self.names = Names.of(
            form
            for entity, triples in self._by_entity.items()
            for form in forms_of(entity, triples, aliases)
        )

    def __len__(self) -> int:
        return self._count

    def triples_of(self, entity: str) -> Triples:
        """See ``TripleSource.triples_of``."""
        return self._by_entity.get(entity, ())

    def items(self) -> Iterable[tuple[str, Triples]]:
        """See ``TripleSource.items``."""
        return self._by_entity.items()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every triple and their order."""
        digest = hashlib.sha256()
        if self.aliases != ALIAS_RELATIONS:
            said = (sorted(self.aliases.names_of_head), sorted(self.aliases.names_of_tail))
            digest.update(repr(said).encode())
        for triple in chain.from_iterable(self._by_entity.values()):
            digest.update(f"{_line(triple)}\n".encode())
        return digest.hexdigest()


class Union:
    """Several graphs, none copied: first the first one's triples; a repeated one counts once."""

    def __init__(self, graphs: Sequence[TripleSource]) -> None:
        self._graphs = tuple(graphs) or (InMemory((), ALIAS_RELATIONS, ()),)
        self.names = JoinedNames([graph.names for graph in self._graphs])
        self.aliases = reduce(AliasRelations.joined, (graph.aliases for graph in self._graphs))
        self.off = frozenset(triple for graph in graphs for triple in graph.off)

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        counted = [max(self._graphs, key=len)]
        count = len(counted[0])
        for graph in self._graphs:
            if graph is counted[0]:
                continue
            for entity, triples in graph.items():
                known = {t for other in counted for t in other.triples_of(entity)}
                count += len({*triples} - known)
            counted.append(graph)
        return count

    def triples_of(self, entity: str) -> Triples:
        """The first graph's triples of an entity, then what others add."""
        found = [triples for graph in self._graphs if (triples := graph.triples_of(entity))]
        if len(found) < 2:
            return found[0] if found else ()
        return tuple(dict.fromkeys(chain.from_iterable(found)))

    def items(self) -> Iterator[tuple[str, Triples]]:
        """The entities of the first graph, then those that others add."""
        for number, graph in enumerate(self._graphs):
            for entity, _ in graph.items():
                if not any(earlier.triples_of(entity) for earlier in self._graphs[:number]):
                    yield entity, self.triples_of(entity)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the graphs', in order."""
        all_of_them = "+".join(graph.fingerprint for graph in self._graphs)
        return hashlib.sha256(all_of_them.encode()).hexdigest()


class KnowledgeGraph:
    """Triples by entity, in file order.

    An entity is a head, without regard to spelling: ``triples_of("Aspirin")``
    and ``triples_of("aspirin")`` are the same. Two graphs are equal if they have the same
    triples in the same order, the same ones are off, and the same relations say aliases.

    Args:
        triples: in the order of injection; a repeated triple counts once.
        name: shown to people.
        aliases: the relations whose tail is another name of the entity.
        off: which of the triples are switched off.

    Raises:
        GraphEditError: something is no triple, or one that can't be used.
    """

    def __init__(
        self,
        triples: Iterable[Triple] = (),
        *,
        name: str = "",
        aliases: AliasRelations = ALIAS_RELATIONS,
        off: Iterable[Triple] = (),
    ) -> None:
        self._begin(InMemory(triples, aliases, off), name)

    def _begin(self, source: TripleSource, name: str) -> None:
        self._source = source
        self._changed: HashTrieMap[str, Triples] = HashTrieMap()  # entity → all of its triples now
        self._switched: HashTrieMap[Triple, bool] = HashTrieMap()  # whether it is on now
        self._new_names: Names | None = None  # of changed entities, once they were looked for
        self._before: KnowledgeGraph | None = None
        self._edits: tuple[Edit, ...] = ()  # since then
        self._kept: dict[Hashable, Any] = {}
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the graph as loaded, and its edits: versions in versions are too deep."""
        *later, first = self._versions()
        steps = [(graph._edits, graph.name) for graph in reversed(later)]
        return _edited_again, ({**first.__dict__, "_kept": {}}, steps)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KnowledgeGraph):
            return NotImplemented
        if self is other:
            return True
        if len(self) != len(other) or self.off != other.off or self.aliases != other.aliases:
            return False
        if self.fingerprint == other.fingerprint:
            return True
        return self._source is not other._source and all(map(operator.eq, self, other))

    def __hash__(self) -> int:
        return hash((len(self), len(self.off)))  # the same for equal graphs, and soon known

    def kept(self, key: Hashable, make: Callable[[], T], *, most: int | None = None) -> T:
        """Return what ``make`` makes of the graph; it is made at the first call and kept.

        Args:
            most: if it has so many entries, it is made anew.
        """
        made: Any = self._kept.get(key)
        if made is None or (most is not None and len(made) >= most):
            made = self._kept[key] = make()
        return cast(T, made)

    @classmethod
    def over(cls, source: TripleSource, *, name: str = "") -> "KnowledgeGraph":
        """Return a graph over a source of triples, such as a store's."""
        graph = object.__new__(cls)
        graph._begin(source, name)
        return graph

    def __iter__(self) -> Iterator[Triple]:
        """Every triple, on or off, by entity in the order of :meth:`entities`."""
        return chain.from_iterable(triples for _, triples in self.items())

    def items(self) -> Iterator[tuple[str, Triples]]:
        """Every entity with its triples, in the order of :meth:`entities`."""
        for entity, triples in self._source.items():
            now = self._changed.get(entity, triples)
            if now:
                yield entity, now
        known, changed = self._source.triples_of, self._changed.items()
        yield from sorted((entity, now) for entity, now in changed if now and not known(entity))

    def __len__(self) -> int:
        known = self._source.triples_of
        more = (len(now) - len(known(entity)) for entity, now in self._changed.items())
        return len(self._source) + sum(more)

    def __repr__(self) -> str:
        return f"<KnowledgeGraph {self.name!r}: {len(self):,} triples>"

    def _repr_html_(self) -> str:
        from kbert_core.markup import graph_html

        return graph_html(self)

    def __contains__(self, triple: Triple) -> bool:
        refuse_no_triple(triple)
        return triple in self.triples_of(triple.head)

    def entities(self) -> Iterator[str]:
        """Every entity that has a triple, as names are compared.

        First come the entities of the source: in the order of the file, or by name in a store.
        Then come those that were added by edits, by name.
        """
        return (entity for entity, _ in self.items())

    def triples_of(self, entity: str) -> Triples:
        """Return the triples of an entity, on or off, in order."""
        if not isinstance(entity, str):
            raise GraphEditError(f"Got {entity!r:.60} as an entity. Give its name, a text.")
        return self._now(entity) or self._now(normalise_name(entity))

    def _now(self, entity: str) -> Triples:
        changed = self._changed.get(entity)
        return self._source.triples_of(entity) if changed is None else changed

    def is_on(self, triple: Triple) -> bool:
        """Say whether a triple takes part in injection."""
        if not isinstance(triple, Triple):
            refuse_no_triple(triple)
        on = self._switched.get(triple)
        return triple not in self._source.off if on is None else on

    @cached_property
    def off(self) -> AbstractSet[Triple]:
        """Every triple that is switched off."""
        if not self._switched:
            return self._source.off
        off = {triple for triple, on in self._switched.items() if not on}
        return frozenset(off.union(t for t in self._source.off if t not in self._switched))

    def active_triples(self) -> Iterator[Triple]:
        """Every triple that is not switched off, in order."""
        return filter(self.is_on, self) if self.off else iter(self)

    def relations(self) -> dict[str, int]:
        """Count the active triples of every relation, the most frequent first."""
        return dict(Counter(triple.relation for triple in self.active_triples()).most_common())

    @cached_property
    def relation_idf(self) -> Mapping[str, float]:
        """The information of every relation, in nats: -ln of its share of the active triples."""
        total = sum((counts := self.relations()).values())
        return {relation: math.log(total / count) for relation, count in counts.items()}

    @cached_property
    def names(self) -> Names:
        """The names of every entity, as they are looked up in a text."""
        if not self._changed:
            return self._source.names
        if self._new_names is None:
            self._new_names = Names.of(chain.from_iterable(map(self._forms, sorted(self._changed))))
        return JoinedNames([self._source.names, self._new_names], self._changed)

    def _forms(self, entity: str) -> list[tuple[str, str]]:
        triples = self._now(entity)
        return [*forms_of(entity, triples, self.aliases)] if triples else []

    def meant_by(self, key: str) -> tuple[str, ...]:
        """See ``Names.meant_by``."""
        return self.names.meant_by(key)

    @property
    def aliases(self) -> AliasRelations:
        """The relations that say another name of an entity."""
        return self._source.aliases

    def apply(self, *edits: "Edit") -> "KnowledgeGraph":
        """Return the graph after edits, made in order; the time depends only on the edits.

        Raises:
            GraphEditError: an edit is impossible; this graph stays unchanged.
        """
        from kbert_core.knowledge.edit import Draft  # most graphs are never edited

        draft = Draft(self)
        for edit in edits:
            draft.make(edit)
        if not draft.made:
            return self
        graph = self._with(draft.triples(), draft.switched)
        graph._before, graph._edits = self, tuple(draft.made)
        return graph

    def add(self, triple: Triple, *, index: int | None = None) -> "KnowledgeGraph":
        """Return the graph with one more triple; see ``Edit.index``."""
        return self.apply(_edit("add", triple, index=index))

    def remove(self, triple: Triple) -> "KnowledgeGraph":
        """Return the graph without a triple."""
        return self.apply(_edit("remove", triple))

    def replace(self, triple: Triple, new: Triple) -> "KnowledgeGraph":
        """Return the graph with a triple changed, at its place if its head stays."""
        return self.apply(_edit("replace", triple, new))

    def switch_off(self, triple: Triple) -> "KnowledgeGraph":
        """Return the graph with a triple kept but not injected."""
        return self.apply(_edit("switch_off", triple))

    def switch_on(self, triple: Triple) -> "KnowledgeGraph":
        """Return the graph with a triple injected again."""
        return self.apply(_edit("switch_on", triple))

    @property
    def history(self) -> "tuple[Edit, ...]":
        """Every edit since the graph was loaded, in order."""
        steps = [graph._edits for graph in self._versions()]
        return tuple(chain.from_iterable(reversed(steps)))

    def _versions(self) -> Iterator["KnowledgeGraph"]:
        """Yield this graph, then each earlier one."""
        graph: KnowledgeGraph | None = self
        while graph is not None:
            yield graph
            graph = graph._before

    def undo(self) -> "KnowledgeGraph":
        """Return the graph as it was before its last edit; itself if unedited."""
        return self if self._before is None else self._before.apply(*self._edits[:-1])

    def updated(
        self, changed: Mapping[str, Triples], off: Collection[Triple] | None = None
    ) -> "KnowledgeGraph":
        """Return a graph with other triples of some entities, and no history.

        Args:
            changed: entity, in the form in which names are compared → all its triples now.
            off: which of these are switched off; None: the same as before.
        """
        switched = {}
        for entity, triples in changed.items():
            for triple in triples:
                switched[triple] = self.is_on(triple) if off is None else triple not in off
            for triple in self._now(entity):
                switched.setdefault(triple, True)
        return self._with(changed, switched)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every triple, their order, and which are off."""
        digest = hashlib.sha256(self._source.fingerprint.encode())
        changed = self._changed.items()
        for entity in sorted(e for e, now in changed if now != self._source.triples_of(e)):
            digest.update("\n".join(["", entity, *map(_line, self._changed[entity])]).encode())
        for triple in sorted(self.off):
            digest.update(f"\noff\t{_line(triple)}".encode())
        return digest.hexdigest()

    def _with(
        self, changed: Mapping[str, Triples], switched: Mapping[Triple, bool]
    ) -> "KnowledgeGraph":
        """Return a graph with other triples of some entities, and some switched on or off."""
        graph = KnowledgeGraph.over(self._source, name=self.name)
        graph._changed = self._changed.update(changed)
        graph._switched = self._switched.update(switched)
        for triple, on in switched.items():
            if on == (triple not in self._source.off):
                graph._switched = graph._switched.discard(triple)
        if all(self._forms(entity) == graph._forms(entity) for entity in changed):
            graph._new_names = self._new_names
        return graph


def _edit(*what: Any, **more: Any) -> "Edit":
    from kbert_core.knowledge.edit import Edit

    return Edit(*what, **more)


def _edited_again(state: dict[str, Any], steps: Iterable[tuple[Any, str]]) -> KnowledgeGraph:
    graph = object.__new__(KnowledgeGraph)
    graph.__dict__.update(state)
    for edits, name in steps:
        graph = graph.apply(*edits)
        graph.name = name
    return graph


def refuse_no_graph(graph: Any) -> None:
    """Refuse a path, triples or anything else where a graph is expected.

    Raises:
        GraphFileError: see above.
    """
    if not isinstance(graph, KnowledgeGraph):
        raise GraphFileError(
            f"Got {graph!r:.60} as a graph. Open a file with load_graph(path), or make a graph of "
            "triples: KnowledgeGraph([Triple(head, relation, tail)])."
        )


def _line(triple: Triple) -> str:
    return f"{triple.head}\t{triple.relation}\t{triple.tail}"


def join_graphs(graphs: Iterable[KnowledgeGraph]) -> KnowledgeGraph:
    """Join graphs without a copy; a triple that is off in one is off. No graphs: an empty one."""
    graphs = list(graphs)
    for graph in graphs:
        refuse_no_graph(graph)
    name = " + ".join(graph.name for graph in graphs)
    return KnowledgeGraph.over(Union(graphs), name=name)
