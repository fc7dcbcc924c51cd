"""What the options that several commands share mean."""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbert_core.errors import CheckpointError
from kbert_core.knowledge.aliases import AliasRelations
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions

if TYPE_CHECKING:  # not imported to run: they need PyTorch
    from kbert_core.ablation import Ablation
    from kbert_core.pipeline import Card

DEFAULT_MODEL = "models/medical-ner-kbert"


def graph_of(args: argparse.Namespace) -> KnowledgeGraph:
    """The graph of every ``--kg``, in order; an empty one without any."""
    aliases = AliasRelations.default_and(args.alias, args.alias_of)
    return KnowledgeGraph.from_files(*(args.kg or ()), skip_bad=args.skip_bad, aliases=aliases)


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
    if args.relations:
        given["relations"] = tuple(args.relations)
    return replace(base, **given)


def ablation_of(args: argparse.Namespace, card: "Card") -> "Ablation":
    """How trees are read: as given, else as the model was trained, else as in the paper."""
    trained = card.ablation
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
