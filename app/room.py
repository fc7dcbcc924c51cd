"""Room for what visitors bring: graphs of their own take memory, each visit's and all together's.

What was brought is known by a weak reference, so that room is free again as soon as
a visit ends, however it ends. Sizes are estimates.
"""

import os
import threading
import weakref
from dataclasses import dataclass
from functools import lru_cache

from app.texts import t
from kbert_core import KBertError

MEGABYTES = "KBERT_VISITORS_MB"  # the environment's word for the room of all visits together
DEFAULT = 2048
SHARE = 4  # one visit may take this part of it


class RoomError(KBertError):
    """There is no room for what a visitor brings, or KBERT_VISITORS_MB is no number."""


@dataclass(frozen=True, slots=True)
class _Guest:
    visitor: str
    size: int


class Room:
    """So many bytes for all visits together, and a part of them for each."""

    def __init__(self, most: int) -> None:
        self.most, self.most_each = most, most // SHARE
        self._guests: dict[int, _Guest] = {}
        self._lock = threading.RLock()  # a finalizer may run while it is held

    def take(self, visitor: str, thing: object, size: int, name: str) -> None:
        """Count a thing as a visitor's as long as it is there.

        Args:
            visitor: whose it is.
            thing: can be weakly referred to; once is enough.
            size: in bytes.
            name: of the thing, for the message.

        Raises:
            RoomError: there is no room for it.
        """
        with self._lock:
            if id(thing) in self._guests:
                return
            own = sum(guest.size for guest in self._all() if guest.visitor == visitor)
            if own + size > self.most_each:
                raise RoomError(
                    t("room.own", name=name, size=_mb(size), own=_mb(own), most=_mb(self.most_each))
                )
            if self.taken() + size > self.most:
                raise RoomError(t("room.all", name=name, size=_mb(size)))
            self._guests[id(thing)] = _Guest(visitor, size)
            weakref.finalize(thing, self._guests.pop, id(thing), None).atexit = False

    def taken(self) -> int:
        """How many bytes are taken now."""
        with self._lock:
            return sum(guest.size for guest in self._all())

    def _all(self) -> list[_Guest]:
        return list(self._guests.values())  # a copy: a finalizer may take one out at any moment


def _mb(size: int) -> str:
    return f"{max(1, round(size / 2**20)):,}"


@lru_cache(maxsize=1)
def room() -> Room:
    """The one room of this process: KBERT_VISITORS_MB, else two gigabytes.

    Raises:
        RoomError: KBERT_VISITORS_MB is no number from 1.
    """
    said = os.environ.get(MEGABYTES, "").strip() or str(DEFAULT)
    if not said.isascii() or not said.isdecimal() or int(said) < 1:
        raise RoomError(t("room.number", value=said))
    return Room(int(said) << 20)
