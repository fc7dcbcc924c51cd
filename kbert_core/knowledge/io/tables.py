"""Tables and JSON Lines: rows out of lines.

.spo, .tsv and .txt have tabs, .csv has quotes; three columns, or three of more.
.jsonl and .ndjson have an object or a list of three a line, also as Neo4j's APOC exports it.
"""

import csv
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io.compression import plain_ending
from kbert_core.knowledge.io.rows import Bad, ReadOptions, Row, checked, printable, shown

Lines = Iterable[tuple[int, str | Bad]]
Cells = Iterator[tuple[int, list[str] | Bad]]
HEADERS = tuple(  # what a first line, or an object, may call head, relation and tail
    set(names.split())
    for names in (
        "head subject source entity s h 头实体 实体 主语 :start_id",
        "relation predicate property type p r 关系 属性 :type",
        "tail object target value o t 尾实体 值 宾语 :end_id",
    )
)
_NODE_NAMES = ("name", "title", "label", "名称", "id")  # properties that name a node of Neo4j
_DELIMITERS = ",;\t|"
MAX_ROW = 10_000  # lines; more are no longer read for the end of a quote
MAX_AGAIN = 1_000_000  # lines of a file that are read again after a quote that isn't closed
# What a spreadsheet would run, in full width too, and what we have guarded.
FORMULA = re.compile(r"'*[=+\-@\uff1d\uff0b\uff0d\uff20]")


def read_tabs(lines: Lines, name: str, options: ReadOptions) -> Iterator[Row | Bad]:
    """Read fields that tabs separate; quotes mean nothing, and ``.spo`` has no headings."""
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
    """A row may go over several lines; of one that can't be read only the first line is bad."""
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
            problem = (
                f"{printable(str(error))}. A quote may not be closed: close it, double the quotes "
                "that belong to a name, or delete the line."
            )
            yield number, Bad(number, problem)
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
    """Yield lines as a row needs them, and note them."""
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


def guarded(field: str) -> str:
    """Put an apostrophe before what a spreadsheet would take for a formula."""
    return "'" + field if FORMULA.match(field) else field


def unguarded(field: str) -> str:
    """Take it away again."""
    return field[1:] if field.startswith("'") and FORMULA.match(field) else field


def _rows(
    cells: Cells, name: str, options: ReadOptions, *, header: bool, what: str
) -> Iterator[Row | Bad]:
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
    """Which cells to take, and whether these are headings."""
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
        named = {h for names in HEADERS for h in names}
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
    places = [next((i for i, h in enumerate(headings) if h in names), None) for names in HEADERS]
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


def read_json_lines(lines: Lines, name: str, options: ReadOptions) -> Iterator[Row | Bad]:
    """Read a triple a line: ``{"head": …, "relation": …, "tail": …}`` or ``[…, …, …]``."""
    del name
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
        if isinstance(found, dict) and found.get("type") == "node":
            continue  # a node of Neo4j; its relationships name it
        fields = _fields(found, options)
        if fields is None or not all(isinstance(field, str | int | float) for field in fields):
            yield Bad(
                number,
                f"found '{shown(line)}', expected an object with the texts head, relation and "
                "tail, or a list of the three. Mend or delete the line.",
            )
            continue
        yield checked(number, *(str(field) for field in fields))


def _fields(found: Any, options: ReadOptions) -> tuple[Any, Any, Any] | None:
    if isinstance(found, list) and len(found) == 3:
        return found[0], found[1], found[2]
    if not isinstance(found, dict):
        return None
    if found.get("type") == "relationship" and "label" in found:
        return _node(found.get("start")), found["label"], _node(found.get("end"))
    folded = {str(key).casefold(): value for key, value in found.items()}
    fields: list[Any] = []
    for place, names in enumerate(HEADERS):
        wanted = {options.columns[place].casefold()} if options.columns else names
        fields.append(next((folded[name] for name in folded if name in wanted), None))
    return fields[0], fields[1], fields[2]


def _node(node: Any) -> Any:
    properties = node.get("properties", node) if isinstance(node, dict) else {}
    if not isinstance(properties, dict):
        return None
    return next((properties[name] for name in _NODE_NAMES if name in properties), None)
