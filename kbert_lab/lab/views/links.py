"""What names mean: their candidates, a prediction before and now; triples beside a text."""

from collections.abc import Sequence
from typing import Any

from kbert_core.knowbert.kar import NULL as NULL_CANDIDATE
from kbert_core.knowledge.names import normalise_name
from kbert_core.roof.roof_bert import RoofReading
from kbert_core.tasks import NULL, LinkPrediction
from kbert_lab.explain.drawing import HEADS, SHOWN, linked_html
from kbert_lab.lab.texts import N_, listed, t
from kbert_lab.lab.views.html import escape, scrolling, table_html
from kbert_lab.lab.views.knowledge import TripleRow
from kbert_lab.lab.views.prediction import percent

NO_NAME = N_("The text contains no name of the graph, so no entity is linked.")
Place = tuple[int, int]
FEW = 3  # candidates of a span, where there is little room


def has_more(links: Sequence[Any]) -> bool:
    """Whether a span has more candidates than are shown at first."""
    return any(len(own.candidates) > SHOWN for own in links)


def linked_table(links: Sequence[Any], sentences: Sequence[str], *, every: bool = False) -> str:
    """The spans of a trace with their candidates, the best first; escaped."""
    words = {
        "entity": t("entity"),
        "prior": t("prior"),
        "dot": t("dot product"),
        "score": HEADS["score"],
        "weight": t("weight"),
        "says": t("what it says"),
        "more": t("and {count} more"),
        "base": t("knowledge base {number}"),
        "none": t(NO_NAME),
    }
    return linked_html(links, sentences, most=None if every else SHOWN, words=words)


def spans_table(links: Sequence[Any], sentences: Sequence[str]) -> str:
    """The spans of a trace in few words: of each its best candidates, prior and weight; escaped."""
    rows = ""
    for own in links:
        mention = own.span.mention
        name = escape(sentences[mention.sentence][mention.start : mention.end])
        ranked = sorted(own.candidates, key=lambda one: -one.weight)[:FEW]
        first = f'<td rowspan="{len(ranked)}"><b>{name}</b></td>'
        for one in ranked:
            entity = NULL if one.candidate.special == NULL_CANDIDATE else one.candidate.entity
            says = listed(f"{triple.relation} {triple.tail}" for triple in one.candidate.triples)
            chosen = "" if own.best is one else ' class="kb-faint"'
            rows += (
                f'<tr{chosen}>{first}<td title="{escape(says)}">{escape(entity)}</td>'
                f'<td class="kb-num">{percent(one.candidate.prior)} → {percent(one.weight)}</td>'
                "</tr>"
            )
            first = ""
    if not rows:
        return _none()
    top = "".join(f"<th>{escape(head)}</th>" for head in (t("name"), t("entity")))
    top += f'<th class="kb-num">{escape(t("prior"))} → {escape(t("weight"))}</th>'
    return f'<table class="kb-table kb-beside"><tr>{top}</tr>{rows}</table>'


def _none() -> str:
    return f'<p class="kb-table">{escape(t(NO_NAME))}</p>'


def links_html(text: str, after: LinkPrediction, before: LinkPrediction | None) -> str:
    """What each name is taken to mean, and meant before; escaped."""
    new, old = _by_place(after), _by_place(before)
    if not new and not old:
        return _none()
    rows = []
    for place in sorted(new.keys() | old.keys()):
        was, now = old.get(place), new.get(place)
        name, mark = f"<b>{escape(text[slice(*place)])}</b>", ""
        if before is not None and _entity(was) != _entity(now):
            mark = f' <span class="kb-badge">{escape(t("other entity"))}</span>'
        rows.append([name, *([_cell(was)] if before is not None else []), _cell(now) + mark])
    heads = [t("name"), *([t("Before")] if before is not None else []), t("Now")]
    return scrolling(table_html(heads, rows))


def headline(text: str, after: LinkPrediction, before: LinkPrediction) -> str:
    """Say in a line which names mean something else now; plain text."""
    changed = [(place, was, now) for place, (was, now) in meant(after, before) if was != now]
    if not changed:
        return t("Every name means the same before and now.")
    place, was, now = changed[0]
    said = t("“{text}” was {before}, is {after}", text=text[slice(*place)], before=was, after=now)
    more = len(changed) - 1
    return said + (t("; {count} more", count=more) if more else "") + t(".")


def meant(after: LinkPrediction, before: LinkPrediction) -> list[tuple[Place, tuple[str, str]]]:
    """What each name meant before and means now, in reading order."""
    new, old = _by_place(after), _by_place(before)
    places = sorted(new.keys() | old.keys())
    return [(place, (_entity(old.get(place)), _entity(new.get(place)))) for place in places]


def beside_table(rows: Sequence[TripleRow], reading: RoofReading) -> dict[str, list[str]]:
    """Each name of a text with its triples, and whether they are read or why not; as columns."""
    names: dict[str, dict[str, None]] = {}  # in reading order, with the entities they name
    for mention in reading.mentions:
        text = reading.sentences[mention.sentence][mention.start : mention.end]
        names.setdefault(text, {}).update(dict.fromkeys(mention.entities))
    lines = [
        (name, row)
        for name in names
        for row in rows
        if normalise_name(row.triple.head) in names[name]
    ]
    return {
        t("name"): [name for name, _ in lines],
        t("triple"): [str(row.triple) for _, row in lines],
        t("read?"): [row.state for _, row in lines],
    }


def beside_counts(reading: RoofReading) -> str:
    """How long both sides are, in tokens; plain text."""
    assert reading.kb is not None
    text = N_("{text} tokens of text; {beside} beside it, special tokens included:")
    return t(text, text=sum(map(len, reading.tokens)), beside=len(reading.kb))


def _by_place(prediction: LinkPrediction | None) -> dict[Place, Any]:
    return {(own.start, own.end): own for own in prediction.links} if prediction else {}


def _entity(link: Any) -> str:
    return (link.entity if link is not None else None) or NULL


def _cell(link: Any) -> str:
    if link is None:
        return "–"
    return f'{escape(_entity(link))} <span class="kb-delta">{percent(link.weight)}</span>'
