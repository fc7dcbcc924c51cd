"""`kbert experiment`: options in, a grid run, results and a report out."""

import logging
import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from kbert_core.errors import ExperimentError, OptionError
from kbert_lab.cli.commands import TRAINING_DEVICE, argument, command
from kbert_lab.cli.output import show, table

if TYPE_CHECKING:  # not imported to run: it needs PyTorch
    from kbert_lab.suites.grid import Experiment
    from kbert_lab.suites.results import Cell, Status, Tables

SHOWN = 3  # runs that are missing
log = logging.getLogger(__name__)


@command(
    "experiment",
    argument("suite", "suite files (.yaml), each taken once", nargs="+", metavar="SUITE"),
    argument("--list", "only show what is done, stale, failed and left", False),
    argument(
        "--only", "run only this row, under one or all conditions; repeatable", [], metavar="RUN"
    ),
    argument("--seeds", "only these seeds", type=int, nargs="+", metavar="N"),
    argument("--again", "also run what is done already", False),
    argument("--jobs", "processes at a time", 1),
    TRAINING_DEVICE,
    argument("--results", "folder for the results, one file per suite", "results", metavar="DIR"),
    argument(
        "--work",
        "folder for splits and checkpoints; may be deleted",
        "runs/experiments",
        metavar="DIR",
    ),
    argument(
        "--report",
        "the report, .md, with a folder of pages and pictures; default: in --results",
        metavar="FILE",
    ),
    argument("--findings", "the report's text, in which figures are filled in", metavar="FILE"),
    argument("--published", "figures published by others, for the report (.yaml)", metavar="FILE"),
    argument("--appendix", "Markdown of a page of the report; repeatable", [], metavar="FILE"),
    argument("--report-only", "only write the report", False),
    argument(
        "--merge",
        "first take over results made elsewhere, .jsonl.xz; repeatable",
        [],
        metavar="FILE",
    ),
)
def experiment(args: Namespace) -> None:
    """Run a grid of trainings and compare them.

    Runs that are done are skipped, and one that was cut off goes on. A result is stale, and is made
    again, when the suite, the data, a graph or the encoder has changed since. The exit code is 2
    if a run failed; the report is printed then too.
    """
    from kbert_lab.suites.report import write_report
    from kbert_lab.training.trainer import started_together

    if (together := started_together()) > 1:
        raise OptionError(
            f"`kbert experiment` was started in {together} processes, as by torchrun, and each "
            "would run the same suite. Start it once, without torchrun, and give --jobs "
            f"{together} for as many runs at a time."
        )
    if args.jobs < 1:
        raise OptionError(f"--jobs is {args.jobs}, expected at least 1.")
    args.suite = [*dict.fromkeys(args.suite)]
    experiments = _experiments(args)
    names = [experiment.suite.name for experiment in experiments]
    name = names[0] if len(names) == 1 else "report"
    output = Path(args.report) if args.report else Path(args.results) / f"{name}.md"
    if output.suffix != ".md":
        raise OptionError(f"--report is {output}, expected the name of a .md file.")
    wanted = [] if args.report_only else experiments
    planned = [(each, each.cells(only=args.only, seeds=args.seeds or ())) for each in wanted]
    _check_files(args, names)
    report: dict[str, Any] = {"suites": {}, "failed": []}
    _run(args, planned, report)
    if not args.list:
        tables = [experiment.tables() for experiment in experiments]
        files = write_report(
            tables,
            output,
            findings=Path(args.findings) if args.findings else None,
            published=Path(args.published) if args.published else None,
            appendices=[Path(name) for name in args.appendix],
            command=_report_command(args, output),
        )
        log.info("report: %s", output)
        _warn_of_missing(tables)
        report["report"] = [*map(str, files)]
        for each in tables:
            report["suites"].setdefault(each.suite.name, {})["scores"] = each.summary()
    show(report, list_text, args)
    if report["failed"]:
        raise ExperimentError(
            f"Failed: {'; '.join(report['failed'])}. The errors are above and in the work "
            "folder; the same command tries once more."
        )


