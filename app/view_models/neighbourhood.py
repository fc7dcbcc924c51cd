"""The graph around a sentence, drawn by pyvis without a request outside."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import networkx as nx
from pyvis.network import Network

from app.texts import t
from app.view_models.styles import BRANCH, TRUNK
from kbert_core import Triple

MOST = 80  # triples drawn; the table has them all
_OUTSIDE = re.compile(
    r'<link\b[^>]*href="https?://[^>]*>|<script\b[^>]*src="https?://[^>]*>\s*</script>',
    re.IGNORECASE,
)


class Line(Protocol):
    """A triple to draw; see :class:`Drawn`."""

    @property
    def triple(self) -> Triple:
        """Itself."""

    @property
    def used(self) -> int:
        """Whether its line is full; else it is dashed."""

    @property
    def state(self) -> str:
        """What is said of it under the mouse."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A triple of a graph, outside any sentence.

    Attributes:
        triple: itself.
        used: whether its line is full; else it is dashed.
        state: what is said of it under the mouse.
    """

    triple: Triple
    used: int
    state: str


def neighbourhood_html(
    rows: Sequence[Line], *, dark: bool, height: int = 380, chosen: Triple | None = None
) -> str:
    """Draw entities and their triples as a self-contained page.

    A triple that is used is a full line, one left out a dashed one. Names reach
    the page as JSON with <, > and & escaped, and vis-network draws labels on
    a canvas, so nothing in them is read as HTML.

    Args:
        rows: the triples; the first ``MOST`` are drawn.
        dark: which theme.
        height: in pixels.
        chosen: a triple to set off.
    """
    text, faint, page = (
        ("#E4E9ED", "#7C8A95", "#12171C") if dark else ("#0E161C", "#93A0AA", "#FFFFFF")
    )
    graph = nx.MultiDiGraph()
    for row in rows[:MOST]:
        graph.add_edge(row.triple.head, row.triple.tail, row=row)
    heads = {row.triple.head for row in rows[:MOST]}
    drawn = nx.Graph(graph)  # an edge draws both its ends together
    places = nx.spring_layout(drawn, seed=7, k=2.2 / max(1, len(graph)) ** 0.5, iterations=120)
    net = Network(
        height=f"{height - 10}px",
        width="100%",
        directed=True,
        notebook=False,
        cdn_resources="in_line",
        bgcolor=page,
    )
    spread = 62 * max(2.0, len(graph) ** 0.5)
    for name in graph.nodes:
        x, y = places[name]
        is_head = name in heads
        net.add_node(
            name,
            label=_short(name),
            title=_flat(name),
            shape="box",
            x=float(x) * spread * 1.7,
            y=float(y) * spread,
            color={
                "background": TRUNK if is_head else page,
                "border": TRUNK if is_head else BRANCH,
                "highlight": {"background": TRUNK if is_head else page, "border": text},
            },
            borderWidth=2,
            font={"color": "#FFFFFF" if is_head else text, "size": 18},
        )
    for start, end, data in graph.edges(data=True):
        row = data["row"]
        net.add_edge(
            start,
            end,
            label=_short(row.triple.relation),
            title=_flat(f"{row.triple}: {row.state}"),
            color=BRANCH if row.used else faint,
            dashes=not row.used,
            width=6 if row.triple == chosen else 2.5 if row.used else 1,
            shadow={"enabled": row.triple == chosen, "color": text, "size": 3, "x": 0, "y": 0},
            font={"color": text, "size": 13, "strokeWidth": 4, "strokeColor": page},
        )
    net.toggle_physics(False)
    page_html = net.generate_html(notebook=False)
    page_html = (
        _OUTSIDE.sub("", page_html)
        .replace("<center>", "<div hidden>")
        .replace("</center>", "</div>")
    )
    style = (
        f"<style>html,body{{margin:0;background:{page}}}"
        "#mynetwork{border:0!important;float:none!important}.card{border:0!important}</style>"
    )
    return page_html.replace("</head>", style + "</head>", 1)


def caption(rows: Sequence[Line], *, on: str = "graph.caption") -> str:
    """Say what the drawing shows; plain text.

    Args:
        rows: the triples.
        on: key of the text that says what full and dashed lines are.
    """
    if len(rows) > MOST:
        return t("graph.caption_cut", shown=MOST, total=len(rows))
    return t(on)


def _short(name: str, most: int = 22) -> str:
    name = _flat(name)
    return name if len(name) <= most else name[: most - 1] + "…"


def _flat(name: str) -> str:
    return re.sub(r"\s+", " ", name)
