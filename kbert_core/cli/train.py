"""`kbert pretrain`, `train`, `evaluate`, `select-train` and `convert`: models made and scored."""

import logging
import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbert_core.cli.commands import argument, build, command, given, options_of, titled
from kbert_core.cli.output import fields_text
from kbert_core.cli.scores import report_text
from kbert_core.cli.shared import (
    COLUMNS,
    DATA_SETS,
    FORM,
    GRAPH,
    MODEL,
    config_of,
    graph_of,
    injection_of,
    model_of,
    pipeline_of,
    system_of,
)
from kbert_core.data.columns import parse_columns
from kbert_core.data.guess import TASKS, guess_task, other_task
from kbert_core.data.labelled import Example, check_labels
from kbert_core.data.sources import read_split
from kbert_core.errors import DataError, OptionError, SplitError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.training.options import (
    SCRATCH,
    PretrainOptions,
    Recipe,
    StartOptions,
    TrainOptions,
)

if TYPE_CHECKING:  # not imported to run: it needs PyTorch
    from kbert_core.pipeline import Pipeline

LOOKED_AT = 2000  # rows, evenly spread; more say the same
log = logging.getLogger(__name__)


@command(
    "pretrain",
    "pretrain an encoder without knowledge",
    options_of(PretrainOptions),
    text=fields_text,
)
def pretrain(args: Namespace) -> dict[str, Any] | None:
    """Masked-language-model pretraining without knowledge."""
    from kbert_core.training.pretrain import pretrain

    options = build(PretrainOptions, args, command=command_line())
    return _by_the_main_one(lambda: pretrain(options))


@command(
    "train",
    "fine-tune a model with knowledge or without",
    GRAPH,
    FORM,
    options_of(TrainOptions, without=("kg", "skip_bad", "max_length")),
    titled(
        "what happens to knowledge in training (shares from 0 to 1, default 0)", options_of(Recipe)
    ),
    text=report_text,
)
def train(args: Namespace) -> dict[str, Any] | None:
    """Fine-tune with knowledge or without."""
    from kbert_core.checkpoints.checkpoint import Card, card_of, reading_of
    from kbert_core.training.finetune import train

    if args.alias or args.alias_of:
        raise OptionError(
            "--alias and --alias-of say how a graph is read, and a training has to be repeatable "
            "from its card. Put them into a graph file with `kbert kg import`, and train with that."
        )
    encoder = given(args, StartOptions).get("encoder", SCRATCH)
    base = Card() if encoder == SCRATCH else card_of(encoder)
    system = system_of(args) or base.system
    reading = config_of(args, reading_of(system, base.reading))
    options = build(
        TrainOptions,
        args,
        kg=tuple(args.kg),
        skip_bad=args.skip_bad,
        injection=reading.options,
        ablation=reading.ablation,
        max_length=args.max_length,
        recipe=build(Recipe, args),
        command=command_line(),
    )
    data = options.files.named("train"), options.task, options.files.columns, "train"
    _tell_of_a_second_text(*data)
    with _naming_another_task(*data):
        return _by_the_main_one(lambda: train(options))


