"""What all results of explanations share: plain data, a table, and how numbers and names are said.

``keys`` of a result says once what is shown of it, as "key=field", or "key"
where both are the same; a field may be a path, as "fact.triple".
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import wraps
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from kbert_core.errors import MissingPackageError
from kbert_core.explain.targets import NO_SPAN, Target
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.triple import Triple
from kbert_core.reader import Fact

if TYPE_CHECKING:  # optional, and slow to start
    from matplotlib.figure import Figure
    from pandas import DataFrame

NO_EFFECT = 1e-5  # nats: what two runs of the same may differ by
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Plain:
    """A dataclass as plain data; ``keys`` "" shows every field."""

    __slots__ = ()
    keys: ClassVar[str] = ""
    rows: ClassVar[str] = ""  # the keys of what a table has rows of

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        data: dict[str, Any] = plain(self, getattr(self, "sentences", ()))
        return data

    def to_frame(self) -> "DataFrame":
        """The rows of :meth:`as_dict` as a table; see :func:`frame`."""
        data = self.as_dict()
        return frame(row for key in self.rows.split() for row in data[key])


@dataclass(frozen=True)
class Result(Plain):
    """A whole result."""

    sentences: tuple[str, ...]
    target: Target  # what of the prediction is followed

    measure: ClassVar[str] = "value"  # of the parts in ``each``

    @property
    def ranked(self) -> tuple[Any, ...]:
        """The parts, the largest first whatever its sign."""
        parts: tuple[Any, ...] = vars(self)["each"]
        return tuple(sorted(parts, key=lambda part: -abs(getattr(part, self.measure))))

    def figure(self) -> "Figure":
        """Draw it, the largest parts on top.

        Raises:
            MissingPackageError: matplotlib isn't installed, or the lab, whose drawings these are.
        """
        return resolve_name("kbert_lab.explain.drawing:figure")(self)


def final(stream: Callable[P, Iterator[R]]) -> Callable[P, R]:
    """Make, of a function that yields growing results, the one that returns the last."""

    @wraps(stream)
    def last(*args: P.args, **kwargs: P.kwargs) -> R:
        return deque(stream(*args, **kwargs), maxlen=1).pop()

    return last


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield items in order, at most ``size`` together."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def plain(value: Any, sentences: Sequence[str] = ()) -> Any:
    """Make plain data of a value; ``sentences``: the text that its mentions are of."""
    match value:
        case Fact():
            return plain(value.triple)
        case Mention():
            place = {"sentence": value.sentence, "start": value.start, "end": value.end}
            return {"text": mention_text(sentences, value), **place}
        case Target():
            span = {} if value.start == NO_SPAN else {"start": value.start, "end": value.end}
            return {"label": value.label, **span}
        case Mapping():
            return {key: plain(one, sentences) for key, one in value.items()}
        case tuple() | list():
            return [plain(one, sentences) for one in value]
        case Enum():
            return str(value)
    if not is_dataclass(value):
        return value
    names = getattr(value, "keys", "") or " ".join(field.name for field in fields(value))
    pairs = (name.partition("=") for name in names.split())
    data = {key: plain(_at(value, path or key), sentences) for key, _, path in pairs}
    drop = isinstance(value, Edit)  # of an edit only what is given
    return {key: one for key, one in data.items() if not drop or one is not None}


def frame(rows: Iterable[Mapping[str, Any]]) -> "DataFrame":
    """Put plain data into a table, ``without: {score: …}`` as ``without_score``.

    Raises:
        MissingPackageError: pandas isn't installed.
    """
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise MissingPackageError(
            "Tables need pandas, which isn't installed. `pip install pandas`."
        ) from error
    return DataFrame([dict(_flat(row)) for row in rows])


def _flat(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from _flat(value, before if key == "triple" else f"{before}{key}_")
        else:
            yield before + key, value


def _at(value: Any, path: str) -> Any:
    """What a path leads to; None where a part of it is None."""
    for name in path.split("."):
        if value is not None:
            value = value[int(name)] if name.isdecimal() else getattr(value, name)
    return value


def name_of(triple: Triple) -> str:
    """A triple in a line."""
    return f"{triple.head} · {triple.relation} · {triple.tail}"


def mention_text(sentences: Sequence[str], mention: Mention) -> str:
    """What a mention reads in its text."""
    return sentences[mention.sentence][mention.start : mention.end]


def nats(value: float) -> str:
    """A number of nats with its sign, as many digits as tell it from another: +1.25, −0.0031.

    What is under 0.00001 is the rounding of single precision, and said as 0.
    """
    if abs(value) < NO_EFFECT:
        return "0"
    digits = max(0, min(5, 1 - math.floor(math.log10(abs(value)))))
    return f"{value:+.{digits}f}".replace("-", "−")
