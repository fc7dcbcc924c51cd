"""Triples into files, in every format that can be read; a file is replaced whole or not at all."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple
from itertools import chain
from pathlib import Path
from typing import IO

from kbert_core.errors import GraphFileError
from kbert_core.files import replaced
from kbert_core.knowledge.io.compression import packing, plain_ending
from kbert_core.knowledge.io.formats import guarded
from kbert_core.knowledge.io.headings import columns_of, ends_of
from kbert_core.knowledge.io.sources import refuse_no_path, source
from kbert_core.knowledge.triple import Triple, refuse_no_triple

Writer = Callable[[Iterable[Triple], IO[bytes]], None]


def write_triples(triples: Iterable[Triple], path: str | Path, write: Writer | None = None) -> int:
    """Write triples in the format that the file's name says; return how many.

    Args:
        triples: written one by one, in the memory of one.
        path: ``.csv`` has a line of headings, and an apostrophe before a cell that a spreadsheet
            would run as a formula; ``.jsonl`` has one object per line; ``.nt`` and ``.ttl`` give
            every name an address and its label; anything else has tabs. It is packed if ``.xz``,
            ``.gz``, ``.bz2`` or ``.zst`` follows.
        write: the function to use instead of the name's format.

    Raises:
        GraphFileError: a triple doesn't fit a line, or the file can't be
            written; an existing file stays unchanged.
    """
    refuse_no_path(path)
    if not isinstance(triples, Iterable):
        raise GraphFileError(f"Got {triples!r:.60} as triples, expected several, or a graph.")
    path = Path(path)
    count = 0

    def counted() -> Iterator[Triple]:
        nonlocal count
        for triple in triples:
            refuse_no_triple(triple)
            if problem := triple.problem():
                raise GraphFileError(
                    f"{path}: can't be written, the triple {triple} fits no line: {problem}."
                )
            count += 1
            yield triple

    streams = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
    written_to = (path.exists() and not path.is_file()) or path.parent in streams
    try:
        with (
            path.open("wb") if written_to else replaced(path.resolve()) as file,  # of links, too
            packing(file, path.name) as stream,
        ):
            (write or _FORMATS.get(plain_ending(path), _write_tabs))(counted(), stream)
    except OSError as error:
        raise GraphFileError(f"{path}: can't be written ({error.strerror}).") from error
    return count


def _write_tabs(triples: Iterable[Triple], stream: IO[bytes]) -> None:
    for triple in triples:
        stream.write(f"{triple.head}\t{triple.relation}\t{triple.tail}\n".encode())


def _write_table(triples: Iterable[Triple], stream: IO[bytes]) -> None:
    """With headings where the first triple would be taken for them."""
    triples = iter(triples)
    first = next(triples, None)
    if first is not None and (columns_of(cells := astuple(first)) or ends_of(cells)):
        stream.write(b"head\trelation\ttail\n")
    _write_tabs(() if first is None else chain([first], triples), stream)


def _write_csv(triples: Iterable[Triple], stream: IO[bytes]) -> None:
    fields = ((t.head, t.relation, t.tail) for t in triples)
    write_rows(chain([("head", "relation", "tail")], fields), stream)


def write_rows(rows: Iterable[Iterable[str]], stream: IO[bytes]) -> None:
    """Write the rows of a .csv file; no cell is a formula that a spreadsheet would run."""
    text = io.TextIOWrapper(stream, "utf-8", newline="")
    csv.writer(text, lineterminator="\n").writerows(map(guarded, row) for row in rows)
    text.flush()
    text.detach()


def _write_json_lines(triples: Iterable[Triple], stream: IO[bytes]) -> None:
    for t in triples:
        line = {"head": t.head, "relation": t.relation, "tail": t.tail}
        stream.write((json.dumps(line, ensure_ascii=False) + "\n").encode())


_FORMATS: dict[str, Writer] = {
    ".spo": _write_tabs,
    ".csv": _write_csv,
    ".tsv": _write_table,
    ".txt": _write_table,
    ".jsonl": _write_json_lines,
    ".ndjson": _write_json_lines,
    ".nt": lambda triples, stream: source("RDF to write")(triples, stream, ".nt"),
    ".ttl": lambda triples, stream: source("RDF to write")(triples, stream, ".ttl"),
}
ENDINGS = tuple(_FORMATS)
