"""Noise: a dial of unrelated triples, and the curve of the prediction as they grow."""

from collections.abc import Iterator

import streamlit as st

from app import explained, services
from app.app_pages.long_run import asked_for, follow, with_progress
from app.app_pages.parts import chart, segments, table
from app.background import Look, Progress
from app.models import ModelInfo
from app.scene import Scene
from app.texts import N_, t
from app.view_models import noise as view
from app.view_models.html import markdown
from app.view_models.targets import answer_name
from kbert_core import KnowledgeGraph
from kbert_core.explain.case import Target
from kbert_lab.explain.noise import COUNTS, SEEDS, NoiseCurve, stream_noise

NOISE_MEASURE = {
    "variation": N_("Distance from BERT"),
    "moved": N_("Moved by noise"),
    "probability": N_("Probability"),
}

ss = st.session_state
MOST = 16  # unrelated triples a mention, at the dial
AT_ONCE = 6  # readings a turn
RUN = "explain.curve"


def noise_part(now: Scene, graph: KnowledgeGraph, target: Target) -> None:
    """The dial and what it gives; the curve."""
    if not services.trace(now, graph).tree.nodes:
        text = N_(
            "No entity of {graph} is named in this text, so there is nowhere to hang noise. Choose "
            "another text or graph in the Lab."
        )
        st.info(markdown(t(text, graph=graph.name)), icon=":material/info:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        count = st.slider(
            t("Unrelated triples per mention"), 0, MOST, 4, key="explain.noise", width=320
        )
        seed = st.number_input(
            t("Draw"),
            1,
            999,
            1,
            key="explain.seed",
            help=t("Another number draws other triples; the same number draws the same ones."),
            width=130,
        )
    info = services.model_info(now.model)
    left, right = st.columns([5, 6], gap="large")
    with left:
        dial(now, graph, target, count, int(seed), info)
    with right:
        curve(now, graph, target, count, info)


def dial(
    now: Scene, graph: KnowledgeGraph, target: Target, count: int, seed: int, info: ModelInfo
) -> None:
    """The prediction with so many unrelated triples, read in three ways."""
    with st.spinner(t("Reading with noise …")):
        found = explained.noise_at(now, graph, target, count, seed)
    st.markdown(markdown(view.say_dial(found, count, seed)))
    label = answer_name(target.label, info, "")
    helped = {head: st.column_config.Column(help=said) for head, said in view.dial_help().items()}
    table(view.dial(found, count, seed, info, label), config=helped)
    st.caption(markdown(view.say_injected(found, count)))
    if count:
        with st.expander(t("What was drawn")):
            drawn = explained.noise_drawn(now, graph, count, seed)
            table(view.drawn(drawn))


def curve(now: Scene, graph: KnowledgeGraph, target: Target, count: int, info: ModelInfo) -> None:
    """The curve, drawn in the background when it is asked for."""
    key = (explained.key_of(now, graph), target)
    drawn_for, before = ss.get(RUN, (None, None))
    runs = 3 * (1 + (len(COUNTS) - 1) * len(SEEDS))
    text = N_("{count} readings: {seeds} draws for each number of triples, read in three ways.")
    draw_help = t(text, count=runs, seeds=len(SEEDS))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{t('As noise grows')}**", width="stretch")
        pressed = st.button(
            t("Draw the curve" if before is None else "Draw it again"),
            key="explain.draw",
            icon=":material/show_chart:",
            type="primary" if drawn_for != key else "secondary",
            help=draw_help,
        )

    case = explained.case_of(now, graph, target)

    def steps() -> Iterator[NoiseCurve | Progress]:
        found = stream_noise(case, at_once=AT_ONCE)
        return with_progress(found, lambda one: (len(one.points), one.total))

    changed = t("The scene has changed since the curve was drawn.")
    run = asked_for(RUN, key, steps, pressed=pressed, changed=changed)
    if run is None:
        if not (pressed or before):
            st.caption(draw_help)
        return
    measure = segments(
        t("Show"), view.MEASURES, "explain.measure_of", NOISE_MEASURE, default=view.MEASURES[0]
    )

    def draw(look: Look[NoiseCurve]) -> None:
        if not look.results:
            return
        found = look.results[-1]
        label = answer_name(target.label, info, "")
        figure = view.chart(found, measure or view.MEASURES[0], count, label)
        chart(figure, "explain.curve_chart")
        st.caption(
            t(
                "Lines are means of {seeds} draws, bands show their range. The dotted line is the "
                "setting above.",
                seeds=len(SEEDS),
            )
        )
        said = view.say_curve(found)
        if said and len(found.points) == found.total:
            st.markdown(markdown(said))

    follow(run, draw, key=RUN)
