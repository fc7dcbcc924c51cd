"""How sure a difference between two rows is; see docs/decisions/statistics.md.

Every score is a ratio of sums over sentences (F1 = 2 right / (predicted +
gold)), so a resample of the sentences gives it anew from their counts. A
sentence has one weight in all rows and seeds that it is in: differences are
paired, and what several test sets share isn't taken for several. An interval
holds both stages, the draw of the seeds and that of the sentences within them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kbert_core.errors import ExperimentError

Floats = NDArray[np.float64]
RESAMPLES = 10_000
CHUNK = 500  # resamples in memory at a time
ENOUGH_SEEDS, SURE_SEEDS = 3, 5  # fewer than the first only suggest, than the second are few
LEVEL = 0.95
NONE = "–"  # where a figure would stand

PARTS = ("noun", "verb", "adjective", "adverb")


@dataclass(frozen=True)
class Metric:
    """A ratio of sums over sentences: columns added up, each with its factor."""

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
    "link": (
        Metric("F1", {"right": 2}, {"predicted": 1, "gold": 1}),
        Metric("not the first sense", {"not_first_right": 1}, {"not_first": 1}),
        Metric("word not in training", {"new_right": 1}, {"new": 1}),
        *(Metric(part, {f"{part}_right": 1}, {part: 1}) for part in PARTS),
    ),
    "mask": (
        Metric("MRR", {"reciprocal": 1}, {"count": 1}),
        Metric("MRR, filling not in training", {"new_reciprocal": 1}, {"new": 1}),
        Metric("P@1", {"right": 1}, {"count": 1}),
    ),
    "qa": (
        Metric("F1", {"f1": 1}, {"count": 1}),
        Metric("exact match", {"exact": 1}, {"count": 1}),
    ),
    "rank": (
        Metric("MRR", {"reciprocal": 1}, {"count": 1}),
        Metric("P@1", {"first": 1}, {"count": 1}),
    ),
}


@dataclass(frozen=True)
class Counts:
    """What one row did on one seed's test set."""

    ids: Sequence[str]  # of the S sentences
    columns: Mapping[str, Sequence[float]]  # S numbers each
    data: str = ""  # hash of the seed's split; rows are paired on the same alone


def packed(counts: Counts) -> dict[str, Any]:
    """Columns as one short line each, for JSON."""
    columns = {n: " ".join(f"{v:.6g}" for v in column) for n, column in counts.columns.items()}
    return {"ids": " ".join(counts.ids), "columns": columns}


def unpacked(sentences: Mapping[str, Any], data: str = "") -> Counts:
    """The counts again; ``data`` is the hash of the split."""
    columns = {n: [float(v) for v in line.split()] for n, line in sentences["columns"].items()}
    return Counts(sentences["ids"].split(), columns, data)


@dataclass(frozen=True)
class Spread:
    """Values over the seeds."""

    mean: float
    deviation: float | None  # n - 1; None for one seed

    @classmethod
    def of(cls, values: Sequence[float] | Floats) -> Self:
        """Of one value or more."""
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return cls(float(np.mean(values)), deviation)


@dataclass(frozen=True)
class Score(Spread):
    """A row's score."""

    seeds: Mapping[int, float]  # the score of every seed
    low: float  # low to high: the interval, see ``interval``
    high: float


@dataclass(frozen=True)
class Difference(Spread):
    """One row minus another, paired by seed."""

    low: float  # low to high: the interval, see ``interval``
    high: float
    seeds: int  # how many are paired

    @property
    def exploratory(self) -> bool:
        """Whether it only suggests, of too few seeds."""
        return self.seeds < ENOUGH_SEEDS


