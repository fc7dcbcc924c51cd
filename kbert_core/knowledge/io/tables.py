"""Tables: .spo, .tsv and .txt with tabs, .csv with quotes; three columns, or three of more."""

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io.compression import plain_ending
from kbert_core.knowledge.io.rows import (
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
MAX_ROW = 10_000  # lines; more are no longer read for the end of a quote
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
    source = iter(lines)
    ahead = deque(islice(source, 1))  # lines to read first
    first = "".join(line for _, line in ahead if isinstance(line, str))
    delimiter = max(_DELIMITERS, key=first.count)
    again = 0  # lines that were read again
    while True:
        taken: list[tuple[int, str]] = []
        bad: list[Bad] = []
        reader = csv.reader(_taking(source, ahead, taken, bad), delimiter=delimiter, strict=True)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            number = taken[0][0]
            yield number, Bad(number, _QUOTES.format(problem=printable(str(error))))
            ahead.extendleft(reversed(taken[1:]))
            again += len(taken)
            if again > MAX_AGAIN:
                raise GraphFileError(
                    f"{name}, line {number}: too many quotes before and after it are not closed. "
                    "Close them, or double the quotes that belong to a name."
                ) from error
        else:
            if cells and (any(cell.strip() for cell in cells) or len(cells) > 2):
                yield taken[0][0], [unguarded(cell.removesuffix("\n")) for cell in cells]
        yield from ((problem.line, problem) for problem in bad)
        if not taken:
            return


def _taking(
    source: Iterator[tuple[int, str | Bad]],
    ahead: deque[tuple[int, str | Bad]],
    taken: list[tuple[int, str]],
    bad: list[Bad],
) -> Iterator[str]:
    """Yield the lines of one row as they are asked for, noted in ``taken``; ``bad`` are none."""
    while len(taken) <= MAX_ROW:
        following = ahead.popleft() if ahead else next(source, None)
        if following is None:
            return
        number, line = following
        if isinstance(line, Bad):
            bad.append(line)
        else:
            taken.append((number, line))
            yield line + "\n"
    raise csv.Error(f"a row of over {MAX_ROW:,} lines")


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
