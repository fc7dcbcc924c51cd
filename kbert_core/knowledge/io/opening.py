"""Which reader reads a file, and what it had to leave out."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import IO

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io.compression import ENDINGS as PACKED
from kbert_core.knowledge.io.compression import plain_ending, unpacking
from kbert_core.knowledge.io.json_lines import read_json_lines
from kbert_core.knowledge.io.lines import lines
from kbert_core.knowledge.io.rdf import FORMATS as RDF
from kbert_core.knowledge.io.rdf import read_rdf
from kbert_core.knowledge.io.rows import Bad, ReadOptions, Row, printable
from kbert_core.knowledge.io.tables import read_csv, read_tabs

SHOWN_PROBLEMS = 20
_BY_LINES = {
    ".spo": read_tabs,
    ".tsv": read_tabs,
    ".txt": read_tabs,
    ".csv": read_csv,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
}
ENDINGS = (*_BY_LINES, *RDF)  # of files of triples; each may be packed
RATIO = 2000  # a packed file of more bytes than so many times its own is taken for a bomb
FREE = 1 << 30  # bytes that any packed file may have
MOST_BAD = 100_000  # bad lines: with more, and fewer good ones, it is no file of triples


@dataclass
class Reading:
    """Rows of one file, in order; what is wrong with others is gathered as they come.

    Attributes:
        name: of the file, for messages.
        skip_bad: leave bad lines out; else the end of the rows raises.
        problems: a message for each bad line, the first ones.
        bad: how many there were.
        passed: what is no triple of a graph and isn't bad either, and how often: RDF's
            nodes without an address, empty texts, texts in other languages.
        unit: what is numbered: a "line", or a "statement".
    """

    name: str
    found: Iterator[Row | Bad]
    skip_bad: bool = False
    problems: list[str] = field(default_factory=list)
    bad: int = 0
    passed: Counter[str] = field(default_factory=Counter)
    unit: str = "line"

    def __iter__(self) -> Iterator[Row]:
        """Yield the good rows.

        Raises:
            GraphFileError: there were bad lines and none may be left out.
        """
        good = 0
        for row in self.found:
            if isinstance(row, tuple):
                good += 1
                yield row
                continue
            self.bad += 1
            if len(self.problems) < SHOWN_PROBLEMS or self.skip_bad:
                self.problems.append(f"{self.name}, {self.unit} {row.line}: {row.problem}")
            if self.bad > MOST_BAD + good:
                raise GraphFileError(
                    f"{self.problems[0]}\n… and {self.bad - 1:,} more up to {self.unit} "
                    f"{row.line:,}, and only {good:,} triples. Is it another kind of file? Its "
                    "name's ending must tell which."
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
                "tail, separated by tabs."
            )


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
    path = Path(path)

    def opened() -> IO[bytes]:
        try:
            return path.open("rb")
        except (OSError, ValueError) as error:  # ValueError: a null character in the name
            raise _no_file(path, error) from error

    with opened() as file:
        size = os.fstat(file.fileno()).st_size
    return _reading(opened, str(path), size, options, skip_bad=skip_bad)


def rows_of(
    data: bytes, name: str, options: ReadOptions = ReadOptions(), *, skip_bad: bool = False
) -> Reading:
    """The same for the bytes of a file that was given otherwise, such as uploaded."""
    return _reading(lambda: BytesIO(data), name, len(data), options, skip_bad=skip_bad)


def unit_of(name: str) -> str:
    """What is numbered in a file of that name: "line", or "statement" where lines mean nothing."""
    return "statement" if plain_ending(name) in RDF else "line"


def _reading(
    opened: Callable[[], IO[bytes]], name: str, size: int, options: ReadOptions, *, skip_bad: bool
) -> Reading:
    packed, ending = Path(name).suffix in PACKED, plain_ending(name)
    most = options.most
    if packed and most is None:
        most = max(FREE, RATIO * size)

    def unpacked() -> IO[bytes]:
        return unpacking(opened(), name)

    if ending in RDF:
        passed: Counter[str] = Counter()
        rdf = read_rdf(unpacked, name, ending, replace(options, most=most), passed)
        return Reading(name, rdf, skip_bad, passed=passed, unit=unit_of(name))
    read = _BY_LINES.get(ending, read_tabs)

    def rows() -> Iterator[Row | Bad]:
        with unpacked() as stream:
            text = lines(stream, name, encoding=options.encoding, most=most)
            yield from read(text, name, options)

    return Reading(name, rows(), skip_bad)


def _no_file(path: Path, error: OSError | ValueError) -> GraphFileError:
    reason = error.strerror if isinstance(error, OSError) else None
    return GraphFileError(
        f"{printable(str(path))}: can't be read ({reason or error}). Check the name, and that it "
        "is a file."
    )
