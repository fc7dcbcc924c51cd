"""Tables: .spo, .tsv and .txt with tabs, .csv with quotes; three columns, or three of more."""

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io.compression import plain_ending
from kbert_core.knowledge.io.rows import (
    MAX_FIELD,
    Bad,
    ReadOptions,
    Row,
    checked,
    printable,
    shown,
)

Lines = Iterable[tuple[int, str | Bad]]
Cells = Iterator[tuple[int, list[str] | Bad]]
HEADERS = {  # what a first line may call its columns
    "head": {
        "head",
        "subject",
        "source",
        "entity",
        "s",
        "h",
        "头实体",
        "实体",
        "主语",
        ":start_id",
    },
    "relation": {"relation", "predicate", "property", "type", "p", "r", "关系", "属性", ":type"},
    "tail": {"tail", "object", "target", "value", "o", "t", "尾实体", "值", "宾语", ":end_id"},
}
_DELIMITERS = ",;\t|"
MAX_CELL = 4 * MAX_FIELD  # characters; more is no longer read for the end of a quote
MAX_ROW = 10_000  # lines, the same
MAX_AGAIN = 1_000_000  # lines of a file that are read again after a quote that isn't closed
# What a spreadsheet would run, in full width too, and what we have guarded.
FORMULA = re.compile(r"'*[=+\-@\uff1d\uff0b\uff0d\uff20]")


def read_tabs(lines: Lines, name: str, options: ReadOptions) -> Iterator[Row | Bad]:
    """Read fields that tabs separate; quotes mean nothing.

    A ``.spo`` file has no line of headings, whatever its first line says.
    """
    header = plain_ending(name) != ".spo"
    return _rows(_split(lines), name, options, header=header, what="tabs")


def read_csv(lines: Lines, name: str, options: ReadOptions) -> Iterator[Row | Bad]:
    """Read comma-separated values; semicolons, tabs and bars are known by the first line."""
    return _rows(_quoted(lines, name), name, options, header=True, what="commas")


def _split(lines: Lines) -> Cells:
    for number, line in lines:
        if isinstance(line, Bad):
            yield number, line
        elif line.strip() or line.count("\t") > 1:
            yield number, line.split("\t")


def _quoted(lines: Lines, name: str) -> Cells:
    """Cells of each row; one may go over several lines and is numbered by the first.

    Of a row that can't be read the first line is bad, and reading goes on with the next.
    """
    source = _Again(lines, name)
    first = next(source, "")
    source.back(0)
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(source, delimiter=delimiter, strict=True)
    limit = csv.field_size_limit(MAX_CELL)
    try:
        while True:
            source.taken.clear()
            try:
                cells = next(reader, None)
            except csv.Error as error:
                number, _ = source.taken[0]
                yield number, Bad(number, _QUOTES.format(problem=printable(str(error))))
                source.back(1)
                continue
            yield from ((problem.line, problem) for problem in source.bad)
            source.bad.clear()
            if cells is None:
                return
            if any(cell.strip() for cell in cells) or len(cells) > 2:
                yield source.taken[0][0], [unguarded(cell.removesuffix("\n")) for cell in cells]
    finally:
        csv.field_size_limit(limit)


class _Again:
    """Lines for a reader of rows, which may be given back.

    Attributes:
        taken: lines of the present row, with their numbers.
        bad: lines that were none.
    """

    def __init__(self, lines: Lines, name: str) -> None:
        self._lines, self._name, self._again = iter(lines), name, 0
        self._back: deque[tuple[int, str]] = deque()
        self.taken: list[tuple[int, str]] = []
        self.bad: list[Bad] = []

    def __iter__(self) -> "_Again":
        return self

    def __next__(self) -> str:
        if len(self.taken) > MAX_ROW:
            raise csv.Error(f"a row of over {MAX_ROW:,} lines")
        if not self._back:
            for number, line in self._lines:
                if not isinstance(line, Bad):
                    self._back.append((number, line + "\n"))
                    break
                self.bad.append(line)
        if not self._back:
            raise StopIteration
        self.taken.append(self._back.popleft())
        return self.taken[-1][1]

    def back(self, start: int) -> None:
        """Give the lines of the present row back, from its start-th on.

        Raises:
            GraphFileError: so many were, that reading would have no end.
        """
        self._back.extendleft(reversed(self.taken[start:]))
        self._again += len(self.taken)
        if self._again > MAX_AGAIN:
            raise GraphFileError(
                f"{self._name}, line {self.taken[0][0]}: too many quotes before and after it are "
                "not closed. Close them, or double the quotes that belong to a name."
            )


