"""What is done in a drawing, as commands; and the parts of a page that a selection draws anew."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import streamlit as st

from app import state
from app.app_pages.parts import bind, window_name
from kbert_core import Triple
from kbert_lab.lab.commands import Command, ReplaceTail, Show, ShowWindow, Switch, command_of
from kbert_lab.lab.texts import t

ss = st.session_state


linked = partial(state.part, by="selection")


def select(command: Command) -> None:
    """Change the selection; in a callback only: draws the linked parts and nothing else."""
    state.dispatch(command)
    state.draw("selection")


def choose_view(widget: Callable[..., Any], name: str, **how: Any) -> Any:
    """What a panel shows, by its name in ``VIEWS``, and a widget that chooses it."""
    shown = state.session().view(name)
    bind(widget, f"lab.{name}", shown, lambda new: state.dispatch(Show(name, new)), **how)
    return shown


def choose_window(count: int) -> int:
    """The window of a long text that is looked at, of so many, and a box that chooses it."""
    window = min(state.session().window, count - 1)
    if count > 1:
        box, named = partial(st.selectbox, t("Window"), range(count)), partial(window_name, count)
        change = lambda new: state.dispatch(ShowWindow(new))  # noqa: E731
        bind(box, "lab.window", window, change, format_func=named, width=160)
    return window


def hear(sent: Mapping[str, Any]) -> None:
    """Do what is meant by what a drawing of the Lab sends.

    A click on a triple that is gone, from before another, is idle.
    """
    if sent["do"] == "ask":  # about a branch's tails; the page answers
        ss["lab.asked"] = (sent["request"], Triple(*sent["triple"]), tuple(sent["tails"]))
        return
    if sent["do"] == "link":  # the Lab's own matrix alone blocks and opens
        return
    command = command_of(sent)
    if not isinstance(command, Switch | ReplaceTail):
        select(command)
    elif isinstance(command, ReplaceTail) or command.triples[0] in state.graph():
        state.act(command)
