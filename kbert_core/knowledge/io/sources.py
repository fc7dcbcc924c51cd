"""What opens graphs that the core itself doesn't: found by name when asked for, as systems are."""

from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from kbert_core.errors import GraphFileError

STORED, SERVER = ".kg", ("postgresql://", "postgres://", "postgresql+psycopg://")
RDF = (".nt", ".ttl", ".nq", ".trig", ".n3", ".jsonld", ".rdf", ".owl")
SOURCES = {
    "graph": "kbert_lab.graphs.store.anywhere:open_graph",  # stored, or too large for memory
    "RDF": "kbert_lab.graphs.rdf:read_rdf",
    "RDF to write": "kbert_lab.graphs.rdf:write_rdf",
    "Neo4j's table": "kbert_lab.graphs.neo4j:read_neo4j",
    "Neo4j's line": "kbert_lab.graphs.neo4j:relationship",
}


def refuse_no_path(path: object) -> None:
    """Refuse what is no path of a file; GraphFileError."""
    if not isinstance(path, str | Path):
        raise GraphFileError(f"Got {path!r:.60} as a file of triples, expected its path.")


def source(what: str) -> Any:
    """Import what opens one of ``SOURCES``."""
    return resolve_name(SOURCES[what])


def is_stored(graph: str | Path) -> bool:
    """Whether a graph has a log: it is a graph file, or on a server."""
    return Path(graph).suffix == STORED or str(graph).startswith(SERVER)
