"""A prediction of any kind: tags under characters, probabilities, what changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

from kbert_core.labels import RIGHT
from kbert_core.tasks import (
    AnswerPrediction,
    ClassPrediction,
    LabelsPrediction,
    MaskPrediction,
    NerPrediction,
    Span,
)
from kbert_core.tasks.ner import LabelledToken
from kbert_lab.lab.models import ModelInfo, type_name
from kbert_lab.lab.texts import N_, clauses, listed, t
from kbert_lab.lab.views.html import escape, scrolling, shown, table_html
from kbert_lab.lab.views.styles import ENTITY_TINTS
from kbert_lab.study.gated import GatedPrediction

LONG = 150  # characters of a text that scrolls line by line, each line of one height
PREDICTION_TEXTS = {"type": N_("other type"), "new": N_("new"), "lost": N_("lost")}
PREDICTION_CHANGE = {
    "type": N_("“{text}” was {before}, is {after}"),
    "new": N_("“{text}” is now {after}"),
    "lost": N_("“{text}” is no longer {before}"),
}

Change = Literal["same", "type", "new", "lost"]


@dataclass(frozen=True, slots=True)
class SpanChange:
    """One named entity, before and after."""

    start: int  # in characters, end exclusive
    end: int
    text: str  # the text's own characters
    before: tuple[str, float] | None  # (label, probability); None: no such span
    after: tuple[str, float] | None

    @property
    def change(self) -> Change:
        """What happened to the span."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "lost"
        return "same" if self.before[0] == self.after[0] else "type"


def span_changes(before: Sequence[Span], after: Sequence[Span]) -> tuple[SpanChange, ...]:
    """Join the spans of two predictions on their place, in reading order."""
    texts = {(span.start, span.end): span.text for span in (*before, *after)}
    was, now = (
        {(span.start, span.end): (span.label, span.probability) for span in spans}
        for spans in (before, after)
    )
    return tuple(
        SpanChange(*place, texts[place], was.get(place), now.get(place)) for place in sorted(texts)
    )


def type_probabilities(prediction: NerPrediction, start: int, end: int) -> dict[str, float]:
    """Mean probability of each entity type, by its name, over the tokens of a place."""
    tokens = [tok for tok in prediction.tokens if tok.start < end and tok.end > start]
    totals: dict[str, float] = {}
    for token in tokens:
        for tag, probability in token.probabilities.items():
            label = t("O (none)") if tag == "O" else type_name(tag.split("-", 1)[-1])
            totals[label] = totals.get(label, 0.0) + probability / len(tokens)
    return totals


def tints(labels: Sequence[str]) -> dict[str, str]:
    """Give every entity type its tint; the name always stands beside it."""
    types = sorted({label.split("-", 1)[1] for label in labels if "-" in label})
    return {name: ENTITY_TINTS[i % len(ENTITY_TINTS)] for i, name in enumerate(types)}


NOTHING: Mapping[int, str] = {}  # of the text is chosen
Place = tuple[int, int]  # of a span: start and end in characters, end exclusive


def line_html(
    text: str,
    prediction: NerPrediction,
    side: str,
    name: str,
    colours: Mapping[str, str],
    marks: Mapping[Place, tuple[str, str]],
    chosen: Mapping[int, str] = NOTHING,
) -> str:
    """Draw one prediction: the text, its tags, its spans; all escaped.

    Args:
        prediction: its spans and tokens.
        side, name: what stands to the left, in bold and below it.
        colours: of the entity types.
        marks: of the spans to be set off: a class, and a note beside the type.
        chosen: "token" or "mention", by first character.
    """
    spans = {span.start: span for span in prediction.spans}
    inside: Span | None = None
    drawn, end = "", 0
    for token in prediction.tokens:
        # the white space between two words; there is none between characters or word pieces
        drawn += '<span class="kb-gap"></span>' if text[end : token.start] else ""
        if inside is None and (inside := spans.get(token.start)):
            ring, note = marks.get((inside.start, inside.end), ("", ""))
            tint = colours.get(inside.label, ENTITY_TINTS[-1])
            drawn += f'<span class="kb-span {ring}" style="--tint:{tint}"><span>'
        drawn += _char(text, token, chosen)
        end = token.end
        if inside is not None and end >= inside.end:
            note = f" · {escape(note)}" if note else ""
            drawn += (
                f'</span><span class="kb-tag"><b>{escape(type_name(inside.label))}</b> '
                f"{percent(inside.probability)}{note}</span></span>"
            )
            inside = None
    named = f'<div class="kb-side"><b>{escape(side)}</b>{escape(name)}</div>' if side else ""
    long = " kb-long" if len(text) > LONG else ""
    return f'{named}<div class="kb-line{long}">{drawn}</div>'


def _char(whole: str, token: LabelledToken, chosen: Mapping[int, str]) -> str:
    text, tag = whole[token.start : token.end], token.tag
    letter = "·" if tag == "O" else tag.split("-", 1)[0]
    narrow = " kb-latin" if text.isascii() else ""
    mark = {"token": " kb-chosen", "mention": " kb-followed"}.get(chosen.get(token.start, ""), "")
    return (
        f'<span class="kb-char{narrow}{mark}"><span class="kb-text">{shown(text)}</span>'
        f'<span class="kb-bio">{escape(letter)}</span></span>'
    )


def changes_html(changes: Sequence[SpanChange], *, compared: bool) -> str:
    """Draw the spans as a table: before, after, difference."""
    if not changes:
        return f'<p class="kb-table">{escape(t("No named entity found."))}</p>'
    rows = []
    for item in changes:
        before, after, change = _side(item.before), _side(item.after), ""
        if item.change != "same":
            change = f'<span class="kb-badge">{escape(t(PREDICTION_TEXTS[item.change]))}</span>'
        elif item.before and item.after:
            change = signed(item.after[1] - item.before[1])
        rows.append([shown(item.text), *([before, after, change] if compared else [after])])
    both = (t("Entity"), t("Before"), t("Now"), t("Change"))
    heads = both if compared else (t("Entity"), t("Type"))
    return scrolling(table_html(heads, rows, numbers=int(compared)))


