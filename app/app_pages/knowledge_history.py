"""The log of a graph, entry by entry, and what became of the graph it began with."""

from typing import Any

import pandas as pd
import streamlit as st
from streamlit.column_config import ButtonColumn, CheckboxColumn, DatetimeColumn, NumberColumn

from app import state
from app.app_pages.knowledge_table import open_name
from app.app_pages.parts import table, the_first
from kbert_lab.graphs.store.log import Change
from kbert_lab.lab.catalogue import Catalogue
from kbert_lab.lab.commands import Redo, Undo
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import history

ss = st.session_state
LISTED = 1000  # rows of a table


def history_view(look: Catalogue) -> None:
    """Entries, the newest first; any single one can be taken back."""
    said = N_("Newest first. Each edit can be undone by itself, unless a later one depends on it.")
    st.caption(t(said))
    log = look.log
    if not (entries := log.entries()):
        st.info(t("No edits yet."), icon=":material/history:")
        return
    rows = history.rows(log, entries[:LISTED])
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    columns["at"] = pd.to_datetime(columns["at"], errors="coerce", utc=True)
    columns["turn"] = [
        [t("Redo") if row["undone"] else t("Undo")]
        if row["entry"] > log.base and row["undoes"] is None
        else []
        for row in rows
    ]
    config = {
        "entry": NumberColumn("#", width=50),
        "at": DatetimeColumn(t("when"), format="YYYY-MM-DD HH:mm", timezone=st.context.timezone),
        "who": t("who") if state.workspace() else None,
        "what": st.column_config.TextColumn(t("what"), width="large"),
        "undoes": None,
        "undone": CheckboxColumn(t("undone"), width=70),
        "turn": ButtonColumn("", width=90, key="knowledge.turn", on_click=turn, args=(rows,)),
    }
    table(columns, "knowledge.entries", most=460, config=config)
    the_first(LISTED, len(entries))
    if changes := log.changes():
        difference(changes)


def turn(rows: list[dict[str, Any]]) -> None:
    """Callback: take an entry back, or make it again."""
    row = rows[ss["knowledge.turn"]["row"]]
    state.dispatch((Redo if row["undone"] else Undo)(row["entry"]))


def difference(changes: list[Change]) -> None:
    """What differs from the graph as it was opened, or from which the workspace was made."""
    shown = changes[:LISTED]
    st.subheader(t("The difference"), anchor=False)
    said = N_(
        "How the graph differs from the one that was opened, or that the workspace was made of."
    )
    st.caption(t(said))
    columns: dict[str, Any] = {
        t("before"): [str(change.before or "–") for change in shown],
        t("now"): [str(change.after or "–") for change in shown],
        t("on"): [change.is_on for change in shown],
    }

    def choose(row: int | None) -> None:
        if row is not None and (triple := shown[row].after or shown[row].before):
            open_name(triple.head)

    table(columns, "knowledge.changes", choose=choose, most=460)
    the_first(LISTED, len(changes))
