"""Results of suites → the values of their tables, as plain data."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from kbert_core.errors import ExperimentError
from kbert_core.experiments.counts import unpacked
from kbert_core.experiments.grid import Experiment, Status
from kbert_core.experiments.results import read_json
from kbert_core.experiments.statistics import (
    METRICS,
    RESAMPLES,
    Counts,
    Difference,
    Metric,
    Resampled,
    Score,
    Spread,
    holm,
)
from kbert_core.experiments.suite import Baseline, Run, SideBySide, Suite

Pair = tuple[str, str]  # a comparison: one row minus another
MAIN_METRICS = 2
log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Tables:
    """What the results of a suite say."""

    suite: Suite  # what was run
    results: Mapping[str, Mapping[int, Mapping[str, Any]]]  # by row and seed, as their JSON says
    outdated: Sequence[Status] = ()  # cells whose result is of something else; left out
    unchecked: Mapping[str, str] = field(default_factory=dict)  # what can't be read here → why
    resamples: int = RESAMPLES  # for the statistics

    @classmethod
    def of(cls, experiment: Experiment, *, resamples: int = RESAMPLES) -> "Tables":
        """Read the results of a suite, as far as they are there.

        What can't be read here, such as the data, isn't compared with.

        Raises:
            ExperimentError: results of different encoders or data would be mixed.
        """
        results: dict[str, dict[int, Any]] = {}
        outdated: list[Status] = []
        unchecked: dict[str, str] = {}
        for cell in experiment.cells():
            status = experiment.status(cell, with_what_is_there=True)
            unchecked |= status.unchecked
            if status.state == "stale":
                outdated.append(status)
            elif status.state == "done":
                result = read_json(experiment.file(cell))
                results.setdefault(cell.row.name, {})[cell.seed] = result
        for what, why in unchecked.items():
            log.warning("%s: not checked: %s (%s)", experiment.suite.name, what, why)
        tables = cls(experiment.suite, results, outdated, unchecked, resamples)
        tables.check_same()
        return tables

    def check_same(self) -> None:
        """Refuse results that don't belong together.

        Raises:
            ExperimentError: an encoder or the data changed between two runs.
        """
        origins: dict[tuple[str, int | None], tuple[str, str]] = {}  # → its hash, a row of it
        for row, of_seed in self.results.items():
            for seed, result in of_seed.items():
                inputs = result["inputs"]
                digests: dict[tuple[str, int | None], str]
                digests = {("the data", seed): inputs["data"]["sha256"]}
                if encoder := inputs.get("over", inputs).get("encoder"):
                    digests[f"the encoder {encoder['name']}", None] = encoder["sha256"]
                for origin, digest in digests.items():
                    before, first = origins.setdefault(origin, (digest, row))
                    if digest != before:
                        raise ExperimentError(
                            f"{self.suite.name}: {origin[0]} changed between '{first}' and "
                            f"'{row}', seed {seed}. Run the suite again: "
                            f"`kbert experiment {self.suite.path.name}`."
                        )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The task's metrics, the main one first."""
        return METRICS[self.suite.task]

    @property
    def main_metrics(self) -> tuple[Metric, ...]:
        """Those that differences and pictures are of."""
        return self.metrics[:MAIN_METRICS]

    # Values

    def done(self, row: Run | Baseline) -> int:
        """How many seeds of a row are there and up to date."""
        return len(self.results.get(row.name, {}))

    def lacking(self, row: Run | Baseline) -> str:
        """What a row's figures lack, as in "1 of 3 seeds"; empty where nothing."""
        done, planned = self.done(row), len(row.seeds)
        return f"{done} of {planned} seeds" if done < planned else ""

    def values(self, row: str | None, *keys: str) -> list[Any]:
        """What stands under some keys in each result of a row, or of all; None is left out."""
        names = self.results if row is None else [row]
        values: list[Any] = [r for name in names for r in self.results.get(name, {}).values()]
        for key in keys:
            values = [value.get(key) for value in values if isinstance(value, Mapping)]
        return [value for value in values if value is not None]

    def spread(self, row: str, *keys: str) -> Spread | None:
        """Mean and deviation of what stands under some keys in the results of a row."""
        values = self.values(row, *keys)
        return Spread.of(values) if values else None

    @cached_property
    def labels(self) -> dict[str, list[int]]:
        """The labels of test's entities, and how many each seed has of each."""
        gold: dict[str, dict[int, int]] = {}
        for of_seed in self.results.values():
            for seed, result in of_seed.items():
                by_label = result["scores"].get("test", {}).get("by_label", {})
                for label, scores in by_label.items():
                    gold.setdefault(label, {})[seed] = scores["gold"]
        return {label: list(gold[label].values()) for label in sorted(gold)}

    # Statistics

    @cached_property
    def resampled(self) -> Resampled:
        """The statistics over all rows."""
        counts: dict[str, dict[int, Counts]] = {}
        for row, of_seed in self.results.items():
            for seed, result in of_seed.items():
                if "sentences" in result:
                    data = result["inputs"]["data"]["sha256"]
                    counts.setdefault(row, {})[seed] = unpacked(result["sentences"], data)
        return Resampled(counts, resamples=self.resamples)

    def score(self, row: str, metric: Metric) -> Score | None:
        """A row's score on test."""
        return self.resampled.score(row, metric)

    @property
    def family(self) -> list[Pair]:
        """The comparisons with the run without knowledge, those still missing included."""
        pairs = [(row.name, row.compare_with) for row in self.suite.rows]
        return [(name, other) for name, other in pairs if other is not None and name != other]

    @property
    def pairs(self) -> list[Pair]:
        """Every comparison: the family, and what the suite compares besides."""
        return list(dict.fromkeys([*self.family, *self.suite.also_compare]))

    def differences(self, metric: Metric) -> dict[Pair, Difference]:
        """Every comparison that there are results for; p adjusted within the family."""
        differences = {
            pair: difference
            for pair in self.pairs
            if (difference := self.resampled.difference(*pair, metric))
        }
        family = [pair for pair in self.family if pair in differences]
        adjusted = holm({pair: differences[pair].p for pair in family}, len(self.family))
        return differences | {
            pair: replace(differences[pair], adjusted=p) for pair, p in adjusted.items()
        }

    def summary(self) -> Mapping[str, Any]:
        """The main figures of every row, for JSON."""
        rows: dict[str, Any] = {}
        stale = {status.cell.row.name for status in self.outdated}
        for row in self.suite.rows:
            rows[row.name] = {"seeds": self.done(row), "stale": row.name in stale}
            for metric in self.metrics:
                if s := self.score(row.name, metric):
                    score = {"mean": s.mean, "deviation": s.deviation, "interval": [s.low, s.high]}
                    rows[row.name][metric.name] = score
        return rows


