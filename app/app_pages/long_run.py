"""A long run on a page: how far it is, a stop, and its results as they come."""

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from app.background import MOST_RESULTS, Look, Run, State
from app.texts import t
from app.view_models.html import markdown
from kbert_core import KBertError

T = TypeVar("T")
EVERY = 0.8  # seconds between two looks


def follow(run: Run[T], draw: Callable[[Look[T]], None], *, key: str) -> None:
    """Show a run until it has ended, looking at it now and then; the rest of the page stays still.

    Args:
        run: as started by the page.
        draw: shows its results, those there are so far.
        key: of the page, with which the keys of the widgets begin.
    """
    ended = run.look().ended

    @st.fragment(run_every=None if ended else EVERY)
    def panel() -> None:
        now = run.look()
        if now.ended and not ended:
            st.rerun()  # without looking any more
        if not now.ended:
            _going(run, now, key)
        draw(now)
        _ended(now)

    panel()


def _going(run: Run[T], now: Look[T], key: str) -> None:
    """Progress and the stop."""
    done, total = now.progress.done, now.progress.total
    if total:
        said = t("work.counted_of", done=f"{done:,}", total=f"{total:,}")
    else:
        said = t("work.counted", done=f"{done:,}") if done else t("work.starting")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(width="stretch"):
            st.progress(min(1.0, done / total) if total else 0.0, text=markdown(said))
        st.button(
            t("work.stop"),
            key=f"{key}.stop_run",
            icon=":material/stop_circle:",
            on_click=run.stop,
        )


def _ended(now: Look[T]) -> None:
    """Say why there won't be more, unless all is done."""
    if now.state is State.STOPPED:
        st.caption(t("work.stopped"))
    elif now.state is State.LEFT:
        st.info(t("work.left"))
    elif now.state is State.FULL:
        st.warning(t("work.full", count=f"{MOST_RESULTS:,}"))
    elif now.state is State.FAILED:
        if isinstance(now.error, KBertError):
            st.error(markdown(now.error))
        elif now.error is not None:
            raise now.error
