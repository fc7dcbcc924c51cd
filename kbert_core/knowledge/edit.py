"""Edit: one change to a graph; and Draft: a graph while several are made to it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from kbert_core.errors import GraphEditError
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple, refuse_no_triple

Action = Literal["add", "remove", "replace", "switch_off", "switch_on"]


@dataclass(frozen=True)
class Edit:
    """One change to a graph."""

    action: Action
    triple: Triple  # for ``add`` the new one
    new: Triple | None = None  # for ``replace``, what stands in its place
    index: int | None = None  # for ``add``, where among the triples of its head; None: last

    def __str__(self) -> str:
        if self.action == "replace":
            return f"replace {self.triple} by {self.new}"
        return f"{self.action.replace('_', ' ')} {self.triple}"


class Draft:
    """A graph while edits are made to it; the cost of an edit depends only on what it changes.

    Args:
        graph: a KnowledgeGraph.

    Attributes:
        made: the edits that changed something.
        switched: the triples that were switched, and whether each is on now.
    """

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._entities: dict[str, _Places] = {}  # those looked at
        self._changed: dict[str, None] = {}  # those with other triples
        self.made: list[Edit] = []
        self.switched: dict[Triple, bool] = {}

    def triples(self) -> dict[str, tuple[Triple, ...]]:
        """Return all triples of every entity that was changed."""
        return {entity: tuple(self._entities[entity]) for entity in self._changed}

    def make(self, edit: Edit) -> None:
        """Make an edit.

        Raises:
            GraphEditError: it doesn't fit.
        """
        if not isinstance(edit, Edit):
            raise GraphEditError(f"Got {edit!r:.60} as an edit. Give Edit(action, triple).")
        old, new = edit.triple, edit.new
        for triple in filter(None, (old, new)):
            refuse_no_triple(triple)
        if edit.action == "add":
            self._check_new(old)
            places = self._of(old)
            if edit.index is not None and not 0 <= edit.index <= len(places):
                raise GraphEditError(
                    f"Can't {edit} at place {edit.index}: '{old.head}' has {len(places)} triples. "
                    f"Give a place from 0 to {len(places)}."
                )
            self._to_change(old).insert(old, edit.index)
        elif old not in self._of(old):
            raise GraphEditError(
                f"Can't {edit}: the graph '{self._graph.name}' has no such triple. Look up the "
                f"triples of '{old.head}' and name one of them."
            )
        elif edit.action in ("switch_off", "switch_on"):
            self.switched[old] = edit.action == "switch_on"
        elif edit.action == "remove":
            self._to_change(old).remove(old)
            self.switched[old] = True
        elif new is None:
            raise GraphEditError(f"Can't replace {old}: the edit names no new triple. Give one.")
        elif new == old:
            return
        else:
            self._replace(old, new)
        self.made.append(edit)

    def _replace(self, old: Triple, new: Triple) -> None:
        self._check_new(new)
        before, after = self._to_change(old), self._to_change(new)
        if before is after:
            before.replace(old, new)
        else:
            before.remove(old)
            after.insert(new)
        self.switched[new], self.switched[old] = self._is_on(old), True

    def _check_new(self, triple: Triple) -> None:
        if not normalise_name(triple.usable().head):
            raise GraphEditError(
                f"The triple {triple} can't be used: its head holds nothing that can be seen in a "
                "text; give it a name."
            )
        if triple in self._of(triple):
            how = "" if self._is_on(triple) else " but switched off; switch it on instead"
            raise GraphEditError(f"The triple {triple} is in the graph already{how}.")

    def _is_on(self, triple: Triple) -> bool:
        on = self.switched.get(triple)
        return self._graph.is_on(triple) if on is None else on

    def _of(self, triple: Triple) -> "_Places":
        entity = normalise_name(triple.head)
        if entity not in self._entities:
            self._entities[entity] = _Places(self._graph.triples_of(entity))
        return self._entities[entity]

    def _to_change(self, triple: Triple) -> "_Places":
        self._changed[normalise_name(triple.head)] = None
        return self._of(triple)


class _Places:
    """The triples of one entity in order; finding, appending and removing are fast."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self._slots: list[Triple | None] = list(triples)  # None: removed
        self._place = {triple: i for i, triple in enumerate(self._slots)}

    def __contains__(self, triple: Triple) -> bool:
        return triple in self._place

    def __len__(self) -> int:
        return len(self._place)

    def __iter__(self) -> Iterator[Triple]:
        return (triple for triple in self._slots if triple is not None)

    def insert(self, triple: Triple, index: int | None = None) -> None:
        if index is None or index == len(self):
            self._place[triple] = len(self._slots)
            self._slots.append(triple)
        else:
            triples = list(self)
            triples.insert(index, triple)
            self._slots = [*triples]
            self._place = {triple: i for i, triple in enumerate(triples)}

    def remove(self, triple: Triple) -> None:
        self._slots[self._place.pop(triple)] = None

    def replace(self, triple: Triple, new: Triple) -> None:
        place = self._place[new] = self._place.pop(triple)
        self._slots[place] = new
