"""Data: a labelled file, a graph and a model in; which predictions the graph changes out."""

from functools import partial
from typing import Any

import streamlit as st

from app import audits, services, state
from app.app_pages.lab_open import choose_encoding, open_dialog, open_graph_button, show_opened
from app.app_pages.long_run import begin, follow, forget
from app.app_pages.parts import HEAD, ROW, action, select, table
from app.audits import FileSetup
from app.background import Look
from app.state import graph_label
from kbert_core import KBertError
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import data as view
from kbert_lab.lab.views.html import CSS, markdown
from kbert_lab.lab.words import AUDIT_SPLIT, TASK_TEXTS
from kbert_lab.study.audit_values import Data
from kbert_lab.study.verdict import Level, Report
from kbert_lab.study.whole_file import FileRow, WholeFile

LEVELS = {
    Level.WARNING: (":material/warning:", "orange", N_("Warning")),
    Level.NOTE: (":material/info:", "blue", N_("Note")),
    Level.GOOD: (":material/check_circle:", "green", N_("Fine")),
}
AUDITED = ("ner", "classify", "multilabel", "pair", "rank")  # tasks

ss = st.session_state
FIRST = ("dev", "test", "train")  # the split that is read
RUN, SETUP, READ = "data.run", "data.setup", "data.read"
TALL = 420  # pixels of the list of texts


def page() -> None:
    """Input, work, view, top to bottom."""
    state.begin()
    st.html(CSS)
    said = N_(
        "Labelled texts, a graph and a model: what can the graph add, and which predictions does "
        "it change? A text of the list opens in the Lab."
    )
    st.caption(t(said))
    open_dialog()
    show_opened()
    left, right = st.columns([5, 6], gap="large")
    with left:
        data = choose_data()
    with right:
        setup = choose_reader(data) if data is not None else None
    disabled = setup is None
    pressed = st.button(t("Count and read"), key="data.go", type="primary", disabled=disabled)
    if setup is not None and (pressed or "data.begun" not in ss):
        ss["data.begun"] = True
        start(setup)
    if RUN in ss:
        of: FileSetup = ss[SETUP]
        if setup is not None and setup.key != of.key:
            st.info(t("These results are for the earlier choice."), icon=":material/update:")
        follow(ss[RUN][1], partial(show, of), key="data")


# Texts, graph and model


def choose_data() -> Data | None:
    """A visitor's files, else the example; what is wrong with them is said."""
    said = N_(
        "Tab-separated, with a header: label and text_a, for pairs also text_b. For named "
        "entities text_a holds tokens and label as many BIO tags, both separated by single "
        "spaces; or a line holds one token and its tag."
    )
    st.file_uploader(
        t("A labelled file; or several, named train, dev and test"),
        type=audits.UPLOADS,
        accept_multiple_files=True,
        key="data.files",
        on_change=take_files,
        help=t(said),
    )
    read: Data | KBertError = ss.get(READ) or audits.example()
    if READ in ss:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
            names = {"": N_("as the file looks"), **{task: TASK_TEXTS[task] for task in AUDITED}}
            how: dict[str, Any] = {"on_change": take_files, "width": 220}
            select(t("Task"), list(names), "data.task", lambda own: t(names[own]), **how)
            choose_encoding("data.encoding", **how)
            action(t("Back to the example"), "data.back", back, icon="undo")
    else:
        said = N_(
            "Until you choose one: 31 invented clinical sentences in Chinese that come with the "
            "app, too few to conclude anything from. Two of them leak on purpose."
        )
        st.caption(t(said))
    if isinstance(read, KBertError):
        st.error(markdown(read))
        return None
    return read


def back() -> None:
    """Let go of the files; those of a visit before to this page too."""
    forget(RUN)
    ss.pop(READ, None)


def take_files() -> None:
    """Callback: read the files that are there now; one that was taken out is gone."""
    back()
    given = [(file.name, file.getvalue()) for file in ss["data.files"]]
    try:
        if given:
            how = ss.get("data.task") or None, ss.get("data.encoding") or ""
            ss[READ] = audits.uploaded(given, *how)
    except KBertError as error:
        ss[READ] = error


