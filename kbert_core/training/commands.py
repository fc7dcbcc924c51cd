"""`kbert train` and `kbert evaluate`: options in, a report out."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from kbert_core.ablation import Ablation
from kbert_core.errors import CheckpointError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline, card_of
from kbert_core.tasks import TASKS
from kbert_core.training.datasets import find_split, read_examples
from kbert_core.training.evaluate import edit_response, evaluate, surface_forms
from kbert_core.training.finetune import SCRATCH, TrainOptions, train
from kbert_core.training.items import Recipe

RECIPE_HELP = {
    "counterfactual": "share of gold mentions trained with another type and its label",
    "mention_dropout": "share of gold mentions with branches whose characters are hidden",
    "branch_dropout": "share of branches left out",
    "tree_dropout": "share of sentences trained without knowledge",
}


def add_train_options(parser: argparse.ArgumentParser) -> None:
    """Options of `kbert train` that no other command has."""
    defaults = {f.name: f.default for f in fields(TrainOptions)}
    parser.add_argument("--task", required=True, choices=list(TASKS), help="kind of task")
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="where the model goes; a cut-off run goes on"
    )
    parser.add_argument(
        "--encoder",
        default=SCRATCH,
        metavar="DIR|NAME|scratch",
        help="encoder to start from: a folder, a hub name, or a new small BERT (default)",
    )
    for name, kind in (("epochs", int), ("seed", int), ("batch_tokens", int), ("patience", int)):
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, type=kind, default=defaults[name], help=_field_help(name))
    parser.add_argument("--learning-rate", type=float, help="default: by the encoder's width")
    parser.add_argument("--dropout", type=float, default=defaults["dropout"])
    parser.add_argument("--hidden-size", type=int, default=256, help="of a BERT from scratch")
    parser.add_argument("--layers", type=int, default=4, help="of a BERT from scratch")
    parser.add_argument("--float32", action="store_true", help="save single, not half precision")
    for field in fields(Recipe):
        flag = "--" + field.name.replace("_", "-")
        parser.add_argument(flag, type=float, default=0.0, help=RECIPE_HELP[field.name])


def add_evaluate_options(parser: argparse.ArgumentParser) -> None:
    """Options of `kbert evaluate` that no other command has."""
    parser.add_argument(
        "--train-data",
        metavar="FILE",
        help="training set, to report recall on entities unseen in it and the response to edits",
    )
    parser.add_argument(
        "--edits", action="store_true", help="also measure the response to edited triples"
    )
    parser.add_argument("--seed", type=int, default=0, help="which other type an edit takes")


def run_train(args: argparse.Namespace) -> dict[str, Any]:
    """Train as the command line says; returns the report."""
    base = card_of(args.encoder).options
    return train(
        TrainOptions(
            task=args.task,
            data=args.data,
            output=args.output,
            encoder=args.encoder,
            kg=tuple(args.kg or ()),
            injection=injection_of(args, base),
            max_length=args.max_length,
            ablation=Ablation(args.positions, args.visible),
            recipe=Recipe(**{f.name: getattr(args, f.name) for f in fields(Recipe)}),
            epochs=args.epochs,
            batch_tokens=args.batch_tokens,
            learning_rate=args.learning_rate,
            dropout=args.dropout,
            hidden_size=args.hidden_size,
            num_hidden_layers=args.layers,
            patience=args.patience,
            seed=args.seed,
            device=args.device,
            half=not args.float32,
            command=command_line(),
        )
    )


def run_evaluate(args: argparse.Namespace) -> dict[str, Any]:
    """Score a model as the command line says, beside the run without knowledge."""
    pipeline = Pipeline.load(args.model, device=args.device)
    if pipeline.task is None:
        raise CheckpointError(
            f"{args.model} has no task head, so nothing to score. Train one with `kbert train`."
        )
    path = Path(args.data)
    if path.is_dir():
        path = find_split(path, "test")
    examples = read_examples(path, pipeline.task.name)
    graph = KnowledgeGraph.from_files(*args.kg) if args.kg else NO_KNOWLEDGE
    options = injection_of(args, pipeline.card.options)
    ablation = Ablation(args.positions, args.visible)
    seen = None
    if args.train_data:
        seen = surface_forms(read_examples(args.train_data, pipeline.task.name))
    common: dict[str, Any] = {
        "options": options,
        "ablation": ablation,
        "max_length": args.max_length,
        "seen": seen,
    }
    report = {
        "model": str(args.model),
        "data": str(path),
        "kg": list(args.kg or ()),
        "scores": evaluate(pipeline, examples, graph, **common),
    }
    if args.kg:
        report["without_knowledge"] = evaluate(pipeline, examples, NO_KNOWLEDGE, **common)
    types = (pipeline.card.notes or {}).get("type_labels") or {}
    if args.edits and types and seen is not None:
        report["edit_response"] = edit_response(
            pipeline, examples, graph, types, seen=seen, options=options, seed=args.seed
        )
    return report


def injection_of(args: argparse.Namespace, base: InjectionOptions) -> InjectionOptions:
    """The injection options: those given, else those of a card."""
    given: dict[str, Any] = {}
    if args.max_triples is not None:
        given["max_triples"] = args.max_triples
    if args.tail_only:
        given["tail_only"] = True
    if getattr(args, "relations", None):
        given["relations"] = tuple(args.relations)
    return replace(base, **given)


def report_text(report: Mapping[str, Any]) -> str:
    """A report for reading: scores beside those without knowledge, and by label."""
    lines = []
    for key, title in (("scores", "with knowledge"), ("without_knowledge", "graph off")):
        found = report.get(key, {})
        splits = found if "dev" in found or "test" in found else {"": found} if found else {}
        for split, scores in splits.items():
            lines += _scores_text(f"{split}, {title}" if split else title, scores)
    return "\n".join(lines)


def _scores_text(title: str, scores: Mapping[str, Any]) -> list[str]:
    shares = ("precision", "recall", "f1", "accuracy", "macro_f1")
    lines = [f"{title:26}" + "".join(f"  {n} {100 * scores[n]:.1f}" for n in shares if n in scores)]
    if "perplexity" in scores:
        lines[0] += f"  perplexity {scores['perplexity']:.2f}"
    for label, own in scores.get("by_label", {}).items():
        numbers = "".join(f"  {n} {100 * own[n]:.1f}" for n in shares[:3])
        lines.append(f"  {label:24}{numbers}  of {own['gold']}")
    if "unseen" in scores:
        unseen = scores["unseen"]
        share = 100 * unseen["recall"]
        lines.append(f"  recall {share:.1f} on {unseen['gold']} entities unseen in training")
    return lines


def command_line() -> str:
    """The command as it was typed, for the card; no folder of this machine in it."""
    return " ".join(["kbert", *map(_portable, sys.argv[1:])])


def _portable(word: str) -> str:
    path, data = Path(word), os.environ.get("KBERT_DATA")
    if data and path.is_relative_to(data):
        return f'"$KBERT_DATA"/{shlex.quote(str(path.relative_to(data)))}'
    return shlex.quote(path.name if path.is_absolute() else word)


def print_report(report: Mapping[str, Any], *, as_json: bool) -> None:
    """Write a report to standard output."""
    if as_json:
        print(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        print(report_text(report))


def _field_help(name: str) -> str:
    return {
        "epochs": "times through the training set",
        "seed": "of everything random",
        "batch_tokens": "tokens a batch, padding included",
        "patience": "epochs without a better dev score before stopping; 0: never",
    }[name]
