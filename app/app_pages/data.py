"""Data: labelled texts, a graph and a model in; a verdict and what knowledge changes out."""

from dataclasses import replace

import streamlit as st

from app import audits, services, state
from app.app_pages.data_found import show_audit, show_found, verdict_panel
from app.app_pages.lab_open import (
    choose_encoding,
    open_dialog,
    open_graph_button,
    show_opened,
)
from app.app_pages.long_run import begin, follow, forget, kept
from app.app_pages.parts import action, segments, select
from app.audits import MOST_TEXTS, FileSetup, Report
from app.background import Look, Run, State
from app.state import KEEP, graph_as_edited, graph_name
from app.texts import N_, refusal, t
from app.view_models import whole_file as view
from app.view_models.html import markdown
from app.view_models.styles import CSS
from app.words import AUDIT_SPLIT, AUDIT_TASK
from kbert_core import Ablation, InjectionOptions, KBertError
from kbert_lab.data.labelled import SPLITS
from kbert_lab.data.sources import TASKS
from kbert_lab.study.audit import MAX_LENGTH
from kbert_lab.study.audit_values import Data
from kbert_lab.study.file_rows import FileRow

AUDIT_DATA = {"example": N_("Example"), "folder": N_("Folder"), "upload": N_("Upload")}

ss = st.session_state
EXAMPLE, FOLDER, UPLOAD = "example", "folder", "upload"
AUTO = "auto"
FIRST = ("dev", "test", "train")  # the split that is read unless told otherwise
RUN = "data.run"


def page() -> None:
    """Input, work, view, top to bottom."""
    state.begin()
    fill()
    st.html(CSS)
    st.caption(
        t(
            "Labelled texts, a graph and a model: what the graph knows of the data and whether "
            "the split leaks, counted without a model; then each text read with the graph and "
            "without it."
        )
    )
    open_dialog()
    show_opened()
    left, right = st.columns([5, 6], gap="large")
    with left:
        choose_data()
        data = read()
        split = choose_split(data) if data is not None else ""
    with right:
        setup = choose_reader(data, split)
    pressed = st.button(
        t("Count and read"),
        key="data.button",
        type="primary",
        icon=":material/play_arrow:",
        disabled=setup is None,
    )
    if setup is not None and (pressed or "data.setup" not in ss):
        start(setup)
    of: FileSetup | None = ss.get("data.setup")
    if of is None:
        return
    if setup is None or setup.key != of.key:
        st.info(t("These results are for the earlier choice."), icon=":material/update:")
    show(of)


def fill() -> None:
    """Fill a new session, and mend what no longer fits."""
    for key, value in {
        "data.kind": EXAMPLE,
        "data.folder": "",
        "data.task": AUTO,
        "data.graph": services.demo_graph("medical_zh").fingerprint,  # the example's
    }.items():
        ss.setdefault(key, value)
    if ss["data.kind"] not in kinds():
        ss["data.kind"] = EXAMPLE
    if "lab.opened" in ss or ss["data.graph"] not in ss["lab.graphs"]:
        ss["data.graph"] = ss["lab.graph"]


# Texts


def kinds() -> list[str]:
    """Where data can come from here."""
    return [EXAMPLE, *([FOLDER] if services.may_open_paths() else []), UPLOAD]


