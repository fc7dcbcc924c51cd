"""Edit: one change to a graph; and Draft: a graph while several are made to it."""

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
        self._entities: dict[str, dict[Triple, None]] = {}  # those looked at, in order
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
            _insert(self._to_change(old), old, edit.index)
        elif old not in self._of(old):
            raise GraphEditError(
                f"Can't {edit}: the graph '{self._graph.name}' has no such triple. Look up the "
                f"triples of '{old.head}' and name one of them."
            )
        elif edit.action in ("switch_off", "switch_on"):
            self.switched[old] = edit.action == "switch_on"
        elif edit.action == "remove":
            del self._to_change(old)[old]
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
        index = [*before].index(old) if before is after else None
        del before[old]
        _insert(after, new, index)
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

    def _of(self, triple: Triple) -> dict[Triple, None]:
        entity = normalise_name(triple.head)
        if entity not in self._entities:
            self._entities[entity] = dict.fromkeys(self._graph.triples_of(entity))
        return self._entities[entity]

    def _to_change(self, triple: Triple) -> dict[Triple, None]:
        self._changed[normalise_name(triple.head)] = None
        return self._of(triple)


def _insert(triples: dict[Triple, None], triple: Triple, index: int | None) -> None:
    """Put a triple among those of an entity, which are in order; None: at the end."""
    following = [] if index is None else [*triples][index:]
    triples[triple] = None
    for later in following:
        triples[later] = triples.pop(later)
