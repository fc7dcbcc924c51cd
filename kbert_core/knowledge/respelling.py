"""Respelling: other spellings of a name, in texts with spaces between words."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from html import unescape
from itertools import chain

from kbert_core.knowledge.names import APOSTROPHES

_GREEK = {  # a letter → its name
    code: unicodedata.name(chr(code)).split()[-1].lower().replace("lamda", "lambda")
    for code in (0xB5, *range(0x391, 0x3AA), *range(0x3B1, 0x3CA))
    if code != 0x3A2
}
_LETTERS = {name: chr(code) for code, name in _GREEK.items() if code > 0x3B0 and code != 0x3C2}
_SPELT = re.compile(rf"(?<![a-z])({'|'.join(_LETTERS)})(?![a-z])", re.IGNORECASE)
_ROMANS = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_DIGITS = {roman: str(number) for number, roman in enumerate(_ROMANS, start=1)}
_IN_ROMAN = {digits: roman for roman, digits in _DIGITS.items()}
_NUMBERED_WORDS = (  # before a number
    *("type", "types", "subtype", "stage", "grade", "class", "phase", "factor", "group", "level"),
    *("degree", "category", "collagen", "angiotensin", "schedule", "war", "trimester"),
)
_NUMBERED = rf"((?<![a-z])(?:{'|'.join(_NUMBERED_WORDS)})[ _-]?)"
_ROMAN = re.compile(rf"{_NUMBERED}({'|'.join(_DIGITS)})(?![a-z0-9])", re.IGNORECASE)
_ARABIC = re.compile(rf"{_NUMBERED}({'|'.join(_IN_ROMAN)})(?![a-z0-9.])", re.IGNORECASE)
OWNER = re.compile("(?<=[a-z])'s(?![a-z])", re.IGNORECASE)
_APOSTROPHE = re.compile(f"[{''.join(APOSTROPHES)}]")
_OWNED_WORDS = (  # what is named after a person
    *("disease", "syndrome", "sign", "test", "law", "phenomenon", "lymphoma", "sarcoma", "tumor"),
    *("tumour", "palsy", "contracture", "esophagus", "cell", "cells"),
)
_OWNED = re.compile(
    rf"(?<=[a-z]{{3}})(?:s|(?<!s))(?=[ _](?:{'|'.join(_OWNED_WORDS)})(?![a-z]))", re.IGNORECASE
)
ONLY_ENDS_IN_S = re.compile(  # names that end as a plural does
    r"(?<![a-z])(wales|athens|brussels|naples|texas|kansas|arkansas|honduras|barbados|bahamas|"
    r"maldives|philippines|netherlands|laos|alps|andes|thames|vegas|dallas|mars|james|charles|"
    r"thomas|nicholas|douglas|jones|williams|adams|harris|hughes|achilles|moses)$",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBERS = [  # a name of a Latin word, its ending in the singular and in the plural
    (re.compile(f"(?:{stem})(?:{one}|{many})$", re.IGNORECASE), one, many)
    for stem, one, many in (
        ("[a-z]{2}(?<!nap)", "sis", "ses"),
        ("[a-z]{2}", "xis", "xes"),
        ("test|pelv", "is", "es"),
        ("[a-z]{4}|foc|loc|nev", "us", "i"),
        (
            "vertebr|foss|larv|burs|areol|alg|antenn|papill|scapul|fistul|formul|cannul|crist|"
            "petechi|ampull|maxill|patell|lacun|lamin|stri|trabecul|ven",
            *("a", "ae"),
        ),
        ("[a-z]{3}", "ma", "mata"),
        (
            "bacteri|ov|ser|dat|spectr|strat|sept|atri|theli|diverticul|curricul|crani|sacr|antr|"
            "addend|errat|acetabul|frenul|cerebell|symposi",
            *("um", "a"),
        ),
        ("gangli|criteri|phenomen|mitochondri|automat", "on", "a"),
        ("[a-z]{3}", "ix", "ices"),
        ("[a-z]{3}", "ex", "ices"),
        ("[a-z]{2}", "nx", "nges"),
        ("foram|lum", "en", "ina"),
        ("(?<![a-z])(?:wo|fire|police|work)?", "man", "men"),
        ("(?<![a-z])(?:grand)?", "child", "children"),
        ("(?<![a-z])", "foot", "feet"),
        ("(?<![a-z])", "tooth", "teeth"),
        ("(?<![a-z])", "mouse", "mice"),
    )
]
_ENDINGS = tuple({ending for _, *both in _NUMBERS for ending in both})


def in_other_number(name: str) -> Iterator[str]:
    """Yield a name with its last word in the Latin singular or plural, where it has one."""
    for pattern, one, many in _NUMBERS if name.lower().endswith(_ENDINGS) else ():
        for now, other in ((one, many), (many, one)):
            if name.lower().endswith(now) and pattern.search(name):
                yield name[: -len(now)] + other


def without_greek(name: str) -> str:
    """Spell the Greek letters of a name out."""
    return name.translate(_GREEK)


def without_roman(name: str) -> str:
    """Write the Roman numerals of a name in digits."""
    return _ROMAN.sub(lambda number: number[1] + _DIGITS[number[2].lower()], name)


def _with_roman(name: str) -> str:
    return _ARABIC.sub(lambda number: number[1] + _IN_ROMAN[number[2]], name)


def spellings(name: str, base: str) -> list[str]:
    """Return a name, and its other spellings by the rules for texts with spaces.

    Args:
        name: as names are compared.
        base: the same without its sense.
    """
    every = [name, *dict.fromkeys(chain(in_other_number(name), in_other_number(base)))]
    words = _WORD.findall(name)
    for needed, respell in _RESPELLINGS:
        if not needed.isdisjoint(words):
            every += [s for known in tuple(every) for s in respell(known) if s not in every]
    return every


def has_more_forms(name: str) -> bool:
    """Say whether a name may have more forms than its key; it may say so too often."""
    ends = name.endswith((*_ENDINGS, "s", "y", ")", "）"))
    return ends or not _KEYWORDS.isdisjoint(_WORD.findall(name))


_WORD = re.compile("[a-z]+|[_&\u03b1-\u03c9]")
_RESPELLINGS: tuple[tuple[frozenset[str], Callable[[str], Iterable[str]]], ...] = (
    # words and signs that a name needs for them, and how they are made
    (frozenset("_&"), lambda name: [unescape(name).replace("_", " ")]),
    (frozenset(_LETTERS.values()), lambda name: [without_greek(name)]),
    (frozenset(_LETTERS), lambda name: [_SPELT.sub(lambda word: _LETTERS[word[1]], name)]),
    (frozenset(_NUMBERED_WORDS), lambda name: [without_roman(name)]),
    (frozenset(_NUMBERED_WORDS), lambda name: [_with_roman(name)]),
    (
        frozenset("s"),
        lambda name: [OWNER.sub(end, _APOSTROPHE.sub("'", name)) for end in ("s", "")],
    ),
    (frozenset(_OWNED_WORDS), lambda name: [_OWNED.sub("'s", name)]),
)
_KEYWORDS = frozenset().union(*(needed for needed, _ in _RESPELLINGS))


WORD_PARTS = ("non", "ex", "pre", "pseudo", "quasi", "never", "un")  # with which others mean more


def in_compound(text: str, start: int, end: int) -> bool:
    """Say whether a name is a part of a word that means something else.

    It is so after non-, ex-, pre- and the like, and in words such as state-of-the-art.
    """
    before = _PARTS_BEFORE.search(text[max(start - 40, 0) : start])
    after = _PARTS_AFTER.match(text, end, end + 40)
    parts = (before[0] if before else "") + "-" + (after[0] if after else "")
    return _CHANGED.search(parts) is not None


_PARTS_BEFORE = re.compile(r"(?:\w+[-\u2010\u2011])+$")
_PARTS_AFTER = re.compile(r"(?:[-\u2010\u2011]\w+)+")
_CHANGED = re.compile(
    rf"(?:{'|'.join(WORD_PARTS)})[-\u2010\u2011]-|"
    r"[-\u2010\u2011](?:of|in|the|to|by|up|for|at|and|a|an)[-\u2010\u2011]",
    re.IGNORECASE,
)
