"""Importing with a look beforehand, and what a curator wants to know."""

import hashlib

import streamlit as st

from app import curating, services, state
from app.catalogue import Catalogue
from app.curating import MOST_PRIVATE
from app.state import KEEP
from app.texts import t
from app.view_models.html import markdown
from app.view_models.importing import ENCODINGS, MOST, Preview, pasted_name, preview
from app.view_models.knowledge import HEAD, RELATION, TAIL
from kbert_core import KBertError
from kbert_core.knowledge.io import ReadOptions
from kbert_core.knowledge.tools.check import Finding, check

ss = st.session_state
SAMPLE = 200
MOST_CHECKED = 500_000  # triples that are looked through in the app
EXAMPLES = 200


def import_view(look: Catalogue) -> None:
    """A file or a pasted text; what it would do; then, if wanted, the doing."""
    left, right = st.columns([5, 6], gap="large")
    with left:
        seen = source(look)
    with right:
        added = ss.pop("knowledge.added", None)
        if added:
            st.success(markdown(added), icon=":material/check:")
        if seen is None:
            st.caption(t("import.nothing_yet"))
        else:
            show_preview(seen)


def source(look: Catalogue) -> Preview | None:
    """Read what was given, once."""
    number = ss.get("knowledge.uploads", 0)
    most = MOST_PRIVATE if state.workspace() is None else MOST
    file = st.file_uploader(
        t("open.upload", most=st.get_option("server.maxUploadSize"), triples=f"{most:,}"),
        type=services.GRAPH_ENDINGS,
        key=f"knowledge.upload.{number}",
        help=t("open.format"),
    )
    st.text_area(
        t("import.paste"),
        key="knowledge.paste",
        height=150,
        placeholder=t("import.paste_placeholder"),
        disabled=file is not None,
        **KEEP,
    )
    encoding = st.selectbox(
        t("import.encoding"),
        ENCODINGS,
        key="knowledge.encoding",
        format_func=lambda name: name or t("import.encoding_auto"),
        disabled=file is None,
        width=260,
    )
    text = str(ss["knowledge.paste"])
    if file is not None:
        data, name = file.getvalue(), file.name
    elif text.strip():
        data, name, encoding = text.encode("utf-8", "replace"), pasted_name(text), ""
    else:
        return None
    digest = hashlib.sha256(data).hexdigest()
    key = (digest, name, encoding, look.graph.fingerprint)
    kept = ss.get("knowledge.preview")
    if kept is None or kept[0] != key:
        options = ReadOptions(encoding=encoding or None, most=services.MOST_BYTES)
        with st.spinner(t("import.reading")):
            kept = (key, preview(data, name, look.graph, options))
        ss["knowledge.preview"] = kept
    return kept[1]


def show_preview(seen: Preview) -> None:
    """What would be added, what not and why; nothing is changed yet."""
    if seen.error is not None:
        st.error(f"**{t('open.failed_title')}**")
        st.code(seen.error, language=None, wrap_lines=True)
        return
    for column, (name, count) in zip(
        st.columns(4),
        (
            ("new", len(seen.rows)),
            ("there", seen.there),
            ("repeated", seen.repeated),
            ("bad", seen.bad),
        ),
        strict=True,
    ):
        column.metric(t(f"import.{name}"), f"{count:,}")
    leave_out = True
    if seen.bad:
        st.warning(t("import.problems", shown=len(seen.problems), count=f"{seen.bad:,}"))
        st.code("\n".join(seen.problems), language=None, wrap_lines=True)
        if seen.rows:
            leave_out = st.checkbox(t("import.leave_out"), key="knowledge.leave_out")
    count = len(seen.rows)
    problem = None
    if seen.too_many:
        problem = t("import.too_many", most=f"{MOST:,}")
    elif count > MOST_PRIVATE and state.workspace() is None:
        problem = t("import.private", most=f"{MOST_PRIVATE:,}")
    elif not count:
        problem = t("import.nothing_new")
    if problem:
        st.info(problem)
    st.button(
        t("import.add_one" if count == 1 else "import.add", count=f"{count:,}"),
        key="knowledge.import",
        type="primary",
        disabled=problem is not None or not leave_out,
        on_click=curating.add_rows,
        args=(seen,),
        help=t("import.add_help"),
    )
    if count:
        st.dataframe(
            {
                "line": [row[0] for row in seen.rows[:SAMPLE]],
                HEAD: [row[1] for row in seen.rows[:SAMPLE]],
                RELATION: [row[2] for row in seen.rows[:SAMPLE]],
                TAIL: [row[3] for row in seen.rows[:SAMPLE]],
            },
            key="knowledge.sample",
            hide_index=True,
            width="stretch",
            height=min(330, 38 + 35 * min(count, SAMPLE)),
            column_config={
                "line": st.column_config.NumberColumn(t("import.line"), width=60),
                HEAD: t("knowledge.head"),
                RELATION: t("knowledge.relation"),
                TAIL: t("knowledge.tail"),
            },
        )
        if count > SAMPLE:
            st.caption(t("import.sample", shown=SAMPLE, count=f"{count:,}"))


# Checking


def check_view(look: Catalogue) -> None:
    """What is probably not meant so, with a way to each triple."""
    st.caption(t("check.what"))
    if len(look.graph) > MOST_CHECKED:
        st.info(t("check.too_large", most=f"{MOST_CHECKED:,}"))
        st.code("kbert kg check GRAPH.kg", language="bash")
        return
    checked = ss.get("knowledge.checked")
    pressed = st.button(t("check.button"), key="knowledge.check", icon=":material/rule:")
    if pressed:
        with st.spinner(t("check.working")):
            try:
                findings = check(look.graph, examples=EXAMPLES)
            except KBertError as error:
                st.error(markdown(error))
                return
        checked = ss["knowledge.checked"] = (look.graph.fingerprint, findings)
    if checked is None:
        return
    fingerprint, found = checked
    if fingerprint != look.graph.fingerprint:
        st.info(t("check.stale"), icon=":material/update:")
    if not found:
        st.success(t("check.none"), icon=":material/check:")
    for finding in found:
        show_finding(finding)


def show_finding(finding: Finding) -> None:
    """One kind of doubt; a click on an example leads to it."""
    title = t(f"check.{finding.kind}")
    with st.expander(f"{title}: **{finding.count:,}**", expanded=finding.count <= 5):
        st.caption(t(f"check.{finding.kind}_do"))
        key = f"knowledge.finding_{finding.kind}.{ss['knowledge.table']}"
        st.dataframe(
            {"example": [str(example) for example in finding.examples]},
            key=key,
            hide_index=True,
            width="stretch",
            height=min(260, 38 + 35 * len(finding.examples)),
            on_select=lambda: _go_to(key, finding),
            selection_mode="single-row",
            column_config={"example": t("check.example")},
        )
        if finding.count > len(finding.examples):
            st.caption(t("check.more", shown=len(finding.examples), count=f"{finding.count:,}"))


def _go_to(key: str, finding: Finding) -> None:
    rows = ss[key]["selection"]["rows"]
    if rows:
        curating.look_for(finding.examples[rows[0]].triples[0].head)
