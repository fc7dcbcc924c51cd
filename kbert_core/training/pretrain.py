"""Masked-language-model pretraining without knowledge, as the paper prescribes."""

import hashlib
import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerBase,
    TrainingArguments,
    get_wsd_schedule,
)
from transformers.trainer_utils import set_seed

from kbert_core.checkpoints.checkpoint import Card, device_named, load_tokenizer
from kbert_core.data.conll import conll_rows, is_conll
from kbert_core.data.squad import comprehension_texts
from kbert_core.errors import CheckpointError, DataError, OptionError
from kbert_core.kbert.visible import additive_mask, visible_matrix
from kbert_core.knowledge.io.compression import remedy
from kbert_core.training import processes
from kbert_core.training.cards import write_card
from kbert_core.training.checkpoints import (
    also_same,
    digests,
    last_whole,
    noted,
    prepared,
    refuse_another_model,
    replacing,
    saving,
    step_of,
)
from kbert_core.training.limits import at_least, share, usable_folder, usable_seed
from kbert_core.training.masking import IGNORED
from kbert_core.training.ordered_trainer import BATCH, OrderedTrainer, arguments
from kbert_core.training.packing import (
    UNREADABLE,
    Corpus,
    MaskedRows,
    encode_passages,
    open_text,
    pack,
    read_passages,
    stack,
)
from kbert_core.training.vocabulary import SPECIALS, character_tokenizer, read_words

