"""The Lab's table of triples: what is changed in it becomes edits, and no click is lost.

A table with another key starts afresh in the browser, without a change that it was still to tell
of (it waits for 150 ms). So it keeps its key for as long as it shows what it is given. It then
also tells when it has been given what was changed in it; that alone draws no page.
"""

import streamlit as st

from app import state
from app.view_models.knowledge import Row, read_changes, rows_changed
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


def drawn_whole() -> None:
    """Say that the whole page is drawn, the table with it."""
    ss["lab.table_changed"] = False


def something_changed() -> bool:
    """Whether something was changed in the table since the whole page was drawn."""
    return bool(ss.get("lab.table_changed"))


def read_table(key: str, graph: str, rows: tuple[Row, ...]) -> None:
    """Callback of the table: turn its changes into edits.

    Args:
        key: of the table that was changed.
        graph: fingerprint of the graph it showed.
        rows: what it was given.
    """
    changed = ss.get(key)
    if changed is None or graph != ss["lab.graph"]:
        return
    now, wanted = _now(key, rows), rows_changed(rows, changed)
    read = read_changes(now, wanted, state.graph())
    if read.problem:
        ss["lab.problem"] = read.problem
    refused = read.problem or (read.edits and not state.commit(*read.edits))
    ss["lab.table_now"] = (key, now if refused else wanted)
    ss["lab.table_shows"] = None if refused else (graph, wanted)  # None: it starts afresh
    ss["lab.table_changed"] |= bool(refused or read.edits)


def delete_row(key: str, graph: str, rows: tuple[Row, ...]) -> None:
    """Callback of the button in a row: delete the row's triple.

    Args:
        key: of the table it stands in.
        graph: fingerprint of the graph it showed.
        rows: what it was given.
    """
    clicked = ss.get(DELETE_KEY)
    if clicked is None or graph != ss["lab.graph"]:
        return
    state.commit(Edit("remove", _now(key, rows)[clicked["row"]][0]))
    ss["lab.table_changed"] = True


def _now(key: str, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """What stands in a table's rows since it was last changed."""
    known = ss.get("lab.table_now")
    return known[1] if known and known[0] == key else rows
