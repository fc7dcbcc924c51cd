"""The log of a graph, entry by entry, and what became of the graph it began with."""

from functools import partial

import streamlit as st

from app import curating, state
from app.app_pages.parts import action, table, the_first
from kbert_lab.graphs.store.log import Change, Entry
from kbert_lab.lab.catalogue import Catalogue
from kbert_lab.lab.edit_log import OpenWorkspace
from kbert_lab.lab.log import Log
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import history
from kbert_lab.lab.views.html import markdown

ss = st.session_state
LISTED = 1000  # changes in the table
STEP = 20


def history_view(look: Catalogue) -> None:
    """Entries, the newest first; any single one can be taken back."""
    entries = look.log.entries()
    shown = entries[: int(ss["knowledge.rows"])]
    st.caption(
        t(
            "Everyone's edits in this workspace, newest first. Each can be undone by itself, "
            "unless a later one changed the same triple."
            if state.workspace() is not None
            else "Your edits in this visit, newest first. Each can be undone by itself, unless a "
            "later one depends on it."
        )
    )
    if not entries:
        st.info(t("No edits yet."), icon=":material/history:")
        return
    with st.expander(t("The difference")):
        difference(look)
    for entry in shown:
        entry_row(look.log, entry)
    if len(entries) > len(shown):
        action(
            t("Show {count} more", count=f"{len(entries) - len(shown):,}"),
            "knowledge.more",
            lambda: ss.update({"knowledge.rows": ss["knowledge.rows"] + STEP}),
        )


def entry_row(log: Log | OpenWorkspace, entry: Entry) -> None:
    """One entry, with the button that takes it back."""
    said, changes = history.said(log, entry)
    number = entry.revision
    with st.container(
        border=True,
        horizontal=True,
        vertical_alignment="center",
        gap="small",
        key=f"knowledge_entry_{number}",
    ):
        with st.container(gap=None, width="stretch"):
            who = f" · {entry.who}" if entry.who else ""
            when = t("{number} · {at}", number=number, at=history.ago(entry.at))
            undone = f" · :orange[{t('undone')}]" if entry.undone else ""
            what = markdown(said)
            st.caption(f"{markdown(when + who)}{undone}")
            st.markdown(f"~~{what}~~" if entry.undone else what)
            if changes:
                listed = "  \n".join(f"– {markdown(change)}" for change in changes)
                rest = entry.edits - len(changes)
                more = t("… and {count} more", count=f"{rest:,}") if rest > 0 else ""
                with st.expander(t("What it changed")):
                    st.markdown(f"{listed}  \n{markdown(more)}")
        if number > log.base and entry.undoes is None:
            action(
                t("Redo" if entry.undone else "Undo"),
                f"knowledge.entry_{number}",
                curating.redo if entry.undone else curating.undo,
                number,
                icon="redo" if entry.undone else "undo",
            )


def difference(look: Catalogue) -> None:
    """What differs from the graph as it was opened, or saved."""
    changes = look.log.changes()
    shown = changes[:LISTED]
    st.caption(
        t(
            "How the workspace differs from the graph it was made from."
            if state.workspace() is not None
            else "How the graph differs from the one that was opened."
        )
    )
    said = {
        t("before"): [str(change.before or "–") for change in shown],
        t("now"): [str(change.after or "–") for change in shown],
        t("state"): [t("on") if change.is_on else t("off") for change in shown],
    }
    key = f"knowledge.changes.{ss['knowledge.table']}"
    table(said, key, choose=partial(_go_to, shown), most=460)
    the_first(LISTED, len(changes))


def _go_to(changes: list[Change], row: int | None) -> None:
    if row is not None and (triple := changes[row].after or changes[row].before):
        curating.look_for(triple.head)
