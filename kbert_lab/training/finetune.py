"""Fine-tuning with knowledge, through Hugging Face's trainer."""

import hashlib
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from transformers.trainer_utils import set_seed

from kbert_core.checkpoints.checkpoint import Card, device_named
from kbert_core.checkpoints.encoders import encoder_name
from kbert_core.errors import DataError, OptionError
from kbert_core.knowbert.knowbert import KnowBertReader
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.compression import plain_stem
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_core.tasks import TASKS
from kbert_lab.data.labelled import (
    Example,
    check_labels,
    labels_of,
    surface_forms,
    warn_of_rare_labels,
)
from kbert_lab.data.sources import read_split, read_splits
from kbert_lab.training import adapting, checkpoints
from kbert_lab.training.batches import LINKED, READ, TARGETS, Batches
from kbert_lab.training.cards import write_card
from kbert_lab.training.devices import is_main, join, shared, started_together
from kbert_lab.training.edits import edit_response
from kbert_lab.training.evaluate import evaluate, tell_of_matches
from kbert_lab.training.options import HOW_IT_RUNS, SCRATCH, TrainOptions
from kbert_lab.training.recipe import warn_of_no_effect
from kbert_lab.training.rows import RowMaker
from kbert_lab.training.start import body_of, reading_in, started
from kbert_lab.training.trainer import Course, OrderedTrainer, arguments

MAIN_SCORE = {
    **{"ner": "f1", "classify": "accuracy", "multilabel": "f1", "pair": "accuracy"},
    **{"link": "f1", "mask": "mrr", "rank": "mrr", "qa": "f1"},
}
UNLABELLED = ("mask", "link", "qa")  # tasks whose labels aren't the data's
WARMUP = 0.1  # share of the steps in which the rate rises
NOT_THE_RUN = {  # may differ when a run goes on; fingerprints stand for data and graphs
    *("data", "train", "dev", "test", "dev_share", "columns", "also_train", "links", "link_share"),
    *("kg", "hiding_kg", "skip_bad", "float32", "batch_tokens", "accumulate", "patience"),
    *("system", "injection", "ablation", "windows", "base", "roof", *HOW_IT_RUNS),
}


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Fitted:
    """A trained model in memory, with what it was trained on."""

    pipeline: Pipeline  # of the best epoch on dev
    splits: Mapping[str, list[Example]]  # train, dev and, where there is one, test
    graph: KnowledgeGraph
    type_labels: Mapping[str, str]  # tails that name a label, see ``learn_type_labels``
    # by epoch: dev scores, the training loss in nats, and where asked for "test_" and its score
    curve: Sequence[Mapping[str, float]]
    attached: Any = None  # the adapter; None: the whole model was trained
    run: Mapping[str, str] = field(default_factory=dict)  # what makes it this run: ``digests``


def train(options: TrainOptions) -> dict[str, Any]:
    """Fine-tune a model, keep the best epoch on dev, score it on dev and test.

    Returns:
        Scores on dev and test with the knowledge trained with, without any,
        and for named entities the response to edits; also on the card. The
        same in every process. Where the output folder holds the model of this
        very run, its report as it was; ``again`` trains it again.

    Raises:
        DataError: the data can't be trained on, or the loss is no number;
            CheckpointError: the encoder can't be used, or there is no room to
            save; GraphFileError: a graph can't be read; OptionError: the
            output folder can't be used, or holds another run or its model.
    """
    fitted = _fitted(options, replacing_others=False)
    if not isinstance(fitted, Fitted):
        return fitted

    def finish() -> dict[str, Any]:
        report = _report(options, fitted)
        report["learning_curve"] = list(fitted.curve)
        save(options, fitted, notes={**report, "run": fitted.run})
        return report

    return shared(finish)


def fit(options: TrainOptions, *, test_curve: bool = False) -> Fitted:
    """Fine-tune a model and keep the best epoch on dev, in memory.

    With ``test_curve`` every epoch is scored on test as well; nothing is chosen by that.
    Checkpoints stay in the output folder until :func:`save` or the caller
    removes them; a finished model in it doesn't matter. Errors are those of
    :func:`train`.
    """
    fitted = _fitted(options, replacing_others=True, test_curve=test_curve)
    assert isinstance(fitted, Fitted)
    return fitted


