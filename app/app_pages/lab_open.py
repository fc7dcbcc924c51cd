"""Opening graphs and models: by upload, by path, from their public home."""

import os
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app import services, state
from app.services import OpenedGraph
from app.texts import sentences, t
from app.view_models import model_facts
from app.view_models.html import markdown
from kbert_core import KBertError, KnowledgeGraph

ss = st.session_state
SHOWN = 20


def open_graph_popover() -> None:
    """Upload, path or fetch."""
    with st.popover("", icon=":material/folder_open:", help=t("open.graph"), key="lab.open_graph"):
        st.markdown(f"**{t('open.graph')}**")
        open_graph_form()


def graph_fields(
    page: str, upload: str, take_upload: Callable[[], None], take_path: Callable[[], None]
) -> None:
    """An upload, and a path where this machine is the visitor's own.

    Args:
        page: with which the keys of the path and its button begin.
        upload: key of the upload.
        take_upload, take_path: callbacks.
    """
    st.file_uploader(
        t("open.upload", most=st.get_option("server.maxUploadSize")),
        type=services.GRAPH_ENDINGS,
        key=upload,
        on_change=take_upload,
    )
    if services.may_open_paths():
        st.text_input(
            t("open.path"),
            key=f"{page}.path",
            placeholder=t("open.path_placeholder"),
            help=t("open.path_help", most=services.MOST_BYTES >> 20),
        )
        st.button(t("open.path_button"), key=f"{page}.open_path", on_click=take_path)


def open_graph_form(*, empty: bool = True) -> None:
    """The fields of it; with ``empty`` also a graph without triples."""
    st.caption(t("open.format"))
    st.checkbox(t("open.skip_bad"), key="lab.skip_bad")
    graph_fields("lab", f"lab.upload.{ss.get('lab.uploads', 0)}", _take_upload, _take_path)
    if empty:
        st.button(t("open.empty"), key="lab.open_empty", on_click=_take_empty)
    if state.public_graphs():
        st.markdown(t("open.fetch"))
    for name in state.public_graphs():
        st.button(
            t("open.fetch_button", name=services.public_title(name)),
            key=f"lab.fetch_{name}",
            on_click=_fetch,
            args=(name,),
        )
    chosen = ss["lab.graph"]
    if empty and state.may_close(chosen):
        st.button(
            markdown(t("room.close", name=ss["lab.graphs"][chosen].name)),
            key="lab.close_graph",
            icon=":material/close:",
            help=t("room.close_help"),
            on_click=state.close_graph,
            args=(chosen,),
        )


def open_model_popover() -> None:
    """A folder typed as a path."""
    if not services.may_open_paths():
        return
    with st.popover("", icon=":material/folder_open:", help=t("open.model"), key="lab.open_model"):
        st.markdown(f"**{t('open.model')}**")
        st.text_input(
            t("open.model_path"), key="lab.model_path", placeholder=t("open.model_placeholder")
        )
        st.button(t("open.model_button"), key="lab.open_model_path", on_click=_take_model)


def show_opened() -> None:
    """Say what became of the last file opened: once, above the panels."""
    message = ss.pop("lab.opened", None)
    if message is None:
        return
    kind, text, problems = message
    if kind != "ok":
        failed = "open.model_failed" if kind == "model" else "open.failed_title"
        st.error(f"**{t(failed)}**")
        shown = text.split("\n")
    else:
        st.success(markdown(text))
        shown = [*problems[:SHOWN]]
        if len(problems) > SHOWN:
            shown.append(f"… {len(problems) - SHOWN}")
        if problems:
            st.warning(t("open.skipped", count=len(problems)))
    if shown:
        st.code("\n".join(shown), language=None, wrap_lines=True)


def _take_upload() -> None:
    file = ss.get(f"lab.upload.{ss.get('lab.uploads', 0)}")
    if file is None:
        return
    ss["lab.uploads"] = ss.get("lab.uploads", 0) + 1
    try:
        _taken(
            services.read_upload(file.getvalue(), file.name, skip_bad=ss.get("lab.skip_bad", False))
        )
    except KBertError as error:
        ss["lab.opened"] = ("error", str(error), ())


def _take_empty() -> None:
    state.take_graph(OpenedGraph(KnowledgeGraph(name=t("open.empty_name"))))


def _take_path() -> None:
    path = ss.get("lab.path", "").strip()
    if not path or not services.may_open_paths():
        return
    try:
        opened = services.open_graph(path, skip_bad=ss.get("lab.skip_bad", False))
    except KBertError as error:
        ss["lab.opened"] = ("error", str(error), ())
        return
    _taken(opened)


def choose_graph() -> None:
    """Callback of the graph chooser; a public graph is fetched first."""
    chosen = ss["lab.graph"]
    if chosen in state.public_graphs():
        ss["lab.graph"] = ss["lab.graph_before"]
        _fetch(chosen)


def _fetch(name: str) -> None:
    try:
        with st.spinner(t("open.fetching", name=services.public_title(name))):
            opened = services.fetch_graph(name)
    except KBertError as error:
        ss["lab.opened"] = ("error", str(error), ())
    else:
        ss["lab.fetched"] = {**ss.get("lab.fetched", {}), name: opened.graph.fingerprint}
        _taken(opened)


def _taken(opened: OpenedGraph) -> None:
    graph = opened.graph
    state.take_graph(opened)
    text = t("open.opened", name=graph.name, count=f"{len(graph):,}")
    if opened.repeated:
        text = sentences([text, t("open.repeated", count=opened.repeated)])
    ss["lab.opened"] = ("ok", text, opened.problems)


def _take_model() -> None:
    path = ss.get("lab.model_path", "").strip()
    if not path or not services.may_open_paths():
        return
    folder = os.path.abspath(Path(path).expanduser())
    try:
        services.pipeline(folder, ss["lab.device"])
    except KBertError as error:
        ss["lab.opened"] = ("model", str(error), ())
        return
    state.take_model(folder)
    info = services.model_info(folder)
    title = state.task_title(ss["lab.task"])
    said = model_facts.facts(info) if info.card.task else t("facts.encoder")
    text = t("open.model_opened", name=info.name, task=title, facts=said)
    ss["lab.opened"] = ("ok", text, ())
