"""A graph as one file on disk: an SQLite database with a log of all edits.

Nothing is ever overwritten. A row of the table ``triple`` is one version of a triple and says from
which revision on (``added``) and up to which (``removed``) it counts; an edit ends versions and
begins others under a new revision. So the graph of any revision can be read while others write,
and any single entry of the log can be undone.
"""

import os
import re
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from kbert_core.errors import GraphFileError
from kbert_core.files import cache_folder
from kbert_core.knowledge.triple import Triple

APPLICATION_ID = 0x4B42_4B47  # "KBKG", by which `file` and we tell a graph from other databases
VERSION = 1
PAGE = 8192  # bytes
SORTING = 1 << 16  # KiB of memory for sorting: what is indexed goes through temporary files
WAIT = 30.0  # seconds for another process's edit or import to end
THEN = "added <= :then AND (removed IS NULL OR removed > :then)"  # rows that count at a revision
_NO_ROOM = ("SQLITE_IOERR_SHM", "SQLITE_CANTOPEN")  # for SQLite's own files
_LEFTOVER = re.compile(  # after the name of the graph; 8 digits in hexadecimal
    r"\.names-X(\.X|\.part)?|(\.X)?\.part(-wal|-shm|-journal)?".replace("X", "[0-9a-f]{8}")
)

TABLES = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE source (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,           -- of the file
    revision INTEGER NOT NULL     -- by which it came
);
CREATE TABLE triple (
    version INTEGER PRIMARY KEY,  -- of a triple; it never changes
    id INTEGER NOT NULL,          -- of the triple: its first version; it stays through edits
    entity TEXT NOT NULL,         -- the head as names are compared
    head TEXT NOT NULL,
    relation TEXT NOT NULL,
    tail TEXT NOT NULL,
    place REAL NOT NULL,          -- among the triples of its entity
    off INTEGER NOT NULL,         -- 1: kept and not injected
    source INTEGER,               -- the file it came from; NULL: an edit
    line INTEGER,                 -- of that file
    added INTEGER NOT NULL,       -- the revision that began this version
    removed INTEGER               -- the one that ended it; NULL: it counts now
);
CREATE TABLE entry (
    revision INTEGER PRIMARY KEY,
    at TEXT NOT NULL,             -- UTC, ISO 8601
    who TEXT NOT NULL,
    action TEXT NOT NULL,         -- add, remove, ..., edits, import, undo
    edits INTEGER NOT NULL,       -- how many triples it touched
    undoes INTEGER                -- the revision taken back
);
CREATE TABLE touched (            -- what an entry edited; an import has no rows
    revision INTEGER NOT NULL,
    entity TEXT NOT NULL,
    PRIMARY KEY (revision, entity)
) WITHOUT ROWID;
"""
_INDEXES = (
    "CREATE INDEX triple_entity ON triple (entity, place, added, removed)",
    "CREATE INDEX triple_off ON triple (entity) WHERE off",
    "CREATE INDEX triple_id ON triple (id) WHERE version <> id",
)


class GraphBusy(GraphFileError):
    """Another process is making a graph file, or indexing its names."""


class ServerError(GraphFileError):
    """A graph's server can't be reached, or refuses; nothing was changed."""


def create_indexes(database: sqlite3.Connection) -> None:
    """Index the triples, best once they are in."""
    for index in _INDEXES:
        database.execute(index)


@contextmanager
def new_file(path: Path, *, name: str, identity: str = "") -> Iterator[sqlite3.Connection]:
    """Make a new graph file: it appears under its name whole, or not at all.

    The caller holds the :func:`graph_lock`, there is no graph yet, and what is written in the
    block has to be indexed there. For ``name`` and ``identity`` see ``importing.import_triples``.

    Raises:
        GraphFileError: the folder can't be written to, or another program
            put a file there meanwhile.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        remove_leftovers(path)
        with (
            database_errors(path),
            closing(sqlite3.connect(part, isolation_level=None)) as database,
        ):
            database.executescript(
                # A file that is cut off is thrown away.
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
                f"PRAGMA cache_size = -{SORTING}; PRAGMA page_size = {PAGE}; "
                f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; "
                f"{TABLES}"
            )
            facts = [("id", identity or secrets.token_hex(16)), ("title", name)]
            database.executemany("INSERT INTO fact VALUES (?, ?)", facts)
            database.execute("BEGIN")
            database.execute("INSERT INTO entry VALUES (0, ?, '', 'create', 0, NULL)", (now(),))
            yield database
            database.execute("COMMIT")
            database.executescript("PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL")
        with part.open("rb") as file:
            os.fsync(file.fileno())
        if path.exists():
            raise GraphFileError(
                f"{path}: another program put a file there meanwhile, so the new graph was not "
                "kept. Give another name, or move that file and do it again."
            )
        for ending in ("-wal", "-shm", "-journal"):  # of an older graph: SQLite would apply them
            path.with_name(path.name + ending).unlink(missing_ok=True)
        part.rename(path)
    except OSError as error:
        raise GraphFileError(f"{path}: can't be written ({error.strerror or error}).") from error
    finally:
        for ending in ("", "-wal", "-shm"):
            part.with_name(part.name + ending).unlink(missing_ok=True)


