"""The Lab's prediction: before and now, or beside the model's twin."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import streamlit as st

from app import intervening, services, state
from app.models import ModelInfo
from app.scene import Scene
from app.selecting import linked
from app.state import AUTO, BERT, KEEP, NO_TASK, ORIGINAL, PINNED, UNTOUCHED
from app.texts import listed, t
from app.view_models import links, model_facts, prediction, twins
from app.view_models.html import markdown
from app.view_models.selected import chosen_characters
from app.view_models.share_of_edits import shares
from app.view_models.twins import Side
from kbert_core import KBertError, KBertTrace
from kbert_core.tasks import (
    AnswerPrediction,
    ClassPrediction,
    LinkPrediction,
    MaskPrediction,
    NerPrediction,
)

ss = st.session_state


def prediction_panel(now: Scene, trace: Any, before: Any, kind: str) -> None:
    """The prediction before and now; where it is wanted, beside the twin's."""
    with st.container(
        horizontal=True, vertical_alignment="center", gap="xsmall", key="lab_head_prediction"
    ):
        st.subheader(t("prediction.title"), anchor=False, width="stretch", help=how_far(now))
        if state.beside(now) is None:
            compare_chooser()
    if trace.prediction is None:
        no_prediction(now)
        return
    info = services.model_info(now.model)
    was = comparable(trace, before)
    twin = state.beside(now)
    if twin is not None:
        try:
            beside_twin(now, twin, info, trace, (was, kind) if kind != BERT else (None, kind))
            return
        except KBertError as error:
            st.error(markdown(t("twin.broken", reason=error)))
    names = (t("compare.name_" + kind), name_now(now))
    if isinstance(trace.prediction, NerPrediction):
        ner_panel(now, trace, was, names)
    elif isinstance(trace.prediction, ClassPrediction):
        class_panel(info, trace.prediction, was)
    elif isinstance(trace.prediction, LinkPrediction):
        link_panel(now.sentences[0], trace.prediction, was)
    elif isinstance(trace.prediction, AnswerPrediction):
        st.html(prediction.answer_html(now.sentences[1], trace.prediction))
        old, new = was and prediction.answers_of(was), prediction.answers_of(trace.prediction)
        st.html(prediction.bars_html(old, new, head=t("prediction.answer")))
    elif isinstance(trace.prediction, MaskPrediction):
        fillings = prediction.fillings_of(trace.prediction)
        earlier = prediction.fillings_of(was) if was else [None] * len(fillings)
        for number, (old, new) in enumerate(zip(earlier, fillings, strict=False), start=1):
            head = t("prediction.token", number=number)
            st.html(prediction.bars_html(old, new, head=head))


def prediction_details(now: Scene, trace: Any, before: Any) -> None:
    """The entities as a table, the types of what changed, and the switch for the twin."""
    if trace.prediction is None:
        return
    was = before.prediction if before is not None and same_text(trace, before) else None
    if isinstance(trace.prediction, NerPrediction) and state.beside(now) is None:
        ner_details(trace.prediction, was if isinstance(was, NerPrediction) else None)
    twin_switch(services.model_info(now.model))


def how_far(now: Scene) -> str | None:
    """How far an example that rests on its triple may be trusted; None of others."""
    example = state.current_example()
    if not (now.has_model and services.has_trees(now) and example and example.rests_on_triple):
        return None
    info = services.model_info(now.model)
    if not info.card.knowledge:
        return None
    parts = shares(info.card.notes)
    return markdown(t("rests" if parts else "rests.unknown", model=info.name, parts=parts))


def comparable(trace: Any, before: Any) -> Any:
    """The earlier prediction, where it is of the same text and kind."""
    if before is None or type(before.prediction) is not type(trace.prediction):
        return None
    if not same_text(trace, before):
        st.caption(t("prediction.other_text"))
        return None
    return before.prediction


def same_text(trace: Any, before: Any) -> bool:
    """Whether two traces are of one text."""
    return bool(before.reading.sentences == trace.reading.sentences)


