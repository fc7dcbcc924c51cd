"""Bytes → decoded lines of limited length → cells of a table, of triples or of labelled rows.

Files are UTF-8, or have a byte order mark, or are in the encoding that is given or that
KBERT_ENCODING names. A file that is UTF-8 all the same is read as such.
"""

import codecs
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import IO, cast

from kbert_core.errors import GraphFileError, OptionError
from kbert_core.knowledge.io.compression import PROBLEMS, packing_error, plain_ending

VARIABLE = "KBERT_ENCODING"
_MARKS = {  # longer ones first: UTF-16's mark begins UTF-32's
    **dict.fromkeys((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "utf-32"),
    **dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-16"),
    codecs.BOM_UTF8: "utf-8-sig",
}
MAX_FIELD = 50_000  # characters; longer is a broken file, not a name
MAX_LINE = 4 * (3 * MAX_FIELD + 100)
_CSV = "Save it as CSV (UTF-8), and open that file"
_RDF = "Save it as RDF/XML or Turtle, and open that file"
_TABLE = "Save its triples as a table: head, relation, tail"
_Kinds = Mapping[bytes, tuple[str, str]]
_BINARY = {  # how a file begins: what it is, and what to do
    rb"PK\x03\x04": ("an Excel workbook or a zip archive", _CSV),
    rb"\xd0\xcf\x11\xe0": ("an old Excel workbook", _CSV),
    rb"PAR1[\0-\x08\x0e-\x1f]": ("a Parquet table", _CSV),
    rb"SQLite format 3": ("a database", "Let its name end with .kg if it is a graph file"),
    rb"%PDF-": ("a PDF file", "Copy its table into a text file"),
}
_OTHERS = _BINARY | {
    rb"\s*<(?!.*<rdf:RDF).*<graphml\b": ("GraphML", _TABLE),
    rb"\s*<(?!.*<rdf:RDF).*<gexf\b": ("GEXF", _TABLE),
    rb"\$HDT": ("HDT", "Turn it into N-Triples, as hdt2rdf does"),
    rb"C\d{7}\|[^|\n]*\|\w*\|\w*\|C\d{7}\|": (
        "UMLS's MRREL.RRF",
        "Write a table: the name of column 5 (MRCONSO.RRF has it), column 8, the name of column 1",
    ),
    rb"(%YAML|---[ \t]*\r?\n|(?![^\n]*[\t,;|{<])([^\n]{1,80}:[ \t]*\r?\n[ -]|- [^\n]+:[ \r\n]))": (
        "YAML",
        _TABLE,
    ),
    rb"\s*<(!DOCTYPE html|html)": ("a web page", "Download the file itself"),
    rb"\s*<(?!.*<rdf:RDF).*<Ontology\b": ("OWL/XML", _RDF),
    rb"\s*(Prefix|Ontology)\(": ("OWL in functional syntax", _RDF),
    rb"format-version:": ("OBO", "Take the .owl file of the same ontology, or save it so"),
    rb"\s*<(\?xml.*)?<?(rdf:RDF|!DOCTYPE rdf)": ("RDF/XML", "Let its name end with .rdf"),
    rb"\s*@prefix\s": ("Turtle", "Let its name end with .ttl"),
    rb"\s*<\S+>\s<\S+>\s[<\"_][^\n]*\.\s*\n": ("N-Triples", "Let its name end with .nt or .nq"),
    rb"\s*\[?\s*{\s*\"@(context|id|graph|type)\"": ("JSON-LD", "Let its name end with .jsonld"),
    rb"\s*[\[{](?!.*\"(@|rel|pred)).*\"(ents|entities|spans|tokens|paragraphs)\"\s*:\s*\[": (
        "JSON of labelled texts",
        "It is data to train on, where it labels spans after `kbert data spans`",
    ),
    rb"\s*\[\s*[\[{]": ("a JSON list", "Write one object a line, and call the file .jsonl"),
}
_BREAK = re.compile(r"\s*[\t-\r\x85\u2028\u2029]\s*")


@dataclass(frozen=True, slots=True)
class Bad:
    """A line, counted from 1, that is no triple, and why."""

    line: int
    problem: str


class Doubt(Bad):
    """A line that was read as a triple and may be none, and why."""


Lines = Iterable[tuple[int, str | Bad]]
Cells = Iterator[tuple[int, list[str] | Bad]]


def shown(text: str) -> str:
    """Return a line in a form that can be shown: short, odd characters as numbers."""
    return printable((text if len(text) <= 80 else text[:77] + "...").replace("\t", "<TAB>"))


def printable(text: str) -> str:
    """Return a text with odd characters written as numbers."""
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)