def remove_leftovers(graph: Path, kept: Path | None = None) -> None:
    """Delete what killed processes left beside a graph, and indexes of names but the one kept.

    The caller holds the :func:`graph_lock`, and writes to the graph where there is one.
    """
    for path in graph.parent.iterdir():
        ending = path.name.removeprefix(graph.name)
        if _LEFTOVER.fullmatch(ending) and path != kept:
            with suppress(OSError):
                path.unlink()


def remove_graph(path: Path) -> None:
    """Delete a graph file, and all that lies beside it; the caller holds the :func:`graph_lock`."""
    for file in path.parent.glob(f"{path.name}*"):
        if file.suffix != ".lock":
            file.unlink(missing_ok=True)


def connect(path: Path, *, write: bool = False) -> sqlite3.Connection:
    """Open a graph file.

    Where a folder can't be written to, or the disk is full, the graph is read
    as it stands, without the files that SQLite would put beside it.

    Raises:
        GraphFileError: it is missing, no graph, from a newer version, or damaged.
    """
    if path.is_dir():
        raise GraphFileError(f"{path}: is a folder. Give the graph file in it.")
    if not path.is_file():
        raise GraphFileError(f"{path}: no such graph. Check the name, or make it with `kg import`.")
    log = path.with_name(path.name + "-wal")
    log_is_empty = not (log.is_file() and log.stat().st_size)
    if not (os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)):
        if write:
            raise GraphFileError(
                f"{path}: may only be read here, so it can't be edited. Copy it to a folder of "
                "your own and edit the copy."
            )
        if not log_is_empty:
            raise GraphFileError(
                f"{path}: {log.name} beside it holds edits that aren't in it yet, and the folder "
                "may only be read. Copy both to a folder of your own and open the copy."
            )
        return _connected(path, "ro&immutable=1")
    try:
        return _connected(path, "rw" if write else "ro")
    except GraphFileError as error:
        if write or not _name_of(error.__cause__).startswith(_NO_ROOM) or not log_is_empty:
            raise
        return _connected(path, "ro&immutable=1")


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    with database_errors(path):
        database = sqlite3.connect(uri, WAIT, 0, None, check_same_thread=False, uri=True)
        try:
            database.execute("PRAGMA trusted_schema = OFF")
            _check(database, path)
            database.execute("PRAGMA mmap_size = 1073741824")  # shared with other readers
            if mode == "rw":
                database.execute("PRAGMA synchronous = FULL")  # an edit survives a power cut
        except BaseException:
            database.close()
            raise
    return database


def _check(database: sqlite3.Connection, path: Path) -> None:
    if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise GraphFileError(
            f"{path}: a database, but not one of triples. Give a graph made with `kg import`."
        )
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise GraphFileError(
            f"{path}: written by a newer version of this program (format {version}; this one "
            f"reads up to {VERSION}). Update kbert-lab, or export the graph there as text."
        )
    # A view or trigger of a stranger's file would run in our queries.
    statements = {*_plain(TABLES).split(";"), *map(_plain, _INDEXES)}
    for kind, name, sql in database.execute("SELECT type, name, sql FROM sqlite_master"):
        if sql is not None and _plain(str(sql)) not in statements:
            raise GraphFileError(
                f"{path}: it holds more than a graph: the {kind} {name!r}. Don't "
                "use this copy; take one from where the graph was made."
            )


