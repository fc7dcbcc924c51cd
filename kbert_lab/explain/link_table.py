"""A trace as a picture: the spans of a text, what each may mean, and what the linker made of it."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from kbert_core.knowbert.kar import NULL

SHOWN = 5  # candidates of a span
CLIPPED = 140  # characters of what an entity says
HEADS = {
    "entity": "entity",
    "prior": "prior",
    "dot": "dot product",
    "score": "ψ",
    "weight": "weight",
    "says": "what it says",
    "more": "and {count} more",
    "base": "knowledge base {number}",
    "none": "No name of the graph stands in the text.",
}
WIDTHS = (25, 15, 9, 9, 15, 27)  # percent
FAINT = "opacity:.65"
EDGE = "border-bottom:1px solid color-mix(in srgb,currentColor 14%,transparent)"
CELL = f"padding:.15rem .6rem .15rem .1rem;text-align:left;vertical-align:top;{EDGE};"
NUMBER = f"{CELL}text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums;"
TABLE = "border-collapse:collapse;table-layout:fixed;width:100%;min-width:36rem;font-size:.86rem"


def linked_html(
    links: Sequence[Any],
    sentences: Sequence[str],
    *,
    most: int | None = SHOWN,
    words: Mapping[str, str] = HEADS,
) -> str:
    """A table of spans and their candidates, the best first, escaped.

    Args:
        links: of a trace, see ``KnowBertTrace.links``.
        sentences: the text.
        most: candidates of a span; None: all.
        words: as ``HEADS``, in another language.
    """
    if not links:
        return f"<p>{escape(words['none'])}</p>"
    columns = "".join(f'<col style="width:{width}%">' for width in WIDTHS)
    numbers = ("dot", "score")
    heads = "".join(
        f'<th style="{NUMBER if name in numbers else CELL}font-weight:500;{FAINT}">'
        f"{escape(words[name])}</th>"
        for name in ("entity", "prior", *numbers, "weight", "says")
    )
    several = len({own.span.base for own in links}) > 1
    bodies = "".join(_span(own, sentences, most, words, several=several) for own in links)
    return (
        f'<div style="overflow-x:auto"><table style="{TABLE}"><colgroup>{columns}</colgroup>'
        f"<thead><tr>{heads}</tr></thead>{bodies}</table></div>"
    )


def _span(
    linked: Any,
    sentences: Sequence[str],
    most: int | None,
    words: Mapping[str, str],
    *,
    several: bool,
) -> str:
    mention, best = linked.span.mention, linked.best
    text = sentences[mention.sentence][mention.start : mention.end]
    number = linked.span.base + 1
    base = f", {words['base'].format(number=number)}" if several else ""
    meant = "NULL" if best is None else best.candidate.entity
    head = (
        f'<tr><th colspan="6" style="{CELL}padding-top:.6rem;overflow-wrap:anywhere">'
        f"<b>{escape(text)}</b> "
        f'<span style="font-weight:400;{FAINT}">[{mention.start}, {mention.end}){escape(base)}'
        f"</span> → <b>{escape(meant)}</b></th></tr>"
    )
    ordered = sorted(linked.candidates, key=lambda own: -own.score)
    rows = "".join(_candidate(own, best is own) for own in ordered[:most])
    if most is not None and len(ordered) > most:
        more = words["more"].format(count=len(ordered) - most)
        rows += f'<tr><td colspan="6" style="{CELL}{FAINT}">{escape(more)}</td></tr>'
    return f"<tbody>{head}{rows}</tbody>"


def _candidate(own: Any, chosen: bool) -> str:
    candidate = own.candidate
    name = escape("NULL" if candidate.special == NULL else candidate.entity)
    said = "; ".join(triple.tail for triple in candidate.triples)
    short = said if len(said) <= CLIPPED else f"{said[: CLIPPED - 1]}…"
    return (
        f'<tr><td style="{CELL}overflow-wrap:anywhere">{f"<b>{name}</b>" if chosen else name}</td>'
        f"{_bar(candidate.prior)}"
        f'<td style="{NUMBER}">{_number(own.dot)}</td>'
        f'<td style="{NUMBER}">{_number(own.score)}</td>'
        f"{_bar(own.weight)}"
        f'<td style="{CELL}overflow-wrap:anywhere" title="{escape(said)}">{escape(short)}</td></tr>'
    )


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _bar(share: float) -> str:
    """A share from 0 to 1, as a number and a bar under it."""
    width = 100 * min(max(share, 0.0), 1.0)
    return (
        f'<td style="{CELL}font-variant-numeric:tabular-nums">{share:.3f}'
        f'<div style="height:4px;border-radius:2px;background:color-mix(in srgb,currentColor 12%,'
        f'transparent)"><div style="height:4px;border-radius:2px;background:#0072B2;'
        f'width:{width:.1f}%"></div></div></td>'
    )
