"""Bytes → decoded lines of limited length → checked rows of three fields.

From a table three columns are read; it may have more.
"""

import codecs
import csv
import io
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, islice

from kbert_core.errors import GraphFileError, OptionError
from kbert_core.knowledge.io.compression import PROBLEMS, packing_error, plain_ending
from kbert_core.knowledge.triple import Triple
from kbert_core.options import option

Row = tuple[int, str, str, str]  # line, head, relation, tail
MAX_FIELD = 50_000  # characters; longer is a broken file, not a name
MAX_LINE = 4 * (3 * MAX_FIELD + 100)
MAX_EMPTY = 1_000_000  # empty lines of a packed file: more, and it is a trap
_MARKS = {  # longer ones first: UTF-16's mark begins UTF-32's
    **dict.fromkeys((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "utf-32"),
    **dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-16"),
    codecs.BOM_UTF8: "utf-8-sig",
}
HEADERS = tuple(  # what a first line, or an object, may call head, relation and tail
    set(names.split())
    for names in (
        "head subject source entity s h 头实体 实体 主语",
        "relation predicate property type p r 关系 属性",
        "tail object target value o t 尾实体 值 宾语",
    )
)
_DELIMITERS = ",;\t|"
MAX_ROW = 10_000  # lines; more are no longer read for the end of a quote
MAX_AGAIN = 1_000_000  # lines of a file that are read again after a quote that isn't closed
# What a spreadsheet would run, in full width too, and what we have guarded.
FORMULA = re.compile(r"'*[=+\-@\uff1d\uff0b\uff0d\uff20]")


@dataclass(frozen=True, slots=True)
class Bad:
    """A line, counted from 1, that is no triple, and why."""

    line: int
    problem: str


Lines = Iterable[tuple[int, str | Bad]]
Cells = Iterator[tuple[int, list[str] | Bad]]


@dataclass(frozen=True)
class ReadOptions:
    """How a file of triples is written, where its name doesn't tell.

    Attributes:
        encoding: None: UTF-8, or UTF-16 with a byte order mark.
        columns: head, relation and tail, by number from 1 or by name in the first line;
            None: the columns with these headings, or else the first three.
        language: the language of labels in RDF; None: any.
        nodes: tables with the nodes of Neo4j's relationships.
        most: the most bytes of an unpacked file; a larger one is refused.
    """

    encoding: str | None = option(None, help="such as gb18030; default: UTF-8", metavar="NAME")
    columns: tuple[str, str, str] | None = option(
        None,
        help="columns of head, relation and tail, by name or number",
        metavar="H,R,T",
        parse=lambda text: tuple(text.split(",")),
    )
    language: str | None = option(
        None, help="language of labels in RDF, such as zh; default: any", metavar="CODE"
    )
    nodes: tuple[str, ...] = option(
        (), help="tables that name the nodes of Neo4j's relationships", metavar="FILE"
    )
    most: int | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
            except (LookupError, UnicodeError):  # the latter of one that is for nothing
                raise OptionError(
                    f"The encoding '{self.encoding}' is unknown. Give one such as utf-8, gb18030, "
                    "big5 or utf-16."
                ) from None
        if self.columns is not None and len(set(self.columns)) != 3:
            raise OptionError(
                f"{','.join(self.columns)} names {len(set(self.columns))} columns. Give three "
                "different ones, those of head, relation and tail, by number or by name."
            )


def checked(line: int, head: str, relation: str, tail: str) -> Row | Bad:
    """Strip the fields of a row and check them."""
    fields = head, relation, tail = head.strip(), relation.strip(), tail.strip()
    short = all(fields) and len(head) + len(relation) + len(tail) <= MAX_FIELD
    if short and head.isprintable() and relation.isprintable() and tail.isprintable():
        return line, head, relation, tail  # the quick way to see that there is no control
    text, longest = shown("\t".join(fields)), max(map(len, fields))
    if problem := Triple(*fields).problem():
        return Bad(line, f"'{text}' is no triple: {problem}, or delete the line.")
    if longest > MAX_FIELD:
        problem = f"a field of {longest} characters in '{text}', at most {MAX_FIELD} expected."
        return Bad(line, f"{problem} Shorten it or delete the line.")
    return line, head, relation, tail


def shown(text: str) -> str:
    """Return a line in a form that can be shown: short, odd characters as numbers."""
    return printable((text if len(text) <= 80 else text[:77] + "...").replace("\t", "<TAB>"))


def printable(text: str) -> str:
    """Return a text with odd characters written as numbers."""
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)


def lines(
    stream: io.RawIOBase, name: str, *, encoding: str | None = None, packed: bool = False
) -> Iterator[tuple[int, str | Bad]]:
    """Yield the lines of a file with their numbers from 1, and refuse packed files that are traps.

    Raises:
        GraphFileError: the file is damaged, too large, or in another encoding.
    """
    buffered = io.BufferedReader(stream, 1 << 16)
    try:
        encoding = _encoding(buffered.peek(4)[:4], name, encoding)
    except PROBLEMS as error:
        raise packing_error(name, error) from error
    text = io.TextIOWrapper(buffered, encoding, newline="\n")
    empty = 0
    for number in count(1):
        try:
            line = piece = text.readline(MAX_LINE)
            size = len(line)
            while len(piece) == MAX_LINE and piece[-1] != "\n":
                piece = text.readline(MAX_LINE)
                size += len(piece)
        except UnicodeDecodeError as error:
            raise _encoding_error(name, number, error) from error
        except UnicodeError as error:  # of UTF-16 and UTF-32 without their mark
            raise GraphFileError(
                f"{name}: {error}, so its byte order is unknown. Give --encoding {encoding}-le "
                f"or {encoding}-be."
            ) from error
        except PROBLEMS as error:
            raise packing_error(name, error) from error
        if not line:
            return
        empty += size <= 2 and not line.strip()
        if packed and empty > MAX_EMPTY:
            raise GraphFileError(
                f"{name}: has over {MAX_EMPTY:,} empty lines, as no file of triples has. Take "
                "them out, or take another file."
            )
        if size > MAX_LINE:
            problem = f"a line of {size:,} characters, at most {MAX_LINE:,} expected."
            yield number, Bad(number, f"{problem} Put one triple a line, or delete the line.")
        else:
            yield number, line.removesuffix("\n").removesuffix("\r")


