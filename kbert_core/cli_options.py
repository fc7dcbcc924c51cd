"""What the options that several commands share mean."""

import argparse
from dataclasses import replace
from typing import Any

from kbert_core.ablation import Ablation
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
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
    if args.relations:
        given["relations"] = tuple(args.relations)
    return replace(base, **given)


def ablation_of(args: argparse.Namespace, card: Card) -> Ablation:
    """How trees are read: as given, else as the model was trained, else as in the paper."""
    trained = card.ablation
    return Ablation(args.positions or trained.positions, args.visible or trained.visible)
