"""Long runs that a page keeps in the session, under a name and what they were begun for."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import streamlit as st

from app import state
from app.background import BusyError, Progress, Run, State
from app.texts import t
from app.view_models.html import markdown

T = TypeVar("T")
ss = st.session_state


def begin(
    name: str,
    key: Hashable,
    make: Callable[[], Iterable[T | Progress]],
    *,
    growing: bool = False,
) -> Run[T] | None:
    """Start a run in the place of what was kept under the name, which is stopped.

    Args:
        name: of the session's state.
        key: what it is begun for.
        make, growing: see :meth:`Run.start`.

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
    return run


def kept(name: str, key: Hashable) -> Run[Any] | None:
    """The run under a name, where it was begun for the same; any other is stopped."""
    begun_for, run = ss.get(name, (None, None))
    if run is None or begun_for == key:
        return run
    run.stop()
    return None


def forget(name: str) -> None:
    """Stop what is kept under a name, and let go of it."""
    _, run = ss.pop(name, (None, None))
    if run is not None:
        run.stop()


def offer_again(name: str, run: Run[Any]) -> None:
    """A button that begins anew where a run was stopped, or ended as nobody looked at it."""
    if run.look().state in (State.STOPPED, State.LEFT):
        st.button(
            t("effects.again"),
            key=f"{name}.again",
            icon=":material/refresh:",
            on_click=forget,
            args=(name,),
        )
