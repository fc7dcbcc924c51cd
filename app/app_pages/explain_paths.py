"""Paths: what leaving a triple out changes, token by token and layer by layer."""

from functools import partial

import streamlit as st

from app import explained
from app.app_pages.long_run import begin, follow, kept, with_progress
from app.app_pages.parts import chart, choose_window, no_triple, select
from app.background import Look
from kbert_core import KBertTrace, KnowledgeGraph
from kbert_lab.explain.influence import Influence, stream_influence
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import paths as view
from kbert_lab.lab.views.html import markdown

TALL = 760  # pixels of a drawing that doesn't scroll
RUN = "explain.paths"


def paths_part(now: Scene, graph: KnowledgeGraph, trace: KBertTrace) -> None:
    """Choose a window, follow every triple of it in the background, draw one of them."""
    first = next((n for n, row in enumerate(trace.rows) if row.branches), None)
    if first is None:
        no_triple(graph)
        return
    if not now.has_model:
        st.info(t("Nothing can be measured without a model. Choose one in the Lab."))
        return
    count = len(trace.rows)
    window = choose_window(count, f"explain.window.{count}", first, width=320)
    key = (explained.key_of(now, graph), window)
    run = kept(RUN, key)
    if run is None:
        found = stream_influence(explained.case_of(now, graph), window=window)
        steps = partial(with_progress, found, lambda one: (len(one.pieces), one.total))
        run = begin(RUN, key, steps, growing=True)
    if run is not None:
        follow(run, draw, key=RUN, again=True)


def draw(look: Look[Influence]) -> None:
    """What one triple changes, once all were followed or the run was stopped."""
    found = look.results[-1] if look.results else None
    if not look.ended or found is None or not found.pieces:
        return
    pieces = found.pieces
    name = lambda number: str(pieces[number].triple)  # noqa: E731
    piece = select(t("Triple"), range(len(pieces)), f"explain.path_triple.{len(pieces)}", name)
    st.markdown(markdown(view.say_reach(found, piece)))
    figure = view.change_chart(found, piece, dark=st.context.theme.type == "dark")
    height = int(figure.layout.height)
    with st.container(height=TALL if height > TALL else "content", border=False):
        chart(figure, "explain.path_map")
    st.caption(
        t(
            "Blue: change of the state, in per cent. Empty: nothing can have come here yet. "
            "Orange: the triple's own tokens, gone without it."
        )
    )
