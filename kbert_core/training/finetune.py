"""Fine-tuning with knowledge, through Hugging Face's trainer."""

import json
import logging
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    EarlyStoppingCallback,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import get_last_checkpoint, set_seed

from kbert_core import adapters
from kbert_core.ablation import FULL, Ablation
from kbert_core.errors import CheckpointError, DataError, OptionError
from kbert_core.flatten import Batch
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.mask_transformer import (
    MaskTransformer,
    device_named,
    load_model_and_missing,
    moved,
)
from kbert_core.pipeline import NO_KNOWLEDGE, Card, Pipeline, card_of, load_tokenizer
from kbert_core.tasks import TASKS
from kbert_core.training.cards import write_card
from kbert_core.training.datasets import Example, find_split, labels_of, read_examples
from kbert_core.training.evaluate import edit_response, evaluate, surface_forms
from kbert_core.training.items import ItemMaker, Recipe, batch_of, learn_type_labels
from kbert_core.training.ordered_trainer import OrderedTrainer, Progress
from kbert_core.training.vocabulary import character_tokenizer

SCRATCH = "scratch"
MAIN_SCORE = {"ner": "f1", "classify": "accuracy", "pair": "accuracy", "mask": "accuracy"}
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainOptions:
    """How to fine-tune.

    Attributes:
        task: "ner", "classify", "pair" or "mask".
        data: folder of train, dev and test.
        output: folder for the model; a run that was cut off goes on there.
        encoder: folder or hub name of the encoder to start from, or
            "scratch" for a small BERT with a vocabulary of the training set.
        kg: files of triples, in order; none: the twin without knowledge.
        skip_bad: leave bad lines of a graph out and log them.
        injection: None: the encoder's card, else relation and tail, 2 triples.
        max_length: in tokens; None: the card's or the encoder's.
        ablation: how trees are read, in training as later.
        recipe: what happens to knowledge in training.
        hiding_kg: files of triples for a twin without ``kg``: what the recipe
            would hide of a text read with them is hidden, and nothing injected.
        adapter: rank of a low-rank adapter on the encoder, which is itself
            left as it is; None: the whole encoder is trained.
        adapter_alpha: the adapter's weight is alpha / rank; None: twice the
            rank.
        epochs: times through the training set.
        batch_tokens: tokens a batch, padding included.
        learning_rate: None: 1e-3 for an adapter, 5e-4 from scratch, 4e-4 for
            encoders up to 384 wide, else 5e-5.
        patience: epochs without a better dev score before stopping; 0: never.
        half: save parameters in half precision.
    """

    task: str
    data: str
    output: str
    encoder: str = SCRATCH
    kg: tuple[str, ...] = ()
    skip_bad: bool = False
    injection: InjectionOptions | None = None
    max_length: int | None = None
    ablation: Ablation = FULL
    recipe: Recipe = field(default_factory=Recipe)
    hiding_kg: tuple[str, ...] = ()
    adapter: int | None = None
    adapter_alpha: float | None = None
    epochs: int = 4
    batch_tokens: int = 1024
    learning_rate: float | None = None
    warmup: float = 0.1
    weight_decay: float = 0.01
    dropout: float = 0.1
    hidden_size: int = 256
    num_hidden_layers: int = 4
    patience: int = 0
    seed: int = 0
    device: str = "auto"
    half: bool = True
    command: str = ""

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise OptionError(f"No task '{self.task}'; expected one of {', '.join(TASKS)}.")
        if self.epochs < 1:
            raise OptionError(f"epochs is {self.epochs}, expected at least 1.")
        if self.batch_tokens < 16:
            raise OptionError(f"batch_tokens is {self.batch_tokens}, expected at least 16.")
        for name, share in {"dropout": self.dropout, **asdict(self.recipe)}.items():
            if not 0 <= share <= 1:
                raise OptionError(f"{name} is {share}, expected a share from 0 to 1.")
        if self.hidden_size < 1 or self.hidden_size % max(1, self.hidden_size // 64):
            raise OptionError(
                f"hidden_size is {self.hidden_size}, which attention heads of width 64 don't "
                "divide. Give a multiple of 64."
            )
        if self.num_hidden_layers < 1:
            raise OptionError(f"num_hidden_layers is {self.num_hidden_layers}, expected 1 or more.")
        if self.hiding_kg and self.kg:
            raise OptionError("Both kg and hiding_kg are given. Give kg, or for a twin hiding_kg.")
        if Path(self.output).is_file():
            raise OptionError(f"{self.output} is a file. Name a folder for the model.")
        adapters.check_options(
            self.adapter, self.adapter_alpha, encoder=self.encoder, output=self.output
        )


@dataclass(frozen=True)
class Fitted:
    """A trained model in memory, with what it was trained on.

    Attributes:
        pipeline: the best epoch on dev.
        splits: train, dev and, where there is one, test.
        graph: the knowledge it was trained with.
        type_labels: tails that name a label, see ``learn_type_labels``.
        curve: dev scores by epoch.
        attached: the adapter that was trained; None: the whole model was.
    """

    pipeline: Pipeline
    splits: Mapping[str, list[Example]]
    graph: KnowledgeGraph
    type_labels: Mapping[str, str]
    curve: Sequence[Mapping[str, float]]
    attached: adapters.Attached | None = None


def train(options: TrainOptions) -> dict[str, Any]:
    """Fine-tune a model, keep the best epoch on dev, score it on dev and test.

    Returns:
        Scores on dev and test with the knowledge trained with, without any,
        and for named entities the response to edits; also on the card.

    Raises:
        DataError: the data can't be trained on; CheckpointError: the encoder
            can't be used; GraphFileError: a graph can't be read.
    """
    fitted = fit(options)
    report = _report(options, fitted)
    report["learning_curve"] = list(fitted.curve)
    save(options, fitted, notes=report)
    return report


def fit(options: TrainOptions) -> Fitted:
    """Fine-tune a model and keep the best epoch on dev, in memory.

    Checkpoints stay in the output folder until :func:`save` or the caller
    removes them, so that a run that is cut off later goes on here.

    Raises:
        As :func:`train`.
    """
    set_seed(options.seed)
    device = device_named(options.device)
    task = TASKS[options.task]
    splits = _splits(options)
    graph = KnowledgeGraph.from_files(*options.kg, skip_bad=options.skip_bad)
    labels = [] if task.name == "mask" else labels_of(splits["train"])
    _check(splits, labels, task.name)
    base = Card() if options.encoder == SCRATCH else card_of(options.encoder)
    injection = options.injection or base.options
    tokenizer, model, missing = _start(options, splits["train"], graph, labels)
    attached = None
    if options.adapter:
        attached = adapters.attach(
            model, rank=options.adapter, alpha=options.adapter_alpha, missing=missing
        )
    card = Card(
        task.name,
        injection,
        base.max_length if options.max_length is None else options.max_length,
        _names(options.kg),
        ablation=options.ablation,
    )
    card.write_to(model.config)
    pipeline = Pipeline(moved(model, device), tokenizer, card)
    hiding = None
    if options.hiding_kg:
        hiding = KnowledgeGraph.from_files(*options.hiding_kg, skip_bad=options.skip_bad)
    type_labels = {}
    if task.name == "ner":
        type_labels = learn_type_labels(splits["train"], hiding or graph, injection)
    maker = ItemMaker(
        task,
        pipeline.tokenizer,
        {label: i for i, label in enumerate(labels)},
        graph,
        injection,
        max_length=pipeline.max_length,
        recipe=options.recipe,
        type_labels=type_labels,
        hiding_graph=hiding,
        seed=options.seed,
    )
    batches = Batches(splits["train"], maker, options)
    trainer = _trainer(options, pipeline, batches, splits["dev"], graph)
    checkpoint = get_last_checkpoint(str(checkpoints_of(options)))
    adapters.check_checkpoint(checkpoint, options.adapter)
    trainer.train(resume_from_checkpoint=checkpoint)
    pipeline.encoder.model.eval()
    return Fitted(pipeline, splits, graph, {} if hiding else type_labels, trainer.curve, attached)


def checkpoints_of(options: TrainOptions) -> Path:
    """The folder of the checkpoints that a run goes on from."""
    return Path(options.output) / "checkpoints"


class Batches(Dataset[dict[str, Tensor]]):
    """Every batch of a whole training, in order: item i is batch i.

    Batches hold examples of similar length, so that hardly a position is
    padding; their order and content depend on the seed alone, so that a run
    can go on where it was cut off.
    """

    def __init__(
        self, examples: Sequence[Example], maker: ItemMaker, options: TrainOptions
    ) -> None:
        self.examples, self.maker = examples, maker
        lengths = [
            sum(len(item.row) for item in maker.items(e, epoch=0, number=i))
            for i, e in enumerate(examples)
        ]
        self.batches: list[tuple[int, list[int]]] = []
        self.epoch_ends: list[int] = []
        for epoch in range(options.epochs):
            random = np.random.default_rng((options.seed, epoch))
            made = bucketed(lengths, options.batch_tokens, random)
            self.batches.extend((epoch, numbers) for numbers in made)
            self.epoch_ends.append(len(self.batches))

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        epoch, numbers = self.batches[index]
        items = [
            item
            for number in numbers
            for item in self.maker.items(self.examples[number], epoch=epoch, number=number)
        ]
        batch, labels = batch_of(items, pad_id=self.maker.tokenizer.pad_id)
        return {**vars(batch), "labels": labels}


def bucketed(
    lengths: Sequence[int], batch_tokens: int, random: np.random.Generator
) -> list[list[int]]:
    """Group numbers of similar length, each group within a budget of tokens.

    Args:
        lengths: of every example, in tokens.
        batch_tokens: the longest of a group times its size stays within it,
            unless one example alone is over it.

    Returns:
        Groups in random order; every number in exactly one.
    """
    noisy = np.array(lengths) * random.uniform(0.9, 1.1, len(lengths))
    groups: list[list[int]] = [[]]
    longest = 0
    for number in np.argsort(noisy, kind="stable"):
        longest = max(longest, lengths[number])
        if groups[-1] and longest * (len(groups[-1]) + 1) > batch_tokens:
            groups.append([])
            longest = lengths[number]
        groups[-1].append(int(number))
    return [groups[i] for i in random.permutation(len(groups))]


class KnowledgeTrainer(OrderedTrainer):
    """The trainer, reading flat trees and scoring by our metrics."""

    def __init__(
        self,
        *,
        encoder: MaskTransformer,
        ablation: Ablation,
        score: Any,
        score_name: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(model=encoder.model, **kwargs)
        self.encoder, self.ablation, self.score = encoder, ablation, score
        self.score_name = score_name

    @property
    def curve(self) -> list[dict[str, float]]:
        """Dev scores by epoch, those before an interruption included."""
        name = f"eval_{self.score_name}"
        logged = [entry for entry in self.state.log_history if name in entry]
        return [{"step": entry["step"], self.score_name: entry[name]} for entry in logged]

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """The task head's own loss on the mask-transformer's output."""
        labels = inputs.pop("labels")
        arguments = self.encoder.inputs(Batch(**inputs), ablation=self.ablation)
        output = model(**arguments, labels=labels)
        if not math.isfinite(output.loss.item()):
            raise DataError(
                f"The loss is {output.loss.item()} at step {self.state.global_step}, batch of "
                f"{len(labels)} rows. Lower the learning rate, or look at these examples."
            )
        return (output.loss, output) if return_outputs else output.loss

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Score the dev set."""
        scores = self.score()
        self.encoder.model.train()
        value = scores[self.score_name]
        metrics = {f"eval_{self.score_name}": value, "epoch": self.state.epoch or 0.0}
        log.info("step %d: dev %s %.4f", self.state.global_step, self.score_name, value)
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics


class _AtEpochEnds(TrainerCallback):
    """Evaluate and save where an epoch of ours ends."""

    def __init__(self, ends: Sequence[int]) -> None:
        self.ends = set(ends)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step in self.ends:
            control.should_evaluate = control.should_save = control.should_log = True


def _trainer(
    options: TrainOptions,
    pipeline: Pipeline,
    batches: Batches,
    dev: Sequence[Example],
    graph: KnowledgeGraph,
) -> KnowledgeTrainer:
    name = MAIN_SCORE[options.task]
    rate = options.learning_rate or _learning_rate(options, pipeline.encoder.config)
    arguments = TrainingArguments(
        output_dir=str(checkpoints_of(options)),
        max_steps=len(batches),
        per_device_train_batch_size=1,
        learning_rate=rate,
        lr_scheduler_type="linear",
        warmup_steps=options.warmup,
        weight_decay=options.weight_decay,
        eval_strategy="steps",
        eval_steps=len(batches) + 1,
        save_strategy="steps",
        save_steps=len(batches) + 1,
        logging_steps=50,
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model=name,
        greater_is_better=True,
        remove_unused_columns=False,
        report_to=[],
        seed=options.seed,
        use_cpu=pipeline.encoder.device.type == "cpu",
        bf16=pipeline.encoder.device.type == "cuda",
        dataloader_pin_memory=False,
        disable_tqdm=True,
    )
    callbacks: list[TrainerCallback] = [_AtEpochEnds(batches.epoch_ends), Progress()]
    if options.patience:
        callbacks.append(EarlyStoppingCallback(early_stopping_patience=options.patience))

    def score() -> dict[str, Any]:
        pipeline.encoder.model.eval()
        return evaluate(pipeline, dev, graph, ablation=options.ablation)

    return KnowledgeTrainer(
        encoder=pipeline.encoder,
        ablation=options.ablation,
        score=score,
        score_name=name,
        args=arguments,
        train_dataset=batches,
        eval_dataset=batches,
        data_collator=lambda items: items[0],
        callbacks=callbacks,
    )


def _start(
    options: TrainOptions,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    labels: Sequence[str],
) -> tuple[PreTrainedTokenizerBase, PreTrainedModel, list[str]]:
    """The tokenizer and the model to start from, and the model's new parameters."""
    task = TASKS[options.task]
    heads: dict[str, Any] = {}
    if labels:
        heads["id2label"] = dict(enumerate(labels))
        heads["label2id"] = {label: i for i, label in enumerate(labels)}
    if options.encoder != SCRATCH:
        tokenizer = load_tokenizer(options.encoder)
        dropouts = ("hidden_dropout_prob", "attention_probs_dropout_prob")
        config_file = Path(adapters.located(options.encoder)) / "config.json"
        known = json.loads(config_file.read_text("utf-8")) if config_file.is_file() else {}
        heads.update({name: options.dropout for name in dropouts if name in known})
        model, missing = load_model_and_missing(
            options.encoder, task.auto_class, device=options.device, dtype=torch.float32, **heads
        )
        return tokenizer, model, missing
    texts = [s for e in examples for s in e.sentences]
    texts += [text for triple in graph for text in (triple.relation, triple.tail)]
    tokenizer = character_tokenizer(texts)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=options.hidden_size,
        num_hidden_layers=options.num_hidden_layers,
        num_attention_heads=max(1, options.hidden_size // 64),
        intermediate_size=4 * options.hidden_size,
        hidden_dropout_prob=options.dropout,
        attention_probs_dropout_prob=options.dropout,
        pad_token_id=tokenizer.pad_token_id,
        **heads,
    )
    model = task.auto_class.from_config(config, attn_implementation="sdpa")  # type: ignore[attr-defined]
    return tokenizer, model, []


def _splits(options: TrainOptions) -> dict[str, list[Example]]:
    """Read train, dev and test before anything is trained; only test may be missing."""
    paths = {split: find_split(options.data, split) for split in ("train", "dev")}
    try:
        paths["test"] = find_split(options.data, "test")
    except DataError as error:
        log.warning("no scores on test: %s", error)
    return {split: read_examples(path, options.task) for split, path in paths.items()}


def _check(splits: Mapping[str, Sequence[Example]], labels: Sequence[str], task: str) -> None:
    if task != "mask" and len(labels) < 2:
        raise DataError(
            f"The training set has the one label '{labels[0] if labels else ''}'. "
            "Training needs at least two."
        )
    known = set(labels)
    held_out = [(s, e) for s in splits if s != "train" for e in splits[s]] if task != "mask" else []
    for split, example in held_out:
        for label in (*example.tags, *([example.label] if example.label is not None else [])):
            if label not in known:
                raise DataError(
                    f"The {split} set has the label '{label}', which the training set "
                    f"({', '.join(labels)}) doesn't. Correct it or add training examples."
                )


def _report(options: TrainOptions, fitted: Fitted) -> dict[str, Any]:
    pipeline, splits, graph = fitted.pipeline, fitted.splits, fitted.graph
    type_labels = fitted.type_labels
    seen = surface_forms(splits["train"]) if options.task == "ner" else None
    report: dict[str, Any] = {"scores": {}, "without_knowledge": {}}
    for split, examples in splits.items():
        if split == "train":
            continue
        common: dict[str, Any] = {"ablation": options.ablation, "seen": seen}
        report["scores"][split] = evaluate(pipeline, examples, graph, **common)
        if options.kg:
            report["without_knowledge"][split] = evaluate(
                pipeline, examples, NO_KNOWLEDGE, **common
            )
            if options.task == "ner" and type_labels:
                report.setdefault("edit_response", {})[split] = edit_response(
                    pipeline, examples, graph, type_labels, seen=seen or set()
                )
    report.update(
        data=Path(options.data).name,
        seed=options.seed,
        command=options.command,
        encoder=Path(options.encoder).name,
        recipe=asdict(options.recipe),
        epochs=options.epochs,
        type_labels=dict(type_labels),
        parameters=sum(p.numel() for p in pipeline.encoder.model.parameters()),
    )
    if fitted.attached:
        report.update(adapters.described(fitted.attached, options.encoder, options.output))
    return report


def save(options: TrainOptions, fitted: Fitted, *, notes: Mapping[str, Any]) -> None:
    """Write the model, its tokenizer and card; then remove the checkpoints.

    Raises:
        CheckpointError: there is no room; the checkpoints are kept.
    """
    output = Path(options.output)
    model = fitted.pipeline.encoder.model
    card = replace(fitted.pipeline.card, notes=notes)
    card.write_to(model.config)
    if options.half:
        model.half()
    try:
        if fitted.attached:
            name = adapters.encoder_name(options.encoder, output)
            adapters.save(fitted.attached, output, encoder=name)
        else:
            model.save_pretrained(output)
            fitted.pipeline.hugging_face_tokenizer.save_pretrained(output)
            adapters.forget(output)
    except OSError as error:
        raise CheckpointError(
            f"{output}: the model can't be saved ({error}). Free some space and run the same "
            "command again: it goes on from the last checkpoint."
        ) from error
    write_card(output, card)
    shutil.rmtree(checkpoints_of(options), ignore_errors=True)


def _names(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(Path(path).stem for path in paths)


def _learning_rate(options: TrainOptions, config: Any) -> float:
    if options.adapter:
        return 1e-3
    if options.encoder == SCRATCH:
        return 5e-4
    return 4e-4 if getattr(config, "hidden_size", 768) <= 384 else 5e-5
