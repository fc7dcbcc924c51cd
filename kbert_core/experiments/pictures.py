"""Bar charts and learning curves of a suite, as PNG.

Colours are Okabe and Ito's, told apart by the colour-blind too; every curve
also has its own marker.
"""

from collections.abc import Collection, Sequence
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any

from PIL import Image

from kbert_core.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    drawing,
    legend_below,
    tidy,
)
from kbert_core.errors import ExperimentError
from kbert_core.experiments.keys import Baseline, Run
from kbert_core.experiments.side_by_side import Group, seeds_text
from kbert_core.experiments.statistics import Metric
from kbert_core.experiments.tables import Tables

KINDS = {  # of a row: its colour
    "without knowledge": GREY,
    "with the graph": BLUE,
    "control or ablation": ORANGE,
    "with a dictionary": GREEN,
}
LINES = ("#777777", "#0072B2", "#000000", "#56B4E9", "#E69F00", "#009E73", "#D55E00", "#CC79A7")
MARKERS = "osD^vPX*"
ON_TEST = "Test: mean (bar), seeds (dots), 95 % of resamples (line)"
PALE = "; pale: stale, or not all seeds yet"
COLOURS = 128  # of a picture; its own hues and what lies between them at edges
TITLE_WIDTH = 24  # characters a line above a panel


def kind_of(row: Run | Baseline) -> str:
    """What sort of row it is, for its colour."""
    if isinstance(row, Baseline):
        return "with a dictionary"
    if row.knowledge == "none":
        return "without knowledge"
    plain = row.knowledge == "graph" and row.ablation.positions == "soft"
    return "with the graph" if plain and row.ablation.visible == "tree" else "control or ablation"


def draw_scores(tables: Tables, path: Path) -> bool:
    """Draw a bar a row: the mean, the seeds as dots, 95 % of the resamples as a whisker.

    Returns:
        Whether there was anything to draw.
    """
    rows = [row for row in tables.suite.rows if tables.score(row.name, tables.metrics[0])]
    if not rows:
        return False
    metrics = [m for m in tables.main_metrics if any(tables.score(r.name, m) for r in rows)]
    with drawing(3.2 + 3.4 * len(metrics), 1.3 + 0.36 * len(rows)) as figure:
        panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)
        for panel, metric in zip(panels[0], metrics, strict=True):
            top = _bars(panel, tables, [row.name for row in rows], metric)
            panel.set_xlim(0, min(116.0, 1.17 * top + 3))
            panel.set_xlabel(f"{metric.name}, %")
            tidy(panel, "x")
        panels[0][0].set_yticks(range(len(rows)), [_label(tables, row) for row in rows])
        panels[0][0].invert_yaxis()
        kinds = dict.fromkeys(map(kind_of, rows))
        legend_below(figure, {kind: KINDS[kind] for kind in kinds})
        figure.suptitle(ON_TEST, fontsize=10)
        _save(figure, path)
    return True


def _bars(
    panel: Any,
    tables: Tables,
    names: Sequence[str],
    metric: Metric,
    *,
    space: float = 2.5,
    pale: Collection[str] = (),
) -> float:
    """Draw a bar a row, from the top; return where the longest ends.

    Args:
        space: between a bar's end and its number.
        pale: names of rows to be drawn paler.
    """
    top = 0.0
    for place, name in enumerate(names):
        score = tables.score(name, metric)
        if score is None:
            continue
        mean, low, high = (100 * x for x in (score.mean, score.low, score.high))
        colour = KINDS[kind_of(tables.suite.row(name))]
        alpha = 0.45 if name in pale else 0.85
        panel.barh(place, mean, height=0.68, color=colour, alpha=alpha)
        panel.plot([low, high], [place, place], color=INK, linewidth=1.4)
        each = [100 * value for value in score.seeds.values()]
        panel.plot(
            *(each, [place] * len(each)),
            "o",
            markersize=4,
            color="white",
            markeredgecolor=INK,
            markeredgewidth=0.8,
        )
        end = max(high, *each)
        panel.text(end + space, place, f"{mean:.1f}", va="center", fontsize=9, color=INK)
        top = max(top, end)
    return top


