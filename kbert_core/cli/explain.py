"""`kbert explain`: what injected knowledge does to a prediction; one sub-command an explanation.

This is what is typed. What runs and prints is in ``explanations`` and ``explain_file``, which need
PyTorch and are imported when a command is run.
"""

from argparse import BooleanOptionalAction, Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

from kbert_core.cli.commands import Argument, argument, command, several
from kbert_core.cli.output import show
from kbert_core.cli.shared import COLUMNS, MODEL
from kbert_core.errors import OptionError

KINDS = ("remove", "replace", "add")  # of candidates.py, which needs PyTorch
PICTURE = argument("--picture", type=Path, metavar="FILE", help="draw it: .png, .svg or .pdf")
TEXT = several(
    argument("text", nargs="*", help="a sentence, or two for a pair"),
    argument(
        "--target",
        metavar="LABEL",
        help="class, entity type, O, or token to explain; default: what is predicted",
    ),
    argument(
        "--span",
        metavar="START:END",
        help="which span or [MASK] to explain, in characters; default: the first with "
        "knowledge on it",
    ),
)
BY_MENTION = argument(
    "--by-mention", action="store_true", help="a triple at each mention by itself"
)


def explanation(
    name: str,
    help: str,
    *arguments: Argument,
    module: str = "explanations",
    of: Argument = TEXT,
) -> None:
    """Add an explanation.

    Args:
        name: of the command, and of the function that makes its result of the
            arguments: with ``as_dict()`` and ``figure()``, and made text by
            the function NAME_text.
        help: in a line.
        arguments: what only it takes.
        module: where these functions are.
        of: what is explained.
    """

    @command(f"explain {name}", help, PICTURE, of, *arguments, MODEL)
    def run(args: Namespace) -> None:
        home = import_module(f"kbert_core.cli.{module}")
        result = getattr(home, name)(args)
        if args.picture is not None:
            save_picture(result.figure(), args.picture)
        show(result, getattr(home, f"{name}_text"), args)


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


explanation(
    "effects",
    "leave every triple out, and delete it from the graph: the exact effect on a prediction",
    BY_MENTION,
    argument(
        "--left-out-only", action="store_true", help="don't delete triples from the graph as well"
    ),
)
explanation("interactions", "what every two triples do together beyond the sum")
explanation(
    "shapley",
    "share the whole effect out among the triples: Shapley values",
    BY_MENTION,
    argument("--orders", type=int, default=64, metavar="N", help="to draw; default: 64"),
    argument("--seed", type=int, default=0, help="of the draw; default: 0"),
    argument(
        "--exact",
        action=BooleanOptionalAction,
        help="run every subset; default: where there are few triples",
    ),
)
explanation("attention", "attention on every triple beside its effect")
explanation(
    "counterfactuals",
    "search for the smallest changes of the graph that flip a prediction",
    argument("--to", metavar="LABEL", help="what it shall become; default: anything else"),
    argument(
        "--kinds",
        nargs="+",
        choices=KINDS,
        default=KINDS,
        help="of changes; default: all of them",
    ),
    argument("--budget", type=int, default=200, metavar="N", help="model runs; default: 200"),
    argument("--most", type=int, default=20, metavar="N", help="stop at so many; default: 20"),
    argument(
        "--most-edits",
        type=int,
        default=3,
        metavar="N",
        help="at most so many changes together; default: 3",
    ),
    argument(
        "--larger-too",
        action="store_true",
        help="go on to larger sets of changes where smaller ones were found",
    ),
    argument("--seed", type=int, default=0, help="of the changes that are drawn; default: 0"),
)
explanation(
    "influence",
    "where each triple can have come by which layer, and what it changed there",
    argument(
        "--token", type=int, default=0, metavar="N", help="which to follow; default: 0, [CLS]"
    ),
    argument(
        "--window",
        type=int,
        metavar="N",
        help="which window of a long text, from 0; default: the first with knowledge",
    ),
)
explanation(
    "noise",
    "a prediction as unrelated triples are added",
    argument(
        "--counts",
        type=int,
        nargs="+",
        default=(0, 1, 2, 4, 8, 16),
        metavar="N",
        help="unrelated triples a mention gets; default: 0 1 2 4 8 16",
    ),
    argument(
        "--seeds",
        type=int,
        nargs="+",
        default=(1, 2, 3),
        metavar="N",
        help="of what is drawn; default: 1 2 3",
    ),
    argument(
        "--noise-from",
        nargs="+",
        metavar="FILE",
        help="graphs whose relations and tails are drawn; default: the same graph's",
    ),
)
explanation(
    "compare",
    "BERT, K-BERT and its ablations side by side, or several models, and why two are equal",
    argument(
        "--beside",
        nargs="+",
        metavar="DIR",
        help="other models that read the same, at most two; default: BERT, K-BERT, hard "
        "positions, everything visible",
    ),
)
explanation(
    "file",
    "read a labelled file with the graph and without: where it helps and where it hurts",
    argument("--split", default="dev", help="of a folder; default: dev"),
    argument("--most", type=int, metavar="N", help="read only the first N texts"),
    COLUMNS,
    argument("--by", choices=["label", "entity", "relation", "triple"], default="relation"),
    argument("--attention", action="store_true", help="rank correlation of attention and effect"),
    argument(
        "--prune",
        choices=["counts", "leave-one-out"],
        help="take out of the graph what hurts more texts than it helps, as counted over the "
        "texts it stood in, or by leaving it out of each",
    ),
    argument("--what", choices=["triple", "relation"], default="triple", help="what is taken out"),
    argument("--least", type=int, default=1, metavar="N", help="so many more hurt than helped"),
    argument("--output", type=Path, metavar="FILE", help="where to put the pruned graph"),
    argument(
        "--test",
        metavar="FILE",
        help="other texts, to read the pruned graph on; default: DIR's test",
    ),
    module="explain_file",
    of=argument("--data", required=True, metavar="FILE|DIR|hf:NAME", help="labelled texts"),
)
