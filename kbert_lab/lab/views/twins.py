"""Predictions side by side, joined on what they are about; each is held against the first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kbert_core.tasks import (
    AnswerPrediction,
    ClassPrediction,
    LabelsPrediction,
    LinkPrediction,
    NerPrediction,
)
from kbert_lab.lab.models import ModelInfo, type_name
from kbert_lab.lab.texts import N_, clauses, listed, sentences, t, tn
from kbert_lab.lab.views import links, prediction
from kbert_lab.lab.views.html import escape, scrolling
from kbert_lab.lab.views.prediction import (
    NOTHING,
    PREDICTION_TEXTS,
    Place,
    line_html,
    percent,
    signed,
    span_changes,
    tints,
)

MOST_SAID = 2  # differences told in words; the table has all
SMALL = 0.0005  # a difference of probability that isn't shown: less than 0.1 points
P = TypeVar("P")
PAIR = 2  # sides that are before and now


@dataclass(frozen=True, slots=True)
class Side(Generic[P]):
    """One of the predictions that stand side by side."""

    title: str  # at its head
    name: str  # which model, and how it reads; below the title
    prediction: P  # what it says; or a table of its probabilities


def drawn(
    texts: Sequence[str],
    info: ModelInfo,
    now: Any,
    before: Any,
    names: tuple[str, str],
    chosen: Mapping[int, str] = NOTHING,
) -> tuple[str, str]:
    """Say what became of a prediction of any kind, and draw it, before beside now.

    Args:
        now, before: predictions of one kind; before may be None.
        names: what before and now are called.
        chosen: what is marked, see ``selected.chosen_characters``.

    Returns:
        What is said, plain text, and what is drawn, escaped.
    """
    if isinstance(now, NerPrediction):
        changes = prediction.span_changes(before.spans, now.spans) if before else ()
        said = prediction.headline(changes) if before else ""
        return said, now_and_before(texts[0], now, names[1], before, names[0], chosen)
    if isinstance(now, LinkPrediction):
        before = before if before and before.links else None
        said = links.headline(texts[0], now, before) if before and now.links else ""
        return said, links.links_html(texts[0], now, before)
    said = prediction.say_class(info, now, before) if isinstance(now, ClassPrediction) else ""
    html = prediction.answer_html(texts[1], now) if isinstance(now, AnswerPrediction) else ""
    was = prediction.chances(info, before)
    for head, own in prediction.chances(info, now).items():
        html += before_and_now(was.get(head), own, head=head)
    return said, html


def before_and_now(
    before: Mapping[str, float] | None, now: Mapping[str, float], *, head: str, most: int = 8
) -> str:
    """Draw probabilities as bars, before beside now."""
    earlier = [Side(t("Before"), "", before)] if before else []
    return bars_table([*earlier, Side(t("Now"), "", now)], head=head, most=most)


def compared(
    texts: Sequence[str], sides: Sequence[Side[Any]], infos: Sequence[ModelInfo]
) -> Iterator[tuple[str, str]]:
    """Say how two to four predictions of one kind and one text compare, and draw them as a table.

    Yields:
        What is said, plain text, and a table, escaped; of named entities none.
    """
    first = sides[0].prediction
    if isinstance(first, NerPrediction):
        yield say_spans(texts[0], sides), ""
    if isinstance(first, LinkPrediction):
        for side in sides[1:]:
            said = links.headline(texts[0], side.prediction, first)
            yield t("{name}: {value}", name=side.title, value=said), ""
    tables = [
        prediction.chances(info, side.prediction) for info, side in zip(infos, sides, strict=True)
    ]
    score = isinstance(first, ClassPrediction) and prediction.is_score(infos[0], first)
    for head in tables[0]:
        each: list[Side[Mapping[str, float]]] = [
            Side(side.title, side.name, own[head])
            for side, own in zip(sides, tables, strict=True)
            if head in own
        ]
        said = (say_score if score else say_labels)(each)
        if isinstance(first, LabelsPrediction):
            named = map(prediction.labels_given, infos, (side.prediction for side in sides))
            said = _grouped([*named], sides)
        yield said, bars_table(each, head=head)


# Named entities


def say_spans(text: str, sides: Sequence[Side[NerPrediction]]) -> str:
    """Say where the sides differ, or that they don't; plain text."""
    rows: dict[Place, list[str | None]] = {}  # the types that each side finds; None: not there
    for number, side in enumerate(sides):
        for span in side.prediction.spans:
            row = rows.setdefault((span.start, span.end), [None] * len(sides))
            row[number] = type_name(span.label)
    groups = _overlapping(sorted(rows))
    differing = [group for group in groups if any(len(set(rows[place])) > 1 for place in group)]
    if not differing:
        return t(
            "{n} find the same entities, with the same types." if rows else "{n} find no entity.",
            n=_count(sides),
        )
    said = []
    for group in differing[:MOST_SAID]:
        values = []
        for number in range(len(sides)):
            here = [(text[slice(*place)], rows[place][number]) for place in group]
            named = [t("“{text}” {label}", text=own, label=label) for own, label in here if label]
            values.append(listed(named) or t("no entity"))
        said.append(_grouped(values, sides) + t("."))
    more = len(differing) - MOST_SAID
    if more > 0:
        said.append(tn("1 more place differs.", "{n} more places differ.", more))
    return sentences(said)


def _overlapping(places: Iterable[Place]) -> list[list[Place]]:
    """Put places that overlap into one group, all in reading order."""
    groups: list[list[Place]] = []
    end = 0
    for place in places:
        if groups and place[0] < end:
            groups[-1].append(place)
        else:
            groups.append([place])
        end = max(end, place[1])
    return groups


