"""Graphs and logs as files. No streamlit."""

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from kbert_core import KnowledgeGraph
from kbert_core.knowledge.io.write import write_triples

FORMATS = (".spo", ".tsv", ".csv", ".jsonl", ".nt", ".ttl")
MOST_TRIPLES = 2_000_000  # in the app; the command line writes any number


def graph_as(graph: KnowledgeGraph, ending: str, *, switched_off: bool = False) -> bytes:
    """Write a graph in the format of a file name's ending.

    Args:
        ending: one of ``FORMATS``.
        switched_off: also what is switched off; a file can't say so.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"graph{ending}"
        write_triples((x for x in graph if switched_off or graph.is_on(x)), path)
        return path.read_bytes()


def lines_of(rows: Iterable[Mapping[str, object]]) -> bytes:
    """Write plain data as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
