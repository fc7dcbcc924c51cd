"""Masked-language-model pretraining without knowledge, as the paper prescribes."""

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainingArguments,
)
from transformers.trainer_utils import get_last_checkpoint, set_seed

from kbert_core.errors import DataError, OptionError
from kbert_core.pipeline import Card, load_tokenizer
from kbert_core.seeing import additive_mask, visible_matrix
from kbert_core.training.cards import write_card
from kbert_core.training.ordered_trainer import OrderedTrainer, Progress
from kbert_core.training.packing import (
    NOT_MASKED,
    MaskedRows,
    encode_passages,
    pack,
    read_passages,
    stack,
)
from kbert_core.training.vocabulary import character_tokenizer

HELD_OUT_ROWS = 256
NOT_ON_THE_CARD = ("text", "exclude", "output", "command", "seed")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PretrainOptions:
    """How to pretrain.

    Attributes:
        text: files of passages, one a line.
        output: folder for the model; a run that was cut off goes on there.
        steps: optimiser steps in all.
        batch_tokens: tokens a step.
        row_length: N of a packed row.
        hidden_size, num_hidden_layers, num_attention_heads: of the BERT.
        learning_rate: reached after ``warmup`` steps and kept, until the last
            ``decay`` of the steps, in which it falls linearly to 0. So a run
            can be given more steps, or cut short, until it begins to fall.
        exclude: files of sentences (of test sets) to keep out of the text.
        vocabulary: folder of a tokenizer to take; None: characters of the text.
    """

    text: tuple[str, ...]
    output: str
    steps: int = 10_000
    batch_tokens: int = 2048
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
    min_count: int = 10
    exclude: tuple[str, ...] = ()
    vocabulary: str | None = None
    save_every: int = 500
    seed: int = 0
    command: str = ""

    def __post_init__(self) -> None:
        if self.batch_tokens < self.row_length:
            raise OptionError(
                f"batch_tokens is {self.batch_tokens}, less than a row of {self.row_length}. "
                "Give at least one row's tokens."
            )


class MaskedLanguageTrainer(OrderedTrainer):
    """The trainer on packed rows."""

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """Cross entropy on the masked tokens; the head runs on them alone."""
        loss = masked_loss(model, inputs)
        return (loss, {"loss": loss.detach()}) if return_outputs else loss


