"""What all results of explanations share: plain data, rows and bars, and how they are asked for."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from kbert_core.drawing import BLUE, GREY, INK, ORANGE, drawing, legend_below, tidy
from kbert_core.errors import MissingPackageError
from kbert_core.explain.target import NO_SPAN, Target
from kbert_core.explain.variants import Case, Outcome, Piece, case_of
from kbert_core.knowledge.graph import Edit
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.triple import Triple
from kbert_core.pipeline import Pipeline

if TYPE_CHECKING:  # optional, and slow to start
    from matplotlib.figure import Figure
    from pandas import DataFrame

MOST_BARS = 40
LONGEST_NAME = 36  # characters
NO_EFFECT = 1e-5  # nats: what two runs of the same may differ by
RAISES, LOWERS = "raises the score", "lowers the score"
R = TypeVar("R")
T = TypeVar("T")


# How they are asked for


def of_text(explain: Callable[..., R], **defaults: Any) -> Callable[..., R]:
    """Let a function of a case take a model and a text as well.

    Args:
        explain: takes a case, and keywords.
        defaults: of the reading, where a model is given.

    Returns:
        A function of a case; or of a model and the text, with the arguments
        of :meth:`Case.of` (graph, target, …) beside those of ``explain``.
    """
    known = set(signature(explain).parameters)

    @wraps(explain)
    def run(case: Case | Pipeline, *sentences: str, **options: Any) -> R:
        asked = {name: options.pop(name) for name in known & set(options)}
        reading = {**defaults, **options} if isinstance(case, Pipeline) else options
        return explain(case_of(case, sentences, **reading), **asked)

    run.__name__ = run.__qualname__ = explain.__name__.removeprefix("stream_")
    return run


def final(stream: Callable[..., Iterator[R]], **defaults: Any) -> Callable[..., R]:
    """Make the function that runs a stream of growing results and returns the last; see above."""

    @wraps(stream)
    def last(case: Case, **options: Any) -> R:
        return deque(stream(case, **options), maxlen=1).pop()

    return of_text(last, **defaults)


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield items in order, at most ``size`` together."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


# Plain data and rows


class Plain:
    """A dataclass as plain data, from the names of its fields.

    ``keys`` says what is shown, as "key=field", or "key" where both are the
    same, with spaces between. A field may be a path, "piece.triple.head" or
    "pieces.0"; it is None where a part of it is None.
    """

    __slots__ = ()
    keys: ClassVar[str] = ""  # "": every field

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        data: dict[str, Any] = plain(self, getattr(self, "sentences", ()))
        return data


class Result(Plain):
    """A whole result: plain data, and a table.

    ``rows`` is the field that the table has a row of; ``columns`` says what of
    each is shown, as ``keys`` does. A triple becomes three columns:
    "triple_1=pieces.0.triple" head_1, relation_1 and tail_1.
    """

    __slots__ = ()
    rows: ClassVar[str] = "each"
    columns: ClassVar[str] = ""

    def to_frame(self) -> "DataFrame":
        """The rows as a table.

        Raises:
            MissingPackageError: pandas isn't installed.
        """
        columns = dict(_columns(self.columns))
        sentences = getattr(self, "sentences", ())
        cells = (
            {name: plain(_at(row, path), sentences) for name, path in columns.items()}
            for row in getattr(self, self.rows)
        )
        return frame(cells, tuple(columns))


def plain(value: Any, sentences: Sequence[str] = ()) -> Any:
    """Make plain data of a value.

    Args:
        value: a result or a part of one.
        sentences: the text that mentions are of.
    """
    match value:
        case Plain():
            names = value.keys or " ".join(f.name for f in fields(value))  # type: ignore[arg-type]
            return {name: plain(_at(value, path), sentences) for name, path in _pairs(names)}
        case Triple():
            return {"head": value.head, "relation": value.relation, "tail": value.tail}
        case Piece():
            return plain(value.triple)
        case Mention():
            place = {"sentence": value.sentence, "start": value.start, "end": value.end}
            return {"text": mention_text(sentences, value), **place}
        case Target() if value.start == NO_SPAN:
            return {"label": value.label}
        case Target():
            return {"label": value.label, "start": value.start, "end": value.end}
        case Outcome():
            return {"score": value.score, "answer": value.answer}
        case Edit():
            said = {"action": value.action, "triple": value.triple}
            more = {"new": value.new, "index": value.index}
            return plain({**said, **{k: v for k, v in more.items() if v is not None}})
        case Mapping():
            return {key: plain(one, sentences) for key, one in value.items()}
        case tuple() | list():
            return [plain(one, sentences) for one in value]
        case Enum():
            return str(value)
    return value


def _pairs(names: str) -> Iterator[tuple[str, str]]:
    """Each name with its path."""
    for item in names.split():
        name, _, path = item.partition("=")
        yield name, path or name


def _columns(names: str) -> Iterator[tuple[str, str]]:
    """The same with "triple_1=pieces.0.triple" as head_1, relation_1 and tail_1."""
    for name, path in _pairs(names):
        if name.startswith("triple"):
            for field in ("head", "relation", "tail"):
                yield name.replace("triple", field), f"{path}.{field}"
        else:
            yield name, path


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        if value is not None:
            value = value[int(name)] if name.isdecimal() else getattr(value, name)
    return value


def frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> "DataFrame":
    """Put rows into a table.

    Raises:
        MissingPackageError: pandas isn't installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingPackageError(
            "Tables need pandas, which isn't installed. `pip install pandas`."
        ) from error
    return pandas.DataFrame(list(rows), columns=list(columns))


