"""MemoryStore: edits to a graph that are kept in memory, in a log like that of a graph file."""

import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from pathlib import Path

from kbert_core.errors import GraphConflict, GraphEditError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple
from kbert_lab.graphs.store import TABLES, create_indexes, last_revision, now, transaction
from kbert_lab.graphs.store.importing import Source
from kbert_lab.graphs.store.log import Entry
from kbert_lab.graphs.store.store import GraphStore


@dataclass(frozen=True, slots=True)
class Step:
    """What one entry did: its edits, one after the other, and the file they came from, if any."""

    edits: tuple[Edit, ...]
    source: Source | None = None


class MemoryStore(GraphStore):
    """The log of edits to a graph that is neither copied nor written.

    Its database holds only entities that were edited, so there is no earlier revision of the whole
    graph (``at``). What counts is also a list of edits: made one after the other they give the
    graph, and an undo after which they wouldn't is refused.

    Attributes:
        base: the graph before the edits.
        steps: by revision, those that count and those undone.
    """

    def __init__(self, base: KnowledgeGraph) -> None:
        self.path = self.file = Path(base.name or "graph")  # what errors call it
        self.base = self._graph = base
        self.steps: dict[int, Step] = {}
        self._lock = threading.RLock()
        self._revision, self._write, self._closed = 0, False, False
        self._database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._database.executescript(TABLES)
        create_indexes(self._database)
        self._database.execute("INSERT INTO entry VALUES (0, ?, '', 'create', 0, NULL)", (now(),))

    def close(self) -> None:
        """Let go of the memory."""
        self._database.close()

    def graph(self) -> KnowledgeGraph:
        """Return the graph as it is now."""
        return self._graph

    def standing(self) -> list[Step]:
        """Return the steps that count, in the order in which they were made."""
        steps = ((self.steps.get(e.revision), e.undone) for e in reversed(self.history()))
        return [step for step, undone in steps if step is not None and not undone]

    def apply(self, *edits: Edit, who: str = "", seen: int | None = None) -> Entry:
        """See ``GraphStore.apply``."""
        with self._using():
            graph = self._graph.apply(*edits)
            entry = super().apply(*edits, who=who, seen=seen)
            self.steps[entry.revision], self._graph = Step(edits), graph
        return entry

    def add(self, source: Source) -> Entry:
        """Add the triples of a file as one entry.

        Raises:
            GraphEditError: a triple doesn't fit or is there already, or the file has none.
        """
        lines = {Triple(*triple): line for line, *triple in source.rows}
        with self._using():
            edits = tuple(Edit("add", triple) for triple in lines)
            entry = replace(self.apply(*edits), action="import")
            revision, database = entry.revision, self._database
            with transaction(database):
                added = "INSERT INTO source (name, revision) VALUES (?, ?)"
                number = database.execute(added, (source.name, revision)).lastrowid
                query = "SELECT version FROM triple WHERE added = ? ORDER BY version"
                versions = database.execute(query, (revision,)).fetchall()
                database.executemany(
                    "UPDATE triple SET source = ?, line = ? WHERE version = ?",
                    ((number, line, *v) for line, v in zip(lines.values(), versions, strict=True)),
                )
                kind = "UPDATE entry SET action = 'import' WHERE revision = ?"
                database.execute(kind, (revision,))
            self.steps[revision] = Step(edits, source)
        return entry

    def _take_in(self, entities: Iterable[str]) -> None:
        for entity in sorted(entities):
            known = "SELECT 1 FROM touched WHERE entity = ?"
            if self._database.execute(known, (entity,)).fetchone() is None:
                self._database.executemany(
                    "INSERT INTO triple (id, entity, head, relation, tail, place, off, added) "
                    "SELECT ifnull(max(version), 0) + 1, ?, ?, ?, ?, ?, ?, 0 FROM triple",
                    (
                        (entity, *astuple(triple), place, not self.base.is_on(triple))
                        for place, triple in enumerate(self.base.triples_of(entity))
                    ),
                )

    def _check_undo(self, entry: Entry, entities: Iterable[str]) -> None:
        edits = [edit for step in self.standing() for edit in step.edits]
        try:
            graph = self.base.apply(*edits)
        except GraphEditError:
            graph = None
        query = "SELECT head, relation, tail, off FROM triple WHERE entity = ? AND removed IS NULL"
        for entity in entities:
            rows = {(*row[:3], bool(row[3])) for row in self._database.execute(query, (entity,))}
            if graph is None or rows != {
                (*astuple(triple), not graph.is_on(triple)) for triple in graph.triples_of(entity)
            }:
                raise GraphConflict(
                    f"{self.path}: entry {entry.undoes} can't be undone, what it edited was edited "
                    "after it. Undo what came later first, or edit the triples themselves."
                )
        assert graph is not None
        self._graph = graph

    def _read_graph(self) -> KnowledgeGraph:
        self._revision = last_revision(self._database)
        return self._graph
