"""Mentions in many texts at once: the same as ``find_mentions``, several times as fast.

The texts are joined and normalised by table, and every place where a name may
begin is found in a few array operations; Python looks at those places only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import SLOW, is_word_character, normalise, one_to_one

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]
BORDER = "\0"  # after every text; no part of a word


@dataclass(frozen=True)
class Scan:
    """M mentions in B texts, in reading order.

    Attributes:
        offsets: (B,) where each text begins among all characters; between two
            texts stands one border character.
        rows: (M,) which text a mention is in.
        starts, ends: (M,) in characters of the joined texts; end exclusive.
        entities: M keys in the graph.
    """

    offsets: Ints
    rows: Ints
    starts: Ints
    ends: Ints
    entities: list[str]


def scan(texts: Sequence[str], graph: KnowledgeGraph) -> Scan:
    """Find the entities that many texts name: leftmost-longest in each.

    Args:
        texts: as given.
        graph: whose heads are looked for.
    """
    normal = _Normalised.of(texts)
    places, names = _leftmost_longest(normal, graph)
    sizes = np.fromiter(map(len, names), np.int64, len(names))
    starts = normal.starts[places]
    ends = normal.ends[places + sizes - 1]
    return Scan(normal.offsets, normal.owner[places], starts, ends, names)


@dataclass(frozen=True)
class _Normalised:
    """Texts as names are compared in them, joined: K characters.

    Attributes:
        offsets: (B,) where each text as given begins.
        codes: (K,) code points.
        owner: (K,) which text a character is of.
        limits: (B,) where each text ends among the K.
        starts, ends: (K,) the span, in characters of the texts as given, that
            a character came from; -1 at borders.
    """

    offsets: Ints
    codes: Codes
    owner: Ints
    limits: Ints
    starts: Ints
    ends: Ints

    @classmethod
    def of(cls, texts: Sequence[str]) -> "_Normalised":
        offsets, owner = _places(texts)
        codes = _normal(_joined(texts))
        plain = np.ones(len(texts), bool)
        plain[owner[_needs_care(codes)]] = False
        slow = {row: normalise(texts[row]) for row in np.flatnonzero(~plain).tolist()}
        if slow:
            texts = [slow[row].text if row in slow else text for row, text in enumerate(texts)]
        begins, owner = _places(texts)
        if slow:
            codes = _joined(texts)
            codes = np.where(plain[owner], _normal(codes), codes)
        starts = np.arange(len(codes)) + (offsets - begins)[owner]
        ends = starts + 1
        for row, normal in slow.items():
            own = slice(begins[row], begins[row] + len(normal.text))
            starts[own] = offsets[row] + np.asarray(normal.starts, np.int64)
            ends[own] = offsets[row] + np.asarray(normal.ends, np.int64)
        limits = begins + np.fromiter(map(len, texts), np.int64, len(texts))
        starts[limits] = -1
        return cls(offsets, codes, owner, limits, starts, ends)


def _leftmost_longest(normal: _Normalised, graph: KnowledgeGraph) -> tuple[Ints, list[str]]:
    """Look at the places where names may begin: those that do stand alone there."""
    codes = normal.codes
    text = codes.tobytes().decode("utf-32-le", "replace")
    word = _word(codes)
    cut = np.zeros(len(codes) + 1, bool)  # a border here would cut a word or a character
    cut[1:-1] = (word[1:] & word[:-1]) | (normal.starts[1:] == normal.starts[:-1])
    places = np.flatnonzero(graph.may_begin(codes) & ~cut[:-1])
    inside = cut.tobytes()
    begins, names = [], []
    free = 0
    for place, limit in zip(
        places.tolist(), normal.limits[normal.owner[places]].tolist(), strict=True
    ):
        if place < free:
            continue
        for name in reversed(graph.names_at(text, place)):
            end = place + len(name)
            if end <= limit and not inside[end]:
                begins.append(place)
                names.append(name)
                free = end
                break
    return np.array(begins, np.int64), names


def _joined(texts: Sequence[str]) -> Codes:
    joined = BORDER.join([*texts, ""]).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(joined, np.uint32)


def _places(texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Where each text begins in the joined ones, and whose each character is."""
    sizes = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
    return np.cumsum(sizes) - sizes, np.repeat(np.arange(len(texts)), sizes)


def _needs_care(codes: Codes) -> NDArray[np.bool_]:
    """Say where normalising is more than replacing one character by one."""
    spaces = codes == ord(" ")
    slow = codes == ord(SLOW)
    slow[1:] |= spaces[1:] & spaces[:-1]
    return slow


class _PerCharacter:
    """A function of a character as a table, filled as characters are met."""

    PLANE = 0x10000  # characters beyond it are rare, and no table is kept for them
    UNKNOWN = 0xFFFFFFFF

    def __init__(self, function: Callable[[int], int]) -> None:
        self.function = function
        self.table = np.full(self.PLANE, self.UNKNOWN, np.uint32)

    def __call__(self, codes: Codes) -> Codes:
        result = self.table[np.minimum(codes, self.PLANE - 1)]
        beyond = codes >= self.PLANE
        result[beyond] = self.UNKNOWN
        unknown = result == self.UNKNOWN
        if unknown.any():
            met, which = np.unique(codes[unknown], return_inverse=True)
            values = np.array([self.function(code) for code in met.tolist()], np.uint32)
            result[unknown] = values[which]
            inside = met < self.PLANE
            self.table[met[inside]] = values[inside]
        return result


def _normal_code(code: int) -> int:
    surrogate = 0xD800 <= code < 0xE000
    return ord(SLOW if surrogate else one_to_one[code])


_normal = _PerCharacter(_normal_code)
_word = _PerCharacter(lambda code: int(is_word_character(chr(code))))
