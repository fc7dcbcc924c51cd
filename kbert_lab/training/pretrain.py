"""Masked-language-model pretraining without knowledge, as the paper prescribes."""

import hashlib
import json
import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import default_collate
from transformers import BertForMaskedLM, PreTrainedTokenizerBase, TrainingArguments
from transformers.trainer_utils import set_seed

from kbert_core.checkpoints.checkpoint import Card, device_named, load_tokenizer
from kbert_core.errors import CheckpointError, DataError, OptionError
from kbert_core.kbert.visible import visible_matrix
from kbert_core.labels import IGNORED
from kbert_core.layers import additive_mask
from kbert_lab.training import checkpoints
from kbert_lab.training.batches import BATCH
from kbert_lab.training.cards import write_card
from kbert_lab.training.corpus import (
    MaskedRows,
    encode_passages,
    pack,
    read_passages,
    sentences_of,
)
from kbert_lab.training.devices import is_main, join, shared, started_together
from kbert_lab.training.options import HOW_IT_RUNS, CorpusOptions, PretrainOptions
from kbert_lab.training.start import bert_config
from kbert_lab.training.trainer import Course, OrderedTrainer, arguments
from kbert_lab.training.vocabulary import character_tokenizer

FEWEST_ROWS = 20
HELD_OUT_ROWS, HELD_OUT_AT_ONCE = 256, 16
NOT_ON_THE_CARD = ("text", "exclude", "output", "command", "seed", "device", "again")
VOCABULARIES = ("tokenizer.json", "vocab.txt")
SCHEDULE = ("steps", "warmup", "decay")
NOT_THE_RUN = {  # may differ when a run goes on; what files hold stands for their names
    *("text", "exclude", "vocabulary", "save_every", "batch_tokens", "accumulate"),
    *(*SCHEDULE, *HOW_IT_RUNS),
}
log = logging.getLogger(__name__)


class PackedMaskedLM(BertForMaskedLM):
    """BERT for masked tokens on packed rows; its head runs on the masked tokens alone."""

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, position_ids: Tensor, tree_ids: Tensor, labels: Tensor
    ) -> Tensor:
        """(M, V) logits of the M tokens with a label; all given are (B, N), see ``MaskedRows``."""
        trunk = tree_ids.clamp(max=0)  # 0 for every real token, -1 at padding
        visible = visible_matrix(trunk, torch.zeros_like(trunk), tree_ids)
        hidden = self.base_model(
            input_ids=input_ids,
            attention_mask=additive_mask(visible, self.dtype),
            position_ids=position_ids,
        ).last_hidden_state
        return self.cls(hidden[labels != IGNORED]).float()  # type: ignore[no-any-return]


