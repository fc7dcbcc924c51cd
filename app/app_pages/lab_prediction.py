"""The Lab's prediction, before and now."""

from typing import Any

import streamlit as st

from app import intervening, services, state
from app.models import ModelInfo
from app.scene import Scene
from app.selecting import linked
from app.state import AUTO, BERT, FREE, KEEP, NO_TASK, ORIGINAL, PINNED, UNTOUCHED
from app.texts import t
from app.view_models import links, prediction, twins
from app.view_models.html import markdown
from app.view_models.selected import chosen_characters
from app.view_models.share_of_edits import shares
from kbert_core import KBertTrace
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
    if trace.prediction is None:
        no_prediction(now)
        return
    info = services.model_info(now.model)
    was = comparable(trace, before)
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
    """The entities as a table, and the types of what changed."""
    if trace.prediction is None:
        return
    was = before.prediction if before is not None and same_text(trace, before) else None
    if isinstance(trace.prediction, NerPrediction):
        ner_details(trace.prediction, was if isinstance(was, NerPrediction) else None)


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
    """What stands beside the reading: an earlier one, or several side by side; and the pin."""
    now = state.scene()
    kinds = [AUTO, BERT, ORIGINAL, *([PINNED] if ss.get("lab.pinned") else [])]
    if intervening.log().standing or ss.get("lab.compare") == UNTOUCHED:
        kinds.append(UNTOUCHED)
    kinds += [*state.side_by_side(now), FREE]
    if ss.get("lab.compare") not in kinds:
        ss["lab.compare"] = AUTO
    st.selectbox(
        t("compare.label"),
        kinds,
        key="lab.compare",
        format_func=lambda name: t("compare." + name),
        width=270,
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
    changes = prediction.span_changes(before.spans if before else (), after.spans)
    if before is not None:
        st.markdown(markdown(prediction.headline(changes)))
    text, (was, name) = now.sentences[0], names
    st.html(twins.now_and_before(text, after, name, before, was, chosen))


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
