"""A prediction before and after: tags under characters, bars, what changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from app.texts import t
from app.view_models.html import escape, shown
from app.view_models.styles import ENTITY_TINTS
from kbert_core.tasks import ClassPrediction, MaskPrediction, NerPrediction, Span

Change = Literal["same", "type", "new", "lost"]


@dataclass(frozen=True, slots=True)
class SpanChange:
    """One named entity, before and after.

    Attributes:
        start, end: in characters, end exclusive.
        text: the text's own characters.
        before, after: (label, probability); None: no such span.
    """

    start: int
    end: int
    text: str
    before: tuple[str, float] | None
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
    old = {(s.start, s.end): s for s in before}
    new = {(s.start, s.end): s for s in after}
    joined = []
    for place in sorted(old.keys() | new.keys()):
        was, now = old.get(place), new.get(place)
        text = (now or was).text  # type: ignore[union-attr]
        joined.append(
            SpanChange(
                *place,
                text,
                (was.label, was.probability) if was else None,
                (now.label, now.probability) if now else None,
            )
        )
    return tuple(joined)


def type_probabilities(prediction: NerPrediction, start: int, end: int) -> dict[str, float]:
    """Mean probability of each entity type over the tokens of a place; O is none."""
    tokens = [tok for tok in prediction.tokens if tok.start < end and tok.end > start]
    totals: dict[str, float] = {}
    for token in tokens:
        for tag, probability in token.probabilities.items():
            label = tag.split("-", 1)[-1]
            totals[label] = totals.get(label, 0.0) + probability / len(tokens)
    return totals


def tints(labels: Sequence[str]) -> dict[str, str]:
    """Give every entity type its tint; the name always stands beside it."""
    types = sorted({label.split("-", 1)[1] for label in labels if "-" in label})
    return {name: ENTITY_TINTS[i % len(ENTITY_TINTS)] for i, name in enumerate(types)}


def ner_html(
    text: str,
    after: NerPrediction,
    after_name: str,
    before: NerPrediction | None,
    before_name: str,
    colours: Mapping[str, str],
) -> str:
    """Draw the tags under the characters, before above after; all escaped."""
    changes = {}
    if before is not None:
        changes = {(c.start, c.end): c.change for c in span_changes(before.spans, after.spans)}
    lines = []
    if before is not None:
        lines.append(_line(text, before, before_name, colours, changes, is_before=True))
    lines.append(_line(text, after, after_name, colours, changes, is_before=False))
    return f'<div class="kb-ner">{"".join(lines)}</div>'


def _line(
    text: str,
    prediction: NerPrediction,
    name: str,
    colours: Mapping[str, str],
    changes: Mapping[tuple[int, int], Change],
    *,
    is_before: bool,
) -> str:
    side = t("prediction.before") if is_before else t("prediction.after")
    spans = {span.start: span for span in prediction.spans}
    parts = []
    tokens = list(prediction.tokens)
    index = 0
    while index < len(tokens):
        token = tokens[index]
        span = spans.get(token.start)
        if span is None:
            parts.append(_char(text[token.start : token.end], token.tag))
            index += 1
            continue
        inside = []
        while index < len(tokens) and tokens[index].start < span.end:
            inside.append(_char(text[tokens[index].start : tokens[index].end], tokens[index].tag))
            index += 1
        change = changes.get((span.start, span.end), "same")
        ring, note = "", ""
        if change in ("type", "new") and not is_before:
            ring, note = " kb-ring", t("prediction." + change)
        elif change in ("type", "lost") and is_before:
            ring = " kb-lost" if change == "lost" else ""
            note = t("prediction.lost") if change == "lost" else ""
        tint = colours.get(span.label, ENTITY_TINTS[-1])
        mark = f" · {escape(note)}" if note else ""
        parts.append(
            f'<span class="kb-span{ring}" style="--tint:{tint}"><span>{"".join(inside)}</span>'
            f'<span class="kb-tag"><b>{escape(span.label)}</b> {percent(span.probability)}'
            f"{mark}</span></span>"
        )
    return (
        f'<div class="kb-side"><b>{escape(side)}</b>{escape(name)}</div>'
        f'<div class="kb-line">{"".join(parts)}</div>'
    )


def _char(text: str, tag: str) -> str:
    letter = "·" if tag == "O" else tag.split("-", 1)[0]
    return (
        f'<span class="kb-char"><span class="kb-text">{shown(text)}</span>'
        f'<span class="kb-bio">{escape(letter)}</span></span>'
    )


def changes_html(changes: Sequence[SpanChange], *, compared: bool) -> str:
    """Draw the spans as a table: before, after, difference."""
    if not changes:
        return f'<p class="kb-table">{escape(t("prediction.no_spans"))}</p>'
    rows = []
    for item in changes:
        before = _side(item.before)
        after = _side(item.after)
        badge = ""
        if compared and item.change != "same":
            badge = f'<span class="kb-badge">{escape(t("prediction." + item.change))}</span>'
        delta = ""
        if item.before and item.after and item.change == "same":
            delta = signed(item.after[1] - item.before[1])
        first = f"<td>{shown(item.text)}</td>"
        if compared:
            rows.append(
                f"<tr>{first}<td>{before}</td><td>{after}</td>"
                f'<td class="kb-num">{badge or delta}</td></tr>'
            )
        else:
            rows.append(f"<tr>{first}<td>{after}</td></tr>")
    heads = ["prediction.span", "prediction.before", "prediction.after", "prediction.change"]
    if not compared:
        heads = ["prediction.span", "prediction.type_head"]
    head = "".join(
        f'<th class="{"kb-num" if h == "prediction.change" else ""}">{escape(t(h))}</th>'
        for h in heads
    )
    table = f'<table class="kb-table"><tr>{head}</tr>{"".join(rows)}</table>'
    return f'<div class="kb-scroll">{table}</div>'


def bars_html(
    before: Mapping[str, float] | None, after: Mapping[str, float], *, most: int = 8, head: str = ""
) -> str:
    """Draw probabilities as bars, before thin and grey above after."""
    before = before or {}
    union = after.keys() | before.keys()
    names = sorted(union, key=lambda n: -max(after.get(n, 0), before.get(n, 0)))[:most]
    rows = []
    for name in names:
        was, now = before.get(name), after.get(name)
        bars = ""
        if was is not None:
            bars += f'<span class="kb-bar kb-was" style="width:{100 * was:.1f}%"></span>'
        bars += f'<span class="kb-bar" style="width:{100 * (now or 0):.1f}%"></span>'
        old = f'<td class="kb-num">{percent(was)}</td>' if before else ""
        delta = ""
        if before:
            both = was is not None and now is not None
            delta = f'<td class="kb-num">{signed(now - was) if both else "–"}</td>'  # type: ignore[operator]
        rows.append(
            f'<tr><td>{escape(name)}</td><td class="kb-wide"><div class="kb-bars">{bars}</div></td>'
            f'{old}<td class="kb-num">{percent(now)}</td>{delta}</tr>'
        )
    heads = f'<th colspan="2">{escape(head)}</th>'
    if before:
        heads += f'<th class="kb-num">{escape(t("prediction.before"))}</th>'
    heads += f'<th class="kb-num">{escape(t("prediction.after"))}</th>'
    heads += '<th class="kb-num">Δ</th>' if before else ""
    return f'<table class="kb-table"><tr>{heads}</tr>{"".join(rows)}</table>'


def fillings_of(prediction: MaskPrediction) -> list[dict[str, float]]:
    """Candidates of every [MASK], by token."""
    return [dict(filling.candidates) for filling in prediction.fillings]


def label_change(before: ClassPrediction | None, after: ClassPrediction) -> str:
    """Say in a line what became of a sentence's label; plain text."""
    if before is None:
        return t("class.only", label=after.label, p=percent(after.probabilities[after.label]))
    key = "class.same" if before.label == after.label else "class.flip"
    return t(
        key,
        before=before.label,
        after=after.label,
        p_before=percent(before.probabilities[before.label]),
        p=percent(after.probabilities[after.label]),
    )


