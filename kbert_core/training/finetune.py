"""Fine-tuning with knowledge, through Hugging Face's trainer."""

import copy
import hashlib
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import (
    AutoModel,
    BertConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainerCallback,
)
from transformers.trainer_utils import set_seed

from kbert_core.checkpoints import adapters
from kbert_core.checkpoints.checkpoint import (
    Card,
    card_of,
    device_named,
    load_config,
    load_model_and_missing,
    load_tokenizer,
    moved,
    reading_of,
)
from kbert_core.checkpoints.encoders import encoder_name
from kbert_core.data.labelled import (
    Example,
    check_labels,
    labels_of,
    warn_of_rare_labels,
)
from kbert_core.data.sources import read_splits
from kbert_core.errors import CheckpointError, DataError, OptionError
from kbert_core.kbert.ablation import FULL, Ablation
from kbert_core.kbert.flat_tree import Batch
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.compression import plain_stem
from kbert_core.knowledge.selection import InjectionOptions, Strategy
from kbert_core.labels import IGNORED, WRONG
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_core.scoring import scorer_of
from kbert_core.tasks import TASKS
from kbert_core.training import processes
from kbert_core.training.cards import write_card
from kbert_core.training.checkpoints import (
    digests,
    last_whole,
    prepared,
    refuse_another_model,
    replacing,
    saving,
)
from kbert_core.training.edit_scores import edit_response
from kbert_core.training.evaluate import evaluate, surface_forms
from kbert_core.training.items import (
    MIN_EVIDENCE,
    NEEDED_TYPES,
    TYPE_SHARE,
    ItemMaker,
    batch_of,
    learn_type_labels,
    without_effect,
)
from kbert_core.training.matches import tell_of_matches
from kbert_core.training.options import SCRATCH, StartOptions, TrainOptions
from kbert_core.training.ordered_trainer import BATCH, OrderedTrainer, arguments
from kbert_core.training.processes import Processes
from kbert_core.training.vocabulary import character_tokenizer

MAIN_SCORE = {
    **{"ner": "f1", "classify": "accuracy", "pair": "accuracy", "mask": "accuracy"},
    "rank": "mrr",
}
NOT_THE_RUN = {  # may differ when a run goes on; fingerprints stand for data and graphs
    *("data", "train", "dev", "test", "dev_share", "columns", "also_train"),
    *("kg", "hiding_kg", "skip_bad", "output", "command", "device", "bf16", "float32"),
    *("batch_tokens", "accumulate", "patience", "log_every"),
}
WITH_LABELS = ("ForTokenClassification", "ForSequenceClassification")  # heads of a like name
SHOWN_EXAMPLES = 5  # of a batch that is named in an error
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Fitted:
    """A trained model in memory, with what it was trained on.

    Attributes:
        pipeline: the best epoch on dev.
        splits: train, dev and, where there is one, test.
        graph: the knowledge it was trained with.
        type_labels: tails that name a label, see ``learn_type_labels``.
        curve: dev scores by epoch, and the training loss in nats.
        attached: the adapter that was trained; None: the whole model was.
        together: the processes that trained it.
        run: what makes it this run, see ``digests``.
    """

    pipeline: Pipeline
    splits: Mapping[str, list[Example]]
    graph: KnowledgeGraph
    type_labels: Mapping[str, str]
    curve: Sequence[Mapping[str, float]]
    attached: adapters.Attached | None = None
    together: Processes = Processes()
    run: Mapping[str, str] = field(default_factory=dict)


def train(options: TrainOptions) -> dict[str, Any]:
    """Fine-tune a model, keep the best epoch on dev, score it on dev and test.

    Returns:
        Scores on dev and test with the knowledge trained with, without any,
        and for named entities the response to edits; also on the card. The
        same in every process.

    Raises:
        DataError: the data can't be trained on, or the loss is no number;
            CheckpointError: the encoder can't be used, or there is no room to
            save; GraphFileError: a graph can't be read; OptionError: the
            output folder can't be used, or holds another run or its model.
    """
    fitted = fit(options, replacing_others=False)

    def finish() -> dict[str, Any]:
        report = _report(options, fitted)
        report["learning_curve"] = list(fitted.curve)
        save(options, fitted, notes={**report, "run": fitted.run})
        return report

    return fitted.together.shared(finish)


