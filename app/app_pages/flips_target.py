"""What the page What flips it? explains: what is predicted, or another label, span or token."""

import re
from dataclasses import replace
from typing import Any

import streamlit as st

from app import services
from app.models import ModelInfo
from app.scene import Scene
from app.texts import t
from app.view_models import targets as view
from app.view_models.html import markdown
from app.view_models.prediction import percent
from kbert_core.explain.case import Target
from kbert_core.labels import OUTSIDE
from kbert_core.tasks import AnswerPrediction, ClassPrediction, LinkPrediction, MaskPrediction

OTHER = Target("", -2, -2)  # stands for another one than those listed
CANDIDATES = 5  # tokens of each mask that are listed


def choose_target(now: Scene, trace: Any) -> Target | None:
    """Draw the choosers; None where what is written fits nothing, which is said."""
    info = services.model_info(now.model)
    if isinstance(trace.prediction, ClassPrediction):
        return choose_class(trace.prediction, info)
    if isinstance(trace.prediction, MaskPrediction):
        return choose_token(now, trace.prediction)
    if isinstance(trace.prediction, LinkPrediction):
        return choose_link(trace, info)
    if isinstance(trace.prediction, AnswerPrediction):
        answers = view.targets(trace)
        return st.selectbox(
            t("effects.explained"),
            answers,
            key=f"flips.answer.{hash(answers)}",
            format_func=lambda target: view.name_of(target, trace, info),
            width=320,
        )
    return choose_span(now, trace, info)


def choose_link(trace: Any, info: ModelInfo) -> Target | None:
    """A name, the least sure one to begin with, and an entity that it may mean."""
    found = view.targets(trace)
    if not found:
        st.info(t("linked.none"))
        return None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        span = st.selectbox(
            t("effects.explained"),
            found,
            key=f"flips.link.{hash(found)}",
            format_func=lambda target: view.name_of(target, trace, info),
            width=320,
        )
        entities = view.candidates_of(span, trace)
        entity = st.selectbox(
            t("linked.choose"),
            entities,
            index=entities.index(span.label) if span.label in entities else 0,
            key=f"flips.entity.{hash(span)}",
            width=260,
        )
    return replace(span, label=entity)


def choose_class(found: ClassPrediction, info: ModelInfo) -> Target:
    """A label, the one predicted to begin with."""
    shares = sorted(found.probabilities.items(), key=lambda item: -item[1])
    names = {label: f"{info.label(label)} · {percent(share)}" for label, share in shares}
    chosen = st.selectbox(
        t("effects.explained"),
        list(names),
        key=f"flips.class.{found.label}",
        format_func=lambda label: names.get(label, label),
        width=320,
    )
    return Target(chosen or found.label)


def choose_token(now: Scene, found: MaskPrediction) -> Target | None:
    """A mask and a token: of those likeliest there, or any other."""
    listed = [
        Target(token, filling.start, filling.end)
        for filling in found.fillings
        for token, _ in filling.candidates[:CANDIDATES]
    ]
    shares = {
        Target(token, filling.start, filling.end): share
        for filling in found.fillings
        for token, share in filling.candidates
    }
    numbers = {filling.start: n for n, filling in enumerate(found.fillings, start=1)}

    def name(target: Target) -> str:
        if target == OTHER:
            return t("effects.another")
        token = t("target.mask", number=numbers[target.start], token=view.plain(target.label))
        return f"{token} · {percent(shares[target])}"

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = st.selectbox(
            t("effects.explained"),
            [*listed, OTHER],
            key=f"flips.token.{hash(tuple(listed))}",
            format_func=name,
            width=320,
        )
        if chosen != OTHER:
            return chosen
        number = 1
        if len(numbers) > 1:
            number = st.number_input(
                t("effects.mask"), 1, len(numbers), key=f"flips.mask.{len(numbers)}", width=120
            )
        token = st.text_input(t("effects.token"), key="flips.typed_token", width=180).strip()
    if not token:
        return None
    labels = services.pipeline(now.model, now.device).labels.values()
    if token not in labels:
        st.info(markdown(t("effects.no_token", token=token)))
        return None
    filling = found.fillings[int(number) - 1]
    return Target(token, filling.start, filling.end)


def choose_span(now: Scene, trace: Any, info: ModelInfo) -> Target | None:
    """A span with its label: predicted, a mention's, or any other."""
    found = view.targets(trace)
    names = {target: view.name_of(target, trace, info) for target in found}
    names[OTHER] = t("effects.another")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = st.selectbox(
            t("effects.explained"),
            list(names),
            key=f"flips.span.{hash(found)}",
            format_func=lambda target: names.get(target, str(target)),
            width=320,
        )
        if chosen is not None and chosen != OTHER:
            return chosen
        text = st.text_input(
            t("effects.span"), key="flips.words", help=t("effects.span_help"), width=220
        ).strip()
        places = [one.start() for one in re.finditer(re.escape(text), now.sentences[0])]
        number = 1
        if text and len(places) > 1:
            key = f"flips.place.{len(places)}"
            number = st.number_input(t("effects.place"), 1, len(places), key=key, width=120)
        labels = services.pipeline(now.model, now.device).labels.values()
        kinds = list(dict.fromkeys(label.split("-", 1)[-1] for label in labels))
        kinds.sort(key=lambda label: label == OUTSIDE)
        label = st.selectbox(
            t("effects.label"),
            kinds,
            key=f"flips.label.{hash(tuple(kinds))}",
            format_func=lambda name: view.answer_name(name, info, ""),
            width=180,
        )
    if not text:
        if not found:
            st.info(t("scene.nothing_predicted"))
        return None
    if not places:
        st.info(markdown(t("effects.no_span", text=text)))
        return None
    start = places[int(number) - 1]
    return Target(label or OUTSIDE, start, start + len(text))
