"""GraphStore: a graph file that is read, edited, undone and looked back on."""

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cached_property, lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

from kbert_core.errors import GraphEditError, GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.name_index import Names
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_lab.graphs import store
from kbert_lab.graphs.store import THEN, checked, log, triple_of
from kbert_lab.graphs.store.importing import make_graph
from kbert_lab.graphs.store.log import Change, Entry, Origin
from kbert_lab.graphs.store.names import (
    NamesFile,
    aliases_of,
    build_names,
    index_names,
    rebuild_names,
)

logger = logging.getLogger(__name__)

KEPT = 4096  # entities whose triples stay in memory
PENDING = 10_000  # entities edited since the names were indexed, before they are indexed anew


class Connections(threading.local):
    """One connection for every thread that reads a graph file."""

    def __init__(self, path: Path) -> None:  # once in every thread
        self.path = path
        self._database: sqlite3.Connection | None = None

    def get(self) -> sqlite3.Connection:
        """Return this thread's connection."""
        self._database = self._database or store.connect(self.path)
        return self._database

    def close(self) -> None:
        """Close this thread's; one is opened again when it is asked for."""
        if self._database is not None:
            self._database.close()
        self._database = None


class Snapshot:
    """A graph file at one revision, as a ``TripleSource``: what is edited later doesn't show."""

    def __init__(self, connections: Connections, revision: int, names: Names) -> None:
        self._connections = connections
        self._then = {"then": revision}
        self.names = names
        query = f"SELECT head, relation, tail FROM triple WHERE off AND {THEN}"
        self.off = frozenset(map(triple_of, self._rows(query)))
        self.aliases = aliases_of(connections.get())
        self.fingerprint = f"{store.fact(connections.get(), 'id')}-{revision}"
        self.triples_of = lru_cache(KEPT)(self._triples_of)

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        return self._rows(f"SELECT count(*) FROM triple WHERE {THEN}")[0][0]

    def items(self) -> Iterator[tuple[str, tuple[Triple, ...]]]:
        """Every entity, by name, with its triples."""
        path = self._connections.path  # opened anew: whoever reads for long may stop half way
        with store.database_errors(path), closing(store.connect(path)) as database:
            rows = database.execute(
                f"SELECT entity, head, relation, tail FROM triple WHERE {THEN} "
                "ORDER BY entity, place, version",
                self._then,
            )
            for entity, of_entity in groupby(rows, key=itemgetter(0)):
                checked((entity,), str)
                yield entity, tuple([triple_of(row[1:]) for row in of_entity])

    def _triples_of(self, entity: str) -> tuple[Triple, ...]:
        rows = self._rows(
            f"SELECT head, relation, tail FROM triple WHERE entity = :entity AND {THEN} "
            "ORDER BY place, version",
            entity=entity,
        )
        return tuple(map(triple_of, rows))

    def _rows(self, query: str, **values: Any) -> list[tuple]:
        with store.database_errors(self._connections.path):
            return self._connections.get().execute(query, self._then | values).fetchall()