@dataclass(frozen=True, eq=False)
class Resampled:
    """The scores of all rows of a suite under the same resamples."""

    counts: Mapping[str, Mapping[int, Counts]]  # by row and seed
    resamples: int = RESAMPLES
    seed: int = 0  # of the resampling

    def score(self, row: str, metric: Metric) -> Score | None:
        """A row's score; None where it has none (no seed, or nothing to count)."""
        drawn = self._drawn(row, metric)
        if not drawn:
            return None
        seeds = {seed: values[0] for seed, values in drawn.items()}
        spread = Spread.of(list(seeds.values()))
        return Score(spread.mean, spread.deviation, seeds, *interval(np.array([*drawn.values()])))

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
                    f"'{row}' and '{other}' were tested on different data at seed {seed}. Run "
                    "the stale ones again."
                )
        return _difference(np.array([one[seed] - two[seed] for seed in shared]))

    def between_seeds(self, row: str, metric: Metric) -> list[Difference]:
        """Each two seeds of a row with the same test sentences: nothing differs but the seed.

        The intervals are of the sentences alone, as those of any single seed.
        """
        drawn, counts = self._drawn(row, metric), self.counts.get(row, {})
        return [
            _difference(drawn[one][None] - drawn[two])
            for one, two in combinations(sorted(drawn), 2)
            if counts[one].ids == counts[two].ids
        ]

    def _drawn(self, row: str, metric: Metric) -> dict[int, Floats]:
        """By seed: (1 + resamples,) the score itself, then its resamples."""
        scores = {}
        for seed, counts in self.counts.get(row, {}).items():
            if not {*metric.above, *metric.below} <= set(counts.columns):
                continue
            above, below = (
                np.sum([factor * self._sums[row, seed, name] for name, factor in of.items()], 0)
                for of in (metric.above, metric.below)
            )
            if below[0] > 0:
                # A resample without any such mention says nothing; there is hardly one.
                scores[seed] = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
        return scores

    @cached_property
    def _sums(self) -> dict[tuple[str, int, str], Floats]:
        """Every column's sum, (1 + resamples,): of the sentences as they are, then resampled."""
        cells = [(row, s, c) for row, of_seed in self.counts.items() for s, c in of_seed.items()]
        ids = sorted({i for _, _, counts in cells for i in counts.ids})
        place = {name: number for number, name in enumerate(ids)}
        columns = {}
        for row, seed, counts in cells:
            where = np.array([place[i] for i in counts.ids], int)
            for name, column in counts.columns.items():
                columns[row, seed, name] = np.bincount(where, np.asarray(column, float), len(ids))
        if not columns:
            return {}
        table = np.array(list(columns.values())).T  # (sentences, columns)
        sums = [table.sum(axis=0, keepdims=True)]
        sums += [drawn @ table for drawn in weights(len(ids), self.resamples, self.seed)]
        return dict(zip(columns, np.concatenate(sums).T, strict=True))


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


def interval(values: Floats) -> tuple[float, float]:
    """Where a mean over seeds lies, for other seeds and other sentences too.

    The variance between the seeds, which may be few, enters by Student's t; that
    which they share, as they were tested on the same sentences, by the normal
    distribution. Drawing seeds anew with replacement has a known variance, so it
    isn't done: of three there are ten draws. With one seed the interval is that
    of its sentences, and says nothing of another seed.

    Args:
        values: (seeds, 1 + resamples), of every seed the value itself, then its resamples.
    """
    mean, seeds, tail = float(values[:, 0].mean()), len(values), 50 * (1 - LEVEL)
    if seeds == 1:
        low, high = np.percentile(values[0, 1:], [tail, 100 - tail])
        return float(low), float(high)
    from scipy.special import ndtri, stdtrit  # slow to start

    within = np.cov(values[:, 1:])
    shared = max(0.0, float(within.sum() - within.trace()) / (seeds * (seeds - 1)))
    between = float(values[:, 0].var(ddof=1)) / seeds
    of_seeds, of_sentences = stdtrit(seeds - 1, 1 - tail / 100), ndtri(1 - tail / 100)
    half = float((of_seeds**2 * between + of_sentences**2 * shared) ** 0.5)
    return mean - half, mean + half


def _difference(differences: Floats) -> Difference:
    """Of (seeds, 1 + resamples)."""
    spread = Spread.of(differences[:, 0])
    return Difference(spread.mean, spread.deviation, *interval(differences), len(differences))


# How figures are written


def per_cent(spread: Spread | None, digits: int = 1, unit: str = "") -> str:
    """A mean in per cent, with its deviation over the seeds."""
    if spread is None:
        return NONE
    mean, deviation = f"{100 * spread.mean:.{digits}f}", spread.deviation
    return mean + ("" if deviation is None else f" ± {100 * deviation:.{digits}f}") + unit


def in_points(difference: Difference | None, missing: str) -> str:
    """A difference with its interval, which one seed hasn't."""
    if difference is None:
        return missing
    mean = signed(difference.mean)
    if difference.seeds == 1:
        return mean
    return f"{mean} [{signed(difference.low)}, {signed(difference.high)}]"


def signed(value: float) -> str:
    """A difference in points with its sign, one decimal."""
    return f"{100 * value:+.1f}".replace("-", "−")
