"""What a file, a pasted text or a step would bring to a graph, and what may be wrong with it."""

from dataclasses import dataclass

from kbert_core.errors import KBertError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io import ReadOptions, Row, rows_of
from kbert_core.knowledge.io.encodings import NARROW, WIDE
from kbert_core.knowledge.triple import TYPE_RELATIONS, Triple
from kbert_lab.graphs.check import LONG_TAIL, check
from kbert_lab.lab.history import Edited, Step
from kbert_lab.lab.texts import N_, listed, refusal, t

MOST, MOST_PRIVATE = 200_000, 20_000  # triples of one import: into a workspace, into a session
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
    data: bytes,
    name: str,
    graph: KnowledgeGraph,
    options: ReadOptions = ReadOptions(),
    most: int = MOST,
) -> Preview:
    """Read triples and compare them with a graph; nothing is changed.

    Args:
        data, name: a file.
        options: how it is read.
        most: triples that can be added at once.
    """
    reading = rows_of(data, name, options)
    seen: set[Triple] = set()
    new: list[Row] = []
    count, error = 0, None
    try:
        for row in reading:
            count += 1
            triple = Triple(*row[1:])
            if triple not in seen and triple not in graph:
                new.append(row)
            seen.add(triple)
            if len(new) > most:
                break
    except KBertError as problem:
        if not reading.problems or not str(problem).startswith(reading.problems[0]):
            error = refusal(problem)  # of the whole file, not of its lines
    return Preview(
        name,
        tuple(new[:most]) if error is None else (),
        len(seen) - len(new),
        count - len(seen),
        reading.bad,
        tuple(map(refusal, reading.problems)),
        error,
        len(new) > most,
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


TYPED = 20  # triples of a step at most: more were not typed
DOUBT_TEXTS = {
    "stop_word": N_(
        "“{head}” is an everyday word: it will be found where it does not mean this entity."
    ),
    "one_character": N_("“{head}” is one character: it will be found inside other words."),
    "own_tail": N_("The tail is the head: that adds nothing to a text."),
    "long_tail": N_(
        "The tail has over {most} characters: a branch takes as many tokens, and the length limit "
        "may cut it."
    ),
    "duplicate": N_("A triple that differs only in case, width or spaces is there already."),
    "several_types": N_("“{head}” has several types ({types}): they contradict each other."),
}


def doubts_of(step: Step | None, graph: KnowledgeGraph) -> list[str]:
    """Say what may be wrong with the triples that a step wrote, as far as they stand."""
    if step is None or not isinstance(step.what, Edited) or len(step.what.edits) > TYPED:
        return []
    written = (e.new or e.triple for e in step.what.edits if e.action in ("add", "replace"))
    return [said for triple in written if triple in graph for said in doubts(graph, triple)]


def doubts(graph: KnowledgeGraph, new: Triple) -> tuple[str, ...]:
    """Say what a triple brings to the others of its head in a graph; plain text."""
    own = graph.triples_of(new.head)
    before = {f.kind: f.count for f in check(KnowledgeGraph(x for x in own if x != new))}
    found = {f.kind for f in check(KnowledgeGraph(own)) if f.count > before.get(f.kind, 0)}
    types = listed(dict.fromkeys(x.tail for x in own if x.relation in TYPE_RELATIONS))
    values = {"head": new.head, "types": types, "most": LONG_TAIL}
    return tuple(t(text, **values) for kind, text in DOUBT_TEXTS.items() if kind in found)
