"""Predictions of any kind, one to four side by side: in words, on the text, as bars, as a table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal

from kbert_core.errors import KBertError
from kbert_core.labels import RIGHT
from kbert_core.tasks import (
    NULL,
    AnswerPrediction,
    ClassPrediction,
    LabelsPrediction,
    LinkPrediction,
    MaskPrediction,
    NerPrediction,
)
from kbert_core.tasks.ner import LabelledToken
from kbert_lab.lab.models import ModelInfo, type_name
from kbert_lab.lab.texts import N_, clauses, listed, t
from kbert_lab.lab.views.html import ENTITY_TINTS, escape, rendered, scrolling

LONG = 150  # characters of a text that scrolls line by line, each line of one height
FOLDED = 50  # characters of a text that stands once where nothing in it changed
AROUND = 40  # characters that are drawn beside what has changed in a long text
MOST_SAID = 3  # changes told in words; the table has all
MOST_BARS = 5
BAR = 50  # per cent of its cell that a bar takes at the most; the number stands beside it
WHAT_CHANGED = {"type": N_("other type"), "new": N_("new"), "lost": N_("lost")}
NOTHING: Mapping[int, str] = {}  # of the text is chosen
Place = tuple[int, int]  # in characters, end exclusive
Named = tuple[str, float | None]  # what something is taken for, as people read it; how likely
Chances = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the predictions that stand side by side."""

    title: str  # at its head
    name: str  # which model, and how it reads; below the title
    prediction: Any
    info: ModelInfo | None = None  # its model; needed where there are labels to be named


def before_and_now(
    info: ModelInfo | None, now: Any, before: Any = None, names: tuple[str, str] = ("", "")
) -> list[Side]:
    """Two sides, or one where there is nothing to compare; ``names`` of before and now."""
    earlier = [Side(t("Before"), names[0], before, info)] if before is not None else []
    return [*earlier, Side(t("Now"), names[1], now, info)]


# What a prediction says