def _encoding(start: bytes, name: str, encoding: str | None) -> str:
    if not encoding and start[1:] and (start[::2] == b"\0\0" or start[1::2] == b"\0\0"):
        order = "be" if start[0] == 0 else "le"
        raise GraphFileError(
            f"{name}: every other byte at its beginning is zero, as in UTF-16. If the file is "
            f"UTF-16, give --encoding utf-16-{order}, or save the file as UTF-8."
        )
    marked = next((known for mark, known in _MARKS.items() if start.startswith(mark)), None)
    encoding = codecs.lookup(encoding or marked or "utf-8").name
    return "utf-8-sig" if encoding == "utf-8" else encoding


def _encoding_error(name: str, number: int, error: UnicodeDecodeError) -> GraphFileError:
    """Return the error for bytes of another encoding; the bytes begin in line ``number``."""
    encoding, data = error.encoding.upper(), error.object
    if encoding.startswith(("UTF-16", "UTF-32")):
        return GraphFileError(
            f"{name}: not {encoding} throughout, near line {number} ({error.reason}). Save the "
            "file as UTF-8 and open it again."
        )
    number += data.count(b"\n", 0, error.start)
    end = data.find(b"\n", error.start)
    line = data[data.rfind(b"\n", 0, error.start) + 1 : end if end >= 0 else len(data)]
    remedy = "Save the file as UTF-8 and open it again"
    others = []
    for other in ("gb18030", "big5"):
        with suppress(UnicodeDecodeError):
            codecs.getincrementaldecoder(other)().decode(line)
            others.append(other)
    if b"\0" in line:
        others = ["utf-16-le", "utf-16-be"]
    others = [other for other in others if other.upper() != encoding]
    if others:
        remedy = (
            f"It may be {' or '.join(other.upper() for other in others)}: if so, save the file as "
            "UTF-8, or make a graph file of it, kbert kg import FILE --encoding "
            f"{others[0]} --output GRAPH.kg"
        )
    return GraphFileError(
        f"{name}, line {number}: byte 0x{data[error.start]:02X} is not {encoding}. {remedy}."
    )


def read_tabs(lines: Lines, name: str, options: ReadOptions) -> Iterator[Row | Bad]:
    """Read fields that tabs separate; quotes mean nothing, and ``.spo`` has no headings."""
    cells = (
        (number, line if isinstance(line, Bad) else line.split("\t"))
        for number, line in lines
        if isinstance(line, Bad) or line.strip() or line.count("\t") > 1
    )
    return read_cells(cells, name, options, header=plain_ending(name) != ".spo", what="tabs")


def quoted(lines: Lines, name: str) -> Cells:
    """Split a table with quotes; the first line tells whether ; tabs or | separate cells.

    A row may have several lines; if it can't be read, only its first line counts as bad.
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
    """Yield lines when a row needs them, and remember them."""
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
    """Remove the apostrophe that :func:`guarded` adds."""
    return field[1:] if field.startswith("'") and FORMULA.match(field) else field


def read_cells(
    cells: Cells, name: str, options: ReadOptions, *, header: bool, what: str
) -> Iterator[Row | Bad]:
    """Read three cells of each row, those that the first row or the options name."""
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
        if len(found) == width:
            yield checked(number, found[chosen[0]], found[chosen[1]], found[chosen[2]])
        else:
            yield Bad(number, _wrong_number(found, width, what))


def _chosen(
    first: list[str], name: str, number: int, options: ReadOptions, *, header: bool
) -> tuple[Sequence[int], bool]:
    """Return the cells to take, and whether the row is one of headings."""
    headings = [cell.strip().casefold() for cell in first]
    if options.columns is None:
        known = headings_of(first) if header else None
        return known or (0, 1, 2), bool(known)
    if all(column.isdecimal() for column in options.columns):
        wanted = [int(column) - 1 for column in options.columns]
        if not all(0 <= place < len(first) for place in wanted):
            raise GraphFileError(
                f"{name}, line {number}: has {len(first)} columns, and columns "
                f"{','.join(options.columns)} were asked for. Give numbers from 1 to {len(first)}."
            )
        return wanted, header and {headings[place] for place in wanted} <= set().union(*HEADERS)
    missing = [c for c in options.columns if c.strip().casefold() not in headings]
    if missing:
        raise GraphFileError(
            f"{name}, line {number}: no column is called '{missing[0]}'; found "
            f"{', '.join(shown(cell) for cell in first)}. Give three of these, or numbers from 1."
        )
    return [headings.index(c.strip().casefold()) for c in options.columns], True


def headings_of(cells: Sequence[str]) -> Sequence[int] | None:
    """Return the cells with the headings head, relation and tail; None: no such headings."""
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
