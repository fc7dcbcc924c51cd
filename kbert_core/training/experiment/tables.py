"""Results of a suite → the values of its tables, as plain data."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from kbert_core.errors import ExperimentError, KBertError
from kbert_core.training.experiment.grid import Experiment, Status
from kbert_core.training.experiment.results import read_json
from kbert_core.training.experiment.scoring import unpacked
from kbert_core.training.experiment.statistics import (
    METRICS,
    RESAMPLES,
    Counts,
    Difference,
    Metric,
    Resampled,
    Score,
    holm,
)
from kbert_core.training.experiment.suite import Baseline, Run, Suite
from kbert_core.training.finetune import MAIN_SCORE

EDIT_SHARES = ("new", "kept", "other", "lost", "others_changed")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pair:
    """A comparison: one row minus another."""

    row: str
    other: str


@dataclass(frozen=True)
class Edits:
    """A run's response to edits, over its seeds.

    Attributes:
        group: "unseen" or "seen" in training.
        count: of edits, all seeds together.
        shares: by outcome, the mean over the seeds.
    """

    row: str
    group: str
    count: int
    shares: Mapping[str, float]


@dataclass(frozen=True)
class Curve:
    """Dev scores by epoch, from 1.

    Attributes:
        means, deviations: over the seeds; a deviation is None for one seed.
    """

    row: str
    means: Sequence[float]
    deviations: Sequence[float | None]


class Tables:
    """What the results of a suite say.

    Args:
        suite: what was run.
        results: by row and seed, each as its JSON says.
        outdated: cells whose result is of something else than the suite says
            now; not counted.
        resamples: for the statistics.
    """

    def __init__(
        self,
        suite: Suite,
        results: Mapping[str, Mapping[int, Mapping[str, Any]]],
        outdated: Sequence[Status] = (),
        *,
        resamples: int = RESAMPLES,
    ) -> None:
        self.suite, self.results, self.outdated = suite, results, outdated
        self._resamples = resamples

    @classmethod
    def of(cls, experiment: Experiment, *, resamples: int = RESAMPLES) -> "Tables":
        """Read the results of a suite, as far as they are there and up to date.

        Where the data or graphs aren't there to compare with, all are taken.

        Raises:
            ExperimentError: results of different encoders or data would be mixed.
        """
        results: dict[str, dict[int, Any]] = {}
        outdated: list[Status] = []
        checked = True
        for cell in experiment.cells():
            result = read_json(experiment.file(cell))
            if result is None:
                continue
            if checked:
                try:
                    status = experiment.status(cell)
                except KBertError as error:
                    log.warning("results aren't checked for being up to date: %s", error)
                    checked = False
                else:
                    if status.state == "stale":
                        outdated.append(status)
                        continue
            results.setdefault(cell.row.name, {})[cell.seed] = result
        made = cls(experiment.suite, results, outdated, resamples=resamples)
        made.check_same()
        return made

    def check_same(self) -> None:
        """Refuse results that don't belong together.

        Raises:
            ExperimentError: an encoder or the data changed between two runs.
        """
        known: dict[tuple[str, Any], tuple[str, str]] = {}
        for row, of_seed in self.results.items():
            for seed, result in of_seed.items():
                inputs = result["inputs"]
                found: list[tuple[str, int | None, str]] = [
                    ("the data", seed, inputs["data"]["sha256"])
                ]
                if "encoder" in inputs:
                    encoder = inputs["encoder"]
                    found.append((f"the encoder {encoder['name']}", None, encoder["sha256"]))
                for what, key, digest in found:
                    first, before = known.setdefault((what, key), (row, digest))
                    if digest != before:
                        raise ExperimentError(
                            f"{self.suite.name}: {what} changed between '{first}' and '{row}', "
                            f"seed {seed}. Run the suite again: `kbert experiment "
                            f"{self.suite.path.name}`."
                        )

    # Scores

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The task's metrics, the main one first."""
        return METRICS.get(self.suite.task, ())

    @cached_property
    def resampled(self) -> Resampled:
        """The statistics over all rows."""
        counts: dict[str, dict[int, Counts]] = {}
        for row, of_seed in self.results.items():
            for seed, result in of_seed.items():
                if "sentences" in result:
                    sentences = unpacked(result["sentences"])
                    data = result["inputs"]["data"]["sha256"]
                    counts.setdefault(row, {})[seed] = Counts(
                        sentences["ids"], sentences["columns"], data
                    )
        return Resampled(counts, resamples=self._resamples)

    def done(self, row: Run | Baseline) -> int:
        """How many seeds of a row are there."""
        return len(self.results.get(row.name, {}))

    def score(self, row: str, metric: Metric) -> Score | None:
        """A row's score on test."""
        return self.resampled.score(row, metric)

    def graph_off(self, row: str) -> tuple[float, float | None] | None:
        """Mean and deviation of the main score with the graph switched off; None without one."""
        found = [
            result["without_knowledge"]["test"][MAIN_SCORE[self.suite.task]]
            for result in self.results.get(row, {}).values()
            if result.get("without_knowledge", {}).get("test")
        ]
        return spread(found) if found else None

    def other(self, row: str, name: str) -> tuple[float, float | None] | None:
        """Mean and deviation of another score on test that runs have; None without one."""
        found = [
            result["scores"]["test"][name]
            for result in self.results.get(row, {}).values()
            if name in result["scores"].get("test", {})
        ]
        return spread(found) if found else None

    # Differences

    @property
    def family(self) -> list[Pair]:
        """The comparisons with the run without knowledge, those still missing included."""
        return [
            Pair(row.name, row.compare_with)
            for row in self.suite.rows
            if row.compare_with is not None and row.compare_with != row.name
        ]

    def differences(self, metric: Metric) -> dict[Pair, Difference]:
        """Every comparison that there are results for; p adjusted within the family."""
        family = self.family
        found = {
            pair: difference
            for pair in (*family, *(Pair(*names) for names in self.suite.also_compare))
            if (difference := self.resampled.difference(pair.row, pair.other, metric))
        }
        adjusted = holm(
            {str(i): found[pair].p for i, pair in enumerate(family) if pair in found}, len(family)
        )
        for i, pair in enumerate(family):
            if pair in found:
                found[pair] = replace(found[pair], adjusted=adjusted[str(i)])
        return found

    # Edits and curves

    def edits(self) -> list[Edits]:
        """Response to edits on test, for every run that has one."""
        made = []
        for row in self.suite.runs:
            responses = [
                result["edit_response"]["test"]
                for result in self.results.get(row.name, {}).values()
                if result.get("edit_response", {}).get("test")
            ]
            for group in ("unseen", "seen"):
                own = [r[group] for r in responses if r.get(group, {}).get("n")]
                if own:
                    shares = {name: fmean(r[name] for r in own) for name in EDIT_SHARES}
                    made.append(Edits(row.name, group, sum(r["n"] for r in own), shares))
        return made

    def curves(self) -> list[Curve]:
        """Dev scores by epoch, for every run that has any; as long as its shortest seed."""
        made = []
        for row in self.suite.runs:
            of_seeds = [
                [entry[MAIN_SCORE[self.suite.task]] for entry in result["learning_curve"]]
                for result in self.results.get(row.name, {}).values()
                if result.get("learning_curve")
            ]
            if of_seeds:
                epochs = [spread(list(values)) for values in zip(*of_seeds, strict=False)]
                made.append(Curve(row.name, [m for m, _ in epochs], [d for _, d in epochs]))
        return made


def spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard deviation (n - 1); None for one value."""
    return fmean(values), stdev(values) if len(values) > 1 else None
