"""How pictures look, in reports and explanations: colours, fonts, axes.

Colours are Okabe and Ito's, told apart by the colour-blind too. Figures are
made without pyplot, so that nothing is kept and no window opens.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

from kbert_core.errors import MissingPackageError

if TYPE_CHECKING:  # optional, and slow to start
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY, BLUE, ORANGE, GREEN, PURPLE = "#777777", "#0072B2", "#E69F00", "#009E73", "#CC79A7"
INK, FAINT, EDGE = "#222222", "#DDDDDD", "#999999"
FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC")
_style = RLock()  # matplotlib has one style for all threads


@contextmanager
def drawing(width: float, height: float) -> "Iterator[Figure]":
    """Make a figure in our style; draw on it, and save it, inside the block.

    Args:
        width, height: in inches.

    Raises:
        MissingPackageError: matplotlib isn't installed.
    """
    try:
        from matplotlib import font_manager, rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackageError(
            "Pictures need matplotlib, which isn't installed. `pip install matplotlib`."
        ) from error
    known = set(font_manager.get_font_names())
    style: Any = {
        "font.family": [font for font in FONTS if font in known],
        "font.size": 10,
        "figure.facecolor": "white",
        "axes.facecolor": "white",
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": EDGE,
        "text.parse_math": False,  # a $ in a name is a $
    }
    with _style, rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.draw_without_rendering()  # ticks take the style of when they are made


def tidy(panel: Any, axis: str) -> None:
    """Take away what carries nothing: borders, tick marks; a faint grid along one axis."""
    panel.grid(axis=axis, color=FAINT, linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(length=0, colors=INK)
    for side in ("top", "right", *(["left"] if axis == "x" else [])):
        panel.spines[side].set_visible(False)


def legend_below(figure: "Figure", colours: Mapping[str, str]) -> None:
    """Say under a figure what its colours mean."""
    from matplotlib.patches import Patch

    handles = [Patch(color=colour) for colour in colours.values()]
    figure.legend(
        handles, list(colours), loc="outside lower center", ncols=len(colours), frameon=False
    )


def names_beside(
    figure: "Figure", panel: "Axes", places: Sequence[tuple[float, float]], names: Sequence[str]
) -> None:
    """Write names beside points so that none covers another.

    Args:
        figure: the panel's.
        panel: with all else drawn and its limits as they shall be.
        places: of the points, in the panel's units.
        names: of each.

    Raises:
        MissingPackageError: adjustText isn't installed.
    """
    try:
        from adjustText import adjust_text
    except ImportError as error:
        raise MissingPackageError(
            "Names in pictures need adjustText, which isn't installed. `pip install adjustText`."
        ) from error
    figure.draw_without_rendering()  # where all is, once laid out
    texts = [
        panel.text(x, y, name, fontsize=8, color=INK)
        for (x, y), name in zip(places, names, strict=True)
    ]
    across, up = zip(*places, strict=True)
    adjust_text(
        texts,
        x=across,
        y=up,
        ax=panel,
        expand=(1.15, 1.6),
        arrowprops={"arrowstyle": "-", "color": GREY, "lw": 0.7},
    )