def masked_loss(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    """Mean cross entropy over masked tokens, in nats.

    Args:
        model: a ``BertForMaskedLM``, possibly wrapped for several processes.
        inputs: a batch of ``MaskedRows``, (B, N) each.
    """
    plain: Any = getattr(model, "module", model)
    trees = inputs["tree_ids"]
    trunk = trees.clamp(max=0)  # 0 for every real token, -1 at padding
    visible = visible_matrix(trunk, torch.zeros_like(trunk), trees)
    hidden = plain.base_model(
        input_ids=inputs["input_ids"],
        attention_mask=additive_mask(visible, plain.dtype),
        position_ids=inputs["position_ids"],
    ).last_hidden_state
    chosen = inputs["labels"] != NOT_MASKED
    logits = plain.cls(hidden[chosen])
    return nn.functional.cross_entropy(logits.float(), inputs["labels"][chosen])


def pretrain(options: PretrainOptions) -> dict[str, Any]:
    """Pretrain a BERT and save it with its tokenizer and card.

    Returns:
        Held-out loss (nats), perplexity and accuracy on masked tokens,
        tokens seen, seconds.

    Raises:
        DataError: no text; a file that can't be read.
    """
    set_seed(options.seed)
    output = Path(options.output)
    output.mkdir(parents=True, exist_ok=True)
    exclude = _sentences(options.exclude)
    tokenizer = _tokenizer(options, exclude)
    passages = read_passages(options.text, exclude)
    corpus = encode_passages(passages, tokenizer, max_length=options.row_length)
    rows = pack(corpus, max_length=options.row_length, seed=options.seed)
    if len(rows) < 20:
        raise DataError(f"Only {len(rows)} rows of text; pretraining needs more. Add text files.")
    held_out = min(HELD_OUT_ROWS, len(rows) // 10)
    test_rows, train_rows = rows[:held_out], rows[held_out:]
    log.info("%d passages in %d rows, %d tokens", len(corpus), len(rows), len(corpus.ids))
    batch = max(1, options.batch_tokens // options.row_length)
    common: dict[str, Any] = {
        "max_length": options.row_length,
        "positions": options.max_positions,
        "seed": options.seed,
    }
    train = MaskedRows(corpus, train_rows, tokenizer, count=options.steps * batch, **common)
    test = MaskedRows(corpus, test_rows, tokenizer, count=len(test_rows), **common)
    model = _model(options, tokenizer)
    history: list[dict[str, float]] = []

    def score(step: int, saved: PreTrainedModel) -> None:
        scores = held_out_scores(saved, test)
        history.append({"step": step, **scores})
        log.info(
            "held out at step %d: loss %.3f, accuracy %.3f",
            step,
            scores["loss"],
            scores["accuracy"],
        )

    progress = Progress(batch * options.row_length, score)
    trainer = MaskedLanguageTrainer(
        model=model,
        args=_arguments(options, output, batch),
        train_dataset=train,
        data_collator=stack,
        callbacks=[progress],
    )
    trainer.train(resume_from_checkpoint=get_last_checkpoint(str(output / "checkpoints")))
    report = {
        **held_out_scores(model, test),
        "tokens_seen": int(options.steps * batch * options.row_length * _filled(corpus, rows)),
        "seconds": round(progress.seconds),
        "parameters": sum(p.numel() for p in model.parameters()),
        "held_out_rows": held_out,
        "options": {k: v for k, v in vars(options).items() if k not in NOT_ON_THE_CARD},
        "data": ", ".join(Path(path).name for path in options.text),
        "command": options.command,
        "seed": options.seed,
    }
    card = Card(task="mask", notes=report)
    card.write_to(model.config)
    model.half().save_pretrained(output)
    tokenizer.save_pretrained(output)
    write_card(output, card)
    (output / "pretraining.json").write_text(
        json.dumps({**report, "history": history}, indent=1), encoding="utf-8"
    )
    return report


def held_out_scores(model: PreTrainedModel, rows: Dataset[dict[str, Tensor]]) -> dict[str, float]:
    """Loss (nats), perplexity and accuracy on the masked tokens of held-out rows."""
    was_training = model.training
    model.eval()
    total, right, count = 0.0, 0, 0
    with torch.inference_mode():
        for start in range(0, len(rows), 16):  # type: ignore[arg-type]
            items = [rows[i] for i in range(start, min(start + 16, len(rows)))]  # type: ignore[arg-type]
            inputs = {name: t.to(model.device) for name, t in stack(items).items()}
            trees = inputs["tree_ids"]
            trunk = trees.clamp(max=0)
            visible = visible_matrix(trunk, torch.zeros_like(trunk), trees)
            logits = model(
                input_ids=inputs["input_ids"],
                attention_mask=additive_mask(visible, model.dtype),
                position_ids=inputs["position_ids"],
            ).logits.float()
            chosen = inputs["labels"] != NOT_MASKED
            labels = inputs["labels"][chosen]
            total += nn.functional.cross_entropy(logits[chosen], labels, reduction="sum").item()
            right += int((logits[chosen].argmax(-1) == labels).sum())
            count += len(labels)
    model.train(was_training)
    loss = total / count
    return {"loss": loss, "perplexity": math.exp(loss), "accuracy": right / count}


def _arguments(options: PretrainOptions, output: Path, batch: int) -> TrainingArguments:
    rest = options.steps - min(options.warmup, options.steps // 2)  # steps after warm-up
    return TrainingArguments(
        output_dir=str(output / "checkpoints"),
        max_steps=options.steps,
        per_device_train_batch_size=batch,
        learning_rate=options.learning_rate,
        lr_scheduler_type="warmup_stable_decay",
        lr_scheduler_kwargs={
            "num_decay_steps": max(1, round(options.decay * rest)),
            "decay_type": "linear",
        },
        warmup_steps=options.steps - rest,
        weight_decay=options.weight_decay,
        adam_beta2=0.98,
        max_grad_norm=1.0,
        save_steps=options.save_every,
        save_total_limit=2,
        logging_steps=50,
        remove_unused_columns=False,
        report_to=[],
        seed=options.seed,
        bf16=torch.cuda.is_available(),
        dataloader_pin_memory=torch.cuda.is_available(),
        disable_tqdm=True,
    )


def _tokenizer(options: PretrainOptions, exclude: Sequence[str]) -> PreTrainedTokenizerBase:
    if options.vocabulary:
        return load_tokenizer(options.vocabulary)
    if (Path(options.output) / "tokenizer.json").is_file():
        return load_tokenizer(options.output)
    tokenizer = character_tokenizer(
        read_passages(options.text, exclude),
        size=options.vocabulary_size,
        min_count=options.min_count,
        max_length=options.max_positions,
    )
    tokenizer.save_pretrained(options.output)
    return tokenizer


def _model(options: PretrainOptions, tokenizer: PreTrainedTokenizerBase) -> BertForMaskedLM:
    return BertForMaskedLM(
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
        )
    )


def _sentences(paths: Sequence[str]) -> list[str]:
    """Texts of labelled files, white space between characters taken out."""
    found: list[str] = []
    for path in paths:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            fields = line.split("\t")
            found.extend(field.replace(" ", "") for field in fields if len(field) >= 15)
    return found


def _filled(corpus: Any, rows: list[list[int]]) -> float:
    return float(len(corpus.ids) / (len(rows) * int(np.diff(corpus.ends, prepend=0).max())))