def compare_chooser() -> None:
    """What to compare with, and the pin."""
    kinds = [AUTO, BERT, ORIGINAL, *([PINNED] if ss.get("lab.pinned") else [])]
    if intervening.log().standing or ss.get("lab.compare") == UNTOUCHED:
        kinds.append(UNTOUCHED)
    st.selectbox(
        t("compare.label"),
        kinds,
        key="lab.compare",
        format_func=lambda name: t("compare." + name),
        width=190,
        label_visibility="collapsed",
        **KEEP,
    )
    st.button(
        t("compare.pin"),
        key="lab.pin",
        icon=":material/keep:",
        on_click=state.pin,
        help=t("compare.pin_help"),
    )


def name_now(now: Scene) -> str:
    """What the present scene is called beside the other."""
    if now.interventions:
        return t("compare.name_now_intervened")
    return t("compare.name_now" if now.edits else "compare.name_now_unedited")


def no_prediction(now: Scene) -> None:
    """Why there is none: nothing to fill in, no task head, or no model at all."""
    mask = services.mask_token(now)
    if mask:
        cut = any(mask in sentence for sentence in now.sentences)
        said = t("prediction.mask_cut" if cut else "prediction.no_mask", mask=mask)
        st.info(markdown(said), icon=":material/edit:")
        return
    if any(task != NO_TASK for task in state.choices().tasks):
        st.caption(t("prediction.no_task"))
        return
    st.warning(markdown(t("model.missing", folder=services.models_folder())))
    st.code(t("model.missing_command"), language="bash")
    st.markdown(t("model.missing_or"))
    st.code(t("model.train_command"), language="bash", wrap_lines=True)
    st.markdown(t("model.missing_then"))


# One model, before and now


@linked("lab.tags")
def ner_panel(
    now: Scene,
    trace: Any,
    before: NerPrediction | None,
    names: tuple[str, str],
) -> None:
    """Tags under the characters, and what changed in words."""
    after: NerPrediction = trace.prediction
    trees = isinstance(trace, KBertTrace)
    chosen = chosen_characters(trace.rows, state.selection()) if trees else {}
    labels = list(after.tokens[0].probabilities) if after.tokens else []
    changes = prediction.span_changes(before.spans if before else (), after.spans)
    if before is not None:
        st.markdown(markdown(prediction.headline(changes)))
    st.html(
        prediction.ner_html(
            now.sentences[0],
            after,
            names[1],
            before,
            names[0],
            prediction.tints(labels),
            chosen,
        )
    )


def ner_details(after: NerPrediction, before: NerPrediction | None) -> None:
    """The entities as a table, and the types of what changed."""
    changes = prediction.span_changes(before.spans if before else (), after.spans)
    st.html(prediction.changes_html(changes, compared=before is not None))
    for item in prediction.worth_a_look(changes) if before is not None else ():
        old = prediction.type_probabilities(before, item.start, item.end) if before else None
        new = prediction.type_probabilities(after, item.start, item.end)
        st.html(
            prediction.bars_html(
                prediction.named_outside(old) if old else None,
                prediction.named_outside(new),
                head=t("prediction.types_of", text=item.text),
                most=4,
            )
        )


def class_panel(info: ModelInfo, after: ClassPrediction, before: ClassPrediction | None) -> None:
    """The labels' probabilities, or the score of one answer."""
    st.markdown(markdown(prediction.say_class(info, after, before)))
    head = t("class.score_head" if prediction.is_score(info, after) else "prediction.label")
    old = prediction.probabilities(info, before) if before else None
    st.html(prediction.bars_html(old, prediction.probabilities(info, after), head=head))


def link_panel(text: str, after: LinkPrediction, before: LinkPrediction | None) -> None:
    """What each name is taken to mean."""
    before = before if before and before.links else None
    if before is not None and after.links:
        st.markdown(markdown(links.headline(text, after, before)))
    if after.links:
        st.html(links.links_html(text, after, before))
    else:
        st.caption(t("linked.none"))


# Beside the twin


