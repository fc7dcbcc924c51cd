"""What injecting or looking up a graph can be expected to change, before anything is trained.

Two counts of an audit tell most of it: how many mentions have a name that training doesn't label
and the graph knows, and how many of the graph's matches are no mention. A plane through the gains
measured on the map and on the published splits (least squares, one point a condition) says what
they are worth; its prediction interval, how far another data set may lie from it. Both are in
``expected.json``, which ``python -m benchmarks.expected`` makes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Self

import numpy as np

from kbert_core.experiments.audit_values import Gain, SplitAudit
from kbert_core.experiments.statistics import LEVEL, Floats

WAYS = ("K-BERT", "dictionary", "gate")  # over a BERT trained alike, as in the paper


@dataclass(frozen=True)
class Plane:
    """gain = bias + weights · features, fitted to P points.

    Attributes:
        weights: (1 + F,), the bias first.
        spread: (1 + F, 1 + F), (XᵀX)⁻¹ of the points.
        deviation: of a point from the plane.
        freedom: P − 1 − F.
    """

    weights: Floats
    spread: Floats
    deviation: float
    freedom: int

    @classmethod
    def fit(cls, features: Floats, gains: Floats) -> Self:
        """Least squares.

        Args:
            features: (P, F).
            gains: (P,).
        """
        design = _design(features)
        spread: Floats = np.linalg.pinv(design.T @ design).astype(np.float64)
        weights: Floats = spread @ design.T @ gains
        freedom = len(gains) - design.shape[1]
        deviation = float((((gains - design @ weights) ** 2).sum() / freedom) ** 0.5)
        return cls(weights, spread, deviation, freedom)

    def at(self, features: Sequence[float]) -> Gain:
        """The gain expected of one data set and graph."""
        from scipy.special import stdtrit  # slow to start

        point = _design(np.array([features]))[0]
        mean = float(point @ self.weights)
        away = self.deviation * float(1 + point @ self.spread @ point) ** 0.5
        half = float(stdtrit(self.freedom, (1 + LEVEL) / 2)) * away
        return Gain(mean, mean - half, mean + half)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        arrays = {n: np.round(getattr(self, n), 6).tolist() for n in ("weights", "spread")}
        return {**arrays, "deviation": round(self.deviation, 6), "freedom": self.freedom}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Back from plain data."""
        weights, spread = np.array(data["weights"]), np.array(data["spread"])
        return cls(weights, spread, float(data["deviation"]), int(data["freedom"]))


def features(split: SplitAudit) -> tuple[float, float] | None:
    """What the gain depends on, per mention: names new and known, matches that are no mention.

    None where a split has no mentions, or nothing is said of training.
    """
    gold, kinds = split.mentions, split.kinds
    if gold is None or kinds is None or gold.unseen is None or not gold.all.known.total:
        return None
    mentions = gold.all.known.total
    return gold.unseen.known.count / mentions, (kinds.exact.total - kinds.exact.count) / mentions


def expected_gains(split: SplitAudit) -> dict[str, Gain]:
    """By way, of a held-out split of named entities; empty for others."""
    point = features(split)
    return {} if point is None else {way: plane.at(point) for way, plane in _planes().items()}


@cache
def _planes() -> dict[str, Plane]:
    path = files("kbert_core.experiments").joinpath("expected.json")
    text = path.read_text(encoding="utf-8") if path.is_file() else '{"planes": {}}'
    return {way: Plane.of(data) for way, data in json.loads(text)["planes"].items()}


def _design(features: Floats) -> Floats:
    return np.column_stack([np.ones(len(features)), features])
