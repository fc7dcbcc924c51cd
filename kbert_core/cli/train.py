"""`kbert pretrain`, `train` and `evaluate`: options in, a report out."""

import argparse
import json
import logging
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from kbert_core.checkpoints.checkpoint import Card, card_of
from kbert_core.cli.options import ablation_of, graph_of, injection_of
from kbert_core.cli.score_text import report_text
from kbert_core.data.columns import parse_columns
from kbert_core.data.guess import TASKS, guess_task, other_task
from kbert_core.data.labelled import Example, check_labels
from kbert_core.data.sources import read_split
from kbert_core.errors import CheckpointError, DataError, OptionError, SplitError
from kbert_core.experiments.release import release_count
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_core.training import processes
from kbert_core.training.edit_scores import edit_response
from kbert_core.training.evaluate import evaluate, predict_all, scores_of, surface_forms
from kbert_core.training.finetune import train
from kbert_core.training.matches import tell_of_matches
from kbert_core.training.options import SCRATCH, PretrainOptions, Recipe, TrainOptions
from kbert_core.training.pretrain import pretrain

log = logging.getLogger(__name__)


def run_train(args: argparse.Namespace) -> dict[str, Any]:
    """Train as the command line says; returns the report."""
    _let_the_main_one_speak()
    if args.alias or args.alias_of:
        raise OptionError(
            "--alias and --alias-of say how a graph is read, and a training has to be repeatable "
            "from its card. Put them into a graph file with `kbert kg import`, and train with that."
        )
    base = Card() if args.encoder == SCRATCH else card_of(args.encoder)
    options = TrainOptions.of(
        task=args.task,
        data=args.data,
        train=args.train,
        dev=args.dev,
        test=args.test,
        dev_share=args.dev_share,
        columns=parse_columns(args.columns),
        also_train=tuple(args.also_train),
        output=args.output,
        encoder=args.encoder,
        kg=tuple(args.kg or ()),
        skip_bad=args.skip_bad,
        injection=injection_of(args, base.reading.options),
        max_length=args.max_length,
        ablation=ablation_of(args, base),
        recipe=Recipe(**{f.name: getattr(args, f.name) for f in fields(Recipe)}),
        adapter=args.adapter,
        adapter_alpha=args.adapter_alpha,
        epochs=args.epochs,
        negatives=args.negatives,
        batch_tokens=args.batch_tokens,
        accumulate=args.accumulate,
        learning_rate=args.learning_rate,
        dropout=args.dropout,
        hidden_size=args.hidden_size,
        num_hidden_layers=args.layers,
        patience=args.patience,
        seed=args.seed,
        device=args.device,
        bf16=args.bf16,
        log_every=args.log_every,
        float32=args.float32,
        command=command_line(),
    )
    _tell_of_a_second_text(
        options.files.named("train"), options.task, options.files.columns, "train"
    )
    with _naming_another_task(options.files.named("train"), options.task, options.files.columns):
        return train(options)