def twin_switch(info: ModelInfo) -> None:
    """Show the twin's prediction too, or say why there is none."""
    twin = state.twin()
    if twin is None:
        named = info.note("twin")
        said = t("twin.named_missing" if named else "twin.none", model=info.name, twin=named)
        st.toggle(t("twin.switch_plain"), key="lab.no_twin", disabled=True, help=markdown(said))
        return
    kind = "graph" if twin.card.knowledge else "plain"
    said = t("twin.help", twin=twin.name, how=t("twin.help_" + kind))
    st.toggle(t("twin.switch_" + kind), key="lab.twin", help=markdown(said), **KEEP)


def beside_twin(
    now: Scene, twin: Scene, info: ModelInfo, trace: KBertTrace, earlier: tuple[Any, str]
) -> None:
    """Three predictions of one text: with the graph, with it off, by the twin.

    Args:
        now: the scene on the page.
        twin: the same, read by the twin.
        info: the model on the page.
        trace: of ``now``.
        earlier: the prediction compared with, None where there is none, and its kind.

    Raises:
        KBertError: the twin can't be run.
    """
    other = services.model_info(twin.model)
    off = now.without_knowledge()
    found = [
        trace.prediction,
        services.trace(off, state.graph_of(off)).prediction,
        services.trace(twin, state.graph_of(twin)).prediction,
    ]
    graph = "twin.graph_edited" if now.edits else "twin.graph"
    reads = t("twin.by_graph") if other.card.knowledge else t("twin.alone")
    heads = [
        (t(graph), info.name, t("twin.by_graph")),
        (t("twin.off"), info.name, t("twin.by_off")),
        (t("twin.twin"), listed([other.name, reads]), t("twin.by_twin")),
    ]
    one = trace.prediction

    def sides(view: Callable[[Any, ModelInfo], Any]) -> list[Side]:
        infos = (info, info, other)
        return [Side(*head, view(p, i)) for head, p, i in zip(heads, found, infos, strict=True)]

    was, kind = earlier
    if was is not None and was != one:
        st.markdown(markdown(t("twin.since_" + kind, what=since(info, was, one))))
    if isinstance(one, NerPrediction):
        text, spans = now.sentences[0], sides(lambda p, _: p)
        st.markdown(markdown(twins.say_spans(text, spans)))
        st.html(twins.spans_lines(text, spans))
        if twins.places(spans):
            st.html(twins.spans_table(text, spans))
    elif isinstance(one, ClassPrediction):
        bars = sides(lambda p, i: prediction.probabilities(i, p))
        score = prediction.is_score(info, one)
        said = twins.say_score(bars) if score else twins.say_labels(bars)
        st.markdown(markdown(said))
        st.html(twins.bars_table(bars, head="" if score else t("prediction.label")))
    elif isinstance(one, AnswerPrediction):
        answers = sides(lambda p, _: prediction.answers_of(p))
        st.markdown(markdown(twins.say_labels(answers)))
        st.html(twins.bars_table(answers, head=t("prediction.answer")))
    elif isinstance(one, MaskPrediction):
        for number in range(len(one.fillings)):
            filled = sides(partial(nth_filling, number))
            st.markdown(markdown(twins.say_labels(filled)))
            st.html(twins.bars_table(filled, head=t("prediction.token", number=number + 1)))
    if not trace.used:
        st.caption(t("twin.no_triple"))
    scores = model_facts.scores_of_twins(info, other)
    if scores:
        st.caption(markdown(scores))


def nth_filling(number: int, filled: MaskPrediction, _: ModelInfo) -> Mapping[str, float]:
    """The candidates for one [MASK]."""
    return prediction.fillings_of(filled)[number]


def since(info: ModelInfo, was: Any, now: Any) -> str:
    """What has changed in the model's own prediction; plain text."""
    if isinstance(now, NerPrediction):
        return prediction.headline(prediction.span_changes(was.spans, now.spans))
    if isinstance(now, ClassPrediction):
        return prediction.say_class(info, now, was)
    return t("twin.filled")
