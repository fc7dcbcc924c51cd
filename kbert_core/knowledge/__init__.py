"""Knowledge graphs: triples, their names in a text, and the files they are kept in."""

import logging
from contextlib import suppress
from pathlib import Path

from kbert_core.knowledge.graph import KnowledgeGraph, join_graphs
from kbert_core.knowledge.io import ReadOptions, read_triples
from kbert_core.knowledge.io.compression import ENDINGS as PACKED
from kbert_core.knowledge.io.compression import plain_stem
from kbert_core.knowledge.io.sources import is_stored, refuse_no_path, source
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations, Triple

__all__ = ["join_graphs", "load_graph"]

LARGE = 8 << 20  # bytes of a text file that is worth an index on disk
LARGE_PACKED = 1 << 20  # the same, packed

log = logging.getLogger(__name__)


def load_graph(
    *paths: str | Path,
    options: ReadOptions = ReadOptions(),
    skip_bad: bool = False,
    aliases: AliasRelations = ALIAS_RELATIONS,
) -> KnowledgeGraph:
    """Open files of triples, and graphs in files and on servers; triples stay in this order.

    Small files of triples are read into memory, large ones indexed once on disk; graph files
    (``.kg``) and ``postgresql://…`` are read where they are.

    Args:
        paths: of the files; none gives an empty graph.
        options: the format of files of triples, if their names don't tell it.
        skip_bad: leave bad lines out, and log each.
        aliases: relations whose tail is an alias; a graph file knows its own.

    Raises:
        GraphFileError: a file can't be read; see ``read_triples``.
    """
    graphs: list[KnowledgeGraph] = []
    triples: list[Triple] = []  # of the small files since the last graph
    for path in paths:
        refuse_no_path(path)
        if is_stored(path) or is_large(path):
            if triples:
                graphs.append(KnowledgeGraph(triples, aliases=aliases))
                triples = []
            graphs.append(source("graph")(path, options, skip_bad=skip_bad, aliases=aliases))
            continue
        file = read_triples(path, options, skip_bad=skip_bad)
        for problem in file.problems:
            log.warning("left out: %s", problem)
        triples += file.triples
    if triples or not graphs:
        graphs.append(KnowledgeGraph(triples, aliases=aliases))
    graph = graphs[0] if len(graphs) == 1 else join_graphs(graphs)
    graph.name = " + ".join(map(plain_stem, paths))
    return graph


def is_large(path: str | Path) -> bool:
    """Whether a file of triples is better indexed on disk than held in memory."""
    path = Path(path)
    with suppress(OSError, ValueError):  # whoever opens it says what is wrong
        return path.stat().st_size > (LARGE_PACKED if path.suffix in PACKED else LARGE)
    return False