FEWEST_ROWS = 20
HELD_OUT_ROWS = 256
NOT_ON_THE_CARD = ("text", "exclude", "output", "command", "seed", "words", "device")
VOCABULARIES = ("tokenizer.json", "vocab.txt")
SCHEDULE = ("steps", "warmup", "decay")
NOT_THE_RUN = {  # may differ when a run goes on; the corpus's fingerprint stands for its files
    *("text", "exclude", "vocabulary", "words", "output", "command", "device", "bf16"),
    *("save_every", "log_every", "batch_tokens", "accumulate", *SCHEDULE),
}
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PretrainOptions:
    """How to pretrain.

    Attributes:
        text: files of passages, one a line.
        output: folder for the model; a run that was cut off goes on there.
        steps: optimiser steps in all.
        batch_tokens: tokens read at once, by each process.
        accumulate: how often, before a step is made of them.
        row_length: N of a packed row.
        hidden_size, num_hidden_layers, num_attention_heads: of the BERT.
        learning_rate: reached after ``warmup`` steps and kept, until the last
            ``decay`` of the steps after those, in which it falls linearly to
            0. So a run can be given more steps, or cut short, until it begins
            to fall.
        vocabulary_size: at most so many tokens; of these
        word_pieces: so many for words of Latin letters and digits; 0: single
            characters there too.
        exclude: labelled files (of test sets) whose texts are kept out of the
            text: ``.tsv`` or ``.txt``, ``.xz`` too, and ``.json`` in SQuAD's form.
        vocabulary: folder of a tokenizer to take; None: made from the text.
        words: files of words whose characters are masked together.
        whole_words: whether word pieces and ``words`` are masked together.
        save_every, log_every: in steps.
        device: "auto", "cpu" or "cuda".
        bf16: compute in bfloat16; None: on CUDA.
    """

    text: tuple[str, ...]
    output: str
    steps: int = 10_000
    batch_tokens: int = 2048
    accumulate: int = 1
    row_length: int = 128
    hidden_size: int = 256
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    max_positions: int = 512
    learning_rate: float = 1e-3
    warmup: int = 500
    decay: float = 0.25
    weight_decay: float = 0.01
    dropout: float = 0.0
    vocabulary_size: int = 6000
    word_pieces: int = 0
    min_count: int = 10
    exclude: tuple[str, ...] = ()
    vocabulary: str | None = None
    words: tuple[str, ...] = ()
    whole_words: bool = True
    save_every: int = 500
    log_every: int = 50
    seed: int = 0
    device: str = "auto"
    bf16: bool | None = None
    command: str = ""

    def __post_init__(self) -> None:
        for name in (
            *("steps", "accumulate", "hidden_size", "num_hidden_layers", "num_attention_heads"),
            *("save_every", "log_every", "min_count"),
        ):
            at_least(1, name, getattr(self, name))
        at_least(8, "row_length", self.row_length)
        at_least(8, "vocabulary_size", self.vocabulary_size)
        for name in ("warmup", "weight_decay", "word_pieces"):
            at_least(0, name, getattr(self, name))
        at_least(0, "learning_rate", self.learning_rate, above=True)
        for name in ("decay", "dropout"):
            share(name, getattr(self, name))
        usable_seed(self.seed)
        usable_folder(self.output)
        if self.batch_tokens < self.row_length:
            raise OptionError(
                f"batch_tokens is {self.batch_tokens}, less than a row of {self.row_length}. "
                "Give at least one row's tokens."
            )
        if self.max_positions < self.row_length:
            raise OptionError(
                f"max_positions is {self.max_positions}, less than a row of {self.row_length}. "
                "Give at least a row's length."
            )
        if self.hidden_size % self.num_attention_heads:
            raise OptionError(
                f"hidden_size is {self.hidden_size}, which {self.num_attention_heads} attention "
                "heads don't divide. Give a multiple of their number."
            )
        if not self.vocabulary and self.word_pieces > self.vocabulary_size - len(SPECIALS):
            raise OptionError(
                f"word_pieces is {self.word_pieces}, more than a vocabulary_size of "
                f"{self.vocabulary_size} has room for beside {len(SPECIALS)} special tokens. Give "
                "fewer pieces or a larger vocabulary."
            )
        if self.vocabulary and self.word_pieces:
            raise OptionError("Both vocabulary and word_pieces are given. Give one of them.")

    @property
    def rows(self) -> int:
        """Rows that a process reads at once."""
        return self.batch_tokens // self.row_length

    @property
    def warmup_steps(self) -> int:
        """Steps in which the rate rises: ``warmup``, at most half of all."""
        return min(self.warmup, self.steps // 2)

    @property
    def decay_steps(self) -> int:
        """Steps in which the rate falls."""
        return max(1, round(self.decay * (self.steps - self.warmup_steps)))


class PackedMaskedLM(BertForMaskedLM):
    """BERT for masked tokens on packed rows; its head runs on the masked tokens alone."""

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor,
        position_ids: Tensor,
        tree_ids: Tensor,
        labels: Tensor,
    ) -> Tensor:
        """Score the vocabulary for every masked token.

        Args:
            input_ids, position_ids, tree_ids, labels: (B, N), see ``MaskedRows``.

        Returns:
            (M, V) logits of the M tokens with a label, in reading order.
        """
        trunk = tree_ids.clamp(max=0)  # 0 for every real token, -1 at padding
        visible = visible_matrix(trunk, torch.zeros_like(trunk), tree_ids)
        hidden = self.base_model(
            input_ids=input_ids,
            attention_mask=additive_mask(visible, self.dtype),
            position_ids=position_ids,
        ).last_hidden_state
        return self.cls(hidden[labels != IGNORED]).float()  # type: ignore[no-any-return]