def _plain(sql: str) -> str:
    """A statement without comments and spaces."""
    return "".join(re.sub("--.*", "", sql).split())


def checked(row: Sequence[Any], *kinds: Any) -> Sequence[Any]:
    """Return what was read from a graph; a value of another kind than it must be is damage."""
    for value, kind in zip(row, kinds, strict=True):
        if not isinstance(value, kind):
            raise sqlite3.DatabaseError(f"{value!r:.80} stands where another kind of value must")
    return row


def triple_of(row: Sequence[Any]) -> Triple:
    """Return the triple that a row holds."""
    return Triple(*checked(row, str, str, str))


def fact(database: sqlite3.Connection, name: str) -> str:
    """Look up a text in a graph's table of facts; without it the file is damaged."""
    row = database.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
    if row is None or not isinstance(row[0], str):
        raise sqlite3.DatabaseError(f"its table of facts lacks '{name}'")
    return row[0]


def last_revision(database: sqlite3.Connection) -> int:
    """The number of the latest entry of a graph's log; without any the file is damaged."""
    revision = database.execute("SELECT max(revision) FROM entry").fetchone()[0]
    if not isinstance(revision, int):
        raise sqlite3.DatabaseError("its log has no entries")
    return revision


def now() -> str:
    """The time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@contextmanager
def transaction(database: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Make all of a block's changes, or none of them; "BEGIN": only read at one revision."""
    database.execute(begin)
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


@contextmanager
def graph_lock(path: Path, *, wait: float = WAIT) -> Iterator[None]:
    """Let one process at a time make a graph file, or index its names.

    Args:
        wait: seconds; -1: until the other has ended.

    Raises:
        GraphBusy: another hasn't ended after ``wait`` seconds.
        GraphFileError: the folder can't be written to.
    """
    lock = FileLock(f"{path}.lock", timeout=wait)
    try:
        lock.acquire()
    except Timeout:
        raise GraphBusy(
            f"{path}: another process has been making it, or indexing its names, for {wait:.0f} s. "
            "Try again later."
        ) from None
    except OSError as error:
        raise GraphFileError(f"{path}: can't be written ({error.strerror or error}).") from error
    try:
        yield
    finally:
        with suppress(OSError):  # while it is held: whoever waits for it looks whether it is there
            os.unlink(lock.lock_file)
        lock.release()


@contextmanager
def graph_cache(graph: str | Path) -> Iterator[Path]:
    """The folder for what is made of graphs once and can be made again.

    Raises:
        GraphFileError: it can't be made or written to.
    """
    folder = cache_folder() / "graphs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    except OSError as error:
        raise GraphFileError(
            f"{graph}: it needs an index in {folder}, but that folder can't be written to "
            f"({error.strerror or error}). Set KBERT_CACHE to a folder that you can write to."
        ) from error


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Say in our words what SQLite says of a graph file."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake of ours
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: a damaged name in a message
        raise GraphFileError(f"{path}: {_in_words(error, path)}.") from error


def _in_words(error: Exception, path: Path) -> str:
    name, what = _name_of(error), str(error)
    for beginnings, words in {
        ("SQLITE_FULL", "SQLITE_IOERR_WRITE"): (
            "the disk is full, so nothing was changed. Free some space and try again"
        ),
        _NO_ROOM: (
            f"SQLite can't make the files {path.name}-wal and {path.name}-shm beside it "
            f"({what}). Nothing is lost. Free some space on the disk, or correct the folder's "
            "permissions, and try again"
        ),
        ("SQLITE_IOERR",): (
            f"the disk failed ({name}: {what}). Do it again; if it fails again, take another copy "
            "of the graph"
        ),
        ("SQLITE_BUSY", "SQLITE_LOCKED"): (
            f"another process has been writing to it for {WAIT:.0f} s. Try again later"
        ),
        ("SQLITE_READONLY",): (
            "it may only be read here. Copy it to a folder of your own and edit the copy"
        ),
    }.items():
        if name.startswith(beginnings):
            return words
    return f"it is damaged or no graph ({what}). Take a copy of it that is whole"


def _name_of(error: BaseException | None) -> str:
    return getattr(error, "sqlite_errorname", "")
