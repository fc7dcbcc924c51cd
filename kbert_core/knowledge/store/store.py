"""GraphStore: a graph file that is read, edited, undone and looked back on."""

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from kbert_core.errors import GraphEditError, GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.store import log, undoing
from kbert_core.knowledge.store.edits import make, refuse_changed_since
from kbert_core.knowledge.store.log import Change, Entry, Origin
from kbert_core.knowledge.store.making import making
from kbert_core.knowledge.store.names import (
    FORMAT,
    NamesFile,
    Rebuilding,
    StoredNames,
    build_names,
    open_names,
)
from kbert_core.knowledge.store.schema import (
    connect,
    create_indexes,
    database_errors,
    fact,
    graph_lock,
    last_revision,
    writing,
)
from kbert_core.knowledge.store.snapshot import Connections, Snapshot
from kbert_core.knowledge.triple import Triple

logger = logging.getLogger(__name__)

INDEXING_FAILED = (
    "%s: its names could not be indexed: %s Every edit is safe, but opening the graph stays slow "
    "until they are; open it again once the cause is mended."
)
PENDING = 10_000  # entities edited since the names were indexed, before they are indexed anew


class GraphStore:
    """A graph file. Several processes may read it while one writes.

    Args:
        path: of the file.
        write: whether it will be edited.

    Raises:
        GraphFileError: it can't be opened; see ``schema.connect``.
    """

    def __init__(self, path: str | Path, *, write: bool = False) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._write = write
        self._database = connect(self.path, write=write)
        self._connections = Connections(self.path)
        self._rebuilding: Rebuilding | None = None
        self._said_why = False
        self._opened: tuple[NamesFile, StoredNames] | None = None
        self._data_version = self._revision = -1
        self._closed = False
        self._graph = self._read_graph()

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
            with making(path, name=name or path.stem) as database:
                create_indexes(database)
        return cls(path, write=True)

    def __enter__(self) -> "GraphStore":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file. Graphs got from it can still be read."""
        with self._using():
            if self._closed:
                return
            self._closed = True
            self._connections.close()
            if self._write:
                with suppress(sqlite3.OperationalError):  # the log is read at the next opening
                    self._database.execute("PRAGMA busy_timeout = 0")
                    self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._database.close()
        self._say_if_indexing_failed()

    @property
    def revision(self) -> int:
        """The number of the last entry that :meth:`graph` shows."""
        return self._revision

    def graph(self) -> KnowledgeGraph:
        """Return the graph as it is now, with all that other processes have edited."""
        with self._using():
            version = self._database.execute("PRAGMA data_version").fetchone()[0]
            if version != self._data_version:
                self._graph = self._read_graph()
            return self._graph

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
        touched = {
            normalise_name(triple.head)
            for edit in edits
            for triple in (edit.triple, edit.new)
            if triple is not None
        }
        with self._using(), writing(self._database):
            self._graph = self._read_graph()
            if seen is not None and seen != self._revision:
                refuse_changed_since(self._database, seen, touched)
            self._graph.apply(*edits)  # for its checks
            entry = log.write_entry(self._database, self._revision + 1, action, len(edits), who)
            for edit in edits:
                make(self._database, edit, entry.revision)
            log.touch(self._database, entry.revision, touched)
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
        with self._using(), writing(self._database):
            self._graph = self._read_graph()
            if revision is None:
                revision = undoing.last_done(self._database)
                if revision is None:
                    raise GraphEditError(f"{self.path}: there is nothing to undo.")
            found = self._database.execute(
                "SELECT edits FROM entry WHERE revision = ?", (revision,)
            ).fetchone()
            if found is None:
                raise GraphEditError(f"{self.path}: its log has no entry {revision}.")
            if revision == 0:
                raise GraphEditError(f"{self.path}: entry 0 made the graph, and can't be undone.")
            if revision in log.undone(self._database):
                raise GraphEditError(f"{self.path}: entry {revision} is undone already.")
            bulk = log.is_bulk(self._database, revision)
            entry = log.write_entry(
                self._database, self._revision + 1, "undo", found[0], who, undoes=revision
            )
            if bulk:
                undoing.swap_all(self._database, self.path, revision, entry.revision)
                build_names(self._database, self.path, entry.revision).note(self._database)
            else:
                touched = log.touched(self._database, revision)
                undoing.swap(self._database, self.path, revision, entry.revision, touched)
                log.touch(self._database, entry.revision, touched)
        return self._after(entry)

    def redo(self, *, who: str = "") -> Entry:
        """Make again what was undone last, unless something else was edited since.

        Raises:
            GraphEditError: there is nothing to redo.
        """
        with self._using():
            revision = undoing.last_undone(self._database)
            if revision is None:
                raise GraphEditError(f"{self.path}: nothing was undone since the last edit.")
            return self.undo(revision, who=who)

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

    def origin(self, triple: Triple) -> Origin:
        """Say where a triple comes from.

        Raises:
            GraphEditError: the graph has no such triple.
        """
        with self._using():
            found = log.origin(self._database, triple)
        if found is None:
            raise GraphEditError(f"{self.path}: has no triple {triple}.")
        return found

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
            known = self._database.execute(
                "SELECT 1 FROM entry WHERE revision = ?", (revision,)
            ).fetchone()
            if known is None:
                raise GraphEditError(
                    f"{self.path}: its log has no entry {revision}; it goes from 0 to "
                    f"{self._revision}."
                )
            rows = self._database.execute(
                "SELECT head, relation, tail, off FROM triple WHERE added <= ?1 "
                "AND (removed IS NULL OR removed > ?1) ORDER BY entity, place, version",
                (revision,),
            ).fetchall()
        triples = [Triple(*row[:3]) for row in rows]
        name = f"{self._graph.name} @{revision}"
        graph = KnowledgeGraph(triples, name=name, aliases=self._graph.aliases)
        off = {triple for triple, row in zip(triples, rows, strict=True) if row[3]}
        return graph.updated({}, off)

    # Reading

    @contextmanager
    def _using(self) -> Iterator[None]:
        """One thread at a time uses the store's own connection."""
        with self._lock, database_errors(self.path):
            yield

    def _read_graph(self) -> KnowledgeGraph:
        """The newest graph: a snapshot of when its names were indexed, and edits since."""
        database = self._database
        with database_errors(self.path):
            inside = database.in_transaction
            if not inside:
                database.execute("BEGIN")
            self._data_version = database.execute("PRAGMA data_version").fetchone()[0]
            said = NamesFile.of(database)
            revision = last_revision(database)
            if self._opened is None or self._opened[0] != said:
                names = open_names(database, self.path, said, write=self._write)
                self._opened = said, names
                snapshot = Snapshot(self._connections, said.revision, names)
                graph = KnowledgeGraph.over(snapshot, name=fact(database, "title"))
                since = said.revision
            else:
                graph, since = self._graph, self._revision
            if revision > since:
                graph = self._edited_since(graph, since)
            if not inside:
                database.execute("COMMIT")
        self._revision = revision
        return graph

    def _edited_since(self, graph: KnowledgeGraph, revision: int) -> KnowledgeGraph:
        """A graph with what was edited after a revision."""
        now: dict[str, list[Triple]] = {}
        off: set[Triple] = set()
        for entity, head, relation, tail, is_off in self._database.execute(
            "SELECT edited.entity, head, relation, tail, off "
            "FROM (SELECT DISTINCT entity FROM touched WHERE revision > ?) AS edited "
            "LEFT JOIN triple ON triple.entity = edited.entity AND removed IS NULL "
            "ORDER BY place, version",
            (revision,),
        ):
            triples = now.setdefault(entity, [])
            if head is not None:
                triples.append(Triple(head, relation, tail))
                if is_off:
                    off.add(triples[-1])
        as_before = {t for t in graph.off if normalise_name(t.head) not in now}
        edited = {entity: tuple(found) for entity, found in now.items()}
        return graph.updated(edited, off=as_before | off)

    def _after(self, entry: Entry) -> Entry:
        """See one's own edit, and have the names indexed anew when many wait."""
        with self._using():
            self._graph = self._read_graph()
            self._index_if_many_wait()
        return entry

    def _index_if_many_wait(self) -> None:
        if self._rebuilding is not None and self._rebuilding.running:
            return
        if self._say_if_indexing_failed():
            return  # it would fail again
        assert self._opened is not None
        said = self._opened[0]
        waiting = self._database.execute(
            "SELECT count(*) FROM touched WHERE revision > ?", (said.revision,)
        ).fetchone()[0]
        if waiting > PENDING or said.format != FORMAT:
            try:
                self._rebuilding = Rebuilding(self.path)
            except OSError as error:
                logger.warning(INDEXING_FAILED, self.path, error)

    def _say_if_indexing_failed(self) -> bool:
        """Log, once, why the other process couldn't index the names; return whether it couldn't."""
        failure = self._rebuilding.failure() if self._rebuilding else None
        if failure and not self._said_why:
            self._said_why = True
            logger.warning(INDEXING_FAILED, self.path, failure)
        return failure is not None