class MaskedLanguageTrainer(OrderedTrainer):
    """The trainer on packed rows."""

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Cross entropy over the masked tokens of a step, in nats; see :func:`total_loss`."""
        total = total_loss(model, inputs)
        loss = self.mean_loss(total, num_items_in_batch, inputs)
        return (loss, {"loss": loss.detach()}) if return_outputs else loss


def total_loss(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    """Sum of the cross entropy of the masked tokens, in nats.

    Args:
        inputs: (B, N) tensors, see ``MaskedRows`` and ``stack``.
    """
    logits = model(**{name: value for name, value in inputs.items() if name != BATCH})
    labels = inputs["labels"]
    return nn.functional.cross_entropy(logits, labels[labels != IGNORED], reduction="sum")


def pretrain(options: PretrainOptions) -> dict[str, Any]:
    """Pretrain a BERT and save it with its tokenizer and card.

    Returns:
        Held-out loss (nats), perplexity and accuracy on masked tokens,
        tokens seen, seconds; in every process the same.

    Raises:
        DataError: no text, a file that can't be read, a loss that is no
            number. OptionError: the output folder can't be used, or holds
            another run or its model. CheckpointError: there is no room to save.
    """
    device = device_named(options.device)
    together = processes.join(device)
    set_seed(options.seed)
    checkpoints = Path(options.output) / "checkpoints"
    last = together.shared(lambda: last_whole(checkpoints))
    step_rows = options.rows * options.accumulate * together.count
    made = together.shared(lambda: _begin(options, last, step_rows))
    if not checkpoints.is_dir():
        raise OptionError(f"{options.output} isn't one folder for all machines. Name a shared one.")
    tokenizer = _tokenizer(options, together, last)
    corpus = encode_passages(
        _passages(options),
        tokenizer,
        max_length=options.row_length,
        words=read_words(options.words) if options.words and options.whole_words else None,
    )
    together.shared(lambda: also_same(options.output, _fingerprint(corpus)))
    rows = pack(corpus, max_length=options.row_length, seed=options.seed)
    if len(rows) < FEWEST_ROWS:
        raise DataError(
            f"The text makes {len(rows)} rows of {options.row_length} tokens, and pretraining "
            f"needs {FEWEST_ROWS}. Add text files, or make rows shorter with --row-length."
        )
    held_out = min(HELD_OUT_ROWS, len(rows) // 10)
    if together.main:
        log.info("%d passages in %d rows, %d tokens", len(corpus), len(rows), len(corpus.ids))
    train, test = (
        MaskedRows(
            corpus,
            rows[part],
            tokenizer,
            count=count,
            max_length=options.row_length,
            positions=options.max_positions,
            seed=options.seed,
            whole_words=whole_words,
        )
        for part, count, whole_words in (
            (slice(held_out, None), options.steps * step_rows, options.whole_words),
            (slice(held_out), held_out, False),  # so that held-out losses can be compared
        )
    )
    model = new_model(options, tokenizer)
    filled = len(corpus.ids) / len(rows)  # tokens of a row that aren't padding
    trainer = MaskedLanguageTrainer(
        model=model,
        args=_arguments(options, device, checkpoints),
        score=lambda: held_out_scores(model, test),
        processes=together,
        describe=train.described,
        tokens=lambda step: step * step_rows * filled,
        train_dataset=train,
        eval_dataset=test,
        data_collator=stack,
    )
    trainer.train_on(last)

    def finish() -> dict[str, Any]:
        report = {
            **held_out_scores(model, test),
            "tokens_seen": int(len(train) * filled),
            "tokens_a_step": step_rows * options.row_length,
            "processes": together.count,
            "seconds": round(trainer.progress.seconds),
            "parameters": sum(p.numel() for p in model.parameters()),
            "held_out_rows": held_out,
            "options": {k: v for k, v in vars(options).items() if k not in NOT_ON_THE_CARD},
            "data": ", ".join(Path(path).name for path in options.text),
            "command": options.command,
            "seed": options.seed,
        }
        with saving(options.output):
            _save(options, model, tokenizer, {**report, "run": made}, trainer.curve)
        return report

    return together.shared(finish)


def held_out_scores(model: PackedMaskedLM, rows: Dataset[dict[str, Tensor]]) -> dict[str, float]:
    """Loss (nats), perplexity and accuracy on the masked tokens of held-out rows."""
    was_training = model.training
    model.eval()
    total, right, count = 0.0, 0, 0
    with torch.inference_mode():
        for start in range(0, len(rows), 16):  # type: ignore[arg-type]
            items = [rows[i] for i in range(start, min(start + 16, len(rows)))]  # type: ignore[arg-type]
            inputs = {name: t.to(model.device) for name, t in stack(items).items() if name != BATCH}
            logits = model(**inputs)
            labels = inputs["labels"][inputs["labels"] != IGNORED]
            total += nn.functional.cross_entropy(logits, labels, reduction="sum").item()
            right += int((logits.argmax(-1) == labels).sum())
            count += len(labels)
    model.train(was_training)
    loss = total / count
    return {"loss": loss, "perplexity": math.exp(loss), "accuracy": right / count}


def schedule(options: PretrainOptions) -> Callable[[int], float]:
    """The share of the learning rate that each step gets, as the trainer sets it."""
    optimizer = torch.optim.SGD([torch.zeros(1)])
    made = get_wsd_schedule(
        optimizer,
        num_warmup_steps=options.warmup_steps,
        num_decay_steps=options.decay_steps,
        num_training_steps=options.steps,
        decay_type="linear",
    )
    return made.lr_lambdas[0]  # type: ignore[no-any-return]


def check_schedule(options: PretrainOptions, last: Path) -> None:
    """See whether a run can go on with another number of steps, warm-up or decay.

    It can while its rate has been what it would have been with the new ones
    from the start. More steps are always possible, with a warning.

    Raises:
        OptionError: not more steps, and the rate would have been another.
    """
    before = noted(options.output)
    planned = replace(options, **{name: before[name] for name in SCHEDULE if name in before})
    done = step_of(last)
    now, then = schedule(options), schedule(planned)
    if all(then(step) == now(step) for step in range(done + 1)):
        if options.steps != planned.steps:
            log.info("%d steps instead of %d from here on", options.steps, planned.steps)
    elif options.steps > planned.steps:
        log.warning(
            "At step %d of %d the rate wasn't that of a run of %d steps, and changes at once: the "
            "model won't be quite what such a run gives",
            *(done, planned.steps, options.steps),
        )
    else:
        raise OptionError(
            f"{options.output}: the run there has gone on to step {done} of {planned.steps}, at "
            f"another rate than with steps {options.steps}, warmup {options.warmup} and decay "
            f"{options.decay}. Give steps {planned.steps} or more, warmup {planned.warmup} and "
            f"decay {planned.decay}, or name another --output."
        )


def _begin(options: PretrainOptions, last: Path | None, step_rows: int) -> dict[str, str]:
    """Refuse another run or its model, before anything takes long; the run's ``digests``."""
    kept = {name: value for name, value in vars(options).items() if name not in NOT_THE_RUN}
    run = {**kept, "tokens a step": step_rows * options.row_length}
    changing = {name: getattr(options, name) for name in SCHEDULE}
    read = {"text": options.text, "texts left out": options.exclude, "words": options.words}
    sizes: dict[str, Any] = {name: _sizes(paths) for name, paths in read.items()}
    folder = Path(options.vocabulary or "")
    sizes["vocabulary"] = [folder.name, *_sizes([folder / name for name in VOCABULARIES])]
    made = digests({**run, **changing, **sizes, "kind": "pretrain"})
    if last:
        check_schedule(options, last)
    else:
        refuse_another_model(options.output, made, options.command)
    prepared(options.output, run, last=last, changing=changing)
    return made


