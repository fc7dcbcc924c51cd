"""What of a prediction a page explains: what is predicted, or another label, span or token."""

import re
from dataclasses import replace
from typing import Any

import streamlit as st

from app import services
from app.app_pages.parts import select
from kbert_core.explain.case import Target
from kbert_core.labels import OUTSIDE
from kbert_core.tasks import LinkPrediction, MaskPrediction, NerPrediction
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import targets as view
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.knowledge import NO_NAME

OTHER = Target("", -2, -2)  # stands for another one than those listed


def choose_target(now: Scene, trace: Any, page: str, *, every: bool = False) -> Target | None:
    """Choose what of a prediction is explained; None where nothing is, or it fits nothing.

    Args:
        page: with whose name keys begin.
        every: whatever the model could have said, and not only what it did.
    """
    info, found = services.model_info(now.model), view.targets(trace, every=every)
    several = isinstance(trace.prediction, MaskPrediction | NerPrediction)
    offered = [*found, *([OTHER] if every and several else [])]
    if not offered:
        if every:
            st.info(t(NO_NAME))
        return None
    if len(offered) == 1 and not every:
        return offered[0]

    def name(target: Target) -> str:
        return t("another …") if target == OTHER else view.name_of(target, trace, info)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = select(t("Prediction explained"), offered, f"{page}.target", name)
        if chosen == OTHER:
            of_mask = isinstance(trace.prediction, MaskPrediction)
            return _token(now, trace) if of_mask else _span(now)
        if every and isinstance(trace.prediction, LinkPrediction):
            entities = view.candidates_of(chosen, trace)
            entity = select(t("Entity"), entities, "explain.entity", str, chosen.label)
            return replace(chosen, label=entity)
    return chosen


def _token(now: Scene, trace: Any) -> Target | None:
    """A mask and any token."""
    fillings = trace.prediction.fillings
    number = _number(t("Which [MASK]"), len(fillings), "explain.mask")
    token = st.text_input(t("Token"), key="explain.token", width=180).strip()
    if token and token not in services.pipeline(now.model, now.device).labels.values():
        st.info(markdown(t("The model has no token “{token}”.", token=token)))
    elif token:
        return Target(token, fillings[number].start, fillings[number].end)
    return None


def _span(now: Scene) -> Target | None:
    """Words of the text, and the label they might have."""
    info = services.model_info(now.model)
    text = st.text_input(t("Words of the text"), key="explain.words", width=220).strip()
    places = [own.start() for own in re.finditer(re.escape(text), now.sentences[0])] if text else []
    number = _number(t("Which of them"), len(places), "explain.place")
    kinds = view.kinds(services.pipeline(now.model, now.device).labels.values())
    label = select(t("as"), kinds, "explain.label", lambda kind: view.answer_name(kind, info, ""))
    if places:
        return Target(label or OUTSIDE, places[number], places[number] + len(text))
    if text:
        st.info(markdown(t("“{text}” is not in the text.", text=text)))
    return None


def _number(label: str, count: int, key: str) -> int:
    """Choose one of several, from 0; of one there is no choice."""
    return int(st.number_input(label, 1, count, key=key, width=120)) - 1 if count > 1 else 0
