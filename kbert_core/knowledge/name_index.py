"""NameIndex: keys of names, for finding those that a text goes on with."""

from collections.abc import Iterable, Iterator
from functools import cached_property

import marisa_trie
import numpy as np
from numpy.typing import NDArray

_OPENING = 4  # characters that decide, in an array, whether a name may begin
_MULTIPLIER = np.uint32(0x9E3779B1)


class NameIndex:
    """Keys in a trie, and two quick looks at where in a text one may begin.

    Args:
        forms: keys (see ``names.loose_key``), each with an entity that it may
            mean; a key may come with several, one after the other.
    """

    def __init__(self, forms: Iterable[tuple[str, str]]) -> None:
        meant: dict[str, dict[str, None]] = {}
        for key, entity in forms:
            meant.setdefault(key, {})[entity] = None
        self._meant = {k: tuple(found) for k, found in meant.items() if list(found) != [k]}
        self.trie = marisa_trie.Trie(meant)
        self.openings = {name[:2] for name in self.trie}
        self.single = {name for name in self.openings if len(name) == 1}
        self.longest = max(map(len, self.trie), default=0)

    def __bool__(self) -> bool:
        return bool(self.openings)

    def at(self, text: str, start: int) -> list[str]:
        """Return the keys that stand in a text from a place on, the shortest first."""
        return self.trie.prefixes(text[start : start + self.longest])

    def meant_by(self, key: str) -> tuple[str, ...]:
        """Return the entities that a key may mean, in the order in which they came."""
        return self._meant.get(key) or ((key,) if key in self.trie else ())

    def places(self, text: str) -> list[int]:
        """Return where in a text a key may begin, in order."""
        openings = self.openings
        found = [i for i in range(len(text)) if text[i : i + 2] in openings]
        if self.single:
            found += [i for i, character in enumerate(text) if character in self.single]
            found = sorted(set(found))
        return found

    def may_begin(self, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Say the same for every place of a long text at once; a few too many are True.

        Args:
            codes: (M,) code points.
        """
        found = np.zeros(len(codes), bool)
        for size, hashed in enumerate(_hashes(codes), start=1):
            if size in self._hashed:
                table, high, low = self._hashed[size]
                places = np.flatnonzero(table[hashed >> high])
                found[places[table[hashed[places] & low]]] = True
        return found

    @cached_property
    def _hashed(self) -> dict[int, tuple[NDArray[np.bool_], np.uint32, np.uint32]]:
        """By how many characters: a Bloom filter of names' first characters.

        Its two places for a hash are the hash's high bits and its low bits.
        """
        openings: dict[int, set[str]] = {}
        for name in self.trie:
            openings.setdefault(min(len(name), _OPENING), set()).add(name[:_OPENING])
        tables = {}
        for size, texts in openings.items():
            bits = min((64 * len(texts)).bit_length(), 28)
            high, low = np.uint32(32 - bits), np.uint32((1 << bits) - 1)
            table = np.zeros(1 << bits, bool)
            codes = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
            hashed = list(_hashes(codes))[size - 1][::size]
            table[hashed >> high] = table[hashed & low] = True
            tables[size] = table, high, low
        return tables


def _hashes(codes: NDArray[np.uint32]) -> Iterator[NDArray[np.uint32]]:
    """Number every 1, 2, ... characters that follow each other."""
    mixed = np.zeros(len(codes) + 1, np.uint32)
    for size in range(1, min(_OPENING, len(codes)) + 1):
        mixed = (mixed[:-1] + codes[size - 1 :]) * _MULTIPLIER
        mixed ^= mixed >> np.uint32(15)
        yield mixed
