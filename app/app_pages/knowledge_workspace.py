"""Keeping a graph in a workspace, what others do there; taking a graph away as a file."""

import streamlit as st

from app import curating, export, services, state
from app.addresses import address
from app.app_pages.parts import action, download
from kbert_core import KBertError
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import history
from kbert_lab.lab.views.html import markdown

ss = st.session_state
EVERY = 5  # seconds between two looks at what others do


def workspace_popover() -> None:
    """Save to a workspace, open one, or what is open."""
    shared = state.workspace()
    # another key when one is open, so that saving closes what was opened to save
    key = "knowledge.workspace" if shared is None else "knowledge.workspace_open"
    with st.popover(t("Workspace"), icon=":material/group_work:", key=key):
        st.text_input(
            t("Your name, for the log"),
            key="knowledge.who",
            placeholder=t("Optional"),
            on_change=curating.set_who,
            max_chars=80,
            persist_state="session",
        )
        if shared is not None:
            st.markdown(f"**{markdown(t('Open: {title}', title=shared.graph.name))}**")
            way_back(shared.key)
            action(t("Close the workspace"), "knowledge.close", state.close_workspace)
            return
        st.markdown(f"**{t('Save to a workspace')}**")
        st.caption(
            t(
                "Saves the graph and your edits on the machine that runs this app, and lets "
                "others edit with you."
            )
        )
        st.text_input(
            t("Name of the workspace"),
            key="knowledge.title",
            placeholder=state.base().name,
            max_chars=80,
            persist_state="session",
        )
        if st.button(t("Save"), key="knowledge.save_workspace", type="primary"):
            save()
        st.markdown(f"**{t('Open a workspace')}**")
        st.text_input(t("Its key or link"), key="knowledge.key", type="password", max_chars=500)
        action(t("Open the workspace"), "knowledge.open_key", curating.open_key)


def save() -> None:
    """Save, with progress; then draw the page anew."""
    bar = st.progress(0.0, t("Saving …"))
    total = max(1, len(state.base()))
    try:
        curating.save_workspace(lambda rows: bar.progress(min(1.0, rows / total)))
    except KBertError as error:
        bar.empty()
        st.error(markdown(error))
        return
    st.rerun()


def saved_notice() -> None:
    """The way back to a workspace that was just saved, until it is dismissed."""
    key = ss.get("knowledge.saved")
    shared = state.workspace()
    if key is None or shared is None or shared.key != key:
        return
    with st.container(border=True, key="knowledge_saved"):
        said = t("Saved as {title}", title=shared.graph.name)
        st.markdown(f":material/check: **{markdown(said)}**")
        way_back(key)
        action(
            t("I have saved the link"), "knowledge.dismiss", lambda: ss.pop("knowledge.saved", None)
        )


def way_back(key: str) -> None:
    """The address that opens a workspace."""
    st.caption(
        t(
            "This link is the only way back, so keep it. Anyone who has it can read and edit. It "
            "is not listed anywhere."
        )
    )
    st.code(address(**{state.KEY: key}), language=None, wrap_lines=True)


def export_popover() -> None:
    """The graph, and the log of its edits, as files."""
    graph = state.graph()
    name = services.safe_name(graph.name)
    with st.popover(t("Export"), icon=":material/download:", key="knowledge.export"):
        if len(graph) > export.MOST_TRIPLES:
            text = N_("A graph of over {most} triples is better exported on the command line:")
            st.info(t(text, most=f"{export.MOST_TRIPLES:,}"))
            st.code("kbert kg export GRAPH.kg FILE.spo.gz", language="bash")
        else:
            with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
                ending = st.selectbox(
                    t("Format"), export.FORMATS, key="knowledge.format", width=110
                )
                packed = st.selectbox(
                    t("Packed"),
                    export.PACKED,
                    key="knowledge.packed",
                    format_func=lambda kind: kind or t("no"),
                    width=110,
                )
            every = st.checkbox(
                t("include triples that are switched off ({count})", count=f"{len(graph.off):,}"),
                key="knowledge.with_off",
                help=t("A file cannot mark triples as off: they are on again when it is opened."),
                disabled=not graph.off,
            )
            download(
                "knowledge.download",
                t("Download the graph"),
                lambda: export.graph_as(graph, f"{ending}{packed}", switched_off=every),
                f"{name}{ending}{packed}",
                "application/octet-stream",
            )
        log = state.log()
        download(
            "knowledge.log",
            t("Download the log of edits"),
            lambda: export.lines_of(history.log_as_rows(log)),
            f"{name}-edits.jsonl",
            "application/x-ndjson",
            help=t("JSON Lines: what, who, when, and whether it was undone."),
        )


def workspace_notices() -> None:
    """Say why a workspace can't be opened, and what others did in the open one."""
    problem = ss.pop("lab.workspace_problem", None)
    if problem:
        st.error(markdown(problem), icon=":material/link_off:")
    away = ss.get("lab.workspace_away")
    if away is not None:
        action(t("Open the workspace again"), "workspace.again", state.open_workspace, away)
    shared = state.workspace()
    if shared is None:
        return
    if shared.overtaken:
        said = t(
            "Others have edited this workspace in the meantime; you see its current state. Its "
            "history says what they did."
        )
        st.info(said, icon=":material/group:")
    _watch()


@st.fragment(run_every=EVERY)
def _watch() -> None:
    """Tell of others' edits while this visitor does nothing."""
    shared = state.workspace()
    if shared is None:
        return
    try:
        store = shared.store
        store.graph()
        newer = store.revision > shared.revision
    except KBertError:
        newer = True  # it is gone: the page will say so
    if newer:
        with st.container(horizontal=True, vertical_alignment="center", key="workspace_newer"):
            st.warning(t("Somebody has just edited this workspace."), icon=":material/update:")
            if st.button(t("Show it as it is now"), key="workspace.show"):
                st.rerun()
