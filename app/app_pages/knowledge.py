"""Knowledge: the whole graph, to search, edit, import into, look back on and keep."""

from functools import partial

import streamlit as st

from app import state
from app.app_pages import knowledge_table
from app.app_pages.knowledge_history import history_view
from app.app_pages.knowledge_import import import_view
from app.app_pages.knowledge_structure import structure_view
from app.app_pages.knowledge_table import triples_view
from app.app_pages.knowledge_workspace import (
    export_popover,
    saved_dialog,
    workspace_notices,
    workspace_popover,
)
from app.app_pages.lab_open import open_dialog, open_graph_button, show_opened
from app.app_pages.parts import bind, redo_button, refused, segments, told_apart, undo_button
from app.state import KEEP
from kbert_lab.lab.commands import ChooseGraph, Redo, Undo
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import history
from kbert_lab.lab.views.html import CSS, markdown

VIEWS = {  # what each is called, and what draws it
    "triples": (N_("Triples"), triples_view),
    "import": (N_("Import"), import_view),
    "history": (N_("History"), history_view),
    "structure": (N_("Structure"), structure_view),
}

ss = st.session_state


def page() -> None:
    """Which graph, then one of the views of it."""
    knowledge_table.begin()
    if ss.pop("knowledge.to_lab", False):
        st.switch_page("app_pages/lab.py")
    st.html(CSS)
    top()
    open_dialog()
    show_opened()
    workspace_notices()
    saved_dialog()
    names = {name: title for name, (title, _) in VIEWS.items()}
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="knowledge_bar"
    ):
        view = segments(t("View"), names, "knowledge.view", names, width="stretch", **KEEP)
        undo_buttons()
    refused()
    VIEWS[view][1](knowledge_table.catalogue())


def top() -> None:
    """The chosen graph, how to open others, keep this one and take it away; who sees its edits."""
    now, shared = state.session(), state.workspace()
    names = told_apart({name: state.graph_label(name) for name in now.graphs})
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        bind(
            partial(st.selectbox, t("Knowledge graph"), list(names)),
            "knowledge.graph",
            now.graph,
            lambda name: state.dispatch(ChooseGraph(name)),
            format_func=lambda name: names.get(name, name),
            width=340,  # on a phone a line of its own
        )
        open_graph_button()
        workspace_popover()
        export_popover()
    said = N_(
        "{opened} triples as opened, {count} now. Edits are private to this visit: save them to a "
        "workspace, or download the graph, to keep them."
    )
    if shared is not None:
        said = N_(
            "Workspace {name}: {count} triples, at entry {number} of its log. Every edit is saved "
            "at once. Everyone with the link sees and edits the same graph."
        )
    values = {
        "opened": f"{len(now.base):,}",
        "count": f"{len(state.graph()):,}",
        "name": now.base.name,
        "number": shared.revision if shared else 0,
    }
    st.caption(markdown(t(said, **values)))


def undo_buttons() -> None:
    """Take back this visitor's last edit of the graph; make it again."""
    now, log = state.session(), state.log()
    last, following = now.last_step(now.graph), now.next_step(now.graph)
    undo = partial(state.dispatch, Undo(graph=now.graph))
    redo = partial(state.dispatch, Redo(graph=now.graph))
    undo_button("knowledge", undo, history.step(log, last))
    redo_button("knowledge", redo, history.step(log, following))


page()
