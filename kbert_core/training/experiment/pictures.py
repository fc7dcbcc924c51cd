"""Bar charts and learning curves of a suite, as PNG.

Colours are Okabe and Ito's, told apart by the colour-blind too; every curve
also has its own marker.
"""

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbert_core.errors import ExperimentError
from kbert_core.training.experiment.suite import Baseline, Run
from kbert_core.training.experiment.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Iterator

GREY, BLUE, ORANGE, GREEN = "#777777", "#0072B2", "#E69F00", "#009E73"
KINDS = {  # of a row: its colour
    "without knowledge": GREY,
    "with the graph": BLUE,
    "control or ablation": ORANGE,
    "with a dictionary": GREEN,
}
LINES = ("#777777", "#0072B2", "#000000", "#56B4E9", "#E69F00", "#009E73", "#D55E00", "#CC79A7")
MARKERS = "osD^vPX*"
INK, FAINT = "#222222", "#DDDDDD"
FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC")
PANELS = 2  # metrics that get bars


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
    metrics = [m for m in tables.metrics[:PANELS] if any(tables.score(r.name, m) for r in rows)]
    with _pyplot() as plt:
        figure, panels = plt.subplots(
            1,
            len(metrics),
            sharey=True,
            squeeze=False,
            figsize=(3.2 + 3.4 * len(metrics), 1.3 + 0.36 * len(rows)),
        )
        for panel, metric in zip(panels[0], metrics, strict=True):
            top = 0.0
            for place, row in enumerate(rows):
                score = tables.score(row.name, metric)
                if score is None:
                    continue
                mean, low, high = (100 * x for x in (score.mean, score.low, score.high))
                panel.barh(place, mean, height=0.68, color=KINDS[kind_of(row)], alpha=0.85)
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
                panel.text(end + 2.5, place, f"{mean:.1f}", va="center", fontsize=9, color=INK)
                top = max(top, end)
            panel.set_xlim(0, min(116.0, 1.17 * top + 3))
            panel.set_xlabel(f"{metric.name}, %")
            _tidy(panel, "x")
        panels[0][0].set_yticks(range(len(rows)), [_label(tables, row) for row in rows])
        panels[0][0].invert_yaxis()
        kinds = dict.fromkeys(map(kind_of, rows))
        handles = [plt.Rectangle((0, 0), 1, 1, color=KINDS[kind]) for kind in kinds]
        figure.legend(
            handles, list(kinds), loc="outside lower center", ncols=len(kinds), frameon=False
        )
        figure.suptitle("Test: mean (bar), seeds (dots), 95 % of resamples (line)", fontsize=10)
        _save(figure, path)
    return True


def draw_curves(tables: Tables, path: Path) -> bool:
    """Draw dev scores by epoch, a line a run with its deviation over the seeds.

    Returns:
        Whether there was anything to draw.
    """
    curves = sorted(tables.curves(), key=lambda curve: -curve.means[-1])
    if not curves:
        return False
    order = [run.name for run in tables.suite.runs]
    with _pyplot() as plt:
        figure, panel = plt.subplots(figsize=(9, 4.4))
        longest = max(len(curve.means) for curve in curves)
        width = 0.3 / max(1, len(curves) - 1)
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
        panel.set_xlim(0.6, longest + 0.4)
        panel.set_xlabel("epoch")
        panel.set_ylabel(f"{tables.metrics[0].name} on dev, %" if tables.metrics else "dev, %")
        _tidy(panel, "y")
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


def _tidy(panel: Any, axis: str) -> None:
    panel.grid(axis=axis, color=FAINT, linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(length=0, colors=INK)
    for side in ("top", "right", *(["left"] if axis == "x" else [])):
        panel.spines[side].set_visible(False)


@contextmanager
def _pyplot() -> "Iterator[Any]":
    try:
        import matplotlib
    except ImportError as error:
        raise ExperimentError(
            "Pictures need matplotlib, which isn't installed. `pip install matplotlib`."
        ) from error
    matplotlib.use("Agg", force=False)
    from matplotlib import font_manager
    from matplotlib import pyplot as plt

    known = set(font_manager.get_font_names())
    style: Any = {
        "font.family": [font for font in FONTS if font in known],
        "font.size": 10,
        "figure.facecolor": "white",
        "axes.facecolor": "white",
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": "#999999",
        "figure.constrained_layout.use": True,
        "text.parse_math": False,  # a $ in a name is a $
    }
    with plt.rc_context(style):
        try:
            yield plt
        finally:
            plt.close("all")


def _save(figure: Any, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=160, metadata={"Software": None})
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