@dataclass(frozen=True, slots=True)
class Change:
    """One place of a text, and what it is taken for before and after."""

    start: int  # in characters, end exclusive
    end: int
    text: str  # the text's own characters
    before: Named | None  # None: for nothing
    after: Named | None

    @property
    def change(self) -> Literal["same", "type", "new", "lost"]:
        """What happened."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "lost"
        return "same" if self.before[0] == self.after[0] else "type"

    @property
    def both(self) -> tuple[Named | None, Named | None]:
        """Before and after."""
        return self.before, self.after

    @property
    def said(self) -> str:
        """What happened, in a word; plain text."""
        return t(WHAT_CHANGED[self.change])


def changes(text: str, before: Any, now: Any) -> tuple[Change, ...]:
    """Join the entities or links of two predictions on their place, in reading order."""
    was, found = _by_place(before), _by_place(now)
    return tuple(
        Change(*place, text[slice(*place)], was.get(place), found.get(place))
        for place in sorted({*was, *found})
    )


def _by_place(prediction: Any) -> dict[Place, Named]:
    if isinstance(prediction, LinkPrediction):
        return {(x.start, x.end): (x.entity or NULL, x.weight) for x in prediction.links}
    spans = prediction.spans if prediction is not None else ()
    return {(x.start, x.end): (type_name(x.label), x.probability) for x in spans}


def has_places(prediction: Any) -> bool:
    """Whether a prediction is of places in a text: entities or links."""
    return isinstance(prediction, NerPrediction | LinkPrediction)


def chances(info: ModelInfo | None, prediction: Any) -> dict[str, dict[str, float]]:
    """Probabilities of what a prediction may be, by what they are of; of places there are none.

    Of a class there is one such table, of answers too, of masks one each.
    """
    if isinstance(prediction, ClassPrediction) and info is not None:
        score = N_("Probability that the answer is right")
        head = t(score if is_score(info, prediction) else "Label")
        return {head: probabilities(info, prediction)}
    if isinstance(prediction, AnswerPrediction):
        named: dict[str, float] = {}
        for own in prediction.answers:  # one that stands at a further place is named with it
            place = f"{own.text} [{own.start}, {own.end})" if own.text in named else own.text
            named[place] = own.probability
        return {t("Answer"): named}
    if isinstance(prediction, MaskPrediction):
        return {
            t("[MASK] {number}", number=number): dict(filling.candidates)
            for number, filling in enumerate(prediction.fillings, start=1)
        }
    return {}


def best_of(chances: Chances) -> tuple[str, float]:
    """What is likeliest, and how likely."""
    return max(chances.items(), key=lambda item: item[1])


def is_score(info: ModelInfo, prediction: ClassPrediction) -> bool:
    """Whether a prediction is the score of one answer, and not a choice among labels."""
    return info.card.task == "rank" and RIGHT in prediction.probabilities


def probabilities(info: ModelInfo, prediction: ClassPrediction) -> dict[str, float]:
    """Probabilities by label as people read them; of an answer, its score alone."""
    if is_score(info, prediction):
        return {t("score"): prediction.probabilities[RIGHT]}
    return {info.label(label): p for label, p in prediction.probabilities.items()}


def answers(info: ModelInfo, prediction: Any) -> list[Named]:
    """What is predicted of the whole text: its label or labels, its score, what fills each mask."""
    if isinstance(prediction, LabelsPrediction):
        return [(listed(map(info.label, prediction.labels)) or t("no label"), None)]
    best = [best_of(table) for table in chances(info, prediction).values()]
    if isinstance(prediction, ClassPrediction) and is_score(info, prediction):
        return [(percent(value), None) for _, value in best]
    return [*best]


def type_probabilities(prediction: NerPrediction, start: int, end: int) -> dict[str, float]:
    """Mean probability of each entity type, by its name, over the tokens of a place."""
    tokens = [tok for tok in prediction.tokens if tok.start < end and tok.end > start]
    totals: dict[str, float] = {}
    for token in tokens:
        for tag, probability in token.probabilities.items():
            label = t("O (none)") if tag == "O" else type_name(tag.split("-", 1)[-1])
            totals[label] = totals.get(label, 0.0) + probability / len(tokens)
    return totals


def points(info: ModelInfo, now: Any, other: Any, at: Place) -> float:
    """By how much another prediction finds less likely what is predicted now, 0 to 1.

    Args:
        at: the place that is looked at in a text whose places are labelled.
    """
    if isinstance(now, NerPrediction):
        tables = [type_probabilities(own, *at) for own in (now, other)]
    else:
        tables = [next(iter(chances(info, own).values()), {}) for own in (now, other)]
    best = best_of(tables[0])[0] if tables[0] else ""
    return tables[1].get(best, 0.0) - tables[0].get(best, 0.0)


# In words; plain text


def turns(info: ModelInfo, text: str, now: Any, before: Any) -> list[Change]:
    """What is taken for something else than before; of a whole text at no place."""
    found: Iterable[Change]
    if has_places(now):
        found = changes(text, before, now)
    else:
        pairs = zip(answers(info, before), answers(info, now), strict=False)
        found = (Change(0, 0, "", was, after) for was, after in pairs)
    return [own for own in found if own.change != "same"]


def headline(texts: Sequence[str], info: ModelInfo, now: Any, before: Any) -> str:
    """Say in a line what became of a prediction; empty where there is nothing to say."""
    turned = turning(info, texts[-1], now, before, sure=True) if before is not None else ""
    if turned or not isinstance(now, ClassPrediction):
        same = before is not None and has_places(now)
        return turned or (t("The entities are the same before and now.") if same else "")
    both = [answers(info, own) for own in (before, now) if own is not None]
    return " → ".join(dict.fromkeys(listed(map(_named, own)) for own in both))


def turning(info: ModelInfo, text: str, now: Any, before: Any, *, sure: bool = False) -> str:
    """Say what a prediction has become, "癫痫: Disease → Examine"; empty: the same.

    Args:
        text: that was read, of a pair the second.
        now, before: predictions of one kind.
        sure: with probabilities.
    """
    said, found = [], turns(info, text, now, before)
    for own in found[:MOST_SAID]:
        sides = ((one and (_named(one) if sure else one[0])) or t("none") for one in own.both)
        what = " → ".join(sides)
        said.append(t("{name}: {what}", name=own.text, what=what) if own.text else what)
    more = len(found) - len(said)
    return clauses(said) + (t("; {count} more", count=more) if more else "")


def outcome(info: ModelInfo, text: str, now: Any, after: Any, at: Place) -> tuple[str, bool]:
    """Say what would be predicted, and whether it is another prediction than now.

    Args:
        now: its prediction.
        after: the same after an edit; an error where the edit can't be made.
        at: the mention that the edit is about; what changes there is said first.
    """
    if isinstance(after, KBertError):
        return t("not possible"), False
    found = turns(info, text, after, now)
    if not found:
        return t("no change"), False
    if not has_places(after):
        return listed(map(_named, answers(info, after))), True
    there = lambda own: _meet((own.start, own.end), at)  # noqa: E731
    first = min(found, key=lambda own: (not there(own), own.after is None))
    said = _named(first.after) if first.after else t("none")
    return said if there(first) else t("“{text}” {label}", text=first.text, label=said), True


def compared(texts: Sequence[str], sides: Sequence[Side]) -> str:
    """Say how two to four predictions of one kind and one text compare, each with who says it."""
    values = []
    if has_places(sides[0].prediction):
        found = [{place: own[0] for place, own in _by_place(s.prediction).items()} for s in sides]
        common = set.intersection(*(set(own.items()) for own in found))
        for own in found:
            apart = sorted(item for item in own.items() if item not in common)[:MOST_SAID]
            named = [t("“{text}” {label}", text=texts[0][slice(*p)], label=x) for p, x in apart]
            values.append(listed(named) or t("no other entity" if common else "no entity"))
        if all(own.items() == common for own in found):
            return t("All find the same entities." if common else "All find no entity.")
    else:
        for side in sides:
            assert side.info is not None
            values.append(listed(map(_named, answers(side.info, side.prediction))))
    groups: dict[str, list[str]] = {}
    for value, side in zip(values, sides, strict=True):
        groups.setdefault(value, []).append(side.title)
    text = N_("{name}: {value}")
    said = clauses(t(text, name=listed(who), value=value) for value, who in groups.items())
    return said + t(".")


def percent(probability: float | None) -> str:
    """Write a probability for people: 97.3 %, > 99.9 %."""
    if probability is None:
        return "–"
    if probability > 0.999:
        return "> 99.9 %"
    if 0 < probability < 0.001:
        return "< 0.1 %"
    return f"{100 * probability:.1f} %"


def signed(change: float) -> str:
    """Write a change of probability in percentage points: +3.1, −20.4, 0."""
    points = round(100 * change, 1)
    if points == 0:
        return "0"
    return f"{'+' if points > 0 else '−'}{abs(points):.1f}"


def _named(own: Named) -> str:
    return own[0] if own[1] is None else f"{own[0]} {percent(own[1])}"


def _meet(one: Place, other: Place) -> bool:
    return one[0] < other[1] and other[0] < one[1]


# Drawn; escaped


def drawn(texts: Sequence[str], sides: Sequence[Side], chosen: Mapping[int, str] = NOTHING) -> str:
    """Draw one to four predictions of one kind: on the text, or as a table.

    Args:
        chosen: what is marked, see ``selection.chosen_characters``.
    """
    last = sides[-1].prediction
    if isinstance(last, NerPrediction):
        return spans_html(texts[0], sides, chosen)
    if isinstance(last, LinkPrediction):
        before = sides[0].prediction if len(sides) > 1 else None
        found = changes(texts[0], before, last)
        how = {"compared": before is not None, "named": _named, "signed": signed}
        return rendered("changes", found=found, **how)
    html = ""
    if isinstance(last, AnswerPrediction):  # the paragraph with the best answer marked
        best, paragraph = last.answers[0], texts[1]
        parts = (paragraph[: best.start], best.text, paragraph[best.end :])
        html = scrolling("<p>{}<mark>{}</mark>{}</p>".format(*map(escape, parts)))
    tables = [chances(side.info, side.prediction) for side in sides]
    for head in tables[-1]:
        own = [
            replace(side, prediction=table.get(head, {}))
            for side, table in zip(sides, tables, strict=True)
        ]
        html += bars_html(own, head)
    return html


def spans_html(
    text: str,
    sides: Sequence[Side],
    chosen: Mapping[int, str] = NOTHING,
    *,
    fold: bool = False,
) -> str:
    """Draw the text once a side, spans that differ from the first side's ringed.

    Args:
        chosen: as in :func:`drawn`.
        fold: draw it once where both sides say the same, as a long text is.

    A long text with a change is drawn only around it, and around what is found now.
    """
    marks = [marks_against(text, sides, number) for number in range(len(sides))]
    if len(sides) == 2 and (fold or len(text) > FOLDED) and not any(marks):
        sides, marks = [replace(sides[1], name=t("as before"))], [{}]
    changed = [place for own in marks for place in own] if len(text) > LONG else []
    found = list(_by_place(sides[-1].prediction)) if changed else []
    lines = [
        _Line(text, side, own, [*changed, *(found if side is sides[-1] else ())])
        for side, own in zip(sides, marks, strict=True)
    ]
    colours = tints([own.prediction for own in sides]) | {"": ENTITY_TINTS[-1]}
    return rendered(
        "spans", lines=lines, tints=colours, chosen=chosen, percent=percent, type_name=type_name
    )


Marks = Mapping[Place, tuple[str, str]]  # of spans to be set off: a class, and a note beside


def marks_against(text: str, sides: Sequence[Side], number: int) -> Marks:
    """What a side finds that the first doesn't; of the first of two, what the second has lost."""
    first, other = sides[0], sides[1 if not number and len(sides) == 2 else number]
    ring, kinds = ("kb-ring", ("new", "type")) if number else ("kb-lost", ("lost",))
    found = changes(text, first.prediction, other.prediction)
    return {(own.start, own.end): (ring, own.said) for own in found if own.change in kinds}