def fit(options: TrainOptions, *, replacing_others: bool = True) -> Fitted:
    """Fine-tune a model and keep the best epoch on dev, in memory.

    Checkpoints stay in the output folder until :func:`save` or the caller
    removes them, so that a run that is cut off later goes on here.

    Args:
        replacing_others: whether the output folder may hold a finished model
            of another run.

    Raises:
        As :func:`train`.
    """
    knowledge, steps, output = options.knowledge, options.optimiser, options.run.output
    device = device_named(options.run.device)
    together = processes.join(device)
    set_seed(options.run.seed)
    task = TASKS[options.task]
    splits = read_splits(options.files, options.task, seed=options.run.seed)
    graph = load_graph(*knowledge.kg, skip_bad=knowledge.skip_bad)
    labels = [] if task.name == "mask" else labels_of(splits["train"])
    _check(splits, labels, task.name)
    scratch, encoder = options.start.encoder == SCRATCH, _body(options.start)
    base = Card() if scratch else card_of(options.start.encoder)
    injection = _fixed_scorer(knowledge.injection or base.reading.options, options.start.encoder)
    scorer = scorer_of(injection, device=options.run.device)
    if together.main:
        tell_of_matches(splits["train"], graph, injection, "train", scorer=scorer)
    tokenizer, model, missing = _start(options, encoder, splits["train"], graph, labels)
    weights = SCRATCH if scratch else adapters.weights_hash(model, missing)
    attached = None
    if options.start.adapter and encoder != options.start.encoder:
        attached = adapters.attach_again(model, options.start.encoder, missing=missing)
    elif options.start.adapter:
        attached = adapters.attach(
            model, rank=options.start.adapter, alpha=options.start.adapter_alpha, missing=missing
        )
    length = base.reading.max_length if knowledge.max_length is None else knowledge.max_length
    reading = reading_of(knowledge.system or base.system, base.reading)
    reading = replace(reading, options=injection, max_length=length)
    if knowledge.ablation is not None:
        reading = _ablated(reading, knowledge.ablation)
    card = Card(task.name, reading, _names(knowledge.kg))
    card.write_to(model.config)
    pipeline = Pipeline(moved(model, device), tokenizer, card)
    hiding = None
    if knowledge.hiding_kg:
        hiding = load_graph(*knowledge.hiding_kg, skip_bad=knowledge.skip_bad)
    type_labels = {}
    if task.name == "ner":
        type_labels = learn_type_labels(splits["train"], hiding or graph, injection, scorer=scorer)
    _warn_of_no_effect(options, type_labels)
    maker = ItemMaker(
        task,
        pipeline.kbert,
        {label: i for i, label in enumerate(labels)},
        graph,
        pipeline.config,
        recipe=options.recipe,
        type_labels=type_labels,
        hiding_graph=hiding,
        seed=options.run.seed,
        scorer=scorer,
    )
    maker.look_ahead(splits["train"])
    checkpoints = checkpoints_of(options)
    last = together.shared(lambda: last_whole(checkpoints))
    rate = steps.learning_rate or _learning_rate(options, model.config)
    batches = Batches(splits["train"], maker, options, parts=steps.accumulate * together.count)
    run = {
        **{name: value for name, value in options.flat().items() if name not in NOT_THE_RUN},
        **options.start.size,
        "ablation": asdict(reading.ablation),
        "recipe": asdict(options.recipe),
        "learning_rate": rate,
        "injection": injection.as_dict(),
        "tokens a step": steps.batch_tokens * batches.parts,
        "training and dev data": _fingerprint(splits),
        "graph": (hiding or graph).fingerprint[:16],
        "the graph only hides": hiding is not None,
    }
    its_own = {"kind": "train", "encoder": weights, "patience": steps.patience}
    made = digests({**run, **its_own, "precision to save in": not options.float32})

    def begin() -> None:
        if not replacing_others and last is None:
            refuse_another_model(output, made, options.run.command)
        prepared(output, run, last=last)

    together.shared(begin)
    if not checkpoints.is_dir():
        raise OptionError(f"{output} isn't one folder for all machines. Name a shared one.")
    trainer = _trainer(options, pipeline, batches, splits["dev"], graph, rate, together)
    trainer.train_on(last)
    pipeline.encoder.model.eval()
    type_labels = {} if hiding else type_labels
    curve = [{k: v for k, v in scores.items() if k != "seconds"} for scores in trainer.curve]
    return Fitted(pipeline, splits, graph, type_labels, curve, attached, together, made)


