"""A whole file: labelled texts read with the graph and without, and what that shows."""

import streamlit as st

from app import audits, file_runs, services, state
from app.app_pages.audit_verdict import verdict_panel
from app.app_pages.long_run import begin, follow, forget, kept
from app.app_pages.whole_file_choose import choose
from app.app_pages.whole_file_found import show_found
from app.audits import Report
from app.background import Look, Run, State
from app.file_runs import FileSetup
from app.texts import t
from app.view_models import audit as audit_view
from app.view_models import whole_file as view
from app.view_models.html import markdown
from app.view_models.styles import CSS
from kbert_core import KBertError
from kbert_core.experiments.audit import MAX_LENGTH
from kbert_core.experiments.file_rows import FileRow

ss = st.session_state
RUNS = ("whole_file.run", "whole_file.prune_run")


def page() -> None:
    """Input, work, view, top to bottom."""
    state.begin()
    st.html(CSS)
    st.subheader(t("file.title"), anchor=False)
    st.caption(t("file.what"))
    setup = choose()
    pressed = st.button(
        t("file.button"),
        key="whole_file.button",
        type="primary",
        icon=":material/play_arrow:",
        disabled=setup is None,
    )
    if setup is not None and (pressed or "whole_file.setup" not in ss):
        start(setup)
    read: FileSetup | None = ss.get("whole_file.setup")
    if read is None:
        return
    if setup is None or setup.key != read.key:
        st.info(t("file.stale"), icon=":material/update:")
    audit_panel()
    run: Run[FileRow] | None = kept("whole_file.run", ())
    if run is None:
        return
    look = run.look()
    if look.state is not State.STOPPED or not look.results:  # which is said with what was found
        follow(run, say_progress, key="whole_file")
        look = run.look()
    if look.ended and look.results:
        show_found(read, look.results)


def start(setup: FileSetup) -> None:
    """Begin to read; whatever ran before is stopped."""
    for name in RUNS:
        forget(name)
    for name in ("whole_file.found", "whole_file.row"):
        ss.pop(name, None)
    ss["whole_file.setup"] = setup
    audit(setup)
    try:
        pipeline = services.pipeline(setup.model, ss["lab.device"])
        begin("whole_file.run", (), lambda: file_runs.rows(pipeline, setup))
    except KBertError as error:
        st.error(markdown(error))


def say_progress(now: Look[FileRow]) -> None:
    """What is known while the file is being read."""
    if not now.ended:
        st.caption(markdown(view.going(now.results)))


def audit(setup: FileSetup) -> None:
    """Count what data and graph can show together, before any model."""
    info = services.model_info(setup.model)
    length = info.card.reading.max_length or MAX_LENGTH
    try:
        with st.spinner(t("audit.working")):
            report = audits.audited(
                setup.data, setup.graph, setup.options, length, as_tokens=info.has_trees
            )
        ss["whole_file.report"] = report
    except KBertError as error:
        ss["whole_file.report"] = str(error)


def audit_panel() -> None:
    """The audit, above what the model makes of it."""
    report = ss.get("whole_file.report")
    if not isinstance(report, Report):
        st.caption(markdown(t("file.audit_none", reason=report)))
        return
    headline = markdown(audit_view.headline(report.verdict))
    with st.expander(t("file.audit", headline=headline), icon=":material/fact_check:"):
        verdict_panel(report, "whole_file")


page()
