"""How names are compared: NFKC, case folding, one space for any white space.

To look a name up, dashes and spaces are removed as well, and characters are simplified
(:func:`loosen`, :func:`loose_key`). Every normalised character remembers which characters of the
given text it came from, so that a name can be shown in the text as it was given.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
from opencc import OpenCC

from kbert_core.tokens import (
    EXTENDS,
    IN_RUN,
    NO_TOKEN,
    CharacterTable,
    TokenizedTexts,
    Tokens,
    code_points,
    extends,
    tokenize_by_table,
)

K = TypeVar("K")
V = TypeVar("V")
_NO_SPACES = (  # scripts written without spaces between words: names match anywhere
    *("CJK ", "IDEOGRAPHIC ", "HIRAGANA ", "KATAKANA", "THAI ", "LAO ", "KHMER ", "MYANMAR "),
    *("BOPOMOFO ", "HANGUL ", "TIBETAN ", "YI "),
)
UNSPACED = re.compile(  # a character of these scripts, or of their punctuation
    "[\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff61-\uffdc"
    "\U0001b000-\U0001b2ff\U00020000-\U0003ffff]"
)
SLOW = "\ue000"  # marks, in the fast table, a character that needs the slow way
DROPPED = "\ue001"  # marks, in the loose table, a character that is left out
DASHES = frozenset(  # hyphens, soft ones too, minus signs, middle dots; no dash between clauses
    "-\u00ad\u00b7\u2010\u2011\u2012\u2013\u2022\u2027\u2212\u30fb\ufe63\uff0d\uff65"
)
APOSTROPHES = frozenset("'\u2018\u2019\u02bc`\u00b4\uff07")
ACUTE = "\u00b4"  # an apostrophe, and to Unicode a space with an accent
_SLOW_RUN = re.compile(f"[^{SLOW}]?{SLOW}+")  # with the character they may compose with


@dataclass(frozen=True, slots=True)
class NormalisedText:
    """A normalised text, and the characters of the given text from which each came."""

    text: str  # M normalised characters
    starts: Sequence[int]  # of each the span that it came from, in characters of the text as given
    ends: Sequence[int]  # exclusive


def normalise(text: str) -> NormalisedText:
    """Normalise a text for matching and keep an offset for every character."""
    fast = text.translate(one_to_one)
    if SLOW not in fast and "  " not in fast:
        return NormalisedText(fast, range(len(text)), range(1, len(text) + 1))
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for slow in _SLOW_RUN.finditer(fast):
        characters += fast[at : slow.start()]
        starts += range(at, slow.start())
        ends += range(at + 1, slow.start() + 1)
        at = slow.end()
        # Normalising the parts between these cuts equals normalising the whole.
        cuts = [i for i in range(*slow.span()) if i == slow.start() or not extends(text[i])]
        for start, end in pairwise([*cuts, at]):
            folded = _fold(text[start:end])
            characters += folded
            starts += [start] * len(folded)
            ends += [end] * len(folded)
    characters += fast[at:]
    starts += range(at, len(text))
    ends += range(at + 1, len(text) + 1)
    return _single_spaced(NormalisedText("".join(characters), starts, ends))


def normalise_name(name: str) -> str:
    """Return the key under which a name is found: 'Tim  Cook' → 'tim cook'."""
    fast = name.translate(one_to_one)
    if SLOW in fast or "  " in fast:
        fast = normalise(name).text
    return fast.strip()


def loosen(texts: Sequence[str]) -> TokenizedTexts:
    """Normalise texts to look names up: without dashes and spaces, in simplified characters.

    A name found in them is only a candidate: ``surface_forms.agreement`` decides.

    Returns:
        The ids are code points; each text ends with the character 0, which is in no key.
    """
    joined = "\0".join([*texts, ""])
    lengths = np.fromiter(map(len, texts), np.int64, len(texts)) + 1

    def of_runs(spans: list[tuple[int, int]]) -> list[Tokens]:
        loosened = Filled(_loosened_run)
        return [loosened[joined[start:end]] for start, end in spans]

    codes = _loose(code_points(joined))
    codes[lengths.cumsum() - 1] = 0
    return tokenize_by_table(lengths, codes, of_runs)


def _loosened_run(run: str) -> Tokens:
    normal = normalise(run.replace(ACUTE, "'"))
    codes = [ord(character) for character in _loosened(normal.text)]
    kept = [i for i, code in enumerate(codes) if code != ord(DROPPED)]
    return Tokens(*([values[i] for i in kept] for values in (codes, normal.starts, normal.ends)))


def loose_key(name: str) -> str:
    """Return the key under which a name is looked up: 'IL-6 受體' → 'il6受体'."""
    fast = name.translate(loose_code)
    if SLOW in fast:
        fast = _loosened(normalise(name.replace(ACUTE, "'")).text)
    return fast.replace(DROPPED, "")


def _loosened(normal: str) -> str:
    """Turn a normalised text into its form for look-ups; marks without a base letter stay."""
    fast = normal.translate(loose_code)
    if SLOW not in fast:
        return fast
    return "".join(c if loose == SLOW else loose for c, loose in zip(normal, fast, strict=True))


_converter = cache(partial(OpenCC, "t2s"))  # made when it is needed


@lru_cache(maxsize=65_536)
def simplified(character: str) -> str:
    """Return a character's simplified form, itself if it has no one of its own."""
    if "\ud800" <= character <= "\udfff":
        return character  # half a character
    found = _converter().convert(character)
    return found if len(found) == 1 else character


