"""How names are compared: NFKC, case folding, one space for any white space.

Every normalised character remembers which characters of the given text it
came from, so that what is found in the normalised text can be pointed at in
the text as given.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_NO_SPACES = (  # scripts written without spaces between words: names match anywhere
    "CJK ",
    "IDEOGRAPHIC ",
    "HIRAGANA ",
    "KATAKANA",
    "THAI ",
    "LAO ",
    "KHMER ",
    "MYANMAR ",
    "BOPOMOFO ",
    "HANGUL ",
    "TIBETAN ",
    "YI ",
)
SLOW = "\ue000"  # marks, in the fast table, a character that needs the slow way


@dataclass(frozen=True, slots=True)
class NormalisedText:
    """A text as names are compared in it, with the way back.

    Attributes:
        text: M normalised characters.
        starts, ends: per normalised character the span, in characters of the
            text as given, that it came from; end exclusive.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def normalise(text: str) -> NormalisedText:
    """Normalise a text for matching and keep an offset for every character."""
    fast = text.translate(one_to_one)
    if SLOW not in fast and "  " not in fast:
        return NormalisedText(fast, range(len(text)), range(1, len(text) + 1))
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in _chunks(text):
        for character in _fold(text[start:end]):
            if character == " " and characters and characters[-1] == " ":
                ends[-1] = end
                continue
            characters.append(character)
            starts.append(start)
            ends.append(end)
    return NormalisedText("".join(characters), starts, ends)


def normalise_name(name: str) -> str:
    """Return the key under which a name is found: 'Tim  Cook' → 'tim cook'."""
    return normalise(name).text.strip()


def is_word_character(character: str) -> bool:
    """Say whether a name that begins or ends here needs a word boundary.

    True for letters, digits, marks and the underscore of scripts that put
    spaces between words; False for Chinese characters and their like.
    """
    return _word[character]


def _chunks(text: str) -> list[tuple[int, int]]:
    """Cut a text where normalising the parts equals normalising the whole."""
    cuts = [i for i, c in enumerate(text) if i == 0 or not _extends(c)]
    return list(zip(cuts, [*cuts[1:], len(text)], strict=True))


@lru_cache(maxsize=65_536)
def _extends(character: str) -> bool:
    """Say whether a character may compose with the one before it."""
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"


@lru_cache(maxsize=65_536)
def _fold(chunk: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", chunk).casefold())
    return "".join(" " if c.isspace() else c for c in folded)


class _OneToOne(dict[int, str]):
    """Code point → its one normalised character, or SLOW; filled as met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = _fold(character)
        slow = len(folded) != 1 or _extends(character)
        self[code] = SLOW if slow else folded
        return self[code]


class _Word(dict[str, bool]):
    def __missing__(self, character: str) -> bool:
        counts = character == "_" or unicodedata.category(character)[0] in "LNM"
        self[character] = counts and not unicodedata.name(character, "").startswith(_NO_SPACES)
        return self[character]


one_to_one = _OneToOne()
_word = _Word()
