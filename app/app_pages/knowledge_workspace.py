"""Keeping a graph in a workspace, what others do there; taking a graph away as a file."""

from functools import partial

import streamlit as st

from app import export, services, state
from app.addresses import address
from app.app_pages.parts import action, download, graph_download, told_once
from kbert_core import KBertError
from kbert_lab.lab import workspaces
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import history
from kbert_lab.lab.views.html import markdown

ss = st.session_state
EVERY = 5  # seconds between two looks at what others do


def workspace_popover() -> None:
    """Save to a workspace, open one, or what is open."""
    shared = state.workspace()
    typed = partial(st.text_input, max_chars=80, persist_state="session")
    # another key when one is open, so that saving closes what was opened to save
    key = "knowledge.workspace" if shared is None else "knowledge.workspace_open"
    with st.popover(t("Workspace"), icon=":material/group_work:", key=key):
        label = t("Your name, for the log")
        who = typed(label, key="knowledge.who", placeholder=t("Optional")).strip()
        if shared is not None:
            shared.who = who
            st.markdown(f"**{markdown(t('Open: {title}', title=shared.graph.name))}**")
            way_back(shared.key)
            action(t("Close the workspace"), "knowledge.close", state.close_workspace)
            return
        st.markdown(f"**{t('Save to a workspace')}**")
        said = N_(
            "Saves the graph and your edits on the machine that runs this app, and lets others "
            "edit with you."
        )
        st.caption(t(said))
        base = state.base().name
        title = typed(t("Name of the workspace"), key="knowledge.title", placeholder=base).strip()
        if st.button(t("Save"), key="knowledge.save_workspace", type="primary"):
            save(title, who)
        st.markdown(f"**{t('Open a workspace')}**")
        st.text_input(t("Its key or link"), key="knowledge.key", type="password", max_chars=500)
        action(t("Open the workspace"), "knowledge.open_key", open_key)


def open_key() -> None:
    """Callback: open the workspace whose key was typed, or a whole link or address."""
    key = workspaces.key_in(ss["knowledge.key"])
    if key and state.open_workspace(key):
        ss["knowledge.key"] = ""


def save(title: str, who: str) -> None:
    """Save the chosen graph with its edits as a workspace, with progress, and open that."""
    now = state.session()
    opened = now.graphs[now.graph]
    bar, total = st.progress(0.0, t("Saving …")), max(1, len(now.base))

    def progress(rows: int) -> None:
        bar.progress(min(1.0, rows / total))

    try:
        key = workspaces.create(
            now.base,
            now.history.edited(now.graph),
            title=title,
            source=opened.source,
            lines=opened.lines,
            who=who,
            progress=progress,
        )
    except KBertError as error:
        bar.empty()
        st.error(markdown(error))
        return
    ss["knowledge.saved"] = state.open_workspace(key)
    st.rerun()


def saved_dialog() -> None:
    """The way back to a workspace that was just saved."""
    shared = state.workspace()
    if ss.pop("knowledge.saved", False) and shared is not None:
        title = t("Saved as {title}", title=shared.graph.name)
        st.dialog(markdown(title), icon=":material/check:")(way_back)(shared.key)


def way_back(key: str) -> None:
    """The address that opens a workspace."""
    said = N_(
        "This link is the only way back, so keep it. Anyone who has it can read and edit. It is "
        "not listed anywhere."
    )
    st.caption(t(said))
    st.code(address(**{state.KEY: key}), language=None, wrap_lines=True)


def export_popover() -> None:
    """The graph, and the log of its edits, as files."""
    graph, log = state.graph(), state.log()
    name = services.safe_name(graph.name)
    with st.popover(t("Export"), icon=":material/download:", key="knowledge.export"):
        ending = st.selectbox(t("Format"), export.FORMATS, key="knowledge.format", width=110)
        every = st.checkbox(
            t("include triples that are switched off ({count})", count=f"{len(graph.off):,}"),
            key="knowledge.with_off",
            help=t("A file cannot mark triples as off: they are on again when it is opened."),
            disabled=not graph.off,
        )
        graph_download(
            graph,
            N_("Download the graph"),
            key="knowledge.download",
            file_name=f"{name}{ending}",
            switched_off=every,
        )
        download(
            "knowledge.log",
            t("Download the log of edits"),
            lambda: export.lines_of(history.rows(log, reversed(log.entries()))),
            f"{name}-edits.jsonl",
            "application/x-ndjson",
            help=t("JSON Lines: what, who, when, and whether it was undone."),
        )


def workspace_notices() -> None:
    """Say why a workspace can't be opened, and what others did in the open one."""
    told_once()
    away = ss.get("lab.workspace_away")
    if away is not None:
        action(t("Open the workspace again"), "workspace.again", state.open_workspace, away)
    shared = state.workspace()
    if shared is None:
        return
    if shared.overtaken:
        said = N_(
            "Others have edited this workspace in the meantime; you see its current state. Its "
            "history says what they did."
        )
        st.info(t(said), icon=":material/group:")
    _watch()


@st.fragment(run_every=EVERY)
def _watch() -> None:
    """Tell of others' edits while this visitor does nothing."""
    shared = state.workspace()
    if shared is not None and shared.is_behind():
        with st.container(horizontal=True, vertical_alignment="center", key="workspace_newer"):
            st.warning(t("Somebody has just edited this workspace."), icon=":material/update:")
            if st.button(t("Show it as it is now"), key="workspace.show"):
                st.rerun()