def _fitted(
    options: TrainOptions, *, replacing_others: bool, test_curve: bool = False
) -> Fitted | dict[str, Any]:
    """The model of :func:`fit`; or the report of one that the same run has made before."""
    knowledge, steps, output = options.knowledge, options.optimiser, options.run.output
    device = device_named(options.run.device)
    join(device)
    set_seed(options.run.seed)
    task = TASKS[options.task]
    splits = read_splits(options.files, options.task, seed=options.run.seed)
    graph = load_graph(*knowledge.kg, skip_bad=knowledge.skip_bad)
    labels = [*task.labels]
    if task.name not in UNLABELLED:
        labels = labels_of(splits["train"])
        _check(splits, labels)
    config = reading_in(knowledge, options.start.encoder)

    def texts() -> Iterator[str]:
        yield from (text for example in splits["train"] for text in example.sentences)
        yield from (text for triple in graph for text in (triple.relation, triple.tail))

    start = started(options.start, task, labels, texts, device=str(device))
    card = Card(task.name, config, tuple(map(plain_stem, knowledge.kg)))
    card.write_to(start.model.config)
    start.model.to(device)  # type: ignore[arg-type]
    pipeline = Pipeline(start.model, start.tokenizer, card)
    encoder = options.start.encoder
    pipeline.reader.begin_training(task.name, None if encoder == SCRATCH else encoder)
    hides, known = bool(knowledge.hiding_kg), graph
    if hides:
        known = load_graph(*knowledge.hiding_kg, skip_bad=knowledge.skip_bad)
    maker = _rows(options, pipeline, splits["train"], labels, known, hides)
    last = checkpoints.last_checkpoint(output)
    links = _links(options, pipeline, graph)
    parts = steps.accumulate * started_together()
    batches = Batches(maker, options, parts=parts, links=links)
    rate = steps.learning_rate or start.learning_rate
    reading = {name: value for name, value in config.as_dict().items() if name != "max_length"}
    run = {
        **{name: value for name, value in options.flat().items() if name not in NOT_THE_RUN},
        **options.start.size,
        "kind": "train",
        "encoder": start.weights,
        "recipe": asdict(options.recipe),
        "learning_rate": rate,
        "system": config.system,
        **reading,
        "tokens a step": steps.batch_tokens * batches.parts,
        "training and dev data": _fingerprint(splits),
        "graph": known.fingerprint[:16],
        "the graph only hides": hides,
    }
    if links:
        run["links"] = _fingerprint({"train": links.examples, "dev": ()})
        run["link_share"] = options.link_share
    changing = {"patience": steps.patience, "precision to save in": not options.float32}
    how = {"begins": last is None, "replacing": replacing_others}
    if (report := checkpoints.begin(options.run, run, changing, **how)) is not None:
        return report

    def score() -> dict[str, float]:
        pipeline.reader.model.eval()
        name = MAIN_SCORE[options.task]
        scores = {name: evaluate(pipeline, splits["dev"], graph)[name]}
        if test_curve:
            scores[f"test_{name}"] = evaluate(pipeline, splits["test"], graph)[name]
        return scores

    trainer = _trainer(options, pipeline, batches, score, rate)
    trainer.train_on(last)
    pipeline.reader.model.eval()
    type_labels = {} if hides else maker.type_labels or {}
    curve = [{k: v for k, v in scores.items() if k != "seconds"} for scores in trainer.curve]
    made = checkpoints.digests({**run, **changing})
    return Fitted(pipeline, splits, graph, type_labels, curve, start.attached, made)


def _rows(
    options: TrainOptions,
    pipeline: Pipeline,
    examples: Sequence[Example],
    labels: Sequence[str],
    graph: KnowledgeGraph,
    only_hides: bool,
) -> RowMaker:
    """What makes the rows of the training set."""
    assert pipeline.task is not None
    numbers = {label: number for number, label in enumerate(labels)}
    how: dict[str, Any] = {"recipe": options.recipe, "seed": options.run.seed}
    how["only_hides"] = only_hides
    maker = RowMaker(examples, pipeline.task, pipeline.reader, numbers, graph, **how)
    if is_main() and len(graph) and not only_hides:
        relations = bool(pipeline.config.options.relations)
        tell_of_matches([bool(text.used) for text in maker.texts], "train", relations=relations)
    warn_of_no_effect(options, maker.type_labels or {})
    return maker


def _links(options: TrainOptions, pipeline: Pipeline, graph: KnowledgeGraph) -> RowMaker | None:
    """What makes rows of the entity links that train a linker beside the task."""
    if not options.links:
        return None
    if not isinstance(pipeline.reader, KnowBertReader):
        raise OptionError(
            f"links train the linker of knowbert, and the system '{pipeline.reader.system}' has "
            "none. Leave --links out, or name --system knowbert."
        )
    examples = read_split(options.links, "train", "link")
    return RowMaker(examples, TASKS["link"], pipeline.reader, {}, graph, pipeline.config)


def _fingerprint(splits: Mapping[str, Sequence[Example]]) -> str:
    digest = hashlib.sha256()
    for split in ("train", "dev"):
        for e in splits[split]:
            values = (e.sentences, e.label, e.words, e.tags, e.group)
            digest.update(repr((*values, *e.links, *e.answers, *e.classes)).encode())
        digest.update(split.encode())
    return digest.hexdigest()[:16]


