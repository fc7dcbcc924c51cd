"""Paths: where a triple can have come by which layer, and what it changed there."""

from functools import partial
from typing import Any

import streamlit as st

from app import explained
from app.app_pages.long_run import begin, follow, kept, with_progress
from app.app_pages.parts import chart, choose_window, no_triple, segments, select, table
from app.background import Look
from app.texts import N_, t
from app.view_models import paths as view
from app.view_models.html import markdown, plain
from app.view_models.why import layers_without_model
from kbert_core import KBertTrace, KnowledgeGraph
from kbert_lab.explain.influence import Influence, reach, stream_influence
from kbert_lab.lab.scene import Scene

PATHS_VIEW = {"triple": N_("What a triple changes"), "token": N_("What a token can know")}

WITHOUT_MODEL = 4  # layers that are shown where no model says how many
TRIPLE, TOKEN = "triple", "token"
TALL = 760  # pixels of a drawing that doesn't scroll
RUN = "explain.paths"


def paths_part(now: Scene, graph: KnowledgeGraph, trace: KBertTrace) -> None:
    """Choose a window, follow every triple of it in the background, show what is known."""
    count = len(trace.rows)
    first = next((n for n, row in enumerate(trace.rows) if row.branches), 0)  # with knowledge
    window = choose_window(count, f"explain.window.{count}", first, width=320)
    if not now.has_model:
        panels(graph, trace, window, None)
        return
    key = (explained.key_of(now, graph), window)
    run = kept(RUN, key)
    if run is None:
        case = explained.case_of(now, graph)
        found = partial(stream_influence, case, window=window)
        steps = lambda: with_progress(found(), lambda one: (len(one.pieces), one.total))  # noqa: E731
        run = begin(RUN, key, steps, growing=True)
    if run is None:
        return

    def draw(look: Look[Influence]) -> None:
        if look.ended and look.results:
            panels(graph, trace, window, look.results[-1])

    follow(run, draw, key=RUN, again=True)


@st.fragment
def panels(graph: KnowledgeGraph, trace: KBertTrace, window: int, found: Influence | None) -> None:
    """The choosers and what they choose; nothing here runs a model."""
    flat = trace.rows[window]
    names = [
        t("{number}: {text}", number=number, text=plain(text))
        for number, text in enumerate(flat.tokens)
    ]
    measured = found if found is not None and found.pieces else None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        shown, piece = TOKEN, 0
        if measured is not None:
            shown = segments(
                t("Show"),
                [TRIPLE, TOKEN],
                "explain.paths_view",
                PATHS_VIEW,
                hidden=False,
                default=TRIPLE,
            )
        if measured is not None and shown == TRIPLE:
            pieces = measured.pieces
            piece = select(
                t("Triple"),
                range(len(pieces)),
                f"explain.path_triple.{len(pieces)}",
                lambda n: str(pieces[n].triple),
            )
        token = select(
            t("Token"),
            range(len(flat)),
            f"explain.path_token.{len(flat)}",
            lambda n: names[n],
            view.first_token(flat),
        )
    left, right = st.columns([6, 5], gap="large")
    if measured is not None and shown == TRIPLE:
        with left:
            drawing(view.change_chart(measured, piece, token))
            st.caption(
                t(
                    "Blue: change of the state, in per cent. Empty: nothing can have come here "
                    "yet. Orange: the triple's own tokens, gone without it."
                )
            )
        with right:
            st.markdown(markdown(view.say_arrival(measured, piece, token)))
            st.markdown(markdown(view.say_most(measured, piece)))
            title = t("How much “{token}” changes without each triple", token=flat.tokens[token])
            st.markdown(f"**{markdown(title)}**")
            table(view.arrivals(measured, token))
            st.caption(markdown(view.say_agreement(measured)))
        return
    ways = found.ways if found else reach(layers_without_model(trace, window, WITHOUT_MODEL))
    with left:
        drawing(view.known_chart(flat, ways, token))
    with right:
        st.markdown(markdown(view.say_known(flat, ways, token)))
        if not flat.branches:
            no_triple(graph)
        if found is None:
            st.caption(
                t(
                    "Nothing can be measured without a model. What can have reached which token "
                    "is shown for {layers} layers. Choose a model in the Lab to measure.",
                    layers=WITHOUT_MODEL,
                )
            )


def drawing(figure: Any) -> None:
    """Layer by token; a tall one scrolls."""
    height = int(figure.layout.height)
    with st.container(height=TALL if height > TALL else "content", border=False):
        chart(figure, "explain.path_map")
