"""Knowledge: the whole graph, to search, edit, import into, look back on and keep."""

from functools import partial

import streamlit as st

from app import curating, state
from app.app_pages.knowledge_history import history_view
from app.app_pages.knowledge_import import import_view
from app.app_pages.knowledge_structure import structure_view
from app.app_pages.knowledge_table import triples_view
from app.app_pages.knowledge_workspace import (
    export_popover,
    saved_notice,
    workspace_notices,
    workspace_popover,
)
from app.app_pages.lab_open import open_dialog, open_graph_button, show_opened
from app.app_pages.parts import bind, redo_button, segments, told_apart, undo_button
from app.curating import HISTORY, IMPORT, STRUCTURE, TRIPLES
from app.state import KEEP
from kbert_lab.lab.catalogue import Catalogue
from kbert_lab.lab.commands import ChooseGraph
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import history
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.styles import CSS

KG_VIEWS = {  # what each is called, and what draws it
    TRIPLES: (N_("Triples"), triples_view),
    IMPORT: (N_("Import"), import_view),
    HISTORY: (N_("History"), history_view),
    STRUCTURE: (N_("Structure"), structure_view),
}

ss = st.session_state


def page() -> None:
    """Which graph, then one of the views of it."""
    curating.begin()
    if ss.pop("knowledge.to_lab", False):
        st.switch_page("app_pages/lab.py")
    st.html(CSS)
    look = top()
    open_dialog()
    show_opened()
    workspace_notices()
    saved_notice()
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="knowledge_bar"
    ):
        view = segments(
            t("View"),
            list(KG_VIEWS),
            "knowledge.view",
            lambda name: t(KG_VIEWS[name][0]),
            width="stretch",
            **KEEP,
        )
        undo_buttons()
    if problem := ss.get("knowledge.problem"):
        st.error(markdown(problem))
    KG_VIEWS[view or TRIPLES][1](look)


def top() -> Catalogue:
    """The chosen graph, how to open others, keep this one and take it away."""
    names = told_apart({name: state.graph_label(name) for name in state.session().graphs})
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        bind(
            partial(st.selectbox, t("Knowledge graph"), list(names)),
            "knowledge.graph",
            state.session().graph,
            lambda name: state.dispatch(ChooseGraph(name)),
            format_func=lambda name: names.get(name, name),
        )
        open_graph_button()
        workspace_popover()
        export_popover()
    look = curating.catalogue()
    st.caption(markdown(summary(look)))
    return look


def summary(look: Catalogue) -> str:
    """What graph this is, and who sees its edits; plain text."""
    shared = state.workspace()
    count = f"{len(look.graph):,}"
    if shared is not None:
        return t(
            "Workspace {name}: {count} triples, at entry {number} of its log. Every edit is saved "
            "at once. Everyone with the link sees and edits the same graph.",
            name=shared.graph.name,
            count=count,
            number=shared.revision,
        )
    steps = 0 if shared else len(state.session().history.of(state.session().graph))
    said = N_(
        "{count} triples. Edits stay private to this visit until you save them to a workspace."
    )
    if steps == 1:
        said = N_(
            "{opened} triples as opened, {count} after 1 edit. It is private to this visit: save "
            "it to a workspace, or download the graph, to keep it."
        )
    elif steps:
        said = N_(
            "{opened} triples as opened, {count} after {edits} edits. They are private to this "
            "visit: save them to a workspace, or download the graph, to keep them."
        )
    # as the chooser says, whose options keep their names
    return t(said, opened=f"{len(look.base):,}", count=count, edits=steps)


def undo_buttons() -> None:
    """Take back this visitor's last edit; make it again."""
    log = state.log()
    undo_button("knowledge", curating.undo, history.what(log, log.last()))
    redo_button("knowledge", curating.redo, history.what(log, log.next()))


page()
