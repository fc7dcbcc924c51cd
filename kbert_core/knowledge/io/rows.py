"""Bytes → lines of text, decoded and none without end; and rows of triples, checked."""

import codecs
import io
from collections.abc import Iterator
from dataclasses import dataclass

from kbert_core.errors import GraphFileError, OptionError
from kbert_core.knowledge.io.compression import PROBLEMS, packing_error
from kbert_core.knowledge.triple import Triple
from kbert_core.options import option

Row = tuple[int, str, str, str]  # line, head, relation, tail
MAX_FIELD = 50_000  # characters; longer is a broken file, not a name
MAX_LINE = 4 * (3 * MAX_FIELD + 100)  # characters
MAX_EMPTY = 1_000_000  # empty lines of a packed file: more, and it is a trap
_BLOCK = 1 << 16  # bytes
_MARKS = (  # longer ones first: UTF-16's mark begins UTF-32's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


@dataclass(frozen=True, slots=True)
class Bad:
    """A line, counted from 1, that is no triple, and why."""

    line: int
    problem: str


@dataclass(frozen=True)
class ReadOptions:
    """How a file of triples is written, where its name doesn't tell.

    Attributes:
        encoding: such as "gb18030"; None: UTF-8, or UTF-16 that says so in
            its first bytes.
        columns: which columns are head, relation and tail, by number from 1
            or by name in the first line; None: the first three, or those
            that the first line calls so.
        language: of the labels in RDF, such as "zh"; None: any.
        most: refuse a file of more bytes than so many, unpacked.
    """

    encoding: str | None = option(None, help="such as gb18030; default: UTF-8", metavar="NAME")
    columns: tuple[str, str, str] | None = option(
        None,
        help="columns of head, relation and tail, by name or number",
        metavar="H,R,T",
        parse=lambda text: tuple(text.split(",")),
    )
    language: str | None = option(
        None, help="of labels in RDF, such as zh; default: any", metavar="CODE"
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
    problem = Triple(*fields).problem()
    if problem:
        return Bad(
            line, f"'{shown(chr(9).join(fields))}' is no triple: {problem}, or delete the line."
        )
    longest = max(map(len, fields))
    if longest > MAX_FIELD:
        return Bad(
            line,
            f"a field of {longest} characters in '{shown(chr(9).join(fields))}', at most "
            f"{MAX_FIELD} expected. Shorten it or delete the line.",
        )
    return line, head, relation, tail


def shown(text: str) -> str:
    """A line as it can be shown: short, every odd character by its number."""
    text = text if len(text) <= 80 else text[:77] + "..."
    return printable(text.replace("\t", "<TAB>"))


def printable(text: str) -> str:
    """A text with every odd character by its number."""
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)


def lines(
    stream: io.RawIOBase, name: str, *, encoding: str | None = None, packed: bool = False
) -> Iterator[tuple[int, str | Bad]]:
    """Yield the lines of a file with their numbers, from 1, and without their ends.

    Args:
        stream: the file, unpacking as it is read.
        packed: whether the file was packed, so that it may be a trap.

    Raises:
        GraphFileError: the file is damaged, too large, or in another encoding.
    """
    buffered = io.BufferedReader(stream, _BLOCK)
    try:
        encoding = _encoding(buffered.peek(4)[:4], name, encoding)
    except PROBLEMS as error:
        raise packing_error(name, error) from error
    text = io.TextIOWrapper(buffered, encoding, newline="\n")
    number, empty = 0, 0
    while True:
        number += 1
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
                f"{name}: {error}, so the order of its bytes isn't told. Say --encoding "
                f"{encoding}-le or {encoding}-be."
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
            problem = (
                f"a line of {size:,} characters, at most {MAX_LINE:,} expected. Put one triple a "
                "line, or delete the line."
            )
            yield number, Bad(number, problem)
        else:
            yield number, line.removesuffix("\n").removesuffix("\r")


def _encoding(start: bytes, name: str, encoding: str | None) -> str:
    if not encoding and start[1:] and (start[::2] == b"\0\0" or start[1::2] == b"\0\0"):
        order = "be" if start[0] == 0 else "le"
        raise GraphFileError(
            f"{name}: every other byte at its beginning is zero, as in UTF-16. If that is what it "
            f"is, say --encoding utf-16-{order}, or save the file as UTF-8."
        )
    marked = next((known for mark, known in _MARKS if start.startswith(mark)), None)
    encoding = codecs.lookup(encoding or marked or "utf-8").name
    return "utf-8-sig" if encoding == "utf-8" else encoding


def _encoding_error(name: str, number: int, error: UnicodeDecodeError) -> GraphFileError:
    """Say where a file isn't in its encoding; the error's bytes begin in line ``number``."""
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
    others = [other for other in ("gb18030", "big5") if _decodes(line, other)]
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


def _decodes(line: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(line)
    except UnicodeDecodeError:
        return False
    return True
