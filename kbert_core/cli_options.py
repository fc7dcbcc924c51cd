"""What the options that several commands share mean."""

import argparse
from dataclasses import replace
from typing import Any

from kbert_core.ablation import Ablation
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions, Strategy
from kbert_core.pipeline import Card


def graph_of(args: argparse.Namespace) -> KnowledgeGraph:
    """The graph of every ``--kg``, in order; an empty one without any."""
    return KnowledgeGraph.from_files(*(args.kg or ()), skip_bad=args.skip_bad)


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


def ablation_of(args: argparse.Namespace, card: Card) -> Ablation:
    """How trees are read: as given, else as the model was trained, else as in the paper."""
    trained = card.ablation
    return Ablation(args.positions or trained.positions, args.visible or trained.visible)