def _ablated(reading: Any, ablation: Ablation) -> Any:
    """Set the ablation of a system that has one."""
    if "ablation" not in {field.name for field in fields(reading)}:
        if ablation in (FULL, reading.ablation):
            return reading
        raise OptionError(
            f"Positions or visibility are given, and the system '{reading.system}' has none of "
            "K-BERT's. Leave them out."
        )
    return replace(reading, ablation=ablation)


def _fixed_scorer(injection: InjectionOptions, encoder: str) -> InjectionOptions:
    """Name what triples are scored by, so that it is the same in training as later.

    The model's own encoder changes while it is trained; the encoder that it
    starts from does not.

    Raises:
        OptionError: the model starts from scratch.
    """
    if injection.strategy is not Strategy.CONTEXT or injection.scorer is not None:
        return injection
    if encoder == SCRATCH:
        raise OptionError(
            "The strategy 'context' needs an encoder that knows the language, and this one starts "
            "from scratch. Name one with --scorer (in a suite: scorer)."
        )
    return replace(injection, scorer=encoder)


def _fingerprint(splits: Mapping[str, Sequence[Example]]) -> str:
    digest = hashlib.sha256()
    for split in ("train", "dev"):
        for e in splits[split]:
            digest.update(repr((e.sentences, e.label, e.words, e.tags, e.group)).encode())
        digest.update(split.encode())
    return digest.hexdigest()[:16]


def checkpoints_of(options: TrainOptions) -> Path:
    """The folder of the checkpoints that a run goes on from."""
    return Path(options.run.output) / "checkpoints"


class Batches(Dataset[dict[str, Tensor]]):
    """Every batch of a whole training, in order.

    Batches hold examples of similar length, so that hardly a position is
    padding; their order and content depend on the seed alone, so that a run
    can go on where it was cut off.

    Args:
        examples, maker: what batches are made of.
        options: epochs, seed and tokens.
        parts: into how many items the batch of an optimiser step is cut, one
            after the other: one for each process and each time gradients are
            accumulated. Each has about ``batch_tokens``, and the step
            ``parts`` times as many.

    Attributes:
        epoch_ends: after how many steps an epoch ends.
        tokens: real ones before each step, and in all.
    """

    def __init__(
        self, examples: Sequence[Example], maker: ItemMaker, options: TrainOptions, *, parts: int
    ) -> None:
        self.examples, self.maker, self.parts = examples, maker, parts
        lengths = [
            sum(len(item.row) for item in maker.items(e, epoch=0, number=i))
            for i, e in enumerate(examples)
        ]
        self.steps: list[tuple[int, list[int]]] = []
        self.epoch_ends: list[int] = []
        self.tokens = [0]
        steps = options.optimiser
        for epoch in range(steps.epochs):
            random = np.random.default_rng((options.run.seed, epoch))
            read = None
            if steps.negatives is not None:
                read = with_negatives(examples, steps.negatives, random)
            for numbers in bucketed(lengths, parts * steps.batch_tokens, random, among=read):
                self.steps.append((epoch, numbers))
                self.tokens.append(self.tokens[-1] + sum(lengths[n] for n in numbers))
            self.epoch_ends.append(len(self.steps))

    def __len__(self) -> int:
        return len(self.steps) * self.parts

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        step, part = divmod(index, self.parts)
        epoch, whole = self.steps[step]
        numbers = np.array_split(whole, self.parts)[part].tolist()
        empty = not numbers  # the step has fewer examples than parts
        numbers = numbers or whole[:1]
        items = [
            item
            for number in numbers
            for item in self.maker.items(self.examples[number], epoch=epoch, number=number)
        ]
        batch, labels = batch_of(items, pad_id=self.maker.tokenizer.pad_id)
        if empty:
            labels.fill_(IGNORED)
        return {**vars(batch), "labels": labels, BATCH: torch.tensor(numbers)}

    def described(self, numbers: Sequence[int]) -> str:
        """Say in words which examples a batch holds."""
        shown = []
        for example in [self.examples[n] for n in numbers[:SHOWN_EXAMPLES]]:
            text = f"'{example.sentences[0][:30]}'"
            if example.source:
                text += f" ({example.source.unit} {example.line} of {example.source.name})"
            shown.append(text)
        rest = len(numbers) - SHOWN_EXAMPLES
        return f"{'; '.join(shown)}{f'; and {rest} more' if rest > 0 else ''}"