def one_line(text: str) -> str:
    """Put a text of several lines into one."""
    return text if text.isprintable() else _BREAK.sub(" ", text)


def check_encoding(name: str) -> None:
    """Refuse the name of an encoding that there isn't.

    Raises:
        OptionError: with examples.
    """
    try:
        "".encode(name)
    except (LookupError, UnicodeError):  # the latter of one that is for nothing
        raise OptionError(
            f"The encoding '{name}' is unknown. Give one such as utf-8, gb18030, big5 or utf-16."
        ) from None


def encoding_of(start: bytes, given: str | None = None) -> str | None:
    """Return the encoding of a file by its beginning; None: UTF-16 without its mark."""
    given = given or os.environ.get(VARIABLE)
    if given:
        check_encoding(given)
    elif start[1:4] and (start[:4:2] == b"\0\0" or start[1:4:2] == b"\0\0"):
        return None
    if marked := next((known for mark, known in _MARKS.items() if start.startswith(mark)), None):
        given = given or marked
    if given and not start.isascii():
        from kbert_core.knowledge.io.encodings import decoded, plausible

        as_utf_8, as_given = (plausible(decoded(start, name), name) for name in ("utf-8", given))
        given = None if as_utf_8 > as_given else given
    name = codecs.lookup(given or "utf-8").name
    return "utf-8-sig" if name == "utf-8" else name


def lines(
    stream: IO[bytes] | io.RawIOBase,
    name: str,
    *,
    encoding: str | None = None,
    longest: int = MAX_LINE,
) -> Iterator[tuple[int, str | Bad]]:
    """Yield the lines of a file with their numbers from 1.

    Lines end as on any system, those of old Macs too.

    Raises:
        GraphFileError: the file is damaged, too large, or in another encoding.
    """
    buffered = io.BufferedReader(cast(io.RawIOBase, stream), 1 << 16)
    try:
        start = buffered.peek()
    except PROBLEMS as error:
        raise packing_error(name, error) from error
    refuse_others(start, name, _BINARY)
    known = encoding_of(start, encoding)
    if known is None:
        order = "be" if start[0] == 0 else "le"
        raise GraphFileError(
            f"{name}: every other byte at its beginning is zero, as in UTF-16. If the file is "
            f"UTF-16, give --encoding utf-16-{order}, or save the file as UTF-8."
        )
    end = "\r" if b"\r" in start and b"\n" not in start else "\n"
    text = io.TextIOWrapper(buffered, known, newline=end)
    for number in count(1):
        try:
            line = piece = text.readline(longest)
            size = len(line)
            while len(piece) == longest and piece[-1] != end:
                piece = text.readline(longest)
                size += len(piece)
        except UnicodeDecodeError as error:
            from kbert_core.knowledge.io.encodings import encoding_error

            problem = encoding_error(error, number, end.encode(), start, shown)
            raise GraphFileError(f"{name}{problem}") from error
        except UnicodeError as error:  # of UTF-16 and UTF-32 without their mark
            raise GraphFileError(
                f"{name}: {error}, so its byte order is unknown. Give --encoding {known}-le "
                f"or {known}-be."
            ) from error
        except PROBLEMS as error:
            raise packing_error(name, error) from error
        if not line:
            return
        if size > longest:
            problem = f"a line of {size:,} characters, at most {longest:,} expected."
            yield number, Bad(number, f"{problem} Put one triple a line, or delete the line.")
        else:
            yield number, line.removesuffix("\n").removesuffix("\r")


def refuse_others(start: bytes, name: str, kinds: _Kinds = _OTHERS) -> None:
    """Refuse a file of a kind that isn't read, by its beginning, with the way to go."""
    rdf = (ending := plain_ending(name)) in (".owl", ".rdf", ".ttl", ".trig", ".n3", ".jsonld")
    for begins, (what, remedy) in kinds.items():
        named = rdf and ("Let its name" in remedy or what == "a JSON list")
        named = named or (what == "N-Triples" and ending in (".nt", ".nq"))
        if not named and re.match(begins, start[:2000], re.DOTALL):
            raise GraphFileError(f"{name}: is {what}, which can't be read so. {remedy}.")
