"""Options of `kbert experiment`, apart so that `--help` is quick."""

import argparse


def add_experiment_options(parser: argparse.ArgumentParser) -> None:
    """Options of `kbert experiment`."""
    add = parser.add_argument
    add("suite", nargs="+", metavar="SUITE", help="suite files (.yaml), each taken once")
    add("--list", action="store_true", help="show what is done, stale, failed and left, and stop")
    add("--only", action="append", default=[], metavar="RUN", help="this run; repeatable")
    add("--seeds", type=int, nargs="+", default=[], metavar="N", help="only these seeds")
    add("--again", action="store_true", help="run also what is done")
    add("--jobs", type=int, default=1, metavar="N", help="processes at a time; default: 1")
    add("--device", default="auto", help="auto, cpu or cuda")
    add("--keep-models", action="store_true", help="keep the trained models, in the work folder")
    add("--results", default="results", metavar="DIR", help="one JSON a run; default: results")
    add(
        "--work",
        default="runs/experiments",
        metavar="DIR",
        help="splits, checkpoints; may be deleted; default: runs/experiments",
    )
    add(
        "--report",
        metavar="FILE",
        help="where the report goes (.md), with .html and pictures beside it; "
        "default: in the folder of the results",
    )
    add("--published", metavar="FILE", help="figures published by others, for the report (.yaml)")
    add(
        "--appendix",
        action="append",
        default=[],
        metavar="FILE",
        help="a section of the report made elsewhere, Markdown with links from the report's "
        "folder; repeatable",
    )
    add("--report-only", action="store_true", help="run nothing, write the report")
    parser.epilog = (
        "What is done is skipped, and a run that was cut off goes on. A result is stale, and is "
        "made again, when the suite, the data, a graph or the encoder has changed since. "
        "The exit code is 2 if a run failed."
    )
