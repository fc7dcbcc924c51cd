"""The matrix panel's canvas: fast to 512 tokens, with hover, click and keys."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app.components.tree import group_of
from app.view_models.matrix import MatrixView
from app.view_models.selected import Marks

_HTML = """
<div class="root">
  <div class="scroll"><div class="stack"><div class="view">
    <canvas class="base"></canvas><canvas class="over" role="application" tabindex="0"></canvas>
  </div></div></div>
  <div class="said" aria-live="polite"></div>
  <div class="foot">
    <div class="scale"><span class="low"></span><i></i><span class="high"></span></div>
    <div class="zoom"><button class="out">−</button><button class="in">+</button
      ><button class="fit">⤢</button></div>
    <label class="mass" hidden><span></span><input type="range" min="50" max="100" step="1">
      <output></output></label>
  </div>
  <div class="tip" hidden><b></b><span></span></div>
</div>
"""
_CSS = """
.root { position: relative; width: 100%; color: var(--st-text-color);
  font-family: "Source Sans", "Noto Sans CJK SC", sans-serif; }
.scroll { overflow: auto; max-height: 640px; }
.stack { position: relative; }
.view { position: sticky; left: 0; top: 0; width: max-content; }
canvas { display: block; }
canvas.over { position: absolute; left: 0; top: 0; cursor: crosshair; }
canvas.over:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: -2px; }
.tip { position: absolute; z-index: 9; pointer-events: none; max-width: 300px;
  background: var(--st-text-color); color: var(--st-background-color);
  border-radius: 5px; padding: 4px 9px; font-size: 13px; line-height: 1.35;
  white-space: normal; width: max-content; }
.tip b { display: block; font-weight: 600; }
[hidden] { display: none !important; }
.said { font-size: 13px; line-height: 20px; min-height: 20px; margin-top: 4px; }
.foot { display: flex; flex-wrap: wrap; gap: 6px 22px; align-items: center; font-size: 12px;
  margin-top: 2px; }
.scale, .mass, .zoom { display: flex; align-items: center; gap: 8px; }
.scale i { width: 150px; height: 9px; border-radius: 3px; display: inline-block; }
.zoom { gap: 3px; }
.zoom button { font: inherit; font-size: 15px; line-height: 1; width: 28px; height: 26px;
  padding: 0; color: inherit; background: var(--st-secondary-background-color); cursor: pointer;
  border: 1px solid var(--st-border-color); border-radius: 4px; }
.zoom button:focus-visible { outline: 2px solid var(--st-primary-color); }
.mass { flex-wrap: wrap; }
.mass input { width: 130px; accent-color: var(--st-primary-color); }
.mass output { font-variant-numeric: tabular-nums; }
"""
_FOLDER = Path(__file__).parent

_canvas = st.components.v2.component(
    "kbert_matrix",
    html=_HTML,
    css=_CSS,
    js="".join(
        (_FOLDER / name).read_text(encoding="utf-8")
        for name in ("colours.js", "hover.js", "matrix.js")
    ),
)


def draw_matrix(
    view: MatrixView,
    marks: Marks,
    *,
    key: str,
    on_cell: Callable[[], None],
    on_token: Callable[[], None],
    on_link: Callable[[], None] = lambda: None,
) -> None:
    """Draw a matrix; ``on_cell`` runs when a cell is chosen, ``on_token`` when a token's name is.

    What is chosen is then ``st.session_state[key].cell``: [row, column], or
    ``.token``: its place; a cell clicked twice is ``.link``, for ``on_link``.

    Args:
        view: what is drawn.
        marks: what of it is chosen.
        key: of the component.
        on_cell, on_token, on_link: callbacks.
    """
    data = {**view.data(marks), "group": group_of(key)}
    _canvas(
        key=key,
        data=data,
        on_cell_change=on_cell,
        on_token_change=on_token,
        on_link_change=on_link,
    )
