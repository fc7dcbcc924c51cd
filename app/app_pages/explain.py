"""Explain: what the prediction rests on, what flips it, its paths; one part runs."""

from typing import Any

import streamlit as st

from app import explained, services, state
from app.app_pages.explain_parts import effects_part, paths_part, search_part
from app.app_pages.parts import segments
from app.app_pages.target_chooser import choose_target
from app.state import KEEP
from kbert_core import KBertError
from kbert_lab.lab.scene import Scene, is_blank
from kbert_lab.lab.texts import N_, listed, t, tn
from kbert_lab.lab.views.html import markdown, shorten
from kbert_lab.lab.views.styles import CSS

PARTS = {  # its icon, its name, what it does
    "effects": (
        ":material/bar_chart:",
        N_("Effects"),
        N_(
            "Each triple is left out once, all others held fixed: what then becomes of the "
            "probability is its effect, exactly. Below, the same probability shared out among the "
            "tokens."
        ),
    ),
    "flips": (
        ":material/swap_vert:",
        N_("What flips it?"),
        N_(
            "Triples are removed, replaced and added, made of what the graph says itself: single "
            "changes first, then larger sets of those that came nearest. Each set is tried by "
            "making its edits and reading the text again."
        ),
    ),
    "paths": (
        ":material/route:",
        N_("Paths"),
        N_(
            "In each layer a token learns from those it sees. What can have come where follows "
            "from the visible matrix; what it changed there is measured, by leaving the triple "
            "out."
        ),
    ),
}
MOST_SHOWN = 120  # characters of a text
ss = st.session_state


def page() -> None:
    """Input, work, view, top to bottom."""
    state.begin()
    st.html(CSS)
    now = state.scene()
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="explain_scene"
    ):
        st.markdown(markdown(said(now)), width="stretch")
        label, icon = t("Change it in the Lab"), ":material/account_tree:"
        if st.button(label, key="explain.to_lab", icon=icon, type="tertiary"):
            st.switch_page("app_pages/lab.py")
    part = choose_part()
    try:
        problem = unread(now)
        trace = None if problem else services.trace(now, state.session().graph_of(now))
        problem = problem or missing(part, now, trace)
        if problem:
            st.info(markdown(problem), icon=":material/info:")
        else:
            explained_part(part, now, trace)
    except KBertError as error:
        st.error(markdown(error))


def said(now: Scene) -> str:
    """What is explained, in a line; plain text."""
    texts = [t("“{text}”", text=shorten(text, MOST_SHOWN)) for text in now.sentences]
    graph = state.session().graph_of(now)
    parts = [
        explained.model_name(now),
        t("{name}, {count} triples", name=graph.name, count=f"{len(graph):,}"),
        *([tn("1 edit", "{n} edits", len(now.edits))] if now.edits else []),
    ]
    return f"{listed(texts)} · {listed(parts)}"


def choose_part() -> str:
    """Which part is looked at."""
    ss.setdefault("explain.part", "effects")
    name = lambda part: f"{PARTS[part][0]} {t(PARTS[part][1])}"  # noqa: E731
    part = segments(t("Part"), list(PARTS), "explain.part", name, **KEEP)
    st.caption(t(PARTS[part][2]))
    return part


def unread(now: Scene) -> str | None:
    """Why a scene's text can't be read; plain text."""
    if any(map(is_blank, now.sentences)):
        return t("There is no text to read yet: write one in the Lab.")
    longest = max(map(len, now.sentences))
    if longest <= services.LONGEST_TEXT:
        return None
    return t(
        "The text in the Lab is too long to be read here: {count} characters, at most {most}. "
        "Shorten it there.",
        count=f"{longest:,}",
        most=f"{services.LONGEST_TEXT:,}",
    )


def missing(part: str, now: Scene, trace: Any) -> str | None:
    """What a part needs and the scene lacks; plain text."""
    if part == "paths" and not services.has_trees(now):
        return t(
            "Paths need sentence trees, and the system “{system}” has none. “Effects” says what "
            "each triple does.",
            system=services.model_info(now.model).card.system,
        )
    if part == "paths" or trace.prediction is not None:
        return None
    if now.has_model and (mask := services.mask_token(now)):
        return t(
            "There is no prediction to explain: the text has no {mask}. In the Lab, write {mask} "
            "where a token is missing.",
            mask=mask,
        )
    return t(
        "There is no prediction to explain: nothing in the Lab predicts. Choose a task and a model "
        "there."
    )


def explained_part(part: str, now: Scene, trace: Any) -> None:
    """Draw a part that has what it needs."""
    graph = state.session().graph_of(now)
    if part == "paths":  # follows states, whatever is predicted
        paths_part(now, graph, trace)
        return
    target = choose_target(now, trace, "explain", every=True)
    if target is not None:
        (effects_part if part == "effects" else search_part)(now, graph, target)


page()
