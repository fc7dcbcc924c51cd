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

OTHER = Target("", -2, -2)  # stands for another one than those listed


def choose_target(now: Scene, trace: Any, page: str) -> Target | None:
    """Choose one of what is predicted, where there is a choice; None where nothing is."""
    found = view.targets(trace)
    if len(found) < 2:
        return found[0] if found else None
    info = services.model_info(now.model)
    name = lambda target: view.name_of(target, trace, info)  # noqa: E731
    return select(t("Prediction explained"), found, f"{page}.target", name)


def choose_any_target(now: Scene, trace: Any) -> Target | None:
    """Choose anything that the model could have said; None where it fits nothing, which is said."""
    info = services.model_info(now.model)
    found = view.targets(trace, every=True)
    other = [OTHER] if isinstance(trace.prediction, (MaskPrediction, NerPrediction)) else []
    if not found and not other:
        st.info(t("The text contains no name of the graph, so no entity is linked."))
        return None

    def name(target: Target) -> str:
        return t("another …") if target == OTHER else view.name_of(target, trace, info)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = select(t("Explain"), [*found, *other], "explain.target", name)
        if chosen == OTHER:
            of_mask = isinstance(trace.prediction, MaskPrediction)
            return _token(now, trace) if of_mask else _span(now, trace, bool(found))
        if isinstance(trace.prediction, LinkPrediction):
            entities = view.candidates_of(chosen, trace)
            entity = select(t("Entity"), entities, "explain.entity", str, chosen.label)
            return replace(chosen, label=entity)
    return chosen


def _token(now: Scene, trace: Any) -> Target | None:
    """A mask and any token."""
    fillings = trace.prediction.fillings
    number = 1
    if len(fillings) > 1:
        number = st.number_input(t("Which [MASK]"), 1, len(fillings), key="explain.mask", width=120)
    token = st.text_input(t("Token"), key="explain.token", width=180).strip()
    if not token:
        return None
    if token not in services.pipeline(now.model, now.device).labels.values():
        st.info(markdown(t("The model has no token “{token}”.", token=token)))
        return None
    filling = fillings[int(number) - 1]
    return Target(token, filling.start, filling.end)


def _span(now: Scene, trace: Any, some: bool) -> Target | None:
    """Words of the text, and the label they might have."""
    info = services.model_info(now.model)
    text = st.text_input(
        t("Words of the text"),
        key="explain.words",
        help=t("As they stand in the text; where they stand several times, choose which."),
        width=220,
    ).strip()
    places = [one.start() for one in re.finditer(re.escape(text), now.sentences[0])]
    number = 1
    if text and len(places) > 1:
        number = st.number_input(t("Which of them"), 1, len(places), key="explain.place", width=120)
    kinds = view.kinds(services.pipeline(now.model, now.device).labels.values())
    label = select(t("as"), kinds, "explain.label", lambda kind: view.answer_name(kind, info, ""))
    if not text:
        if not some:
            st.info(t("No entity is predicted, so choose a span to explain."))
        return None
    if not places:
        st.info(markdown(t("“{text}” is not in the text.", text=text)))
        return None
    start = places[int(number) - 1]
    return Target(label or OUTSIDE, start, start + len(text))
