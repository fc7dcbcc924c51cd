"""Cells → checked rows of three fields. From a table three columns are read; it may have more."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import eq

from kbert_core.errors import GraphFileError, OptionError
from kbert_core.knowledge.io.compression import plain_ending
from kbert_core.knowledge.io.headings import WHOLE, columns_of, ends_of, looks_like_headings
from kbert_core.knowledge.io.text_lines import (
    MAX_FIELD,
    Bad,
    Cells,
    Doubt,
    Lines,
    check_encoding,
    shown,
)
from kbert_core.knowledge.triple import Triple
from kbert_core.options import option

Row = tuple[int, str, str, str]  # line, head, relation, tail
WATCHED = 1000  # rows in which the first one's fields may recur
FEW = 5  # rows, of which nothing has to recur


@dataclass(frozen=True)
class ReadOptions:
    """How a file of triples is written, where its name doesn't tell.

    Attributes:
        encoding: None: UTF-8, what a byte order mark says, or what KBERT_ENCODING names.
        columns (H,R,T): columns of head, relation and tail, by name in the first line or number
            from 1; default: those with these headings, else the first three
        language (CODE): language of labels in RDF, such as zh; default: any
        silent: of RDF, keep what says nothing in a text: type Class, numbers, namespaces
        nodes (FILE): tables that name the nodes of Neo4j's relationships
        most: the most bytes of an unpacked file; a larger one is refused.
    """

    encoding: str | None = None
    columns: tuple[str, str, str] | None = option(None, parse=lambda text: tuple(text.split(",")))
    language: str | None = option(None)
    silent: bool = option(False)
    nodes: tuple[str, ...] = option(())
    most: int | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            check_encoding(self.encoding)
        if self.columns is not None and len(set(self.columns)) != 3:
            raise OptionError(
                f"{','.join(self.columns)} names {len(set(self.columns))} columns. Give three "
                "different ones, those of head, relation and tail, by number or by name."
            )


def checked(line: int, head: str, relation: str, tail: str, separator: str = "\t") -> Row | Bad:
    """Strip the fields of a row and check them; an error shows them with their separator."""
    fields = head, relation, tail = head.strip(), relation.strip(), tail.strip()
    short = all(fields) and len(head) + len(relation) + len(tail) <= MAX_FIELD
    if short and head.isprintable() and relation.isprintable() and tail.isprintable():
        return line, head, relation, tail  # the quick way to see that there is no control
    text, longest = shown(separator.join(fields)), max(map(len, fields))
    if problem := Triple(*fields).problem():
        return Bad(line, f"'{text}' is no triple: {problem}, or delete the line.")
    if longest > MAX_FIELD:
        problem = f"a field of {longest} characters in '{text}', at most {MAX_FIELD} expected."
        return Bad(line, f"{problem} Shorten it or delete the line.")
    return line, head, relation, tail


def read_tabs(lines: Lines, name: str, options: ReadOptions) -> Iterator[Row | Bad]:
    """Read fields that tabs separate; quotes mean nothing, and ``.spo`` has no headings."""
    cells = (
        (number, line if isinstance(line, Bad) else line.split("\t"))
        for number, line in lines
        if isinstance(line, Bad) or line.strip()
    )
    return read_cells(cells, name, options, header=plain_ending(name) != ".spo", separator="\t")


def read_cells(
    cells: Cells, name: str, options: ReadOptions, *, header: bool, separator: str
) -> Iterator[Row | Bad]:
    """Read three cells of each row, those that the first row or the options name."""
    chosen: Sequence[int] | None = None
    width, rows, bad = 3, 0, 0
    headings: tuple[int, list[str]] | None = None
    first: list[str] | None = None  # a row that may be one of headings: no field of it recurred
    for number, found in cells:
        if isinstance(found, Bad):
            bad += 1
            yield found
            continue
        if chosen is None:
            if found[0].startswith("# ") and not columns_of(found):
                continue  # a comment
            chosen, is_header = _chosen(found, name, number, options, header=header)
            width = len(found) if is_header or options.columns else 3
            if is_header:
                headings = number, found
                continue
            if looks_like_headings(found) or columns_of(found):
                yield _headings(found, name, number)
            elif header and not options.columns:
                begin, first = number, found
        if len(found) != width:
            if len(found) > 2 or not found[0].startswith("#"):
                bad += 1
                yield Bad(number, _wrong_number(found, width, separator))
            continue
        rows += 1
        if first is not None and rows > 1 and (rows > WATCHED or any(map(eq, found, first))):
            if rows > WATCHED:
                yield _headings(first, name, begin)
            first = None
        head, relation, tail = chosen
        yield checked(number, found[head], found[relation], found[tail], separator)
    if first is not None and rows >= FEW:
        yield _headings(first, name, begin)
    if headings and not rows and not bad:
        number, found = headings
        raise GraphFileError(
            f"{name}, line {number}: '{shown(', '.join(found))}' are headings, and no triple "
            "follows. Write triples below them, one a line."
        )


def _headings(cells: Sequence[str], name: str, number: int) -> Doubt:
    return Doubt(
        number,
        f"'{shown(', '.join(cells))}' was read as a triple. If these are headings, delete the "
        "line, or say which columns are head, relation and tail: "
        f"kbert kg import {name} --columns {','.join(cells[:3])} --output GRAPH.kg",
    )


def _chosen(
    first: list[str], name: str, number: int, options: ReadOptions, *, header: bool
) -> tuple[Sequence[int], bool]:
    """Return the cells to take, and whether the row is one of headings."""
    headings = [cell.strip().casefold() for cell in first]
    if options.columns is None:
        known = columns_of(first) if header else None
        if header and not known and 1 in (ends_of(first) or ()):
            raise GraphFileError(
                f"{name}, line {number}: none of '{shown(', '.join(first))}' is known as the "
                "heading of a relation. Call it relation, or choose columns with --columns."
            )
        return known or (0, 1, 2), bool(known)
    if all(column.isdecimal() for column in options.columns):
        wanted = [int(column) - 1 for column in options.columns]
        if not all(0 <= place < len(first) for place in wanted):
            raise GraphFileError(
                f"{name}, line {number}: has {len(first)} columns, and columns "
                f"{','.join(options.columns)} were asked for. Give numbers from 1 to {len(first)}."
            )
        return wanted, header and {headings[place] for place in wanted} <= set().union(*WHOLE)
    missing = [c for c in options.columns if c.strip().casefold() not in headings]
    if missing:
        raise GraphFileError(
            f"{name}, line {number}: no column is called '{missing[0]}'; found "
            f"{', '.join(shown(cell) for cell in first)}. Give three of these, or numbers from 1."
        )
    return [headings.index(c.strip().casefold()) for c in options.columns], True


def _wrong_number(cells: list[str], width: int, separator: str) -> str:
    remedy = "Add the missing field" if len(cells) < width else "Take the extra fields out"
    columns = {"\t": "(head, relation, tail separated by tabs)"}
    wanted = columns.get(separator, "(head, relation, tail)") if width == 3 else "(as in line 1)"
    if width == 3 and len(cells) > 3:
        remedy += ", choose columns with --columns,"
    return (
        f"found {len(cells)} field{'s' * (len(cells) != 1)} in '{shown(separator.join(cells))}', "
        f"expected {width} {wanted}. {remedy} or delete the line."
    )
