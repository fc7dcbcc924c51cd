"""How explanations and reports look: colours, fonts, axes, bars, and the table of links.

Colours are Okabe and Ito's, told apart by the colour-blind too. Figures are
made without pyplot, so that nothing is kept and no window opens.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from kbert_core.errors import MissingPackageError
from kbert_core.explain.result import name_of, nats

if TYPE_CHECKING:  # optional, and slow to start
    from matplotlib.figure import Figure
else:
    Figure = Any

GREY, BLUE, ORANGE, GREEN, PURPLE = "#777777", "#0072B2", "#E69F00", "#009E73", "#CC79A7"
INK, FAINT, EDGE = "#222222", "#DDDDDD", "#999999"
FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC")
MOST_BARS = 40
LONGEST_NAME = 36  # characters
SIGNS = {"raises the score": BLUE, "lowers the score": ORANGE}
DIAMOND: Any = {"marker": "D", "linestyle": "", "markersize": 5, "color": "white"}
_style = RLock()  # matplotlib has one style for all threads


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
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


def legend_below(figure: Figure, colours: Mapping[str, str]) -> None:
    """Say under a figure what its colours mean."""
    from matplotlib.patches import Patch

    handles = [Patch(color=colour) for colour in colours.values()]
    figure.legend(
        handles, list(colours), loc="outside lower center", ncols=len(colours), frameon=False
    )


def signed_bars(
    names: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    axis: str,
    title: str,
    number: Callable[[float], str],
    colours: Mapping[str, str],
    intervals: Sequence[tuple[float, float]] | None = None,
    marks: Sequence[float | None] | None = None,
    mark_name: str = "",
) -> Figure:
    """Draw bars beside names, to the right where a value is positive.

    Args:
        names, values: in order, the first on top; at most ``MOST_BARS`` are drawn.
        axis, title: what the values are, and of what.
        number: writes a value at the end of its bar, or where it begins if there are marks.
        colours: what the two colours mean, positive first.
        intervals: a line from low to high on each bar.
        marks: another value of each name, drawn as a diamond.
        mark_name: what the diamonds are.

    Raises:
        MissingPackageError: matplotlib isn't installed.
    """
    shown, (positive, negative) = min(len(names), MOST_BARS), colours.values()
    with drawing(8.4, 1.5 + 0.36 * max(1, shown)) as figure:
        panel = figure.subplots()
        for place, own in enumerate(values[:shown]):
            lines = list(intervals[place]) if intervals else []
            panel.plot(lines, [place] * len(lines), color=INK, linewidth=1.4)
            if marks and (mark := marks[place]) is not None:
                panel.plot(mark, place, **DIAMOND, markeredgecolor=INK)
            for value in own:
                panel.barh(place, value, height=0.62, color=positive if value >= 0 else negative)
                right = value >= 0
                end = max(0.0, value, *lines) if right else min(0.0, value, *lines)
                if marks:  # on the other side of 0: a number beside a diamond would seem to be its
                    right, end = not right, 0.0
                where: Any = {"xytext": (5 if right else -5, 0), "textcoords": "offset points"}
                where |= {"ha": "left" if right else "right", "va": "center", "fontsize": 9}
                panel.annotate(number(value), (end, place), **where)
        if marks and any(mark is not None for mark in marks):
            panel.plot([], [], label=mark_name, **DIAMOND, markeredgecolor=INK)
            panel.legend(loc="lower right", frameon=False, fontsize=9)
        panel.axvline(0, color=GREY, linewidth=1)
        panel.margins(x=0.16)
        panel.set_yticks(range(shown), names[:shown])
        panel.invert_yaxis()
        panel.set_xlabel(axis)
        more = f" ({shown} of {len(names)} shown)" if shown < len(names) else ""
        figure.suptitle(title + more, fontsize=10)
        tidy(panel, "x")
        if shown:
            legend_below(figure, colours)
    return figure


def clipped(name: str, most: int = LONGEST_NAME) -> str:
    """A name short enough to stand beside a bar."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def nats_bars(
    names: Sequence[str], values: Sequence[float], *, colours: Mapping[str, str] = SIGNS, **how: Any
) -> Figure:
    """Draw a bar a name for numbers of nats; the rest as for :func:`signed_bars`."""
    names = [clipped(name, 2 * LONGEST_NAME) for name in names]
    return signed_bars(names, [[value] for value in values], number=nats, colours=colours, **how)


