"""Triples into files, in every format that can be read; a file is replaced whole or not at all."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, cast
from urllib.parse import quote

import pyoxigraph as ox

from kbert_core.errors import GraphFileError
from kbert_core.files import replaced
from kbert_core.knowledge.io.compression import packing, plain_ending
from kbert_core.knowledge.io.rdf import FORMATS as RDF
from kbert_core.knowledge.io.tables import guarded, headings_of
from kbert_core.knowledge.triple import Triple

LABEL = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
NAMESPACE = "urn:kbert:"


def write_triples(triples: Iterable[Triple], path: str | Path) -> int:
    """Write triples in the format that the file's name says; return how many.

    Args:
        triples: written as they come, in no more memory than one takes.
        path: ``.csv`` has a line of headings, and an apostrophe before what
            a spreadsheet would take for a formula; ``.jsonl`` has an object
            a line; ``.nt`` and ``.ttl`` give every name an address and its
            label; anything else has tabs. One that goes on with ``.xz``,
            ``.gz``, ``.bz2`` or ``.zst`` is packed so.

    Raises:
        GraphFileError: a triple doesn't fit a line, or the place can't be
            written to; what was there before stays.
    """
    path = Path(path)
    write = _FORMATS.get(plain_ending(path), _write_tabs)
    counted = _Counted(triples, path)
    try:
        with _replacing(path) as file, packing(file, path.name) as stream:
            write(counted, stream)
    except OSError as error:
        raise GraphFileError(f"{path}: can't be written ({error.strerror}).") from error
    return counted.count


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Replace a file when all went well; write to a device or a pipe."""
    if (path.exists() and not path.is_file()) or path.parent in _STREAMS:
        with path.open("wb") as file:
            yield file
        return
    with replaced(path.resolve()) as file:  # of a link, what it leads to
        yield file


_STREAMS = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


class _Counted:
    """Triples that fit a line, counted."""

    def __init__(self, triples: Iterable[Triple], path: Path) -> None:
        self._triples, self._path = triples, path
        self.count = 0

    def __iter__(self) -> Iterator[Triple]:
        for triple in self._triples:
            problem = triple.problem()
            if problem:
                raise GraphFileError(
                    f"{self._path}: can't be written, the triple {triple} fits no line: {problem}."
                )
            self.count += 1
            yield triple


def _write_tabs(triples: Iterable[Triple], stream: IO[bytes]) -> None:
    for triple in triples:
        stream.write(f"{triple.head}\t{triple.relation}\t{triple.tail}\n".encode())


def _write_table(triples: Iterable[Triple], stream: IO[bytes]) -> None:
    """With headings where the first triple would be taken for them."""
    triples = iter(triples)
    first = next(triples, None)
    if first is not None and headings_of((first.head, first.relation, first.tail)):
        stream.write(b"head\trelation\ttail\n")
    _write_tabs(() if first is None else chain([first], triples), stream)


def _write_csv(triples: Iterable[Triple], stream: IO[bytes]) -> None:
    text = io.TextIOWrapper(stream, "utf-8", newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["head", "relation", "tail"])
    for triple in triples:
        fields = (triple.head, triple.relation, triple.tail)
        rows.writerow([guarded(field) for field in fields])
    text.flush()
    text.detach()


def _write_json_lines(triples: Iterable[Triple], stream: IO[bytes]) -> None:
    for t in triples:
        line = {"head": t.head, "relation": t.relation, "tail": t.tail}
        stream.write((json.dumps(line, ensure_ascii=False) + "\n").encode())


def _write_rdf(ending: str, triples: Iterable[Triple], stream: IO[bytes]) -> None:
    ox.serialize(_statements(triples), cast(IO[bytes], _Plain(stream)), format=RDF[ending])


class _Plain:
    """What pyoxigraph can write to, whatever kind of packed stream is below."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.flush = stream, stream.flush

    def write(self, data: bytes) -> int:
        return self._stream.write(bytes(data))


def _statements(triples: Iterable[Triple]) -> Iterator[ox.Triple]:
    """Every name's label once, as long as a name's triples stand together."""
    labelled: set[str] = set()
    last = ""
    for triple in triples:
        relation = ox.NamedNode(f"{NAMESPACE}{quote(triple.relation, safe='')}")
        head = ox.NamedNode(f"{NAMESPACE}{quote(triple.head, safe='')}")
        if triple.relation not in labelled:
            labelled.add(triple.relation)
            yield ox.Triple(relation, LABEL, ox.Literal(triple.relation))
        if triple.head != last:
            last = triple.head
            yield ox.Triple(head, LABEL, ox.Literal(triple.head))
        yield ox.Triple(head, relation, ox.Literal(triple.tail))


_FORMATS: dict[str, Callable[[Iterable[Triple], IO[bytes]], None]] = {
    ".csv": _write_csv,
    ".tsv": _write_table,
    ".txt": _write_table,
    ".jsonl": _write_json_lines,
    ".ndjson": _write_json_lines,
    **{ending: partial(_write_rdf, ending) for ending in RDF},
}
