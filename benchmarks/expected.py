"""What an audit expects of a graph, fitted on the map, and beside what trainings measured.

    python -m benchmarks.expected          # count, fit, write
    python -m benchmarks.expected --fit    # fit again from the counts that are kept

A point is one data set and graph, the mean over its seeds. Counting reads the data and makes the
graphs again (KBERT_DATA) and keeps what it found beside the gains in results/expected/points.json.
The fits go to kbert_core/experiments/expected.json. results/expected/section.md shows every point
as it is predicted without it, once with the share of new names that BERT finds, once without: a
point of the map or of a split with that point left out, another data set by a fit that has never
seen it.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable
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
KINDS = {False: "expected", True: "expected with BERT at hand"}
FITTED = {  # suite → its rows, in the order of WAYS
    "map": ("K-BERT (paper)", "Dictionary over BERT", "Dictionary through a gate, over BERT"),
    "medical-ner-official": (*MEDICAL, GATE),
    "medical-ner-dedup": (*MEDICAL, GATE),
    "medical-ner-random": (*MEDICAL, GATE),
    "medical-ner-disjoint": (*MEDICAL, GATE),
}
TRIED = {  # never fitted: other texts, other graphs, another language
    "ner-en": ("K-BERT, English medical graph", MEDICAL[1], GATE),
    "weibo-ner": ("K-BERT (paper), HowNet", MEDICAL[1], GATE),
    "resume-ner": ("K-BERT (paper), HowNet", MEDICAL[1], GATE),
    "msra-ner": ("K-BERT (paper), HowNet", MEDICAL[1], GATE),
}


def counted() -> list[dict[str, Any]]:
    """What the suites measured and what their data and graphs hold, a point a condition."""
    points = []
    for name, rows in {**FITTED, **TRIED}.items():
        experiment = Experiment(read_suite(ROOT / "results" / "suites" / f"{name}.yaml"))
        tables = experiment.tables(resamples=1)
        gains: dict[str, dict[str, dict[int, float]]] = defaultdict(dict)
        counts: dict[str, list[dict[str, float]]] = defaultdict(list)
        for row in experiment.suite.rows:
            way = dict(zip(rows, WAYS, strict=True)).get(row.called)
            if way is None or row.compare_with is None:
                continue
            condition = row.in_words
            scores = tables.resampled.score(row.name, tables.metrics[0])
            bert = tables.resampled.score(row.compare_with, tables.metrics[0])
            seeds = sorted({*scores.seeds} & {*bert.seeds}) if scores and bert else []
            gains[condition][way] = {s: scores.seeds[s] - bert.seeds[s] for s in seeds}
            if way == "K-BERT":  # the counts are of data and graph, whatever is done with them
                of_bert = tables.results[row.compare_with]
                counts[condition] = [_counts(experiment, row, of_bert, s) for s in seeds]
        for condition, of in gains.items():
            means = {n: _mean(c[n] for c in counts[condition]) for n in ("new", "wrong", "found")}
            said = {way: {str(s): round(g, 6) for s, g in by.items()} for way, by in of.items()}
            named = f"{name}: {condition}" if condition else name
            points.append({"name": named, "fitted": name in FITTED, **means, "gains": said})
    return points


def _counts(experiment: Experiment, row: Any, of_bert: Any, seed: int) -> dict[str, float]:
    task = experiment.suite.task
    splits = read_present(str(experiment.split(seed, row.unseen)[0]), task)
    splits = {name: splits[name] for name in ("train", "test")}
    graph, _ = experiment.graph(row, seed)
    tokenizer = plain_tokenizer(Data("", task, splits))
    point = expected.point_of(audit(splits, graph, task=task, tokenizer=tokenizer).splits["test"])
    assert point is not None
    found = of_bert[seed]["scores"]["test"]["unseen"]["recall"]
    return {name: round(value, 6) for name, value in {**point._asdict(), "found": found}.items()}


def _mean(values: Iterable[float]) -> float:
    return float(np.mean([*values]))


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
    fits = {way: fit_of(fitted, way).as_dict() for way in WAYS}
    path = Path(expected.__file__).with_name("expected.json")
    path.write_text(json.dumps(fits, indent=1) + "\n", encoding="utf-8")
    lines, hits = [], defaultdict(list)
    for point in points:
        for way, by_seed in ((way, by) for way, by in point["gains"].items() if by):
            gain, said = _mean(by_seed.values()), []
            fit = fit_of([other for other in fitted if other is not point], way)
            for kind in KINDS:
                found = point["found"] if kind else None
                at = fit.among(point["new"], point["wrong"], found)
                within = at.low <= gain <= at.high
                hits[kind, point["fitted"]].append((within, 100 * abs(at.mean - gain)))
                guess = f"{points_of(at.mean)} [{points_of(at.low)}, {points_of(at.high)}]"
                said.append(guess if within else f"{guess} **no**")
            shares = (f"{100 * point[name]:.0f} %" for name in ("new", "wrong", "found"))
            cells = (
                point["name"].replace("medical-ner-", "clinical, "),
                *shares,
                way,
                points_of(gain),
                *said,
            )
            lines.append(f"| {' | '.join(cells)} |")
    told = [
        f"{'map and splits' if of_fit else 'others'}, {KINDS[kind]}: {sum(w for w, _ in of)} of "
        f"{len(of)} inside, {_mean(away for _, away in of):.1f} points off on average"
        for (kind, of_fit), of in hits.items()
    ]
    about = (KEPT / "section.md").read_text("utf-8").split("| | ")[0].split("In sum: ")[0]
    shares = "new, right in the dictionary", "wrong in it", "BERT finds"
    columns = ("", *shares, "way", "measured", *KINDS.values())
    table = [f"| {' | '.join(columns)} |", "|---|---:|---:|---:|---|---:|---:|---:|", *lines]
    text = "\n".join([f"In sum: {'; '.join(told)}.", "", *table])
    (KEPT / "section.md").write_text(f"{about}{text}\n", encoding="utf-8")


def points_of(gain: float) -> str:
    """A gain in points, with a true minus."""
    return f"{100 * gain:+.1f}".replace("-", "−")


def fit_of(points: list[dict[str, Any]], way: str) -> Fit:
    """The fit to points for a way."""
    having = [point for point in points if point["gains"].get(way)]
    gains = [_mean(point["gains"][way].values()) for point in having]
    at = [Point(point["new"] * (1 - point["found"]), point["wrong"]) for point in having]
    return Fit.of_points(at, gains, WAYS[way])


if __name__ == "__main__":
    main()
