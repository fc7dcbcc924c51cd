"""Importing, with a look beforehand at what a file or a text would change."""

import hashlib

import streamlit as st

from app import curating, services, state
from app.app_pages.lab_open import choose_encoding, graph_upload
from app.app_pages.parts import action, table, the_first
from app.curating import MOST_PRIVATE
from app.state import KEEP
from kbert_core.knowledge.io import ReadOptions
from kbert_lab.lab.catalogue import Catalogue
from kbert_lab.lab.texts import N_, t, tn
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.importing import MOST, Preview, pasted_name, preview

ss = st.session_state
SAMPLE = 200


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
            st.caption(
                t(
                    "What a file or text would change is shown here first. Nothing changes until "
                    "you confirm."
                )
            )
        else:
            show_preview(seen)


def source(look: Catalogue) -> Preview | None:
    """Read what was given, once."""
    number = ss.get("knowledge.uploads", 0)
    most = MOST_PRIVATE if state.workspace() is None else MOST
    file = graph_upload(f"knowledge.upload.{number}", most)
    st.text_area(
        t("Or paste triples, one per line"),
        key="knowledge.paste",
        height=150,
        placeholder=t("head, tab, relation, tab, tail"),
        disabled=file is not None,
        **KEEP,
    )
    encoding = choose_encoding("knowledge.encoding", disabled=file is None, width=260)
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
        with st.spinner(t("Reading …")):
            kept = (key, preview(data, name, look.graph, options))
        ss["knowledge.preview"] = kept
    return kept[1]


def show_preview(seen: Preview) -> None:
    """What would be added, what not and why; nothing is changed yet."""
    if seen.error is not None:
        st.error(f"**{t('The file was not opened, and nothing was changed.')}**")
        st.code(seen.error, language=None, wrap_lines=True)
        return
    counts = {
        t("New"): len(seen.rows),
        t("Already there"): seen.there,
        t("Repeated"): seen.repeated,
        t("Bad lines"): seen.bad,
    }
    for column, (name, found) in zip(st.columns(4), counts.items(), strict=True):
        column.metric(name, f"{found:,}")
    for doubt in seen.doubts:
        st.warning(markdown(doubt))
    leave_out = True
    if seen.bad:
        text = N_("Nothing was changed. Lines that are no triples: {count}; the first {shown}:")
        st.warning(t(text, shown=len(seen.problems), count=f"{seen.bad:,}"))
        st.code("\n".join(seen.problems), language=None, wrap_lines=True)
        if seen.rows:
            leave_out = st.checkbox(t("Skip the bad lines"), key="knowledge.leave_out")
    count, problem = len(seen.rows), ""
    if seen.too_many:
        problem = N_(
            "At most {most} triples can be added at once here. Open the file as a graph of its "
            "own, or use kbert kg import."
        )
    elif count > MOST_PRIVATE and state.workspace() is None:
        problem = N_(
            "At most {most} triples can be added to a graph that is kept only for this visit. "
            "Save it to a workspace first, or open the file as a graph of its own."
        )
    elif not count:
        problem = N_("There is nothing new to add.")
    if problem:
        st.info(t(problem, most=f"{MOST if seen.too_many else MOST_PRIVATE:,}"))
    how = {"type": "primary", "disabled": bool(problem) or not leave_out}
    help = t("As one step, which can be undone at once.")
    label = tn("Add 1 triple", "Add {n} triples", count)
    action(label, "knowledge.import", curating.add_rows, seen, help=help, **how)
    if count:
        heads = (t("line"), t("head"), t("relation"), t("tail"))
        columns = map(list, zip(*seen.rows[:SAMPLE], strict=True))
        config = {t("line"): st.column_config.NumberColumn(width=60)}
        shown = dict(zip(heads, columns, strict=True))
        table(shown, "knowledge.sample", most=330, config=config)
        the_first(SAMPLE, count)
