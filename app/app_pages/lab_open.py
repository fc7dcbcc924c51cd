"""Opening graphs and models: by upload, by path, from their public home."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from app import services, state
from app.app_pages.parts import action
from app.services import OpenedGraph
from kbert_core import KBertError, KnowledgeGraph
from kbert_core.errors import CheckpointError
from kbert_core.knowledge.io import JSON, PACKED
from kbert_core.knowledge.io.sources import RDF
from kbert_lab.lab.commands import ChooseGraph
from kbert_lab.lab.share import Waits
from kbert_lab.lab.texts import N_, listed, refusal, sentences, t
from kbert_lab.lab.views import model_facts
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.importing import ENCODINGS
from kbert_lab.lab.words import TASK_TEXTS

OPEN = {  # what may be opened: the button, and the dialog's title
    "graph": (N_("Open a graph…"), N_("Open a knowledge graph")),
    "model": (N_("Open a model…"), N_("Open your own model")),
}
UNCHANGED = N_("Not opened, and nothing was changed.")
SHOWN = 20  # bad lines

ss = st.session_state


def open_graph_button() -> None:
    """Open a graph in a dialog: upload, path or fetch."""
    _button("graph")


def open_model_button() -> None:
    """Open a model in a dialog: a folder typed as a path, where this machine is the visitor's."""
    if services.may_open_paths():
        _button("model")


def _button(what: str) -> None:
    asked = partial(ss.update, {"lab.asking": what})
    action(t(OPEN[what][0]), f"lab.open_{what}", asked, icon="folder_open")


def open_dialog() -> None:
    """The dialog that was asked for, by a button of this page or of another; each page draws it."""
    what = ss.get("lab.asking")
    if what is None:
        return

    @st.dialog(t(OPEN[what][1]), width="medium", on_dismiss=_close)
    def dialog() -> None:
        if ss.get("lab.asking") is None:
            st.rerun()  # it is opened: the whole page is another
        (_model_form if what == "model" else open_graph_form)()

    dialog()


def _close() -> None:
    for name in ("asking", "refused"):
        ss.pop(f"lab.{name}", None)


def graph_upload(key: str, triples: int, **how: Any) -> Any:
    """Upload a file of triples.

    Args:
        key: of the upload.
        triples: how many it may have.
        how: more of ``st.file_uploader``.
    """
    most = st.get_option("server.maxUploadSize")
    said = N_("Upload a file of at most {most} MB and {triples} triples")
    help = t(
        "One triple a line: head, relation, tail, separated by tabs (.spo, .tsv, .txt); or a table "
        "with commas (.csv), JSON Lines ({json}) or RDF ({rdf}). Each may be packed ({packed}).",
        **{"json": listed(JSON), "rdf": listed(RDF), "packed": listed(PACKED)},
    )
    label = t(said, most=most, triples=f"{triples:,}")
    return st.file_uploader(label, type=services.GRAPH_ENDINGS, key=key, help=help, **how)


def choose_encoding(key: str, **how: Any) -> str:
    """The encoding of a file, where it doesn't say it itself."""
    called = lambda name: name or t("UTF-8, or as the file says")  # noqa: E731
    label = t("Encoding of the file")
    return st.selectbox(label, ENCODINGS, key=key, format_func=called, **how)


def open_graph_form(*, empty: bool = True) -> None:
    """An upload, and a path where this machine is the visitor's own; why the last was refused.

    With ``empty`` also one of no triple.
    """
    _refused()
    number = ss.get("lab.uploads", 0)
    graph_upload(f"lab.upload.{number}", services.most_uploaded(), on_change=_take_upload)
    if services.may_open_paths():
        said = N_(
            "At most {most} MB. A graph file (.kg) made with `kbert kg import` may have any size."
        )
        with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
            st.text_input(
                t("Or a file on this machine"),
                key="lab.path",
                placeholder=t("/path/to/Medical.spo"),
                help=t(said, most=services.MOST_BYTES >> 20),
            )
            action(t("Open the file"), "lab.open_path", _take_path)
    choose_encoding("lab.encoding")
    with st.container(horizontal=True, gap="xsmall"):
        for name in state.public_graphs():
            said = t("Download {name}", name=services.public_title(name))
            action(said, f"lab.fetch_{name}", _fetch, name, icon="download")
        if empty:
            none = OpenedGraph(KnowledgeGraph(name=t("new graph")))
            action(t("Begin with an empty graph"), "lab.open_empty", _taken, none)
        chosen = state.session().graph
        if empty and state.may_close(chosen):
            said = markdown(t("Close {name}", name=state.base().name))
            help = t("Forgets the graph and the edits made to it in this visit.")
            action(said, "lab.close_graph", _close_graph, chosen, icon="close", help=help)


