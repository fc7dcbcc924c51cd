"""What of a prediction may be explained, and what it is called."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from kbert_core.explain.case import Target, target_of
from kbert_core.explain.targets import NOT, names_of
from kbert_core.labels import OUTSIDE
from kbert_core.tasks import (
    AnswerPrediction,
    ClassPrediction,
    LabelsPrediction,
    LinkPrediction,
    MaskPrediction,
    NerPrediction,
)
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.texts import listed, t
from kbert_lab.lab.views.html import plain
from kbert_lab.lab.views.prediction import percent

CANDIDATES = 5  # tokens of each mask that are listed
SPANS = re.compile(r"(\S.*?) \[(\d+), (\d+)\)(?:, |$)")


def targets(trace: Any, *, every: bool = False) -> tuple[Target, ...]:
    """What there is to explain, what is asked about first at the head.

    Of named entities those predicted, then the mentions where none is; of
    masks each; of a class the one, of several labels those given; of links each, the least sure
    one first; the best answers.

    Args:
        trace: of a scene; without a prediction there is nothing.
        every: of a class every label, of a mask its likeliest tokens, and not only the first.
    """
    found = trace.prediction
    if isinstance(found, ClassPrediction):
        labels = sorted(found.probabilities, key=lambda la: -found.probabilities[la])
        several = isinstance(found, LabelsPrediction) and found.labels
        chosen = labels if every else several or (found.label,)
        return tuple(target_of(found, label=label) for label in chosen)
    if isinstance(found, MaskPrediction):
        return tuple(
            Target(token, filling.start, filling.end)
            for filling in found.fillings
            for token, _ in filling.candidates[: CANDIDATES if every else 1]
        )
    if isinstance(found, LinkPrediction):
        each = [target_of(found, trace.reading, span=(own.start, own.end)) for own in found.links]
        return tuple(dict.fromkeys([target_of(found, trace.reading), *each])) if each else ()
    if isinstance(found, AnswerPrediction):
        places = [(own.start, own.end) for own in found.answers]
        return tuple(target_of(found, trace.reading, span=place) for place in places)
    if not isinstance(found, NerPrediction):
        return ()
    spans = [Target(span.label, span.start, span.end) for span in found.spans]
    first = [target_of(found, trace.reading)] if spans else []
    none = [
        Target(OUTSIDE, start, end)
        for start, end in _mentions(trace)
        if all(end <= span.start or span.end <= start for span in spans)
    ]
    return tuple(dict.fromkeys([*first, *spans, *none]))


def kinds(labels: Iterable[str]) -> list[str]:
    """The entity types of tags, and O as the last."""
    found = list(dict.fromkeys(label.split("-", 1)[-1] for label in labels))
    return sorted(found, key=lambda label: label == OUTSIDE)


def name_of(target: Target, trace: Any, info: ModelInfo) -> str:
    """What a target is called: its text and its label; plain text."""
    found = trace.prediction
    if isinstance(found, ClassPrediction):
        p = percent(found.probabilities.get(target.label))
        return t("{label}, {p}", label=info.label(target.label), p=p)
    if isinstance(found, MaskPrediction):
        number = [filling.start for filling in found.fillings].index(target.start)
        name = t("[MASK] {number}: {token}", number=number + 1, token=plain(target.label))
        share = dict(found.fillings[number].candidates).get(target.label)
        return name if share is None else t("{label}, {p}", label=name, p=percent(share))
    if isinstance(found, AnswerPrediction):
        shares = {(own.start, own.end): own.probability for own in found.answers}
        p = percent(shares.get((target.start, target.end)))
        return t("{label}, {p}", label=target.label, p=p)
    text = trace.reading.sentences[0][target.start : target.end]
    label = t("O (none)") if target.label == OUTSIDE else target.label
    return t("“{text}” {label}", text=text, label=label)


def candidates_of(target: Target, trace: Any) -> list[str]:
    """The entities that a linked name may mean, the most probable first."""
    names = {span.place[2:]: names_of(span) for span in trace.reading.linked_spans}
    return names[target.start, target.end]


def wishes(trace: Any, target: Target, labels: Iterable[str]) -> list[str]:
    """What a prediction might become; no entity is the last."""
    found = trace.prediction
    if isinstance(found, LinkPrediction):
        offered = candidates_of(target, trace)
    elif isinstance(found, AnswerPrediction):
        offered = [answer.text for answer in found.answers]
    elif isinstance(found, NerPrediction):
        offered = kinds(labels)
    else:  # each of several labels is there or not
        offered = [] if isinstance(found, LabelsPrediction) else list(labels)
    return [label for label in dict.fromkeys(offered) if label != target.label]


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
            t("“{text}” {label}", text=text[int(start) : int(end)], label=label)
            for label, start, end in spans
        )
    if answer.startswith(NOT):
        return t("not {label}", label=info.label(answer.removeprefix(NOT)))
    return t("O (none)") if answer == OUTSIDE else info.label(answer)


def _mentions(trace: Any) -> Iterator[tuple[int, int]]:
    tokens = trace.reading.tokens[0]
    for mention in trace.reading.mentions:
        first, last = tokens.over(mention.start, mention.end)
        if last > first:
            yield mention.start, mention.end
