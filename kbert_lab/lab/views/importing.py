"""What a file or a pasted text would add to a graph, looked at before anything is changed."""

from dataclasses import dataclass

from kbert_core.errors import KBertError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io import ReadOptions, Row, rows_of
from kbert_core.knowledge.io.encodings import NARROW, WIDE
from kbert_core.knowledge.triple import Triple
from kbert_lab.lab.texts import refusal

MOST = 200_000  # triples of one import
ENCODINGS = ("", *NARROW, *WIDE)


@dataclass(frozen=True)
class Preview:
    """What was read."""

    name: str  # of the file
    rows: tuple[Row, ...] = ()  # what would be added, each triple once, with its line
    there: int = 0  # how many are in the graph already
    repeated: int = 0  # how many stand twice in the file
    bad: int = 0  # how many lines are no triples
    problems: tuple[str, ...] = ()  # why, the first of them
    error: str | None = None  # why nothing could be read at all; None: something could
    too_many: bool = False  # there is more than is added at once
    doubts: tuple[str, ...] = ()  # lines that were read as triples, and may be headings


def preview(
    data: bytes, name: str, graph: KnowledgeGraph, options: ReadOptions = ReadOptions()
) -> Preview:
    """Read triples and compare them with a graph; nothing is changed."""
    reading = rows_of(data, name, options)
    new: dict[Triple, Row] = {}
    read, there = 0, 0
    seen: set[Triple] = set()
    error, too_many = None, False
    try:
        for row in reading:
            read += 1
            triple = Triple(*row[1:])
            if triple in seen:
                continue
            seen.add(triple)
            if triple in graph:
                there += 1
            else:
                new[triple] = row
            if len(new) > MOST:
                too_many = True
                break
    except KBertError as problem:
        if not reading.problems or not str(problem).startswith(reading.problems[0]):
            error = refusal(problem)  # of the whole file, not of its lines
    rows = () if error else tuple(new.values())[:MOST]
    return Preview(
        name,
        rows,
        there,
        read - len(seen),
        reading.bad,
        tuple(map(refusal, reading.problems)),
        error,
        too_many,
        tuple(map(refusal, reading.doubts)),
    )


def pasted_name(text: str) -> str:
    """A file name that tells the format of a pasted text."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if first.startswith(("{", "[")):
        return "pasted.jsonl"
    if first.startswith(("@prefix", "@base", "PREFIX", "<http", "<urn")):
        return "pasted.ttl"
    return "pasted.tsv" if "\t" in first or "," not in first else "pasted.csv"