def run_pretrain(args: argparse.Namespace) -> dict[str, Any]:
    """Pretrain as the command line says; returns the report."""
    _let_the_main_one_speak()
    return pretrain(
        PretrainOptions.of(
            text=tuple(args.text),
            output=args.output,
            steps=args.steps,
            batch_tokens=args.batch_tokens,
            accumulate=args.accumulate,
            row_length=args.row_length,
            hidden_size=args.hidden_size,
            num_hidden_layers=args.layers,
            num_attention_heads=args.attention_heads,
            max_positions=args.max_positions,
            dropout=args.dropout,
            learning_rate=args.learning_rate,
            warmup=args.warmup,
            decay=args.decay,
            vocabulary_size=args.vocabulary_size,
            word_pieces=args.word_pieces,
            min_count=args.min_count,
            exclude=tuple(args.exclude),
            vocabulary=args.vocabulary,
            words=tuple(args.words),
            whole_words=args.whole_words,
            save_every=args.save_every,
            log_every=args.log_every,
            seed=args.seed,
            device=args.device,
            bf16=args.bf16,
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
    task, columns = pipeline.task.name, parse_columns(args.columns)
    _tell_of_a_second_text(args.data, task, columns, args.split)
    with _naming_another_task(args.data, task, columns, args.split):
        examples = read_split(args.data, args.split, task, columns)
        if task != "mask":
            check_labels(examples, list(pipeline.labels.values()), "the model")
    graph = graph_of(args)
    options = injection_of(args, pipeline.card.reading.options)
    ablation = ablation_of(args, pipeline.card)
    scorer = pipeline.kbert.scorer(options)
    tell_of_matches(examples, graph, options, Path(args.data).name, scorer=scorer)
    seen = None
    if args.train_data:
        seen = surface_forms(read_split(args.train_data, "train", task, columns))
    common: dict[str, Any] = {
        "options": options,
        "ablation": ablation,
        "max_length": args.max_length,
        "seen": seen,
    }
    types = (pipeline.card.notes or {}).get("type_labels") or {}
    if args.edits and not (types and args.kg and seen is not None):
        raise OptionError(
            "--edits needs a --kg, --train-data, and a model whose card says which tails name "
            f"its labels ({'this one does' if types else 'this one does not'}). "
            "Give them, or leave --edits out."
        )
    report = {
        "model": str(args.model),
        "data": examples[0].source.name if examples[0].source else args.data,
        "kg": list(args.kg or ()),
        "scores": _scored(pipeline, examples, graph, release=args.release, **common),
    }
    if args.kg:
        report["without_knowledge"] = _scored(
            pipeline, examples, NO_KNOWLEDGE, release=args.release, **common
        )
    if args.edits:
        report["edit_response"] = edit_response(
            pipeline,
            examples,
            graph,
            types,
            **{**common, "seen": seen or set()},
            seed=args.seed,
        )
    return report


def _scored(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    *,
    release: bool,
    seen: set[str] | None,
    **reading: Any,
) -> dict[str, Any]:
    """Scores, and the released code's own count if it is asked for."""
    if not release:
        return evaluate(pipeline, examples, graph, seen=seen, **reading)
    assert pipeline.task is not None
    if pipeline.task.name != "ner":
        raise OptionError(
            f"--release counts named entities, and the model is for '{pipeline.task.name}'. "
            "Leave it out."
        )
    predictions = predict_all(pipeline, examples, graph, **reading)
    scores = scores_of("ner", examples, predictions, seen=seen)
    return {**scores, **release_count(pipeline, examples, graph, predictions, **reading)}


@contextmanager
def _naming_another_task(
    data: str, task: str, columns: Mapping[str, str], split: str = "train"
) -> Iterator[None]:
    """Add to an error of wrong data that they look like another task's, if they do."""
    try:
        yield
    except SplitError:  # says what is missing, not what is wrong
        raise
    except DataError as error:
        raise DataError(f"{error}{other_task(data, task, columns, split=split)}") from error


def _tell_of_a_second_text(data: str, task: str, columns: Mapping[str, str], split: str) -> None:
    if task != "classify" or columns:
        return
    with suppress(DataError):  # which the reader words better
        if (looks := guess_task(data, split=split)) in ("pair", "rank"):
            log.warning(
                "%s looks like %s, of which only the first text is read.", data, TASKS[looks]
            )


def _let_the_main_one_speak() -> None:
    if not processes.is_main():
        logging.getLogger("kbert_core").setLevel(logging.ERROR)


def command_line() -> str:
    """The command as it was typed, for the card; no folder of this machine in it."""
    return " ".join(["kbert", *map(_portable, sys.argv[1:])])


def _portable(word: str) -> str:
    path, data = Path(word), os.environ.get("KBERT_DATA")
    if data and path.is_relative_to(data):
        return f'"$KBERT_DATA"/{shlex.quote(str(path.relative_to(data)))}'
    return shlex.quote(path.name if path.is_absolute() else word)


def print_report(report: Mapping[str, Any], *, as_json: bool) -> None:
    """Write a report to standard output; of several processes the main one does."""
    if not processes.is_main():
        return
    if as_json:
        print(json.dumps(report, ensure_ascii=False, indent=1))
    else:
        print(report_text(report))