class GraphStore:
    """A graph file. Several processes may read it while one writes.

    Attributes:
        path: of the file; of a graph on a server its address.
        file: the graph file, also of a graph on a server.

    Raises:
        GraphFileError: it can't be opened; see ``store.connect``.
    """

    path: Any

    def __init__(self, path: str | Path, *, write: bool = False) -> None:
        self.path = self.file = Path(path)
        self._database = store.connect(self.file, write=write)
        self._connections = Connections(self.file)
        self._lock = threading.RLock()
        self._write = write
        self._names: NamesFile | None = None
        self._lost_names = False  # their index is gone, damaged, or of an earlier format
        self._data_version = self._revision = -1
        self._closed = False
        with self._using():
            self._graph = self._read_graph()
        if self._lost_names and os.access(self.file.parent, os.W_OK):
            self._index_names()
            self._graph = self.graph()

    @classmethod
    def create(cls, path: str | Path, *, name: str = "") -> "GraphStore":
        """Make an empty graph file and open it for edits."""
        path = Path(path)
        if not path.parent.is_dir():
            raise GraphFileError(f"{path}: there is no folder {path.parent}. Make it first.")
        with store.graph_lock(path):
            if path.exists():
                raise GraphFileError(
                    f"{path}: is there already. Give another name, or open that one."
                )
            make_graph(path, name=name or path.stem)
        return cls(path, write=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file. Graphs got from it can still be read."""
        if self._closed:
            return
        if self._write:
            self._index_names(at_least=PENDING)
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

    @cached_property
    def identity(self) -> str:
        """Two graphs of the same one hold the same at the same revision."""
        with self._using():
            return store.fact(self._database, "id")

    # Editing

    def apply(self, *edits: Edit, who: str = "", seen: int | None = None) -> Entry:
        """Make edits together, as one entry of the log; when this returns they are on disk.

        Args:
            edits: one after the other.
            seen: the revision that whoever edits was looking at.

        Raises:
            GraphEditError: an edit doesn't fit; nothing is changed.
            GraphConflict: one of the triples was edited since ``seen``, or is there since then.
            GraphFileError: the file can't be written.
        """
        if not edits:
            raise GraphEditError("No edits were given. Give one or more.")
        action = edits[0].action if len(edits) == 1 else "edits"
        triples = [triple for edit in edits for triple in (edit.triple, edit.new) if triple]
        entities = {normalise_name(triple.head) for triple in triples}
        with self._using():
            with self._writing():
                self._graph = self._read_graph()
                if seen is not None and seen != self._revision:
                    log.refuse_conflict(self._database, seen, triples)
                self._graph.apply(*edits)
                entry = Entry(self._revision + 1, store.now(), who, action, len(edits))
                log.write_entry(self._database, entry, entities)
                for edit in edits:
                    log.write_edit(self._database, edit, entry.revision)
            self._graph = self._read_graph()
        return entry

    def undo(self, revision: int | None = None, *, who: str = "") -> Entry:
        """Take back one entry of the log, whichever; the undo is an entry too.

        Args:
            revision: which; None: the last one that is no undo and not undone.

        Raises:
            GraphEditError: there is none, it is undone already, or a later
                entry changed the same triples.
        """
        with self._using():
            with self._writing():
                entry = self._undo(revision, who)
            self._graph = self._read_graph()
        return entry

    def _undo(self, revision: int | None, who: str) -> Entry:
        self._graph = self._read_graph()
        entries = log.entries(database := self._database)
        done = (e.revision for e in entries if e.undoes is None and not e.undone)
        if revision is None and not (revision := next(done, 0)):
            raise GraphEditError(f"{self.path}: there is nothing to undo.")
        if revision == 0:
            raise GraphEditError(f"{self.path}: entry 0 made the graph, and can't be undone.")
        undone = self._entry(revision, entries)
        if undone.undone:
            raise GraphEditError(f"{self.path}: entry {revision} is undone already.")
        rows = database.execute("SELECT entity FROM touched WHERE revision = ?", (revision,))
        entities = [entity for (entity,) in rows]
        entry = Entry(self._revision + 1, store.now(), who, "undo", undone.edits, revision)
        log.write_entry(database, entry, entities)
        log.undo_entry(database, self.path, revision, entry.revision)
        if not entities:  # an import
            build_names(database, self.file)
        return entry

    def redo(self, *, who: str = "") -> Entry:
        """Make again what was undone last, unless something else was edited since.

        Raises:
            GraphEditError: there is none.
        """
        with self._using():
            revision = log.last_undo(log.entries(self._database))
            if revision is None:
                raise GraphEditError(f"{self.path}: nothing was undone since the last edit.")
            return self.undo(revision, who=who)

    # Looking back

    def history(self, *, entity: str | None = None, most: int | None = None) -> list[Entry]:
        """Return the log, the latest entry first; of an entity: what touched its triples."""
        with self._using():
            return log.entries(self._database, entity=entity, most=most)

    def changes(
        self, revision: int, *, entity: str | None = None, most: int = 1000
    ) -> list[Change]:
        """Return what an entry did, triple by triple; to an entity, or to all of them."""
        with self._using():
            return log.changes(self._database, revision - 1, revision, entity=entity, most=most)

    def changes_between(self, since: int, then: int) -> list[Change]:
        """Return how each triple differs between two revisions; what came back doesn't."""
        with self._using():
            return log.effective(log.changes(self._database, since, then))

    def source(self, revision: int) -> str | None:
        """Name the file that an entry imported; None: it is no import."""
        with self._using():
            query = "SELECT name FROM source WHERE revision = ? ORDER BY id"
            row = self._database.execute(query, (revision,)).fetchone()
            return checked(row, str)[0] if row else None

    def origin(self, triple: Triple) -> Origin:
        """Say where a triple comes from; a ``GraphEditError`` where there is none such."""
        origin = self.origins(triple.head).get(triple)
        if origin is None:
            raise GraphEditError(f"{self.path}: has no triple {triple}.")
        return origin

    def origins(self, entity: str) -> dict[Triple, Origin]:
        """Say where every triple of an entity comes from."""
        with self._using():
            rows = self._database.execute(
                "SELECT head, relation, tail, source.name, line, added FROM triple "
                "LEFT JOIN source ON source.id = source WHERE entity = ? AND removed IS NULL",
                (normalise_name(entity),),
            )
            return {
                triple_of(row[:3]): Origin(*checked(row[3:], str | None, int | None, int))
                for row in rows
            }

    def at(self, revision: int) -> KnowledgeGraph:
        """Return the graph as it was at an earlier revision; its names are indexed for that."""
        with self._using(), store.transaction(self._database, "BEGIN"):
            self._entry(revision, log.entries(self._database))
            names = index_names(self._database, revision)
            snapshot = Snapshot(self._connections, revision, names)
            return KnowledgeGraph.over(snapshot, name=f"{self._graph.name} @{revision}")

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
            if self._version() != self._data_version:
                self._graph = self._read_graph()
            return self._graph

    def _version(self) -> int:
        """A number that is another one once another process has edited the graph."""
        return self._database.execute("PRAGMA data_version").fetchone()[0]

    @contextmanager
    def _using(self) -> Iterator[None]:
        with self._lock, store.database_errors(self.file):
            yield

    def _writing(self) -> AbstractContextManager[None]:
        """Make all changes of a block, or none."""
        return store.transaction(self._database)

    def _read_graph(self) -> KnowledgeGraph:
        """The newest graph: a snapshot of when its names were indexed, and edits since."""
        database = self._database
        if not database.in_transaction:
            with store.transaction(database, "BEGIN"):
                return self._read_graph()
        self._data_version = self._version()
        facts, revision = NamesFile.of(database), store.last_revision(database)
        if self._names == facts:
            graph, since = self._graph, self._revision
        else:
            names, since = facts.read(self.file), facts.revision
            self._lost_names = names is None
            names = names or index_names(database, since)
            snapshot = Snapshot(self._connections, since, names)
            graph = KnowledgeGraph.over(snapshot, name=store.fact(database, "title"))
            self._names = facts
        self._revision = revision
        return self._edited_since(graph, since) if revision > since else graph

    def _edited_since(self, graph: KnowledgeGraph, revision: int) -> KnowledgeGraph:
        edited: dict[str, tuple[Triple, ...]] = {}
        off: set[Triple] = set()
        for entity, rows in groupby(
            self._database.execute(
                "SELECT edited.entity, head, relation, tail, off "
                "FROM (SELECT DISTINCT entity FROM touched WHERE revision > ?) AS edited "
                "LEFT JOIN triple ON triple.entity = edited.entity AND removed IS NULL "
                "ORDER BY edited.entity, place, version",
                (revision,),
            ),
            key=itemgetter(0),
        ):
            triples = {triple_of(row[1:4]): row[4] for row in rows if row[1] is not None}
            checked((entity,), str)
            edited[entity] = tuple(triples)
            off.update(triple for triple, is_off in triples.items() if is_off)
        return graph.updated(edited, off)

    def _index_names(self, *, at_least: int = 0) -> None:
        """Index the names anew where so many entities were edited since that was done."""
        try:
            with self._using():
                indexed = NamesFile.of(self._database).revision
                query = "SELECT count(*) FROM touched WHERE revision > ?"
                waiting = self._database.execute(query, (indexed,)).fetchone()[0]
            if waiting >= at_least:
                rebuild_names(self.file)
        except GraphFileError as error:
            logger.warning(
                "%s: its names could not be indexed: %s Every edit is saved, but the graph "
                "opens slowly without the index. Remove the cause and open the graph again.",
                self.path,
                error,
            )
