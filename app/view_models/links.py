"""What names are taken to mean: as a table of candidates, and as a prediction before and now."""

from collections.abc import Sequence
from typing import Any

from app.texts import t
from app.view_models.html import escape, scrolling
from app.view_models.prediction import percent
from kbert_core.knowbert.picture import HEADS, SHOWN, linked_html
from kbert_core.tasks import NULL, LinkPrediction

Place = tuple[int, int]


def has_more(links: Sequence[Any]) -> bool:
    """Whether a span has more candidates than are shown at first."""
    return any(len(own.candidates) > SHOWN for own in links)


def linked_table(links: Sequence[Any], sentences: Sequence[str], *, every: bool = False) -> str:
    """The spans of a trace with their candidates, the best first; escaped."""
    words = {name: t(f"linked.{name}") for name in HEADS if name not in ("more", "base", "score")}
    words["score"] = HEADS["score"]
    words["more"] = t("linked.more", count="{count}")
    words["base"] = t("linked.base", number="{number}")
    return linked_html(links, sentences, most=None if every else SHOWN, words=words)


def links_html(text: str, after: LinkPrediction, before: LinkPrediction | None) -> str:
    """What each name is taken to mean, and meant before; escaped."""
    new, old = _by_place(after), _by_place(before)
    heads = [t("linked.name"), *([t("prediction.before")] if before else []), t("prediction.after")]
    rows = []
    for place in sorted(new.keys() | old.keys()):
        changed = before is not None and _entity(old, place) != _entity(new, place)
        cells = [f"<b>{escape(text[slice(*place)])}</b>"]
        cells += [_cell(old, place)] if before is not None else []
        now = _cell(new, place)
        mark = f' <span class="kb-badge">{escape(t("linked.changed"))}</span>' if changed else ""
        cells.append(now + mark)
        rows.append("".join(f"<td>{cell}</td>" for cell in cells))
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return scrolling(f'<table class="kb-table">{f"<tr>{top}</tr>"}{body}</table>')


def headline(text: str, after: LinkPrediction, before: LinkPrediction) -> str:
    """Say in a line which names mean something else now; plain text."""
    new, old = _by_place(after), _by_place(before)
    changed = [p for p in sorted(new.keys() | old.keys()) if _entity(old, p) != _entity(new, p)]
    if not changed:
        return t("linked.same")
    said = t(
        "headline.type",
        text=text[slice(*changed[0])],
        before=_entity(old, changed[0]),
        after=_entity(new, changed[0]),
    )
    more = len(changed) - 1
    return said + (t("headline.more", count=more) if more else "") + t("text.end")


def _by_place(prediction: LinkPrediction | None) -> dict[Place, Any]:
    return {(own.start, own.end): own for own in prediction.links} if prediction else {}


def _entity(links: dict[Place, Any], place: Place) -> str:
    return (links[place].entity or NULL) if place in links else NULL


def _cell(links: dict[Place, Any], place: Place) -> str:
    if place not in links:
        return "–"
    own = links[place]
    return f'{escape(own.entity or NULL)} <span class="kb-delta">{percent(own.weight)}</span>'
