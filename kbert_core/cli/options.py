"""What the options that several commands share mean."""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbert_core.errors import CheckpointError
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.aliases import AliasRelations
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions, Strategy
from kbert_core.knowledge.surface_forms import RULES, NameRules

if TYPE_CHECKING:  # not imported to run: they need PyTorch
    from kbert_core.checkpoints.checkpoint import Card
    from kbert_core.kbert.ablation import Ablation

DEFAULT_MODEL = "models/medical-ner-kbert"


def graph_of(args: argparse.Namespace) -> KnowledgeGraph:
    """The graph of every ``--kg``, in order; an empty one without any."""
    aliases = AliasRelations.default_and(args.alias, args.alias_of)
    return load_graph(*(args.kg or ()), skip_bad=args.skip_bad, aliases=aliases)


def add_alias_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which relations give other names."""
    for option, names in (
        ("--alias", "its tail is another name of the head"),
        ("--alias-of", "its head is another name of the tail"),
    ):
        parser.add_argument(
            option,
            action="append",
            default=[],
            metavar="RELATION",
            help=f"{names}; beside the usual ones (别名, synonym_of, …); repeatable",
        )


def injection_of(args: argparse.Namespace, base: InjectionOptions) -> InjectionOptions:
    """The injection options: those given, else those of a card."""
    given: dict[str, Any] = {}
    if args.max_triples is not None:
        given["max_triples"] = args.max_triples
    if args.tail_only is not None:
        given["tail_only"] = args.tail_only
    for name in ("relations", "not_relations", "first_relations"):
        if getattr(args, name):
            given[name] = tuple(getattr(args, name))
    if args.strategy is not None and args.strategy != base.strategy:
        base = replace(base, threshold=None, one_sense=False, scorer=None, strategy=Strategy.FIRST)
        given["strategy"] = Strategy(args.strategy)
    if args.names:
        given["names"] = NameRules.of(args.names)
    for name in ("threshold", "one_sense", "scorer"):
        if getattr(args, name) is not None:
            given[name] = getattr(args, name)
    return replace(base, **given)


def add_selection_options(parser: argparse.ArgumentParser) -> None:
    """Options that say which triples of a mention are injected."""
    add = parser.add_argument
    add("--max-triples", type=int, metavar="N", help="triples per mention")
    add(
        "--tail-only",
        action=argparse.BooleanOptionalAction,
        help="inject tails without relations, or with them",
    )
    add("--relations", nargs="+", metavar="R", help="use only these relations")
    add("--not-relations", nargs="+", metavar="R", help="use none of these relations")
    add("--first-relations", nargs="+", metavar="R", help="triples of these come first")
    add(
        "--names",
        nargs="+",
        metavar="RULE",
        help="how a name may differ from the graph's: all (default), as-written, or some of "
        f"{', '.join(RULES)}",
    )
    add(
        "--strategy",
        choices=[str(strategy) for strategy in Strategy],
        help="how triples are chosen: first in graph order (default), tail_in_text, context "
        "(similar to the sentence), rare relations, learned (by a scorer of kbert select-train)",
    )
    add(
        "--threshold",
        type=float,
        metavar="X",
        help="leave out triples that score less (context, rare, learned)",
    )
    add(
        "--one-sense",
        action=argparse.BooleanOptionalAction,
        help="of a name with several entities, use the one whose best triple scores highest",
    )
    add(
        "--scorer",
        metavar="DIR|NAME",
        help="for context, an encoder to compare with (default: the model's own); for learned, "
        "the folder of the scorer",
    )


def ablation_of(args: argparse.Namespace, card: "Card") -> "Ablation":
    """How trees are read: as given, else as the model was trained, else as in the paper."""
    trained = card.reading.ablation
    return replace(
        trained,
        positions=args.positions or trained.positions,
        visible=args.visible or trained.visible,
    )


def model_of(args: argparse.Namespace) -> str:
    """The model named, else the one that comes with the program."""
    if args.model:
        return str(args.model)
    for folder in (Path(), Path(__file__).resolve().parents[1]):
        if (folder / DEFAULT_MODEL / "config.json").is_file():
            return str(folder / DEFAULT_MODEL)
    raise CheckpointError(f"No model given and no {DEFAULT_MODEL} here. Name one with --model DIR.")


def print_result(
    args: argparse.Namespace,
    data: Callable[[Any], dict[str, Any]],
    text: Callable[[Any], str],
    value: Any,
) -> None:
    """One result: text for reading, or JSON; of a file's texts always JSON, one object a line."""
    lines = getattr(args, "file", None) is not None
    if not args.json and not lines:
        print(text(value))
        return
    print(json.dumps(data(value), ensure_ascii=False, indent=None if lines else 1), flush=lines)
