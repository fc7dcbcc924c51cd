"""What is done in a drawing, as commands; and the parts of a page that a selection draws anew."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec

import streamlit as st

from app import state
from kbert_core import Triple
from kbert_lab.lab.commands import Command, ReplaceTail, Switch, command_of

P = ParamSpec("P")
ss = st.session_state


def linked(key: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Make a function of a page a part that is drawn anew when the selection changes.

    Args:
        key: of the part, unique; begins with the page's name.
    """

    def of(draw: Callable[P, None]) -> Callable[P, None]:
        part = st.fragment(draw, key=key)

        @wraps(draw)
        def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
            ss.setdefault("lab.linked", {})[key] = None
            part(*args, **kwargs)

        return drawn

    return of


def begin() -> None:
    """Forget the parts of the last run; those of this one tell of themselves."""
    ss["lab.linked"] = {}


def select(command: Command) -> None:
    """Change the selection; in a callback only: draws the linked parts and nothing else."""
    state.dispatch(command)
    st.rerun(list(ss["lab.linked"]))


def hear(sent: Mapping[str, Any], refused: str = "lab.tree_problem") -> None:
    """Do what is meant by what a drawing of the Lab sends.

    A click on a triple that is gone, from before another, is idle.

    Args:
        refused: under which key is kept why that can't be.
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
        state.act(command, refused)
