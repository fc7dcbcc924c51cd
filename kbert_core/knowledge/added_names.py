"""AddedNames: keys of names that came by edits since an index was built, as a value."""

from collections.abc import Iterable, Mapping

import numpy as np
from immutables import Map
from numpy.typing import NDArray

from kbert_core.knowledge.openings import Openings
from kbert_core.knowledge.source import Names
from kbert_core.knowledge.triple import Triple

_OPENING = 2  # characters that names are gathered by
_RECENT = 256  # openings that are kept apart, so that a change doesn't copy them all


class AddedNames:
    """A few thousand keys; a change makes a new value and costs hardly more than the change."""

    def __init__(
        self,
        names: Map[str, tuple[str, ...]] = Map(),
        lengths: Map[str, tuple[int, ...]] = Map(),
        openings: frozenset[str] = frozenset(),
        recent: frozenset[str] = frozenset(),
        firsts: frozenset[str] = frozenset(),
    ) -> None:
        self._names = names  # key → the entities it may mean
        self._lengths = lengths  # by the first characters; may tell of names no longer there
        self._openings, self._recent = openings, recent  # these first characters
        self._firsts = firsts  # the first of each

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
        openings, recent = self._openings, self._recent | {name[:_OPENING] for name, _ in added}
        firsts = self._firsts
        if more := {name[0] for name, _ in added} - firsts:
            firsts |= more
        if len(recent) > _RECENT:
            openings, recent = openings | recent, frozenset()
        return AddedNames(names.finish(), lengths.finish(), openings, recent, firsts)

    def at(self, text: str, start: int) -> list[str]:
        """Return the keys that stand in a text from a place on, the shortest first."""
        if text[start] not in self._firsts:
            return []
        opening = text[start : start + _OPENING]
        lengths = self._lengths.get(opening, ())
        if len(opening) == _OPENING and opening[0] in self._lengths:
            lengths = (1, *lengths)
        if not lengths:
            return []
        found = (text[start : start + length] for length in lengths)
        return [name for name in found if name in self._names]

    def meant_by(self, key: str) -> tuple[str, ...]:
        """Return the entities that a key may mean."""
        return self._names.get(key, ())

    def places(self, text: str) -> list[int]:
        """Return where in a text a key may begin, in order."""
        firsts, openings, recent = self._firsts, self._openings, self._recent
        return [
            i
            for i, character in enumerate(text)
            if character in firsts
            and (
                (opening := text[i : i + _OPENING]) in openings
                or opening in recent
                or character in openings
                or character in recent
            )
        ]

    def may_begin(self, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Say the same for every place of a long text: (M,) code points, (M,) bool."""
        return Openings.of(self._openings | self._recent).may_begin(codes)


class EditedNames:
    """The names of a graph after edits; see ``Names``.

    Args:
        base: the names before.
        added: those that came.
        changed: by entity, all of its triples now; none: it is gone.
    """

    def __init__(
        self, base: Names, added: AddedNames, changed: Mapping[str, tuple[Triple, ...]]
    ) -> None:
        self._base, self._added, self._changed = base, added, changed

    def at(self, text: str, start: int) -> list[str]:
        """Return the keys that stand in a text from a place on, the shortest first."""
        known, added = self._base.at(text, start), self._added.at(text, start)
        return sorted({*known, *added}, key=len) if added else known

    def meant_by(self, key: str) -> tuple[str, ...]:
        """Return the entities that a key may mean."""
        known = [e for e in self._base.meant_by(key) if self._changed.get(e) != ()]
        return tuple(dict.fromkeys((*known, *self._added.meant_by(key))))

    def places(self, text: str) -> list[int]:
        """Return where in a text a key may begin, in order."""
        known, added = self._base.places(text), self._added.places(text)
        return sorted({*known, *added}) if added else known

    def may_begin(self, codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Say the same for every place of a long text: (M,) code points, (M,) bool."""
        known = self._base.may_begin(codes)
        return known | self._added.may_begin(codes) if self._added else known