def choose_data() -> None:
    """The example, a folder, or files."""
    segments(t("Labelled texts"), kinds(), "data.kind", AUDIT_DATA, hidden=False, **KEEP)
    if ss["data.kind"] == FOLDER:
        said = N_(
            "A folder on this machine with train.tsv, and dev.tsv and test.tsv if there are; or "
            "one of tables, or saved by Hugging Face's datasets"
        )
        holder = t("/path/to/medical_ner")
        st.text_input(t(said), key="data.folder", placeholder=holder, **KEEP)
    elif ss["data.kind"] == UPLOAD:
        said = N_(
            "Tab-separated, with a header: label and text_a, for pairs also text_b. For "
            "named entities text_a holds tokens and label as many BIO tags, both separated by "
            "single spaces; or a line holds one token and its tag. At most {most} MB a file."
        )
        st.caption(t(said, most=st.get_option("server.maxUploadSize")))
        for column, name in zip(st.columns(len(SPLITS)), SPLITS, strict=True):
            label = t("{split}.tsv, if there is one", split=name)
            label = t("train.tsv") if name == "train" else label
            key = f"data.upload_{name}"
            column.file_uploader(label, type=audits.UPLOADS, key=key, on_change=let_go)
        choose_encoding("data.encoding", width=260, **KEEP)
    else:
        said = N_(
            "31 invented clinical sentences in Chinese that come with the app: enough to try the "
            "page, too few to conclude anything from. Two of them leak on purpose."
        )
        st.caption(t(said))


def read() -> Data | None:
    """The data set chosen; what is missing or wrong is said."""
    task = None if ss["data.task"] == AUTO else ss["data.task"]
    try:
        if ss["data.kind"] == EXAMPLE:
            return audits.folder(str(audits.EXAMPLE), task)
        if ss["data.kind"] == UPLOAD:
            return uploaded(task)
        if ss["data.folder"].strip():
            return audits.folder(ss["data.folder"], task)
        st.info(t("Enter the folder of the data set above."))
    except KBertError as error:
        st.error(markdown(error))
    return None


def uploaded(task: str | None) -> Data | None:
    """The uploaded files; they are kept when the visitor goes to another page and comes back.

    Raises:
        KBertError: one can't be read.
    """
    files = {name: ss.get(f"data.upload_{name}") for name in SPLITS}
    given = {name: file for name, file in files.items() if file is not None}
    kept: tuple[object, Data] | None = ss.get("data.kept")
    if "train" not in given:
        if kept is None:
            said = N_(
                "Upload a train.tsv above. One file alone can be read too; what a split leaves to "
                "add can't be told then."
            )
            st.info(t(said))
            return None
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(markdown(t("Read: {name}.", name=kept[1].name)), width="content")
            action(t("Let go of it"), "data.let_go", let_go, icon="close", type="tertiary")
        return kept[1]
    encoding = str(ss.get("data.encoding", ""))
    key = (task, encoding, *(file.file_id for file in given.values()))
    if kept is None or kept[0] != key:
        read = {name: (file.name, file.getvalue()) for name, file in given.items()}
        kept = ss["data.kept"] = (key, audits.uploaded(read, given["train"].name, task, encoding))
    return kept[1]


def let_go() -> None:
    """Callback: forget the files that were read; those that are still there are read again."""
    ss.pop("data.kept", None)


def choose_split(data: Data) -> str:
    """Which of the splits is read by the model."""
    names = [name for name in FIRST if name in data.splits]
    if ss.get("data.split") not in names:
        ss["data.split"] = names[0]
    segments(
        t("Part that is read"),
        names,
        "data.split",
        lambda name: t(
            "{split} ({count})",
            split=t(AUDIT_SPLIT[name]),
            count=f"{len(data.splits.get(name, ())):,}",
        ),
        hidden=False,
        **KEEP,
    )
    chosen = str(ss["data.split"])
    if (count := len(data.splits[chosen])) > MOST_TEXTS:
        said = N_(
            "The set has {of} texts; the first {most} are read. Use `kbert explain file` on the "
            "command line for all of them."
        )
        st.caption(markdown(t(said, of=f"{count:,}", most=f"{MOST_TEXTS:,}")))
    return chosen


# The graph, and what reads them


