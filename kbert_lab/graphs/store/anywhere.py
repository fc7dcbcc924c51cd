"""Graphs wherever they are, in files and on servers: opened by name, and copied."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.rows import ReadOptions
from kbert_core.knowledge.io.sources import SERVER, is_stored
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations
from kbert_lab.graphs.store import (
    Database,
    create_indexes,
    graph_lock,
    last_revision,
    new_file,
)
from kbert_lab.graphs.store.importing import Imported, Source, import_triples, indexed
from kbert_lab.graphs.store.names import build_names
from kbert_lab.graphs.store.store import GraphStore

_STEP = 20_000  # rows between two calls of a progress
_COLUMNS = {  # what a copy has of each table
    "source": "id, name, revision",
    "triple": "version, id, entity, head, relation, tail, place, off, source, line, added, removed",
    "entry": "revision, at, who, action, edits, undoes",
    "touched": "revision, entity",
}


def open_graph(
    path: str | Path,
    options: ReadOptions = ReadOptions(),
    *,
    skip_bad: bool = False,
    aliases: AliasRelations = ALIAS_RELATIONS,
) -> KnowledgeGraph:
    """Open a graph where it is; a file of triples is indexed first. See ``load_graph``."""
    if not is_stored(path):
        path = indexed(path, options, skip_bad=skip_bad, aliases=aliases)
    with open_store(path) as store:
        return store.graph()


def open_store(graph: str | Path, *, write: bool = False) -> GraphStore:
    """Open a graph file, or a graph on a server (``postgresql://USER@HOST/DATABASE``).

    Raises:
        GraphFileError: it can't be opened.
        MissingPackageError: what speaks to a server isn't installed.
    """
    if not str(graph).startswith(SERVER):
        return GraphStore(graph, write=write)
    from kbert_lab.graphs.store.server import ServerStore

    return ServerStore(str(graph), write=write)


def is_there(graph: str | Path) -> bool:
    """Whether a graph is there already, in a file or on a server.

    Raises:
        GraphFileError: the server can't be reached.
    """
    if not str(graph).startswith(SERVER):
        return Path(graph).exists()
    from kbert_lab.graphs.store.server_import import is_there

    return is_there(str(graph))


def import_into(graph: str | Path, sources: Iterable[Source], **how: Any) -> Imported:
    """Add triples to a graph, in a file or on a server; see ``importing.import_triples``."""
    if not str(graph).startswith(SERVER):
        return import_triples(graph, sources, **how)
    from kbert_lab.graphs.store import server_import

    return server_import.import_triples(str(graph), sources, **how)


def copy_graph(
    source: str | Path, target: str | Path, *, progress: Callable[[int], None] = lambda rows: None
) -> int:
    """Copy a graph with its log between files and servers; return how many entries the log has.

    The target is there whole in the end, or not at all.

    Raises:
        GraphFileError: the source can't be read, or the target is there already.
    """
    with (
        open_store(source) as store,
        store._connections.errors(),
        store._connections.another() as database,
    ):
        if isinstance(database, sqlite3.Connection):
            database.execute("BEGIN")
        query = "SELECT name, value FROM fact WHERE name IN ('title', 'aliases')"
        facts = dict(map(tuple, database.execute(query)))
        title, aliases = facts["title"], facts.get("aliases")
        read = partial(_read, store, database, progress)
        if str(target).startswith(SERVER):
            from kbert_lab.graphs.store.server import new_graph

            with new_graph(str(target), name=title) as session:
                _note(session, aliases)
                for table, columns in _COLUMNS.items():
                    copy = f"COPY {table} ({columns}) FROM STDIN"
                    with session.connect().cursor() as cursor, cursor.copy(copy) as rows:
                        for row in read(table):
                            rows.write_row(row)
        else:
            path = Path(target)
            with graph_lock(path):
                if path.exists():
                    raise GraphFileError(f"{path}: is there already. Give another name.")
                with new_file(path, name=title) as file:
                    _note(file, aliases)
                    file.execute("DELETE FROM entry")
                    for table, columns in _COLUMNS.items():
                        marks = ", ".join("?" * len(columns.split(",")))
                        insert = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
                        try:
                            file.executemany(insert, map(tuple, read(table)))
                        except sqlite3.IntegrityError as error:  # the row fits no table of ours
                            raise GraphFileError(
                                f"{source}: it is damaged ({error}). Take another copy of it."
                            ) from error
                    create_indexes(file)
                    build_names(file, path)
        return last_revision(database) + 1


def _read(
    store: GraphStore, database: Database, progress: Callable[[int], None], table: str
) -> Iterator[Any]:
    read = getattr(database, "stream", database.execute)
    with store._connections.errors():  # not the target's
        for number, row in enumerate(read(f"SELECT {_COLUMNS[table]} FROM {table}")):
            if table == "triple" and number % _STEP == 0:
                progress(number)
            yield row


def _note(database: Database, aliases: str | None) -> None:
    if aliases is not None:
        database.execute("INSERT INTO fact VALUES ('aliases', ?)", (aliases,))