@command(
    "evaluate",
    "score a model on labelled data",
    argument(
        "--data",
        required=True,
        metavar="FILE|DIR|hf:NAME",
        help=f"a labelled .tsv, .conll, .parquet, .csv or .json; {DATA_SETS}",
    ),
    MODEL,
    argument(
        "--split",
        default="test",
        choices=("train", "dev", "test"),
        help="which part of a folder or data set; default: test",
    ),
    COLUMNS,
    argument(
        "--train-data",
        metavar="FILE",
        help="training set, to tell entities seen in it from those unseen",
    ),
    argument(
        "--edits",
        action="store_true",
        help="also measure the response to replaced and added triples (needs --train-data)",
    ),
    argument(
        "--release",
        action="store_true",
        help="also count named entities as the released K-BERT does, to compare published figures",
    ),
    argument("--seed", type=int, default=0, help="which other type an edit takes"),
    text=report_text,
)
def evaluate(args: Namespace) -> dict[str, Any]:
    """Score a model, beside the run without knowledge."""
    from kbert_core.pipeline import NO_KNOWLEDGE
    from kbert_core.training.edit_scores import edit_response
    from kbert_core.training.evaluate import surface_forms, tell_of_matches

    pipeline = pipeline_of(args, why="so there is nothing to score. Train one with `kbert train`.")
    assert pipeline.task is not None
    task, columns = pipeline.task.name, parse_columns(args.columns)
    _tell_of_a_second_text(args.data, task, columns, args.split)
    with _naming_another_task(args.data, task, columns, args.split):
        examples = read_split(args.data, args.split, task, columns)
        if task != "mask":
            check_labels(examples, list(pipeline.labels.values()), "the model")
    graph = graph_of(args)
    config = config_of(args, pipeline.config)
    if len(graph):
        some = [e.sentences for e in examples[:: max(1, len(examples) // LOOKED_AT)]]
        used = [bool(own.used) for own in pipeline.readings(some, graph=graph, config=config)]
        tell_of_matches(used, Path(args.data).name, relations=bool(config.options.relations))
    seen = None
    if args.train_data:
        seen = surface_forms(read_split(args.train_data, "train", task, columns))
    types = (pipeline.card.notes or {}).get("type_labels") or {}
    if args.edits and not (types and args.kg and seen is not None):
        raise OptionError(
            "--edits needs a --kg, --train-data, and a model whose card says which tails name "
            f"its labels ({'this one does' if types else 'this one does not'}). "
            "Give them, or leave --edits out."
        )
    how: dict[str, Any] = {"config": config, "seen": seen, "release": args.release}
    report = {
        "model": model_of(args),
        "data": examples[0].source.name if examples[0].source else args.data,
        "kg": list(args.kg),
        "scores": _scores(pipeline, examples, graph, **how),
    }
    if args.kg:
        report["without_knowledge"] = _scores(pipeline, examples, NO_KNOWLEDGE, **how)
    if args.edits:
        report["edit_response"] = edit_response(
            pipeline, examples, graph, types, seen=seen or set(), seed=args.seed, config=config
        )
    return report


def _scores(
    pipeline: "Pipeline",
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    *,
    release: bool,
    seen: set[str] | None,
    config: Any,
) -> dict[str, Any]:
    """Scores, and the released code's own count if it is asked for."""
    from kbert_core.experiments.release import release_count
    from kbert_core.training.evaluate import evaluate, predict_all, scores_of

    if not release:
        return evaluate(pipeline, examples, graph, seen=seen, config=config)
    assert pipeline.task is not None
    if pipeline.task.name != "ner":
        raise OptionError(
            f"--release counts named entities, and the model is for '{pipeline.task.name}'. "
            "Leave it out."
        )
    predictions = predict_all(pipeline, examples, graph, config=config)
    scores = scores_of("ner", examples, predictions, seen=seen)
    return {**scores, **release_count(pipeline, examples, graph, predictions, config=config)}


@command(
    "select-train",
    "learn which triples lower a model's loss",
    GRAPH,
    argument(
        "--model", required=True, metavar="DIR", help="whose loss is to fall; one with labels"
    ),
    argument(
        "--data", required=True, metavar="FILE|DIR|hf:NAME", help=f"training set; {DATA_SETS}"
    ),
    argument("--output", required=True, metavar="DIR", help="where the scorer goes"),
    argument("--max-texts", type=int, default=1000, metavar="N", help="texts tried; default: 1000"),
    argument(
        "--noise",
        type=int,
        default=0,
        metavar="K",
        help="give every mention K triples of other entities, to learn to leave such out; "
        "default: 0",
    ),
    argument("--seed", type=int, default=0, help="of texts, triples and noise; default: 0"),
    argument("--device", default="auto", help="auto, cpu or cuda"),
    text=fields_text,
)
def select_train(args: Namespace) -> dict[str, Any]:
    """Learn which triples lower a model's loss."""
    from kbert_core.checkpoints.checkpoint import card_of
    from kbert_core.training.select_train import train_scorer

    graph = graph_of(args, needed=True)
    return train_scorer(
        args.model,
        args.data,
        args.output,
        graph,
        injection_of(args, card_of(args.model).reading.options),
        encoder=getattr(args, "scorer", None),
        max_texts=args.max_texts,
        noise=args.noise,
        seed=args.seed,
        device=args.device,
        command=command_line(),
    )


@command(
    "convert",
    "bring in a checkpoint of the released K-BERT",
    argument("source", type=Path, help="a .bin file, or a folder that holds one"),
    argument("target", type=Path, help="folder for the safetensors model"),
    argument("--vocab", type=Path, metavar="FILE", help="vocabulary, one token a line"),
    argument("--config", type=Path, metavar="FILE", help="JSON of sizes"),
    argument("--heads", type=int, metavar="N", help="attention heads; default: width/64"),
    text=fields_text,
)
def convert(args: Namespace) -> dict[str, Any]:
    """Bring a checkpoint of the released code in."""
    from kbert_core.checkpoints.convert import convert

    report = convert(
        args.source, args.target, vocab=args.vocab, config=args.config, heads=args.heads
    )
    return asdict(report)


@contextmanager
def _naming_another_task(
    data: str, task: str, columns: Mapping[str, str], split: str
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


def _by_the_main_one(run: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """Run in each of several processes, of which the main one alone logs and reports."""
    from kbert_core.training import processes

    if processes.is_main():
        return run()
    logging.getLogger("kbert_core").setLevel(logging.ERROR)
    run()
    return None


def command_line() -> str:
    """The command as it was typed, for the card; no folder of this machine in it."""
    return " ".join(["kbert", *map(_portable, sys.argv[1:])])


def _portable(word: str) -> str:
    path, data = Path(word), os.environ.get("KBERT_DATA")
    if data and path.is_relative_to(data):
        return f'"$KBERT_DATA"/{shlex.quote(str(path.relative_to(data)))}'
    return shlex.quote(path.name if path.is_absolute() else word)
