"""Importing, with a look beforehand at what a file or a text would change."""

import hashlib
from typing import Any

import streamlit as st

from app import services, state
from app.app_pages.knowledge_table import kept
from app.app_pages.lab_open import choose_encoding, graph_upload
from app.app_pages.parts import action, table, the_first
from app.state import KEEP
from kbert_core.knowledge.io import ReadOptions
from kbert_lab.graphs.store.importing import Source
from kbert_lab.lab.catalogue import Catalogue
from kbert_lab.lab.commands import Import
from kbert_lab.lab.texts import N_, t, tn
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.importing import MOST, MOST_PRIVATE, Preview, pasted_name, preview

ss = st.session_state
SAMPLE = 200


def import_view(look: Catalogue) -> None:
    """A file or a pasted text; what it would do; then, if wanted, the doing."""
    left, right = st.columns([5, 6], gap="large")
    most = MOST_PRIVATE if state.workspace() is None else MOST
    with left:
        seen = source(look, most)
    with right:
        if seen is None:
            said = N_(
                "What a file or text would change is shown here first. Nothing changes until you "
                "confirm."
            )
            st.caption(t(said))
        elif seen.error is not None:
            st.error(f"**{t('Not opened, and nothing was changed.')}**")
            st.code(seen.error, language=None, wrap_lines=True)
        else:
            show_preview(seen, most)


def source(look: Catalogue, most: int) -> Preview | None:
    """Read what was given, once."""
    file = graph_upload("knowledge.upload", most)
    text = st.text_area(
        t("Or paste triples, one per line"),
        key="knowledge.paste",
        height=150,
        placeholder=t("head, tab, relation, tab, tail"),
        disabled=file is not None,
        **KEEP,
    )
    encoding = choose_encoding("knowledge.encoding", disabled=file is None, width=260)
    if file is not None:
        data, name = file.getvalue(), file.name
    elif text.strip():
        data, name, encoding = text.encode("utf-8", "replace"), pasted_name(text), ""
    else:
        return None
    options = ReadOptions(encoding=encoding or None, most=services.MOST_BYTES)
    key = (hashlib.sha256(data).hexdigest(), name, encoding, look.graph.fingerprint, most)
    return kept("preview", key, lambda: preview(data, name, look.graph, options, most))


def show_preview(seen: Preview, most: int) -> None:
    """What would be added, what not and why; nothing is changed yet."""
    count = len(seen.rows)
    if seen.too_many:
        said = N_(
            "At most {most} triples can be added at once here. Open the file as a graph of its "
            "own, or use kbert kg import."
        )
        st.info(t(said, most=f"{most:,}"))
    else:
        said = N_(
            "**{new}** new · **{there}** already there · **{repeated}** repeated · **{bad}** bad "
            "lines"
        )
        counts = {"new": count, "there": seen.there, "repeated": seen.repeated, "bad": seen.bad}
        st.markdown(t(said, **{name: f"{found:,}" for name, found in counts.items()}))
        help = t("As one step, which can be undone at once.")
        label = tn("Add 1 triple", "Add {n} triples", count)
        how: dict[str, Any] = {"type": "primary", "help": help, "disabled": not count}
        action(label, "knowledge.import", add_rows, seen, **how)
    for doubt in seen.doubts:
        st.warning(markdown(doubt))
    if count:
        heads = (t("line"), t("head"), t("relation"), t("tail"))
        columns = map(list, zip(*seen.rows[:SAMPLE], strict=True))
        table(dict(zip(heads, columns, strict=True)), "knowledge.sample", most=330)
        the_first(SAMPLE, count)
    if seen.bad:
        text = N_("Lines that are no triples, and will be left out: {count}; the first {shown}:")
        st.warning(t(text, shown=len(seen.problems), count=f"{seen.bad:,}"))
        st.code("\n".join(seen.problems), language=None, wrap_lines=True, height=240)


def add_rows(seen: Preview) -> None:
    """Callback: add what a preview showed, as one step."""
    if state.dispatch(Import(Source(seen.name, list(seen.rows)))):
        text = N_("Added {count} triples of {name}, as one step of the history.")
        st.toast(
            markdown(t(text, count=f"{len(seen.rows):,}", name=seen.name)), icon=":material/check:"
        )