def with_negatives(
    examples: Sequence[Example], negatives: int, random: np.random.Generator
) -> list[int]:
    """Draw what an epoch reads of candidate answers: all right ones, and some wrong ones.

    Args:
        negatives: wrong answers of each question; all, where there are fewer.

    Returns:
        Numbers of examples, rising.
    """
    wrong: dict[str, list[int]] = {}
    for number, example in enumerate(examples):
        if example.label == WRONG:
            wrong.setdefault(example.group, []).append(number)
    left_out = {
        number
        for all_of_it in wrong.values()
        for number in random.permutation(all_of_it)[negatives:]
    }
    return [number for number in range(len(examples)) if number not in left_out]


def bucketed(
    lengths: Sequence[int],
    batch_tokens: int,
    random: np.random.Generator,
    *,
    among: Sequence[int] | None = None,
) -> list[list[int]]:
    """Group numbers of similar length, each group within a budget of tokens.

    Args:
        lengths: of every example, in tokens.
        batch_tokens: the longest of a group times its size stays within it,
            unless one example alone is over it.
        among: the numbers to group; None: all.

    Returns:
        Groups in random order; every number in exactly one.
    """
    numbers = np.arange(len(lengths)) if among is None else np.array(among)
    noisy = np.array(lengths)[numbers] * random.uniform(0.9, 1.1, len(numbers))
    groups: list[list[int]] = [[]]
    longest = 0
    for number in numbers[np.argsort(noisy, kind="stable")]:
        longest = max(longest, lengths[number])
        if groups[-1] and longest * (len(groups[-1]) + 1) > batch_tokens:
            groups.append([])
            longest = lengths[number]
        groups[-1].append(int(number))
    return [groups[i] for i in random.permutation(len(groups))]


class KnowledgeTrainer(OrderedTrainer):
    """The trainer of a pipeline's model: its reader runs it, its task says the loss."""

    def __init__(self, *, pipeline: Pipeline, **kwargs: Any) -> None:
        super().__init__(model=pipeline.reader.model, **kwargs)
        self.pipeline = pipeline

    def create_optimizer(self, *given: Any) -> torch.optim.Optimizer:
        """The optimiser, with the system's own learning rates where it has some."""
        optimizer: torch.optim.Optimizer = super().create_optimizer(*given)
        rate_of = self.pipeline.reader.rate_of
        rates = {id(p): rate_of(name) for name, p in self.pipeline.reader.model.named_parameters()}
        for group in list(optimizer.param_groups):
            rest = {name: value for name, value in group.items() if name != "params"}
            by_rate: dict[float, list[nn.Parameter]] = {1.0: []}
            for parameter in group["params"]:
                by_rate.setdefault(rates.get(id(parameter), 1.0), []).append(parameter)
            group["params"] = by_rate.pop(1.0)
            for rate, params in by_rate.items():
                optimizer.add_param_group({**rest, "params": params, "lr": rest["lr"] * rate})
        return optimizer

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """The mean of the task's loss over the labels of a step, in nats."""
        reader, task = self.pipeline.reader, self.pipeline.task
        assert task is not None
        batch = Batch(**{f.name: inputs[f.name] for f in fields(Batch)})
        output = reader.forward(batch, self.pipeline.config, model=model)
        total = task.loss(output.logits, inputs["labels"].to(output.logits.device))
        loss = self.mean_loss(total, num_items_in_batch, inputs)
        return (loss, output) if return_outputs else loss


class _AtEpochEnds(TrainerCallback):
    """Evaluate and save where an epoch of ours ends."""

    def __init__(self, ends: Sequence[int]) -> None:
        self.ends = set(ends)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step in self.ends:
            control.should_evaluate = control.should_save = control.should_log = True


class _Patience(TrainerCallback):
    """Stop after so many evaluations without a better score, an earlier run's included.

    The trainer's own callback forgets its count when a run goes on.
    """

    def __init__(self, patience: int, name: str) -> None:
        self.patience, self.name = patience, name

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        scores = [entry[self.name] for entry in state.log_history if self.name in entry]
        since_best = len(scores) - 1 - scores.index(max(scores))
        if since_best >= self.patience:
            control.should_training_stop = True


