"""NameIndex: entity names, for finding those that a text goes on with."""

from collections.abc import Iterable
from functools import cached_property

import marisa_trie
import numpy as np
from numpy.typing import NDArray

_OPENING = 3  # characters that decide, in an array, whether a name may begin
_MULTIPLIERS = (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35)


class NameIndex:
    """Names in a trie, and two quick looks at where in a text one may begin.

    Args:
        names: as names are compared (see ``names.normalise_name``).
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.trie = marisa_trie.Trie(names)
        self.openings = {name[:2] for name in self.trie}
        self.single = {name for name in self.openings if len(name) == 1}
        self.longest = max(map(len, self.trie), default=0)

    def __bool__(self) -> bool:
        return bool(self.openings)

    def at(self, text: str, start: int) -> list[str]:
        """Return the names that stand in a text from a place on, the shortest first."""
        return self.trie.prefixes(text[start : start + self.longest])

    def places(self, text: str) -> list[int]:
        """Return where in a text a name may begin, in order."""
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
        table, sizes = self._hashed
        found = np.zeros(len(codes), bool)
        for size in sizes:
            found[: len(codes) - size + 1] |= table[_hash(codes, size) & (len(table) - 1)]
        return found

    @cached_property
    def _hashed(self) -> tuple[NDArray[np.bool_], list[int]]:
        """Which hashes of names' first characters there are, and of how many characters."""
        openings: dict[int, set[str]] = {}
        for name in self.trie:
            openings.setdefault(min(len(name), _OPENING), set()).add(name[:_OPENING])
        count = sum(map(len, openings.values()))
        table = np.zeros(1 << (32 * count + 1).bit_length(), bool)
        for size, texts in openings.items():
            codes = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
            table[_hash(codes, size)[::size] & (len(table) - 1)] = True
        return table, sorted(openings)


def _hash(codes: NDArray[np.uint32], size: int) -> NDArray[np.uint32]:
    """(M - size + 1,) a number for every ``size`` characters that follow each other."""
    count = len(codes) - size + 1
    mixed = np.zeros(max(count, 0), np.uint32)
    for shift in range(size if count > 0 else 0):
        mixed += codes[shift : shift + count] * np.uint32(_MULTIPLIERS[shift])
    return mixed ^ (mixed >> np.uint32(15))