# Several suites


@dataclass(frozen=True)
class Group:
    """Suites shown side by side: the rows they share, a column a suite."""

    name: str  # of the suite that asks for it
    declared: SideBySide  # what that suite says
    members: tuple[tuple[str, Tables], ...]  # what each is called here, and its results; in order
    absent: tuple[str, ...] = ()  # suites named that aren't in this report

    @property
    def rows(self) -> list[str]:
        """Names that at least two of the suites have, in the order of the first."""
        names = Counter(row.name for _, tables in self.members for row in tables.suite.rows)
        return [name for name, count in names.items() if count > 1]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The main metrics of their task."""
        return self.members[0][1].main_metrics

    def lacking(self, tables: Tables) -> str:
        """What all rows of a suite lack alike, see ``Tables.lacking``; empty where they differ."""
        rows = [row for row in tables.suite.rows if row.name in self.rows]
        lacking = {tables.lacking(row) for row in rows if row.name in tables.results}
        return lacking.pop() if len(lacking) == 1 else ""


def groups(suites: Sequence[Tables]) -> list[Group]:
    """The groups that suites of a report ask for and of which two at least have results."""
    known = {tables.suite.name: tables for tables in suites}
    made = []
    for suite in (tables.suite for tables in suites if tables.suite.side_by_side is not None):
        declared = suite.side_by_side
        assert declared is not None
        members = tuple((c, known[name]) for name, c in declared.suites.items() if name in known)
        absent = tuple(name for name in declared.suites if name not in known)
        group = Group(suite.name, declared, members, absent)
        if len(suites) > 1 and len(members) < 2:
            log.warning(
                "%s: nothing to stand side by side: %s isn't among the suites given",
                *(suite.path, ", ".join(absent)),
            )
        if sum(bool(member.results) for _, member in members) > 1 and group.rows and group.metrics:
            made.append(group)
    return made
