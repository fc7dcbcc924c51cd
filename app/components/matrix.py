"""The matrix panel's canvas: fast to 512 tokens, with hover, click and keys."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from app.components.tree import group_of
from kbert_lab.lab.drawings import source
from kbert_lab.lab.views.matrix import MatrixView
from kbert_lab.lab.views.selected import Marks

_canvas = st.components.v2.component(
    "kbert_matrix",
    html=source("matrix.html"),
    css=source("matrix.css"),
    js=source("colours.js", "hover.js", "why.js", "matrix.js"),
)


def draw_matrix(
    view: MatrixView,
    marks: Marks,
    *,
    key: str,
    on_cell: Callable[[], None],
    on_token: Callable[[], None],
    on_link: Callable[[], None] = lambda: None,
    why: Mapping[str, Any] | None = None,
) -> None:
    """Draw a matrix; ``on_cell`` runs when a cell is chosen, ``on_token`` when a token's name is.

    What is chosen is then ``st.session_state[key].cell``: [row, column], or
    ``.token``: its place; a cell clicked twice is ``.link``, for ``on_link``.

    Args:
        marks: what of it is chosen.
        why: see ``kbert_lab.lab.views.why.in_browser``; None: nothing is said of a chosen cell.
    """
    data = {**view.data(marks), "group": group_of(key), "why": why}
    _canvas(
        key=key,
        data=[data],  # of a dict Streamlit asks pandas, slow to start, whether a part is a table
        on_cell_change=on_cell,
        on_token_change=on_token,
        on_link_change=on_link,
    )
