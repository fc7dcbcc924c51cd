"""Turns: long runs of many visitors share few places, step by step, so that nobody waits for all.

A long run (a search, the effects of many triples, a whole file) asks for a turn
before each of its steps and gives it back after it:

    for variant in variants:
        with turns().turn(visitor):
            scores.append(score(variant))

At most ``limit`` steps run at once, over all visitors. Whoever had a turn stands
behind those who wait, and several runs of one visitor count as one, so that ten
runs of one and one run of another get as much each. A step should take a tenth to
half a second: that is as long as everyone else waits for it.

Short work that a visitor looks at the page for goes first and never queues:

    with turns().first():
        trace = pipeline(sentence)

While there is any, no long step begins, for a second at most, so that long runs go
on however many visitors type.

Work that can't be cut into steps, such as reading a large upload, is done by one
visitor at a time:

    with alone():
        graph = read(upload)

Pages use :class:`app.background.Run`, which does all this in a thread.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from app.texts import t
from kbert_core import KBertError

LIMIT = "KBERT_LONG_RUNS"  # the environment's word for how many steps run at once
_LOOK = 0.2  # seconds after which one who waits asks again whether to give up
_YIELD = 1.0  # seconds that a step waits for short work


class GaveUp(Exception):
    """A turn was no longer wanted before it began."""


class LimitError(KBertError):
    """KBERT_LONG_RUNS is no number of runs."""


@dataclass(eq=False, slots=True)
class _Ticket:
    name: str
    tag: int  # the smallest goes next
    number: int  # of its arrival, among equal tags
    since: float


class Turns:
    """A queue of steps, fair between names.

    Each name has a count of its own that starts at what the queue has reached and
    grows by one a turn; the smallest count goes next (start-time fair queueing).
    """

    def __init__(self, limit: int) -> None:
        """Let ``limit`` steps run at once.

        Raises:
            LimitError: the limit is less than one.
        """
        if limit < 1:
            raise LimitError(t("work.limit", value=limit))
        self.limit = limit
        self._changed = threading.Condition()
        self._waiting: list[_Ticket] = []
        self._running: Counter[str] = Counter()
        self._short = 0
        self._arrived = 0
        self._reached = 0  # the tag of the latest turn given
        self._last: dict[str, int] = {}  # name → its latest tag, while that is ahead

    @contextmanager
    def turn(self, name: str, *, give_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Wait for a turn, hold it for the body, and give it back whatever happens there.

        Turns don't nest: a body that asks for another may wait for itself.

        Args:
            name: whose turn; runs of one name share one place in the queue.
            give_up: asked now and then while waiting.

        Raises:
            GaveUp: the caller gave up before the turn began.
        """
        with self._changed:
            ticket = self._line_up(name)
            try:
                while not self._may_begin(ticket):
                    if give_up():
                        raise GaveUp
                    self._changed.wait(_LOOK)
                if give_up():
                    raise GaveUp
                self._reached = max(self._reached, ticket.tag)
                self._running[name] += 1
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._running[name] -= 1
                self._running += Counter()  # drop names at zero
                self._forget()
                self._changed.notify_all()

    @contextmanager
    def first(self) -> Iterator[None]:
        """Do short work that a visitor waits for, before any long step begins."""
        with self._changed:
            self._short += 1
        try:
            yield
        finally:
            with self._changed:
                self._short -= 1
                self._changed.notify_all()

    def waiting(self, name: str) -> int:
        """How many turns are before a name's next one; 0 where it isn't waiting."""
        with self._changed:
            line = [ticket.name for ticket in sorted(self._waiting, key=_order)]
            return line.index(name) + 1 if name in line else 0

    def running(self) -> int:
        """How many steps are running now."""
        with self._changed:
            return self._running.total()

    def _line_up(self, name: str) -> _Ticket:
        tag = max(self._reached, self._last.get(name, -1) + 1)
        self._last[name] = tag
        self._arrived += 1
        ticket = _Ticket(name, tag, self._arrived, time.monotonic())
        self._waiting.append(ticket)
        return ticket

    def _forget(self) -> None:
        """Let go of names that the queue has gone past, and of all where it is empty."""
        busy = bool(self._waiting or self._running)
        self._last = {n: tag for n, tag in self._last.items() if busy and tag >= self._reached}

    def _may_begin(self, ticket: _Ticket) -> bool:
        if self._running.total() >= self.limit or min(self._waiting, key=_order) is not ticket:
            return False
        return not self._short or time.monotonic() - ticket.since > _YIELD


def _order(ticket: _Ticket) -> tuple[int, int]:
    return ticket.tag, ticket.number


def places() -> int:
    """How many long steps run at once: KBERT_LONG_RUNS, else one for every two cores.

    Raises:
        LimitError: KBERT_LONG_RUNS is no number from 1.
    """
    said = os.environ.get(LIMIT, "").strip()
    if not said:
        return max(1, (os.cpu_count() or 1) // 2)
    if not said.isascii() or not said.isdecimal() or int(said) < 1:
        raise LimitError(t("work.limit", value=said))
    return int(said)


@lru_cache(maxsize=1)
def turns() -> Turns:
    """The one queue of this process."""
    return Turns(places())


@contextmanager
def alone() -> Iterator[None]:
    """Do what takes long and can't be cut into steps; one visitor at a time."""
    with _alone:
        yield


_alone = threading.RLock()