def _trainer(
    options: TrainOptions,
    pipeline: Pipeline,
    batches: Batches,
    dev: Sequence[Example],
    graph: KnowledgeGraph,
    rate: float,
    together: Processes,
) -> KnowledgeTrainer:
    name = MAIN_SCORE[options.task]
    never = len(batches) + 1  # but at epochs' ends
    made = arguments(
        pipeline.encoder.device,
        checkpoints_of(options),
        bf16=options.run.bf16,
        max_steps=len(batches.steps),
        per_device_train_batch_size=1,
        gradient_accumulation_steps=options.optimiser.accumulate,
        learning_rate=rate,
        lr_scheduler_type="linear",
        warmup_steps=options.optimiser.warmup,
        weight_decay=options.optimiser.weight_decay,
        eval_strategy="steps",
        eval_steps=never,
        save_strategy="steps",
        save_steps=never,
        logging_steps=options.run.log_every,
        load_best_model_at_end=True,
        metric_for_best_model=name,
        greater_is_better=True,
        seed=options.run.seed,
    )
    callbacks: list[TrainerCallback] = [_AtEpochEnds(batches.epoch_ends)]
    if options.optimiser.patience:
        callbacks.append(_Patience(options.optimiser.patience, f"eval_{name}"))

    def score() -> dict[str, float]:
        pipeline.encoder.model.eval()
        return {name: evaluate(pipeline, dev, graph)[name]}

    return KnowledgeTrainer(
        pipeline=pipeline,
        score=score,
        processes=together,
        describe=batches.described,
        tokens=batches.tokens.__getitem__,
        args=made,
        train_dataset=batches,
        eval_dataset=batches,
        data_collator=lambda items: items[0],
        callbacks=callbacks,
    )


def _body(start: StartOptions) -> str:
    """The encoder under an adapter that is to be trained further; else as it is given."""
    further = start.adapter and adapters.is_adapter(start.encoder)
    return str(adapters.encoder_of(start.encoder)) if further else start.encoder


