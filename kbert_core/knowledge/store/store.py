"""GraphStore: a graph file that is read, edited, undone and looked back on."""

import logging
import os
import secrets
import sqlite3
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from kbert_core.errors import GraphConflict, GraphEditError, GraphFileError
from kbert_core.knowledge.graph import Edit, KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.store.names import (
    NamesFile,
    StoredNames,
    build_names,
    open_names,
    rebuild_in_background,
)
from kbert_core.knowledge.store.schema import (
    connect,
    create_indexes,
    create_tables,
    database_errors,
    writing,
)
from kbert_core.knowledge.store.snapshot import Connections, Snapshot
from kbert_core.knowledge.triples import Triple

PENDING = 10_000  # entities edited since the names were indexed, before they are indexed anew

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a graph's log.

    Attributes:
        revision: its number; the graph's revision after it.
        at: when, UTC, ISO 8601.
        who: as the one who edited called themselves; may be empty.
        action: "add", "remove", "replace", "switch_off", "switch_on", "edits"
            for several together, "import", "undo".
        edits: how many triples it touched.
        undoes: the revision it took back; None: it is no undo.
        undone: whether a later entry took it back.
    """

    revision: int
    at: str
    who: str
    action: str
    edits: int
    undoes: int | None = None
    undone: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What an entry did to one triple; None: it was not there before, or after.

    Attributes:
        id: of the triple, which stays when its fields are edited.
        before, after: the triple.
        was_on, is_on: whether it was, and is, injected.
    """

    id: int
    before: Triple | None
    after: Triple | None
    was_on: bool = True
    is_on: bool = True


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a triple comes from.

    Attributes:
        file, line: of the file it was imported from; None: it was edited.
        revision: the entry of the log that made it what it is.
    """

    file: str | None
    line: int | None
    revision: int


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
        self._rebuilding: subprocess.Popen[bytes] | None = None
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
        if path.exists():
            raise GraphFileError(f"{path}: is there already. Give another name, or open that one.")
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
        with making(part, path, name=name or path.stem) as database:
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
                self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._database.close()

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
            self._refuse_changed_since(seen, touched)
            self._graph.apply(*edits)  # for its checks
            entry = self._entry(action, len(edits), who)
            for edit in edits:
                self._make(edit, entry.revision)
            self._touch(entry.revision, touched)
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
            undone = self._undone()
            if revision is None:
                revision = self._last_done(undone)
            found = self._database.execute(
                "SELECT edits, action, undoes FROM entry WHERE revision = ?", (revision,)
            ).fetchone()
            if found is None:
                raise GraphEditError(f"{self.path}: its log has no entry {revision}.")
            if revision in undone:
                raise GraphEditError(f"{self.path}: entry {revision} is undone already.")
            bulk = self._is_bulk(revision)
            entry = self._entry("undo", found[0], who, undoes=revision)
            if bulk:
                self._swap_all(revision, entry.revision)
                build_names(self._database, self.path, entry.revision).note(self._database)
            else:
                touched = self._touched(revision)
                self._swap(revision, entry.revision, touched)
                self._touch(entry.revision, touched)
        return self._after(entry)

    def redo(self, *, who: str = "") -> Entry:
        """Make again what was undone last, unless something else was edited since.

        Raises:
            GraphEditError: there is nothing to redo.
        """
        with self._using():
            undone, undos = self._undone(), self._undos()
            for revision, undoes in self._database.execute(
                "SELECT revision, undoes FROM entry ORDER BY revision DESC"
            ).fetchall():
                if undoes is None:
                    break
                if revision not in undone and undoes not in undos:
                    return self.undo(revision, who=who)
        raise GraphEditError(f"{self.path}: nothing was undone since the last edit.")

    def history(self, *, entity: str | None = None, most: int | None = None) -> list[Entry]:
        """Return the log, the latest entry first.

        Args:
            entity: only what touched its triples.
            most: at most so many.
        """
        query = "SELECT revision, at, who, action, edits, undoes FROM entry "
        values: tuple[str, ...] = ()
        if entity is not None:
            values = (normalise_name(entity),) * 3
            query += (
                "WHERE revision IN (SELECT revision FROM touched WHERE entity = ? "
                "UNION SELECT added FROM triple WHERE entity = ? "
                "UNION SELECT removed FROM triple WHERE entity = ?) "
            )
        limit = -1 if most is None else most
        with self._using():
            undone = self._undone()
            rows = self._database.execute(
                f"{query} ORDER BY revision DESC LIMIT ?", (*values, limit)
            ).fetchall()
        return [
            Entry(revision, at, who, action, edits, undoes, revision in undone)
            for revision, at, who, action, edits, undoes in rows
        ]

    def changes(
        self, revision: int, *, entity: str | None = None, most: int = 1000
    ) -> list[Change]:
        """Return what an entry did, triple by triple.

        Args:
            revision: of the entry.
            entity: only what it did to this one's triples.
            most: at most so many.
        """
        where = "(added = :r OR removed = :r) AND added IS NOT removed"
        if entity is not None:
            where += " AND entity = :entity"
        values = {"r": revision, "most": 2 * most, "entity": normalise_name(entity or "")}
        with self._using():
            if entity is None and not self._is_bulk(revision):
                where += " AND entity IN (SELECT entity FROM touched WHERE revision = :r)"
            rows = self._database.execute(
                f"SELECT id, head, relation, tail, off, removed IS :r AS gone FROM triple "
                f"WHERE {where} ORDER BY version LIMIT :most",
                values,
            ).fetchall()
        before = {row[0]: row for row in rows if row[5]}
        after = {row[0]: row for row in rows if not row[5]}
        changes = []
        for id_ in dict.fromkeys(row[0] for row in rows):
            old, new = before.get(id_), after.get(id_)
            changes.append(
                Change(
                    id_,
                    Triple(*old[1:4]) if old else None,
                    Triple(*new[1:4]) if new else None,
                    not (old and old[4]),
                    not (new and new[4]),
                )
            )
        return changes[:most]

    def origin(self, triple: Triple) -> Origin:
        """Say where a triple comes from.

        Raises:
            GraphEditError: the graph has no such triple.
        """
        with self._using():
            found = self._database.execute(
                "SELECT source.name, line, added FROM triple LEFT JOIN source "
                "ON source.id = source WHERE entity = ? AND head = ? AND relation = ? "
                "AND tail = ? AND removed IS NULL",
                (normalise_name(triple.head), triple.head, triple.relation, triple.tail),
            ).fetchone()
        if found is None:
            raise GraphEditError(f"{self.path}: has no triple {triple}.")
        return Origin(*found)

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
        graph = KnowledgeGraph(triples, name=f"{self._graph.name} @{revision}")
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
            revision = database.execute("SELECT max(revision) FROM entry").fetchone()[0]
            if self._opened is None or self._opened[0] != said:
                names = open_names(database, self.path, said, write=self._write)
                self._opened = said, names
                snapshot = Snapshot(self._connections, said.revision, names)
                title = database.execute("SELECT value FROM fact WHERE name = 'title'").fetchone()
                graph = KnowledgeGraph.over(snapshot, name=title[0])
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
        if self._rebuilding is not None and self._rebuilding.poll() is None:
            return
        assert self._opened is not None
        said = self._opened[0]
        waiting = self._database.execute(
            "SELECT count(*) FROM touched WHERE revision > ?", (said.revision,)
        ).fetchone()[0]
        if waiting > PENDING:
            self._rebuilding = rebuild_in_background(self.path)

    # Writing, in a transaction

    def _entry(self, action: str, edits: int, who: str, undoes: int | None = None) -> Entry:
        at = now_in_words()
        entry = Entry(self._revision + 1, at, who, action, edits, undoes)
        self._database.execute(
            "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)",
            (entry.revision, at, who, action, edits, undoes),
        )
        return entry

    def _touch(self, revision: int, entities: Iterable[str]) -> None:
        self._database.executemany(
            "INSERT INTO touched VALUES (?, ?)", [(revision, entity) for entity in entities]
        )

    def _touched(self, revision: int) -> list[str]:
        rows = self._database.execute("SELECT entity FROM touched WHERE revision = ?", (revision,))
        return [entity for (entity,) in rows]

    def _refuse_changed_since(self, seen: int | None, touched: Iterable[str]) -> None:
        if seen is None or seen == self._revision:
            return
        for entity in touched:
            found = self._database.execute(
                "SELECT revision, who, at FROM touched JOIN entry USING (revision) "
                "WHERE revision > ? AND entity = ? ORDER BY revision DESC",
                (seen, entity),
            ).fetchone()
            if found:
                who = f" by {found[1]}" if found[1] else ""
                raise GraphConflict(
                    f"'{entity}' was edited{who} meanwhile (entry {found[0]}, {found[2]}), so "
                    "nothing was changed. Look at its triples as they are now, and edit again."
                )

    def _make(self, edit: Edit, revision: int) -> None:
        """Write one edit that is known to fit."""
        if edit.action == "add":
            entity = normalise_name(edit.triple.head)
            self._begin(edit.triple, self._place(entity, edit.index), revision)
            return
        version, id_, place, off = self._live(edit.triple)
        if edit.action in ("switch_off", "switch_on"):
            self._database.execute(f"{_COPY} WHERE version = ?", (revision, version))
            self._database.execute(
                "UPDATE triple SET off = ? WHERE version = last_insert_rowid()",
                (edit.action == "switch_off",),
            )
        self._end(version, revision)
        if edit.action == "replace" and edit.new is not None:
            entity = normalise_name(edit.new.head)
            if entity != normalise_name(edit.triple.head):
                place = self._place(entity, None)
            self._begin(edit.new, place, revision, id_=id_, off=off)

    def _live(self, triple: Triple) -> tuple[int, int, float, bool]:
        """Version, id, place and whether it is off, of a triple that is there."""
        return self._database.execute(
            "SELECT version, id, place, off FROM triple WHERE entity = ? AND head = ? "
            "AND relation = ? AND tail = ? AND removed IS NULL",
            (normalise_name(triple.head), triple.head, triple.relation, triple.tail),
        ).fetchone()

    def _begin(
        self,
        triple: Triple,
        place: float,
        revision: int,
        *,
        id_: int | None = None,
        off: bool = False,
    ) -> None:
        self._database.execute(
            "INSERT INTO triple (id, entity, head, relation, tail, place, off, added) VALUES ("
            "coalesce(?, (SELECT coalesce(max(version), 0) + 1 FROM triple)), ?, ?, ?, ?, ?, ?, ?)",
            (
                id_,
                normalise_name(triple.head),
                triple.head,
                triple.relation,
                triple.tail,
                place,
                off,
                revision,
            ),
        )

    def _end(self, version: int, revision: int) -> None:
        self._database.execute(
            "UPDATE triple SET removed = ? WHERE version = ?", (revision, version)
        )

    def _place(self, entity: str, index: int | None) -> float:
        """A place among the triples of an entity: before that of an index, or last."""
        places = [
            place
            for (place,) in self._database.execute(
                "SELECT place FROM triple WHERE entity = ? AND removed IS NULL "
                "ORDER BY place, version",
                (entity,),
            )
        ]
        if not places:
            return 0.0
        if index is None or index == len(places):
            return places[-1] + 1.0
        if index == 0:
            return places[0] - 1.0
        low, high = places[index - 1], places[index]
        middle = (low + high) / 2
        if low < middle < high:
            return middle
        self._spread(entity)
        return self._place(entity, index)

    def _spread(self, entity: str) -> None:
        """Number the places of an entity's triples anew, in the same order."""
        rows = self._database.execute(
            "SELECT version FROM triple WHERE entity = ? ORDER BY place, version", (entity,)
        ).fetchall()
        self._database.executemany(
            "UPDATE triple SET place = ? WHERE version = ?",
            [(float(number), version) for number, (version,) in enumerate(rows)],
        )

    # Undo

    def _undone(self) -> set[int]:
        """Every revision that an entry took back which is not taken back itself."""
        undone: set[int] = set()
        for revision, undoes in self._database.execute(
            "SELECT revision, undoes FROM entry WHERE undoes IS NOT NULL ORDER BY revision DESC"
        ):
            if revision not in undone:
                undone.add(undoes)
        return undone

    def _undos(self) -> set[int]:
        rows = self._database.execute("SELECT revision FROM entry WHERE undoes IS NOT NULL")
        return {revision for (revision,) in rows}

    def _last_done(self, undone: set[int]) -> int:
        for (revision,) in self._database.execute(
            "SELECT revision FROM entry WHERE undoes IS NULL AND revision > 0 "
            "ORDER BY revision DESC"
        ):
            if revision not in undone:
                return revision
        raise GraphEditError(f"{self.path}: there is nothing to undo.")

    def _is_bulk(self, revision: int) -> bool:
        """Whether an entry is an import, or the undo of one: many triples at once."""
        action, undoes = "", revision
        while undoes is not None:
            row = self._database.execute(
                "SELECT action, undoes FROM entry WHERE revision = ?", (undoes,)
            ).fetchone()
            if row is None:
                return False
            action, undoes = row
        return action == "import"

    def _swap(self, old: int, new: int, entities: Iterable[str]) -> None:
        """End what an entry began, and begin again what it ended."""
        begun: dict[int, _Version] = {}
        ended: dict[int, _Version] = {}
        for entity in entities:
            for row in self._database.execute(
                f"SELECT {_FIELDS}, added FROM triple WHERE entity = ?1 "
                "AND (added = ?2 OR removed = ?2) AND removed IS NOT added",
                (entity, old),
            ):
                (begun if row[-1] == old else ended)[row[1]] = _Version(*row[:-1])
        for id_ in {*begun, *ended}:
            now = self._now(id_)
            left = begun.get(id_)
            if (now and now.content) != (left and left.content):
                self._refuse_undo(old, left or ended[id_])
            if now is not None:
                self._end(now.version, new)
        for version in ended.values():
            if self._live(version.triple):
                self._refuse_undo(old, version)
            self._database.execute(f"{_COPY} WHERE version = ?", (new, version.version))

    def _swap_all(self, old: int, new: int) -> None:
        """The same for an import, or the undo of one."""
        edited = self._database.execute(
            f"SELECT {_FIELDS} FROM triple AS was WHERE added = ? AND removed IS NOT NULL "
            "AND NOT EXISTS (SELECT 1 FROM triple AS now WHERE now.removed IS NULL "
            "AND now.id = was.id AND now.version <> now.id AND now.head = was.head "
            "AND now.relation = was.relation AND now.tail = was.tail "
            "AND now.off = was.off) LIMIT 1",
            (old,),
        ).fetchone()
        again = self._database.execute(
            f"SELECT {_FIELDS} FROM triple AS was WHERE removed = ? AND added < removed "
            "AND EXISTS (SELECT 1 FROM triple AS now WHERE now.removed IS NULL "
            "AND now.entity = was.entity AND now.head = was.head "
            "AND now.relation = was.relation AND now.tail = was.tail) LIMIT 1",
            (old,),
        ).fetchone()
        for row in (edited, again):
            if row is not None:
                self._refuse_undo(old, _Version(*row))
        self._database.execute(
            "UPDATE triple SET removed = ? WHERE removed IS NULL "
            "AND id IN (SELECT id FROM triple WHERE added = ?)",
            (new, old),
        )
        self._database.execute(f"{_COPY} WHERE removed = ? AND added < removed", (new, old))

    def _now(self, id_: int) -> "_Version | None":
        """The version of a triple that counts now."""
        row = self._database.execute(
            f"SELECT {_FIELDS} FROM triple WHERE removed IS NULL "
            "AND (version = ?1 AND id = ?1 OR id = ?1 AND version <> id)",
            (id_,),
        ).fetchone()
        return _Version(*row) if row else None

    def _refuse_undo(self, revision: int, version: "_Version") -> NoReturn:
        later = self._database.execute(
            "SELECT max(max(added, ifnull(removed, 0))) FROM triple WHERE entity = ? AND id = ?",
            (normalise_name(version.head), version.id),
        ).fetchone()[0]
        remedy = f"Undo entry {later} first" if later > revision else "Undo what came later first"
        raise GraphConflict(
            f"{self.path}: entry {revision} can't be undone, the triple {version.triple} was "
            f"edited after it. {remedy}, or edit the triple itself."
        )


