"""`kbert experiment`: options in, a grid run, results and a report out."""

import logging
import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from kbert_core.cli.commands import argument, command
from kbert_core.cli.output import show, table
from kbert_core.errors import ExperimentError, OptionError

if TYPE_CHECKING:  # not imported to run: it needs PyTorch
    from kbert_core.experiments.grid import Status
    from kbert_core.experiments.results import Cell

log = logging.getLogger(__name__)


@command(
    "experiment",
    "run a grid of trainings and compare them",
    argument("suite", nargs="+", metavar="SUITE", help="suite files (.yaml), each taken once"),
    argument(
        "--list", action="store_true", help="show what is done, stale, failed and left, and stop"
    ),
    argument("--only", action="append", default=[], metavar="RUN", help="this run; repeatable"),
    argument("--seeds", type=int, nargs="+", default=[], metavar="N", help="only these seeds"),
    argument("--again", action="store_true", help="run also what is done"),
    argument("--jobs", type=int, default=1, metavar="N", help="processes at a time; default: 1"),
    argument("--device", default="auto", help="auto, cpu or cuda"),
    argument(
        "--keep-models", action="store_true", help="keep the trained models, in the work folder"
    ),
    argument(
        "--results", default="results", metavar="DIR", help="one JSON a run; default: results"
    ),
    argument(
        "--work",
        default="runs/experiments",
        metavar="DIR",
        help="splits, checkpoints; may be deleted; default: runs/experiments",
    ),
    argument(
        "--report",
        metavar="FILE",
        help="where the report goes (.md), with .html and pictures beside it; "
        "default: in the folder of the results",
    ),
    argument(
        "--published", metavar="FILE", help="figures published by others, for the report (.yaml)"
    ),
    argument(
        "--appendix",
        action="append",
        default=[],
        metavar="FILE",
        help="a section of the report made elsewhere, Markdown with links from the report's "
        "folder; repeatable",
    ),
    argument("--report-only", action="store_true", help="run nothing, write the report"),
    epilog="What is done is skipped, and a run that was cut off goes on. A result is stale, and is "
    "made again, when the suite, the data, a graph or the encoder has changed since. "
    "The exit code is 2 if a run failed.",
)
def run(args: Namespace) -> None:
    """Run, list or report as the command line says; the report is printed also where a run failed.

    Raises:
        OptionError: several processes were started for it, a number of jobs
            that can't be, two suites of one name, or a file or folder that
            can't be used.
        DataError: a suite has no such run or seed, or its data can't be used.
        ExperimentError: suites of different tasks are to stand side by side,
            or a run failed.
    """
    report = experiment(args)
    show(report, list_text, args)
    if report["failed"]:
        raise ExperimentError(
            f"Failed: {'; '.join(report['failed'])}. The errors stand above and in the work "
            "folder; the same command tries once more."
        )


def experiment(args: Namespace) -> dict[str, Any]:
    """The same.

    Returns:
        Per suite its cells as they stand now, and ``failed``: what went wrong
        in this call.
    """
    from kbert_core.experiments.grid import Experiment
    from kbert_core.experiments.report import summary, write_report
    from kbert_core.experiments.results import Places
    from kbert_core.experiments.runner import How, duration, run_all, seconds_left
    from kbert_core.experiments.side_by_side import check_tasks
    from kbert_core.experiments.suite import read_suite
    from kbert_core.experiments.tables import Tables
    from kbert_core.training.processes import started_together

    if (together := started_together()) > 1:
        raise OptionError(
            f"`kbert experiment` was started in {together} processes, as by torchrun, and each "
            "would run the same suite. Start it once, without torchrun, and give --jobs "
            f"{together} for as many runs at a time."
        )
    if args.jobs < 1:
        raise OptionError(f"--jobs is {args.jobs}, expected at least 1.")
    places = Places(Path(args.results), Path(args.work))
    args.suite = [*dict.fromkeys(args.suite)]
    experiments = [Experiment(read_suite(path), places) for path in args.suite]
    names = [experiment.suite.name for experiment in experiments]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise OptionError(f"Two suites have the name '{twice}'. Give one another name.")
    check_tasks([experiment.suite for experiment in experiments])
    how = How(args.device, args.jobs, args.keep_models)
    output = report_file(args, names)
    wanted = [] if args.report_only else experiments
    planned = [(each, each.cells(only=args.only, seeds=args.seeds)) for each in wanted]
    check_files(args, names)
    if not args.list:
        for experiment, cells in planned:
            for cell in cells:
                experiment.inputs(cell)  # refused before anything runs
    failed: list[Cell] = []
    report: dict[str, Any] = {"suites": {}}
    for experiment, cells in planned:
        statuses = [experiment.status(cell, with_what_is_there=args.list) for cell in cells]
        todo = [s.cell for s in statuses if args.again or s.state != "done"]
        if not args.list and todo:
            left = seconds_left(statuses, todo, args.jobs)
            said = f", about {duration(left)}" if left is not None else ""
            log.info("%s: %d runs to do%s", experiment.suite.name, len(todo), said)
            failed += run_all(experiment, todo, how)
            statuses = [experiment.status(cell) for cell in cells]
        report["suites"][experiment.suite.name] = listed(statuses, args.jobs)
    report["failed"] = [str(cell) for cell in failed]
    if not args.list:
        tables = [Tables.of(experiment) for experiment in experiments]
        published = Path(args.published) if args.published else None
        files = write_report(
            tables,
            output,
            published=published,
            appendices=[Path(name) for name in args.appendix],
            command=_report_command(args, output),
        )
        log.info("report: %s", output)
        report["report"] = [str(file) for file in files]
        for table in tables:
            report["suites"].setdefault(table.suite.name, {})["scores"] = summary(table)
    return report


