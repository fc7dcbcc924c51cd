"""Bar charts and learning curves of suites, as PNG.

Colours are Okabe and Ito's, told apart by the colour-blind too; every curve
also has its own marker.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from pathlib import Path
from textwrap import fill
from typing import Any

from kbert_core.kbert.visible import FULL, Ablation
from kbert_lab.explain.drawing import BLUE, GREEN, GREY, INK, ORANGE, drawing, legend_below, tidy
from kbert_lab.study.statistics import Difference, Metric, Spread
from kbert_lab.suites.results import Tables
from kbert_lab.suites.suite import Baseline, Condition, Run
from kbert_lab.training.finetune import MAIN_SCORE
from results.tools.beside import Group

KINDS = {  # of a row: its colour
    "without knowledge": GREY,
    "with the graph": BLUE,
    "control or ablation": ORANGE,
    "with a dictionary": GREEN,
}
LINES = (  # the last four are Tol's
    *("#777777", "#0072B2", "#000000", "#56B4E9", "#E69F00", "#009E73", "#D55E00", "#CC79A7"),
    *("#882255", "#332288", "#999933", "#661100"),
)
MARKERS = "osD^vPX*hp<>"
LONGEST = 0.05  # half of an interval that a map has room for
CURVE: Any = {"markersize": 5, "linewidth": 1.6, "elinewidth": 0.9, "capsize": 2}
ON_TEST = "Test: mean (bar), seeds (dots), 95 % interval (line; none of one seed)"
PALE = "; pale: not all seeds yet"
DOTS = 160  # an inch
VARIED = {  # what a condition varies: its name below a panel
    "unseen": "mentions with a new name, %",
    "known": "of these known to the graph, %",
    "right": "matches that are right, %",
}
TITLE_WIDTH = 24  # characters a line above a panel
CURVES_WIDE, CURVE_TITLE = 4, 34  # panels beside each other, characters a line above them
ABLATED = {  # a line of curves: its name, colour and marker
    FULL: ("the row named above", BLUE, "s"),
    Ablation(positions="hard"): ("hard positions", ORANGE, "D"),
    Ablation(visible="all"): ("everything visible", GREEN, "^"),
    Ablation(positions="hard", visible="all"): ("both", INK, "v"),
    Ablation(segments="none"): ("no segments", LINES[7], "P"),
}


def draw_suite(tables: Tables, folder: Path) -> list[Path]:
    """Draw what there is to draw of a suite: its scores, its curves."""
    name = tables.suite.name
    pictures = {f"{name}-scores.png": _draw_scores, f"{name}-curves.png": _draw_curves}
    if tables.suite.conditions:
        pictures = {f"{name}-map.png": _draw_map}
    return [folder / file for file, draw in pictures.items() if draw(tables, folder / file)]


def gains_by_axis(tables: Tables) -> dict[str, dict[str, list[tuple[float, Difference]]]]:
    """What each row gains over the run without knowledge, along each thing that is varied.

    An axis has the conditions that differ from the first, the centre, in nothing else.

    Returns:
        Axis, as ``VARIED`` → name of a row → its points: the share varied and the gain.
    """
    metric, conditions = tables.metrics[0], tables.suite.conditions
    gains: dict[tuple[str, Condition], Difference] = {}
    for row in tables.suite.rows:
        if row.compare_with not in (None, row.name):
            gain = tables.resampled.difference(row.name, str(row.compare_with), metric)
            if gain is not None:
                at = Condition(unseen=row.unseen, known=row.known, right=row.right)
                gains[row.called, at] = gain
    found: dict[str, dict[str, list[tuple[float, Difference]]]] = {}
    for axis in VARIED:
        along = [c for c in conditions if _but(c, axis) == _but(conditions[0], axis)]
        if len(along) > 1:
            along.sort(key=attrgetter(axis))
            found[axis] = {
                name: [(getattr(c, axis), gains[name, c]) for c in along if (name, c) in gains]
                for name in dict.fromkeys(name for name, _ in gains)
            }
    return found if gains else {}


def _draw_map(tables: Tables, path: Path) -> bool:
    """Draw a panel an axis and a line a row; return whether there was anything to draw.

    Runs of another system or encoder have panels below, with the first row. Of the others, those
    that aren't a line along every axis stand in the tables alone.
    """
    axes, suite = gains_by_axis(tables), tables.suite
    if not axes:
        return False
    model = _model(suite.runs[0])
    others = {run.called for run in suite.runs if _model(run) != model}
    long = {n: [len(of[n]) > 1 for of in axes.values()] for n in next(iter(axes.values()))}
    plain = [name for name in long if name not in others] or [*long]
    own = [name for name in plain if all(long[name])] or plain
    below = [name for name in long if name not in plain and any(long[name])]
    numbers = {name: number for number, name in enumerate([*own, *below], 1)}
    high, within = 1 + bool(below), _within(axes)
    with drawing(3.4 * len(axes) + 0.6, 1.2 + 3.4 * high) as figure:
        drawn = figure.subplots(high, len(axes), sharey=True, squeeze=False)
        for line, panels in enumerate(drawn):
            shown = {axis: own for axis in axes}
            if line:
                of_axis = {axis: [n for n in below if len(axes[axis][n]) > 1] for axis in axes}
                shown = {axis: [own[0], *names] for axis, names in of_axis.items() if names}
            for panel in panels[len(shown) :]:
                panel.set_visible(False)
            for panel, (axis, names) in zip(panels, shown.items(), strict=False):
                _draw_gains(panel, {name: axes[axis][name] for name in names}, numbers, within)
                panel.set_xlabel(VARIED[axis])
                title = _but(suite.conditions[0], axis).in_words
                panel.set_title(title + ": other models" * line, fontsize=10)
            over = f" over {suite.compare_with}" if suite.compare_with else ""
            panels[0].set_ylabel(f"{tables.metrics[0].name} gained{over}, points")
        drawn[0][0].set_ylim(*within)
        told = (zip(*panel.get_legend_handles_labels(), strict=True) for panel in drawn.flat)
        lines_by_name = {name: line for of_panel in told for line, name in of_panel}
        handles, looks = lines_by_name.values(), {"frameon": False, "fontsize": 9}
        figure.legend(handles, lines_by_name, loc="outside lower center", ncols=4, **looks)
        figure.savefig(path, dpi=DOTS)
    return True


def _model(run: Run) -> tuple[str, str]:
    """Return what a run trains: system and encoder."""
    return str(run.train.get("system")), run.encoder


def _within(
    axes: Mapping[str, Mapping[str, Sequence[tuple[float, Difference]]]],
) -> tuple[float, float]:
    """The least and the most that a map shows; a long interval of few seeds ends at the edge."""
    gains = [gain for lines in axes.values() for points in lines.values() for _, gain in points]
    low = min(max(gain.low, gain.mean - LONGEST) for gain in gains)
    high = max(min(gain.high, gain.mean + LONGEST) for gain in gains)
    return 100 * low - 1, 100 * high + 1


def _draw_gains(
    panel: Any,
    lines: Mapping[str, Sequence[tuple[float, Difference]]],
    numbers: Mapping[str, int],
    within: tuple[float, float],
) -> None:
    """Draw a line a row along what is varied; its number says its colour and marker.

    Where an interval goes on beyond what is shown, an arrow at the edge says so.
    """
    from matplotlib.markers import CARETDOWNBASE, CARETUPBASE  # slow to start

    shares = sorted({share for points in lines.values() for share, _ in points})
    step = (shares[-1] - shares[0]) / 60
    for place, (name, points) in enumerate(lines.items(), 1):
        number = numbers[name]
        colour, shift = LINES[number % len(LINES)], step * (place - (len(lines) + 1) / 2)
        at = [100 * (share + shift) for share, _ in points]
        means = [100 * gain.mean for _, gain in points]
        low = [100 * (gain.mean - gain.low) for _, gain in points]
        high = [100 * (gain.high - gain.mean) for _, gain in points]
        panel.errorbar(
            at,
            means,
            yerr=[low, high],
            color=colour,
            marker=MARKERS[number % len(MARKERS)],
            **CURVE,
            label=name,
        )
        for x, mean, below, above in zip(at, means, low, high, strict=True):
            if mean - below < within[0]:
                panel.plot(x, within[0], marker=CARETDOWNBASE, color=colour, clip_on=False)
            if mean + above > within[1]:
                panel.plot(x, within[1], marker=CARETUPBASE, color=colour, clip_on=False)
    panel.axhline(0, color=GREY, linewidth=1.0)
    panel.set_xticks([100 * share for share in shares])
    tidy(panel, "y")


def _but(condition: Condition, axis: str) -> Condition:
    """A condition without one of the things varied."""
    return replace(condition, **{axis: None})


def _draw_scores(tables: Tables, path: Path) -> bool:
    """Draw a bar a row; return whether there was anything to draw."""
    rows = [row for row in tables.suite.rows if tables.score(row.name, tables.metrics[0])]
    if not rows:
        return False
    metrics = [m for m in tables.main_metrics if any(tables.score(r.name, m) for r in rows)]
    with drawing(3.2 + 3.4 * len(metrics), 1.3 + 0.36 * len(rows)) as figure:
        panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)
        for panel, metric in zip(panels[0], metrics, strict=True):
            top = _bars(panel, tables, [row.name for row in rows], metric)
            panel.set_xlim(0, min(116.0, 1.17 * top + 3))
        lacking = [f" ({less})" if (less := tables.lacking(row)) else "" for row in rows]
        names = [row.name + less for row, less in zip(rows, lacking, strict=True)]
        _finish(figure, panels, names, rows, ON_TEST)
        figure.savefig(path, dpi=DOTS)
    return True


def draw_group(group: Group, folder: Path) -> Path:
    """Draw suites side by side: a column a suite, a line of panels a metric, a bar a row."""
    path = folder / f"{group.name}-side-by-side.png"
    members = [(called, tables) for called, tables in group.members if tables.results]
    names = [n for n in group.rows if any(n in tables.results for _, tables in members)]
    high, any_pale = len(group.metrics), False
    with drawing(2.6 + 2.1 * len(members), 1.0 + high * (0.5 + 0.27 * len(names))) as figure:
        panels = figure.subplots(high, len(members), sharey=True, squeeze=False)
        for place, (called, tables) in enumerate(members):
            panels[0][place].set_title(fill(called, TITLE_WIDTH), fontsize=10)
            pale = [row.name for row in tables.suite.rows if tables.lacking(row)]
            any_pale |= bool(pale)
            for panel, metric in zip(panels[:, place], group.metrics, strict=True):
                _bars(panel, tables, names, metric, space=4, pale=pale)
                panel.set_xlim(0, 116)
                panel.set_xticks(range(0, 101, 25))
        rows = [row for _, tables in members for row in tables.suite.rows if row.name in names]
        _finish(figure, panels, names, rows, ON_TEST + PALE * any_pale)
        figure.savefig(path, dpi=DOTS)
    return path


def _bars(
    panel: Any,
    tables: Tables,
    names: Sequence[str],
    metric: Metric,
    *,
    space: float = 2.5,
    pale: Collection[str] = (),
) -> float:
    """Draw a bar a row, its number ``space`` after it; return where the longest ends."""
    top = 0.0
    panel.set_xlabel(f"{metric.name}, %")
    for place, name in enumerate(names):
        score = tables.score(name, metric)
        if score is None:
            continue
        mean, low, high = (100 * x for x in (score.mean, score.low, score.high))
        colour = KINDS[_kind(tables.suite.row(name))]
        panel.barh(place, mean, height=0.68, color=colour, alpha=0.45 if name in pale else 0.85)
        seeds = [100 * value for value in score.seeds.values()]
        ends = [low, high] if len(seeds) > 1 else []
        panel.plot(ends, [place] * len(ends), color=INK, linewidth=1.4)
        dots = {"markersize": 4, "markeredgecolor": INK, "markeredgewidth": 0.8}
        panel.plot(seeds, [place] * len(seeds), "o", color="white", **dots)
        end = max([*ends, *seeds])
        panel.text(end + space, place, f"{mean:.1f}", va="center", fontsize=9, color=INK)
        top = max(top, end)
    return top


def _finish(
    figure: Any, panels: Any, names: Sequence[str], rows: Sequence[Run | Baseline], title: str
) -> None:
    """Name the bars, and say what their colours mean."""
    for panel in panels.flat:
        tidy(panel, "x")
    panels[0][0].set_yticks(range(len(names)), names)
    panels[0][0].invert_yaxis()
    legend_below(figure, {kind: KINDS[kind] for kind in map(_kind, rows)})
    figure.suptitle(title, fontsize=10)


def _kind(row: Run | Baseline) -> str:
    """What sort of row it is, for its colour."""
    if isinstance(row, Baseline):
        return "with a dictionary"
    if row.knowledge == "none":
        return "without knowledge"
    plain = row.knowledge == "graph" and row.ablation == FULL
    return "with the graph" if plain else "control or ablation"


def _draw_curves(tables: Tables, path: Path) -> bool:
    """Draw scores by epoch, of as many as all seeds have; see _draw_scores.

    A panel has the runs that differ in nothing but the ablation, as in the paper's Figure 5, and
    in grey the run without knowledge. Where runs have test curves these alone are drawn: after
    each epoch, of the epoch that is best on dev so far; else scores on dev.
    """
    main, curves = MAIN_SCORE[tables.suite.task], {}
    panels: dict[str, list[Run]] = {}  # by what their runs have in common
    learnt = {run.name: tables.values(run.name, "learning_curve") for run in tables.suite.runs}
    on_test = any(f"test_{main}" in epoch for of in learnt.values() for one in of for epoch in one)
    for run in tables.suite.runs:
        found = [
            _chosen(curve, main) if on_test else [100 * epoch[main] for epoch in curve]
            for curve in learnt[run.name]
        ]
        if scores := [curve for curve in found if curve]:
            curves[run.name] = [Spread.of(of) for of in zip(*scores, strict=False)]
            plain = replace(run, name="", note="", seeds=(0,), ablation=FULL, test_curve=False)
            panels.setdefault(repr(plain), []).append(run)
    if on_test and len(panels) > 1:  # what is grey in the others needs no panel
        without_graph = {runs[0].compare_with for runs in panels.values()}
        panels = {key: runs for key, runs in panels.items() if runs[0].name not in without_graph}
    longest = max(map(len, curves.values()), default=0)
    if longest < 2:  # points are no curve
        return False
    columns = min(len(panels), CURVES_WIDE)
    lines = -(-len(panels) // columns)
    wide = CURVE_TITLE if columns > 1 else 3 * CURVE_TITLE  # a panel alone is as wide as the page
    with drawing(max(6.5, 0.6 + 2.7 * columns), 1.1 + 2.4 * lines) as figure:
        grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
        shown: dict[str, Any] = {}
        for panel, runs in zip(grid.flat, panels.values(), strict=False):
            without = runs[0].compare_with
            if without in curves and without != runs[0].name:
                means = [epoch.mean for epoch in curves[without]]
                grey = {"color": GREY, "linestyle": "--", "linewidth": 1.2}
                (shown[without],) = panel.plot(range(1, len(means) + 1), means, **grey)
            ends: list[str] = []
            for run in runs:
                shown |= _draw_curve(panel, run, curves[run.name])
                end = f"{curves[run.name][-1].mean:.1f}"
                ends.append(f"{ABLATED[run.ablation][0]} {end}" if ends else end)
            title = fill(runs[0].name, wide) + "\n" + fill(", ".join(ends), wide + 6)
            panel.set_title(title, fontsize=9)
            tidy(panel, "y")
        for number, panel in enumerate(grid.flat):
            panel.set_visible(number < len(panels))
            if number + columns >= len(panels):
                panel.set_xlabel("epoch", fontsize=9)
                panel.tick_params(labelbottom=True)
        grid[0][0].set_xticks(range(1, longest + 1))
        split = "test, %\n(epoch best on dev so far)" if on_test else "dev, %"
        figure.supylabel(f"{tables.metrics[0].name} on {split}", fontsize=10)
        looks: Any = {"loc": "outside lower center", "frameon": False, "fontsize": 9}
        figure.legend(shown.values(), shown, ncols=5 if columns > 1 else 3, **looks)
        figure.savefig(path, dpi=DOTS)
    return True


def _chosen(curve: Sequence[Mapping[str, float]], main: str) -> list[float]:
    """Scores on test by epoch, in per cent: of the first that is best on dev up to there.

    None where test wasn't scored by epoch.
    """
    if not all(f"test_{main}" in epoch for epoch in curve):
        return []
    so_far = (curve[:number] for number in range(1, len(curve) + 1))
    best = (max(epochs, key=itemgetter(main)) for epochs in so_far)  # the first of equal ones
    return [100 * epoch[f"test_{main}"] for epoch in best]


def _draw_curve(panel: Any, run: Run, epochs: Sequence[Spread]) -> dict[str, Any]:
    """Draw one run's means and a band of a deviation; return its line by its name in the legend."""
    name, colour, marker = ABLATED[run.ablation]
    places, means = range(1, len(epochs) + 1), [epoch.mean for epoch in epochs]
    looks = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.6}
    (line,) = panel.plot(places, means, **looks)
    wide = [epoch.deviation or 0.0 for epoch in epochs]
    low, high = ([m + sign * w for m, w in zip(means, wide, strict=True)] for sign in (-1, 1))
    panel.fill_between(places, low, high, color=colour, alpha=0.13, linewidth=0)
    return {name: line}