def choose_reader(data: Data) -> FileSetup:
    """With which graph, and by which model, a split is read."""
    split = next(name for name in FIRST if name in data.splits)
    graphs, own = list(state.session().graphs), "medical_zh"
    if "lab.opened" in ss:
        ss["data.graph"] = state.session().graph
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        graph = select(t("Knowledge graph"), graphs, "data.graph", graph_label, own)
        open_graph_button()
    models, model = state.offer().names(data.task), ""
    if models:
        text = data.splits[split][0].sentences[0]
        able = [path for path in models if services.model_info(path).knows(text)] or [*models]
        first = state.session().model if state.session().model in able else able[0]
        model = select(t("Model"), list(models), "data.model", lambda own: models[own], first)
    else:
        said = N_(
            "There is no model here for this task ({task}), so the data are counted only. Open a "
            "model in the Lab to read them."
        )
        st.info(markdown(t(said, task=t(TASK_TEXTS[data.task]))))
    return FileSetup(data, split, model, graph, state.session().graph_now(graph))


def start(setup: FileSetup) -> None:
    """Count and read in the background; whatever ran before is stopped."""
    try:
        pipeline = services.pipeline(setup.model, state.session().device) if setup.model else None
        ss[SETUP] = setup
        begin(RUN, (), partial(audits.steps, setup, pipeline))
    except KBertError as error:
        st.error(markdown(error))


# What was found


def show(setup: FileSetup, look: Look[Report | FileRow]) -> None:
    """What the graph does to the predictions, once they are there; what was counted."""
    rows = tuple(own for own in look.results if isinstance(own, FileRow))
    if rows and look.ended:
        show_rows(setup, WholeFile(setup.data.task, setup.graph.name, rows, len(rows)))
    for report in look.results[:1]:
        if isinstance(report, Report):
            show_report(report)


def show_rows(setup: FileSetup, found: WholeFile) -> None:
    """What the predictions add up to, and the texts where the graph changes one."""
    changed, info = view.changed(found), services.model_info(setup.model)
    counts = {
        t("Texts"): len(found.rows),
        t("With a triple"): len(found.with_knowledge),
        t("Prediction changed"): len(changed),
        t("Helped"): found.whole.helped,
        t("Hurt"): found.whole.hurt,
    }
    with st.container(border=True, key="data_summary"):
        st.markdown(f"#### {markdown(view.say_whole(found))}")
        with st.container(horizontal=True, gap="medium"):
            for name, count in counts.items():
                st.metric(name, f"{count:,}", width="content")
        said = t(
            "{data}, {split}: {count} of {total} texts read by {model} with {graph}.",
            data=setup.data.name,
            split=t(AUDIT_SPLIT[setup.split]),
            count=f"{len(found.rows):,}",
            total=f"{len(setup.data.splits[setup.split]):,}",
            model=info.name,
            graph=found.graph,
        )
        st.caption(markdown(said))
    if not changed:
        return
    st.markdown(f"#### {t('Texts whose prediction the graph changes')}")
    st.caption(t("Tick a row to open the text in the Lab. Click a column's head to sort."))
    columns, height = view.rows_table(changed, info), min(TALL, HEAD + ROW * len(changed))
    how: dict[str, Any] = {"on_select": "rerun", "selection_mode": "single-row", "height": height}
    event = st.dataframe(columns, key="data.rows", hide_index=True, **how)
    for number in event.selection.rows:
        now = state.session()
        graph = setup.graph_name if setup.graph_name in now.graphs else now.graph
        if now.graph_now(graph).fingerprint != setup.graph.fingerprint:
            said = N_(
                "The graph isn't as it was when the texts were read, so the Lab may predict "
                "something else."
            )
            state.tell(t(said))
        texts = changed[number].example.sentences
        state.put(state.with_text(texts, found.task, setup.model, graph))
        st.switch_page("app_pages/lab.py")


def show_report(report: Report) -> None:
    """What the counts of an audit mean, and the counts."""
    with st.container(border=True, key="data_verdict"):
        for answer in report.verdict.answers:
            st.markdown(f"##### {markdown(view.in_words(answer))}")
        st.markdown(f"**{markdown(view.in_words(report.verdict.headline))}**")
        for finding in report.verdict.findings:
            icon, colour, level = LEVELS[finding.level]
            said = markdown(view.in_words(finding))
            st.markdown(f":{colour}[{icon} **{t(level)}**]\u2002{said}")
        label = t("The counts, as in `kbert audit --all`")
        with st.expander(label, key="data.counts", on_change="rerun") as counts:
            if counts.open:
                rows = report.rows()
                columns = {name: [str(row[name] or "") for row in rows] for name in rows[0]}
                table(columns, most=TALL)
                st.json({k: v for k, v in report.facts().items() if v}, expanded=1)


page()
