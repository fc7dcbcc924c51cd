"""KnowledgeGraph: the triples of every entity, in order, and edits to them.

A graph is a value. An edit returns a new graph that shares everything the
edit didn't touch with the old one, remembers the edit, and leads back to the
old one; the file the triples came from is never written.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cached_property

import numpy as np
from immutables import Map
from numpy.typing import NDArray

from kbert_core.errors import GraphEditError
from kbert_core.knowledge.added_names import AddedNames, EditedNames
from kbert_core.knowledge.aliases import ALIAS_RELATIONS, AliasRelations
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.source import InMemory, Names, TripleSource, Union
from kbert_core.knowledge.surface_forms import forms_of
from kbert_core.knowledge.triple import Triple


class KnowledgeGraph:
    """Triples by entity, in file order.

    An entity is a head as names are compared (NFKC, case folded), so
    ``triples_of("Aspirin")`` and ``triples_of("aspirin")`` are the same.

    Args:
        triples: in the order in which they are to be injected; a repeated
            triple counts once.
        name: shown to people.
        aliases: the relations that say another name of an entity.
    """

    def __init__(
        self,
        triples: Iterable[Triple] = (),
        *,
        name: str = "",
        aliases: AliasRelations = ALIAS_RELATIONS,
    ) -> None:
        self._load(InMemory(triples, aliases), name)

    def _load(self, source: TripleSource, name: str) -> None:
        self._source = source
        self._changed: Map[str, tuple[Triple, ...]] = Map()
        self._off: Set[Triple] = source.off
        self._added_names = AddedNames()
        self._before: KnowledgeGraph | None = None
        self.name = name
        self.history: tuple[Edit, ...] = ()

    @classmethod
    def over(cls, source: TripleSource, *, name: str = "") -> "KnowledgeGraph":
        """Return a graph over a source of triples, such as a store's."""
        graph = object.__new__(cls)
        graph._load(source, name)
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

        Those loaded come first, in the order in which they were met, or by
        name where they are in a store; then those that came by edits, by name.
        """
        return (entity for entity, _ in self.items())

    def triples_of(self, entity: str) -> tuple[Triple, ...]:
        """Return the triples of an entity, on or off, in order."""
        return self._now(entity) or self._now(normalise_name(entity))

    def is_on(self, triple: Triple) -> bool:
        """Say whether a triple takes part in injection."""
        return triple not in self._off

    @property
    def off(self) -> Set[Triple]:
        """Every triple that is switched off."""
        return self._off

    @property
    def all_on(self) -> bool:
        """Say whether no triple is switched off."""
        return not self._off

    def relations(self) -> dict[str, int]:
        """Count the triples of every relation, the most frequent first."""
        counts: dict[str, int] = {}
        for triple in self:
            counts[triple.relation] = counts.get(triple.relation, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    @cached_property
    def names(self) -> Names:
        """The names of every entity, as they are looked up in a text."""
        if not self._changed:
            return self._source.names
        return EditedNames(self._source.names, self._added_names, self._changed)

    def places(self, text: str) -> list[int]:
        """See ``Names.places``."""
        return self.names.places(text)

    def may_begin(self, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """See ``Names.may_begin``."""
        return self.names.may_begin(codes)

    def names_at(self, text: str, start: int) -> list[str]:
        """See ``Names.at``."""
        return self.names.at(text, start)

    def meant_by(self, key: str) -> tuple[str, ...]:
        """See ``Names.meant_by``."""
        return self.names.meant_by(key)

    @property
    def aliases(self) -> AliasRelations:
        """The relations that say another name of an entity."""
        return self._source.aliases

    def apply(self, *edits: Edit) -> "KnowledgeGraph":
        """Return the graph with edits made, one after the other.

        Raises:
            GraphEditError: an edit doesn't fit; this graph is as it was.
        """
        graph = self
        for edit in edits:
            graph = graph._edited(edit)
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

    def undo(self) -> "KnowledgeGraph":
        """Return the graph as it was before its last edit; itself if unedited."""
        return self if self._before is None else self._before

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every triple, their order, and which are off."""
        digest = hashlib.sha256(self._source.fingerprint.encode())
        changed = self._changed.items()
        for entity in sorted(e for e, now in changed if now != self._source.triples_of(e)):
            digest.update(f"\n{entity}".encode())
            for t in self._changed[entity]:
                digest.update(f"\n{t.head}\t{t.relation}\t{t.tail}".encode())
        for t in sorted(self._off):
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

    def _edited(self, edit: Edit) -> "KnowledgeGraph":
        triple = edit.triple
        there = triple in self
        if edit.action == "add":
            self._check_new(triple)
            triples = list(self.triples_of(triple.head))
            place = len(triples) if edit.index is None else edit.index
            if not 0 <= place <= len(triples):
                raise GraphEditError(
                    f"Can't {edit} at place {place}: '{triple.head}' has {len(triples)} triples. "
                    f"Give a place from 0 to {len(triples)}."
                )
            triples.insert(place, triple)
            return self._with(edit, {triple.head: tuple(triples)}, self._off)
        if not there:
            raise GraphEditError(
                f"Can't {edit}: the graph '{self.name}' has no such triple. Look up the "
                f"triples of '{triple.head}' and name one of them."
            )
        if edit.action == "switch_off":
            return self._with(edit, {}, self._off | {triple})
        if edit.action == "switch_on":
            return self._with(edit, {}, self._off - {triple})
        left = tuple(t for t in self.triples_of(triple.head) if t != triple)
        if edit.action == "remove":
            return self._with(edit, {triple.head: left}, self._off - {triple})
        return self._replaced(edit, triple, left)

    def _replaced(self, edit: Edit, old: Triple, left: tuple[Triple, ...]) -> "KnowledgeGraph":
        new = edit.new
        if new is None:
            raise GraphEditError(f"Can't replace {old}: the edit names no new triple. Give one.")
        if new == old:
            return self
        self._check_new(new)
        off = (self._off - {old}) | ({new} if old in self._off else set())
        if normalise_name(old.head) == normalise_name(new.head):
            there = self.triples_of(old.head)
            return self._with(edit, {old.head: tuple(new if t == old else t for t in there)}, off)
        moved = (*self.triples_of(new.head), new)
        return self._with(edit, {old.head: left, new.head: moved}, off)

    def _check_new(self, triple: Triple) -> None:
        problem = triple.problem()
        if not problem and not normalise_name(triple.head):
            problem = "its head holds nothing that can be seen in a text; give it a name"
        if problem:
            raise GraphEditError(f"The triple {triple} can't be used: {problem}.")
        if triple in self:
            how = "" if self.is_on(triple) else " but switched off; switch it on instead"
            raise GraphEditError(f"The triple {triple} is in the graph already{how}.")

    def _with(
        self, edit: Edit, changed: Mapping[str, tuple[Triple, ...]], off: Set[Triple]
    ) -> "KnowledgeGraph":
        now = {normalise_name(head): triples for head, triples in changed.items()}
        graph = self.updated(now, off)
        graph._before = self
        graph.history = (*self.history, edit)
        return graph

    def updated(
        self, changed: Mapping[str, tuple[Triple, ...]], off: Set[Triple]
    ) -> "KnowledgeGraph":
        """Return a graph with other triples of some entities, and no history.

        Args:
            changed: by entity, as names are compared, all of its triples now.
            off: every triple of the graph that is switched off.
        """
        graph = object.__new__(KnowledgeGraph)
        graph._load(self._source, self.name)
        graph._changed = self._changed.update(changed)
        graph._off = off
        graph._added_names = self._added_names
        if changed:
            loaded, now = (
                {
                    form
                    for entity in changed
                    if (found := of(entity))
                    for form in forms_of(entity, found, self.aliases)
                }
                for of in (self._source.triples_of, graph._now)
            )
            gone = {  # its own names; another name may be said by other entities too
                form
                for entity in changed
                if not graph._now(entity)
                for form in forms_of(entity, (), self.aliases)
            }
            graph._added_names = self._added_names.changed(
                added=sorted(now - loaded), removed=gone - loaded - now
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
