"""A new graph file: whole under its name, or not there."""

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.store.log import now_in_words
from kbert_core.knowledge.store.names import build_names, remove_leftovers
from kbert_core.knowledge.store.schema import create_tables, database_errors


@contextmanager
def making(path: Path, *, name: str, identity: str = "") -> Iterator[sqlite3.Connection]:
    """Make a new graph file: it appears under its name whole, or not at all.

    The caller holds the ``graph_lock`` of the path, and there is no graph yet.

    Args:
        path: where it shall be.
        name: shown to people.
        identity: see ``importing.import_triples``.

    Raises:
        GraphFileError: the folder can't be written to, or another program
            put a file there meanwhile.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        remove_leftovers(path)
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
