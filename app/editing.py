"""The Lab's table of triples: what is changed in it becomes edits, and no click is lost.

A table with another key starts afresh in the browser, without a change that it was still to
tell of (it waits for 150 ms), and one that is given what was changed in it forgets the change. So
it keeps its key, and is given what it began with, for as long as its changes over that are what
stands.
"""

import streamlit as st

from app import state
from kbert_core.errors import KBertError
from kbert_core.knowledge.edit import Edit
from kbert_lab.lab.texts import refusal
from kbert_lab.lab.views.knowledge import Row, edits_between, rows_changed

ss = st.session_state


def begun(rows: tuple[Row, ...]) -> tuple[str, tuple[Row, ...]]:
    """The table's key, and what it is given: both new once something else changed its rows.

    Args:
        rows: what it is to show.
    """
    number, graph, given, _ = ss.get("lab.table", (0, None, (), ()))
    if graph != state.session().graph or _shown(_key(number), given) != rows:
        number, given = number + 1, rows
        ss["lab.table"] = (number, state.session().graph, rows, rows)
    return _key(number), given


def delete_key(key: str) -> str:
    """Of the buttons in a table's rows."""
    return f"{key}.delete"


def read_table(key: str) -> None:
    """Callback of the table with a key: turn its changes into edits."""
    if not _stands(key):
        return
    *begun, given, stands = ss["lab.table"]
    wanted = _shown(key, given)
    try:
        edits = edits_between(stands, wanted)
    except KBertError as error:
        ss["lab.problem"] = refusal(error)
    else:
        if not edits or state.commit(*edits):
            ss["lab.table"] = (*begun, given, wanted)


def delete_row(key: str) -> None:
    """Callback of the buttons in a table: delete a row's triple, unless a click before did."""
    clicked = ss.get(delete_key(key))
    if clicked is None or not _stands(key):
        return
    triple, _ = ss["lab.table"][3][clicked["row"]]
    if triple in state.graph():
        state.commit(Edit("remove", triple))


def _key(number: int) -> str:
    return f"lab.table.{number}"


def _shown(key: str, given: tuple[Row, ...]) -> tuple[Row, ...]:
    return rows_changed(given, ss.get(key) or {})


def _stands(key: str) -> bool:
    """Whether a table is the one that stands there, and of the graph that is open."""
    number, graph, *_ = ss["lab.table"]
    return key == _key(number) and graph == state.session().graph
