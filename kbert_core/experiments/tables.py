"""Results of a suite → the values of its tables, as plain data."""

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from kbert_core.errors import ExperimentError
from kbert_core.experiments.counts import unpacked
from kbert_core.experiments.grid import Experiment, Status
from kbert_core.experiments.keys import Baseline, Run
from kbert_core.experiments.results import read_json
from kbert_core.experiments.statistics import (
    METRICS,
    RESAMPLES,
    Counts,
    Difference,
    Metric,
    Resampled,
    Score,
    holm,
)
from kbert_core.experiments.suite import Suite
from kbert_core.training.finetune import MAIN_SCORE

Spread = tuple[float, float | None]  # mean and deviation (n - 1); None for one value
MAIN_METRICS = 2
EDIT_SHARES = ("new", "kept", "other", "lost", "others_changed", "others_new")
ADDED_SHARES = ("right_before", "right_after", "others_changed", "others_new")
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
        shares: by outcome, mean and deviation over the seeds; without those
            that no seed has.
    """

    row: str
    group: str
    count: int
    shares: Mapping[str, Spread]


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
            now.
        stale: rows of which all results are outdated; they are shown, marked
            as such, and don't count as done. Of other rows outdated results
            aren't among ``results``.
        unchecked: what the results depend on that couldn't be read here, and
            why; they are taken to be up to date in this.
        resamples: for the statistics.
    """

    def __init__(
        self,
        suite: Suite,
        results: Mapping[str, Mapping[int, Mapping[str, Any]]],
        outdated: Sequence[Status] = (),
        *,
        stale: Collection[str] = (),
        unchecked: Mapping[str, str] | None = None,
        resamples: int = RESAMPLES,
    ) -> None:
        self.suite, self.results, self.outdated = suite, results, outdated
        self.stale, self.unchecked = frozenset(stale), dict(unchecked or {})
        self._resamples = resamples

    @classmethod
    def of(cls, experiment: Experiment, *, resamples: int = RESAMPLES) -> "Tables":
        """Read the results of a suite, as far as they are there.

        What can't be read here, such as the data, isn't compared with.

        Raises:
            ExperimentError: results of different encoders or data would be mixed.
        """
        current: dict[str, dict[int, Any]] = {}
        before: dict[str, dict[int, Any]] = {}
        outdated: list[Status] = []
        unchecked: dict[str, str] = {}
        for cell in experiment.cells():
            result = read_json(experiment.file(cell))
            if result is None:
                continue
            status = experiment.status(cell, with_what_is_there=True)
            unchecked |= status.unchecked
            if status.state == "stale":
                outdated.append(status)
            kept = before if status.state == "stale" else current
            kept.setdefault(cell.row.name, {})[cell.seed] = result
        for what, why in unchecked.items():
            log.warning("%s: not checked: %s (%s)", experiment.suite.name, what, why)
        made = cls(
            experiment.suite,
            {**before, **current},
            outdated,
            stale=before.keys() - current.keys(),
            unchecked=unchecked,
            resamples=resamples,
        )
        made.check_same()
        return made

    def check_same(self) -> None:
        """Refuse results that don't belong together; stale ones stand by themselves.

        Raises:
            ExperimentError: an encoder or the data changed between two runs.
        """
        known: dict[tuple[str, int | None], tuple[str, str]] = {}
        for row, of_seed in self.results.items():
            if row in self.stale:
                continue
            for seed, result in of_seed.items():
                for (what, key), digest in _origins(seed, result["inputs"]).items():
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

    @property
    def main_metrics(self) -> tuple[Metric, ...]:
        """Those that differences and pictures are of."""
        return self.metrics[:MAIN_METRICS]

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
        """How many seeds of a row are there and up to date."""
        return 0 if row.name in self.stale else len(self.results.get(row.name, {}))

    def old(self, row: Run | Baseline) -> int:
        """How many seeds of a stale row there are."""
        return len(self.results.get(row.name, {})) - self.done(row)

    def shown(self, name: str) -> str:
        """A row's name, marked if its results are stale."""
        return f"{name} (stale)" if name in self.stale else name

    def score(self, row: str, metric: Metric) -> Score | None:
        """A row's score on test."""
        return self.resampled.score(row, metric)

    def graph_off(self, row: str) -> Spread | None:
        """Mean and deviation of the main score with the graph switched off; None without one."""
        found = [
            result["without_knowledge"]["test"][MAIN_SCORE[self.suite.task]]
            for result in self.results.get(row, {}).values()
            if result.get("without_knowledge", {}).get("test")
        ]
        return spread(found) if found else None

    def other(self, row: str, name: str) -> Spread | None:
        """Mean and deviation of another score on test that runs have; None without one."""
        found = [
            result["scores"]["test"][name]
            for result in self.results.get(row, {}).values()
            if name in result["scores"].get("test", {})
        ]
        return spread(found) if found else None

    # Labels

    @cached_property
    def labels(self) -> dict[str, list[int]]:
        """The labels of test's entities, and how many each seed has of each."""
        gold: dict[str, dict[int, int]] = {}
        for of_seed in self.results.values():
            for seed, result in of_seed.items():
                for label, found in _by_label(result).items():
                    gold.setdefault(label, {})[seed] = found["gold"]
        return {label: list(gold[label].values()) for label in sorted(gold)}

    def by_label(self, row: str) -> dict[str, Spread]:
        """A row's F1 on test by label; without labels that no seed has."""
        found: dict[str, list[float]] = {}
        for result in self.results.get(row, {}).values():
            for label, scores in _by_label(result).items():
                found.setdefault(label, []).append(scores["f1"])
        return {label: spread(values) for label, values in found.items()}

    def named_by_tails(self, row: str) -> dict[str, int]:
        """Labels that a tail of the row's graph names, and at how many seeds."""
        named = Counter(
            label
            for result in self.results.get(row, {}).values()
            for label in set(result.get("type_labels", {}).values())
        )
        return dict(sorted(named.items()))

    # Differences

    @property
    def family(self) -> list[Pair]:
        """The comparisons with the run without knowledge, those still missing included."""
        return [
            Pair(row.name, row.compare_with)
            for row in self.suite.rows
            if row.compare_with is not None and row.compare_with != row.name
        ]

    def comparable(self, pair: Pair) -> bool:
        """Whether the two rows are of the same data and encoder; stale ones needn't be."""
        if not {pair.row, pair.other} & self.stale:
            return True  # see ``check_same``
        known: dict[tuple[str, int | None], set[str]] = {}
        for row in (pair.row, pair.other):
            for seed, result in self.results.get(row, {}).items():
                for what, digest in _origins(seed, result["inputs"]).items():
                    known.setdefault(what, set()).add(digest)
        return all(len(digests) == 1 for digests in known.values())

    def differences(self, metric: Metric) -> dict[Pair, Difference]:
        """Every comparison that there are results for; p adjusted within the family."""
        family = self.family
        found = {
            pair: difference
            for pair in (*family, *(Pair(*names) for names in self.suite.also_compare))
            if self.comparable(pair)
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

    def edits(self, *, added: bool = False) -> list[Edits]:
        """Response to edits on test, for every run that has one.

        Args:
            added: of triples that were added, not of tails that were replaced.
        """
        made = []
        for row in self.suite.runs:
            responses = [
                result["edit_response"]["test"]
                for result in self.results.get(row.name, {}).values()
                if result.get("edit_response", {}).get("test")
            ]
            if added:
                responses = [response.get("added", {}) for response in responses]
            for group in ("unseen", "seen"):
                own = [r[group] for r in responses if r.get(group, {}).get("n")]
                shares = {}
                for name in ADDED_SHARES if added else EDIT_SHARES:
                    values = [r[name] for r in own if r.get(name) is not None]
                    if values:
                        shares[name] = spread(values)
                if own:
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


def _by_label(result: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = result["scores"].get("test", {}).get("by_label", {})
    return found


def _origins(seed: int, inputs: Mapping[str, Any]) -> dict[tuple[str, int | None], str]:
    """The hashes of a result's data, of this seed, and of its encoder."""
    found: dict[tuple[str, int | None], str] = {("the data", seed): inputs["data"]["sha256"]}
    trained = inputs.get("over", inputs)
    if "encoder" in trained:
        encoder = trained["encoder"]
        found[f"the encoder {encoder['name']}", None] = encoder["sha256"]
    return found


def spread(values: Sequence[float]) -> Spread:
    """Mean and standard deviation (n - 1); None for one value."""
    return fmean(values), stdev(values) if len(values) > 1 else None