def _sizes(paths: Sequence[str | Path]) -> list[tuple[str, int]]:
    """Names and bytes of the files there are; the others are told of when they are read."""
    files = filter(Path.is_file, map(Path, paths))
    return [(file.name, file.stat().st_size) for file in files]


def _fingerprint(corpus: Corpus) -> dict[str, str]:
    digest = hashlib.sha256()
    for part in (corpus.ids, corpus.ends, corpus.inside):
        digest.update(part.tobytes())
    return {"text, its vocabulary and words": digest.hexdigest()[:16]}


def _arguments(
    options: PretrainOptions, device: torch.device, checkpoints: Path
) -> TrainingArguments:
    return arguments(
        device,
        checkpoints,
        bf16=options.bf16,
        max_steps=options.steps,
        per_device_train_batch_size=options.rows,
        gradient_accumulation_steps=options.accumulate,
        learning_rate=options.learning_rate,
        lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={"num_decay_steps": options.decay_steps, "decay_type": "linear"},
        warmup_steps=options.warmup_steps,
        weight_decay=options.weight_decay,
        adam_beta2=0.98,
        max_grad_norm=1.0,
        ddp_find_unused_parameters=False,
        eval_strategy="steps",
        eval_steps=options.save_every,
        save_steps=options.save_every,
        logging_steps=options.log_every,
        seed=options.seed,
    )


