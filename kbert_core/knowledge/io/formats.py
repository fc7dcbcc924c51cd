"""Formats besides lines of tabs: tables with quotes and JSON Lines, also those of Neo4j."""

import csv
import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io.headings import columns_of
from kbert_core.knowledge.io.rows import ReadOptions, Row, checked, read_cells
from kbert_core.knowledge.io.sources import source
from kbert_core.knowledge.io.text_lines import Bad, Cells, Lines, one_line, printable, shown

MAX_ROW = 10_000  # lines; more are no longer read for the end of a quote
_DELIMITERS = (",;\t|", "，；")  # the latter where a line has none of the former
SEPARATOR = re.compile(r"sep=([^\w\"]) *", re.IGNORECASE)  # a line that Excel may write first
# What a spreadsheet would run, in full width too, and what we have guarded.
FORMULA = re.compile(r"'*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_NEO4J = re.compile(r".*:(start_id|end_id|label)(\(.*\))?|_start|_labels")  # its headings alone


def read_csv(lines: Lines, name: str, options: ReadOptions) -> Iterator[Row | Bad]:
    """Read a table with quotes; its headings say whether it has triples or is Neo4j's."""
    separator, cells = quoted(lines, name)
    first = list(islice(cells, 1))
    for number, found in first:
        cut = found if isinstance(found, list) and not options.columns else []
        if any(_NEO4J.fullmatch(cell.strip().casefold()) for cell in cut):
            return source("Neo4j's table")(cut, number, cells, name, options)
    return read_cells(chain(first, cells), name, options, header=True, separator=separator)


def delimiter_of(line: str) -> str:
    """Return what separates the cells of a table, by its first line."""
    usual, wide = (max(those, key=line.count) for those in _DELIMITERS)
    return wide if wide in line and usual not in line else usual


def quoted(lines: Lines, name: str) -> tuple[str, Cells]:
    """Return what separates the cells of a table with quotes, as its first line tells; and them.

    A row may have several lines. One that can't be read is refused, also where bad lines may be
    left out: a quote may not be closed, and nobody can say where the next row begins.
    """
    source = iter(lines)
    begin = list(islice(source, 1))
    first = "".join(line for _, line in begin if isinstance(line, str))
    told = SEPARATOR.fullmatch(first)
    separator = told[1] if told else delimiter_of(first)
    return separator, _cells(source if told else chain(begin, source), name, separator)


def _cells(lines: Lines, name: str, separator: str) -> Cells:
    taken: list[tuple[int, str]] = []  # of the row
    bad: list[Bad] = []  # among them

    def unread() -> Iterator[str]:
        for number, line in lines:
            if len(taken) == MAX_ROW:
                raise csv.Error(f"a row of over {MAX_ROW:,} lines")
            if isinstance(line, Bad):
                bad.append(line)
            else:
                taken.append((number, line))
                yield line + "\n"

    reader = csv.reader(unread(), delimiter=separator, strict=True)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            number, line = taken[0]
            problem = (
                f"{printable(str(error))}. A quote may not be closed: close it, double the quotes "
                "that belong to a name, or delete the line."
            )
            if "\r" in line:
                problem = (
                    f"'{shown(line)}' holds a line end of another kind (U+000D) than the "
                    "file. Save the file with one kind, or delete the line."
                )
            if len(taken) > 1:
                raise GraphFileError(f"{name}, line {number}: {problem}") from error
            yield number, Bad(number, problem)
        else:
            if cells and any(map(str.strip, cells)):
                yield taken[0][0], [unguarded(one_line(cell.removesuffix("\n"))) for cell in cells]
        yield from ((problem.line, problem) for problem in bad)
        if not taken:
            return
        taken.clear()
        bad.clear()


def guarded(field: str) -> str:
    """Put an apostrophe before what a spreadsheet would take for a formula."""
    return "'" + field if FORMULA.match(field) else field


def unguarded(field: str) -> str:
    """Remove the apostrophe that :func:`guarded` adds."""
    return field[1:] if field.startswith("'") and FORMULA.match(field) else field


def read_json_lines(lines: Lines, name: str, options: ReadOptions) -> Iterator[Row | Bad]:
    """Read a triple a line: ``{"head": …, "relation": …, "tail": …}`` or ``[…, …, …]``."""
    nodes: dict[Any, Any] = {}  # of Neo4j, by number
    for number, line in lines:
        if isinstance(line, Bad):
            yield line
            continue
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Bad(number, f"'{shown(line)}' is no JSON ({error}). Mend or delete the line.")
            continue
        neo4j = isinstance(found, dict) and found.get("type") in ("node", "relationship")
        fields = source("Neo4j's line")(found, nodes) if neo4j else _fields(found, options)
        if neo4j and fields is None:
            continue  # its relationships name it
        if isinstance(fields, list) and all(isinstance(f, str | int | float) for f in fields):
            yield checked(number, *map(str, fields))
            continue
        said = f"found '{shown(line)}', {fields}. Mend or delete the line."
        if not isinstance(fields, str):
            said = (
                f"found '{shown(line)}', expected an object with the texts head, relation and "
                "tail, or a list of the three. Mend or delete the line."
            )
        yield Bad(number, said)


def _fields(found: Any, options: ReadOptions) -> list[Any] | None:
    if not isinstance(found, dict):
        return found if isinstance(found, list) and len(found) == 3 else None
    if options.columns:
        folded = {str(key).casefold(): value for key, value in found.items()}
        return [folded.get(column.casefold()) for column in options.columns]
    values = [*found.values()]
    return [values[place] for place in columns_of([*found]) or ()] or None
