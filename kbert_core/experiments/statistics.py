"""How sure a difference between two rows is.

Every score here is a ratio of sums over sentences (F1 = 2 right / (predicted
+ gold), recall = right / gold, accuracy = right / count), so a resample of the
sentences gives the score anew from their counts. Sentences are resampled with
all that they are in: the same weights for every row and every seed, so that a
difference is paired, and a sentence that several seeds' test sets share isn't
taken for several. See docs/decisions/statistics.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbert_core.errors import ExperimentError

Floats = NDArray[np.float64]
RESAMPLES = 10_000
CHUNK = 500  # resamples in memory at a time
ENOUGH_SEEDS = 3
LEVEL = 0.95


@dataclass(frozen=True)
class Metric:
    """A ratio of sums over sentences.

    Attributes:
        name: shown.
        above, below: columns added up, each with its factor.
    """

    name: str
    above: Mapping[str, float]
    below: Mapping[str, float]


METRICS: dict[str, tuple[Metric, ...]] = {  # by task, the main one first
    "ner": (
        Metric("F1", {"right": 2}, {"predicted": 1, "gold": 1}),
        Metric("recall, unseen", {"unseen_right": 1}, {"unseen": 1}),
        Metric("recall, unseen covered", {"covered_right": 1}, {"covered": 1}),
        Metric(
            "recall, unseen uncovered",
            {"unseen_right": 1, "covered_right": -1},
            {"unseen": 1, "covered": -1},
        ),
    ),
    "classify": (Metric("accuracy", {"right": 1}, {"count": 1}),),
    "pair": (
        Metric("accuracy", {"right": 1}, {"count": 1}),
        Metric("F1", {"positive_right": 2}, {"positive": 1, "positive_predicted": 1}),
    ),
    "rank": (
        Metric("MRR", {"reciprocal": 1}, {"count": 1}),
        Metric("P@1", {"first": 1}, {"count": 1}),
    ),
}


@dataclass(frozen=True)
class Counts:
    """What one row did on one seed's test set.

    Attributes:
        ids: of the S sentences.
        columns: by name, S numbers each.
        data: hash of the seed's split; rows are paired on the same alone.
    """

    ids: Sequence[str]
    columns: Mapping[str, Sequence[float]]
    data: str = ""


@dataclass(frozen=True)
class Score:
    """A row's score.

    Attributes:
        mean: over the seeds.
        deviation: over the seeds (n - 1); None for one seed.
        seeds: the score of every seed.
        low, high: 95 % of the resamples of its sentences.
    """

    mean: float
    deviation: float | None
    seeds: Mapping[int, float]
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """One row minus another, on the seeds that both have.

    Attributes:
        mean: of the paired differences over the seeds.
        deviation: of these differences over the seeds; None for one seed.
        low, high: 95 % of the resamples.
        p: two-sided, for no difference.
        seeds: how many are paired.
        adjusted: p by Holm's correction; None outside the family.
    """

    mean: float
    deviation: float | None
    low: float
    high: float
    p: float
    seeds: int
    adjusted: float | None = None

    @property
    def exploratory(self) -> bool:
        """Whether it only suggests: outside the family, or too few seeds."""
        return self.adjusted is None or self.seeds < ENOUGH_SEEDS


class Resampled:
    """The scores of all rows of a suite under the same resamples.

    Args:
        counts: by row and seed.
        resamples: how many.
        seed: of the resampling.
    """

    def __init__(
        self,
        counts: Mapping[str, Mapping[int, Counts]],
        *,
        resamples: int = RESAMPLES,
        seed: int = 0,
    ) -> None:
        self.counts = {row: dict(of_seed) for row, of_seed in counts.items()}
        self.resamples, self.seed = resamples, seed
        self._cells = [(row, s, c) for row, of in self.counts.items() for s, c in of.items()]

    def score(self, row: str, metric: Metric) -> Score | None:
        """A row's score; None where it has none (no seed, or nothing to count)."""
        drawn = self._drawn(row, metric)
        if not drawn:
            return None
        seeds = {seed: values[0] for seed, values in drawn.items()}
        resampled = np.mean([values[1:] for values in drawn.values()], axis=0)
        low, high = _interval(resampled)
        exact = list(seeds.values())
        return Score(float(np.mean(exact)), _deviation(exact), seeds, low, high)

    def difference(self, row: str, other: str, metric: Metric) -> Difference | None:
        """``row`` minus ``other``; None where no seed has both.

        Raises:
            ExperimentError: they were tested on different data.
        """
        one, two = self._drawn(row, metric), self._drawn(other, metric)
        shared = sorted(set(one) & set(two))
        if not shared:
            return None
        for seed in shared:
            here, there = self.counts[row][seed], self.counts[other][seed]
            if here.data != there.data or list(here.ids) != list(there.ids):
                raise ExperimentError(
                    f"'{row}' and '{other}' were tested on different data at seed {seed}. "
                    "Run what is stale again."
                )
        differences = np.array([one[seed] - two[seed] for seed in shared])
        exact, resampled = differences[:, 0], differences[:, 1:].mean(axis=0)
        low, high = _interval(resampled)
        return Difference(
            float(exact.mean()), _deviation(exact), low, high, _two_sided(resampled), len(shared)
        )

    def _drawn(self, row: str, metric: Metric) -> dict[int, Floats]:
        """By seed: (1 + resamples,) the score itself, then its resamples."""
        found = {}
        for seed, counts in self.counts.get(row, {}).items():
            if not {*metric.above, *metric.below} <= set(counts.columns):
                continue
            above = _weighed(metric.above, self._sums, (row, seed))
            below = _weighed(metric.below, self._sums, (row, seed))
            if below[0] > 0:
                # A resample without any such mention says nothing; there is hardly one.
                found[seed] = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
        return found

    @cached_property
    def _sums(self) -> dict[tuple[str, int, str], Floats]:
        """Every column's sum, (1 + resamples,): of the sentences as they are, then resampled."""
        ids = sorted({i for _, _, counts in self._cells for i in counts.ids})
        place = {name: number for number, name in enumerate(ids)}
        keys, table = [], []
        for row, seed, counts in self._cells:
            where = np.array([place[i] for i in counts.ids], int)
            for name, column in counts.columns.items():
                keys.append((row, seed, name))
                table.append(np.bincount(where, np.asarray(column, float), len(ids)))
        if not keys:
            return {}
        values = np.array(table).T  # (sentences, columns)
        sums = [values.sum(axis=0, keepdims=True)]
        sums += [w @ values for w in weights(len(ids), self.resamples, self.seed)]
        joined = np.concatenate(sums).T
        return dict(zip(keys, joined, strict=True))


