"""Explain: what the prediction rests on, what flips it, its paths; one part runs."""

from typing import Any

import streamlit as st

from app import services, state
from app.app_pages.explain_effects import effects_part
from app.app_pages.explain_paths import paths_part
from app.app_pages.explain_search import search_part
from app.app_pages.parts import segments
from app.app_pages.scene_bar import has_trees, no_prediction, readable, scene_bar
from app.app_pages.target_chooser import choose_any_target
from app.state import KEEP
from kbert_core import KBertError, KnowledgeGraph
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views.html import markdown
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

ss = st.session_state
OF_TARGET = {"effects": effects_part, "flips": search_part}


def page() -> None:
    """Input, work, view, top to bottom."""
    state.begin()
    st.html(CSS)
    now = state.scene()
    if not readable(now, "explain"):
        return
    try:
        graph = state.graph_of(now)
        trace = services.trace(now, graph)
        scene_bar(now, graph, "explain")
        part = choose_part()
        explained_part(part, now, graph, trace)
    except KBertError as error:
        st.error(markdown(error))


def choose_part() -> str:
    """Which part is looked at; an address may ask for one."""
    asked = st.query_params.get("part")
    if asked in PARTS and asked != ss.get("explain.asked"):
        ss["explain.part"] = ss["explain.asked"] = asked
    if asked == "noise":  # an address of before
        said = N_(
            "Noise has left the app: see the notebook `08_knowledge_noise`, or run `kbert explain "
            "noise TEXT` on the command line."
        )
        st.info(t(said), icon=":material/info:")
    ss.setdefault("explain.part", "effects")
    segments(
        t("Part"),
        list(PARTS),
        "explain.part",
        lambda name: f"{PARTS[name][0]} {t(PARTS[name][1])}",
        **KEEP,
    )
    return str(ss["explain.part"])


def explained_part(part: str, now: Scene, graph: KnowledgeGraph, trace: Any) -> None:
    """The part, where the scene has what it needs; where not, that is said."""
    st.caption(t(PARTS[part][2]))
    if part == "paths":  # follows states, whatever is predicted
        if has_trees(now, "explain"):
            paths_part(now, graph, trace)
        return
    if trace.prediction is None:
        no_prediction(now, "explain")
        return
    target = choose_any_target(now, trace)
    if target is not None:
        OF_TARGET[part](now, graph, target)


page()
