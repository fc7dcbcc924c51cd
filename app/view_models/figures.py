"""What the page draws, as pictures to keep: SVG with text as outlines, or PNG."""

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from app.texts import t
from app.view_models.html import plain
from app.view_models.matrix import (
    BLOCKED,
    HIDDEN,
    LEVELS,
    ONLY_AFTER,
    ONLY_BEFORE,
    OPENED,
    PART_BLOCKED,
    PART_OPENED,
    MatrixView,
    legend,
    names_of,
)
from app.view_models.styles import BRANCH, CHANGED, LINK, TRUNK
from kbert_core.explain.drawing import EDGE, INK, drawing

if TYPE_CHECKING:  # optional, and slow to start
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Form = Literal["svg", "png"]
FORMS: tuple[Form, ...] = ("svg", "png")
CATEGORIES = (  # by code
    *("#7FB2D2", BRANCH, LINK, "#98A2AA", "#D55E00", TRUNK, "#DEE4E9"),
    *("#FADECB", "#F3E96B", "#FADECB", "#F3E96B"),  # blocked, opened; of some layers
)
MARKERS: dict[int, Any] = {  # cross, ring, half a cross, dot
    BLOCKED: "x",
    OPENED: "o",
    PART_BLOCKED: ((-1, -1), (1, 1)),
    PART_OPENED: ".",
}
KINDS = {ONLY_AFTER: CHANGED, ONLY_BEFORE: "#F0DAE6"}
ROLES = (INK, "#9A6A00", TRUNK)  # of a label: trunk, branch, mention
SPREAD = ("#0072B2", "#FAFAFA", "#D55E00")  # of differences, centred at zero
LABELLED = 110  # tokens; the labels of more would be smaller than can be read
POINT = 1 / 72  # inches
DPI = 200


def matrix_picture(view: MatrixView, form: Form, *, title: str) -> bytes:
    """Draw a matrix: a square a cell, hidden ones hatched, tokens at both sides."""
    count = len(view.tokens)
    cell = min(18.0, max(3.0, 460 / max(1, count)))
    side = max(150.0, cell * count)
    with picture((side + 150) * POINT, (side + 165) * POINT) as figure:
        panel = figure.subplots()
        panel.set_title(title, fontsize=11, loc="left")
        _cells(panel, view)
        _labels(panel, view, min(9.0, 0.78 * cell))
        if view.categorical:
            _legend(figure, view)
        else:
            _scale(figure, panel, view)
        return saved(figure, form)


@contextmanager
def picture(width: float, height: float) -> "Iterator[Figure]":
    """A figure, without a warning for every character that no font has."""
    with drawing(width, height) as figure, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield figure


def saved(figure: "Figure", form: Form) -> bytes:
    """Return a figure as the bytes of a file; within :func:`picture`."""
    from matplotlib import rc_context

    data = io.BytesIO()
    said = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "kbert"}):  # the same every time
        figure.savefig(data, format=form, dpi=DPI, metadata=said)
    figure.clear()  # nobody draws it again
    return data.getvalue()


# Matrices


def _cells(panel: "Axes", view: MatrixView) -> None:
    from matplotlib.patches import Rectangle

    count = len(view.tokens)
    hatched = Rectangle((-0.5, -0.5), count, count, facecolor="white", edgecolor="#C9D0D6")
    hatched.set(hatch="////", linewidth=0)
    panel.add_patch(hatched)
    panel.imshow(_colours(view)[view.codes], interpolation="none", zorder=2)
    if count <= LABELLED:
        edges = np.arange(count + 1) - 0.5
        panel.hlines(edges, -0.5, count - 0.5, color="white", linewidth=0.4, zorder=3)
        panel.vlines(edges, -0.5, count - 0.5, color="white", linewidth=0.4, zorder=3)
    if view.categorical:
        _interventions(panel, view)
    panel.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5))
    for spine in panel.spines.values():
        spine.set(edgecolor=EDGE, linewidth=0.6)


def _interventions(panel: "Axes", view: MatrixView) -> None:
    """Mark what was blocked and opened."""
    size = 0.5 * min(18.0, 460 / max(1, len(view.tokens)))  # points
    for code, marker in MARKERS.items():
        rows, columns = np.nonzero(view.codes == code)
        inside = "none" if code == OPENED else INK
        panel.plot(
            *(columns, rows),
            linestyle="none",
            marker=marker,
            markersize=size,
            markerfacecolor=inside,
            markeredgecolor=INK,
            markeredgewidth=0.8,
            zorder=4,
        )


def _colours(view: MatrixView) -> np.ndarray:
    """(256, 4) uint8, a colour a code; see-through where a cell is hidden."""
    from matplotlib.colors import to_rgba

    table = np.zeros((256, 4))
    if view.categorical:
        for code, colour in enumerate(CATEGORIES):
            table[code] = to_rgba(colour)
    else:
        table[:LEVELS] = _ramp(view)(np.linspace(0, 1, LEVELS))
    for code, colour in KINDS.items():
        table[code] = to_rgba(colour)
    table[HIDDEN] = 0
    return np.round(table * 255).astype(np.uint8)


