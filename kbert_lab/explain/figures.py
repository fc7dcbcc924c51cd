"""How the core's explanations are drawn: a bar a part, the largest on top."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from kbert_core.explain.attributions import Attributions
from kbert_core.explain.effects import Effects, Interactions, Shapley
from kbert_core.explain.result import Result, name_of, nats
from kbert_lab.explain.drawing import BLUE, ORANGE, Figure, clipped, nats_bars


@singledispatch
def figure(result: Any) -> Figure:
    """Draw a result of an explanation."""
    raise TypeError(f"nothing draws {result!r}")


@figure.register
def _(result: Effects) -> Figure:
    """Diamonds show deletion instead."""
    title = f"Left out one by one; all together {nats(result.whole)}"
    marks = {"marks": [effect.deleted_effect for effect in result.ranked]}
    return _bars(
        result, result.name, "effect on", title, **marks, mark_name="deleted from the graph"
    )


@figure.register
def _(result: Interactions) -> Figure:
    return _bars(
        result,
        lambda pair: " & ".join(clipped(name_of(p.triple), 24) for p in pair.pieces),
        "interaction on",
        "What two triples do beyond the sum",
        colours={"together above the sum": BLUE, "together below the sum": ORANGE},
    )


@figure.register
def _(result: Shapley) -> Figure:
    """With the interval of each share."""
    how = "exact, all subsets" if result.exact else f"{result.orders} orders, line 95 %"
    lines = [(s.value, s.value) if s.low is None else (s.low, s.high) for s in result.ranked]
    return _bars(
        result,
        lambda share: name_of(share.piece.triple),
        "share of the effect on",
        f"Shapley values ({how}); sum {nats(result.whole)}",
        intervals=None if result.exact else lines,
    )


@figure.register
def _(result: Attributions) -> Figure:
    title = f"From all masked to the text: {nats(result.score - result.masked)}"
    return _bars(result, result.name, "share of", title)


def _bars(result: Result, name: Callable[[Any], str], axis: str, title: str, **how: Any) -> Figure:
    values = [getattr(part, result.measure) for part in result.ranked]
    axis = f"{axis} {result.target}, nats"
    return nats_bars([*map(name, result.ranked)], values, axis=axis, title=title, **how)
