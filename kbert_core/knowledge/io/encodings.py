"""Which encoding a text has: what its first bytes say, and which one gives letters as in texts.

Files are UTF-8, or have a byte order mark, or are in the encoding that is given or that
KBERT_ENCODING names. A file that is UTF-8 all the same is read as such.
"""

import codecs
import os
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

from kbert_core.errors import OptionError

VARIABLE = "KBERT_ENCODING"
WIDE = ("utf-16-le", "utf-16-be")
NARROW = ("gb18030", "cp1252", "euc_kr", "big5", "shift_jis", "cp1250", "cp1251", "cp1253")
_MARKS = {  # longer ones first: UTF-16's mark begins UTF-32's
    **dict.fromkeys((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "utf-32"),
    **dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-16"),
    codecs.BOM_UTF8: "utf-8-sig",
}
_SIGNS = "°§µ€£±×·…–—‘’“”„«»、。，；：？！（）《》"
_SYLLABLES = ("HIRAGANA", "KATAKANA", "HANGUL")
LIKELY = 0.6  # share of characters that are as in texts
NEARLY = 0.2  # by which the second of two encodings may have fewer


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
        as_utf_8, as_given = (_plausible(_decoded(start, name), name) for name in ("utf-8", given))
        given = None if as_utf_8 > as_given else given
    name = codecs.lookup(given or "utf-8").name
    return "utf-8-sig" if name == "utf-8" else name


def guessed(data: bytes, *, but: str = "") -> list[tuple[str, str]]:
    """Return the one or two encodings, ``but`` for one, that read data best, and what they read."""
    found: dict[str, tuple[float, str]] = {}  # what is read → how plausible, by which
    for name in WIDE if b"\0" in data else ("utf-8", *NARROW):
        text = _decoded(data, name)
        if name != but and (share := _plausible(text, name)) >= LIKELY:
            found.setdefault(text, (share, name))
    best = sorted(found.items(), key=lambda one: -one[1][0])[:2]
    return [(name, text) for text, (share, name) in best if share > best[0][1][0] - NEARLY]


def _decoded(data: bytes, name: str) -> str:
    with suppress(UnicodeError):
        return codecs.getincrementaldecoder(name)().decode(data)
    return "\0"


def _plausible(text: str, encoding: str) -> float:
    """The share of characters beyond ASCII that are as in texts."""
    korean = any(_script(c) == "HANGUL" for c in text)
    chinese = {} if korean else _chinese(0.5 if encoding == "gb18030" else 1)
    shares = [
        _usual(text[max(0, place - 1) : place], character, text[place + 1 : place + 2], chinese)
        for place, character in enumerate(text)
        if not character.isascii() or character == "\0"
    ]
    return sum(shares) / len(shares) if shares else 1.0


def _usual(before: str, character: str, after: str, chinese: Mapping[str, float]) -> float:
    """How usual a character is between two others: 1 for a common one, 0 for none of a text."""
    script = _script(character)
    if script == "CJK":
        return chinese.get(character, 0)
    if script in _SYLLABLES or character in _SIGNS:
        return 1
    inside = character.isupper() and before.islower()  # "lH": no word has that
    if inside or script == "HALFWIDTH" or not character.isalpha():
        return 0
    near = (c for c in (before, after) if c.isalpha() and (c.isascii() or script != "LATIN"))
    return any(_script(c) == script for c in near)


def _script(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]


@cache
def _chinese(traditional: float) -> dict[str, float]:
    """Chinese characters by how common they are: those of the first levels of standards more."""
    levels = (
        ("big5", range(0xA4, 0xC7), traditional),
        ("gb2312", range(0xD8, 0xF8), 0.5),
        ("gb2312", range(0xB0, 0xD8), 1),
    )
    return {
        bytes((lead, trail)).decode(name, "ignore"): share
        for name, leads, share in levels
        for lead in leads
        for trail in range(0x40, 0xFF)
    }