def _ramp(view: MatrixView) -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    if view.kind == "difference":
        return LinearSegmentedColormap.from_list("spread", SPREAD)
    return colormaps["cividis"]


def _labels(panel: "Axes", view: MatrixView, size: float) -> None:
    count = len(view.tokens)
    panel.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    if count > LABELLED:
        panel.tick_params(labelsize=8)
        return
    marks = {"added": "+ ", "removed": "− ", "same": ""}
    names = [marks[token.status] + clipped(plain(token.text), 14) for token in view.tokens]
    wide = max(map(len, names), default=0) > 2
    panel.set_xticks(range(count), names, fontsize=size, rotation=90 if wide else 0)
    panel.set_yticks(range(count), names, fontsize=size)
    for axis in (panel.get_xticklabels(), panel.get_yticklabels()):
        for label, role in zip(axis, view.roles, strict=True):
            label.set_color(ROLES[role])


def _legend(figure: "Figure", view: MatrixView) -> None:
    from matplotlib.patches import Patch

    names = names_of(view.kind)
    handles = []
    for code in legend(view):
        patch = Patch(facecolor="white", edgecolor="#C9D0D6", label=names[str(code)])
        if code == HIDDEN:
            patch.set_hatch("////")
        else:
            patch.set_facecolor(KINDS.get(code) or CATEGORIES[code])
        handles.append(patch)
    figure.legend(handles=handles, loc="outside lower left", ncols=2, frameon=False, fontsize=8.5)


def _scale(figure: "Figure", panel: "Axes", view: MatrixView) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    values = ScalarMappable(Normalize(view.low, view.high), _ramp(view))
    bar = figure.colorbar(
        values, ax=panel, orientation="horizontal", shrink=0.6, aspect=30, pad=0.02
    )
    bar.ax.tick_params(labelsize=8, length=2)
    bar.outline.set_visible(False)  # type: ignore[operator]


def clipped(text: str, most: int) -> str:
    """A name short enough to stand beside a bar or a cell."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


# Bars


@dataclass(frozen=True, slots=True)
class Bars:
    """Probabilities that belong together.

    Attributes:
        title: what they are of.
        now: by name.
        before: the same earlier; None where nothing is compared.
    """

    title: str
    now: Mapping[str, float]
    before: Mapping[str, float] | None = None


def bars_picture(groups: Sequence[Bars], form: Form, *, title: str, most: int = 8) -> bytes:
    """Draw probabilities as bars, those of before thin and grey."""
    chosen = [(group, _order(group, most)) for group in groups]
    rows = [max(1, len(names)) for _, names in chosen]
    height = 0.9 + sum(0.55 + 0.34 * count for count in rows)
    with picture(7.2, height) as figure:
        figure.suptitle(title, fontsize=11, x=0.01, ha="left")
        panels = figure.subplots(len(groups), 1, squeeze=False, height_ratios=rows)[:, 0]
        for panel, (group, names) in zip(panels, chosen, strict=True):
            _bars(panel, group, names)
        if any(group.before is not None for group in groups):
            from matplotlib.patches import Patch

            handles = [
                Patch(color="#A3A9AE", label=t("prediction.before")),
                Patch(color=TRUNK, label=t("prediction.after")),
            ]
            figure.legend(
                handles=handles, loc="outside lower right", ncols=2, frameon=False, fontsize=8.5
            )
        return saved(figure, form)


def _spaced(name: str) -> str:
    """A label's name: visible throughout, but that a space is a space."""
    return plain(name).replace("␣", " ")


def _order(group: Bars, most: int) -> list[str]:
    before = group.before or {}
    names = group.now.keys() | before.keys()
    return sorted(names, key=lambda n: (-max(group.now.get(n, 0), before.get(n, 0)), n))[:most]


def _bars(panel: "Axes", group: Bars, names: Sequence[str]) -> None:
    places = np.arange(len(names))
    now = [100 * group.now.get(name, 0.0) for name in names]
    both = group.before is not None
    panel.barh(places + (0.14 if both else 0), now, height=0.4 if both else 0.56, color=TRUNK)
    if group.before is not None:
        was = [100 * group.before.get(name, 0.0) for name in names]
        panel.barh(places - 0.24, was, height=0.22, color="#A3A9AE")
    for place, value in zip(places, now, strict=True):
        panel.text(
            value + 1, place + (0.14 if both else 0), f"{value:.1f} %", va="center", size=8.5
        )
    panel.set_yticks(places, [clipped(_spaced(name), 40) for name in names], fontsize=9)
    panel.set(xlim=(0, 112), ylim=(len(names) - 0.4, -0.6))
    panel.set_xticks([])
    panel.tick_params(length=0)
    panel.set_title(clipped(group.title, 70), fontsize=9.5, loc="left")
    for side in ("top", "right", "bottom"):
        panel.spines[side].set_visible(False)
    panel.spines["left"].set_color(EDGE)
