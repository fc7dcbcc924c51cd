"""AddedNames: keys of names that came by edits since an index was built, as a value."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from immutables import Map
from numpy.typing import NDArray

from kbert_core.knowledge.name_index import NameIndex

_OPENING = 2  # characters that names are gathered by


class AddedNames:
    """A few thousand keys; a change makes a new value and costs the change alone."""

    def __init__(
        self,
        names: Map[str, tuple[str, ...]] = Map(),
        lengths: Map[str, tuple[int, ...]] = Map(),
        *,
        single: bool = False,
    ) -> None:
        self._names = names  # key → the entities it may mean
        self._single = single  # whether one may have a single character
        self._lengths = lengths  # by the first characters; may tell of names no longer there

    def __bool__(self) -> bool:
        return bool(self._names)

    def changed(
        self, added: Iterable[tuple[str, str]], removed: Iterable[tuple[str, str]]
    ) -> "AddedNames":
        """Return these keys with some more and without some, each with an entity."""
        names, lengths = self._names.mutate(), self._lengths.mutate()
        for name, entity in removed:
            left = tuple(other for other in names.get(name, ()) if other != entity)
            if left:
                names[name] = left
            else:
                names.pop(name, None)
        added = list(added)
        for name, entity in added:
            names[name] = tuple(dict.fromkeys((*names.get(name, ()), entity)))
            found = lengths.get(name[:_OPENING], ())
            if len(name) not in found:
                lengths[name[:_OPENING]] = tuple(sorted({*found, len(name)}))
        single = self._single or any(len(name) == 1 for name, _ in added)
        return AddedNames(names.finish(), lengths.finish(), single=single)

    def at(self, text: str, start: int) -> list[str]:
        """Return the keys that stand in a text from a place on, the shortest first."""
        lengths = self._lengths.get(text[start : start + _OPENING], ())
        if text[start] in self._lengths:
            lengths = (1, *lengths)
        found = (text[start : start + length] for length in lengths)
        return [name for name in found if name in self._names]

    def meant_by(self, key: str) -> tuple[str, ...]:
        """Return the entities that a key may mean."""
        return self._names.get(key, ())

    def places(self, text: str) -> list[int]:
        """Return where in a text a key may begin, in order."""
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
        return NameIndex((key, entity) for key, meant in self._names.items() for entity in meant)
