"""How trees, graphs and predictions look in notebooks. Styles are inline, every text escaped."""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby, islice
from typing import Any

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


def graph_html(graph: Any) -> str:
    """The first ten triples of a graph, and how many there are."""
    off = f", {len(graph.off):,} switched off" if graph.off else ""
    first = [
        (own.head, own.relation, own.tail, "" if graph.is_on(own) else "off")
        for own in islice(graph, 10)
    ]
    more = f"; the first {len(first)}" if len(graph) > len(first) else ""
    said = caption(f"{graph.name or 'A graph'}: {len(graph):,} triples{off}{more}")
    return said + table(("head", "relation", "tail", ""), first)


def trace_html(trace: Any) -> str:
    """What of a trace can be drawn: its trees, and its prediction."""
    parts = (*trace.rows, trace.prediction)
    return "".join(part._repr_html_() for part in parts if hasattr(part, "_repr_html_"))


def tree_html(flat: Any) -> str:
    """The trunk of a flat tree, with its branches below their mentions."""
    nodes: list[str] = []
    below: dict[int, list[str]] = {}
    for placed in flat.branches:
        own = "".join(_token(flat, i, BRANCH, 24) for i in range(placed.start, placed.end))
        style = f"display:flex;gap:3px;padding:2px 0 2px 6px;border-left:3px solid {BRANCH}"
        title = escape(str(placed.branch.triple))
        drawn = f'<div style="{style}" title="{title}">{own}</div>'
        below.setdefault(placed.node + 1, []).append(drawn)
    trunk = [index for index, branch in enumerate(flat.branch_ids) if branch == 0]
    runs = groupby(trunk, lambda i: (flat.token_type_ids[i], flat.anchor_ids[i] or -1 - i))
    for (_, anchor), run in runs:
        own = "".join(_token(flat, i, TRUNK, 34 if anchor > 0 else 10) for i in run)
        style = f"display:flex;gap:3px;padding:0 2px 3px;border-bottom:3px solid {TRUNK}"
        hung = "".join(below.get(anchor, ()))
        hung = f'<div style="display:grid;gap:4px;padding:6px 12px 0 4px">{hung}</div>'
        nodes.append(f'<div><div style="{style}">{own}</div>{hung}</div>')
    style = "display:flex;flex-wrap:wrap;row-gap:.8rem;align-items:flex-start;line-height:1.35"
    said = f"{len(flat)} tokens, {len(flat.branches)} branches"
    said += f", {len(flat.left_out)} triples left out" if flat.left_out else ""
    said += ". Below each token: its soft position | its place in the row."
    return f'<div style="{style}">{"".join(nodes)}</div>{caption(said)}'


def _token(flat: Any, index: int, colour: str, share: int) -> str:
    """A token in a box of a colour, that covers by some per cent, with its positions below."""
    back = f"background:color-mix(in srgb,{colour} {share}%,transparent)"
    text, soft = escape(flat.tokens[index]), flat.soft_positions[index]
    return (
        '<span style="display:inline-flex;flex-direction:column;align-items:center;min-width:1.5em;'
        f'border-radius:4px;padding:2px 5px;{back}"><span style="white-space:pre">{text}</span>'
        '<small style="font-size:.7rem;white-space:nowrap"><b style="color:#D55E00">'
        f"{soft}</b> | {index}</small></span>"
    )
