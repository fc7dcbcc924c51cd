"""All attention heads at once, on one canvas; a click or Enter chooses a map."""

from collections.abc import Callable

import streamlit as st

from app.components import source
from app.view_models.heads import HeadsView

_HTML = """
<div class="root">
  <canvas role="application" tabindex="0"></canvas>
  <div class="foot"><div class="scale"><span class="low"></span>
  <i><b class="middle"></b></i><span class="high"></span></div>
  <div class="said" aria-live="polite"></div></div>
</div>
"""
_CSS = """
.root { position: relative; width: 100%; color: var(--st-text-color);
  font-family: "Source Sans", "Noto Sans CJK SC", sans-serif; }
canvas { display: block; cursor: pointer; }
canvas:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 2px; }
.foot { display: flex; flex-wrap: wrap; gap: 4px 18px; align-items: center; font-size: 12px;
  margin-top: 6px; min-height: 18px; }
.scale { display: flex; align-items: center; gap: 8px; }
.scale i { width: 170px; height: 16px; border-radius: 3px; text-align: center;
  line-height: 16px; font-style: normal; }
.scale b { color: #fff; font-weight: 400; }
"""

_canvas = st.components.v2.component(
    "kbert_heads",
    html=_HTML,
    css=_CSS,
    js=source("colours.js", "heads.js"),
)


def draw_heads(
    view: HeadsView, chosen: tuple[int, int], *, key: str, on_map: Callable[[], None]
) -> None:
    """Draw small maps; ``on_map`` runs when one is chosen.

    The chosen map is then ``st.session_state[key].map``: [layer, head], from 1.

    Args:
        view: what is drawn.
        chosen: the layer and head shown large, from 1; 0 is a mean.
        key: of the component.
        on_map: a callback.
    """
    _canvas(key=key, data=view.data(*chosen), on_map_change=on_map)
