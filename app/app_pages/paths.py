"""Paths of knowledge: where a triple can have come by which layer, and what it changed there."""

from collections.abc import Iterator
from typing import Any

import streamlit as st

from app import explained, services, state
from app.app_pages.kept_runs import begin, kept, offer_again
from app.app_pages.long_run import follow
from app.app_pages.scene_bar import has_trees, readable, scene_bar
from app.background import Look, Progress, Run
from app.scene import Scene
from app.texts import t
from app.view_models import paths as view
from app.view_models.html import markdown
from app.view_models.styles import CSS
from app.view_models.visible import layers_without_model
from kbert_core import KBertError, KBertTrace, KnowledgeGraph
from kbert_core.explain.case import Case
from kbert_core.explain.influence import Influence, reach, stream_influence

ss = st.session_state
WITHOUT_MODEL = 4  # layers that are shown where no model says how many
TRIPLE, TOKEN = "triple", "token"
AT_LEAST = 0.8  # seconds before progress is shown
PLOTLY: dict[str, Any] = {"displayModeBar": False}


def page() -> None:
    """Input, work, view, top to bottom."""
    state.begin()
    st.html(CSS)
    st.subheader(t("paths.page"), anchor=False)
    st.caption(t("paths.what"))
    now = state.scene()
    if not readable(now, "paths") or not has_trees(now, "paths"):
        return
    try:
        graph = state.graph_of(now)
        trace = services.trace(now, graph)
        scene_bar(now, graph, "paths")
        window = choose_window(trace)
        if not now.has_model:
            panels(now, graph, trace, window, None)
            return
        run = followed(now, graph, window)
    except KBertError as error:
        st.error(markdown(error))
        return
    if run is None:
        return

    def draw(look: Look[Influence]) -> None:
        if look.ended and look.results:
            panels(now, graph, trace, window, look.results[-1])

    follow(run, draw, key="paths")
    offer_again("paths.run", run)


def followed(now: Scene, graph: KnowledgeGraph, window: int) -> Run[Influence] | None:
    """The run that follows every triple of a window; most have ended before they are shown."""
    key = (explained.key_of(now, graph), window)
    run = kept("paths.run", key)
    if run is None:
        case = explained.case_of(now, graph)
        run = begin("paths.run", key, lambda: steps(case, window), growing=True)
        if run is not None:
            run.join(AT_LEAST)
    return run


def steps(case: Case, window: int) -> Iterator[Influence | Progress]:
    """What is known of more and more triples."""
    for found in stream_influence(case, window=window):
        yield Progress(len(found.pieces), found.total)
        yield found


def choose_window(trace: KBertTrace) -> int:
    """Choose a window of a long text; the first with knowledge is the default."""
    count = len(trace.rows)
    if count == 1:
        return 0
    first = next((n for n, row in enumerate(trace.rows) if row.branches), 0)
    chosen = st.selectbox(
        t("tree.window"),
        range(count),
        index=first,
        key=f"paths.window.{count}",
        format_func=lambda i: t("tree.window_name", number=i + 1, count=count),
        width=160,
    )
    return int(chosen or 0)


@st.fragment
def panels(
    now: Scene, graph: KnowledgeGraph, trace: KBertTrace, window: int, found: Influence | None
) -> None:
    """The choosers and what they choose; nothing here runs a model."""
    flat = trace.rows[window]
    views = [TRIPLE, TOKEN] if found is not None and found.pieces else [TOKEN]
    names = view.token_names(flat)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="paths_top"):
        shown = TOKEN
        if len(views) > 1:
            shown = st.segmented_control(
                t("paths.view"),
                views,
                key="paths.view",
                default=TRIPLE,
                required=True,
                format_func=lambda name: t("paths.view_" + name),
            )
        piece = 0
        if shown == TRIPLE and found is not None:
            piece = st.selectbox(
                t("paths.triple"),
                range(len(found.pieces)),
                key=f"paths.triple.{len(found.pieces)}",
                format_func=lambda n: str(found.pieces[n].triple),
            )
        token = st.selectbox(
            t("paths.token"),
            list(names),
            key=f"paths.token.{len(flat)}",
            format_func=lambda n: names.get(n, str(n)),
            width=180,
        )
    left, right = st.columns([6, 5], gap="large")
    if shown == TRIPLE and found is not None:
        with left:
            st.html(view.influence_html(found, piece, token))
        with right:
            st.markdown(markdown(view.say_arrival(found, piece, token)))
            st.markdown(markdown(view.say_most(found, piece)))
            title(t("paths.reach_table", token=flat.tokens[token]))
            st.html(view.arrivals_html(found, token))
            title(t("paths.chart", token=flat.tokens[token]))
            st.plotly_chart(view.chart(found, token), key="paths.chart", config=PLOTLY)
            st.caption(markdown(view.say_agreement(found)))
        return
    if found is None:
        ways = reach(layers_without_model(trace, window, WITHOUT_MODEL))
    else:
        ways = found.ways
    with left:
        st.html(view.known_html(flat, ways, token))
    with right:
        st.markdown(markdown(view.say_known(flat, ways, token)))
        if not flat.branches:
            st.info(markdown(t("scene.no_triple", graph=graph.name)), icon=":material/info:")
        if found is None:
            st.caption(t("paths.no_model", layers=WITHOUT_MODEL))


def title(text: str) -> None:
    """The title of a part."""
    st.markdown(f"**{markdown(text)}**")


page()
