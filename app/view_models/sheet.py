"""A sheet of paper in points, on which texts and boxes are laid out from the top left."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from app.view_models.figures import POINT, Form, picture, saved
from kbert_core.explain.drawing import INK

if TYPE_CHECKING:  # optional, and slow to start
    from matplotlib.figure import Figure

MARGIN = 10.0  # points around all


class Sheet:
    """Draws in points; (0, 0) is the top left. Made by :func:`sheet`.

    Attributes:
        width: there is, in points.
        height: used so far.
    """

    def __init__(self, figure: "Figure", width: float) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        self.width = width
        self.height = 0.0
        figure.set_layout_engine("none")  # all places are ours
        self._figure = figure
        self._axes = figure.add_axes((0, 0, 1, 1))
        self._axes.set_axis_off()
        self._renderer: Any = FigureCanvasAgg(figure).get_renderer()
        self.width_of = lru_cache(4096)(self._width_of)

    def _width_of(self, text: str, size: float, bold: bool = False) -> float:
        from matplotlib.font_manager import FontProperties

        font = FontProperties(size=size, weight="bold" if bold else "normal")
        width = self._renderer.get_text_width_height_descent(text, font, False)[0]
        return float(width) * 72 / self._figure.dpi

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        face: str | tuple[str, float] = "none",
        edge: str = "none",
        *,
        dashed: bool = False,
        line: float = 1.2,
    ) -> None:
        """Draw a box with round corners; a colour may come with how thick it covers, 0 to 1."""
        from matplotlib.patches import FancyBboxPatch

        shape = FancyBboxPatch(
            (x + 2, y + 2),
            width - 4,
            height - 4,
            boxstyle="round,pad=2,rounding_size=3",
            facecolor=face,
            edgecolor=edge,
            linewidth=line if edge != "none" else 0,
            linestyle="--" if dashed else "-",
        )
        self._axes.add_patch(shape)
        self._reach(y + height)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        *,
        colour: str = INK,
        bold: bool = False,
        anchor: str = "center",
    ) -> None:
        """Write a text; its middle, left or right end at x, its middle at y."""
        self._axes.text(
            x,
            y,
            text,
            fontsize=size,
            color=colour,
            fontweight="bold" if bold else "normal",
            ha=anchor,
            va="center_baseline",
        )
        self._reach(y + 0.6 * size)

    def line(self, points: Sequence[tuple[float, float]], colour: str, width: float = 1.2) -> None:
        """Draw a line through points."""
        from matplotlib.lines import Line2D

        xs, ys = zip(*points, strict=True)
        self._axes.add_artist(Line2D(xs, ys, color=colour, linewidth=width, solid_capstyle="butt"))

    def _reach(self, y: float) -> None:
        self.height = max(self.height, y)

    def saved(self, form: Form) -> bytes:
        """Cut the sheet to what is drawn, and return it as a file's bytes."""
        width, height = self.width + 2 * MARGIN, self.height + 2 * MARGIN
        self._figure.set_size_inches(width * POINT, height * POINT)
        self._axes.set(xlim=(-MARGIN, self.width + MARGIN), ylim=(self.height + MARGIN, -MARGIN))
        return saved(self._figure, form)


@contextmanager
def sheet(width: float) -> Iterator[Sheet]:
    """Lay out a new sheet; save it within the block.

    Args:
        width: in points; the height is as needed.
    """
    with picture(width * POINT, 1) as figure:
        yield Sheet(figure, width)
