"""What the page A whole file reads: texts, model, graph, and how they are read."""

from dataclasses import replace

import streamlit as st

from app import audits, services, state
from app.app_pages.data_source import EXAMPLE, UPLOAD, choose_data_source, data_kinds
from app.file_runs import MOST_TEXTS, FileSetup
from app.session_graphs import graph_as_edited, graph_name
from app.state import KEEP
from app.texts import t
from app.view_models.html import markdown
from kbert_core import KBertError
from kbert_core.data.sources import TASKS
from kbert_core.experiments.audit_values import Data

ss = st.session_state
AUTO = "auto"
FIRST = ("dev", "test", "train")  # the split that is read unless told otherwise


def choose() -> FileSetup | None:
    """Draw the choosers; None where something is missing or wrong, which is said."""
    begin()
    left, right = st.columns([5, 6], gap="large")
    with left:
        choose_data()
        data = read()
        split = choose_split(data) if data is not None else ""
    with right:
        made = choose_reader(data, split) if data is not None else None
    return made


def begin() -> None:
    """Fill a new session, and mend what no longer fits."""
    for key, value in {
        "whole_file.data": EXAMPLE,
        "whole_file.folder": "",
        "whole_file.task": AUTO,
        "whole_file.graph": ss["lab.graph"],
    }.items():
        ss.setdefault(key, value)
    if ss["whole_file.data"] not in data_kinds():
        ss["whole_file.data"] = EXAMPLE
    if ss["whole_file.graph"] not in ss["lab.graphs"]:
        ss["whole_file.graph"] = ss["lab.graph"]


# Texts


def choose_data() -> None:
    """The example, a folder, or a file."""
    chosen = choose_data_source("whole_file", t("file.data"))
    if chosen == UPLOAD:
        st.caption(t("audit.upload_help", most=st.get_option("server.maxUploadSize")))
        st.file_uploader(t("file.upload_file"), type=audits.UPLOADS, key="whole_file.train")
    elif chosen == EXAMPLE:
        st.caption(t("file.example_note"))


def read() -> Data | None:
    """The data set chosen; what is missing or wrong is said."""
    task = None if ss["whole_file.task"] == AUTO else ss["whole_file.task"]
    try:
        if ss["whole_file.data"] == EXAMPLE:
            return audits.folder(str(audits.EXAMPLE), task)
        if ss["whole_file.data"] == UPLOAD:
            return uploaded(task)
        if ss["whole_file.folder"].strip():
            return audits.folder(ss["whole_file.folder"], task)
    except KBertError as error:
        st.error(markdown(error))
        choose_task()
        return None
    st.info(t("file.no_folder"))
    return None


def uploaded(task: str | None) -> Data | None:
    """The uploaded file; it is kept when the visitor goes to another page and comes back.

    Raises:
        KBertError: it can't be read.
    """
    file = ss.get("whole_file.train")
    kept: tuple[object, Data] | None = ss.get("whole_file.kept")
    if file is None:
        if kept is None:
            st.info(t("file.no_upload"))
            return None
        st.caption(markdown(t("file.upload_kept", name=kept[1].name)))
        return kept[1]
    key = (task, file.file_id)
    if kept is None or kept[0] != key:
        data = audits.uploaded({"train": (file.name, file.getvalue())}, file.name, task)
        kept = ss["whole_file.kept"] = (key, data)
    return kept[1]


def choose_split(data: Data) -> str:
    """Which of the splits is read."""
    names = [name for name in FIRST if name in data.splits]
    if ss.get("whole_file.split") not in names:
        ss["whole_file.split"] = names[0] if ss["whole_file.data"] != UPLOAD else "train"
    if ss["whole_file.data"] == UPLOAD:
        return "train"
    st.segmented_control(
        t("file.split"),
        names,
        key="whole_file.split",
        format_func=lambda name: t(
            "file.split_option",
            split=t(f"audit.split.{name}"),
            count=f"{len(data.splits[name]):,}",
        ),
        required=True,
        **KEEP,
    )
    chosen: str = ss["whole_file.split"]
    if len(data.splits[chosen]) > MOST_TEXTS:
        of = f"{len(data.splits[chosen]):,}"
        st.caption(markdown(t("file.many", of=of, most=f"{MOST_TEXTS:,}")))
    return chosen


# What reads them


def choose_reader(data: Data, split: str) -> FileSetup | None:
    """Model, graph, and how triples are injected."""
    models = state.models_for(data.task)
    if not models:
        st.info(markdown(t("file.no_model", task=t(f"audit.task.{data.task}"))))
        choose_task()
        return None
    if ss.get("whole_file.model") not in models:
        ss["whole_file.model"] = (
            ss["lab.model"] if ss["lab.model"] in models else next(iter(models))
        )
        as_trained()
    graphs = {name: graph_name(name) for name in ss["lab.graphs"]}
    one, two = st.columns(2)
    with one:
        st.selectbox(
            t("file.model"),
            list(models),
            key="whole_file.model",
            format_func=lambda path: models.get(path, path),
            on_change=as_trained,
            **KEEP,
        )
    with two:
        st.selectbox(
            t("file.graph"),
            list(graphs),
            key="whole_file.graph",
            format_func=lambda name: graphs.get(name, name),
            help=t("file.graph_help"),
            **KEEP,
        )
    with st.expander(t("file.options")):
        choose_task()
        first, second = st.columns(2, vertical_alignment="bottom")
        with first:
            st.number_input(
                t("options.max_triples"),
                0,
                state.most_triples(ss["whole_file.model"]),
                key="whole_file.max_triples",
                help=t("options.max_triples_help"),
                **KEEP,
            )
        with second:
            if services.model_info(ss["whole_file.model"]).has_trees:
                st.checkbox(t("options.tail_only"), key="whole_file.tail_only", **KEEP)
        st.caption(t("file.as_trained"))
    return setup_of(data, split)


def choose_task() -> None:
    """What kind of data it is, where its looks don't tell."""
    st.selectbox(
        t("audit.task"),
        [AUTO, *TASKS],
        key="whole_file.task",
        format_func=lambda task: t(f"audit.task{'_' if task == AUTO else '.'}{task}"),
        **KEEP,
    )


def as_trained() -> None:
    """Callback: take the options the model was trained with."""
    options, _ = state.options_of(ss["whole_file.model"])
    ss["whole_file.max_triples"] = options.max_triples
    ss["whole_file.tail_only"] = options.tail_only


def setup_of(data: Data, split: str) -> FileSetup:
    """All that was chosen."""
    model, name = ss["whole_file.model"], ss["whole_file.graph"]
    options, ablation = state.options_of(model)
    options = replace(
        options,
        max_triples=int(ss["whole_file.max_triples"]),
        tail_only=bool(ss["whole_file.tail_only"]),
    )
    graph = graph_as_edited(name)
    key = (
        id(data),
        split,
        model,
        services.stamp(model),
        graph.fingerprint,
        options,
        ablation,
    )
    uploaded = ss["whole_file.data"] == UPLOAD
    return FileSetup(data, split, model, name, graph, options, ablation, key, uploaded)