def names_beside(
    figure: Figure, panel: Any, places: Sequence[tuple[float, float]], names: Sequence[str]
) -> None:
    """Write names beside points so that none covers another; the last thing drawn.

    Args:
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
    pairs = zip(places, names, strict=True)
    texts = [panel.text(x, y, name, fontsize=8, color=INK) for (x, y), name in pairs]
    across, up = zip(*places, strict=True)
    arrow = {"arrowstyle": "-", "color": GREY, "lw": 0.7}
    adjust_text(texts, x=across, y=up, ax=panel, expand=(1.15, 1.6), arrowprops=arrow)


# The core's explanations: a bar a part, the largest on top


def figure(result: Any) -> Figure:
    """Draw a result of an explanation; see the classes of the results."""
    from kbert_core.explain.effects import Effects, Interactions, Shapley  # these need PyTorch

    parts = result.ranked
    more: dict[str, Any] = {}
    match result:
        case Effects():  # diamonds show deletion instead
            axis, title = "effect on", f"Left out one by one; all together {nats(result.whole)}"
            names = [result.name(effect) for effect in parts]
            more["marks"] = [effect.deleted_effect for effect in parts]
            more["mark_name"] = "deleted from the graph"
        case Interactions():
            axis, title = "interaction on", "What two triples do beyond the sum"
            pairs = ([clipped(name_of(p.triple), 24) for p in pair.facts] for pair in parts)
            names = [" & ".join(pair) for pair in pairs]
            more["colours"] = {"together above the sum": BLUE, "together below the sum": ORANGE}
        case Shapley():  # with the interval of each share
            how = "exact, all subsets" if result.exact else f"{result.orders} orders, line 95 %"
            axis = "share of the effect on"
            title = f"Shapley values ({how}); sum {nats(result.whole)}"
            names = [name_of(share.fact.triple) for share in parts]
            ends = [(s.value, s.value) if s.low is None else (s.low, s.high) for s in parts]
            more["intervals"] = None if result.exact else ends
        case _:
            axis = "share of"
            title = f"From all masked to the text: {nats(result.score - result.masked)}"
            names = [result.name(share) for share in parts]
    values = [getattr(part, result.measure) for part in parts]
    return nats_bars(names, values, axis=f"{axis} {result.target}, nats", title=title, **more)


# A trace of KnowBert: the spans of a text, what each may mean, and what the linker made of it

SHOWN = 5  # candidates of a span
HEADS = {
    "entity": "entity",
    "prior": "prior",
    "dot": "dot product",
    "score": "ψ",
    "weight": "weight",
    "says": "what it says",
    "more": "and {count} more",
    "base": "knowledge base {number}",
    "none": "No name of the graph stands in the text.",
}


def linked_html(
    links: Sequence[Any],
    sentences: Sequence[str],
    *,
    most: int | None = SHOWN,
    words: Mapping[str, str] = HEADS,
) -> str:
    """A table of spans and their candidates, the best first, escaped.

    Args:
        links: of a trace, see ``KnowBertTrace.links``.
        sentences: the text.
        most: candidates of a span; None: all.
        words: as ``HEADS``, in another language.
    """
    from jinja2 import Environment, FileSystemLoader

    from kbert_core.knowbert.kar import NULL  # needs PyTorch

    beside = FileSystemLoader(Path(__file__).parent)
    pages = Environment(loader=beside, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    several = len({own.span.base for own in links}) > 1
    shown = {"sentences": sentences, "most": most, "several": several, "null": NULL}
    text = pages.get_template("links.html.jinja").render(links=links, words=words, **shown)
    return text.replace("\n", "")
