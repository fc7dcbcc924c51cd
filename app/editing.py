"""The Lab's table of triples: what is changed in it becomes edits, and no click is lost.

A table with another key starts afresh in the browser, without a change that it was still to tell
of (it waits for 150 ms). So it keeps its key for as long as it shows what it is given.
"""

import streamlit as st

from app import state
from app.view_models.knowledge import (
    EditedRows,
    Row,
    changes_beyond,
    edited_rows,
    read_changes,
    rows_after,
)
from kbert_core.knowledge.graph import Edit

ss = st.session_state
DELETE_KEY = "lab.delete_row"


def table_key(rows: tuple[Row, ...]) -> str:
    """The table's key: another once something else than the table changed its rows."""
    shows = (ss["lab.graph"], rows)
    if ss.get("lab.table_shows") != shows:
        ss["lab.table_shows"] = shows
        ss["lab.table"] = ss.get("lab.table", 0) + 1
    return f"lab.table.{ss['lab.table']}"


def read_table(key: str, graph: str, rows: tuple[Row, ...]) -> None:
    """Callback of the table: turn its changes into edits.

    Its state tells of everything changed since it began, so what was read before is left out.

    Args:
        key: of the table that was changed.
        graph: fingerprint of the graph it showed.
        rows: what it showed.
    """
    changed = ss.get(key)
    if changed is None or graph != ss["lab.graph"]:
        return
    taken, rows = _taken(key, rows)
    edited = edited_rows(changed)
    read = read_changes(changes_beyond(edited, taken), rows, state.graph())
    if read.problem:
        ss["lab.problem"] = read.problem
    refused = read.problem or (read.edits and not state.commit(*read.edits))
    if not refused:
        rows = rows_after(rows, read.edits)
    ss["lab.table_taken"] = (key, edited, rows)
    ss["lab.table_shows"] = None if refused else (graph, rows)  # None: it starts afresh


def delete_row(key: str, graph: str, rows: tuple[Row, ...]) -> None:
    """Callback of the button in a row: delete the row's triple.

    Args:
        key: of the table it stands in.
        graph: fingerprint of the graph it showed.
        rows: what it showed.
    """
    clicked = ss.get(DELETE_KEY)
    if clicked is None or graph != ss["lab.graph"]:
        return
    _, rows = _taken(key, rows)
    state.commit(Edit("remove", rows[clicked["row"]][0]))


def _taken(key: str, rows: tuple[Row, ...]) -> tuple[EditedRows, tuple[Row, ...]]:
    """What was read of the table before, and what stands in its rows since."""
    taken = ss.get("lab.table_taken")
    return (taken[1], taken[2]) if taken and taken[0] == key else ({}, rows)
