"""What an audit expects of a graph, fitted on the map, and beside what trainings measured.

    python -m benchmarks.expected          # count, fit, write
    python -m benchmarks.expected --fit    # fit again from the counts that are kept

A point is one data set and graph, the mean over its seeds. Counting reads the data and makes the
graphs again (KBERT_DATA) and keeps both beside the gains in results/expected/points.json. The fit
goes to kbert_core/experiments/expected.json, and results/expected/section.md shows every point as
it is predicted without it: a point of the map or of a split with that point left out, another data
set by a fit that has never seen it.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from kbert_core.data.sources import read_present
from kbert_core.experiments import expected
from kbert_core.experiments.audit import audit
from kbert_core.experiments.audit_values import Data, plain_tokenizer
from kbert_core.experiments.expected import WAYS, Fit, Point
from kbert_core.experiments.grid import Experiment
from kbert_core.experiments.suite import read_suite

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "results" / "expected"
MEDICAL = "K-BERT (paper), MedicalKG", "BERT with the dictionary written over it"
GATE = "BERT, dictionary through a gate"
FITTED = {  # suite → its rows, in the order of WAYS
    "map": ("K-BERT (paper)", "Dictionary over BERT", "Dictionary through a gate, over BERT"),
    "medical-ner-official": (*MEDICAL, GATE),
    "medical-ner-dedup": (*MEDICAL, GATE),
    "medical-ner-random": (*MEDICAL, GATE),
    "medical-ner-disjoint": (*MEDICAL, GATE),
}
TRIED = {  # never fitted: other texts, other graphs, another language
    "ner-en": ("K-BERT, English medical graph", MEDICAL[1], GATE),
    "weibo-ner": ("K-BERT (paper), HowNet", "", ""),
    "resume-ner": ("K-BERT (paper), HowNet", "", ""),
    "msra-ner": ("K-BERT (paper), HowNet", "", ""),
}


def counted() -> list[dict[str, Any]]:
    """What the suites measured and what their data and graphs hold, a point a condition."""
    points = []
    for name, rows in {**FITTED, **TRIED}.items():
        experiment = Experiment(read_suite(ROOT / "results" / "suites" / f"{name}.yaml"))
        tables = experiment.tables(resamples=1)
        gains: dict[str, dict[str, dict[int, float]]] = defaultdict(dict)
        features: dict[str, list[dict[str, float]]] = defaultdict(list)
        for row in experiment.suite.rows:
            way = dict(zip(rows, WAYS, strict=True)).get(row.name.partition(": ")[0])
            if way is None or row.compare_with is None:
                continue
            condition = row.in_words
            scores = tables.resampled.score(row.name, tables.metrics[0])
            bert = tables.resampled.score(row.compare_with, tables.metrics[0])
            seeds = sorted({*scores.seeds} & {*bert.seeds}) if scores and bert else []
            gains[condition][way] = {s: scores.seeds[s] - bert.seeds[s] for s in seeds}
            if way == WAYS[0]:  # the counts are of data and graph, whatever is done with them
                features[condition] = [_features(experiment, row, seed) for seed in seeds[:3]]
        for condition, of in gains.items():
            point = {n: float(np.mean([f[n] for f in features[condition]])) for n in Point._fields}
            said = {way: {str(s): round(g, 6) for s, g in by.items()} for way, by in of.items()}
            named = f"{name}: {condition}" if condition else name
            points.append({"name": named, "fitted": name in FITTED, **point, "gains": said})
            print(points[-1], flush=True)
    return points


def _features(experiment: Experiment, row: Any, seed: int) -> dict[str, float]:
    task = experiment.suite.task
    splits = read_present(str(experiment.split(seed, row.unseen)[0]), task)
    graph, _ = experiment.graph(row, seed)
    tokenizer = plain_tokenizer(Data("", task, splits))
    made = audit(
        {name: splits[name] for name in ("train", "test")}, graph, task=task, tokenizer=tokenizer
    )
    point = expected.point_of(made.splits["test"])
    assert point is not None
    return point._asdict()


def main() -> None:
    """Count where asked to, fit, and predict what was left out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fit", action="store_true", help="from the counts that are kept")
    KEPT.mkdir(exist_ok=True)
    file = KEPT / "points.json"
    if not parser.parse_args().fit:
        file.write_text(json.dumps(counted(), indent=1) + "\n", encoding="utf-8")
    points = json.loads(file.read_text("utf-8"))
    fitted = [point for point in points if point["fitted"]]
    fits = {way: _fit(fitted, way) for way in WAYS}
    kept = {way: fit.as_dict() for way, fit in fits.items()}
    path = Path(expected.__file__).with_name("expected.json")
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    lines, inside = [], []
    for point in points:
        for way, by_seed in point["gains"].items():
            fit = _fit([other for other in fitted if other is not point], way)
            at, gain = fit.at(_point(point)), float(np.mean([*by_seed.values()]))
            inside.append((point["fitted"], at.low <= gain <= at.high, abs(at.mean - gain)))
            new, unknown, right = (f"{100 * value:.0f} %" for value in _point(point))
            said = f"{100 * at.mean:+.1f} [{100 * at.low:+.1f}, {100 * at.high:+.1f}]"
            cells = (point["name"], new, unknown, right, way, f"{100 * gain:+.1f}", said)
            lines.append(f"| {' | '.join(cells)} | {'yes' if inside[-1][1] else '**no**'} |")
    head = (KEPT / "section.md").read_text("utf-8").split("| | ")[0] if lines else ""
    columns = "| | new, known | new, unknown | matches right | way | measured | expected | within |"
    table = [columns, "|---|---:|---:|---:|---|---:|---:|---|", *lines]
    (KEPT / "section.md").write_text(head + "\n".join(table) + "\n", encoding="utf-8")
    for of_fit in (True, False):
        some = [(good, away) for fitted_too, good, away in inside if fitted_too == of_fit]
        print(of_fit, sum(g for g, _ in some), len(some), np.mean([a for _, a in some]))


def _point(point: dict[str, Any]) -> Point:
    return Point(*(point[name] for name in Point._fields))


def _fit(points: list[dict[str, Any]], way: str) -> Fit:
    having = [point for point in points if point["gains"].get(way)]
    gains = [float(np.mean([*point["gains"][way].values()])) for point in having]
    return Fit.of_points([_point(point) for point in having], gains)


if __name__ == "__main__":
    main()
