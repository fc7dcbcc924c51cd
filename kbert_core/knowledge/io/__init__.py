"""Files of triples, one reader per format; each yields rows as it goes, however large the file."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io.compression import ENDINGS as PACKED
from kbert_core.knowledge.io.compression import (
    PROBLEMS,
    Bounded,
    packing_error,
    plain_ending,
    unpacking,
)
from kbert_core.knowledge.io.rows import ReadOptions as ReadOptions
from kbert_core.knowledge.io.rows import Row as Row
from kbert_core.knowledge.io.rows import read_tabs
from kbert_core.knowledge.io.sources import RDF, refuse_no_path, source
from kbert_core.knowledge.io.text_lines import Bad, Doubt, lines, printable, refuse_others
from kbert_core.knowledge.triple import Triple

log = logging.getLogger(__name__)

SHOWN_PROBLEMS = 20
JSON = (".jsonl", ".ndjson")
ENDINGS = (".spo", ".tsv", ".txt", ".csv", *JSON, *RDF)  # of files of triples; each may be packed
RATIO = 200  # a packed file of more bytes than so many times its own is taken for a bomb
FREE = 1 << 28  # bytes that any packed file may have
MOST_BAD = 100_000  # bad lines: with more, and fewer good ones, it is no file of triples


@dataclass
class Reading:
    """Rows of one file, in order; what is wrong with others is gathered as they come."""

    name: str  # of the file, for messages
    found: Iterator[Row | Bad]
    skip_bad: bool = False  # leave bad lines out; else the end of the rows raises
    problems: list[str] = field(default_factory=list)  # a message for each bad line, the first
    doubts: list[str] = field(default_factory=list)  # and for what may be none of the triples
    bad: int = 0  # how many there were
    # What is neither: RDF's nodes without an address, empty texts, texts in other languages.
    passed: Counter[str] = field(default_factory=Counter)
    unit: str = "line"  # what is numbered, or "statement"

    def __iter__(self) -> Iterator[Row]:
        """Yield the good rows; a ``GraphFileError`` tells of bad ones that may not be left out."""
        good = 0
        for row in self.found:
            if isinstance(row, tuple):
                good += 1
                yield row
                continue
            said = f"{self.name}, {self.unit} {row.line}: {row.problem}"
            if isinstance(row, Doubt):
                log.warning(said)
                self.doubts.append(said)
                continue
            self.bad += 1
            if len(self.problems) < SHOWN_PROBLEMS or self.skip_bad:
                self.problems.append(said)
            if self.bad > MOST_BAD + good:
                break
        no_triples = self.bad and not good and plain_ending(self.name) not in ENDINGS
        if no_triples or self.bad > MOST_BAD + good:
            raise GraphFileError(
                f"{self.problems[0]}\n{self.name}: its first {self.bad + good:,} {self.unit}s hold "
                f"{good:,} triples. Is it another kind of file? Save its triples as a table of "
                "head, relation and tail, with tabs between, and call it .tsv."
            )
        if self.bad and not self.skip_bad:
            rest = self.bad - SHOWN_PROBLEMS
            more = [f"… and {rest} more bad {self.unit}s."] if rest > 0 else []
            raise GraphFileError("\n".join([*self.problems, *more]))
        if not good:
            why = "the file is empty"
            if self.bad or self.passed:
                count = self.bad + self.passed.total()
                why = f"none of its {count} {self.unit}s is a triple of names"
            raise GraphFileError(
                f"{self.name}: no triples, {why}. Expected one triple a line: head, relation, "
                "tail, separated by tabs. To go without a graph, leave --kg out."
            )


@dataclass(frozen=True)
class TripleFile:
    """What one file held: its triples in order, each once."""

    name: str
    triples: tuple[Triple, ...]
    duplicates: int = 0  # lines that repeated an earlier triple
    problems: tuple[str, ...] = ()  # a message for each bad line, where they may be left out


def open_rows(
    path: str | Path, options: ReadOptions = ReadOptions(), *, skip_bad: bool = False
) -> Reading:
    """Open a file of triples.

    Args:
        path: its ending tells the format, one of ``ENDINGS``, packed or not;
            any other: tabs.
        options: what the ending doesn't tell.
        skip_bad: leave bad lines out.

    Raises:
        GraphFileError: it can't be opened; more when it is read.
    """
    from kbert_core.files import shipped

    refuse_no_path(path)
    if "://" in str(path):
        raise GraphFileError(
            f"{path}: is an address. Take its triples into a file first: `kbert kg import {path} "
            "--output GRAPH.kg`."
        )
    path = shipped(path)

    def opened() -> IO[bytes]:
        try:
            return path.open("rb")
        except (OSError, ValueError) as error:  # ValueError: a null character in the name
            reason = error.strerror if isinstance(error, OSError) else error
            raise GraphFileError(
                f"{printable(str(path))}: can't be read ({reason}). Check the name, and that it "
                "is a file."
            ) from error

    with opened() as file:
        size = os.fstat(file.fileno()).st_size
    return _reading(opened, str(path), size, options, skip_bad=skip_bad)


def rows_of(
    data: bytes, name: str, options: ReadOptions = ReadOptions(), *, skip_bad: bool = False
) -> Reading:
    """The same for the bytes of a file that was given otherwise, such as uploaded."""
    return _reading(lambda: BytesIO(data), name, len(data), options, skip_bad=skip_bad)


def read_triples(
    path: str | Path, options: ReadOptions = ReadOptions(), *, skip_bad: bool = False
) -> TripleFile:
    """Read a file of triples into memory.

    Args:
        path: its ending tells the format, see ``ENDINGS``: lines of three fields between tabs,
            a table with quotes (``.csv``), JSON Lines (``.jsonl``) or RDF (``.nt``, ``.ttl``);
            each may be packed as ``.xz``, ``.gz``, ``.bz2`` or ``.zst``.
        options: what the ending doesn't tell.
        skip_bad: load the good lines and list the bad ones in ``problems``.

    Raises:
        GraphFileError: the file is missing, empty, in another encoding,
            damaged, or a line is not a triple; then nothing is loaded.
    """
    return in_memory(open_rows(path, options, skip_bad=skip_bad))


def in_memory(reading: Reading) -> TripleFile:
    """Read all triples of a file that is open; see :func:`read_triples`."""
    rows = [Triple(*row[1:]) for row in reading]
    triples = tuple(dict.fromkeys(rows))
    duplicates = len(rows) - len(triples)
    if duplicates:
        log.info("%s: %d repeated triples dropped", reading.name, duplicates)
    return TripleFile(reading.name, triples, duplicates, tuple(reading.problems))


def unit_of(name: str) -> str:
    """What is numbered in a file of that name: "line"; "statement" of RDF, "row" at an address."""
    return "row" if "://" in name else "statement" if plain_ending(name) in RDF else "line"


def _reading(
    opened: Callable[[], IO[bytes]], name: str, size: int, options: ReadOptions, *, skip_bad: bool
) -> Reading:
    packed, ending = Path(name).suffix in PACKED, plain_ending(name)
    most = max(FREE, RATIO * size) if packed and options.most is None else options.most

    def unpacked() -> Bounded:
        return Bounded(unpacking(opened(), name), name, most)

    def read_lines() -> Iterator[Row | Bad]:
        with unpacked() as stream:
            buffered = BufferedReader(stream, 1 << 16)
            try:
                refuse_others(buffered.peek(), name)
            except PROBLEMS as error:
                raise packing_error(name, error) from error
            text = lines(buffered, name, encoding=options.encoding)
            read = read_tabs
            if ending == ".csv":
                from kbert_core.knowledge.io.formats import read_csv as read
            elif ending in JSON:
                from kbert_core.knowledge.io.formats import read_json_lines as read
            yield from read(text, name, options)

    reading = Reading(name, read_lines(), skip_bad, unit=unit_of(name))
    if ending in RDF:
        reading.found = source("RDF")(unpacked, name, ending, options, reading.passed)
    return reading
