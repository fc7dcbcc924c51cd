"""What injecting or looking up a graph can be expected to change, before it is tried.

Two counts tell most of it: names that training doesn't label, a dictionary of the graph gets right
and a BERT misses; and names that the dictionary gets wrong. What each is worth is fitted to the
gains measured on the map and on five splits (one point a data set and graph), through the origin: a
graph that names nothing changes nothing. A prediction interval says how far another data set may
lie from it, as far as a group of points lies from a fit to the others: the map's conditions share
records and trainings, and are one group. The fits are in ``expected.json``, which ``python -m
benchmarks.expected`` makes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, Self

import numpy as np

from kbert_lab.study.audit_values import Gain, Share, SplitAudit
from kbert_lab.study.statistics import LEVEL, Floats

# What the gain of each way over a BERT trained alike, as in the paper, depends on: of ``Point``.
WAYS = {"K-BERT": ("new",), "dictionary": ("new", "wrong"), "gate": ("new",)}
Found = tuple[float, float, float]  # share of the new names that BERT finds: least, middle, most


class Point(NamedTuple):
    """What a gain depends on, of a held-out split, as shares of its mentions."""

    new: float  # not labelled in train, right in the dictionary, missed by BERT
    wrong: float  # in the dictionary: over a mention; of no mention, which costs half as much


@dataclass(frozen=True)
class Fit:
    """gain = weights · what a way depends on, fitted to P points of F features.

    Attributes:
        uses: the F features, fields of ``Point``.
        weights: (F,).
        spread: (F, F), (XᵀX)⁻¹ of the points.
        deviation: of a group of points from a fit to the others, where these say all they can.
        freedom: groups − F.
        box: (2, F), the least and the most of each feature among the points.
    """

    uses: tuple[str, ...]
    weights: Floats
    spread: Floats
    deviation: float
    freedom: int
    box: Floats

    @classmethod
    def of_points(
        cls,
        points: Sequence[Point],
        gains: Sequence[float],
        groups: Sequence[str],
        uses: Sequence[str] = Point._fields,
    ) -> Self:
        """Least squares, to the F1 gained over BERT at each point.

        Args:
            groups: which points share data and trainings, so that they aren't independent.
        """
        design, gained = np.array([_used(point, uses) for point in points]), np.array(gains)
        spread, weights = _least_squares(design, gained)
        errors = []
        for group in sorted({*groups}):
            own = np.array([name == group for name in groups])
            of_rest, without = _least_squares(design[~own], gained[~own])
            unsure = 1 + np.einsum("pf,fg,pg->p", design[own], of_rest, design[own])
            errors.append(np.mean((gained[own] - design[own] @ without) ** 2 / unsure))
        box: Floats = np.array([design.min(0), design.max(0)])
        freedom = len(errors) - len(weights)
        return cls(tuple(uses), weights, spread, float(np.mean(errors)) ** 0.5, freedom, box)

    def at(self, point: Point) -> Gain:
        """The gain expected of one data set and graph."""
        from scipy.special import stdtrit  # slow to start

        row = _used(point, self.uses)
        mean = float(row @ self.weights)
        away = self.deviation * float(1 + row @ self.spread @ row) ** 0.5
        half = float(stdtrit(self.freedom, (1 + LEVEL) / 2)) * away
        outside = bool((row > self.box[1]).any())  # below it the fit goes to the origin
        mean, low, high = np.clip((mean, mean - half, mean + half), -1, 1).tolist()  # as F1 can
        return Gain(mean, low, high, outside)

    def among(self, new: float, wrong: float, found: Found) -> Gain:
        """The gain expected where BERT finds a share of the new names; see :func:`found_by_bert`.

        Args:
            new, wrong: as of a point, but names that BERT finds are among the new ones.
            found: the interval holds those of the least and the most.
        """
        least, mean, most = (self.at(Point(new * (1 - share), wrong)) for share in found)
        ends = (least.low, most.low, least.high, most.high)
        return Gain(mean.mean, min(ends), max(ends), mean.outside)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        arrays = {n: np.round(getattr(self, n), 6).tolist() for n in ("weights", "spread", "box")}
        told = {"deviation": round(self.deviation, 6), "freedom": self.freedom}
        return {"uses": [*self.uses], **arrays, **told}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Back from plain data."""
        weights, spread, box = (np.array(data[name]) for name in ("weights", "spread", "box"))
        deviation, freedom = float(data["deviation"]), int(data["freedom"])
        return cls(tuple(data["uses"]), weights, spread, deviation, freedom, box)


def point_of(split: SplitAudit) -> Point | None:
    """What the dictionary gets right of the new names, found by BERT or not, and what wrong.

    None where a split has no mentions or matches, or is the training set.
    """
    scores, kinds = split.dictionary, split.kinds
    if scores is None or kinds is None or not kinds.exact.total or not scores["gold"]:
        return None
    wrong = scores["over_mentions"] + scores["outside"] / 2
    return Point(scores["unseen"]["right"] / scores["gold"], wrong / scores["gold"])


def found_by_bert(linear: Share, ahead: Sequence[float] | None = None) -> Found:
    """The share of the new names that a BERT like ours finds, judged by a linear tagger's.

    In logits BERT is ahead by about as much on all data sets. The interval is a prediction's for
    one more of them, in which the linear tagger was asked for so many names.

    Args:
        linear: from :func:`~kbert_lab.study.linear.linear_recall`.
        ahead: by how much on other data sets; None: on all that were measured.
    """
    from scipy.special import expit, stdtrit  # slow to start

    many = np.array(_fitted()["ahead"] if ahead is None else ahead)
    of_names = 1 / (linear.count + 0.5) + 1 / (linear.total - linear.count + 0.5)
    unsure = (many.var(ddof=1) * (1 + 1 / len(many)) + of_names) ** 0.5
    away = float(stdtrit(len(many) - 1, (1 + LEVEL) / 2)) * unsure
    at = np.log(linear.odds) + many.mean()
    least, middle, most = (float(expit(at + by)) for by in (-away, 0, away))
    return least, middle, most


def expected_gains(point: Point, found: Found) -> dict[str, Gain]:
    """By way, of a held-out split's :func:`point_of`.

    Args:
        found: as for :meth:`Fit.among`.
    """
    return {way: Fit.of(fit).among(*point, found) for way, fit in _fitted()["ways"].items()}


@cache
def _fitted() -> dict[str, Any]:
    text = files("kbert_lab.study").joinpath("expected.json").read_text(encoding="utf-8")
    fitted: dict[str, Any] = json.loads(text)
    return fitted


def _least_squares(design: Floats, gained: Floats) -> tuple[Floats, Floats]:
    """(XᵀX)⁻¹ and the weights."""
    spread: Floats = np.linalg.pinv(design.T @ design).astype(np.float64)
    return spread, spread @ design.T @ gained


def _used(point: Point, uses: Sequence[str]) -> Floats:
    return np.array([getattr(point, name) for name in uses])