def now_and_before(
    text: str,
    now: NerPrediction,
    name: str,
    before: NerPrediction | None = None,
    name_before: str = "",
    chosen: Mapping[int, str] = NOTHING,
) -> str:
    """Draw the text with its entities, before above now; what is new, lost or other is ringed.

    Args:
        now, before: the predictions; before may be None.
        name, name_before: what they are called.
        chosen: what is marked, see ``selected.chosen_characters``.
    """
    earlier = [Side(t("Before"), name_before, before)] if before else []
    sides = [*earlier, Side(t("Now"), name, now)]
    return spans_lines(text, sides, chosen)


def spans_lines(
    text: str,
    sides: Sequence[Side[NerPrediction]],
    chosen: Mapping[int, str] = NOTHING,
    *,
    last: bool = False,
) -> str:
    """Draw the text once a side, spans that differ from the first side's ringed.

    Args:
        chosen: what is marked, see ``selected.chosen_characters``.
        last: draw the last side only, without its name.
    """
    firsts = [token for side in sides for token in side.prediction.tokens[:1]]
    colours = tints([tag for token in firsts for tag in token.probabilities])
    lines = []
    for number, side in enumerate(sides):  # of the first, marks what a second has lost
        against = sides[1] if not number and len(sides) == PAIR else side
        marks = {}
        for item in span_changes(sides[0].prediction.spans, against.prediction.spans):
            if item.change in (("new", "type") if number else ("lost",)):
                ring = "kb-ring" if number else "kb-lost"
                marks[item.start, item.end] = ring, t(PREDICTION_TEXTS[item.change])
        names = ("", "") if last else (side.title, side.name)
        lines.append(line_html(text, side.prediction, *names, colours, marks, chosen))
    return f'<div class="kb-ner">{"".join(lines[-1:] if last else lines)}</div>'


# Probabilities: labels, candidates for [MASK], the score of an answer


def say_labels(sides: Sequence[Side[Mapping[str, float]]]) -> str:
    """Say what is likeliest by whom, and how far apart the sides are; plain text."""
    best = [prediction.best_of(side.prediction) for side in sides]
    if len({label for label, _ in best}) > 1:
        named = [f"{label} {percent(value)}" for label, value in best]
        return t("They differ: {what}.", what=_grouped(named, sides))
    apart = _apart(sides)
    key = (
        N_("{n} say {label}, with the same probabilities.")
        if apart < SMALL
        else N_("{n} say {label}; their probabilities differ by at most {points} points.")
    )
    return t(key, n=_count(sides), label=best[0][0], points=f"{100 * apart:.1f}")


def say_score(sides: Sequence[Side[Mapping[str, float]]]) -> str:
    """Say how the scores of one answer compare, the only value of each side; plain text."""
    values = [prediction.best_of(side.prediction)[1] for side in sides]
    if max(values) - min(values) < SMALL:
        text = N_("{n} give this answer the same score, {score}.")
        return t(text, n=_count(sides), score=percent(values[0]))
    return t("Score of this answer: {what}.", what=_grouped([*map(percent, values)], sides))


def bars_table(sides: Sequence[Side[Mapping[str, float]]], *, head: str, most: int = 8) -> str:
    """Draw probabilities as bars, a column a side, with the difference from the first."""
    union = list(dict.fromkeys(name for side in sides for name in side.prediction))
    highest = {n: max(side.prediction.get(n, 0.0) for side in sides) for n in union}
    best = [prediction.best_of(side.prediction)[0] for side in sides]
    rows = ""
    for name in sorted(union, key=lambda name: -highest[name])[:most]:
        first = sides[0].prediction.get(name)
        rows += f"<tr><td>{escape(name)}</td>"
        for number, side in enumerate(sides):
            value = side.prediction.get(name)
            said, delta = percent(value), ""
            if number and value is not None and first is not None:
                delta = f' <span class="kb-delta">{signed(value - first)}</span>'
            if number and best[number] == name and best[0] != name:
                said = f'<span class="kb-badge">{said}</span>'
            elif best[number] == name and len(union) > 1:
                said = f"<b>{said}</b>"
            bar = f'<span class="kb-bar" style="width:{100 * (value or 0):.1f}%"></span>'
            rows += f"<td>{bar}<div>{said}{delta}</div></td>"
        rows += "</tr>"
    heads = f"<th>{escape(head)}</th>"
    for side in sides:
        name = f'<div class="kb-under">{escape(side.name)}</div>' if side.name else ""
        heads += f"<th>{escape(side.title)}{name}</th>"
    four = " kb-four" if len(sides) > 3 else ""
    return scrolling(f'<table class="kb-table kb-twins{four}"><tr>{heads}</tr>{rows}</table>')


def _apart(sides: Sequence[Side[Mapping[str, float]]]) -> float:
    """The largest difference of any one probability between two sides."""
    names = {name for side in sides for name in side.prediction}
    return max(
        max(values) - min(values)
        for values in ([side.prediction.get(name, 0.0) for side in sides] for name in names)
    )


# Both


def _grouped(values: Sequence[str], sides: Sequence[Side]) -> str:
    """Say each value with those that found it: "With the graph: Examine; Twin: no entity"."""
    groups: dict[str, list[str]] = {}
    for value, side in zip(values, sides, strict=True):
        groups.setdefault(value, []).append(side.title)
    text = N_("{name}: {value}")
    return clauses(t(text, name=listed(who), value=value) for value, who in groups.items())


def _count(sides: Sequence[Side]) -> str:
    keys = {2: N_("Both"), 3: N_("All three"), 4: N_("All four")}
    return t(keys[len(sides)])
