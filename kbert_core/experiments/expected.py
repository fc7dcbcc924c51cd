"""What injecting or looking up a graph can be expected to change, before it is tried.

Two shares tell most of it: mentions whose name training doesn't label and the graph knows, and
matches of the graph that are mentions. Where a BERT trained alike is there, only the new names
that it misses count. A linear fit to the gains measured on the map and on four splits (one point a
data set and graph) says what they are worth; its prediction interval, how far another data set may
lie from it. Both are in ``expected.json``, which ``python -m benchmarks.expected`` makes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, Self

import numpy as np

from kbert_core.experiments.audit_values import Gain, SplitAudit
from kbert_core.experiments.statistics import LEVEL, Floats

WAYS = ("K-BERT", "dictionary", "gate")  # over a BERT trained alike, as in the paper


class Point(NamedTuple):
    """What a gain depends on, of a held-out split."""

    new: float  # share of the mentions: names that train doesn't label and the graph knows
    right: float  # share of the matches that are mentions, border for border


@dataclass(frozen=True)
class Fit:
    """gain = bias + weights · point, fitted to P points of F features.

    Attributes:
        weights: (1 + F,), the bias first.
        spread: (1 + F, 1 + F), (XᵀX)⁻¹ of the points.
        deviation: of a point from the fit.
        freedom: P − 1 − F.
        box: (2, F), the least and the most of each feature among the points.
    """

    weights: Floats
    spread: Floats
    deviation: float
    freedom: int
    box: Floats

    @classmethod
    def of_points(cls, points: Sequence[Point], gains: Sequence[float]) -> Self:
        """Least squares, to the F1 gained over BERT at each point."""
        design, gained = _design(points), np.array(gains)
        spread: Floats = np.linalg.pinv(design.T @ design).astype(np.float64)
        weights: Floats = spread @ design.T @ gained
        freedom = len(gained) - design.shape[1]
        deviation = float((((gained - design @ weights) ** 2).sum() / freedom) ** 0.5)
        box: Floats = np.array([np.min(points, axis=0), np.max(points, axis=0)])
        return cls(weights, spread, deviation, freedom, box)

    def at(self, point: Point) -> Gain:
        """The gain expected of one data set and graph."""
        from scipy.special import stdtrit  # slow to start

        row = _design([point])[0]
        mean = float(row @ self.weights)
        away = self.deviation * float(1 + row @ self.spread @ row) ** 0.5
        half = float(stdtrit(self.freedom, (1 + LEVEL) / 2)) * away
        outside = bool((np.array(point) < self.box[0]).any() or (point > self.box[1]).any())
        return Gain(mean, mean - half, mean + half, outside)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        arrays = {n: np.round(getattr(self, n), 6).tolist() for n in ("weights", "spread", "box")}
        return {**arrays, "deviation": round(self.deviation, 6), "freedom": self.freedom}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Back from plain data."""
        weights, spread, box = (np.array(data[name]) for name in ("weights", "spread", "box"))
        return cls(weights, spread, float(data["deviation"]), int(data["freedom"]), box)


def point_of(split: SplitAudit, found: float = 0.0) -> Point | None:
    """None where a split has no mentions or matches, or nothing is said of training.

    Args:
        found: share of the new names that a model without knowledge finds.
    """
    gold, kinds = split.mentions, split.kinds
    if gold is None or kinds is None or gold.unseen is None or not kinds.exact.total:
        return None
    new = gold.unseen.known.count / gold.all.known.total
    return Point(new * (1 - found), kinds.exact.count / kinds.exact.total)


def expected_gains(split: SplitAudit, found: float | None = None) -> dict[str, Gain]:
    """By way, of a held-out split of named entities; empty for others.

    Args:
        found: as for :func:`point_of`; None: not known.
    """
    point = point_of(split, found or 0.0)
    fits = _fits()["new" if found is None else "missed"]
    return {} if point is None else {way: fit.at(point) for way, fit in fits.items()}


@cache
def _fits() -> dict[str, dict[str, Fit]]:
    text = files("kbert_core.experiments").joinpath("expected.json").read_text(encoding="utf-8")
    kinds = json.loads(text)
    return {kind: {way: Fit.of(data) for way, data in kinds[kind].items()} for kind in kinds}


def _design(points: Sequence[Point]) -> Floats:
    return np.column_stack([np.ones(len(points)), np.array(points)])
