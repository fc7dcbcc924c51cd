"""The tables of a graph file, and opening one safely."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kbert_core.errors import GraphFileError

APPLICATION_ID = 0x4B42_4B47  # "KBKG", by which `file` and we tell a graph from other databases
VERSION = 1
ENDING = ".kg"
PAGE = 8192  # bytes
WAIT = 30.0  # seconds for another process's edit or import to end
THEN = "added <= :then AND (removed IS NULL OR removed > :then)"  # rows that count at a revision

_TABLES = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE source (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,           -- of the file
    revision INTEGER NOT NULL     -- by which it came
);
CREATE TABLE triple (
    version INTEGER PRIMARY KEY,  -- of a triple; it never changes
    id INTEGER NOT NULL,          -- of the triple; it stays when its fields are edited
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


def create_tables(database: sqlite3.Connection) -> None:
    """Lay out an empty graph; its indexes come with :func:`create_indexes`."""
    database.executescript(
        f"PRAGMA page_size = {PAGE}; "
        f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; {_TABLES}"
    )


def create_indexes(database: sqlite3.Connection) -> None:
    """Index the triples, best once they are in."""
    for index in _INDEXES:
        database.execute(index)


def connect(path: Path, *, write: bool = False) -> sqlite3.Connection:
    """Open a graph file.

    A folder that can't be written to is read as it stands, without the files
    that SQLite would put beside it.

    Raises:
        GraphFileError: it is missing, no graph, from a newer version, or damaged.
    """
    if path.is_dir():
        raise GraphFileError(f"{path}: is a folder. Give the graph file in it.")
    if not path.is_file():
        raise GraphFileError(f"{path}: no such graph. Check the name, or make it with `kg import`.")
    how = "rw" if write else "ro"
    if not os.access(path.parent, os.W_OK) or not os.access(path, os.W_OK):
        if write:
            raise GraphFileError(
                f"{path}: may only be read here, so it can't be edited. Copy it to a folder of "
                "your own and edit the copy."
            )
        how = "ro&immutable=1"
        log = path.with_name(path.name + "-wal")
        if log.is_file() and log.stat().st_size:
            raise GraphFileError(
                f"{path}: {log.name} beside it holds edits that aren't in it yet, and the folder "
                "may only be read. Copy both to a folder of your own and open the copy."
            )
    with database_errors(path):
        database = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={how}",
            uri=True,
            timeout=WAIT,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            _check(database, path)
            database.execute("PRAGMA mmap_size = 1073741824")  # shared with other readers
            if write:
                database.execute("PRAGMA synchronous = FULL")  # an edit survives a power cut
        except BaseException:
            database.close()
            raise
    return database


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Say in our words what SQLite says of a graph file."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake of ours
    except sqlite3.Error as error:
        what = str(error)
        if "full" in what:
            what = "the disk is full, so nothing of this was done. Make room and do it again"
        elif "locked" in what or "busy" in what:
            what = f"another process has been writing to it for {WAIT:.0f} s. Try again later"
        elif isinstance(error, sqlite3.OperationalError) and "readonly" in what:
            what = "it may only be read here. Copy it to a folder of your own and edit the copy"
        elif isinstance(error, sqlite3.DatabaseError):
            what = f"it is damaged or no graph ({what}). Take a copy of it that is whole"
        raise GraphFileError(f"{path}: {what}.") from error


@contextmanager
def writing(database: sqlite3.Connection) -> Iterator[None]:
    """Make all of a block's changes, or none of them."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


def _check(database: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no graph, and what a newer version wrote."""
    kind = database.execute("PRAGMA application_id").fetchone()[0]
    if kind != APPLICATION_ID:
        raise GraphFileError(
            f"{path}: a database, but not one of triples. Give a graph made with `kg import`."
        )
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise GraphFileError(
            f"{path}: written by a newer version of this program (format {version}; this one "
            f"reads up to {VERSION}). Update kbert-lab, or export the graph there as text."
        )
