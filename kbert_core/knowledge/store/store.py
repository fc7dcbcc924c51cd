"""GraphStore: a graph file that is read, edited, undone and looked back on."""

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kbert_core.errors import GraphEditError, GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.name_index import Names
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.store import log
from kbert_core.knowledge.store.database import (
    THEN,
    connect,
    create_indexes,
    database_errors,
    fact,
    graph_lock,
    last_revision,
    new_file,
    transaction,
)
from kbert_core.knowledge.store.log import Change, Entry, Origin
from kbert_core.knowledge.store.names import NamesFile, build_names, index_names, rebuild_names
from kbert_core.knowledge.store.snapshot import Connections, Snapshot
from kbert_core.knowledge.triple import Triple

logger = logging.getLogger(__name__)

PENDING = 10_000  # entities edited since the names were indexed, before they are indexed anew


class GraphStore:
    """A graph file. Several processes may read it while one writes.

    Args:
        path: of the file.
        write: whether it will be edited.

    Raises:
        GraphFileError: it can't be opened; see ``database.connect``.
    """

    def __init__(self, path: str | Path, *, write: bool = False) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._write = write
        self._database = connect(self.path, write=write)
        self._connections = Connections(self.path)
        self._names: tuple[NamesFile, Names] | None = None
        self._lost_names = False  # their index is gone, damaged, or of an earlier format
        self._data_version = self._revision = -1
        self._closed = False
        with self._using():
            self._graph = self._read_graph()
        if write and self._lost_names:
            self._index_names()
            self._graph = self.graph()

    @classmethod
    def create(cls, path: str | Path, *, name: str = "") -> "GraphStore":
        """Make an empty graph file and open it for edits.

        Raises:
            GraphFileError: there is a file of that name, or no room.
        """
        path = Path(path)
        if not path.parent.is_dir():
            raise GraphFileError(f"{path}: there is no folder {path.parent}. Make it first.")
        with graph_lock(path):
            if path.exists():
                raise GraphFileError(
                    f"{path}: is there already. Give another name, or open that one."
                )
            with new_file(path, name=name or path.stem) as database:
                create_indexes(database)
                build_names(database, path)
        return cls(path, write=True)

    def __enter__(self) -> "GraphStore":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file. Graphs got from it can still be read."""
        if self._closed:
            return
        if self._write and self._many_wait():
            self._index_names()
        with self._using():
            self._closed = True
            self._connections.close()
            if self._write:
                with suppress(sqlite3.OperationalError):  # the log is read at the next opening
                    self._database.execute("PRAGMA busy_timeout = 0")
                    self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._database.close()

    @property
    def revision(self) -> int:
        """The number of the last entry that :meth:`graph` shows."""
        return self._revision

    # Editing

    def apply(self, *edits: Edit, who: str = "", seen: int | None = None) -> Entry:
        """Make edits together, as one entry of the log; when this returns they are on disk.

        Args:
            edits: one after the other.
            who: who makes them.
            seen: the revision that whoever edits was looking at.

        Raises:
            GraphEditError: an edit doesn't fit; nothing is changed.
            GraphConflict: what is edited was edited since ``seen``.
            GraphFileError: the file can't be written.
        """
        if not edits:
            raise GraphEditError("No edits were given. Give one or more.")
        action = edits[0].action if len(edits) == 1 else "edits"
        triples = (triple for edit in edits for triple in (edit.triple, edit.new) if triple)
        entities = {normalise_name(triple.head) for triple in triples}
        with self._using(), transaction(self._database):
            self._graph = self._read_graph()
            if seen is not None and seen != self._revision:
                log.refuse_conflict(self._database, seen, entities)
            self._graph.apply(*edits)  # for its checks
            entry = log.write_entry(
                self._database, self._revision + 1, action, len(edits), who, entities=entities
            )
            for edit in edits:
                log.write_edit(self._database, edit, entry.revision)
        return self._after(entry)

    def undo(self, revision: int | None = None, *, who: str = "") -> Entry:
        """Take back one entry of the log, whichever; the undo is an entry too.

        Args:
            revision: which; None: the last one that is no undo and not undone.
            who: who does.

        Raises:
            GraphEditError: there is none, it is undone already, or a later
                entry changed the same triples.
        """
        with self._using(), transaction(self._database):
            database = self._database
            self._graph = self._read_graph()
            entries = log.entries(database)
            if revision is None:
                revision = log.last_done(entries)
                if revision is None:
                    raise GraphEditError(f"{self.path}: there is nothing to undo.")
            if revision == 0:
                raise GraphEditError(f"{self.path}: entry 0 made the graph, and can't be undone.")
            undone = self._entry(revision, entries)
            if undone.undone:
                raise GraphEditError(f"{self.path}: entry {revision} is undone already.")
            touched = database.execute("SELECT entity FROM touched WHERE revision = ?", (revision,))
            entities = [entity for (entity,) in touched]
            entry = log.write_entry(
                database,
                self._revision + 1,
                "undo",
                undone.edits,
                who,
                undoes=revision,
                entities=entities,
            )
            log.undo_entry(database, self.path, revision, entry.revision)
            if not entities:  # an import
                build_names(database, self.path)
        return self._after(entry)

    def redo(self, *, who: str = "") -> Entry:
        """Make again what was undone last, unless something else was edited since.

        Raises:
            GraphEditError: there is nothing to redo.
        """
        with self._using():
            revision = log.last_undo(log.entries(self._database))
            if revision is None:
                raise GraphEditError(f"{self.path}: nothing was undone since the last edit.")
            return self.undo(revision, who=who)

    # Looking back

    def history(self, *, entity: str | None = None, most: int | None = None) -> list[Entry]:
        """Return the log, the latest entry first.

        Args:
            entity: only what touched its triples.
            most: at most so many.
        """
        with self._using():
            return log.entries(self._database, entity=entity, most=most)

    def changes(
        self, revision: int, *, entity: str | None = None, most: int = 1000
    ) -> list[Change]:
        """Return what an entry did, triple by triple.

        Args:
            revision: of the entry.
            entity: only what it did to this one's triples.
            most: at most so many.
        """
        with self._using():
            return log.changes(self._database, revision, entity=entity, most=most)

    def changes_between(self, since: int, then: int) -> list[Change]:
        """Return how each triple differs between two revisions; what came back doesn't."""
        with self._using():
            return log.changes_between(self._database, since, then)

    def origin(self, triple: Triple) -> Origin:
        """Say where a triple comes from.

        Raises:
            GraphEditError: the graph has no such triple.
        """
        origin = self.origins(triple.head).get(triple)
        if origin is None:
            raise GraphEditError(f"{self.path}: has no triple {triple}.")
        return origin

    def origins(self, entity: str) -> dict[Triple, Origin]:
        """Say where every triple of an entity comes from."""
        with self._using():
            return log.origins(self._database, entity)

    def at(self, revision: int) -> KnowledgeGraph:
        """Return the graph as it was at an earlier revision; to compare, not to match fast.

        Raises:
            GraphEditError: the log has no such revision.
        """
        with self._using():
            self._entry(revision, log.entries(self._database))
            rows = self._database.execute(
                f"SELECT head, relation, tail, off FROM triple WHERE {THEN} "
                "ORDER BY entity, place, version",
                {"then": revision},
            ).fetchall()
        triples = [Triple(*row[:3]) for row in rows]
        name = f"{self._graph.name} @{revision}"
        off = [triple for triple, row in zip(triples, rows, strict=True) if row[3]]
        return KnowledgeGraph(triples, name=name, aliases=self._graph.aliases, off=off)

    def _entry(self, revision: int, entries: list[Entry]) -> Entry:
        for entry in entries:
            if entry.revision == revision:
                return entry
        raise GraphEditError(
            f"{self.path}: its log has no entry {revision}; it goes from 0 to {self._revision}."
        )

    # Reading

    def graph(self) -> KnowledgeGraph:
        """Return the graph as it is now, with all that other processes have edited."""
        with self._using():
            version = self._database.execute("PRAGMA data_version").fetchone()[0]
            if version != self._data_version:
                self._graph = self._read_graph()
            return self._graph

    @contextmanager
    def _using(self) -> Iterator[None]:
        """One thread at a time uses the store's own connection."""
        with self._lock, database_errors(self.path):
            yield

    def _read_graph(self) -> KnowledgeGraph:
        """The newest graph: a snapshot of when its names were indexed, and edits since."""
        database = self._database
        if not database.in_transaction:
            database.execute("BEGIN")
            try:
                return self._read_graph()
            finally:
                database.execute("COMMIT")
        self._data_version = database.execute("PRAGMA data_version").fetchone()[0]
        facts = NamesFile.of(database)
        revision = last_revision(database)
        if self._names is None or self._names[0] != facts:
            names = facts.read(self.path)
            self._lost_names = names is None
            names = names or index_names(database, facts.revision)
            self._names = facts, names
            snapshot = Snapshot(self._connections, facts.revision, names)
            graph = KnowledgeGraph.over(snapshot, name=fact(database, "title"))
            since = facts.revision
        else:
            graph, since = self._graph, self._revision
        if revision > since:
            graph = self._edited_since(graph, since)
        self._revision = revision
        return graph

    def _edited_since(self, graph: KnowledgeGraph, revision: int) -> KnowledgeGraph:
        """A graph with what was edited after a revision."""
        edited: dict[str, list[Triple]] = {}
        off: set[Triple] = set()
        for entity, head, relation, tail, is_off in self._database.execute(
            "SELECT edited.entity, head, relation, tail, off "
            "FROM (SELECT DISTINCT entity FROM touched WHERE revision > ?) AS edited "
            "LEFT JOIN triple ON triple.entity = edited.entity AND removed IS NULL "
            "ORDER BY place, version",
            (revision,),
        ):
            triples = edited.setdefault(entity, [])
            if head is not None:
                triples.append(Triple(head, relation, tail))
                if is_off:
                    off.add(triples[-1])
        changed = {entity: tuple(triples) for entity, triples in edited.items()}
        return graph.updated(changed, off)

    def _after(self, entry: Entry) -> Entry:
        """See one's own edit."""
        with self._using():
            self._graph = self._read_graph()
        return entry

    # Indexing names

    def _many_wait(self) -> bool:
        """Whether so much was edited since the names were indexed that opening gets slow."""
        query = "SELECT count(*) FROM touched WHERE revision > ?"
        with self._using():
            indexed = NamesFile.of(self._database).revision
            return self._database.execute(query, (indexed,)).fetchone()[0] > PENDING

    def _index_names(self) -> None:
        try:
            rebuild_names(self.path)
        except GraphFileError as error:
            logger.warning(
                "%s: its names could not be indexed: %s Every edit is safe, but opening the graph "
                "stays slow until they are; open it again once the cause is mended.",
                self.path,
                error,
            )
