"""The Lab's prediction, before and now; its result in a strip that stays in sight."""

from functools import partial
from typing import Any

import streamlit as st

from app import services, state
from app.app_pages.parts import action, bind
from app.components import tell
from app.drawn import linked
from kbert_core import KBertTrace
from kbert_core.tasks import NerPrediction
from kbert_lab.lab import comparing
from kbert_lab.lab.commands import Compare, Pin
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.selection import chosen_characters
from kbert_lab.lab.session import NO_TASK
from kbert_lab.lab.texts import N_, t, without_folders
from kbert_lab.lab.views import prediction
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.prediction import before_and_now
from kbert_lab.lab.words import COMPARE_NAME

COMPARE_TEXTS = {
    "auto": N_("Compare: as it was before"),
    "bert": N_("Compare: no knowledge"),
    "original": N_("Compare: the graph as loaded"),
    "pinned": N_("Compare: the pinned scene"),
    "systems": N_("Side by side: the systems"),
    "parts": N_("Side by side: K-BERT's parts"),
    "models": N_("Side by side: the model and its twin"),
    "graphs": N_("Side by side: the graph before and after"),
    "matrix": N_("Side by side: the matrix before and after"),
    "free": N_("Side by side: your own choice"),
    "untouched": N_("Compare: no interventions"),
}


def result_strip(said: str) -> None:
    """What became of the prediction, above everything that can be edited; it stays in sight."""
    st.markdown(f"**{markdown(said)}**" if said else "&nbsp;")


def turned(now: Scene, trace: Any, was: Any) -> str:
    """What became of a prediction, in the fewest words; plain text."""
    info = services.model_info(now.model)
    return prediction.headline(now.sentences, info, trace.prediction, was)


def prediction_panel(now: Scene, trace: Any, was: Any, kind: str) -> None:
    """The prediction before and now.

    Args:
        was: the earlier prediction, where there is one to compare with.
    """
    with st.container(
        horizontal=True, vertical_alignment="center", gap="xsmall", key="lab_head_prediction"
    ):
        st.subheader(t("Prediction"), anchor=False, width="stretch", help=how_far(now))
    if trace.prediction is None:
        no_prediction(now)
        return
    tell(turned(now, trace, was), "lab.told")
    draw_prediction(now, trace, was, kind)


@linked("lab.tags")
def draw_prediction(now: Scene, trace: Any, was: Any, kind: str) -> None:
    """A prediction, and what was predicted before where it is comparable."""
    info, found = services.model_info(now.model), trace.prediction
    trees = isinstance(trace, KBertTrace) and isinstance(found, NerPrediction)
    chosen = chosen_characters(trace.rows, state.selection()) if trees else {}
    sides = before_and_now(info, found, was, (t(COMPARE_NAME[kind]), name_now(now)))
    st.html(prediction.drawn(now.sentences, sides, chosen))


def how_far(now: Scene) -> str | None:
    """How far an example that rests on its triple may be trusted; None of others."""
    example = state.current_example()
    if not (now.has_model and services.has_trees(now) and example and example.rests_on_triple):
        return None
    return t(
        "This prediction depends on the first triple. That is not always so: the line under the "
        "chosen model says how often it follows an edit."
    )


def comparable(trace: Any, before: Any) -> Any:
    """The earlier prediction, where it is of the same text and kind."""
    if before is None or type(before.prediction) is not type(trace.prediction):
        return None
    if before.reading.sentences != trace.reading.sentences:
        st.caption(
            t("The scene to compare with has another text, so its prediction is not shown here.")
        )
        return None
    return before.prediction


@state.part("lab.comparison")
def compare_chooser() -> None:
    """What stands beside the reading: an earlier one, or several side by side; and the pin."""
    own = state.session()
    kinds = comparing.kinds(own, state.offer())
    with st.container(horizontal=True, gap="small"):
        bind(
            partial(st.selectbox, t("Compare with"), kinds),
            "lab.compare",
            own.compare if own.compare in kinds else kinds[0],
            lambda kind: state.act(Compare(kind)),
            format_func=lambda kind: t(COMPARE_TEXTS[kind]),
            width=270,
            label_visibility="collapsed",
        )
        said = t("Keep this scene, and compare later ones with it.")
        action(t("Pin"), "lab.pin", state.act, Pin(), icon="keep", help=said)


def name_now(now: Scene) -> str:
    """What the present scene is called beside the other."""
    if now.interventions:
        return t("with interventions")
    return t("with the graph as edited" if now.edits else "with the graph")


def no_prediction(now: Scene) -> None:
    """Why there is none: nothing to fill in, no task head, or no model at all."""
    if mask := services.mask_token(now):
        cut = any(mask in sentence for sentence in now.sentences)
        said = t(
            "Nothing to fill in: {mask} is in the part of the text that was cut off. Shorten the "
            "text before it."
            if cut
            else "Nothing to fill in yet: write {mask} in the sentence where a token is missing.",
            mask=mask,
        )
        st.info(markdown(said), icon=":material/edit:")
    elif state.offer().tasks() != (NO_TASK,):
        st.caption(
            t("Only the tree and the matrix are shown. Choose a task above to see a prediction.")
        )
    else:
        text = N_(
            "There is no model in {folder} that can predict. Everything else works. Restore the "
            "models that come with the project, or train one; then reload this page."
        )
        st.warning(markdown(t(text, folder=without_folders(str(services.models_folder())))))
        if services.may_open_paths():  # only whoever sits at the machine can do that
            st.code("git checkout -- models\nkbert train --help", language="bash")
