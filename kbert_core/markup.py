"""Pieces of HTML for notebooks: tables, bars, tokens. Styles are inline, every text escaped."""

from collections.abc import Iterable, Sequence
from html import escape

FAINT = "opacity:.65"
EDGE = "border-bottom:1px solid color-mix(in srgb,currentColor 14%,transparent)"
CELL = f"padding:.15rem .8rem .15rem .1rem;text-align:left;vertical-align:top;{EDGE}"
TRUNK, BRANCH = "#0072B2", "#E69F00"


def caption(text: str) -> str:
    """A line in small faint letters."""
    return f'<div style="font-size:.85rem;margin:.3rem 0;{FAINT}">{escape(text)}</div>'


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; a float is a share from 0 to 1, drawn as a number with a bar."""
    head = "".join(
        f'<th style="{CELL};font-weight:500;{FAINT}">{escape(own)}</th>' for own in heads
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    style = "border-collapse:collapse;font-size:.9rem;margin:.3rem 0"
    return f'<table style="{style}"><tr>{head}</tr>{body}</table>'


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return f'<td style="{CELL};overflow-wrap:anywhere">{escape(str(value))}</td>'
    width = 100 * min(max(value, 0.0), 1.0)
    return (
        f'<td style="{CELL};min-width:9rem">{100 * value:.1f} %<div style="height:4px;'
        f'border-radius:2px;background:{TRUNK};width:{width:.1f}%"></div></td>'
    )


def token(text: str, below: str, colour: str, share: int) -> str:
    """A token in a box of a colour, that covers by some per cent, with its positions below."""
    back = f"background:color-mix(in srgb,{colour} {share}%,transparent)"
    return (
        '<span style="display:inline-flex;flex-direction:column;align-items:center;min-width:1.5em;'
        f'border-radius:4px;padding:2px 5px;{back}"><span style="white-space:pre">{escape(text)}'
        f'</span><small style="font-size:.7rem;white-space:nowrap">{below}</small></span>'
    )
