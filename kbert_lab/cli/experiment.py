"""`kbert experiment`: options in, a grid run, results and their table out."""

import logging
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from kbert_core.errors import ExperimentError, OptionError
from kbert_lab.cli.commands import Repeated, command
from kbert_lab.cli.output import show, table
from kbert_lab.files import or_refused

if TYPE_CHECKING:  # not imported to run: it needs PyTorch
    from kbert_lab.suites.grid import Experiment
    from kbert_lab.suites.results import Cell, Status, Tables

log = logging.getLogger(__name__)


@command("experiment")
def experiment(
    args: Namespace,
    suite: tuple[str, ...],
    *,
    list: bool = False,
    only: Repeated = (),
    seeds: tuple[int, ...] = (),
    again: bool = False,
    jobs: int = 1,
    device: str = "auto",
    results: str = "results",
    work: str = "runs/experiments",
    merge: Repeated = (),
) -> None:
    """Run a grid of trainings and compare them.

    Runs that are done are skipped, and one that was cut off goes on. A result is stale, and is made
    again, when the suite, the data, a graph or the encoder has changed since. The exit code is 2
    if a run failed; the scores are printed then too.

    Args:
        suite (SUITE): suite files (.yaml), each taken once
        list: run nothing; show what is done, stale, failed and left
        only (RUN): run only this row, under one or all conditions; repeatable
        seeds: only these seeds
        again: also run what is done already
        jobs: processes at a time
        device: auto, cpu or cuda
        results (DIR): folder for the results, one file per suite
        work (DIR): folder for splits and checkpoints; may be deleted
        merge (FILE): first take over results made elsewhere, .jsonl.xz; repeatable
    """
    from kbert_lab.training.devices import started_together

    if (together := started_together()) > 1:
        raise OptionError(
            f"`kbert experiment` was started in {together} processes, as by torchrun, and each "
            "would run the same suite. Start it once, without torchrun, and give --jobs "
            f"{together} for as many runs at a time."
        )
    if jobs < 1:
        raise OptionError(f"--jobs is {jobs}, expected at least 1.")
    experiments = _experiments([*dict.fromkeys(suite)], Path(results), Path(work))
    _take_over(merge, experiments)
    planned = [(each, each.cells(only=only, seeds=seeds)) for each in experiments]
    _check_folder("--results", Path(results), written=not list)
    for each in experiments:
        _check_folder("--work", each.work, written=not list)
    report: dict[str, Any] = {"suites": {}, "failed": []}
    _run(args, planned, report)
    for each in experiments:
        report["suites"][each.suite.name] |= _compared(each.tables())
    show(report, list_text, args)
    if report["failed"]:
        raise ExperimentError(
            f"Failed: {'; '.join(report['failed'])}. The errors are above and in the work "
            "folder; the same command tries once more."
        )


def _experiments(suites: Sequence[str], results: Path, work: Path) -> "list[Experiment]":
    """The suites named, each with its results and its folder to work in."""
    from kbert_lab.suites.grid import Experiment
    from kbert_lab.suites.suite import read_suite

    experiments = [Experiment(read_suite(path), results, work) for path in suites]
    names = [experiment.suite.name for experiment in experiments]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"Two suites have the name '{twice}'. Give one another name.")
    return experiments


def _take_over(files: Sequence[str], experiments: "Sequence[Experiment]") -> None:
    """Add results that were made elsewhere."""
    from kbert_lab.suites.results import Records

    names = [experiment.suite.name for experiment in experiments]
    for file in files:
        results = Records(Path(file)).all().values()
        of = {str(result.get("suite")) for result in results}
        if not of or not of <= {*names}:
            held = (
                f"holds results of {', '.join(sorted(of))}" if of else "is missing or holds nothing"
            )
            raise OptionError(f"--merge {file}: {held}, expected some of {', '.join(names)}.")
        for experiment in experiments:
            if own := [r for r in results if r["suite"] == experiment.suite.name]:
                experiment.records.add(own)


