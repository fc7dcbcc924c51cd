"""Rows of a suite trained in another way than a suite can say, beside the rows themselves."""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import machine, print_table
from kbert_core.experiments.counts import score_run
from kbert_core.experiments.grid import Experiment
from kbert_core.experiments.results import write_json
from kbert_core.experiments.statistics import METRICS, Resampled, unpacked
from kbert_core.experiments.suite import Run, train_options
from kbert_core.training.finetune import Fitted, fit


def arguments(about: str | None, work: Path) -> argparse.Namespace:
    """The options, one thread for all, and the folder where what is done is kept."""
    parser = argparse.ArgumentParser(description=(about or "").split("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=(1, 2, 3))
    parser.add_argument("--work", type=Path, default=work)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    return args


def trained(experiment: Experiment, run: Run, seed: int, folder: Path, **more: Any) -> Fitted:
    """Train as a row says, with other options beside."""
    suite = experiment.suite
    return fit(
        train_options(
            suite,
            run,
            seed=seed,
            data=str(experiment.split(seed)[0]),
            kg=experiment.graph_files(run, seed)[0],
            encoder=suite.resolved(run.encoder),
            output=str(folder),
            **more,
        )
    )


def scored(experiment: Experiment, folder: Path, train: Callable[[], Fitted]) -> dict[str, Any]:
    """Train and score as the suite does, or take what was scored before."""
    path = folder.with_name(f"{folder.name}.json")
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    began = time.monotonic()
    fitted = train()
    found, _, _ = score_run(fitted, experiment.covering)
    found["seconds"] = round(time.monotonic() - began)
    found["rows"] = {split: len(of) for split, of in fitted.splits.items()}
    write_json(path, found)
    return found


def beside(
    result: Path,
    about: Mapping[str, Any],
    experiment: Experiment,
    made: Mapping[str, Mapping[int, Mapping[str, Any]]],
    pairs: Sequence[tuple[str, str]],
) -> None:
    """Compare what was made, by title and seed, with others or the suite's rows; keep, and print.

    Args:
        pairs: a title, and what it is beside.
    """
    counts = dict(experiment.tables(resamples=1).resampled.counts)
    for title, of in made.items():
        counts[title] = {
            seed: unpacked(one["sentences"], experiment.split(seed)[1]) for seed, one in of.items()
        }
    resampled, rows = Resampled(counts), []
    for title, other in pairs:
        for metric in METRICS[experiment.suite.task]:
            one = resampled.score(title, metric)
            two = resampled.difference(title, other, metric)
            assert one is not None and two is not None
            rows.append(
                {
                    "row": title,
                    "beside": other,
                    "metric": metric.name,
                    "score": round(100 * one.mean, 2),
                    "by seed": {seed: round(100 * value, 2) for seed, value in one.seeds.items()},
                    "difference": round(100 * two.mean, 2),
                    "interval": [round(100 * two.low, 2), round(100 * two.high, 2)],
                }
            )
    write_json(result, {**about, "machine": machine("torch", "transformers"), "rows": rows})
    shown = ("row", "beside", "metric", "score", "difference", "interval")
    print_table([shown, *([str(row[name]) for name in shown] for row in rows)])
