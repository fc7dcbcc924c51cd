"""What one database of a graph has and another doesn't have yet: for copies, and for servers.

Every row of a graph belongs to an entry of its log. An edit names the entities that it touched, and
all their rows go over; an import, and what undoes one, names none, and its own rows go over.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kbert_core.errors import GraphFileError

Read = Callable[[str], Iterable[Any]]  # runs a query
Tables = Iterable[tuple[str, Iterable[Any]]]  # each with rows of ``COLUMNS``
Progress = Callable[[int], None]  # called now and then with the number of triples
STEP = 20_000  # triples between two calls of it
COLUMNS = {
    "fact": "name, value",
    "source": "id, name, revision",
    "entry": "revision, at, who, action, edits, undoes",
    "touched": "revision, entity",
    "triple": "version, id, entity, head, relation, tail, place, off, source, line, added, removed",
}
_BULK = (
    "SELECT 1 FROM entry WHERE revision > {since} AND NOT EXISTS "
    "(SELECT 1 FROM touched WHERE touched.revision = entry.revision) LIMIT 1"
)


def has_bulk(read: Read, since: int) -> bool:
    """Whether a later entry names no entities."""
    return any(True for _ in read(_BULK.format(since=since)))


def rows_since(
    read: Read, since: int, *, bulk: bool = True, progress: Progress = lambda rows: None
) -> Tables:
    """Yield every table with its rows that came, or were changed, after a revision; -1: all.

    Args:
        bulk: see :func:`has_bulk`.
    """
    of_triple = f"entity IN (SELECT entity FROM touched WHERE revision > {since})"
    where = dict.fromkeys(COLUMNS, f"revision > {since}") | {
        "fact": "name = 'aliases'",
        "triple": f"added > {since} OR removed > {since}" if bulk else of_triple,
    }
    for table, columns in COLUMNS.items():
        yield (
            table,
            _counted(
                read(f"SELECT {columns} FROM {table} WHERE {where[table]}"),
                progress if table == "triple" else lambda rows: None,
            ),
        )


def _counted(rows: Iterable[Any], progress: Progress) -> Iterator[Any]:
    for number, row in enumerate(rows):
        if number % STEP == 0:
            progress(number)
        yield row


def take_in(database: sqlite3.Connection, tables: Tables, source: object) -> None:
    """Write rows into a graph file; the caller commits.

    Raises:
        GraphFileError: a row fits no table of ours, so the ``source`` is damaged.
    """
    for table, rows in tables:
        marks = ", ".join("?" * len(COLUMNS[table].split(",")))
        insert = f"INSERT OR REPLACE INTO {table} ({COLUMNS[table]}) VALUES ({marks})"
        try:
            database.executemany(insert, map(tuple, rows))
        except sqlite3.IntegrityError as error:
            raise GraphFileError(
                f"{source}: it is damaged ({error}). Take another copy of it."
            ) from error
