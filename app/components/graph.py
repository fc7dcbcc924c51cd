"""A neighbourhood of a graph, drawn by vis-network: what is clicked is chosen, and may be edited.

vis-network's script, pyvis's copy of it, is in a component of its own that never changes, so a
browser gets its half megabyte once a visit; the drawing itself is a few kilobytes.
"""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import streamlit as st

from kbert_lab.lab.drawings import source
from kbert_lab.lab.texts import N_, t

TRIPLE_TEXTS = {"save": N_("Save the change"), "off": N_("Switch off"), "on": N_("Switch on")}

_VIS = files("pyvis") / "lib" / "vis-9.1.2" / "vis-network.min.js"

_library = st.components.v2.component(
    "kbert_vis_network", js=_VIS.read_text(encoding="utf-8") + "\nexport default () => {};"
)
_drawing = st.components.v2.component(
    "kbert_graph",
    html=source("graph.html"),
    css=source("graph.css"),
    js=source("hover.js", "graph.js"),
)


def draw_graph(
    data: dict[str, Any],
    *,
    key: str,
    on_node: Callable[[], None],
    on_edge: Callable[[], None],
    on_edit: Callable[[], None] | None = None,
) -> None:
    """Draw a graph; ``on_node``, ``on_edge`` run when a name or a triple of it is clicked.

    What is clicked is then ``st.session_state[key].node``, a name, or ``.edge``, a triple's
    number; what is to be edited ``.edit``: a triple and its new tail, or a triple, None and whether
    it is to be on.

    Args:
        data: see ``kbert_lab.lab.views.neighbourhood``.
        on_node, on_edge, on_edit: callbacks; without the last nothing can be edited.
    """
    texts = {
        "alt": t("Entities and their triples as a graph"),
        "tail": t("tail"),
        **{name: t(TRIPLE_TEXTS[name]) for name in ("save", "off", "on")},
    }
    _library(key=f"{key}.library", data={}, height=0)
    _drawing(
        key=key,
        data={**data, "texts": texts, "editable": on_edit is not None},
        on_node_change=on_node,
        on_edge_change=on_edge,
        on_edit_change=on_edit or (lambda: None),
    )
