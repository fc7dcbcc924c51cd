"""Importing with a look beforehand, and what a curator wants to know."""

import hashlib
from functools import partial

import streamlit as st

from app import curating, services, state
from app.app_pages.lab_open import choose_encoding, graph_upload
from app.app_pages.parts import action, table, the_first
from app.catalogue import Catalogue
from app.curating import MOST_PRIVATE
from app.state import KEEP
from app.texts import N_, t, tn
from app.view_models.html import markdown
from app.view_models.importing import MOST, Preview, pasted_name, preview
from kbert_core import KBertError
from kbert_core.knowledge.io import ReadOptions
from kbert_lab.graphs.check import Finding, check

CHECK_TEXTS = {  # a kind of doubt, and what to do
    "several_types": (
        N_("Entities with several types"),
        N_("Keep the right one, or give the meanings different names."),
    ),
    "duplicate": (
        N_("Triples that differ only in case, width or spaces"),
        N_("Keep one of each: the others take the place of other triples at a mention."),
    ),
    "stop_word": (
        N_("Heads that are everyday words"),
        N_("Delete them or switch them off: they are found where they do not mean the entity."),
    ),
    "acronym": (
        N_("Heads in capitals that are everyday words in small letters"),
        N_("Delete or switch off those that nobody means: they are found in capitals only."),
    ),
    "number": (
        N_("Heads that are only a number"),
        N_("Delete them or switch them off: they are found at every such number."),
    ),
    "word_part": (
        N_("Heads that are only parts of words (non, -itis)"),
        N_("Write whole words: a name is not found inside a longer word."),
    ),
    "unlike_text": (
        N_("Heads with underscores, or with characters written as in HTML"),
        N_("Write spaces, and the characters themselves: other programs find them so."),
    ),
    "other_spelling": (
        N_("Heads that are another spelling of a head (α and alpha, bacteria and bacterium)"),
        N_("If they are the same thing, move the triples to one of them."),
    ),
    "one_character": (
        N_("Heads of one character"),
        N_(
            "Delete them or switch them off, unless they are intended: they are found inside "
            "other words."
        ),
    ),
    "dangling_alias": (
        N_("Aliases that lead to nothing"),
        N_("Add what is known about these entities."),
    ),
    "alias_cycle": (
        N_("Aliases that form a circle"),
        N_("Keep one as the name, and the others as its aliases."),
    ),
    "alias_entity": (
        N_("Aliases that are entities themselves"),
        N_("Keep both where the name means both; else move the triples to one of them."),
    ),
    "own_alias": (N_("Aliases that repeat the name"), N_("Delete: they say nothing.")),
    "own_tail": (
        N_("Triples whose tail is their head"),
        N_("Delete: they add nothing to a text."),
    ),
    "long_tail": (
        N_("Very long tails"),
        N_("Shorten: a branch takes as many tokens, and the length limit cuts it."),
    ),
    "relation_once": (
        N_("Relations used only once"),
        N_("Look for a relation with the same meaning, or a typing error."),
    ),
    "one_tail": (
        N_("Relations whose triples all have the same tail"),
        N_("They tell no names apart. Switch their triples off."),
    ),
}

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


# Checking


def check_view(look: Catalogue) -> None:
    """Likely mistakes, with a way to each triple."""
    st.caption(
        t("Looks for likely mistakes. It changes nothing. Choose an example to see its triples.")
    )
    if len(look.graph) > MOST_CHECKED:
        text = N_("A graph of over {most} triples is better checked on the command line:")
        st.info(t(text, most=f"{MOST_CHECKED:,}"))
        st.code("kbert kg check GRAPH.kg", language="bash")
        return
    checked = ss.get("knowledge.checked")
    pressed = st.button(t("Check the graph"), key="knowledge.check", icon=":material/rule:")
    if pressed:
        with st.spinner(t("Checking the graph …")):
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
        st.info(t("The graph was edited since: check it again."), icon=":material/update:")
    if not found:
        st.success(t("No likely mistakes were found."), icon=":material/check:")
    for finding in found:
        show_finding(finding)


def show_finding(finding: Finding) -> None:
    """One kind of doubt; a click on an example leads to it."""
    title, what = map(t, CHECK_TEXTS[finding.kind])
    with st.expander(f"{title}: **{finding.count:,}**", expanded=finding.count <= 5):
        st.caption(what)
        table(
            {t("example"): [str(example) for example in finding.examples]},
            f"knowledge.finding_{finding.kind}.{ss['knowledge.table']}",
            choose=partial(_go_to, finding),
            most=260,
        )
        the_first(len(finding.examples), finding.count)


def _go_to(finding: Finding, row: int | None) -> None:
    if row is not None:
        curating.look_for(finding.examples[row].triples[0].head)
