"""Bytes → lines of text: unpacked, decoded, and none without end."""

import codecs
import io
from collections.abc import Iterator
from typing import IO, Any, cast

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io.compression import PROBLEMS, packing_error
from kbert_core.knowledge.io.rows import MAX_FIELD, Bad

MAX_LINE = 4 * (3 * MAX_FIELD + 100)  # bytes
MAX_EMPTY = 1_000_000  # empty lines of a file whose size is bounded: more, and it is a trap
_MARKS = (  # longer ones first: UTF-16's mark begins UTF-32's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


def lines(
    stream: IO[bytes], name: str, *, encoding: str | None = None, most: int | None = None
) -> Iterator[tuple[int, str | Bad]]:
    """Yield the lines of a file with their numbers, from 1, and without their ends.

    Args:
        stream: the file, unpacking as it is read.
        name: for messages.
        encoding, most: see ``ReadOptions``.

    Raises:
        GraphFileError: the file is damaged, too large, or in another encoding.
    """
    buffered = io.BufferedReader(cast(io.RawIOBase, stream), 1 << 16)
    try:
        start = buffered.peek(4)[:4]
    except PROBLEMS as error:
        raise packing_error(name, error) from error
    if not encoding and start[1:] and (start[::2] == b"\0\0" or start[1::2] == b"\0\0"):
        order = "be" if start[0] == 0 else "le"
        raise GraphFileError(
            f"{name}: every other byte at its beginning is zero, as in UTF-16. If that is what it "
            f"is, say --encoding utf-16-{order}, or save the file as UTF-8."
        )
    marked = next((known for mark, known in _MARKS if start.startswith(mark)), None)
    encoding = encoded = codecs.lookup(encoding or marked or "utf-8").name
    if encoding == "utf-8" == (marked or "").removesuffix("-sig"):
        encoding = "utf-8-sig"
    if encoding.startswith(
        ("utf-16", "utf-32")
    ):  # a byte of a character may look like a line's end
        wide = io.TextIOWrapper(buffered, encoding, newline="\n")
        buffered = io.BufferedReader(cast(io.RawIOBase, _Encoded(wide)), 1 << 16)
        encoding = "utf-8"
    number, read, empty = 0, 0, 0
    while True:
        number += 1
        try:
            raw = buffered.readline(MAX_LINE)
            if not raw:
                return
            size = len(raw)
            while not raw.endswith(b"\n") and (more := buffered.readline(MAX_LINE)):
                size += len(more)
                raw = raw if size > MAX_LINE else raw + more
                if size > MAX_LINE and more.endswith(b"\n"):
                    break
        except UnicodeDecodeError as error:
            raise _wide_error(name, number, error) from error
        except UnicodeError as error:  # of UTF-16 and UTF-32 without their mark
            raise GraphFileError(
                f"{name}: {error}, so the order of its bytes isn't told. Say --encoding "
                f"{encoded}-le or {encoded}-be."
            ) from error
        except PROBLEMS as error:
            raise packing_error(name, error) from error
        read += size
        empty += size <= 2 and not raw.strip()
        if most is not None and empty > MAX_EMPTY:
            raise GraphFileError(
                f"{name}: has over {MAX_EMPTY:,} empty lines, as no file of triples has. Take "
                "them out, or take another file."
            )
        if most is not None and read > most:
            raise GraphFileError(
                f"{name}: over {most >> 20} MB when unpacked, more than is opened here. Take a "
                "smaller file."
            )
        if size > MAX_LINE:
            yield number, Bad(number, _TOO_LONG.format(size=size))
            continue
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError as error:
            raise _encoding_error(name, number, error) from error
        yield number, text.removesuffix("\n").removesuffix("\r")


class _Encoded(io.RawIOBase):
    """A text stream as bytes of UTF-8."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = self._text.read(1 << 14).encode("utf-8", "surrogatepass")
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size


def _encoding_error(name: str, number: int, error: UnicodeDecodeError) -> GraphFileError:
    """Say where a file is not in its encoding, and in which it may be."""
    asked = error.encoding.upper()
    remedy = "Save the file as UTF-8 and open it again"
    others = [other for other in ("gb18030", "big5") if _decodes(error.object, other)]
    if b"\0" in error.object:
        others = ["utf-16-le", "utf-16-be"]
    others = [other for other in others if other.upper() != asked]
    if others:
        remedy = (
            f"It may be {' or '.join(other.upper() for other in others)}: if so, save the file as "
            "UTF-8, or make a graph file of it, kbert kg import FILE --encoding "
            f"{others[0]} --output GRAPH.kg"
        )
    return GraphFileError(
        f"{name}, line {number}: byte 0x{error.object[error.start]:02X} is not {asked}. {remedy}."
    )


def _decodes(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _wide_error(name: str, number: int, error: UnicodeDecodeError) -> GraphFileError:
    return GraphFileError(
        f"{name}: not {error.encoding.upper()} throughout, near line {number} ({error.reason}). "
        "Save the file as UTF-8 and open it again."
    )


_TOO_LONG = (
    f"a line of {{size:,}} bytes, at most {MAX_LINE:,} expected. Put one triple a line, or delete "
    "the line."
)
