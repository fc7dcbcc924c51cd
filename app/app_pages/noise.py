"""Knowledge noise: a dial of unrelated triples, and the curve of the prediction as they grow."""

from collections.abc import Iterator
from typing import Any

import streamlit as st

from app import explained, services, state
from app.app_pages.long_run import follow
from app.app_pages.scene_bar import has_trees, no_prediction, readable, scene_bar
from app.app_pages.target_chooser import choose_target
from app.background import Look, Progress, Run
from app.models import ModelInfo
from app.scene import Scene
from app.texts import t
from app.view_models import noise as view
from app.view_models.html import markdown
from app.view_models.styles import CSS
from app.view_models.targets import answer_name
from kbert_core import KBertError, KBertTrace, KnowledgeGraph
from kbert_core.explain.case import Target
from kbert_core.explain.noise import COUNTS, SEEDS, NoiseCurve, stream_noise

ss = st.session_state
MOST = 16  # unrelated triples a mention, at the dial
AT_ONCE = 6  # readings a turn
OWN = "own"
PLOTLY: dict[str, Any] = {"displayModeBar": False}


def page() -> None:
    """Input, work, view, top to bottom."""
    state.begin()
    st.html(CSS)
    st.subheader(t("noise.page"), anchor=False)
    st.caption(t("noise.what"))
    now = state.scene()
    if not readable(now, "noise") or not has_trees(now, "noise"):
        return
    try:
        graph = state.graph_of(now)
        trace = services.trace(now, graph)
        scene_bar(now, graph, "noise")
        if trace.prediction is None:
            no_prediction(now, "noise")
            return
        if not trace.tree.nodes:
            st.info(markdown(t("noise.empty", graph=graph.name)), icon=":material/info:")
            return
        panels(now, graph, trace)
    except KBertError as error:
        st.error(markdown(error))


def panels(now: Scene, graph: KnowledgeGraph, trace: KBertTrace) -> None:
    """The dial and what it gives; the curve."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="noise_top"):
        count = st.slider(t("noise.count"), 0, MOST, 4, key="noise.count", width=320)
        seed = st.number_input(
            t("noise.seed"), 1, 999, 1, key="noise.seed", help=t("noise.seed_help"), width=130
        )
        source = choose_source(now)
        target = choose_target(now, trace, "noise")
    if target is None:
        st.info(t("scene.nothing_predicted"))
        return
    info = services.model_info(now.model)
    left, right = st.columns([5, 6], gap="large")
    with left:
        dial(now, graph, target, count, int(seed), source, info)
    with right:
        curve(now, graph, target, count, source, info)


def choose_source(now: Scene) -> KnowledgeGraph | None:
    """The graph whose triples are drawn; None: the scene's own."""
    names = {OWN: t("noise.source_own")} | {
        name: state.graph_label(name) for name in ss["lab.graphs"] if name != ss["lab.graph"]
    }
    chosen = st.selectbox(
        t("noise.source"),
        list(names),
        key="noise.source",
        format_func=lambda name: names.get(name, name),
        width=260,
    )
    return None if chosen == OWN else ss["lab.graphs"][chosen]


def dial(
    now: Scene,
    graph: KnowledgeGraph,
    target: Target,
    count: int,
    seed: int,
    source: KnowledgeGraph | None,
    info: ModelInfo,
) -> None:
    """The prediction with so many unrelated triples, read in three ways."""
    st.markdown(f"**{t('noise.dial')}**")
    with st.spinner(t("noise.busy")):
        found = explained.noise_at(now, graph, target, count, seed, source)
    st.html(view.dial_html(found, count, seed, info, answer_name(target.label, info, "")))
    st.caption(markdown(view.say_injected(found, count)))
    if not count:
        return
    drawn = explained.noise_drawn(now, graph, count, seed, source)
    with st.expander(t("noise.drawn")):
        st.html(view.drawn_html(drawn))


# The curve


def curve(
    now: Scene,
    graph: KnowledgeGraph,
    target: Target,
    count: int,
    source: KnowledgeGraph | None,
    info: ModelInfo,
) -> None:
    """The curve, drawn in the background when it is asked for."""
    key = (explained.key_of(now, graph), target, source.fingerprint if source else "")
    drawn_for, run = ss.get("noise.run", (None, None))
    draw_help = t(
        "noise.draw_help",
        count=3 * (1 + (len(COUNTS) - 1) * len(SEEDS)),
        seeds=len(SEEDS),
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{t('noise.curve')}**", width="stretch")
        st.button(
            t("noise.draw" if run is None else "noise.draw_again"),
            key="noise.draw",
            icon=":material/show_chart:",
            type="primary" if run is None or drawn_for != key else "secondary",
            help=draw_help,
            on_click=start,
            args=(key, now, graph, target, source),
        )
    problem = ss.pop("noise.problem", None)
    if problem:
        st.error(markdown(problem))
    if run is None:
        st.caption(draw_help)
        return
    if drawn_for != key:
        run.stop()
        st.info(t("noise.stale"), icon=":material/update:")
        return
    measure = st.segmented_control(
        t("noise.measure"),
        view.MEASURES,
        key="noise.measure",
        default=view.MEASURES[0],
        required=True,
        label_visibility="collapsed",
        format_func=lambda name: t("noise.measure_" + name),
    )

    def draw(look: Look[NoiseCurve]) -> None:
        if not look.results:
            return
        found = look.results[-1]
        label = answer_name(target.label, info, "")
        st.plotly_chart(
            view.chart(found, measure or view.MEASURES[0], count, label),
            key="noise.chart",
            config=PLOTLY,
        )
        st.caption(t("noise.band", seeds=len(SEEDS)))
        said = view.say_curve(found)
        if said and len(found.points) == found.total:
            st.markdown(markdown(said))

    follow(run, draw, key="noise")


def start(
    key: tuple[Any, ...],
    now: Scene,
    graph: KnowledgeGraph,
    target: Target,
    source: KnowledgeGraph | None,
) -> None:
    """Callback: draw the curve in the background."""
    _, before = ss.get("noise.run", (None, None))
    if before is not None:
        before.stop()

    def steps() -> Iterator[NoiseCurve | Progress]:
        said = explained.drawn_from(source)
        for found in stream_noise(case, source=said, at_once=AT_ONCE):
            yield Progress(len(found.points), found.total)
            yield found

    try:
        case = explained.case_of(now, graph, target)
        ss["noise.run"] = (key, Run.start(steps, visitor=state.visitor(), growing=True))
    except KBertError as error:
        ss["noise.problem"] = str(error)


page()
