"""Audit: data and graphs in, a verdict with its numbers out; no model."""

from typing import Any

import streamlit as st

from app import audits, services, state, texts
from app.app_pages.audit_verdict import verdict_panel
from app.app_pages.data_source import EXAMPLE, FOLDER, UPLOAD, choose_data_source, data_kinds
from app.app_pages.lab_open import graph_fields
from app.audits import Report
from app.background import alone
from app.session_graphs import graph_as_edited, graph_name
from app.texts import listed, sentences, t
from app.view_models import audit as view
from app.view_models.html import markdown
from app.view_models.styles import CSS
from kbert_core import InjectionOptions, KBertError, join_graphs
from kbert_core.data.labelled import SPLITS
from kbert_core.data.sources import TASKS
from kbert_core.experiments.audit import MAX_LENGTH
from kbert_core.experiments.audit_values import Data

ss = st.session_state
KEEP: dict[str, Any] = {"persist_state": "session"}
AUTO = "auto"
PLOTLY: dict[str, Any] = {"displayModeBar": False}


def page() -> None:
    """Input, work, view, top to bottom."""
    begin()
    st.html(CSS)
    st.subheader(t("audit.title"), anchor=False)
    st.caption(t("audit.what"))
    left, right = st.columns([5, 6], gap="large")
    with left:
        choose_data()
    with right:
        choose_graphs()
    pressed = st.button(
        t("audit.button"), key="audit.button", type="primary", icon=":material/fact_check:"
    )
    if pressed or "audit.shown" not in ss or problem_in_another_language():
        count()
    chosen, report, problem, _ = ss["audit.shown"]
    if chosen != choices():
        st.info(t("audit.stale" if report else "audit.ready"), icon=":material/update:")
    elif problem:
        kind, text = problem
        (st.error if kind == "error" else st.info)(markdown(text))
    if report is not None:
        show(report)


def begin() -> None:
    """Fill a new session, and mend what no longer fits."""
    state.begin()
    if "audit.graphs" not in ss:
        ss["audit.graphs"] = [services.demo_graph("medical_zh").fingerprint]
    ss["audit.graphs"] = [name for name in ss["audit.graphs"] if name in ss["lab.graphs"]]
    for key, value in {
        "audit.data": EXAMPLE,
        "audit.folder": "",
        "audit.task": AUTO,
        "audit.max_triples": InjectionOptions().max_triples,
        "audit.tail_only": False,
        "audit.max_length": MAX_LENGTH,
    }.items():
        ss.setdefault(key, value)
    if ss["audit.data"] not in data_kinds():
        ss["audit.data"] = EXAMPLE


# What is audited


def choose_data() -> None:
    """The example, a folder, or files."""
    chosen = choose_data_source("audit", t("audit.data"))
    if chosen == UPLOAD:
        st.caption(t("audit.upload_help", most=st.get_option("server.maxUploadSize")))
        for split in SPLITS:
            st.file_uploader(
                t(f"audit.upload_{split}"), type=audits.UPLOADS, key=f"audit.upload_{split}"
            )
    elif chosen == EXAMPLE:
        st.caption(t("audit.example_note"))