def _trainer(
    options: TrainOptions,
    pipeline: Pipeline,
    batches: Batches,
    score: Callable[[], Mapping[str, float]],
    rate: float,
) -> OrderedTrainer:
    """The trainer of any system's reader with any task."""
    reader, config, steps = pipeline.reader, batches.maker.config, options.optimiser
    never = len(batches) + 1  # but at epochs' ends

    def total_loss(model: nn.Module, inputs: dict[str, Any]) -> Tensor:
        output = reader.forward(inputs[READ], config, model=model)
        linked = bool(inputs[LINKED])
        logits = output["links" if linked else "logits"]
        return TASKS["link" if linked else options.task].loss(
            logits, inputs[TARGETS].to(reader.device)
        )

    return OrderedTrainer(
        model=reader.model,
        train_dataset=batches,
        total_loss=total_loss,
        rate_of=reader.rate_of,
        score=score,
        course=Course(batches.tokens.__getitem__, batches.epoch_ends, steps.patience),
        data_collator=lambda items: items[0],
        args=arguments(
            reader.device,
            options.run,
            max_steps=len(batches.steps),
            per_device_train_batch_size=1,
            gradient_accumulation_steps=steps.accumulate,
            learning_rate=rate,
            lr_scheduler_type="linear",
            warmup_steps=WARMUP,
            eval_steps=never,
            save_steps=never,
            load_best_model_at_end=True,
            metric_for_best_model=MAIN_SCORE[options.task],
            greater_is_better=True,
        ),
    )


def _check(splits: Mapping[str, Sequence[Example]], labels: Sequence[str]) -> None:
    if len(labels) < 2:
        source = splits["train"][0].source
        raise DataError(
            f"{source.name if source else 'The training set'}: its only label is '"
            f"{labels[0] if labels else ''}'. Training needs at least two: add examples of another."
        )
    for split, examples in splits.items():
        if split != "train":
            check_labels(examples, labels, "the training set")
    warn_of_rare_labels(splits["train"])


def _report(options: TrainOptions, fitted: Fitted) -> dict[str, Any]:
    pipeline, knowledge, types = fitted.pipeline, options.knowledge, fitted.type_labels
    seen = surface_forms(fitted.splits["train"]) if options.task == "ner" else None
    report: dict[str, Any] = {"scores": {}, "without_knowledge": {}}
    for split, examples in fitted.splits.items():
        if split == "train":
            continue
        log.info("scoring %s, %d texts", split, len(examples))
        report["scores"][split] = evaluate(pipeline, examples, fitted.graph, seen=seen)
        if knowledge.kg and options.task != "link":  # without a graph no name means anything
            bare = evaluate(pipeline, examples, NO_KNOWLEDGE, seen=seen)
            report["without_knowledge"][split] = bare
        if knowledge.kg and types and seen is not None:
            response = edit_response(pipeline, examples, fitted.graph, types, seen=seen)
            report.setdefault("edit_response", {})[split] = response
    report.update(
        data=options.files.name,
        seed=options.run.seed,
        command=options.run.command,
        encoder=Path(options.start.encoder).name,
        recipe=asdict(options.recipe),
        epochs=options.optimiser.epochs,
        type_labels=dict(types),
        parameters=sum(p.numel() for p in pipeline.reader.model.parameters()),
        processes=started_together(),
    )
    links = {"data": Path(options.links).name, "share": options.link_share}
    where_given = {
        "links": links if options.links else None,
        "steps": options.optimiser.steps,
        "negatives": options.optimiser.negatives,
        "hiding_knowledge": list(map(plain_stem, knowledge.hiding_kg)) or None,
    }
    report |= {name: value for name, value in where_given.items() if value is not None}
    model = pipeline.reader.model
    if not fitted.attached and adapting.only_inserted_trains(model):
        report["frozen"] = sum(p.numel() for p in model.parameters() if p.requires_grad)
    if fitted.attached:
        encoder = body_of(options.start)
        report.update(adapting.described(fitted.attached, encoder, options.run.output))
        if encoder != options.start.encoder:
            report["trained_further"] = Path(options.start.encoder).name
    return report


def save(options: TrainOptions, fitted: Fitted, *, notes: Mapping[str, Any]) -> None:
    """Write the model, its tokenizer and card; then remove the checkpoints.

    Raises:
        CheckpointError: there is no room; the checkpoints are kept, and so is
            a model that was there before.
    """
    output = Path(options.run.output)
    model = fitted.pipeline.reader.model
    card = fitted.pipeline.card
    reading = card.reading.with_encoders(lambda name: encoder_name(name, output))
    card = replace(card, notes=notes, reading=reading)
    card.write_to(model.config)
    encoder, is_frozen = encoder_name(body_of(options.start), output), False
    if not fitted.attached and (is_frozen := adapting.only_inserted_trains(model)):
        adapting.name_encoder(model, encoder)
    if not options.float32:
        model.half()
    with checkpoints.saving(output), checkpoints.replacing(output) as new:
        if fitted.attached:
            adapting.save_adapter(fitted.attached, new, encoder=encoder)
        elif is_frozen:
            adapting.save_inserted(model, new)
        else:
            model.save_pretrained(new)
            fitted.pipeline.hugging_face_tokenizer.save_pretrained(new)
        write_card(new, card)
    shutil.rmtree(checkpoints.checkpoints_in(output), ignore_errors=True)
