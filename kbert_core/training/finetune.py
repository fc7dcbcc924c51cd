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
    AutoConfig,
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
    load_model_and_missing,
    load_tokenizer,
    moved,
)
from kbert_core.data.labelled import (
    Example,
    check_labels,
    labels_of,
    warn_of_rare_labels,
)
from kbert_core.data.sources import DataFiles, read_splits
from kbert_core.errors import DataError, OptionError
from kbert_core.kbert.ablation import FULL, Ablation, ReadConfig
from kbert_core.kbert.flat_tree import Batch
from kbert_core.kbert.mask_transformer import MaskTransformer
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.compression import plain_stem
from kbert_core.knowledge.selection import InjectionOptions, Strategy
from kbert_core.labels import WRONG
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_core.scoring.opening import scorer_of
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
    Recipe,
    batch_of,
    learn_type_labels,
    without_effect,
)
from kbert_core.training.limits import at_least, share, usable_folder, usable_seed
from kbert_core.training.masking import IGNORED
from kbert_core.training.matches import tell_of_matches
from kbert_core.training.ordered_trainer import BATCH, OrderedTrainer, arguments
from kbert_core.training.processes import Processes
from kbert_core.training.vocabulary import character_tokenizer

SCRATCH = "scratch"
SIZE = {"hidden_size": 256, "num_hidden_layers": 4}  # of a BERT from scratch
MAIN_SCORE = {
    **{"ner": "f1", "classify": "accuracy", "pair": "accuracy", "mask": "accuracy"},
    "rank": "mrr",
}
NOT_THE_RUN = {  # may differ when a run goes on; fingerprints stand for data and graphs
    *("data", "train", "dev", "test", "dev_share", "columns", "also_train"),
    *("kg", "hiding_kg", "skip_bad", "output", "command", "device", "bf16", "half"),
    *("batch_tokens", "accumulate", "patience", "log_every"),
}
WITH_LABELS = ("ForTokenClassification", "ForSequenceClassification")  # heads of a like name
SHOWN_EXAMPLES = 5  # of a batch that is named in an error
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainOptions:
    """How to fine-tune.

    Attributes:
        task: "ner", "classify", "pair", "rank" or "mask".
        data: folder of train, dev and test, or "hf:NAME".
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
            left as it is; None: the whole encoder is trained. Where the encoder
            is an adapter of this rank or a higher one, that one is trained
            further, brought to this rank.
        adapter_alpha: the adapter's weight is alpha / rank; None: twice the
            rank, or that of the adapter trained further.
        epochs: times through the training set.
        negatives: for answer selection: each epoch reads so many of a
            question's wrong answers, drawn anew; None: all.
        batch_tokens: tokens read at once by each process, padding included.
        accumulate: how often, before an optimiser step is made of them; the
            same as so many times ``batch_tokens``, in less memory.
        learning_rate: None: 1e-3 for an adapter, 5e-4 from scratch, 4e-4 for
            encoders up to 384 wide, else 5e-5.
        hidden_size, num_hidden_layers: of a BERT from scratch, and for that
            alone; None: 256 and 4.
        patience: epochs without a better dev score before stopping; 0: never.
        device: "auto", "cpu" or "cuda".
        bf16: compute in bfloat16; None: on CUDA.
        log_every: in steps.
        half: save parameters in half precision.
        train, dev, test, dev_share, columns, also_train: see
            :class:`DataFiles`.
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
    negatives: int | None = None
    batch_tokens: int = 1024
    accumulate: int = 1
    learning_rate: float | None = None
    warmup: float = 0.1
    weight_decay: float = 0.01
    dropout: float = 0.1
    hidden_size: int | None = None
    num_hidden_layers: int | None = None
    patience: int = 0
    seed: int = 0
    device: str = "auto"
    bf16: bool | None = None
    log_every: int = 50
    half: bool = True
    command: str = ""
    train: str | None = None
    dev: str | None = None
    test: str | None = None
    dev_share: float = 0.0
    columns: Mapping[str, str] = field(default_factory=dict)
    also_train: tuple[str, ...] = ()

    @property
    def files(self) -> DataFiles:
        """Where the data is."""
        splits = (self.train, self.dev, self.test)
        return DataFiles(self.data, *splits, self.dev_share, self.columns, self.also_train)

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise OptionError(f"No task '{self.task}'; expected one of {', '.join(TASKS)}.")
        assert self.files  # which checks what is given of the data
        for name in ("epochs", "accumulate", "log_every"):
            at_least(1, name, getattr(self, name))
        for name, value in self.size.items():
            at_least(1, name, value)
        at_least(16, "batch_tokens", self.batch_tokens)
        if self.negatives is not None:
            at_least(1, "negatives", self.negatives)
            if self.task != "rank":
                raise OptionError(
                    f"negatives is {self.negatives}, and is for answer selection (task rank) "
                    f"alone; the task is '{self.task}'. Leave it out."
                )
        for name in ("patience", "weight_decay"):
            at_least(0, name, getattr(self, name))
        if self.learning_rate is not None:
            at_least(0, "learning_rate", self.learning_rate, above=True)
        shares = {"dropout": self.dropout, "warmup": self.warmup, **asdict(self.recipe)}
        for name, value in shares.items():
            share(name, value)
        usable_seed(self.seed)
        usable_folder(self.output)
        given = [name for name in SIZE if getattr(self, name) is not None]
        if given and self.encoder != SCRATCH:
            raise OptionError(
                f"{given[0]} is {getattr(self, given[0])}, and is for a BERT from scratch; "
                f"{self.encoder} has its own size. Leave it out, or leave the encoder out."
            )
        width = self.size["hidden_size"]
        if width % max(1, width // 64):
            raise OptionError(
                f"hidden_size is {width}, which attention heads of width 64 don't "
                "divide. Give a multiple of 64."
            )
        if self.hiding_kg and self.kg:
            raise OptionError("Both kg and hiding_kg are given. Give kg, or for a twin hiding_kg.")
        adapters.check_options(
            self.adapter, self.adapter_alpha, encoder=self.encoder, output=self.output
        )

    @property
    def size(self) -> dict[str, int]:
        """Width and layers of a BERT from scratch."""
        given = {name: getattr(self, name) for name in SIZE}
        return SIZE | {name: value for name, value in given.items() if value is not None}

    @property
    def body(self) -> str:
        """The encoder under an adapter that is to be trained further; else as it is given."""
        further = self.adapter and adapters.is_adapter(self.encoder)
        return str(adapters.encoder_of(self.encoder)) if further else self.encoder


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
    device = device_named(options.device)
    together = processes.join(device)
    set_seed(options.seed)
    task = TASKS[options.task]
    splits = read_splits(options.files, options.task, seed=options.seed)
    graph = load_graph(*options.kg, skip_bad=options.skip_bad)
    labels = [] if task.name == "mask" else labels_of(splits["train"])
    _check(splits, labels, task.name)
    base = Card() if options.encoder == SCRATCH else card_of(options.encoder)
    injection = _fixed_scorer(options.injection or base.reading.options, options.encoder)
    scorer = scorer_of(injection, device=options.device)
    if together.main:
        tell_of_matches(splits["train"], graph, injection, "train", scorer=scorer)
    start = replace(options, encoder=options.body)
    tokenizer, model, missing = _start(start, splits["train"], graph, labels)
    scratch = options.encoder == SCRATCH
    weights = SCRATCH if scratch else adapters.weights_hash(model, missing)
    attached = None
    if options.adapter and options.body != options.encoder:
        attached = adapters.attach_again(
            model, options.encoder, rank=options.adapter, missing=missing
        )
    elif options.adapter:
        attached = adapters.attach(
            model, rank=options.adapter, alpha=options.adapter_alpha, missing=missing
        )
    length = base.reading.max_length if options.max_length is None else options.max_length
    reading = ReadConfig(injection, options.ablation, length)
    card = Card(task.name, reading, _names(options.kg))
    card.write_to(model.config)
    pipeline = Pipeline(moved(model, device), tokenizer, card)
    hiding = None
    if options.hiding_kg:
        hiding = load_graph(*options.hiding_kg, skip_bad=options.skip_bad)
    type_labels = {}
    if task.name == "ner":
        type_labels = learn_type_labels(splits["train"], hiding or graph, injection, scorer=scorer)
    _warn_of_no_effect(options, type_labels)
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
        scorer=scorer,
    )
    maker.look_ahead(splits["train"])
    checkpoints = checkpoints_of(options)
    last = together.shared(lambda: last_whole(checkpoints))
    rate = options.learning_rate or _learning_rate(options, model.config)
    batches = Batches(splits["train"], maker, options, parts=options.accumulate * together.count)
    run = {
        **{name: value for name, value in asdict(options).items() if name not in NOT_THE_RUN},
        **options.size,
        "learning_rate": rate,
        "injection": injection.as_dict(),
        "tokens a step": options.batch_tokens * batches.parts,
        "training and dev data": _fingerprint(splits),
        "graph": (hiding or graph).fingerprint[:16],
        "the graph only hides": hiding is not None,
    }
    its_own = {"kind": "train", "encoder": weights, "patience": options.patience}
    made = digests({**run, **its_own, "precision to save in": options.half})

    def begin() -> None:
        if not replacing_others and last is None:
            refuse_another_model(options.output, made, options.command)
        prepared(options.output, run, last=last)

    together.shared(begin)
    if not checkpoints.is_dir():
        raise OptionError(f"{options.output} isn't one folder for all machines. Name a shared one.")
    trainer = _trainer(options, pipeline, batches, splits["dev"], graph, rate, together)
    trainer.train_on(last)
    pipeline.encoder.model.eval()
    type_labels = {} if hiding else type_labels
    curve = [{k: v for k, v in scores.items() if k != "seconds"} for scores in trainer.curve]
    return Fitted(pipeline, splits, graph, type_labels, curve, attached, together, made)


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
    return Path(options.output) / "checkpoints"


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
        for epoch in range(options.epochs):
            random = np.random.default_rng((options.seed, epoch))
            read = None
            if options.negatives is not None:
                read = with_negatives(examples, options.negatives, random)
            for numbers in bucketed(lengths, parts * options.batch_tokens, random, among=read):
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
    """The trainer, reading flat trees."""

    def __init__(self, *, encoder: MaskTransformer, ablation: Ablation, **kwargs: Any) -> None:
        super().__init__(model=encoder.model, **kwargs)
        self.encoder, self.ablation = encoder, ablation

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Cross entropy over the labels of a step, in nats."""
        batch = Batch(**{f.name: inputs[f.name] for f in fields(Batch)})
        output = model(**self.encoder.inputs(batch, ablation=self.ablation))
        logits, labels = output.logits.float().flatten(0, -2), inputs["labels"].flatten()
        total = nn.functional.cross_entropy(
            logits, labels.to(logits.device), ignore_index=IGNORED, reduction="sum"
        )
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
        bf16=options.bf16,
        max_steps=len(batches.steps),
        per_device_train_batch_size=1,
        gradient_accumulation_steps=options.accumulate,
        learning_rate=rate,
        lr_scheduler_type="linear",
        warmup_steps=options.warmup,
        weight_decay=options.weight_decay,
        eval_strategy="steps",
        eval_steps=never,
        save_strategy="steps",
        save_steps=never,
        logging_steps=options.log_every,
        load_best_model_at_end=True,
        metric_for_best_model=name,
        greater_is_better=True,
        seed=options.seed,
    )
    callbacks: list[TrainerCallback] = [_AtEpochEnds(batches.epoch_ends)]
    if options.patience:
        callbacks.append(_Patience(options.patience, f"eval_{name}"))

    def score() -> dict[str, float]:
        pipeline.encoder.model.eval()
        return {name: evaluate(pipeline, dev, graph, ablation=options.ablation)[name]}

    return KnowledgeTrainer(
        encoder=pipeline.encoder,
        ablation=options.ablation,
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
        return load_tokenizer(options.encoder), *_pretrained(options, labels, heads)
    texts = [s for e in examples for s in e.sentences]
    texts += [text for triple in graph for text in (triple.relation, triple.tail)]
    tokenizer = character_tokenizer(texts)
    width = options.size["hidden_size"]
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=options.size["num_hidden_layers"],
        num_attention_heads=max(1, width // 64),
        intermediate_size=4 * width,
        hidden_dropout_prob=options.dropout,
        attention_probs_dropout_prob=options.dropout,
        pad_token_id=tokenizer.pad_token_id,
        **heads,
    )
    model = task.auto_class.from_config(config, attn_implementation="sdpa")  # type: ignore[attr-defined]
    return tokenizer, model, []


def _pretrained(
    options: TrainOptions, labels: Sequence[str], heads: dict[str, Any]
) -> tuple[PreTrainedModel, list[str]]:
    """A pretrained encoder with the task's head, which is new unless it is for these labels."""
    task, path = TASKS[options.task], options.encoder
    known = _config(path)
    dropouts = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    heads = {**heads, **{name: options.dropout for name in dropouts if name in known}}
    common: dict[str, Any] = {"device": options.device, "dtype": torch.float32}
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
        return AutoConfig.from_pretrained(str(adapters.located(path))).to_dict()
    except (OSError, ValueError):
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
        elif not (options.kg or options.hiding_kg):
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
        common: dict[str, Any] = {"ablation": options.ablation, "seen": seen}
        report["scores"][split] = evaluate(pipeline, examples, graph, **common)
        if options.kg:
            report["without_knowledge"][split] = evaluate(
                pipeline, examples, NO_KNOWLEDGE, **common
            )
            if options.task == "ner" and type_labels:
                report.setdefault("edit_response", {})[split] = edit_response(
                    pipeline,
                    examples,
                    graph,
                    type_labels,
                    seen=seen or set(),
                    ablation=options.ablation,
                )
    report.update(
        data=options.files.name,
        seed=options.seed,
        command=options.command,
        encoder=Path(options.encoder).name,
        recipe=asdict(options.recipe),
        epochs=options.epochs,
        type_labels=dict(type_labels),
        parameters=sum(p.numel() for p in pipeline.encoder.model.parameters()),
        processes=fitted.together.count,
    )
    if options.negatives is not None:
        report["negatives"] = options.negatives
    if options.hiding_kg:
        report["hiding_knowledge"] = list(_names(options.hiding_kg))
    if fitted.attached:
        report.update(adapters.described(fitted.attached, options.body, options.output))
        if options.body != options.encoder:
            report["trained_further"] = Path(options.encoder).name
    return report


def save(options: TrainOptions, fitted: Fitted, *, notes: Mapping[str, Any]) -> None:
    """Write the model, its tokenizer and card; then remove the checkpoints.

    Raises:
        CheckpointError: there is no room; the checkpoints are kept, and so is
            a model that was there before.
    """
    output = Path(options.output)
    model = fitted.pipeline.encoder.model
    card = replace(fitted.pipeline.card, notes=notes)
    card.write_to(model.config)
    if options.half:
        model.half()
    with saving(output):
        with replacing(output, checkpoints_of(options)) as new:
            if fitted.attached:
                name = adapters.encoder_name(options.body, output)
                adapters.save(fitted.attached, new, encoder=name)
            else:
                model.save_pretrained(new)
                fitted.pipeline.hugging_face_tokenizer.save_pretrained(new)
            write_card(new, card)
        forget = adapters.forget_whole if fitted.attached else adapters.forget
        forget(output)
    shutil.rmtree(checkpoints_of(options), ignore_errors=True)


def _names(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(plain_stem, paths))


def _learning_rate(options: TrainOptions, config: Any) -> float:
    if options.adapter:
        return 1e-3
    if options.encoder == SCRATCH:
        return 5e-4
    return 4e-4 if getattr(config, "hidden_size", 768) <= 384 else 5e-5
