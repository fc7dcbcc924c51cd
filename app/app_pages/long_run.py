"""Long runs of pages: kept in the session under a name, shown as they go, stopped, begun again."""

import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

import streamlit as st

from app import state
from app.app_pages.parts import action
from app.background import BusyError, Look, Progress, Run, State
from kbert_core import KBertError
from kbert_lab.lab.texts import t
from kbert_lab.lab.views.html import markdown

T = TypeVar("T")
ss = st.session_state
PAUSE = 0.4  # seconds between two looks
AT_FIRST = 0.3  # seconds in which a short run ends before anything is drawn


def begin(
    name: str,
    key: Hashable,
    make: Callable[[], Iterable[T | Progress]],
    *,
    growing: bool = False,
    enough: Callable[[Look[T]], bool] = lambda look: False,
) -> Run[T] | None:
    """Start a run in the place of what was kept under the name, which is stopped.

    Args:
        name: of the session's state.
        key: what it is begun for.
        make, growing: see :meth:`Run.start`.
        enough: whether there is already something to draw, so that its end isn't waited for.

    Returns:
        None where too many others have one, which is said.
    """
    forget(name)
    try:
        run = Run.start(make, visitor=state.visitor(), growing=growing)
    except BusyError as error:
        st.warning(markdown(error), icon=":material/hourglass_empty:")
        return None
    ss[name] = (key, run)
    latest = time.monotonic() + AT_FIRST
    while not ((look := run.look()).ended or enough(look)) and time.monotonic() < latest:
        run.join(0.01)
    return run


def kept(name: str, key: Hashable) -> Run[Any] | None:
    """The run under a name, where it was begun for the same; any other is stopped."""
    begun_for, run = ss.get(name, (None, None))
    if run is None or begun_for == key:
        return run
    run.stop()
    return None


def with_progress(
    each: Iterable[T], progress: Callable[[T], tuple[int, int]]
) -> Iterator[T | Progress]:
    """Results that grow, before each how far it is: steps done, and in all."""
    for found in each:
        yield Progress(*progress(found))
        yield found


def forget(name: str) -> None:
    """Stop what is kept under a name, and let go of it."""
    _, run = ss.pop(name, (None, None))
    if run is not None:
        run.stop()


def follow(run: Run[T], draw: Callable[[Look[T]], None], *, key: str, again: bool = False) -> None:
    """Show a run until it has ended; the rest of the page stays still.

    Args:
        run: as started by the page.
        draw: shows its results, those there are so far.
        key: of the part, with which the keys of the widgets begin.
        again: whether a button begins it anew where it ended early: it is kept under ``key``.
    """
    going = not run.look().ended

    @st.fragment(run_every=PAUSE if going else None)
    def panel() -> None:
        now = run.look()
        if going and now.ended:
            st.rerun()  # without a clock
        if going:
            _progress(run, now, key)
        draw(now)
        _ended(now)
        early = again and now.state is State.STOPPED
        if early and st.button(t("Measure again"), key=f"{key}.again", icon=":material/refresh:"):
            forget(key)
            st.rerun()

    panel()


def _progress(run: Run[T], now: Look[T], key: str) -> None:
    """How far it is, and the stop."""
    done, total = now.progress.done, now.progress.total
    said = t("{done} of {total} done", done=f"{done:,}", total=f"{total or 0:,}")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width="stretch"):
            st.progress(
                min(1.0, done / total) if total else 0.0, said if total else t("Starting …")
            )
        action(t("Stop"), f"{key}.stop_run", run.stop, icon="stop_circle")


def _ended(now: Look[T]) -> None:
    """Say why there won't be more, unless all is done."""
    if now.state is State.STOPPED:
        st.caption(t("Stopped; what was found by then is shown."))
    elif isinstance(now.error, KBertError):
        st.error(markdown(now.error))
    elif now.error is not None:
        raise now.error
