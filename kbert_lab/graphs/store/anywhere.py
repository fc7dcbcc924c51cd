"""Graphs wherever they are, in files and on servers: opened by name, and copied."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.rows import ReadOptions
from kbert_core.knowledge.io.sources import SERVER, is_stored
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations
from kbert_lab.graphs import store
from kbert_lab.graphs.store.importing import Imported, Source, import_triples, indexed, make_graph
from kbert_lab.graphs.store.log import Progress, rows_since
from kbert_lab.graphs.store.store import GraphStore


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
    with open_store(path) as opened:
        return opened.graph()


def open_store(graph: str | Path, *, write: bool = False) -> GraphStore:
    """Open a graph file, or a graph on a server (``postgresql://USER@HOST/DATABASE``).

    Raises:
        GraphFileError: it can't be opened.
        MissingPackageError: what speaks to a server isn't installed.
    """
    if not str(graph).startswith(SERVER):
        return GraphStore(graph, write=write)
    from kbert_lab.graphs.store.server import ServerStore

    return ServerStore(str(graph))


def is_there(graph: str | Path) -> bool:
    """Whether a graph is there already, in a file or on a server.

    Raises:
        GraphFileError: the server can't be reached.
    """
    if not str(graph).startswith(SERVER):
        return Path(graph).exists()
    from kbert_lab.graphs.store.server import is_there

    return is_there(str(graph))


def import_into(graph: str | Path, sources: Iterable[Source], **how: Any) -> Imported:
    """Add triples to a graph, in a file or on a server; see ``importing.import_triples``."""
    if not str(graph).startswith(SERVER):
        return import_triples(graph, sources, **how)
    from kbert_lab.graphs.store import server

    return server.import_into(str(graph), sources, **how)


def copy_graph(
    source: str | Path, target: str | Path, *, progress: Progress = lambda rows: None
) -> int:
    """Copy a graph with its log between files and servers; return how many entries the log has.

    The target is there whole in the end, or not at all.

    Raises:
        GraphFileError: the source can't be read, or the target is there already.
    """
    with open_store(source) as opened:
        file = opened.file
        with store.database_errors(file), closing(store.connect(file)) as database:
            database.execute("BEGIN")

            def read(query: str) -> Iterator[Any]:
                with store.database_errors(file):  # not the target's
                    yield from database.execute(query)

            title, rows = store.fact(database, "title"), rows_since(read, -1, progress=progress)
            if str(target).startswith(SERVER):
                from kbert_lab.graphs.store.server import upload

                upload(rows, str(target), name=title)
            else:
                path = Path(target)
                with store.graph_lock(path):
                    if path.exists():
                        raise GraphFileError(f"{path}: is there already. Give another name.")
                    make_graph(path, rows, source, name=title)
            return store.last_revision(database) + 1
