"""What is done in a drawing, as commands; and the parts of a page that a selection draws anew."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from app import state
from kbert_core import Triple
from kbert_lab.lab.commands import Command, ReplaceTail, Switch, command_of

ss = st.session_state


linked = partial(state.part, by="selection")


def select(command: Command) -> None:
    """Change the selection; in a callback only: draws the linked parts and nothing else."""
    state.dispatch(command)
    state.draw("selection")


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
