"""What an audit expects of a graph, fitted on the map, and beside what trainings measured.

    python -m benchmarks.expected

Reads the results of the named-entity suites and counts their data and graphs again (KBERT_DATA).
One point is one data set and graph, the mean of its seeds. Writes the planes beside
kbert_core/experiments/expected.py, and for the report results/expected/section.md with
every point as predicted without it: those of the map and of the other splits with the point left
out, those of other graphs and data sets by a fit that never saw them.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kbert_core.data.sources import read_present
from kbert_core.experiments import expected
from kbert_core.experiments.audit import audit
from kbert_core.experiments.audit_values import Data, Gain, plain_tokenizer
from kbert_core.experiments.expected import WAYS, Plane
from kbert_core.experiments.grid import Experiment
from kbert_core.experiments.suite import read_suite

ROOT = Path(__file__).resolve().parents[1]
SUITES = ROOT / "results" / "suites"
OTHER = "K-BERT (paper), MedicalKG", "BERT with the dictionary written over it"
GATE = "BERT, dictionary through a gate"
FITTED = {  # suite → its rows, a way each; what the planes are fitted to
    # "map": ("K-BERT (paper)", "Dictionary over BERT", "Dictionary through a gate, over BERT"),
    "medical-ner-random": (*OTHER, GATE),
    "medical-ner-dedup": (*OTHER, GATE),
    "medical-ner-disjoint": (*OTHER, GATE),
}
TRIED = {  # never fitted to: other graphs and another language
    "ner-en": ("K-BERT, English medical graph", OTHER[1], GATE),
    "medical-ner-official": (*OTHER, GATE),
}


@dataclass(frozen=True)
class Point:
    """One data set and graph."""

    name: str
    features: tuple[float, float]
    gains: dict[str, float]  # by way, of F1 over BERT


def points(suites: dict[str, tuple[str, ...]]) -> Iterator[Point]:
    """What the suites measured, a point a condition."""
    for name, rows in suites.items():
        suite = read_suite(SUITES / f"{name}.yaml")
        experiment = Experiment(suite)
        tables = experiment.tables(resamples=1)
        found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        counted: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for row in suite.rows:
            way = dict(zip(rows, WAYS, strict=True)).get(row.name.partition(": ")[0])
            if way is None or row.compare_with is None:
                continue
            condition = row.in_words
            scores = tables.resampled.score(row.name, tables.metrics[0])
            bert = tables.resampled.score(row.compare_with, tables.metrics[0])
            for seed in sorted({*scores.seeds} & {*bert.seeds}) if scores and bert else ():
                found[condition][way].append(scores.seeds[seed] - bert.seeds[seed])
                if way == WAYS[1]:
                    splits = read_present(str(experiment.split(seed, row.unseen)[0]), suite.task)
                    graph, _ = experiment.graph(row, seed)
                    tokenizer = plain_tokenizer(Data(name, suite.task, splits))
                    made = audit(splits, graph, task=suite.task, tokenizer=tokenizer)
                    point = expected.features(made.splits[made.held_out])
                    assert point is not None
                    counted[condition].append(point)
        for condition, of in found.items():
            mean = tuple(np.mean(counted[condition], axis=0))
            gains = {way: float(np.mean(values)) for way, values in of.items()}
            yield Point(f"{name}: {condition}" if condition else name, mean, gains)


def fitted(some: list[Point], way: str) -> Plane:
    """The plane of a way."""
    having = [point for point in some if way in point.gains]
    gains = np.array([point.gains[way] for point in having])
    return Plane.fit(np.array([point.features for point in having]), gains)


def main() -> None:
    """Fit, predict what was left out, write both."""
    fit, tried = list(points(FITTED)), list(points(TRIED))
    planes = {way: fitted(fit, way) for way in WAYS}
    kept = {
        "features": ["new and known", "false matches"],
        "planes": {w: p.as_dict() for w, p in planes.items()},
    }
    path = Path(expected.__file__).with_name("expected.json")
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    lines = ["## Expected and measured", "", "TEXT", ""]
    lines += [
        "| | new and known | false matches | way | measured | expected | within |",
        "|---|---:|---:|---|---:|---:|---|",
    ]
    inside = []
    for point in [*fit, *tried]:
        for way, gain in point.gains.items():
            plane = fitted([p for p in fit if p is not point], way)
            at: Gain = plane.at(point.features)
            within = at.low <= gain <= at.high
            inside.append(within)
            new, false = (f"{100 * value:.0f} %" for value in point.features)
            said = f"{100 * at.mean:+.1f} [{100 * at.low:+.1f}, {100 * at.high:+.1f}]"
            cells = (
                point.name,
                new,
                false,
                way,
                f"{100 * gain:+.1f}",
                said,
                "yes" if within else "no",
            )
            lines.append(f"| {' | '.join(cells)} |")
    print("\n".join(lines))
    print(sum(inside), len(inside))


if __name__ == "__main__":
    main()