def total_loss(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    """Sum of the cross entropy of the masked tokens of a batch, in nats."""
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
    of, output = options.corpus, options.run.output
    device = device_named(options.run.device)
    join(device)
    set_seed(options.run.seed)
    step_rows = options.rows * options.optimiser.accumulate * started_together()
    kept = {name: value for name, value in options.flat().items() if name not in NOT_THE_RUN}
    run = {
        **kept,
        "kind": "pretrain",
        "tokens a step": step_rows * of.row_length,
        "text": _contents(of.text),
        "texts left out": _contents(of.exclude),
        "vocabulary": _contents([Path(of.vocabulary or "") / name for name in VOCABULARIES]),
    }
    changing = {name: getattr(options.optimiser, name) for name in SCHEDULE}
    last = checkpoints.last_checkpoint(output)
    if last:
        shared(lambda: _check_schedule(options, last))
    report = checkpoints.begin(options.run, run, changing, begins=last is None)
    if report is not None:
        return report
    tokenizer = _tokenizer(options, last)
    corpus = encode_passages(_passages(of), tokenizer, max_length=of.row_length)
    rows = pack(corpus, max_length=of.row_length, seed=options.run.seed)
    if len(rows) < FEWEST_ROWS:
        raise DataError(
            f"The text makes {len(rows)} rows of {of.row_length} tokens, and pretraining "
            f"needs {FEWEST_ROWS}. Add text files, or make rows shorter with --row-length."
        )
    held_out = min(HELD_OUT_ROWS, len(rows) // 10)
    if is_main():
        log.info("%d passages in %d rows, %d tokens", len(corpus), len(rows), len(corpus.ids))
    how: dict[str, Any] = {"max_length": of.row_length, "positions": options.bert.max_positions}
    how["seed"] = options.run.seed
    count = options.optimiser.steps * step_rows
    train = MaskedRows(corpus, rows[held_out:], tokenizer, count=count, **how)
    test = MaskedRows(  # masked in one way, so that held-out losses can be compared
        corpus, rows[:held_out], tokenizer, count=held_out, whole_words=False, **how
    )
    model = new_model(options, tokenizer)
    filled = len(corpus.ids) / len(rows)  # tokens of a row that aren't padding
    trainer = OrderedTrainer(
        model=model,
        args=_arguments(options, device),
        total_loss=total_loss,
        score=lambda: held_out_scores(model, test),
        course=Course(lambda step: step * step_rows * filled),
        train_dataset=train,
        data_collator=default_collate,
    )
    trainer.train_on(last)

    def finish() -> dict[str, Any]:
        report = {
            **held_out_scores(model, test),
            "tokens_seen": int(count * filled),
            "tokens_a_step": step_rows * of.row_length,
            "processes": started_together(),
            "seconds": round(trainer.course.seconds),
            "parameters": sum(p.numel() for p in model.parameters()),
            "held_out_rows": held_out,
            "options": {k: v for k, v in options.flat().items() if k not in NOT_ON_THE_CARD},
            "data": ", ".join(Path(path).name for path in of.text),
            "command": options.run.command,
            "seed": options.run.seed,
        }
        with checkpoints.saving(output):
            made = checkpoints.digests({**run, **changing})
            _save(options, model, tokenizer, {**report, "run": made}, trainer.curve)
        return report

    return shared(finish)


def held_out_scores(model: PackedMaskedLM, rows: MaskedRows) -> dict[str, float]:
    """Loss (nats), perplexity and accuracy on the masked tokens of held-out rows."""
    was_training = model.training
    model.eval()
    total, right, count = 0.0, 0, 0
    with torch.inference_mode():
        for start in range(0, len(rows), HELD_OUT_AT_ONCE):
            items = [rows[i] for i in range(len(rows))[start : start + HELD_OUT_AT_ONCE]]
            batch = default_collate(items).items()
            inputs = {name: t.to(model.device) for name, t in batch if name != BATCH}
            logits, labels = model(**inputs), inputs["labels"]
            labels = labels[labels != IGNORED]
            total += nn.functional.cross_entropy(logits, labels, reduction="sum").item()
            right += int((logits.argmax(-1) == labels).sum())
            count += len(labels)
    model.train(was_training)
    loss = total / max(1, count)
    return {"loss": loss, "perplexity": math.exp(loss), "accuracy": right / max(1, count)}


def _check_schedule(options: PretrainOptions, last: Path) -> None:
    """Refuse another number of steps, warm-up or decay where a run's rate would have been another.

    More steps are always possible, with a warning.
    """
    output, asked = options.run.output, options.optimiser
    before = checkpoints.noted(output)
    planned = replace(asked, **{name: before[name] for name in SCHEDULE if name in before})
    done = checkpoints.step_of(last)
    if asked.same_rates(planned, done):
        if asked.steps != planned.steps:
            log.info("%d steps instead of %d from here on", asked.steps, planned.steps)
    elif asked.steps > planned.steps:
        log.warning(
            "At step %d of %d the learning rate differed from that of a run of %d steps, and "
            "now changes suddenly: the model will differ a little from the result of such a run",
            *(done, planned.steps, asked.steps),
        )
    else:
        raise OptionError(
            f"{output}: the run in this folder reached step {done} of {planned.steps} with "
            f"another learning rate than steps {asked.steps}, warmup {asked.warmup} and decay "
            f"{asked.decay} give. Give steps {planned.steps} or more, warmup {planned.warmup} and "
            f"decay {planned.decay}, or name another --output."
        )


def _contents(paths: Iterable[str | Path]) -> list[str]:
    """Digests of the files there are; the others are told of when they are read."""
    digests = []
    for path in map(Path, paths):
        if path.is_file() and os.access(path, os.R_OK):
            with path.open("rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").hexdigest()[:16])
    return digests


def _arguments(options: PretrainOptions, device: torch.device) -> TrainingArguments:
    steps = options.optimiser
    return arguments(
        device,
        options.run,
        max_steps=steps.steps,
        per_device_train_batch_size=options.rows,
        gradient_accumulation_steps=steps.accumulate,
        learning_rate=steps.learning_rate,
        lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={"num_decay_steps": steps.decay_steps, "decay_type": "linear"},
        warmup_steps=steps.warmup_steps,
        adam_beta2=0.98,
        max_grad_norm=1.0,
        ddp_find_unused_parameters=False,
        eval_steps=steps.save_every,
        save_steps=steps.save_every,
    )


def _tokenizer(options: PretrainOptions, last: Path | None) -> PreTrainedTokenizerBase:
    """The tokenizer given; that of the run to go on with; else one made from the text."""
    of, output = options.corpus, options.run.output
    if of.vocabulary:
        tokenizer = load_tokenizer(of.vocabulary)
        needed = ("cls_token", "sep_token", "mask_token", "pad_token")
        missing = [name for name in needed if getattr(tokenizer, f"{name}_id") is None]
        if missing or not tokenizer.is_fast:
            what = f"has no {missing[0]}" if missing else "is a slow one"
            raise CheckpointError(
                f"{of.vocabulary}: its tokenizer {what}. Pretraining needs BERT's special tokens "
                "in a fast tokenizer (tokenizer.json); name another folder, or leave --vocabulary "
                "out."
            )
        return tokenizer

    def made() -> PreTrainedTokenizerBase:
        if last:
            return load_tokenizer(output)
        tokenizer = character_tokenizer(
            _passages(of),
            size=of.vocabulary_size,
            word_pieces=of.word_pieces,
            min_count=of.min_count,
            max_length=options.bert.max_positions,
        )
        with checkpoints.saving(output):
            tokenizer.save_pretrained(output)
        return tokenizer

    return shared(made)


def new_model(options: PretrainOptions, tokenizer: PreTrainedTokenizerBase) -> PackedMaskedLM:
    """A BERT from nothing, as large as the options say."""
    sizes = options.bert.flat()
    longest = sizes.pop("max_positions")
    return PackedMaskedLM(bert_config(tokenizer, max_position_embeddings=longest, **sizes))


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
    with checkpoints.replacing(options.run.output) as new:
        plain.half().save_pretrained(new)
        tokenizer.save_pretrained(new)
        write_card(new, card)
        (new / "pretraining.json").write_text(
            json.dumps({**report, "history": list(curve)}, indent=1), encoding="utf-8"
        )


def _passages(corpus: CorpusOptions) -> Iterator[str]:
    """The text without what is to be left out; refused if nothing stays."""
    passage = None
    for passage in read_passages(corpus.text, sentences_of(corpus.exclude)):
        yield passage
    if passage is None and any(True for _ in read_passages(corpus.text)):
        raise DataError(
            f"--exclude {' '.join(corpus.exclude)}: every passage of the text holds a sentence of "
            "these. Give other text, or leave some of these files out."
        )