# Names, numbers and bars


def name_of(triple: Triple) -> str:
    """A triple in a line."""
    return f"{triple.head} · {triple.relation} · {triple.tail}"


def mention_text(sentences: Sequence[str], mention: Mention) -> str:
    """What a mention reads in its text."""
    return sentences[mention.sentence][mention.start : mention.end]


def clipped(name: str, most: int = LONGEST_NAME) -> str:
    """A name short enough to stand beside a bar."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def nats(value: float) -> str:
    """A number of nats with its sign, as many digits as tell it from another: +1.25, −0.0031.

    What is under 0.00001 is the rounding of single precision, and said as 0.
    """
    if abs(value) < NO_EFFECT:
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
    diamond: Any = {"markersize": 5, "color": "white", "markeredgecolor": INK}
    with drawing(8.4, 1.5 + 0.36 * max(1, shown)) as figure:
        panel = figure.subplots()
        for place, value in enumerate(values[:shown]):
            panel.barh(place, value, height=0.62, color=right if value >= 0 else left)
            there = [0.0, value]
            if intervals is not None:
                panel.plot(intervals[place], [place, place], color=INK, linewidth=1.4)
                there += intervals[place]
            if marks is not None and (mark := marks[place]) is not None:
                panel.plot(mark, place, "D", **diamond)
                there.append(mark)
            panel.annotate(
                nats(value),
                (max(there) if value >= 0 else min(there), place),
                xytext=(5 if value >= 0 else -5, 0),
                textcoords="offset points",
                va="center",
                ha="left" if value >= 0 else "right",
                fontsize=9,
            )
        if marks is not None:
            panel.plot([], [], "D", label=mark_name, **diamond)
            panel.legend(loc="lower right", frameon=False, fontsize=9)
        panel.axvline(0, color=GREY, linewidth=1)
        panel.margins(x=0.16)
        panel.set_yticks(range(shown), [clipped(name, 2 * LONGEST_NAME) for name in names[:shown]])
        panel.invert_yaxis()
        panel.set_xlabel(axis)
        more = f" ({shown} of {len(names)} shown)" if shown < len(names) else ""
        figure.suptitle(title + more, fontsize=10)
        tidy(panel, "x")
        if shown:
            legend_below(figure, meaning)
    return figure
