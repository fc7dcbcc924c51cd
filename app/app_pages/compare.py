"""Compare: two to four readings side by side, on one scale, with one selection."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from app import comparing, explained, selecting, services, state
from app.app_pages.compare_choice import free_panels
from app.app_pages.compare_matrices import matrices
from app.app_pages.scene_bar import has_trees, model_name, no_trees, readable, scene_bar
from app.app_pages.target_chooser import choose_target
from app.comparing import Known, Panel
from app.models import ModelInfo
from app.scene import NO_GRAPH, Scene
from app.texts import t
from app.view_models import prediction, sides, twins
from app.view_models.html import markdown
from app.view_models.styles import CSS
from app.view_models.targets import name_of
from app.view_models.twins import Side
from kbert_core import KBertError, KBertTrace, KnowledgeGraph
from kbert_core.errors import CheckpointError
from kbert_core.explain.case import NOTHING, Target
from kbert_core.tasks import ClassPrediction, MaskPrediction, NerPrediction

ss = st.session_state
FREE = "free"


@dataclass(frozen=True)
class Run:
    """A panel that was run.

    Attributes:
        panel: what is shown.
        title, by: what it is called, at its head and within a sentence.
        about: what it reads, and how.
        graph: its scene's, with the edits made.
        trace: what came of it.
    """

    panel: Panel
    title: str
    by: str
    about: str
    graph: KnowledgeGraph
    trace: KBertTrace

    @property
    def scene(self) -> Scene:
        """What was run."""
        return self.panel.scene


def page() -> None:
    """Input, work, view, top to bottom."""
    state.begin()
    selecting.begin()
    st.html(CSS)
    st.subheader(t("sides.page"), anchor=False)
    st.caption(t("sides.what"))
    now = state.scene()
    if not readable(now, "compare") or not has_trees(now, "compare"):
        return
    try:
        graph = state.graph_of(now)
        scene_bar(now, graph, "compare")
        runs = run(choose(now))
    except KBertError as error:
        st.error(markdown(error))
        return
    if len(runs) < comparing.FEWEST:
        st.info(t("sides.too_few"))
        return
    predictions(runs)
    matrices([(one.title, one.about, one.scene, one.trace) for one in runs])
    differences(runs)


def choose(now: Scene) -> Sequence[Panel]:
    """The panels of a preset, or freely chosen."""
    known = Known(state.twin_scene(now), state.loaded(now), ss.get("lab.pinned"))
    offered = comparing.presets(now, known)
    names = [*offered, FREE]
    if ss.get("compare.preset") not in names:
        ss["compare.preset"] = names[0]
    chosen = st.segmented_control(
        t("sides.preset"),
        names,
        key="compare.preset",
        required=True,
        format_func=lambda name: t("sides.preset_" + name),
    )
    return free_panels(now, known) if chosen == FREE else offered[chosen or "parts"]


def run(panels: Sequence[Panel]) -> list[Run]:
    """Run the panels; of one that can't be, say why."""
    runs = []
    several = len({panel.scene.model for panel in panels}) > 1
    for panel, title, by in zip(panels, sides.names_of(panels), sides.by_of(panels), strict=True):
        try:
            if not services.has_trees(panel.scene):
                raise CheckpointError(no_trees(panel.scene))
            graph = state.graph_of(panel.scene)
            trace = services.trace(panel.scene, graph)
            model = model_name(panel.scene) if several else ""
            about = sides.about(panel.scene, model, len(set(trace.used)))
            runs.append(Run(panel, title, by, about, graph, trace))
        except KBertError as error:
            st.error(markdown(f"{title}: {t('sides.failed', reason=error)}"))
    return runs


def one_text(runs: Sequence[Run]) -> bool:
    """Whether all read the same text."""
    return len({one.scene.sentences for one in runs}) == 1


# Predictions


def predictions(runs: Sequence[Run]) -> None:
    """What every panel predicts, side by side."""
    told = [one for one in runs if one.trace.prediction is not None]
    kinds = {type(one.trace.prediction) for one in told}
    if len(told) < comparing.FEWEST or len(kinds) > 1:
        return
    st.markdown(f"#### {t('sides.predictions')}")
    infos = [services.model_info(one.scene.model) for one in told]

    def columns(view: Callable[[Any, ModelInfo], Any]) -> list[Side]:
        return [
            Side(one.title, one.about, one.by, view(one.trace.prediction, info))
            for one, info in zip(told, infos, strict=True)
        ]

    kind = kinds.pop()
    if kind is NerPrediction:
        entities(told, columns(lambda p, _: p))
    elif kind is ClassPrediction:
        bars = columns(lambda p, info: prediction.probabilities(info, p))
        score = prediction.is_score(infos[0], told[0].trace.prediction)
        st.markdown(markdown(twins.say_score(bars) if score else twins.say_labels(bars)))
        st.html(twins.bars_table(bars, head="" if score else t("prediction.label")))
    elif kind is MaskPrediction:
        count = min(len(one.trace.prediction.fillings) for one in told)
        for number in range(count):
            filled = columns(partial(nth_filling, number))
            st.markdown(markdown(twins.say_labels(filled)))
            st.html(twins.bars_table(filled, head=t("prediction.token", number=number + 1)))


def entities(told: Sequence[Run], columns: list[Side]) -> None:
    """The text once a panel, with its entities; a table where the text is one."""
    if not one_text(told):
        for one, side in zip(told, columns, strict=True):
            st.html(twins.spans_lines(one.scene.sentences[0], [side]))
        return
    text = told[0].scene.sentences[0]
    st.markdown(markdown(twins.say_spans(text, columns)))
    st.html(twins.spans_lines(text, columns))
    if twins.places(columns):
        st.html(twins.spans_table(text, columns))


def nth_filling(number: int, filled: MaskPrediction, _: ModelInfo) -> dict[str, float]:
    """The candidates for one [MASK]."""
    return prediction.fillings_of(filled)[number]


# Differences


def differences(runs: Sequence[Run]) -> None:
    """A table of every two panels, and why two of them are equal."""
    st.markdown(f"#### {t('sides.differences')}")
    if not one_text(runs):
        st.caption(t("sides.other_text"))
        return
    able = [one for one in runs if one.scene.has_model]
    if len(able) < comparing.FEWEST:
        st.caption(t("sides.no_model"))
        return
    target = what(able)
    made = explained.compared(
        [one.scene for one in able], [one.graph for one in able], target or NOTHING
    )
    names = {str(number): one.title for number, one in enumerate(able)}
    st.markdown(markdown(sides.say_equal(made, names)))
    st.html(sides.differences_html(made, names, services.model_info(able[0].scene.model)))


def what(able: Sequence[Run]) -> Target | None:
    """Choose what of the predictions is followed: of the first panel with knowledge."""
    told = [one for one in able if one.trace.prediction is not None]
    knowing = [one for one in told if one.scene.graph != NO_GRAPH]
    for one in (*knowing, *told):
        target = choose_target(one.scene, one.trace, "compare")
        if target is not None:
            info = services.model_info(one.scene.model)
            st.caption(markdown(t("sides.of", target=name_of(target, one.trace, info))))
            return target
    return None


page()
