"""The figures of explanations: bars to both sides of zero."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kbert_core.drawing import BLUE, GREY, INK, ORANGE, drawing, legend_below, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BARS = 40
LONGEST_NAME = 36  # characters
NOTHING = 1e-5  # nats: what two runs of the same may differ by
RAISES, LOWERS = "raises the score", "lowers the score"


def clipped(name: str, most: int = LONGEST_NAME) -> str:
    """A name short enough to stand beside a bar."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def nats(value: float) -> str:
    """A number of nats with its sign, as many digits as tell it from another: +1.25, −0.0031.

    What is under 0.00001 is the rounding of single precision, and said as 0.
    """
    if abs(value) < NOTHING:
        return "0"
    digits = max(0, min(5, 1 - math.floor(math.log10(abs(value)))))
    return f"{value:+.{digits}f}".replace("-", "−")


def signed_bars(
    names: Sequence[str],
    values: Sequence[float],
    *,
    axis: str,
    title: str,
    intervals: Sequence[tuple[float, float]] | None = None,
    marks: Sequence[float | None] | None = None,
    mark_name: str = "",
    colours: dict[str, str] | None = None,
) -> "Figure":
    """Draw a bar a name, to the right where its value is positive.

    Args:
        names, values: in order, the first on top; at most ``MOST_BARS`` are drawn.
        axis, title: what the values are, and of what.
        intervals: a line from low to high on each bar.
        marks: another value, drawn as a diamond.
        mark_name: what the diamonds are.
        colours: what the two colours mean, positive first.

    Raises:
        MissingPackageError: matplotlib isn't installed.
    """
    meaning = colours or {RAISES: BLUE, LOWERS: ORANGE}
    right, left = meaning.values()
    shown = min(len(names), MOST_BARS)
    places = range(shown)
    with drawing(8.4, 1.5 + 0.36 * max(1, shown)) as figure:
        panel = figure.subplots()
        bars = values[:shown]
        panel.barh(places, bars, height=0.62, color=[right if v >= 0 else left for v in bars])
        ends = [[value] for value in bars]
        if intervals is not None:
            for place, (low, high) in zip(places, intervals, strict=False):
                panel.plot([low, high], [place, place], color=INK, linewidth=1.4)
                ends[place] += [low, high]
        if marks is not None:
            drawn = [(m, place) for place, m in zip(places, marks, strict=False) if m is not None]
            panel.plot(
                *zip(*drawn, strict=True) if drawn else ((), ()),
                "D",
                markersize=5,
                color="white",
                markeredgecolor=INK,
                label=mark_name,
            )
            panel.legend(loc="lower right", frameon=False, fontsize=9)
            for mark, place in drawn:
                ends[place].append(mark)
        for place, value in zip(places, bars, strict=True):
            end = max([*ends[place], 0.0]) if value >= 0 else min([*ends[place], 0.0])
            panel.annotate(
                nats(value),
                (end, place),
                xytext=(5 if value >= 0 else -5, 0),
                textcoords="offset points",
                va="center",
                ha="left" if value >= 0 else "right",
                fontsize=9,
            )
        panel.axvline(0, color=GREY, linewidth=1)
        panel.margins(x=0.16)
        panel.set_yticks(places, [clipped(name, 2 * LONGEST_NAME) for name in names[:shown]])
        panel.invert_yaxis()
        panel.set_xlabel(axis)
        more = f" ({shown} of {len(names)} shown)" if shown < len(names) else ""
        figure.suptitle(title + more, fontsize=10)
        tidy(panel, "x")
        if shown:
            legend_below(figure, meaning)
    return figure
