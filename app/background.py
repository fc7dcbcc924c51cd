"""A long run in a thread of its own: results as they come, progress, stop, an error that is kept.

How a page uses it. The page makes a generator that yields a result a step, and
starts it where the visitor asks for it:

    def found():                       # pure: no streamlit, no texts of the page
        for done, triple in enumerate(triples, start=1):
            yield effect_of(triple)
            yield Progress(done, len(triples))      # optional

    if st.button(...):
        ss["flips.run"] = Run.start(found, visitor=state.visitor())

    if run := ss.get("flips.run"):
        follow(run, draw_results, key="flips")      # app/app_pages/long_run.py

``follow`` looks at the run after 0.1, 0.2, 0.4 and then every 0.8 seconds, in a
fragment; ``draw_results`` gets what :meth:`Run.look` returns. A run that nobody
looks at for ``PATIENCE``
seconds ends by itself: its visitor has closed the page or gone elsewhere in the
app. One whose inputs have changed is stopped by the page: ``run.stop()``.

Where each result says all that those before it said, as those of explanations do,
start the run with ``growing=True``: then only the newest is kept, and memory doesn't
grow with the square of their number.

Whatever the generator needs from the session is handed to it before; the thread has no session,
and no language of its visitor. At most ``PLACES`` steps run at once, over all visitors, so a step
should take a tenth to half a second: that is as long as others wait, and as long as a stop takes.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from kbert_core import KBertError
from kbert_lab.lab.texts import t

T = TypeVar("T")

MOST_EACH = 2  # runs of one visitor; the oldest ends where a third begins
MOST_RUNS = 64  # of all visitors
PATIENCE = 180.0  # seconds without a look; a hidden tab may look only once a minute
PLACES = max(1, (os.cpu_count() or 1) // 2)  # for steps

_places = threading.BoundedSemaphore(PLACES)


_END: Any = object()


class BusyError(KBertError):
    """There are as many long runs as this machine takes."""


class State(StrEnum):
    """What a run is doing, or how it ended."""

    GOING = "going"
    DONE = "done"
    STOPPED = "stopped"  # by the visitor or the page, or nobody looked at it any more
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """Yielded by a generator beside its results."""

    done: int  # steps, in whatever unit the generator counts
    total: int | None = None  # of them, where it is known


@dataclass(frozen=True, slots=True)
class Look(Generic[T]):
    """A run as it is at one moment."""

    state: State  # what it is doing, or how it ended
    # all so far, in the order they came; of a growing run the newest of each type
    results: tuple[T, ...]
    progress: Progress  # as last told; until then the number of results
    error: Exception | None = None  # why it failed

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        return self.state is not State.GOING


class Run(Generic[T]):
    """A generator of results that is run in the background; see the module's text."""

    def __init__(
        self, make: Callable[[], Iterable[T | Progress]], visitor: str, growing: bool
    ) -> None:
        """Prepare a run; use :meth:`start`."""
        self.visitor = visitor
        self._make = make
        self._growing = growing
        self._lock = threading.Lock()
        self._results: list[T] = []
        self._progress: Progress | None = None
        self._state = State.GOING
        self._error: Exception | None = None
        self._looked = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="long run", daemon=True)

    @classmethod
    def start(
        cls, make: Callable[[], Iterable[T | Progress]], *, visitor: str, growing: bool = False
    ) -> "Run[T]":
        """Run a generator in the background.

        Args:
            make: called in the thread; what it returns is read to its end.
            visitor: whose run it is. Of one visitor's runs the oldest is stopped
                where there would be more than ``MOST_EACH``.
            growing: whether each result says all that those of its type before
                it did, so that these are let go.

        Raises:
            BusyError: too many visitors have one.
        """
        run = cls(make, visitor, growing)
        with _all:
            own = [other for other in _going if other.visitor == visitor]
            for other in own[: len(own) + 1 - MOST_EACH]:
                other.stop()
                _going.remove(other)
            if len(_going) >= MOST_RUNS:
                raise BusyError(
                    t("Many others have long runs here just now. Try again in a minute.")
                )
            _going.append(run)
        run._thread.start()
        return run

    def look(self) -> Look[T]:
        """See how it stands. A run that isn't looked at for long ends."""
        self._looked = time.monotonic()
        with self._lock:
            results = tuple(self._results)
            return Look(self._state, results, self._progress or Progress(len(results)), self._error)

    def stop(self) -> None:
        """Have it end after the step it is in; what was found stays."""
        self._end(State.STOPPED)

    def join(self, seconds: float | None = None) -> None:
        """Wait until its thread has ended."""
        self._thread.join(seconds)

    def _work(self) -> None:
        steps: Iterator[T | Progress] = iter(())
        try:
            steps = iter(self._make())
            while self._goes_on():
                if not _places.acquire(timeout=0.2):
                    continue
                try:
                    item = next(steps, _END)
                finally:
                    _places.release()
                time.sleep(0.001)  # so that whoever waits for the place gets it
                if item is _END:
                    self._end(State.DONE)
                else:
                    self._take(item)
        except Exception as error:  # kept, and raised again by the page that looks
            self._error = error
        finally:
            self._end(State.FAILED)  # unless it has ended otherwise
            with _all:
                if self in _going:
                    _going.remove(self)
            self._make = tuple  # let go of what the generator held

    def _goes_on(self) -> bool:
        if time.monotonic() - self._looked > PATIENCE:
            self.stop()
        return self._state is State.GOING

    def _take(self, item: T | Progress) -> None:
        with self._lock:
            if isinstance(item, Progress):
                self._progress = item
                return
            if self._growing:
                self._results = [old for old in self._results if type(old) is not type(item)]
            self._results.append(item)

    def _end(self, state: State) -> None:
        with self._lock:
            if self._state is State.GOING:
                self._state = state


_all = threading.Lock()
_going: deque[Run] = deque()  # the oldest first