def report_file(args: Namespace, names: Sequence[str]) -> Path:
    """Where the report goes.

    Raises:
        OptionError: that is no Markdown file.
    """
    name = names[0] if len(names) == 1 else "report"
    output = Path(args.report) if args.report else Path(args.results) / f"{name}.md"
    if output.suffix != ".md":
        raise OptionError(f"--report is {output}, expected the name of a .md file.")
    return output


def check_files(args: Namespace, names: Sequence[str]) -> None:
    """Check what is read and written, so that nothing runs for hours before it fails.

    Args:
        names: of the suites.

    Raises:
        OptionError: a folder can't be used, or a file for the report can't be read.
    """
    runs = not args.list and not args.report_only
    for option, folder in (("--results", args.results), ("--work", args.work)):
        for name in names:
            _check_folder(option, Path(folder) / name, written=runs)
    if args.list:
        return
    if args.report:
        _check_folder("--report", Path(args.report).parent, written=True)
    files = [("--published", args.published)] if args.published else []
    for option, file in [*files, *(("--appendix", name) for name in args.appendix)]:
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
            with TemporaryFile(dir=folder):
                pass
        else:
            with suppress(FileNotFoundError):
                os.scandir(folder).close()
    except OSError as error:
        raise OptionError(
            f"{option}: {folder} can't be {'written to' if written else 'read'} "
            f"({error.strerror}). Name another folder."
        ) from error


def _report_command(args: Namespace, output: Path) -> str:
    words = ["kbert experiment", *args.suite, "--report-only"]
    words += [word for name in args.appendix for word in ("--appendix", name)]
    words += ["--published", args.published] if args.published else []
    return " ".join([*words, "--report", str(output)])


def listed(statuses: "Sequence[Status]", jobs: int) -> dict[str, Any]:
    """How the cells of a suite stand, for JSON."""
    from kbert_core.experiments.runner import seconds_left

    todo = [status.cell for status in statuses if status.state != "done"]
    return {
        "cells": [
            {
                "run": status.cell.row.name,
                "seed": status.cell.seed,
                "state": status.state,
                "reason": status.reason,
                "seconds": status.seconds,
                "unchecked": dict(status.unchecked),
            }
            for status in statuses
        ],
        "seconds_left": seconds_left(statuses, todo, jobs) if todo else 0.0,
    }


def list_text(report: Mapping[str, Any]) -> str:
    """How every suite stands, for reading."""
    from kbert_core.experiments.runner import duration

    lines = []
    for name, suite in report["suites"].items():
        cells = suite.get("cells")
        if cells is None:  # only a report was asked for
            continue
        rows = []
        for cell in cells:
            took = duration(cell["seconds"]) if cell["seconds"] is not None else ""
            why = [cell["reason"]] if cell["reason"] else []
            why += [f"not checked: {', '.join(cell['unchecked'])}"] if cell["unchecked"] else []
            about = "  ".join([took, *why] if took else why)
            rows.append((f"  {cell['run']}", f"seed {cell['seed']}", cell["state"], about))
        todo = sum(cell["state"] != "done" for cell in cells)
        left = suite["seconds_left"]
        how_long = (
            "no run to tell the time left by" if left is None else f"about {duration(left)} left"
        )
        done = f"  {len(cells) - todo} of {len(cells)} done" + (f", {how_long}" if todo else "")
        lines += [name, *table((), rows), done]
    return "\n".join([*lines, *(f"report: {file}" for file in report.get("report", [])[:2])])
