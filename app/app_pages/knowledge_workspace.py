"""Keeping a graph in a workspace, opening one by its key, and taking a graph away as a file."""

import streamlit as st

from app import curating, exports, services, state
from app.addresses import address
from app.app_pages.knowledge_history import log_rows
from app.texts import t
from app.view_models import history
from app.view_models.html import markdown
from kbert_core import KBertError

ss = st.session_state


def workspace_popover() -> None:
    """Save to a workspace, open one, or what is open."""
    shared = state.workspace()
    # another key when one is open, so that saving closes what was opened to save
    key = "knowledge.workspace" if shared is None else "knowledge.workspace_open"
    with st.popover(t("workspace.button"), icon=":material/group_work:", key=key):
        st.text_input(
            t("workspace.who"),
            key="knowledge.who",
            placeholder=t("workspace.who_placeholder"),
            on_change=curating.set_who,
            max_chars=80,
            persist_state="session",
        )
        if shared is not None:
            st.markdown(f"**{markdown(t('workspace.open_now', title=shared.title))}**")
            st.caption(t("workspace.keep"))
            st.code(link(shared.key), language=None, wrap_lines=True)
            st.button(t("workspace.close"), key="knowledge.close", on_click=curating.close)
            return
        st.markdown(f"**{t('workspace.save_title')}**")
        st.caption(t("workspace.save_what"))
        st.text_input(
            t("workspace.name"),
            key="knowledge.title",
            placeholder=state.base().name,
            max_chars=80,
            persist_state="session",
        )
        if st.button(t("workspace.save"), key="knowledge.save_workspace", type="primary"):
            save()
        st.markdown(f"**{t('workspace.open_title')}**")
        st.text_input(t("workspace.key"), key="knowledge.key", type="password", max_chars=500)
        st.button(t("workspace.open"), key="knowledge.open_key", on_click=curating.open_key)


def save() -> None:
    """Save, with progress; then draw the page anew."""
    bar = st.progress(0.0, t("workspace.saving"))
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
        st.markdown(f":material/check: **{markdown(t('workspace.saved', title=shared.title))}**")
        st.caption(t("workspace.keep"))
        st.code(link(key), language=None, wrap_lines=True)
        st.button(
            t("workspace.dismiss"),
            key="knowledge.dismiss",
            on_click=lambda: ss.pop("knowledge.saved", None),
        )


def link(key: str) -> str:
    """The address that opens a workspace."""
    return address(**{state.KEY: key})


def export_popover() -> None:
    """The graph, and the log of its edits, as files."""
    graph = state.graph()
    name = services.safe_name(graph.name)
    with st.popover(t("export.button"), icon=":material/download:", key="knowledge.export"):
        if len(graph) > exports.MOST_TRIPLES:
            st.info(t("export.too_large", most=f"{exports.MOST_TRIPLES:,}"))
            st.code("kbert kg export GRAPH.kg FILE.spo.gz", language="bash")
        else:
            with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
                ending = st.selectbox(
                    t("export.format"), exports.FORMATS, key="knowledge.format", width=110
                )
                packed = st.selectbox(
                    t("export.packed"),
                    exports.PACKED,
                    key="knowledge.packed",
                    format_func=lambda kind: kind or t("export.plain"),
                    width=110,
                )
            every = st.checkbox(
                t("export.off", count=f"{len(graph.off):,}"),
                key="knowledge.with_off",
                help=t("export.off_help"),
                disabled=not graph.off,
            )
            st.download_button(
                t("export.graph"),
                lambda: exports.graph_as(graph, f"{ending}{packed}", switched_off=every),
                file_name=f"{name}{ending}{packed}",
                mime="application/octet-stream",
                key="knowledge.download",
                icon=":material/download:",
                on_click="ignore",
            )
        look, shared = curating.catalogue(), state.workspace()
        st.download_button(
            t("export.log"),
            lambda: exports.lines_of(history.log_as_rows(log_rows(look, shared)[0])),
            file_name=f"{name}-edits.jsonl",
            mime="application/x-ndjson",
            key="knowledge.log",
            icon=":material/history:",
            help=t("export.log_help"),
            on_click="ignore",
        )