def _model_form() -> None:
    _refused()
    st.text_input(
        t("A folder with config.json, weights and tokenizer, or an adapter's folder"),
        key="lab.model_path",
        placeholder=t("/path/to/my-model"),
    )
    action(t("Open the model"), "lab.open_model_path", _take_model)


def _refused() -> None:
    """Say why the last one was not opened, and offer what of it is right."""
    if "lab.refused" not in ss:
        return
    title, text, right = ss["lab.refused"]
    st.error(f"**{title}**")
    st.code(text, language=None, wrap_lines=True)
    if right is not None:
        said = t("Use the lines that are right ({count})", count=f"{len(right.graph):,}")
        action(said, "lab.right_lines", _open, lambda **_: right, type="primary")


def show_opened() -> None:
    """Say what was opened: once, above the panels."""
    text, doubts, problems = ss.pop("lab.opened", ("", (), ()))
    if text:
        st.success(markdown(text))
    for doubt in doubts:
        st.warning(markdown(doubt))
    if problems:
        st.warning(t("{count} bad lines were left out:", count=len(problems)))
        rest = [f"… {len(problems) - SHOWN}"] if len(problems) > SHOWN else []
        st.code("\n".join([*problems[:SHOWN], *rest]), language=None, wrap_lines=True)


def _open(do: Callable[..., OpenedGraph], title: str = UNCHANGED, name: str = "") -> bool:
    """Open a graph, or keep why it can't be; with its other lines, where single ones are bad.

    Args:
        do: what opens it; of a file its lines that are right alone, if ``skip_bad``.
        title: of the reason.
        name: its id, if it has one.
    """
    ss.pop("lab.refused", None)
    try:
        _taken(do(), name)
        return True
    except KBertError as error:
        ss["lab.refused"] = (t(title), refusal(error), None)
    if title == UNCHANGED:
        with suppress(KBertError):
            right = do(skip_bad=True)
            if right.problems:
                ss["lab.refused"] = (*ss["lab.refused"][:2], right)
    return False


def _read(do: Callable[..., OpenedGraph], *given: object) -> None:
    """Read a file."""
    with st.spinner(t("Reading the file …"), show_time=True):
        _open(partial(do, *given, encoding=ss.get("lab.encoding", "")))


def _take_upload() -> None:
    file = ss.get(f"lab.upload.{ss.get('lab.uploads', 0)}")
    if file is not None:
        ss["lab.uploads"] = ss.get("lab.uploads", 0) + 1
        _read(services.read_upload, file.getvalue(), file.name)


def _take_path() -> None:
    path = ss.get("lab.path", "").strip()
    if path and services.may_open_paths():
        _read(services.open_graph, path)


def choose_graph(chosen: str) -> None:
    """Choose a graph of the session; a public graph is fetched first."""
    if chosen in state.public_graphs():
        _fetch(chosen)
    else:
        state.dispatch(ChooseGraph(chosen))


def _fetch(name: str) -> None:
    title = services.public_title(name)
    with st.spinner(t("Downloading {name} …", name=title)):
        problem = t("{name} could not be fetched.", name=title)
        if not _open(partial(services.fetch_graph, name), problem, name):
            ss["lab.asking"] = "graph"  # where the reason is said, beside other ways


def _taken(opened: OpenedGraph, name: str = "") -> None:
    graph, before = opened.graph, state.session()
    ss["lab.try"] = state.take_graph(opened, name=name)
    ss["lab.drawer"] = False  # what is tried next stands below it
    if not isinstance(state.session().arrival, Waits):
        state.put(state.offer().opened(state.session(), before))
    text = t("Opened {name}: {count} triples.", name=graph.name, count=f"{len(graph):,}")
    if opened.repeated:
        text = sentences([text, t("{count} repeated lines were left out.", count=opened.repeated)])
    _said(text, opened.doubts, opened.problems)


def _close_graph(name: str) -> None:
    state.close_graph(name)
    _close()


def _take_model() -> None:
    path = ss.get("lab.model_path", "").strip()
    if not path or not services.may_open_paths():
        return
    folder = os.path.abspath(Path(path).expanduser())
    try:
        services.pipeline(folder, state.session().device)
        if problem := services.model_info(folder).problem:
            raise CheckpointError(problem)
    except KBertError as error:
        ss["lab.refused"] = (t(UNCHANGED), refusal(error), None)
        return
    state.take_model(folder)
    info, task = services.model_info(folder), t(TASK_TEXTS[state.session().task])
    facts = model_facts.facts(info)
    _said(t("Opened {name}: {task}. {facts}", name=info.name, task=task, facts=facts))


def _said(text: str, doubts: Sequence[str] = (), problems: Sequence[str] = ()) -> None:
    """Close the dialog, and keep what is said of what it opened."""
    ss["lab.opened"] = (text, tuple(map(refusal, doubts)), tuple(map(refusal, problems)))
    _close()
