"""Mentions in many texts at once: the same as ``find_mentions``, several times as fast.

The texts are joined and normalised by table, and every place where a name may
begin is found in a few array operations; Python looks at those places only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Known, read_at
from kbert_core.knowledge.names import DROPPED, SLOW, is_word_character, loose_code, loosen
from kbert_core.knowledge.surface_forms import ALL_RULES, NameRules, plural_end

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
        entities: per mention every entity that the name may mean.
    """

    offsets: Ints
    rows: Ints
    starts: Ints
    ends: Ints
    entities: list[tuple[str, ...]]


def scan(texts: Sequence[str], graph: KnowledgeGraph, rules: NameRules = ALL_RULES) -> Scan:
    """Find the entities that many texts name: leftmost-longest in each.

    Args:
        texts: as given.
        graph: whose entities are looked for.
        rules: how a name may differ from the graph's.
    """
    given = BORDER.join([*texts, ""])
    normal = _Loose.of(texts)
    places, spans, entities = _leftmost_longest(normal, given, graph, rules)
    return Scan(normal.offsets, normal.owner[places], spans[0], spans[1], entities)


@dataclass(frozen=True)
class _Loose:
    """Texts as names are looked up in them, joined: K characters.

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
    def of(cls, texts: Sequence[str]) -> "_Loose":
        offsets, owner = _places(texts)
        codes = _loose(_joined(texts))
        slow = {row: loosen(texts[row]) for row in np.unique(owner[codes == ord(SLOW)]).tolist()}
        starts = np.arange(len(codes))
        if slow:
            texts = [slow[row].text if row in slow else text for row, text in enumerate(texts)]
            begins, owner = _places(texts)
            done = np.zeros(len(offsets), bool)
            done[list(slow)] = True
            codes = _joined(texts)
            codes = np.where(done[owner], codes, _loose(codes))
            starts = np.arange(len(codes)) + (offsets - begins)[owner]
        ends = starts + 1
        for row, loose in slow.items():
            own = slice(begins[row], begins[row] + len(loose.text))
            starts[own] = offsets[row] + np.asarray(loose.starts, np.int64)
            ends[own] = offsets[row] + np.asarray(loose.ends, np.int64)
        kept = codes != ord(DROPPED)
        codes, owner, starts, ends = codes[kept], owner[kept], starts[kept], ends[kept]
        limits = np.searchsorted(owner, np.arange(len(offsets)), "right") - 1
        starts[limits] = ends[limits] = -1
        return cls(offsets, codes, owner, limits, starts, ends)


def _leftmost_longest(
    normal: _Loose, given: str, graph: KnowledgeGraph, rules: NameRules
) -> tuple[Ints, Ints, list[tuple[str, ...]]]:
    """Look at the places where names may begin: those that do stand alone there.

    Returns:
        (M,) the places, (2, M) starts and ends in the texts as given, and the entities.
    """
    codes, starts, ends = normal.codes, normal.starts, normal.ends
    text = codes.tobytes().decode("utf-32-le", "replace")
    word = _word(codes)
    cut = np.zeros(len(codes) + 1, bool)  # a border here would cut a word or a character
    cut[1:-1] = word[1:] & word[:-1] & (ends[:-1] == starts[1:])
    cut[1:-1] |= starts[1:] == starts[:-1]
    places = np.flatnonzero(graph.may_begin(codes) & ~cut[:-1])
    inside = cut.tobytes()
    begins: list[int] = []
    stops: list[int] = []
    entities: list[tuple[str, ...]] = []
    free = 0  # in characters as given
    known: Known = {}
    rows: list[int] = []
    for place, start, limit in zip(
        places.tolist(),
        starts[places].tolist(),
        normal.limits[normal.owner[places]].tolist(),
        strict=True,
    ):
        if start < free:
            continue
        for key in reversed(graph.names_at(text, place)):
            after = place + len(key)
            if after > limit:
                continue
            end: int | None = int(ends[after - 1])
            if inside[after]:
                end = plural_end(given, int(ends[after - 1])) if rules.plural else None
            if end is None:
                continue
            span, found = read_at(graph, key, given, (start, end), rules, known)
            if found and span[0] >= free:
                begins.append(span[0])
                stops.append(span[1])
                rows.append(place)
                entities.append(tuple(entity for entity, _ in found))
                free = span[1]
                break
    return np.array(rows, np.int64), np.array([begins, stops], np.int64), entities


def _joined(texts: Sequence[str]) -> Codes:
    joined = BORDER.join([*texts, ""]).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(joined, np.uint32)


def _places(texts: Sequence[str]) -> tuple[Ints, Ints]:
    """Where each text begins in the joined ones, and whose each character is."""
    sizes = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
    return np.cumsum(sizes) - sizes, np.repeat(np.arange(len(texts)), sizes)


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


def _loose_code(code: int) -> int:
    surrogate = 0xD800 <= code < 0xE000
    return ord(SLOW if surrogate else loose_code[code])


_loose = _PerCharacter(_loose_code)
_word = _PerCharacter(lambda code: int(is_word_character(chr(code))))