def draw_group(group: Group, path: Path) -> None:
    """Draw suites side by side: a column a suite, a line of panels a metric, a bar a row."""
    members = [(called, tables) for called, tables in group.members if tables.results]
    names = [n for n in group.rows if any(n in tables.results for _, tables in members)]
    kinds: dict[str, str] = {}
    high = len(group.metrics)
    with drawing(2.6 + 2.1 * len(members), 1.0 + high * (0.5 + 0.27 * len(names))) as figure:
        panels = figure.subplots(high, len(members), sharey=True, squeeze=False)
        for panel, (called, _) in zip(panels[0], members, strict=True):
            panel.set_title(fill(called, TITLE_WIDTH), fontsize=10)
        for line, metric in zip(panels, group.metrics, strict=True):
            for panel, (_, tables) in zip(line, members, strict=True):
                pale = [row.name for row in tables.suite.rows if seeds_text(tables, row)]
                _bars(panel, tables, names, metric, space=4, pale=pale)
                panel.set_xlim(0, 116)
                panel.set_xticks(range(0, 101, 25))
                panel.set_xlabel(f"{metric.name}, %")
                tidy(panel, "x")
                known = [row for row in tables.suite.rows if row.name in names]
                kinds |= {kind_of(row): KINDS[kind_of(row)] for row in known}
        panels[0][0].set_yticks(range(len(names)), names)
        panels[0][0].invert_yaxis()
        legend_below(figure, kinds)
        some = any(seeds_text(tables, row) for _, tables in members for row in tables.suite.rows)
        figure.suptitle(ON_TEST + (PALE if some else ""), fontsize=10)
        _save(figure, path)


def draw_curves(tables: Tables, path: Path) -> bool:
    """Draw dev scores by epoch, a line a run with its deviation over the seeds.

    Returns:
        Whether there was anything to draw.
    """
    curves = sorted(tables.curves(), key=lambda curve: -curve.means[-1])
    if not curves:
        return False
    order = [run.name for run in tables.suite.runs]
    with drawing(9, 4.4) as figure:
        panel = figure.subplots()
        longest = max(len(curve.means) for curve in curves)
        first, last = 0.6, longest + 0.4
        width = 0.05 * (last - first) / max(1, len(curves) - 1)  # so that deviations don't overlap
        for number, curve in enumerate(curves):
            place = order.index(curve.row)
            shift = (number - (len(curves) - 1) / 2) * width
            epochs = [epoch + shift for epoch in range(1, len(curve.means) + 1)]
            values = [100 * value for value in curve.means]
            panel.errorbar(
                epochs,
                values,
                yerr=[100 * (d or 0.0) for d in curve.deviations],
                color=LINES[place % len(LINES)],
                marker=MARKERS[place % len(MARKERS)],
                linestyle=("-", "--", ":")[place // len(LINES) % 3],
                markersize=5,
                linewidth=1.6,
                elinewidth=0.9,
                capsize=2,
                label=f"{tables.shown(curve.row)}  {values[-1]:.1f}",
            )
        panel.set_xticks(range(1, longest + 1))
        panel.set_xlim(first, last)
        panel.set_xlabel("epoch")
        panel.set_ylabel(f"{tables.metrics[0].name} on dev, %" if tables.metrics else "dev, %")
        tidy(panel, "y")
        figure.legend(
            loc="outside right center", frameon=False, fontsize=9, title="score at the last epoch"
        )
        _save(figure, path)
    return True


def _label(tables: Tables, row: Run | Baseline) -> str:
    done, planned = tables.done(row), len(row.seeds)
    if row.name in tables.stale or done == planned:
        return tables.shown(row.name)
    return f"{row.name} ({done} of {planned} seeds)"


def _save(figure: Any, path: Path) -> None:
    """Write a picture in a palette of its own, which takes a third of the room."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=160, format="png")
    picture = Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.save(path, format="PNG", optimize=True)
    except OSError as error:
        raise ExperimentError(
            f"{path}: can't be written ({error.strerror}). Name another file with --report."
        ) from error


def drawn(tables: Tables, folder: Path) -> Sequence[Path]:
    """Draw everything there is to draw of a suite.

    Returns:
        The pictures, those without anything to draw left out.
    """
    name = tables.suite.name
    made = []
    for path, draw in (
        (folder / f"{name}-scores.png", draw_scores),
        (folder / f"{name}-curves.png", draw_curves),
    ):
        if tables.metrics and draw(tables, path):
            made.append(path)
    return made
