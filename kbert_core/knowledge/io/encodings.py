"""Which encoding reads bytes best: the one that gives letters as in texts."""

import codecs
import unicodedata
from collections.abc import Callable
from contextlib import suppress

WIDE = ("utf-16-le", "utf-16-be")
NARROW = ("gb18030", "cp1252", "euc_kr", "big5", "shift_jis", "cp1250", "cp1251", "cp1253")
_SIGNS = "°§µ€£±×·…–—‘’“”„«»、。，；：？！（）《》"
_SYLLABLES = ("HIRAGANA", "KATAKANA", "HANGUL")
LIKELY = 0.6  # share of characters that are as in texts
NEARLY = 0.2  # by which the second of two encodings may have fewer


def encoding_error(
    error: UnicodeDecodeError, number: int, end: bytes, start: bytes, shown: Callable[[str], str]
) -> str:
    """Say what is wrong, after a file's name; the bytes begin in line ``number``.

    Args:
        start: how the file begins, for what its other lines are.
    """
    encoding, data = error.encoding.upper(), error.object
    if encoding.startswith(("UTF-16", "UTF-32")):
        return (
            f": not {encoding} throughout, near line {number} ({error.reason}). Save the file as "
            "UTF-8 and open it again."
        )
    number += data.count(end, 0, error.start)
    begin = 0 if b"\0" in data else data.rfind(end, 0, error.start) + 1
    remedy = "Save the file as UTF-8 and open it again"
    lines = {*start.split(end)[:-1], *data.split(end)[:-1]}
    fits = [line.decode(errors="ignore").encode() == line for line in lines if not line.isascii()]
    if encoding == "UTF-8" and 3 * sum(fits) > len(fits):
        line = data[begin:].partition(end)[0].decode(errors="replace").strip()
        remedy = f"Other lines are: write '{shown(line)}' anew in this line, or delete it"
    elif others := guessed(data[begin:], but=error.encoding.lower()):
        first = {other: text.partition(end.decode())[0].strip() for other, text in others}
        read = (f"{other.upper()} ('{shown(line)}')" for other, line in first.items())
        remedy = (
            f"It may be {' or '.join(read)}. If that reads right, give --encoding "
            f"{' or '.join(first)}, or save the file as UTF-8"
        )
    return f", line {number}: byte 0x{data[error.start]:02X} is not {encoding}. {remedy}."


def guessed(data: bytes, *, but: str = "") -> list[tuple[str, str]]:
    """Return the one or two encodings, ``but`` for one, that read data best, and what they read."""
    found: dict[str, tuple[float, str]] = {}  # what is read → how plausible, by which
    for name in WIDE if b"\0" in data else ("utf-8", *NARROW):
        text = decoded(data, name)
        if name != but and text and (share := plausible(text, name)) >= LIKELY:
            found.setdefault(text, (share, name))
    best = sorted(found.items(), key=lambda one: -one[1][0])[:2]
    return [(name, text) for text, (share, name) in best if share > best[0][1][0] - NEARLY]


def decoded(data: bytes, name: str) -> str:
    """Decode a part of a file; a NUL character where it isn't of this encoding."""
    with suppress(UnicodeError):
        return codecs.getincrementaldecoder(name)().decode(data)
    return "\0"


def plausible(text: str, encoding: str) -> float:
    """The share of characters beyond ASCII that are as in texts."""
    traditional = 0.5 if encoding == "gb18030" else 1.0
    if any(_script(c) == "HANGUL" for c in text):
        text = "".join("\0" if _script(c) == "CJK" else c for c in text)  # none stands in Korean
    shares = [
        _usual(text[max(0, place - 1) : place], character, text[place + 1 : place + 2], traditional)
        for place, character in enumerate(text)
        if not character.isascii() or character == "\0"
    ]
    return sum(shares) / len(shares) if shares else 1.0


def _usual(before: str, character: str, after: str, traditional: float) -> float:
    """How usual a character is between two others: 1 for a common one, 0 for none of a text.

    Chinese characters of the standards' first levels are common, traditional ones by their share.
    """
    script = _script(character)
    if script == "CJK":
        if simplified := character.encode("gb2312", "ignore"):
            return 1 if simplified < b"\xd8" else 0.5
        return traditional if b"\xa4" <= character.encode("big5", "ignore") < b"\xc7" else 0
    if script in _SYLLABLES or character in _SIGNS:
        return 1
    inside = character.isupper() and before.islower()  # "lH": no word has that
    if inside or script == "HALFWIDTH" or not character.isalpha():
        return 0
    near = (c for c in (before, after) if c.isalpha() and (c.isascii() or script != "LATIN"))
    return any(_script(c) == script for c in near)


def _script(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]
