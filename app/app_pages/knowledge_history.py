"""The log of a graph, entry by entry, and what became of the graph it began with."""

import pandas as pd
import streamlit as st

from app import state
from app.app_pages.knowledge_table import open_name
from app.app_pages.parts import table, the_first
from kbert_lab.graphs.store.log import Change, Entry
from kbert_lab.lab.catalogue import Catalogue
from kbert_lab.lab.commands import Redo, Undo
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import history

ss = st.session_state
LISTED = 1000  # rows of a table


def history_view(look: Catalogue) -> None:
    """Entries, the newest first; any single one can be taken back."""
    log = look.log
    entries = log.entries()
    shown = entries[:LISTED]
    said = (
        t(
            "Everyone's edits in this workspace, newest first. Each can be undone by itself, "
            "unless a later one changed the same triple."
        )
        if state.workspace() is not None
        else t(
            "Your edits in this visit, newest first. Each can be undone by itself, unless a "
            "later one depends on it."
        )
    )
    st.caption(said)
    if not entries:
        st.info(t("No edits yet."), icon=":material/history:")
        return
    fixed = lambda entry: entry.revision <= log.base or entry.undoes is not None  # noqa: E731
    undo = st.column_config.ButtonColumn(
        "", width=90, key="knowledge.turn", on_click=turn, args=(shown,)
    )
    table(
        {
            "#": [entry.revision for entry in shown],
            t("when"): pd.to_datetime([entry.at for entry in shown], errors="coerce", utc=True),
            **({t("who"): [entry.who for entry in shown]} if state.workspace() else {}),
            t("what"): [history.said(log, entry) for entry in shown],
            t("state"): [t("undone") if entry.undone else "" for entry in shown],
            "": [
                [] if fixed(entry) else [t("Redo") if entry.undone else t("Undo")]
                for entry in shown
            ],
        },
        "knowledge.entries",
        most=460,
        config={
            "#": st.column_config.NumberColumn(width=50),
            t("when"): st.column_config.DatetimeColumn(
                format="YYYY-MM-DD HH:mm", timezone=st.context.timezone
            ),
            t("what"): st.column_config.TextColumn(width="large"),
            "": undo,
        },
    )
    the_first(LISTED, len(entries))
    if changes := log.changes():
        difference(changes)


def turn(entries: list[Entry]) -> None:
    """Callback: take an entry back, or make it again."""
    entry = entries[ss["knowledge.turn"]["row"]]
    state.dispatch((Redo if entry.undone else Undo)(entry.revision))


def difference(changes: list[Change]) -> None:
    """What differs from the graph as it was opened, or from which the workspace was made."""
    shown = changes[:LISTED]
    st.subheader(t("The difference"), anchor=False)
    st.caption(
        t("How the graph differs from the one that was opened, or that the workspace was made of.")
    )
    said = {
        t("before"): [str(change.before or "–") for change in shown],
        t("now"): [str(change.after or "–") for change in shown],
        t("state"): [t("on") if change.is_on else t("off") for change in shown],
    }

    def choose(row: int | None) -> None:
        if row is not None and (triple := shown[row].after or shown[row].before):
            open_name(triple.head)

    table(said, "knowledge.changes", choose=choose, most=460)
    the_first(LISTED, len(changes))