def _single_spaced(normal: NormalisedText) -> NormalisedText:
    """Replace several spaces by one, which then stands for all their characters."""
    text = normal.text
    if "  " not in text:
        return normal
    kept = [i for i in range(len(text)) if text[max(i - 1, 0) : i + 1] != "  "]
    lasts = [following - 1 for following in [*kept[1:], len(text)]]
    return NormalisedText(
        "".join(text[i] for i in kept),
        [normal.starts[i] for i in kept],
        [normal.ends[i] for i in lasts],
    )


@lru_cache(maxsize=65_536)
def _fold(chunk: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", chunk).casefold())
    return "".join(" " if c.isspace() else c for c in folded)


class Filled(dict[K, V]):
    """A function as a table, filled as its arguments are met."""

    def __init__(self, function: Callable[[K], V]) -> None:
        self.function = function

    def __missing__(self, key: K) -> V:
        value = self[key] = self.function(key)
        return value


def _one_to_one(code: int) -> str:
    """Return the single normalised character of a code point, or SLOW."""
    folded = _fold(chr(code))
    return SLOW if len(folded) != 1 or extends(chr(code)) else folded


def _loose_code(code: int) -> str:
    """Return the single character by which a code point is looked up, SLOW, or DROPPED."""
    character = "'" if chr(code) in APOSTROPHES else one_to_one[code]
    if character == SLOW:
        return SLOW
    if character == " " or character in DASHES or chr(code) in DASHES:
        return DROPPED
    if character < " " or character == DROPPED:
        return "\x02"  # what means something in an index
    return simplified(character)


@lru_cache(maxsize=65_536)
def is_word_character(character: str) -> bool:
    """Say whether a name that begins or ends with this character needs a word boundary.

    Letters, digits and marks of scripts with spaces between words need one.
    """
    counts = character == "_" or unicodedata.category(character)[0] in "LNM"
    return counts and not unicodedata.name(character, "").startswith(_NO_SPACES)


def _loose_values(codes: list[int]) -> list[int]:
    loose = [loose_code[code] for code in codes]
    slow = [EXTENDS if extends(chr(code)) else IN_RUN for code in codes]
    return [
        NO_TOKEN if character == DROPPED else run if character == SLOW else ord(character)
        for character, run in zip(loose, slow, strict=True)
    ]


one_to_one = Filled(_one_to_one)
loose_code = Filled(_loose_code)
_loose = CharacterTable(_loose_values)
word_characters = CharacterTable(lambda codes: [is_word_character(chr(code)) for code in codes])