def weights(count: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each of ``count`` sentences is drawn, resample by resample.

    Yields:
        (up to CHUNK, count); every row adds up to ``count``.
    """
    random = np.random.default_rng(seed)
    for start in range(0, resamples, CHUNK):
        size = min(CHUNK, resamples - start)
        drawn = random.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count).astype(float)


def holm(values: Mapping[str, float], family: int | None = None) -> dict[str, float]:
    """Correct p-values for their number (Holm 1979).

    Args:
        values: p by name.
        family: how many comparisons were planned, those still missing
            included, as if each came out last; None: as many as there are.

    Returns:
        Adjusted p by name; never falling in order of p, at most 1.
    """
    number = max(len(values), family or 0)
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, name in enumerate(sorted(values, key=lambda name: values[name])):
        highest = max(highest, min(1.0, (number - rank) * values[name]))
        adjusted[name] = highest
    return {name: adjusted[name] for name in values}


def _weighed(
    factors: Mapping[str, float], sums: Mapping[tuple[str, int, str], Any], key: tuple[str, int]
) -> Floats:
    return np.sum([factor * sums[(*key, name)] for name, factor in factors.items()], axis=0)


def _interval(values: Floats) -> tuple[float, float]:
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(values, [tail, 100 - tail])
    return float(low), float(high)


def _two_sided(differences: Floats) -> float:
    """Twice the smaller share of resamples on one side of 0, that of the data counted in."""
    below = (1 + np.count_nonzero(differences <= 0)) / (1 + len(differences))
    above = (1 + np.count_nonzero(differences >= 0)) / (1 + len(differences))
    return float(min(1.0, 2 * min(below, above)))


def _deviation(values: Sequence[float] | Floats) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None