def gate_html(text: str, gated: GatedPrediction, own: NerPrediction) -> str:
    """Draw what stands once a gate has written over a prediction, and its word on every name."""
    there = {(span.start, span.end, span.label) for span in own.spans}
    new = [s for s in gated.spans if (s.start, s.end, s.label) not in there]
    marks = {(s.start, s.end): ("kb-ring", t("by the gate")) for s in new}
    colours = tints([name for token in gated.tokens for name in token.probabilities])
    drawn = f'<div class="kb-ner">{line_html(text, gated, "", "", colours, marks)}</div>'
    rows = [
        [
            shown(name.text),
            escape(type_name(name.label)),
            percent(name.probability),
            escape(t("written") if name.written else t("not written")),
        ]
        for name in gated.judged
    ]
    heads = (t("Name in the graph"), t("Type"), t("Chance to be right"), t("By the gate"))
    return drawn + (scrolling(table_html(heads, rows)) if rows else "")


def chances(info: ModelInfo, prediction: Any) -> dict[str, dict[str, float]]:
    """Probabilities of what a prediction may be, by what they are of; spans and links have none.

    Of a class there is one such table, of answers too, of masks one each.
    """
    if isinstance(prediction, ClassPrediction):
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


def best_of(chances: Mapping[str, float]) -> tuple[str, float]:
    """What is likeliest, and how likely."""
    return max(chances.items(), key=lambda item: item[1])


def same(one: Any, other: Any, tolerance: float = 1e-4) -> bool:
    """Whether two predictions, of whatever kind, are the same but for rounding."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= tolerance
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        names = [own.name for own in fields(one)]
        return all(same(getattr(one, own), getattr(other, own), tolerance) for own in names)
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(one[k], other[k], tolerance) for k in one)
    if isinstance(one, Sequence) and not isinstance(one, str):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(same(*pair, tolerance) for pair in pairs)
    return bool(one == other)


def answer_html(paragraph: str, prediction: AnswerPrediction) -> str:
    """The paragraph with the best answer marked; escaped."""
    best = prediction.answers[0]
    before, after = escape(paragraph[: best.start]), escape(paragraph[best.end :])
    return scrolling(f"<p>{before}<mark>{escape(best.text)}</mark>{after}</p>")


def is_score(info: ModelInfo, prediction: ClassPrediction) -> bool:
    """Whether a prediction is the score of one answer, and not a choice among labels."""
    return info.card.task == "rank" and RIGHT in prediction.probabilities


def probabilities(info: ModelInfo, prediction: ClassPrediction) -> dict[str, float]:
    """Probabilities by label as people read them; of an answer, its score alone."""
    if is_score(info, prediction):
        return {t("score"): prediction.probabilities[RIGHT]}
    return {info.label(label): p for label, p in prediction.probabilities.items()}


def labels_given(info: ModelInfo, prediction: LabelsPrediction) -> str:
    """The labels that a text has, in a line; plain text."""
    return listed(map(info.label, prediction.labels)) or t("no label")


def say_class(info: ModelInfo, after: ClassPrediction, before: ClassPrediction | None) -> str:
    """Say in a line what became of a text's label, labels or score; plain text."""
    if isinstance(after, LabelsPrediction):
        sides = [own for own in (before, after) if isinstance(own, LabelsPrediction)]
        return " → ".join(dict.fromkeys(labels_given(info, own) for own in sides))
    score = is_score(info, after)
    now = after.probabilities[RIGHT if score else after.label]
    if before is None:
        key = (
            N_("Score of this answer, the probability that it is right: {p}")
            if score
            else N_("{label}, {p}")
        )
        return t(key, label=info.label(after.label), p=percent(now))
    was = before.probabilities[RIGHT if score else before.label]
    key = (
        N_("{after} as before: {p_before} → {p}")
        if before.label == after.label
        else N_("Flipped from {before} ({p_before}) to {after} ({p})")
    )
    return t(
        "Score of this answer: {p_before} → {p}" if score else key,
        before=info.label(before.label),
        after=info.label(after.label),
        p_before=percent(was),
        p=percent(now),
    )


def headline(changes: Sequence[SpanChange]) -> str:
    """Say in a line what changed between two predictions; plain text."""
    said = []
    for item in changes:
        if item.change != "same":
            was, now = (side and type_name(side[0]) for side in (item.before, item.after))
            text = PREDICTION_CHANGE[item.change]
            said.append(t(text, text=item.text, before=was, after=now))
    if not said:
        return t("The entities are the same before and now.")
    more = len(said) - 3
    rest = t("; {count} more", count=more) if more > 0 else ""
    return clauses(said[:3]) + rest + t(".")


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


def _side(value: tuple[str, float] | None) -> str:
    if value is None:
        return f'<span style="opacity:.6">{escape(t("none"))}</span>'
    return f"{escape(type_name(value[0]))} {percent(value[1])}"


def worth_a_look(changes: Sequence[SpanChange]) -> tuple[SpanChange, ...]:
    """Choose the changed places whose probabilities are shown: now's, then those lost."""
    chosen: list[SpanChange] = []
    order = [c for c in changes if c.change in ("type", "new")]
    order += [c for c in changes if c.change == "lost"]
    for item in order:
        if all(item.end <= other.start or item.start >= other.end for other in chosen):
            chosen.append(item)
    return tuple(chosen[:2])
