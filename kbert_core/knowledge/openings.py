"""Openings: where in a text a name may begin, by a table of what two characters keys begin with."""

import mmap
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint32]
_MULTIPLIER = np.uint32(40503)  # odd, so that slots differ where first characters do
_SLOTS = 8  # for each opening, at least
_LEAST, _MOST = 1 << 10, 1 << 24  # slots


class Openings:
    """A table with a slot for every opening; two may share one.

    Args:
        table: (S,) S a power of two, True where there is an opening.
    """

    def __init__(self, table: NDArray[np.bool_]) -> None:
        self.table = table
        self._mask = np.uint32(len(table) - 1)

    @classmethod
    def of(cls, keys: Iterable[str]) -> "Openings":
        """Make the table of keys' first two characters; of a single one, the one."""
        openings = {key[:2] for key in keys}
        slots = _LEAST
        while slots < min(_SLOTS * len(openings), _MOST):
            slots *= 2
        made = cls(np.zeros(slots, np.bool_))
        pairs = "".join(opening.ljust(2, "\0") for opening in openings)
        one, two = _codes(pairs).reshape(-1, 2).T
        made.table[(one * _MULTIPLIER + two) & made._mask] = True
        return made

    @classmethod
    def at_end_of(cls, path: Path, slots: int) -> "Openings":
        """Map the last bytes of a file, a table of so many slots.

        Raises:
            OSError: it can't be read.
            ValueError: it is shorter.
        """
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return cls(np.frombuffer(mapped, np.bool_, slots, len(mapped) - slots))

    def may_begin(self, codes: Codes) -> NDArray[np.bool_]:
        """Say for every place of a text whether a key may begin there.

        Args:
            codes: (M,) code points.

        Returns:
            (M,) bool; a few too many are True.
        """
        first = codes * _MULTIPLIER
        both = first.copy()
        both[:-1] += codes[1:]
        found = self.table[both & self._mask]
        found |= self.table[first & self._mask]
        return found

    def places(self, text: str) -> list[int]:
        """Return where in a text a key may begin, in order."""
        found: list[int] = np.flatnonzero(self.may_begin(_codes(text))).tolist()
        return found


def _codes(text: str) -> Codes:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