def tints(predictions: Sequence[NerPrediction]) -> dict[str, str]:
    """Give every entity type its tint; the name always stands beside it."""
    tags = {tag for own in predictions for token in own.tokens[:1] for tag in token.probabilities}
    types = sorted({tag.split("-", 1)[1] for tag in tags if "-" in tag})
    return {name: ENTITY_TINTS[i % len(ENTITY_TINTS)] for i, name in enumerate(types)}


@dataclass(frozen=True, slots=True)
class _Line:
    """One prediction on its text, as drawn."""

    text: str
    side: Side
    marks: Marks
    near: Sequence[Place]  # what stands far from all of them is left out. Empty: nothing is

    @property
    def long(self) -> bool:
        """Whether it scrolls."""
        return len(self.text) > LONG and not self.near

    @property
    def spaced(self) -> set[int]:
        """Where a token begins after white space."""
        tokens = self.side.prediction.tokens
        ends = [0, *(token.end for token in tokens)]
        return {own.start for end, own in zip(ends, tokens, strict=False) if own.start > end}

    @property
    def parts(self) -> Iterator[tuple[Any, list[LabelledToken]]]:
        """Each span or token outside with its tokens; None for what is left out."""
        wide = [(start - AROUND, end + AROUND) for start, end in self.near]
        spans = self.side.prediction.spans

        def part_of(token: LabelledToken) -> Any:
            whole = next((own for own in spans if own.start <= token.start < own.end), token)
            place = (whole.start, whole.end)
            return whole if not wide or any(_meet(place, own) for own in wide) else None

        for whole, tokens in groupby(self.side.prediction.tokens, part_of):
            yield whole, list(tokens)


def bars_html(sides: Sequence[Side], head: str, most: int = MOST_BARS) -> str:
    """Draw tables of probabilities as bars, a column a side, with the difference from the first."""
    tables: list[Chances] = [side.prediction for side in sides]
    union = dict.fromkeys(name for own in tables for name in own)
    best = [best_of(own)[0] if own and len(union) > 1 else None for own in tables]
    names = sorted(union, key=lambda name: -max(own.get(name, 0.0) for own in tables))
    return rendered(
        "bars",
        sides=sides,
        tables=tables,
        head=head,
        names=names[:most],
        best=best,
        width=BAR,
        percent=percent,
        signed=signed,
    )