def choose_reader(data: Data | None, split: str) -> FileSetup | None:
    """Graph, model, and how triples are injected; None where there are no texts."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        select(t("Knowledge graph"), list(ss["lab.graphs"]), "data.graph", graph_name)
        open_graph_button()
        models = state.models_for(data.task) if data is not None else {}
        model = ""
        if models and data is not None:
            before, texts = ss.get("data.model"), [x.sentences[0] for x in data.splits[split][:1]]
            able = [path for path in models if all(map(services.model_info(path).knows, texts))]
            first = ss["lab.model"] if ss["lab.model"] in able or not able else able[0]
            model = select(t("Model"), list(models), "data.model", lambda m: models[m], first)
            if model != before:
                options, _ = state.options_of(model)  # as it was trained
                ss["data.max_triples"] = options.max_triples
                ss["data.tail_only"] = options.tail_only
    if data is not None and not models:
        said = N_(
            "There is no model here for this task ({task}), so the data are counted only. Open a "
            "model in the Lab to read them."
        )
        st.info(markdown(t(said, task=t(AUDIT_TASK[data.task]))))
    ss.setdefault("data.max_triples", InjectionOptions().max_triples)
    ss.setdefault("data.tail_only", False)
    with st.expander(t("Task, injection")):
        names = {AUTO: t("as in the training set")} | {own: t(AUDIT_TASK[own]) for own in TASKS}
        called = lambda task: names[task]  # noqa: E731
        st.selectbox(t("Task"), list(names), key="data.task", format_func=called, **KEEP)
        st.number_input(
            t("Triples per mention"),
            0,
            state.most_triples(model) if model else 20,
            key="data.max_triples",
            help=t("The most triples injected at one mention. 0: no knowledge."),
            **KEEP,
        )
        if not model or services.model_info(model).has_trees:
            st.checkbox(t("Tail only, without the relation"), key="data.tail_only", **KEEP)
        if model:
            st.caption(t("Set to how the model was trained."))
    return setup_of(data, split, model) if data is not None else None


def setup_of(data: Data, split: str, model: str) -> FileSetup:
    """All that was chosen."""
    options, ablation = state.options_of(model) if model else (InjectionOptions(), Ablation())
    options = replace(
        options,
        max_triples=int(ss["data.max_triples"]),
        tail_only=bool(ss["data.tail_only"]),
    )
    graph = graph_as_edited(ss["data.graph"])
    stamp = services.stamp(model) if model else ""
    key = (id(data), split, model, stamp, graph.fingerprint, options, ablation)
    uploaded = ss["data.kind"] == UPLOAD
    name = ss["data.graph"]
    return FileSetup(data, split, model, name, graph, options, ablation, key, uploaded)


# Counting, reading


def start(setup: FileSetup) -> None:
    """Count, and begin to read; whatever ran before is stopped."""
    forget(RUN)
    for name in ("data.found", "data.row"):
        ss.pop(name, None)
    ss["data.setup"] = setup
    trees, length = True, None
    if setup.model:
        info = services.model_info(setup.model)
        trees, length = info.has_trees, info.card.reading.max_length
    try:
        with st.spinner(t("Counting …")), audits.counting:
            ss["data.report"] = audits.audited(
                setup.data, setup.graph, setup.options, length or MAX_LENGTH, as_tokens=trees
            )
    except KBertError as error:
        ss["data.report"] = error
    if setup.model:
        try:
            pipeline = services.pipeline(setup.model, ss["lab.device"])
            begin(RUN, (), lambda: audits.rows(pipeline, setup))
        except KBertError as error:
            st.error(markdown(error))


def show(setup: FileSetup) -> None:
    """The verdict, then what the model makes of it as it is read."""
    report: Report | KBertError = ss["data.report"]
    if isinstance(report, Report):
        verdict_panel(report)
    else:
        st.caption(
            markdown(t("The data and the graph can't be audited: {reason}", reason=refusal(report)))
        )
    run: Run[FileRow] | None = kept(RUN, ())
    if run is None:
        if isinstance(report, Report):
            show_audit(report)
        return

    def draw(now: Look[FileRow]) -> None:
        if not now.ended:
            st.caption(markdown(view.going(now.results)))
        elif now.results:
            show_found(setup, now.results, report if isinstance(report, Report) else None)

    look = run.look()
    if look.state is State.STOPPED and look.results:  # which is said with what was found
        draw(look)
    else:
        follow(run, draw, key="data")


page()
