"""KnowledgeGraph: the triples of every entity, in order, and edits to them.

A graph is a value. Edits return a new graph that shares everything they
didn't touch with the old one, remembers them, and leads back to the old one;
the file the triples came from is never written.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Set
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from immutables import Map

from kbert_core.knowledge.edit import Draft, Edit
from kbert_core.knowledge.name_index import EditedNames, NameLookup
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.source import InMemory, TripleSource, Union
from kbert_core.knowledge.surface_forms import forms_of
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations, Triple

T = TypeVar("T")


class KnowledgeGraph:
    """Triples by entity, in file order.

    An entity is a head as names are compared (NFKC, case folded), so
    ``triples_of("Aspirin")`` and ``triples_of("aspirin")`` are the same.

    Args:
        triples: in the order in which they are to be injected; a repeated
            triple counts once.
        name: shown to people.
        aliases: the relations that say another name of an entity.
        off: which of the triples are switched off.
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
        self._changed: Map[str, tuple[Triple, ...]] = Map()  # entity → all of its triples now
        self._switched: Map[Triple, bool] = Map()  # whether it is on now
        self._names = EditedNames(source.names)
        self._before: KnowledgeGraph | None = None
        self._edits: tuple[Edit, ...] = ()  # since then
        self._kept: dict[Hashable, Any] = {}
        self.name = name

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was once made of the graph, which never changes; made at the first call."""
        made: T | None = self._kept.get(key)
        return self._kept.setdefault(key, make()) if made is None else made

    def forget(self, key: Hashable) -> None:
        """Make anew, at the next call, what is kept."""
        self._kept.pop(key, None)

    @classmethod
    def over(cls, source: TripleSource, *, name: str = "") -> "KnowledgeGraph":
        """Return a graph over a source of triples, such as a store's."""
        graph = object.__new__(cls)
        graph._begin(source, name)
        return graph

    def __iter__(self) -> Iterator[Triple]:
        """Every triple, on or off, by entity in the order of :meth:`entities`."""
        for _, triples in self.items():
            yield from triples

    def items(self) -> Iterator[tuple[str, tuple[Triple, ...]]]:
        """Every entity with its triples, in the order of :meth:`entities`."""
        for entity, triples in self._source.items():
            now = self._changed.get(entity, triples)
            if now:
                yield entity, now
        for entity in self._added_entities():
            yield entity, self._changed[entity]

    def __len__(self) -> int:
        return len(self._source) + sum(
            len(now) - len(self._source.triples_of(entity)) for entity, now in self._changed.items()
        )

    def __contains__(self, triple: Triple) -> bool:
        return triple in self.triples_of(triple.head)

    def entities(self) -> Iterator[str]:
        """Every entity that has a triple, as names are compared.

        Those of the source come first, in the order in which they were met, or
        by name where they are in a store; then those that came by edits, by name.
        """
        return (entity for entity, _ in self.items())

    def triples_of(self, entity: str) -> tuple[Triple, ...]:
        """Return the triples of an entity, on or off, in order."""
        return self._now(entity) or self._now(normalise_name(entity))

    def is_on(self, triple: Triple) -> bool:
        """Say whether a triple takes part in injection."""
        on = self._switched.get(triple)
        return triple not in self._source.off if on is None else on

    @cached_property
    def off(self) -> Set[Triple]:
        """Every triple that is switched off."""
        if not self._switched:
            return self._source.off
        off = {triple for triple, on in self._switched.items() if not on}
        return frozenset(off.union(t for t in self._source.off if t not in self._switched))

    @property
    def all_on(self) -> bool:
        """Say whether no triple is switched off."""
        return not self.off

    def active_triples(self) -> Iterator[Triple]:
        """Every triple that is not switched off, in order."""
        return iter(self) if self.all_on else filter(self.is_on, self)

    def relations(self) -> dict[str, int]:
        """Count the active triples of every relation, the most frequent first."""
        return dict(Counter(triple.relation for triple in self.active_triples()).most_common())

    @cached_property
    def relation_idf(self) -> Mapping[str, float]:
        """The information of every relation, in nats: -ln of its share of the active triples."""
        counts = self.relations()
        total = sum(counts.values())
        return {relation: math.log(total / count) for relation, count in counts.items()}

    @property
    def names(self) -> NameLookup:
        """The names of every entity, as they are looked up in a text."""
        return self._names.lookup

    def meant_by(self, key: str) -> tuple[str, ...]:
        """See ``NameLookup.meant_by``."""
        return self.names.meant_by(key)

    @property
    def aliases(self) -> AliasRelations:
        """The relations that say another name of an entity."""
        return self._source.aliases

    def apply(self, *edits: Edit) -> "KnowledgeGraph":
        """Return the graph with edits made, one after the other, at the cost of the edits.

        Raises:
            GraphEditError: an edit doesn't fit; this graph is as it was.
        """
        draft = Draft(self.name, self._now, self.is_on)
        for edit in edits:
            draft.make(edit)
        if not draft.made:
            return self
        graph = self._with(draft.triples(), draft.switched)
        graph._before, graph._edits = self, tuple(draft.made)
        return graph

    def add(self, triple: Triple, *, index: int | None = None) -> "KnowledgeGraph":
        """Return the graph with one more triple; see ``Edit.index``."""
        return self.apply(Edit("add", triple, index=index))

    def remove(self, triple: Triple) -> "KnowledgeGraph":
        """Return the graph without a triple."""
        return self.apply(Edit("remove", triple))

    def replace(self, triple: Triple, new: Triple) -> "KnowledgeGraph":
        """Return the graph with a triple changed, at its place if its head stays."""
        return self.apply(Edit("replace", triple, new))

    def switch_off(self, triple: Triple) -> "KnowledgeGraph":
        """Return the graph with a triple kept but not injected."""
        return self.apply(Edit("switch_off", triple))

    def switch_on(self, triple: Triple) -> "KnowledgeGraph":
        """Return the graph with a triple injected again."""
        return self.apply(Edit("switch_on", triple))

    @property
    def history(self) -> tuple[Edit, ...]:
        """Every edit since the graph was loaded, in order."""
        steps = []
        graph = self
        while graph._before is not None:
            steps.append(graph._edits)
            graph = graph._before
        return tuple(chain.from_iterable(reversed(steps)))

    def undo(self) -> "KnowledgeGraph":
        """Return the graph as it was before its last edit; itself if unedited."""
        return self if self._before is None else self._before.apply(*self._edits[:-1])

    def updated(
        self, changed: Mapping[str, tuple[Triple, ...]], off: Collection[Triple] | None = None
    ) -> "KnowledgeGraph":
        """Return a graph with other triples of some entities, and no history.

        Args:
            changed: by entity, as names are compared, all of its triples now.
            off: which of these are switched off; None: those that were.
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
            digest.update(f"\n{entity}".encode())
            for t in self._changed[entity]:
                digest.update(f"\n{t.head}\t{t.relation}\t{t.tail}".encode())
        for t in sorted(self.off):
            digest.update(f"\noff\t{t.head}\t{t.relation}\t{t.tail}".encode())
        return digest.hexdigest()

    def _added_entities(self) -> list[str]:
        return sorted(
            entity
            for entity, now in self._changed.items()
            if now and not self._source.triples_of(entity)
        )

    def _now(self, entity: str) -> tuple[Triple, ...]:
        changed = self._changed.get(entity)
        return self._source.triples_of(entity) if changed is None else changed

    def _with(
        self, changed: Mapping[str, tuple[Triple, ...]], switched: Mapping[Triple, bool]
    ) -> "KnowledgeGraph":
        """Return a graph with other triples of some entities, and some switched on or off."""
        graph = KnowledgeGraph.over(self._source, name=self.name)
        graph._changed = self._changed.update(changed)
        now = self._switched.mutate()
        for triple, on in switched.items():
            if on == (triple not in self._source.off):
                now.pop(triple, None)
            else:
                now[triple] = on
        graph._switched = now.finish()
        before, after = (
            {
                form
                for entity in changed
                if (triples := triples_of(entity))
                for form in forms_of(entity, triples, self.aliases)
            }
            for triples_of in (self._source.triples_of, graph._now)
        )
        gone = [entity for entity, triples in changed.items() if not triples]
        # Of these, only their own names: another name may be said by other entities too.
        forms = {form for entity in gone for form in forms_of(entity, (), self.aliases)}
        graph._names = self._names.edited(
            added=sorted(after - before),
            removed=forms - after,
            gone=gone,
            back=changed.keys() - gone,
        )
        return graph


def join_graphs(graphs: Iterable[KnowledgeGraph]) -> KnowledgeGraph:
    """Join graphs, copying none: the first one's triples come first.

    A triple that is switched off in one of them is off. Of no graphs the
    result is an empty one.
    """
    graphs = list(graphs)
    name = " + ".join(graph.name for graph in graphs)
    return KnowledgeGraph.over(Union(graphs), name=name)
