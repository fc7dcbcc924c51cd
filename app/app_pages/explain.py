"""Explain: what the prediction rests on, what flips it, its paths; one part runs."""

import streamlit as st

from app import explained, services, state
from app.app_pages.explain_parts import effects_part, paths_part, search_part
from app.app_pages.parts import segments
from app.app_pages.target_chooser import choose_target
from app.state import KEEP
from kbert_core import KBertError
from kbert_lab.lab.scene import Scene, is_blank
from kbert_lab.lab.texts import N_, listed, t, tn
from kbert_lab.lab.views.html import CSS, markdown, shorten

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
        show(part, now)
    except KBertError as error:
        st.error(markdown(error))


def show(part: str, now: Scene) -> None:
    """Draw a part, or say what it needs and the scene lacks."""
    graph, lacks = state.session().graph_of(now), ""
    if any(is_blank(text) or len(text) > services.LONGEST_TEXT for text in now.sentences):
        lacks = N_("The text in the Lab is empty, or over {most} characters. Change it there.")
    elif part == "paths" and not services.has_trees(now):
        lacks = N_(
            "Paths need sentence trees, and this model reads none. “Effects” says what each "
            "triple does."
        )
    elif part == "paths":  # follows states, whatever is predicted
        paths_part(now, graph, services.trace(now, graph))
    elif (trace := services.trace(now, graph)).prediction is None:
        lacks = N_(
            "There is no prediction to explain. In the Lab, choose a task and a model; for "
            "fill-mask, write [MASK] where a token is missing."
        )
    elif target := choose_target(now, trace, "explain", every=True):
        (effects_part if part == "effects" else search_part)(now, graph, target)
    if lacks:
        st.info(markdown(t(lacks, most=f"{services.LONGEST_TEXT:,}")), icon=":material/info:")


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


page()
