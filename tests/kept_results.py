"""Results of a suite as tests look at them and change them, in the current folder."""

from pathlib import Path

from kbert_lab.suites.results import Records
from kbert_lab.suites.suite import slug


def records(suite="tiny", results="results"):
    return Records(Path(results, f"{suite}.jsonl.xz"))


def results_of(suite="tiny", results="results"):
    """Every result by the name of its row and seed, as "k-bert-graph-seed1"."""
    every = records(suite, results).all().items()
    return {f"{slug(row)}-seed{seed}": result for (row, seed), result in every}


def result_of(name, suite="tiny", results="results"):
    return results_of(suite, results)[name]


def keep(*results, suite="tiny"):
    """Keep results that were changed."""
    records(suite).add(results)


def remove(*names, suite="tiny"):
    left = [result for name, result in results_of(suite).items() if name not in names]
    records(suite).path.unlink()
    keep(*left, suite=suite)
