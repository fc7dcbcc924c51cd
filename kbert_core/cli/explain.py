"""`kbert explain`: what injected knowledge does to a prediction; one sub-command an explanation.

This is the parser. What runs and prints is in the modules that ``COMMANDS``
names, which need PyTorch and are imported when a command is run.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from kbert_core.cli.train_options import add_columns
from kbert_core.errors import OptionError

OWN = "kbert_core.cli.explain_effects"
READINGS = "kbert_core.cli.explain_readings"
FILE = "kbert_core.cli.explain_file"
ORDERS = 64
KINDS = ("remove", "replace", "add")  # of candidates.py, which needs PyTorch


@dataclass(frozen=True)
class Command:
    """One explanation on the command line.

    Attributes:
        name: of the sub-command.
        help: in a line.
        module: whose ``RUNS`` has under the name what makes a result of the
            arguments, with ``as_dict()`` and ``figure()``, and what makes
            text of the result.
        options: adds what only it takes.
        of_text: whether it explains one text; else it adds its own input.
    """

    name: str
    help: str
    module: str = OWN
    options: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    of_text: bool = True


def add_explain_commands(
    parser: argparse.ArgumentParser, model_options: Callable[[argparse.ArgumentParser], None]
) -> None:
    """Add every explanation.

    Args:
        parser: of `kbert explain`.
        model_options: adds the options of `kbert predict` on model, graph and reading.
    """
    kinds = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        one = kinds.add_parser(command.name, help=command.help, description=command.help)
        one.add_argument("--json", action="store_true", help="print JSON")
        one.add_argument("--picture", type=Path, metavar="FILE", help="draw it: .png, .svg or .pdf")
        if command.of_text:
            one.add_argument("text", nargs="*", help="a sentence, or two for a pair")
            one.add_argument(
                "--target",
                metavar="LABEL",
                help="class, entity type, O, or token to explain; default: what is predicted",
            )
            one.add_argument(
                "--span",
                metavar="START:END",
                help="which span or [MASK] to explain, in characters; default: the first with "
                "knowledge on it",
            )
        command.options(one)
        model_options(one)
        one.set_defaults(run=lambda args, command=command: _run(args, command))


def _run(args: argparse.Namespace, command: Command) -> None:
    make, text = import_module(command.module).RUNS[command.name]
    result = make(args)
    if args.picture is not None:
        save_picture(result.figure(), args.picture)
    if args.json:
        print(json.dumps(result.as_dict(), ensure_ascii=False, indent=1))
    else:
        print(text(result))


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure to a file.

    Raises:
        OptionError: the ending is unknown, or the file can't be written.
    """
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise OptionError(f"{path}: a picture ends in .png, .svg or .pdf. Name it so.")
    try:
        figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None)
    except OSError as error:
        raise OptionError(
            f"{path}: can't be written ({error.strerror}). Name another file with --picture."
        ) from error


def _by_mention(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by-mention", action="store_true", help="a triple at each mention by itself"
    )


def _effects_options(parser: argparse.ArgumentParser) -> None:
    _by_mention(parser)
    parser.add_argument(
        "--left-out-only", action="store_true", help="don't delete triples from the graph as well"
    )


def _shapley_options(parser: argparse.ArgumentParser) -> None:
    _by_mention(parser)
    parser.add_argument(
        "--orders", type=int, default=ORDERS, metavar="N", help=f"to draw; default: {ORDERS}"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the draw; default: 0")
    parser.add_argument(
        "--exact",
        action=argparse.BooleanOptionalAction,
        help="run every subset; default: where there are few triples",
    )


def _search_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--to", metavar="LABEL", help="what it shall become; default: anything else")
    add(
        "--kinds",
        nargs="+",
        choices=KINDS,
        default=KINDS,
        help="of changes; default: all of them",
    )
    add("--budget", type=int, default=200, metavar="N", help="model runs; default: 200")
    add("--most", type=int, default=20, metavar="N", help="stop at so many; default: 20")
    add(
        "--most-edits",
        type=int,
        default=3,
        metavar="N",
        help="at most so many changes together; default: 3",
    )
    add(
        "--larger-too",
        action="store_true",
        help="go on to larger sets of changes where smaller ones were found",
    )
    add("--seed", type=int, default=0, help="of the changes that are drawn; default: 0")


def _influence_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--token", type=int, default=0, metavar="N", help="which to follow; default: 0, [CLS]"
    )
    parser.add_argument(
        "--window",
        type=int,
        metavar="N",
        help="which window of a long text, from 0; default: the first with knowledge",
    )


def _noise_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--counts",
        type=int,
        nargs="+",
        default=(0, 1, 2, 4, 8, 16),
        metavar="N",
        help="unrelated triples a mention gets; default: 0 1 2 4 8 16",
    )
    add(
        "--seeds",
        type=int,
        nargs="+",
        default=(1, 2, 3),
        metavar="N",
        help="of what is drawn; default: 1 2 3",
    )
    add(
        "--noise-from",
        nargs="+",
        metavar="FILE",
        help="graphs whose relations and tails are drawn; default: the same graph's",
    )


def _compare_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--beside",
        nargs="+",
        metavar="DIR",
        help="other models that read the same, at most two; default: BERT, K-BERT, hard "
        "positions, everything visible",
    )


def _file_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", required=True, metavar="FILE|DIR|hf:NAME", help="labelled texts")
    add("--split", default="dev", help="of a folder; default: dev")
    add("--most", type=int, metavar="N", help="read only the first N texts")
    add_columns(parser)
    add("--by", choices=["label", "entity", "relation", "triple"], default="relation")
    add("--attention", action="store_true", help="rank correlation of attention and effect")
    add(
        "--prune",
        choices=["counts", "leave-one-out"],
        help="take out of the graph what hurts more texts than it helps, as counted over the "
        "texts it stood in, or by leaving it out of each",
    )
    add("--what", choices=["triple", "relation"], default="triple", help="what is taken out")
    add("--least", type=int, default=1, metavar="N", help="so many more hurt than helped")
    add("--output", type=Path, metavar="FILE", help="where to put the pruned graph")
    add(
        "--test",
        metavar="FILE",
        help="other texts, to read the pruned graph on; default: DIR's test",
    )


COMMANDS: tuple[Command, ...] = (
    Command(
        "effects",
        "leave every triple out, and delete it from the graph: the exact effect on a prediction",
        options=_effects_options,
    ),
    Command("interactions", "what every two triples do together beyond the sum"),
    Command(
        "shapley",
        "share the whole effect out among the triples: Shapley values",
        options=_shapley_options,
    ),
    Command("attention", "attention on every triple beside its effect"),
    Command(
        "counterfactuals",
        "search for the smallest changes of the graph that flip a prediction",
        READINGS,
        _search_options,
    ),
    Command(
        "influence",
        "where each triple can have come by which layer, and what it changed there",
        READINGS,
        _influence_options,
    ),
    Command(
        "noise", "a prediction as unrelated triples are added", READINGS, options=_noise_options
    ),
    Command(
        "compare",
        "BERT, K-BERT and its ablations side by side, or several models, and why two are equal",
        READINGS,
        _compare_options,
    ),
    Command(
        "file",
        "read a labelled file with the graph and without: where it helps and where it hurts",
        FILE,
        _file_options,
        of_text=False,
    ),
)
