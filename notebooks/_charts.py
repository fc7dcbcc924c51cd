"""Line and bar charts of numbers that several seeds gave, and matrices of cells.

Colours, fonts and axes are those of :mod:`kbert_lab.explain.drawing`.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from kbert_core import Ablation, FlatTree
from kbert_lab.explain.drawing import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    drawing,
    legend_below,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = Sequence[float]  # of one point, one per seed
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, "#56B4E9", "#D55E00", GREY)
MARKERS = "osD^vPX"
LINE_STYLES = ("-", "--", ":")


def line_chart(
    places: Sequence[float | str],
    lines: Mapping[str, Sequence[float] | Sequence[Values]],
    *,
    across: str,
    up: str,
    title: str = "",
    levels: Mapping[str, float] | None = None,
    log: bool = False,
    size: tuple[float, float] = (7.4, 3.8),
) -> "Figure":
    """Draw a line for each name; where points have several values, their mean and range.

    Args:
        places: of the points; words, or numbers on a scale.
        lines: name → a number a place, or several (seeds) a place.
        across, up: what the axes are.
        title: of the whole.
        levels: horizontal lines to compare with, such as chance.
        log: a logarithmic scale upward.
        size: in inches.

    Raises:
        MissingPackageError: matplotlib isn't installed.
    """
    words = any(isinstance(place, str) for place in places)
    at = [float(n) if words else float(p) for n, p in enumerate(places)]
    with drawing(*size) as figure:
        panel = figure.subplots()
        for number, (name, points) in enumerate(lines.items()):
            values = [_several(point) for point in points]
            colour = COLOURS[number % len(COLOURS)]
            panel.plot(
                at,
                [fmean(several) for several in values],
                color=colour,
                marker=MARKERS[number % len(MARKERS)] if len(at) <= 40 else None,
                linestyle=LINE_STYLES[number // len(COLOURS) % len(LINE_STYLES)],
                markersize=5,
                label=name,
            )
            if any(len(several) > 1 for several in values):
                low, high = [min(v) for v in values], [max(v) for v in values]
                panel.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
        _levels(panel, levels, vertical=False)
        if words:
            panel.set_xticks(at, list(map(str, places)))
        if log:
            panel.set_yscale("log")
            panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")  # 10^n wants math
        panel.set(xlabel=across, ylabel=up)
        tidy(panel, "y")
        if len(lines) > 1 or levels:
            handles, names = panel.get_legend_handles_labels()
            figure.legend(handles, names, loc="outside right upper", frameon=False, fontsize=9)
        if title:
            figure.suptitle(title, fontsize=10)
    return figure


def bar_chart(
    rows: Mapping[str, Mapping[str, Values]],
    *,
    across: str,
    title: str = "",
    levels: Mapping[str, float] | None = None,
    most: float | None = None,
) -> "Figure":
    """Draw a group of bars for each row: the mean a bar, what each seed gave a dot.

    Args:
        rows: row → name of a bar → its values.
        across: what they are.
        title: of the whole.
        levels: vertical lines to compare with, such as chance.
        most: where the axis ends; None: where the values do.

    Raises:
        MissingPackageError: matplotlib isn't installed.
    """
    names = list(dict.fromkeys(name for bars in rows.values() for name in bars))
    thick = 0.8 / max(1, len(names))
    every = [value for bars in rows.values() for values in bars.values() for value in values]
    digits = 3 if max(every, default=0) < 10 else 1
    with drawing(7.4, 1.3 + (0.26 + 0.24 * len(names)) * len(rows)) as figure:
        panel = figure.subplots()
        for number, name in enumerate(names):
            shown = False
            for row, bars in enumerate(rows.values()):
                if name not in bars:
                    continue
                values = list(bars[name])
                place = row + (number - (len(names) - 1) / 2) * thick
                mean = fmean(values)
                panel.barh(
                    place,
                    mean,
                    height=0.9 * thick,
                    color=COLOURS[number % len(COLOURS)],
                    alpha=0.85,
                    label=None if shown else name,
                )
                shown = True
                if len(values) > 1:
                    panel.plot(
                        values,
                        [place] * len(values),
                        "o",
                        markersize=4,
                        color="white",
                        markeredgecolor=INK,
                        markeredgewidth=0.8,
                    )
                panel.annotate(
                    f"{'mean ' if len(values) > 1 else ''}{mean:.{digits}f}",
                    (max(mean, *values), place),
                    xytext=(6, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=9,
                )
        _levels(panel, levels, vertical=True)
        panel.set_yticks(range(len(rows)), list(rows))
        panel.invert_yaxis()
        panel.margins(x=0.2)
        panel.set_xlim(left=0, right=most)
        panel.set_xlabel(across)
        tidy(panel, "x")
        handles, labels = panel.get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=len(labels),
            frameon=False,
            fontsize=9,
        )
        if title:
            figure.suptitle(title, fontsize=10)
    return figure


CLAUSES = {  # of Eq. 3 that open a cell, by number
    "trunk": "#8DBCD8",
    "one branch": ORANGE,
    "mention and branch": GREEN,
    "hidden by K-BERT": "#C5CCD2",
}


def visible_chart(flat: FlatTree, ablation: Ablation) -> "Figure":
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
) -> "Figure":
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
        panel.fill_between(ends, *ends, facecolor="white", edgecolor=FAINT, hatch="///", lw=0)
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


def _several(point: float | Values) -> list[float]:
    return list(map(float, point)) if isinstance(point, Sequence) else [float(point)]


def _levels(panel: object, levels: Mapping[str, float] | None, *, vertical: bool) -> None:
    for (name, value), style in zip((levels or {}).items(), ("--", ":", "-."), strict=False):
        line = panel.axvline if vertical else panel.axhline  # type: ignore[attr-defined]
        line(value, color=GREY, linewidth=1.2, linestyle=style, label=name)
