"""Line charts of numbers that several seeds gave, and matrices of cells.

Colours, fonts and axes are those of :mod:`kbert_lab.explain.drawing`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kbert_core import Ablation, FlatTree
from kbert_lab.explain import drawing as style
from kbert_lab.explain.drawing import drawing, legend_below, tidy

Values = Sequence[float]  # of one point, one per seed
COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, "#56B4E9", "#D55E00", style.GREY)
MARKERS = "osD^vPX"


def line_chart(
    places: Sequence[float | str],
    lines: Mapping[str, Sequence[float] | Sequence[Values]],
    *,
    across: str,
    up: str,
    levels: Mapping[str, float] | None = None,
    log: bool = False,
) -> Any:
    """Draw a line for each name; where points have several values, their mean and range.

    Args:
        places: of the points; words, or numbers on a scale.
        lines: name → a number a place, or several (seeds) a place.
        across, up: what the axes are.
        levels: horizontal lines to compare with, such as chance.
        log: a logarithmic scale upward.
    """
    words = isinstance(places[0], str)
    at = range(len(places)) if words else places
    with drawing(7.4, 3.8) as figure:
        panel = figure.subplots()
        for (name, points), colour, marker in zip(lines.items(), COLOURS, MARKERS, strict=False):
            values = [np.atleast_1d(point) for point in points]
            means = [value.mean() for value in values]
            panel.plot(at, means, color=colour, marker=marker, markersize=5, label=name)
            if max(map(len, values)) > 1:
                low, high = zip(*((value.min(), value.max()) for value in values), strict=True)
                panel.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
        for (name, level), dashes in zip((levels or {}).items(), ("--", ":", "-."), strict=False):
            panel.axhline(level, color=style.GREY, linewidth=1.2, linestyle=dashes, label=name)
        if words:
            panel.set_xticks(at, list(map(str, places)))
        if log:
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")  # 10^n wants math
        panel.set(xlabel=across, ylabel=up)
        tidy(panel, "y")
        if len(lines) > 1 or levels:
            figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return figure


CLAUSES = {  # of Eq. 3 that open a cell, by number
    "trunk": "#8DBCD8",
    "one branch": style.ORANGE,
    "mention and branch": style.GREEN,
    "hidden by K-BERT": "#C5CCD2",
}


def visible_chart(flat: FlatTree, ablation: Ablation) -> Any:
    """Draw the visible matrix of a row: a visible cell has the colour of its clause of Eq. 3."""
    branch, anchor = np.array(flat.branch_ids), np.array(flat.anchor_ids)
    same = branch[:, None] == branch
    mention = (branch == 0) & (anchor > 0)
    near = (anchor[:, None] == anchor) & (mention[:, None] | mention)
    clause = np.full(same.shape, 3)
    clause[near] = 2
    clause[same] = 1
    clause[same & (branch == 0)] = 0
    visible = (clause < 3) | (ablation.visible == "all")
    return matrix_chart(flat.tokens, clause, visible=visible, colours=CLAUSES)


def matrix_chart(
    tokens: Sequence[str],
    values: np.ndarray,
    *,
    visible: np.ndarray | None = None,
    title: str = "",
    colours: Mapping[str, str] | None = None,
) -> Any:
    """Draw a square a cell, those that are not visible hatched.

    Args:
        tokens: N, what each row and column reads.
        values: (N, N), row looks at column.
        visible: (N, N) bool; None: all cells are.
        title: of the whole.
        colours: name → colour, where a value is a place among them.
    """
    from matplotlib.colors import ListedColormap

    count = len(tokens)
    shown = np.ma.masked_array(values, False if visible is None else ~visible)
    ends = (-0.5, count - 0.5)
    how = {"cmap": "cividis"}
    if colours:
        how = {"cmap": ListedColormap([*colours.values()]), "vmin": 0, "vmax": len(colours) - 1}
    with drawing(5.4, 5.9) as figure:
        panel = figure.subplots()
        panel.fill_between(ends, *ends, facecolor="white", edgecolor=style.FAINT, hatch="///", lw=0)
        image = panel.imshow(shown, zorder=2, **how)
        lines = np.arange(count) - 0.5
        panel.hlines(lines, *ends, color="white", lw=0.5, zorder=3)
        panel.vlines(lines, *ends, color="white", lw=0.5, zorder=3)
        panel.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        panel.set_xticks(range(count), tokens, rotation=90 if max(map(len, tokens)) > 2 else 0)
        panel.set_yticks(range(count), tokens)
        panel.set(xlim=ends, ylim=ends[::-1])
        if colours:
            used = {name: c for n, (name, c) in enumerate(colours.items()) if (shown == n).any()}
            legend_below(figure, used)
        else:
            figure.colorbar(image, ax=panel, orientation="horizontal", shrink=0.6, aspect=30)
        if title:
            figure.suptitle(title, fontsize=10)
    return figure