def _tokenizer(
    options: PretrainOptions, together: processes.Processes, last: Path | None
) -> PreTrainedTokenizerBase:
    """The tokenizer given; that of the run to go on with; else one made from the text."""
    if options.vocabulary:
        return _given_tokenizer(options.vocabulary)

    def made() -> PreTrainedTokenizerBase:
        if last:
            return load_tokenizer(options.output)
        tokenizer = character_tokenizer(
            _passages(options),
            size=options.vocabulary_size,
            word_pieces=options.word_pieces,
            min_count=options.min_count,
            max_length=options.max_positions,
        )
        with saving(options.output):
            tokenizer.save_pretrained(options.output)
        return tokenizer

    return together.shared(made)


def new_model(options: PretrainOptions, tokenizer: PreTrainedTokenizerBase) -> PackedMaskedLM:
    """A BERT from nothing, as large as the options say."""
    return PackedMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=options.hidden_size,
            num_hidden_layers=options.num_hidden_layers,
            num_attention_heads=options.num_attention_heads,
            intermediate_size=4 * options.hidden_size,
            max_position_embeddings=options.max_positions,
            hidden_dropout_prob=options.dropout,
            attention_probs_dropout_prob=options.dropout,
            pad_token_id=tokenizer.pad_token_id,
        ),
    )


def _save(
    options: PretrainOptions,
    model: PackedMaskedLM,
    tokenizer: PreTrainedTokenizerBase,
    report: Mapping[str, Any],
    curve: Sequence[Mapping[str, float]],
) -> None:
    """Write the model as a plain BERT in half precision, its tokenizer, card and curve.

    A model that was there before is kept until all of this is written.
    """
    plain = BertForMaskedLM(model.config)
    weights = model.state_dict()
    plain.load_state_dict({name: weights[name] for name in plain.state_dict()})
    card = Card(task="mask", notes=report)
    card.write_to(plain.config)
    with replacing(options.output, Path(options.output) / "checkpoints") as new:
        plain.half().save_pretrained(new)
        tokenizer.save_pretrained(new)
        write_card(new, card)
        (new / "pretraining.json").write_text(
            json.dumps({**report, "history": list(curve)}, indent=1), encoding="utf-8"
        )


def _passages(options: PretrainOptions) -> Iterator[str]:
    """The text without what is to be left out; refused if nothing stays."""
    passage = None
    for passage in read_passages(options.text, sentences_of(options.exclude)):
        yield passage
    if passage is None and any(True for _ in read_passages(options.text)):
        raise DataError(
            f"--exclude {' '.join(options.exclude)}: every passage of the text holds a sentence of "
            "these. Give other text, or leave some of these files out."
        )


def sentences_of(paths: Sequence[str]) -> list[str]:
    """Texts of labelled files: every column, or of JSON every question and sentence.

    Of one token a line, the sentences; white space in them doesn't count.
    """
    found: list[str] = []
    for path in paths:
        if path.endswith(".json"):
            found += comprehension_texts(path)
            continue
        try:
            with open_text(path) as file:
                lines = file.read().splitlines()
            if is_conll(lines):
                found += ["".join(tokens) for _, tokens, _ in conll_rows(lines, path)]
            else:
                found += [column for line in lines for column in line.split("\t")]
        except UNREADABLE as error:
            raise DataError(
                f"{path}: can't be read as texts to leave out ({error}). {remedy(error)}"
            ) from error
    return found


def _given_tokenizer(path: str) -> PreTrainedTokenizerBase:
    """A tokenizer that masking and packing can use."""
    tokenizer = load_tokenizer(path)
    needed = ("cls_token", "sep_token", "mask_token", "pad_token")
    missing = [name for name in needed if getattr(tokenizer, f"{name}_id") is None]
    if missing or not tokenizer.is_fast:
        what = f"has no {missing[0]}" if missing else "is a slow one"
        raise CheckpointError(
            f"{path}: its tokenizer {what}. Pretraining needs BERT's special tokens in a fast "
            "tokenizer (tokenizer.json); name another folder, or leave --vocabulary out."
        )
    return tokenizer