def headline(changes: Sequence[SpanChange]) -> str:
    """Say in a line what changed between two predictions; plain text."""
    said = []
    for item in changes:
        if item.change == "type":
            said.append(
                t("headline.type", text=item.text, before=item.before[0], after=item.after[0])  # type: ignore[index]
            )
        elif item.change == "new":
            said.append(t("headline.new", text=item.text, after=item.after[0]))  # type: ignore[index]
        elif item.change == "lost":
            said.append(t("headline.lost", text=item.text, before=item.before[0]))  # type: ignore[index]
    if not said:
        return t("headline.same")
    more = len(said) - 3
    return "; ".join(said[:3]) + (t("headline.more", count=more) if more > 0 else "") + "."


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
        return f'<span style="opacity:.6">{escape(t("prediction.none"))}</span>'
    return f"{escape(value[0])} {percent(value[1])}"


def named_outside(totals: Mapping[str, float]) -> dict[str, float]:
    """Call the label of no entity by its name for people."""
    return {t("prediction.outside") if k == "O" else k: v for k, v in totals.items()}


def worth_a_look(changes: Sequence[SpanChange], *, most: int = 2) -> tuple[SpanChange, ...]:
    """Choose the changed places whose probabilities are shown: now's, then those lost."""
    chosen: list[SpanChange] = []
    order = [c for c in changes if c.change in ("type", "new")]
    order += [c for c in changes if c.change == "lost"]
    for item in order:
        if all(item.end <= other.start or item.start >= other.end for other in chosen):
            chosen.append(item)
    return tuple(chosen[:most])
