"""All attention heads at once, on one canvas; a click or Enter chooses a map."""

from collections.abc import Callable

import streamlit as st

from kbert_lab.lab.drawings import source
from kbert_lab.lab.views.heads import HeadsView

_canvas = st.components.v2.component(
    "kbert_heads",
    html=source("heads.html"),
    css=source("heads.css"),
    js=source("colours.js", "heads.js"),
)


def draw_heads(
    view: HeadsView, chosen: tuple[int, int], *, key: str, on_map: Callable[[], None]
) -> None:
    """Draw small maps; ``on_map`` runs when one is chosen.

    The chosen map is then ``st.session_state[key].map``: [layer, head], from 1.

    Args:
        chosen: the layer and head shown large, from 1; 0 is a mean.
    """
    _canvas(key=key, data=view.data(*chosen), on_map_change=on_map)