def choose_graphs() -> None:
    """The graphs of this session, more by upload or path, and how they are injected."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        st.multiselect(
            t("audit.graphs"),
            list(ss["lab.graphs"]),
            key="audit.graphs",
            format_func=graph_name,
            placeholder=t("audit.graphs_placeholder"),
            help=t("audit.graphs_help"),
            **KEEP,
        )
        open_graph()
    problem = ss.pop("audit.graph_problem", None)
    if problem:
        st.error(f"**{t('open.failed_title')}**")
        st.code(problem, language=None, wrap_lines=True)
    with st.expander(t("audit.options")):
        one, two = st.columns(2, gap="medium")
        with one:
            st.selectbox(
                t("audit.task"),
                [AUTO, *TASKS],
                key="audit.task",
                format_func=lambda task: t(f"audit.task{'_' if task == AUTO else '.'}{task}"),
                **KEEP,
            )
            st.number_input(t("audit.max_length"), 8, 100_000, key="audit.max_length", **KEEP)
        with two:
            st.number_input(
                t("options.max_triples"),
                1,
                20,
                key="audit.max_triples",
                help=t("options.max_triples_help"),
                **KEEP,
            )
            st.checkbox(t("options.tail_only"), key="audit.tail_only", **KEEP)


def open_graph() -> None:
    """Upload a graph, or name its path."""
    with st.popover("", icon=":material/folder_open:", help=t("open.graph"), key="audit.open"):
        st.markdown(f"**{t('open.graph')}**")
        st.caption(t("open.format"))
        upload = f"audit.graph_upload.{ss.get('audit.uploads', 0)}"
        graph_fields("audit", upload, take_upload, take_path)


def take_upload() -> None:
    """Callback: put an uploaded graph into the session, and choose it."""
    file = ss.get(f"audit.graph_upload.{ss.get('audit.uploads', 0)}")
    if file is not None:
        ss["audit.uploads"] = ss.get("audit.uploads", 0) + 1
        take(lambda: services.read_upload(file.getvalue(), file.name))


def take_path() -> None:
    """Callback: put a graph of this machine into the session, and choose it."""
    path = ss.get("audit.path", "").strip()
    if path and services.may_open_paths():
        take(lambda: services.open_graph(path))


def take(opened: Any) -> None:
    """Keep a graph beside the Lab's, or say why it can't be opened."""
    try:
        name = state.take_graph(opened(), choose=False)
    except KBertError as error:
        ss["audit.graph_problem"] = str(error)
        return
    if name not in ss["audit.graphs"]:
        ss["audit.graphs"] = [*ss["audit.graphs"], name]


def choices() -> tuple[object, ...]:
    """All that the report depends on, as far as it is known without reading."""
    files = tuple(
        file.file_id if (file := ss.get(f"audit.upload_{split}")) else None for split in SPLITS
    )
    data = {FOLDER: ss["audit.folder"].strip(), UPLOAD: files}.get(ss["audit.data"])
    graphs = tuple(graph_as_edited(name).fingerprint for name in ss["audit.graphs"])
    names = ("task", "max_triples", "tail_only", "max_length")
    return (ss["audit.data"], data, graphs, *(ss[f"audit.{name}"] for name in names))


# Counting


def count() -> None:
    """Make the report, or say what is missing or wrong; the page keeps it."""
    report, problem = None, None
    if not ss["audit.graphs"]:
        problem = ("missing", t("audit.no_graph"))
    elif ss["audit.data"] == FOLDER and not ss["audit.folder"].strip():
        problem = ("missing", t("audit.no_folder"))
    elif ss["audit.data"] == UPLOAD and ss.get("audit.upload_train") is None:
        problem = ("missing", t("audit.no_train"))
    else:
        try:
            with st.spinner(t("audit.working")), alone:
                report = made()
        except KBertError as error:
            problem = ("error", str(error))
    ss["audit.shown"] = (choices(), report, problem, texts.language_of())


def problem_in_another_language() -> bool:
    """Whether the problem kept was worded for somebody who now reads another language."""
    _, _, problem, language = ss["audit.shown"]
    return problem is not None and language != texts.language_of()


def made() -> Report:
    """Read the data and audit it."""
    graphs = [graph_as_edited(name) for name in ss["audit.graphs"]]
    graph = graphs[0] if len(graphs) == 1 else join_graphs(graphs)
    options = InjectionOptions(int(ss["audit.max_triples"]), bool(ss["audit.tail_only"]))
    return audits.audited(data(), graph, options, int(ss["audit.max_length"]))


def data() -> Data:
    """The data set chosen."""
    task = None if ss["audit.task"] == AUTO else ss["audit.task"]
    if ss["audit.data"] == FOLDER:
        return audits.folder(ss["audit.folder"], task)
    if ss["audit.data"] == UPLOAD:
        files = {split: ss.get(f"audit.upload_{split}") for split in SPLITS}
        given = {
            split: (file.name, file.getvalue()) for split, file in files.items() if file is not None
        }
        return audits.uploaded(given, t("audit.data_upload"), task)
    return audits.folder(str(audits.EXAMPLE), task)


# What is shown


def show(report: Report) -> None:
    """The verdict, then what led to it."""
    verdict_panel(report, "audit")
    audit = report.audit
    left, right = st.columns([5, 6], gap="large")
    with left:
        known_panel(report)
        heading("splits")
        table(view.splits_table(audit))
        table(view.leaks_table(audit))
        st.caption(markdown(t("audit.conflicts", share=view.share_text(audit.conflicts.texts))))
        mixed = view.mixed_texts(audit)
        if mixed:
            st.code("\n".join(mixed), language=None, wrap_lines=True)
    with right:
        answers_panel(report)
        dictionary = view.dictionary_table(audit)
        if dictionary is not None:
            heading("dictionary")
            table(dictionary)
            learnt = (f"{tail} → {label}" for tail, label in audit.tail_labels.items())
            tails = listed(learnt) or t("audit.dictionary_nothing")
            st.caption(markdown(t("audit.dictionary_note", tails=tails)))
        heading("lengths")
        table(view.lengths_table(audit))
        heads_panel(report)


def known_panel(report: Report) -> None:
    """Gold mentions by label."""
    audit = report.audit
    mentions = view.mentions_table(audit)
    if mentions is None:
        return
    heading("known")
    chart = view.coverage_chart(audit)
    if chart is not None:
        st.caption(t("audit.chart.coverage", split=view.split_name(audit.held_out)))
        st.plotly_chart(chart, key="audit.coverage", config=PLOTLY)
    table(mentions)


def answers_panel(report: Report) -> None:
    """Whether the graph was made from the annotations."""
    audit = report.audit
    names = view.names_table(audit)
    if names is None:
        return
    heading("answers")
    chart = view.groups_chart(audit)
    if chart is not None:
        what = t("audit.chart.type" if audit.ambiguity.relation else "audit.chart.relation")
        st.caption(t("audit.chart.groups", what=what))
        st.plotly_chart(chart, key="audit.groups", config=PLOTLY)
    table(names)
    st.caption(view.gold_heads(audit))
    st.caption(t("audit.answers_note"))


def heads_panel(report: Report) -> None:
    """How clearly the graph says what its heads are."""
    heads = report.audit.ambiguity
    heading("ambiguous")
    if heads.relation is None:
        said = [t("audit.heads_none")]
    else:
        said = [t("audit.heads", share=view.share_text(heads.several), relation=heads.relation)]
    if heads.several_labels is not None:
        said.append(t("audit.heads_labels", share=view.share_text(heads.several_labels)))
    st.caption(markdown(sentences(said)))
    table(view.ambiguous_table(report.audit))
    homonyms = view.homonyms_table(report.audit)
    if homonyms is not None:
        st.caption(markdown(view.homonyms(report.audit)))
        table(homonyms)


def heading(name: str) -> None:
    """The title of a part."""
    st.markdown(f"#### {t('audit.section.' + name)}")


def table(made: view.Table | None) -> None:
    """A small table, if there is one."""
    if made is not None:
        st.html(view.table_html(made))


page()
