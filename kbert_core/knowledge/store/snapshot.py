"""The triples of a graph file as they were at one revision."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from kbert_core.knowledge.name_index import Names
from kbert_core.knowledge.store.database import THEN, connect, database_errors, fact
from kbert_core.knowledge.store.names import aliases_of
from kbert_core.knowledge.triple import Triple

_KEPT = 4096  # entities whose triples stay in memory


class Connections:
    """Connections to one graph file that read: one for every thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._of_thread = threading.local()

    def get(self) -> sqlite3.Connection:
        """Return this thread's connection."""
        database: sqlite3.Connection | None = getattr(self._of_thread, "database", None)
        if database is None:
            database = self._of_thread.database = connect(self.path)
        return database

    def close(self) -> None:
        """Close this thread's; one is opened again when it is asked for."""
        database: sqlite3.Connection | None = getattr(self._of_thread, "database", None)
        if database is not None:
            database.close()
            del self._of_thread.database


class Snapshot:
    """The triples of a graph file at one revision; see ``source.TripleSource``.

    What is edited later doesn't show here, whoever edits: the rows that
    counted at a revision stay as they are.

    Args:
        connections: to the file.
        revision: at which it is read.
        names: of the entities at that revision.
    """

    def __init__(self, connections: Connections, revision: int, names: Names) -> None:
        self._connections = connections
        self._then = {"then": revision}
        self.names = names
        query = f"SELECT head, relation, tail FROM triple WHERE off AND {THEN}"
        self.off = frozenset(Triple(*row) for row in self._rows(query))
        self.aliases = aliases_of(connections.get())
        self.fingerprint = f"{fact(connections.get(), 'id')}-{revision}"
        self.triples_of = lru_cache(_KEPT)(self._triples_of)
        self._count: int | None = None

    def __len__(self) -> int:
        if self._count is None:
            self._count = self._rows(f"SELECT count(*) FROM triple WHERE {THEN}")[0][0]
        return self._count

    def items(self) -> Iterator[tuple[str, tuple[Triple, ...]]]:
        """Every entity, by name, with its triples."""
        database = connect(self._connections.path)  # its own: whoever asks may stop half way
        with closing(database), database_errors(self._connections.path):
            rows = database.execute(
                f"SELECT entity, head, relation, tail FROM triple WHERE {THEN} "
                "ORDER BY entity, place, version",
                self._then,
            )
            for entity, of_entity in groupby(rows, key=itemgetter(0)):
                yield entity, tuple([Triple(*row[1:]) for row in of_entity])

    def _triples_of(self, entity: str) -> tuple[Triple, ...]:
        rows = self._rows(
            f"SELECT head, relation, tail FROM triple WHERE entity = :entity AND {THEN} "
            "ORDER BY place, version",
            entity=entity,
        )
        return tuple([Triple(*row) for row in rows])

    def _rows(self, query: str, **values: Any) -> list[tuple]:
        with database_errors(self._connections.path):
            return self._connections.get().execute(query, self._then | values).fetchall()