@dataclass(frozen=True, slots=True)
class _Version:
    """A row of the table of triples."""

    version: int
    id: int
    head: str
    relation: str
    tail: str
    off: int

    @property
    def triple(self) -> Triple:
        return Triple(self.head, self.relation, self.tail)

    @property
    def content(self) -> tuple[str, str, str, int]:
        return self.head, self.relation, self.tail, self.off


_FIELDS = "version, id, head, relation, tail, off"
_COPY = (
    "INSERT INTO triple (id, entity, head, relation, tail, place, off, source, line, added) "
    "SELECT id, entity, head, relation, tail, place, off, source, line, ? FROM triple"
)


@contextmanager
def making(
    part: Path, path: Path, *, name: str, identity: str = ""
) -> Iterator[sqlite3.Connection]:
    """Make a new graph file: it appears under its name whole, or not at all.

    Args:
        part: where it is made.
        path: where it shall be.
        name: shown to people.
        identity: see ``importing.import_triples``.
    """
    try:
        with database_errors(path):
            database = sqlite3.connect(part, isolation_level=None)
            try:
                database.execute("PRAGMA journal_mode = OFF")  # a file cut off is thrown away
                database.execute("PRAGMA synchronous = OFF")
                create_tables(database)
                database.executemany(
                    "INSERT INTO fact VALUES (?, ?)",
                    [("id", identity or secrets.token_hex(16)), ("title", name)],
                )
                database.execute("BEGIN")
                database.execute(
                    "INSERT INTO entry VALUES (0, ?, '', 'create', 0, NULL)", (now_in_words(),)
                )
                yield database
                newest = database.execute("SELECT max(revision) FROM entry").fetchone()[0]
                build_names(database, path, newest).note(database)
                database.execute("COMMIT")
                database.execute("PRAGMA synchronous = FULL")
                database.execute("PRAGMA journal_mode = WAL")
            finally:
                database.close()
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.rename(path)
    except OSError as error:
        raise GraphFileError(f"{path}: can't be written ({error.strerror or error}).") from error
    finally:
        for ending in ("", "-wal", "-shm"):
            part.with_name(part.name + ending).unlink(missing_ok=True)


def now_in_words() -> str:
    """The time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