_QUOTES = (
    "{problem}. A quote may not be closed: close it, double the quotes that belong to a name, or "
    "delete the line."
)


def guarded(field: str) -> str:
    """Put an apostrophe before what a spreadsheet would take for a formula."""
    return "'" + field if FORMULA.match(field) else field


def unguarded(field: str) -> str:
    """Take it away again."""
    return field[1:] if field.startswith("'") and FORMULA.match(field) else field


def _rows(
    cells: Cells, name: str, options: ReadOptions, *, header: bool, what: str
) -> Iterator[Row | Bad]:
    """Choose three cells of every row and check them."""
    chosen: Sequence[int] | None = None
    width = 3
    for number, found in cells:
        if isinstance(found, Bad):
            yield found
            continue
        if chosen is None:
            chosen, is_header = _chosen(found, name, number, options, header=header)
            width = len(found) if is_header or options.columns else 3
            if is_header:
                continue
        if len(found) != width:
            yield Bad(number, _wrong_number(found, width, what))
            continue
        yield checked(number, found[chosen[0]], found[chosen[1]], found[chosen[2]])


def _chosen(
    first: list[str], name: str, number: int, options: ReadOptions, *, header: bool
) -> tuple[Sequence[int], bool]:
    """Which cells to take, and whether the first line is one of headings."""
    headings = [cell.strip().casefold() for cell in first]
    if options.columns is None:
        known = headings_of(first) if header else None
        return (known, True) if known else ((0, 1, 2), False)
    if all(column.isdecimal() for column in options.columns):
        wanted = [int(column) - 1 for column in options.columns]
        if not all(0 <= place < len(first) for place in wanted):
            raise GraphFileError(
                f"{name}, line {number}: has {len(first)} columns, and columns "
                f"{','.join(options.columns)} were asked for. Give numbers from 1 to {len(first)}."
            )
        named = {h for names in HEADERS.values() for h in names}
        return wanted, header and all(headings[place] in named for place in wanted)
    missing = [c for c in options.columns if c.strip().casefold() not in headings]
    if missing:
        raise GraphFileError(
            f"{name}, line {number}: no column is called '{missing[0]}'; found "
            f"{', '.join(shown(cell) for cell in first)}. Give three of these, or numbers from 1."
        )
    return [headings.index(c.strip().casefold()) for c in options.columns], True


def headings_of(cells: Sequence[str]) -> Sequence[int] | None:
    """Which cells call themselves head, relation and tail; None: it is no line of headings."""
    headings = [cell.strip().casefold() for cell in cells]
    places = [
        next((i for i, h in enumerate(headings) if h in names), None) for names in HEADERS.values()
    ]
    known = [place for place in places if place is not None]
    return known if len(set(known)) == 3 else None


def _wrong_number(cells: list[str], width: int, what: str) -> str:
    line = shown("\t".join(cells))
    remedy = "Add the missing field" if len(cells) < width else "Take the extra fields out"
    wanted = "(head, relation, tail separated by tabs)" if what == "tabs" else "(as in line 1)"
    if what != "tabs" and width == 3:
        wanted = "(head, relation, tail)"
    if width == 3 and len(cells) > 3:
        remedy += ", choose columns with --columns,"
    return (
        f"found {len(cells)} field{'s' * (len(cells) != 1)} in '{line}', expected {width} "
        f"{wanted}. {remedy} or delete the line."
    )
