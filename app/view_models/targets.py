"""What of a prediction may be explained, and what it is called."""

import re
from collections.abc import Iterator

from app.models import ModelInfo
from app.texts import listed, t
from app.view_models.html import plain
from app.view_models.prediction import percent
from kbert_core import KBertTrace
from kbert_core.explain.case import Target, target_of
from kbert_core.labels import OUTSIDE
from kbert_core.tasks import ClassPrediction, MaskPrediction, NerPrediction

SPANS = re.compile(r"(\S.*?) \[(\d+), (\d+)\)(?:, |$)")


def targets(trace: KBertTrace) -> tuple[Target, ...]:
    """What there is to explain, what is asked about first at the head.

    Of named entities those predicted, then the mentions where none is; of
    masks each; of a class the one.

    Args:
        trace: of a scene; without a prediction there is nothing.
    """
    found = trace.prediction
    if isinstance(found, ClassPrediction):
        return (Target(found.label),)
    if isinstance(found, MaskPrediction):
        return tuple(
            Target(filling.candidates[0][0], filling.start, filling.end)
            for filling in found.fillings
        )
    if not isinstance(found, NerPrediction):
        return ()
    spans = [Target(span.label, span.start, span.end) for span in found.spans]
    first = [target_of(found, trace.reading)] if spans else []
    none = [Target(OUTSIDE, *place) for place in _mentions(trace) if _free(place, spans)]
    return tuple(dict.fromkeys([*first, *spans, *none]))


def name_of(target: Target, trace: KBertTrace, info: ModelInfo) -> str:
    """What a target is called: its text and its label; plain text."""
    found = trace.prediction
    if isinstance(found, ClassPrediction):
        p = percent(found.probabilities.get(target.label))
        return t("target.class", label=info.label(target.label), p=p)
    if isinstance(found, MaskPrediction):
        number = [filling.start for filling in found.fillings].index(target.start) + 1
        return t("target.mask", number=number, token=plain(target.label))
    text = trace.tree.sentences[0][target.start : target.end]
    label = t("prediction.outside") if target.label == OUTSIDE else target.label
    return t("target.span", text=text, label=label)


def answer_name(answer: str, info: ModelInfo, text: str) -> str:
    """An answer as people read it: a label by its name, spans by what they read; plain text.

    Args:
        answer: of a target, see ``Target.answer``.
        info: of the model that gave it.
        text: of the sentence that spans are in.
    """
    spans = SPANS.findall(answer)
    if spans:
        return listed(
            t("target.span", text=text[int(start) : int(end)], label=label)
            for label, start, end in spans
        )
    return t("prediction.outside") if answer == OUTSIDE else info.label(answer)


def _mentions(trace: KBertTrace) -> Iterator[tuple[int, int]]:
    for node in trace.tree.nodes:
        tokens = trace.rows[0].trunk_tokens[0]
        first, last = tokens.over(node.mention.start, node.mention.end)
        if last > first:
            yield node.mention.start, node.mention.end


def _free(place: tuple[int, int], spans: list[Target]) -> bool:
    return all(place[1] <= span.start or span.end <= place[0] for span in spans)