def _experiments(args: Namespace) -> "list[Experiment]":
    """The suites named, each with its results and its folder to work in."""
    from kbert_lab.suites.grid import Experiment
    from kbert_lab.suites.results import Records
    from kbert_lab.suites.suite import check_side_by_side, read_suite

    places = Path(args.results), Path(args.work)
    experiments = [Experiment(read_suite(path), *places) for path in args.suite]
    names = [experiment.suite.name for experiment in experiments]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"Two suites have the name '{twice}'. Give one another name.")
    check_side_by_side([experiment.suite for experiment in experiments])
    for file in args.merge:
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
    return experiments


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


def _warn_of_missing(tables: "Sequence[Tables]") -> None:
    """Name the runs that a report lacks."""
    for each in tables:
        cells = [(row, seed) for row in each.suite.rows for seed in row.seeds]
        missing = [
            f"{row.name}, seed {seed}"
            for row, seed in cells
            if seed not in each.results.get(row.name, {})
        ]
        if missing:
            some = "; ".join([*missing[:SHOWN], "…"][: len(missing)])
            log.warning(
                "%s: %d of %d runs are missing in the report, which says so: %s. The same command "
                "without --report-only, --only and --seeds runs them.",
                *(each.suite.name, len(missing), len(cells), some),
            )


def _standing(status: "Status") -> dict[str, Any]:
    values = {name: value for name, value in vars(status).items() if name != "cell"}
    return {"run": status.cell.row.name, "seed": status.cell.seed, **values}


def list_text(report: Mapping[str, Any]) -> str:
    """How every suite stands, for reading."""
    from kbert_lab.suites.runner import duration

    lines = []
    for name, suite in report["suites"].items():
        if "cells" not in suite:  # only a report was asked for
            continue
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
    return "\n".join([*lines, *(f"report: {file}" for file in report.get("report", [])[:1])])


def _check_files(args: Namespace, names: Sequence[str]) -> None:
    """Look at what is read and written, so that nothing runs for hours before it fails."""
    runs = not args.list and not args.report_only
    _check_folder("--results", Path(args.results), written=runs)
    for name in names:
        _check_folder("--work", Path(args.work) / name, written=runs)
    if args.list:
        return
    if args.report:
        _check_folder("--report", Path(args.report).parent, written=True)
    read = [("--findings", args.findings), ("--published", args.published)]
    for option, file in [*read, *(("--appendix", name) for name in args.appendix)]:
        if file is None:
            continue
        try:
            Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(
                f"{option} {file}: can't be read ({error}). Give a file in UTF-8, or leave "
                f"{option} out."
            ) from error


def _check_folder(option: str, folder: Path, *, written: bool) -> None:
    try:
        if written:
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
        else:
            with suppress(FileNotFoundError):
                os.scandir(folder).close()
    except OSError as error:
        raise OptionError(
            f"{option}: {folder} can't be {'written to' if written else 'read'} "
            f"({error.strerror}). Name another folder."
        ) from error


def _report_command(args: Namespace, output: Path) -> str:
    words = ["kbert experiment", *_in_short(args.suite), "--report-only"]
    words += ["--findings", args.findings] if args.findings else []
    words += [word for name in args.appendix for word in ("--appendix", name)]
    words += ["--published", args.published] if args.published else []
    return " ".join([*words, "--report", str(output)])


def _in_short(paths: Sequence[str]) -> Sequence[str]:
    """Write the suites of a whole folder, but for some that come first, as ``FOLDER/*.yaml``."""
    folder = Path(paths[0]).parent
    every = sorted(str(path) for path in folder.glob("*.yaml"))
    for number in range(len(paths) - 1):
        if list(paths[number:]) == [path for path in every if path not in paths[:number]]:
            return [*paths[:number], str(folder / "*.yaml")]
    return paths
