"""AddedNames: names that came by edits since an index was built, as a value."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from immutables import Map
from numpy.typing import NDArray

from kbert_core.knowledge.name_index import NameIndex

_OPENING = 2  # characters that names are gathered by


class AddedNames:
    """A few thousand names; a change makes a new value and costs the change alone."""

    def __init__(
        self,
        names: Map[str, None] = Map(),
        lengths: Map[str, tuple[int, ...]] = Map(),
        *,
        single: bool = False,
    ) -> None:
        self._names = names
        self._single = single  # whether one may have a single character
        self._lengths = lengths  # by the first characters; may tell of names no longer there

    def __bool__(self) -> bool:
        return bool(self._names)

    def changed(self, added: Iterable[str], removed: Iterable[str]) -> "AddedNames":
        """Return these names with some more and without some."""
        names, lengths = self._names.mutate(), self._lengths.mutate()
        for name in removed:
            names.pop(name, None)
        added = list(added)
        for name in added:
            names[name] = None
            found = lengths.get(name[:_OPENING], ())
            if len(name) not in found:
                lengths[name[:_OPENING]] = tuple(sorted({*found, len(name)}))
        single = self._single or any(len(name) == 1 for name in added)
        return AddedNames(names.finish(), lengths.finish(), single=single)

    def at(self, text: str, start: int) -> list[str]:
        """Return the names that stand in a text from a place on, the shortest first."""
        lengths = self._lengths.get(text[start : start + _OPENING], ())
        if text[start] in self._lengths:
            lengths = (1, *lengths)
        found = (text[start : start + length] for length in lengths)
        return [name for name in found if name in self._names]

    def places(self, text: str) -> list[int]:
        """Return where in a text a name may begin, in order."""
        lengths = self._lengths
        found = [i for i in range(len(text)) if text[i : i + _OPENING] in lengths]
        if self._single:
            found = sorted({*found, *(i for i, c in enumerate(text) if c in lengths)})
        return found

    def may_begin(self, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Say the same for every place of a long text: (M,) code points, (M,) bool."""
        return self._index.may_begin(codes)

    @cached_property
    def _index(self) -> NameIndex:
        return NameIndex(self._names)
