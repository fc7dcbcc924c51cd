"""Tables of triples that are changed in place: what is changed becomes edits, and no click is lost.

A table with another key starts afresh in the browser, without a change that it was still to
tell of (it waits for 150 ms), and one that is given what was changed in it forgets the change. So
it keeps its key, and is given what it began with, for as long as its changes over that are what
stands. One in which rows were added or deleted starts afresh.
"""

import streamlit as st

from app import state
from kbert_core import KBertError
from kbert_core.knowledge.edit import Edit
from kbert_lab.lab.texts import refusal
from kbert_lab.lab.views.knowledge import Row, rows_changed, table_edits

ss = st.session_state


def begun(page: str, rows: tuple[Row, ...]) -> tuple[str, tuple[Row, ...]]:
    """A page's table: its key, and what it is given; both new once something else changed its rows.

    Args:
        rows: what it is to show.
    """
    name = f"{page}.table"
    number, graph, given, _ = ss.get(name, (0, None, (), ()))
    changes = ss.get(f"{name}.{number}") or {}
    if graph != state.session().graph or rows_changed(given, changes) != rows:
        number, given = number + 1, rows
        ss[name] = (number, state.session().graph, rows, rows)
    return f"{name}.{number}", given


def delete_key(key: str) -> str:
    """Of the buttons in a table's rows."""
    return f"{key}.delete"


def read_table(key: str) -> None:
    """Callback of the table with a key: turn its changes into edits."""
    if not _stands(key):
        return
    number, graph, given, now = ss[_name(key)]
    changes = ss.get(key) or {}
    try:
        made = state.commit(*table_edits(now, given, changes))
    except KBertError as error:
        ss["lab.problem"], made = refusal(error), False
    if made:
        now = rows_changed(given, changes)
    afresh = changes.get("added_rows") or changes.get("deleted_rows")
    ss[_name(key)] = (number, None if afresh else graph, given, now)


def delete_row(key: str) -> None:
    """Callback of the buttons in a table: delete a row's triple, unless a click before did."""
    clicked = ss.get(delete_key(key))
    if clicked is None or not _stands(key):
        return
    triple, _ = ss[_name(key)][3][clicked["row"]]
    if triple in state.graph():
        state.commit(Edit("remove", triple))


def _name(key: str) -> str:
    return key.rpartition(".")[0]


def _stands(key: str) -> bool:
    """Whether a table is the one that stands there, and of the graph that is open."""
    number, graph, *_ = ss[_name(key)]
    return key == f"{_name(key)}.{number}" and graph == state.session().graph