def _run(
    args: Namespace, planned: "list[tuple[Experiment, tuple[Cell, ...]]]", report: dict[str, Any]
) -> None:
    """Run what is left, or only list it; how every cell stands goes into the report."""
    from kbert_lab.suites.runner import duration, run_all, seconds_left

    if not args.list:
        for experiment, cells in planned:
            for cell in cells:
                experiment.inputs(cell)  # refused before anything runs
    for experiment, cells in planned:
        name = experiment.suite.name
        statuses = [experiment.status(cell) for cell in cells]
        todo = [s.cell for s in statuses if args.again or s.state != "done"]
        if not args.list and todo:
            left = seconds_left(statuses, todo, args.jobs)
            about = f", about {duration(left)}" if left is not None else ""
            log.info("%s: %d runs to do%s", name, len(todo), about)
            failed = run_all(experiment, todo, device=args.device, jobs=args.jobs)
            report["failed"] += map(str, failed)
            statuses = [experiment.status(cell) for cell in cells]
        todo = [status.cell for status in statuses if status.state != "done"]
        report["suites"][name] = {
            "cells": [_standing(status) for status in statuses],
            "seconds_left": seconds_left(statuses, todo, args.jobs) if todo else 0.0,
        }


def _compared(tables: "Tables") -> dict[str, Any]:
    """The scores of every row on test, and what each gains over those it is compared with."""
    differences: dict[str, dict[str, Any]] = {}
    for metric in tables.main_metrics:
        for (row, other), difference in tables.differences(metric).items():
            differences.setdefault(f"{row} − {other}", {})[metric.name] = asdict(difference)
    return {"scores": tables.summary(), "differences": differences}


def _standing(status: "Status") -> dict[str, Any]:
    values = {name: value for name, value in vars(status).items() if name != "cell"}
    return {"run": status.cell.row.name, "seed": status.cell.seed, **values}


def list_text(report: Mapping[str, Any]) -> str:
    """How every suite stands and what came out, for reading."""
    from kbert_lab.suites.runner import duration

    lines = []
    for name, suite in report["suites"].items():
        cells, left = suite["cells"], suite["seconds_left"]
        took = [None if (t := cell["seconds"]) is None else duration(t) for cell in cells]
        rows = (
            {**cell, "seconds": time, "unchecked": None}
            for cell, time in zip(cells, took, strict=True)
        )
        unchecked = dict.fromkeys(why for cell in cells for why in cell["unchecked"].values())
        done = sum(cell["state"] == "done" for cell in cells)
        time = "no run to tell the time left by" if left is None else f"about {duration(left)} left"
        left_too = f", {time}" if done < len(cells) else ""
        lines += [name, *table(rows, shown=0), f"  {done} of {len(cells)} done{left_too}"]
        lines += [f"  not checked: {why}" for why in unchecked]
        lines += ["", *table(_scores(suite["scores"]), shown=0)]
        lines += ["", *table(_gains(suite["differences"]), shown=0)]
    return "\n".join(lines).strip()


def _scores(scores: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A line a row that was run: mean and deviation over its seeds of each figure."""
    from kbert_lab.study.statistics import Spread, per_cent

    for row, of in scores.items():
        figures = {name: score for name, score in of.items() if isinstance(score, Mapping)}
        if figures:
            spreads = {name: Spread(f["mean"], f["deviation"]) for name, f in figures.items()}
            written = {name: per_cent(spread) for name, spread in spreads.items()}
            yield {"on test, %": row, "seeds": of["seeds"], **written}


def _gains(differences: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A line a comparison: each figure's difference, with its interval."""
    from kbert_lab.study.statistics import Difference, in_points

    for pair, figures in differences.items():
        written = {name: in_points(Difference(**of), "") for name, of in figures.items()}
        yield {"difference, points": pair, **written}


def _check_folder(option: str, folder: Path, *, written: bool) -> None:
    doing = "written to" if written else "read"
    with or_refused(f"{option}: {folder}", OptionError, "Name another folder.", doing=doing):
        if written:
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
        else:
            with suppress(FileNotFoundError):
                os.scandir(folder).close()
