"""Which encoding a file has, by what is given and by its first bytes.

Files are UTF-8, or have a byte order mark, or are in the encoding that is given or that
KBERT_ENCODING names. A file that is UTF-8 all the same is read as such.
"""

import codecs
import os

from kbert_core.errors import OptionError

VARIABLE = "KBERT_ENCODING"
_MARKS = {  # longer ones first: UTF-16's mark begins UTF-32's
    **dict.fromkeys((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "utf-32"),
    **dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-16"),
    codecs.BOM_UTF8: "utf-8-sig",
}


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
        from kbert_core.knowledge.io.guessing import decoded, plausible

        as_utf_8, as_given = (plausible(decoded(start, name), name) for name in ("utf-8", given))
        given = None if as_utf_8 > as_given else given
    name = codecs.lookup(given or "utf-8").name
    return "utf-8-sig" if name == "utf-8" else name
