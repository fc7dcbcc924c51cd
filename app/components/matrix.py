"""The matrix panel's canvas: fast to 512 tokens, with hover, click and keys."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from app.view_models.diff import Identity
from app.view_models.matrix import MatrixView

_HTML = """
<div class="root">
  <div class="scroll"><div class="stack">
    <canvas class="base"></canvas><canvas class="over" role="img" tabindex="0"></canvas>
  </div></div>
  <div class="scale"><span class="low"></span><i></i><span class="high"></span></div>
  <div class="tip" hidden><b></b><span></span></div>
</div>
"""
_CSS = """
.root { position: relative; width: 100%; color: var(--st-text-color);
  font-family: "Source Sans", "Noto Sans CJK SC", sans-serif; }
.scroll { overflow: auto; max-height: 640px; }
.stack { position: relative; width: max-content; }
canvas { display: block; }
canvas.over { position: absolute; left: 0; top: 0; cursor: crosshair; }
canvas.over:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: -2px; }
.tip { position: absolute; z-index: 9; pointer-events: none; max-width: 300px;
  background: var(--st-text-color); color: var(--st-background-color);
  border-radius: 5px; padding: 4px 9px; font-size: 13px; line-height: 1.35;
  white-space: normal; width: max-content; }
.tip b { display: block; font-weight: 600; }
.tip[hidden], .scale[hidden] { display: none; }
.scale { display: flex; align-items: center; gap: 8px; font-size: 12px; margin-top: 8px; }
.scale i { width: 180px; height: 9px; border-radius: 3px; display: inline-block; }
"""

_canvas = st.components.v2.component(
    "kbert_matrix",
    html=_HTML,
    css=_CSS,
    js=(Path(__file__).parent / "matrix.js").read_text(encoding="utf-8"),
)


def draw_matrix(
    view: MatrixView,
    selected: tuple[Identity, Identity] | None,
    *,
    key: str,
    on_cell: Callable[[], None],
) -> None:
    """Draw a matrix; ``on_cell`` runs when a cell is chosen.

    The chosen cell is then ``st.session_state[key].cell``: [row, column].
    """
    _canvas(key=key, data=view.data(selected), on_cell_change=on_cell)
