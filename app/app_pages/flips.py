"""What flips it?: which triples a prediction rests on, and what would change it."""

import streamlit as st

from app import services, state
from app.app_pages.flips_effects import effects_panel
from app.app_pages.flips_search import search_panel
from app.app_pages.flips_target import choose_target
from app.app_pages.scene_bar import no_prediction, readable, scene_bar
from app.texts import t
from app.view_models.html import markdown
from app.view_models.styles import CSS
from kbert_core import KBertError


def page() -> None:
    """Input, work, view, top to bottom."""
    state.begin()
    st.html(CSS)
    st.subheader(t("flips.page"), anchor=False)
    now = state.scene()
    if not readable(now, "flips"):
        return
    try:
        graph = state.graph_of(now)
        trace = services.trace(now, graph)
        scene_bar(now, graph, "flips")
        if trace.prediction is None:
            no_prediction(now, "flips")
            return
        target = choose_target(now, trace)
        if target is None:
            return
        effects_panel(now, graph, target)
        search_panel(now, graph, target)
    except KBertError as error:
        st.error(markdown(error))


page()