def _start(
    options: TrainOptions,
    encoder: str,
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
    if encoder != SCRATCH:
        return load_tokenizer(encoder), *_pretrained(options, encoder, labels, heads)
    texts = [s for e in examples for s in e.sentences]
    texts += [text for triple in graph for text in (triple.relation, triple.tail)]
    tokenizer = character_tokenizer(texts)
    width = options.start.size["hidden_size"]
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=options.start.size["num_hidden_layers"],
        num_attention_heads=max(1, width // 64),
        intermediate_size=4 * width,
        hidden_dropout_prob=options.start.dropout,
        attention_probs_dropout_prob=options.start.dropout,
        pad_token_id=tokenizer.pad_token_id,
        **heads,
    )
    model = task.auto_class.from_config(config, attn_implementation="sdpa")  # type: ignore[attr-defined]
    return tokenizer, model, []


def _pretrained(
    options: TrainOptions, path: str, labels: Sequence[str], heads: dict[str, Any]
) -> tuple[PreTrainedModel, list[str]]:
    """A pretrained encoder with the task's head, which is new unless it is for these labels."""
    task = TASKS[options.task]
    known = _config(path)
    dropouts = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    heads = {**heads, **{name: options.start.dropout for name in dropouts if name in known}}
    common: dict[str, Any] = {"device": options.run.device, "dtype": torch.float32}
    trained_for = card_of(path).task
    kind = task.auto_class.__name__.removeprefix("AutoModel")
    before = [str(label) for _, label in sorted((known.get("id2label") or {}).items())]
    heads_there = [
        name for name in map(str, known.get("architectures") or ()) if name.endswith(WITH_LABELS)
    ]
    for_this = trained_for in (None, task.name) and all(name.endswith(kind) for name in heads_there)
    if not for_this and heads_there:
        log.warning(
            "%s was trained for the task '%s'; its head for '%s' is new",
            *(path, trained_for or heads_there[0], task.name),
        )
    elif heads_there and labels and before != list(labels):
        log.warning(
            "%s has a head for the labels %s; the one for %s is new",
            *(path, ", ".join(before), ", ".join(labels)),
        )
    else:
        return load_model_and_missing(path, task.auto_class, **common, **heads)
    if adapters.is_adapter(path) or not labels:  # whose heads have names of their own
        return load_model_and_missing(path, task.auto_class, **common, **heads)
    body, _ = load_model_and_missing(path, AutoModel, **common)
    config = copy.deepcopy(body.config)
    for name, value in heads.items():
        setattr(config, name, value)
    auto_class: Any = task.auto_class
    model = auto_class.from_config(config, attn_implementation=config._attn_implementation)
    model.base_model.load_state_dict(body.state_dict(), strict=False)
    prefix = f"{model.base_model_prefix}."
    return model, [name for name in model.state_dict() if not name.startswith(prefix)]


def _config(path: str) -> dict[str, Any]:
    """An encoder's config; {} where it can't be read, which loading it will say."""
    try:
        return load_config(path).to_dict()
    except CheckpointError:
        return {}


def _check(splits: Mapping[str, Sequence[Example]], labels: Sequence[str], task: str) -> None:
    if task == "mask":
        return
    if len(labels) < 2:
        source = splits["train"][0].source
        raise DataError(
            f"{source.name if source else 'The training set'}: the one label is '"
            f"{labels[0] if labels else ''}'. Training needs at least two; add examples of another."
        )
    for split, examples in splits.items():
        if split != "train":
            check_labels(examples, labels, "the training set")
    warn_of_rare_labels(splits["train"])


def _warn_of_no_effect(options: TrainOptions, type_labels: Mapping[str, str]) -> None:
    """Name the options that teach a model to trust its graph and can't, and why."""
    recipe = asdict(options.recipe)
    for name in without_effect(recipe, type_labels):
        if options.task != "ner":
            why = f"it needs named entities, and the task is '{options.task}'. Leave it out"
        elif not (options.knowledge.kg or options.knowledge.hiding_kg):
            why = "there is no graph. Give one that says its names' types, or leave it out"
        else:
            known = ", ".join(type_labels) or "none"
            why = (
                f"it needs {NEEDED_TYPES[name]} or more tails that name a label, and of the "
                f"graph's tails these do: {known}. One does if {MIN_EVIDENCE} or more of a label's "
                f"training mentions have it, and {TYPE_SHARE:.0%} of those that the graph knows. "
                "Give a graph that says its names' types, or leave the option out"
            )
        log.warning("--%s %g has no effect: %s.", name, recipe[name], why)


def _report(options: TrainOptions, fitted: Fitted) -> dict[str, Any]:
    pipeline, splits, graph = fitted.pipeline, fitted.splits, fitted.graph
    type_labels = fitted.type_labels
    seen = surface_forms(splits["train"]) if options.task == "ner" else None
    report: dict[str, Any] = {"scores": {}, "without_knowledge": {}}
    for split, examples in splits.items():
        if split == "train":
            continue
        report["scores"][split] = evaluate(pipeline, examples, graph, seen=seen)
        if options.knowledge.kg:
            report["without_knowledge"][split] = evaluate(
                pipeline, examples, NO_KNOWLEDGE, seen=seen
            )
            if options.task == "ner" and type_labels:
                report.setdefault("edit_response", {})[split] = edit_response(
                    pipeline,
                    examples,
                    graph,
                    type_labels,
                    seen=seen or set(),
                )
    report.update(
        data=options.files.name,
        seed=options.run.seed,
        command=options.run.command,
        encoder=Path(options.start.encoder).name,
        recipe=asdict(options.recipe),
        epochs=options.optimiser.epochs,
        type_labels=dict(type_labels),
        parameters=sum(p.numel() for p in pipeline.encoder.model.parameters()),
        processes=fitted.together.count,
    )
    if options.optimiser.negatives is not None:
        report["negatives"] = options.optimiser.negatives
    if options.knowledge.hiding_kg:
        report["hiding_knowledge"] = list(_names(options.knowledge.hiding_kg))
    if fitted.attached:
        encoder = _body(options.start)
        report.update(adapters.described(fitted.attached, encoder, options.run.output))
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
    model = fitted.pipeline.encoder.model
    card = replace(fitted.pipeline.card, notes=notes)
    card.write_to(model.config)
    if not options.float32:
        model.half()
    with saving(output):
        with replacing(output, checkpoints_of(options)) as new:
            if fitted.attached:
                name = encoder_name(_body(options.start), output)
                adapters.save(fitted.attached, new, encoder=name)
            else:
                model.save_pretrained(new)
                fitted.pipeline.hugging_face_tokenizer.save_pretrained(new)
            write_card(new, card)
        adapters.forget_other(output, adapter=fitted.attached is not None)
    shutil.rmtree(checkpoints_of(options), ignore_errors=True)


def _names(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(plain_stem, paths))


def _learning_rate(options: TrainOptions, config: Any) -> float:
    if options.start.adapter:
        return 1e-3
    if options.start.encoder == SCRATCH:
        return 5e-4
    return 4e-4 if getattr(config, "hidden_size", 768) <= 384 else 5e-5
