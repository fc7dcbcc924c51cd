"""The start of a training: how texts are read; a tokenizer and a model with the task's head."""

import copy
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from transformers import AutoModel, BertConfig, PreTrainedModel, PreTrainedTokenizerBase

from kbert_core.checkpoints.adapters import encoder_of, read_adapter, weights_hash
from kbert_core.checkpoints.checkpoint import (
    Card,
    card_of,
    load_config,
    load_model_and_missing,
    load_tokenizer,
)
from kbert_core.checkpoints.encoders import is_adapter, is_frozen
from kbert_core.errors import CheckpointError, OptionError
from kbert_core.kbert.visible import FULL
from kbert_core.knowbert.candidates import Base
from kbert_core.roof.roof_bert import RoofConfig
from kbert_core.systems import reading_of
from kbert_core.tasks import Task
from kbert_lab.training.adapting import attach
from kbert_lab.training.options import SCRATCH, KnowledgeOptions, StartOptions
from kbert_lab.training.vocabulary import character_tokenizer

WITH_LABELS = ("ForTokenClassification", "ForSequenceClassification")  # heads of a like name
OF_A_SYSTEM = {  # an option that few systems have: how it is given, and to which system
    "bases": ("--base", "knowbert"),
    "ablation": ("positions and visibility", "k-bert"),
}
log = logging.getLogger(__name__)


def reading_in(knowledge: KnowledgeOptions, encoder: str) -> Any:
    """How texts are read in training: as given, else as the encoder's card says.

    Raises:
        OptionError: the system has no such option; or it scores triples with an
            encoder, and the model starts from scratch.
    """
    base = Card().reading if encoder == SCRATCH else card_of(encoder).reading
    config = reading_of(knowledge.system or base.system, base)
    given: dict[str, Any] = {"options": knowledge.injection, "max_length": knowledge.max_length}
    given["windows"] = knowledge.windows
    known, as_ever = {f.name for f in fields(config)}, (FULL, getattr(config, "ablation", FULL))
    if "ablation" in known or knowledge.ablation not in as_ever:
        given["ablation"] = knowledge.ablation
    if knowledge.base:
        given["bases"] = tuple(map(Base.of, knowledge.base))
    if knowledge.roof:
        given |= RoofConfig.changes(knowledge.roof)
    changes = {name: value for name, value in given.items() if value is not None}
    for name in changes.keys() - known:
        what, system = OF_A_SYSTEM.get(name, ("--roof", "roof-bert"))
        raise OptionError(
            f"The system '{config.system}' has no {name}. Leave {what} out, or name --system "
            f"{system}."
        )
    return replace(config, **changes).trained_from(None if encoder == SCRATCH else encoder)


@dataclass(frozen=True)
class Start:
    """A model before its training."""

    tokenizer: PreTrainedTokenizerBase
    model: PreTrainedModel
    weights: str  # digest of those that it starts from, or "scratch"
    learning_rate: float  # that suits it
    attached: Any = None  # the adapter; None: the whole model is trained


def body_of(options: StartOptions) -> str:
    """Return the encoder under an adapter, or the one that a folder without an encoder names."""
    further = options.adapter and is_adapter(options.encoder)
    elsewhere = further or is_frozen(options.encoder)
    return encoder_of(options.encoder) if elsewhere else options.encoder


def started(
    options: StartOptions,
    task: Task,
    labels: Sequence[str],
    texts: Callable[[], Iterable[str]],
    *,
    device: str,
) -> Start:
    """Make or load a model; ``texts`` are what a new model's vocabulary is counted on.

    Raises:
        CheckpointError: the encoder can't be used.
    """
    heads: dict[str, Any] = {}
    if labels:
        heads["id2label"] = dict(enumerate(labels))
        heads["label2id"] = {label: i for i, label in enumerate(labels)}
        heads["problem_type"] = task.problem_type
    if options.encoder == SCRATCH:
        new = character_tokenizer(texts())
        return Start(new, _new_model(options, task, new, heads), SCRATCH, 5e-4)
    body = body_of(options)
    tokenizer = load_tokenizer(body)
    model, missing = _pretrained(options, task, body, heads, device)
    weights = weights_hash(model, missing)
    if options.adapter is None:
        rate = 4e-4 if getattr(model.config, "hidden_size", 768) <= 384 else 5e-5
        return Start(tokenizer, model, weights, rate)
    is_further = is_adapter(options.encoder)
    further = read_adapter(options.encoder) if is_further else None
    attached = attach(model, rank=options.adapter, missing=missing, further=further)
    return Start(tokenizer, model, weights, 1e-3, attached)


def bert_config(
    tokenizer: PreTrainedTokenizerBase, hidden_size: int, dropout: float, **sizes: Any
) -> BertConfig:
    """The configuration of a BERT from nothing, for a vocabulary."""
    return BertConfig(
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        hidden_size=hidden_size,
        intermediate_size=4 * hidden_size,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        **sizes,
    )


def _new_model(
    options: StartOptions, task: Task, tokenizer: PreTrainedTokenizerBase, heads: dict[str, Any]
) -> PreTrainedModel:
    attention_heads = max(1, options.size["hidden_size"] // 64)
    sizes = {**options.size, "num_attention_heads": attention_heads, **heads}
    config = bert_config(tokenizer, dropout=options.dropout, **sizes)
    auto_class: Any = task.auto_class
    return auto_class.from_config(config, attn_implementation="sdpa")  # type: ignore[no-any-return]


def _pretrained(
    options: StartOptions, task: Task, path: str, heads: dict[str, Any], device: str
) -> tuple[PreTrainedModel, list[str]]:
    """Load a pretrained encoder; return its new parameters, too: the head's, unless it fits."""
    known: dict[str, Any] = {}
    with suppress(CheckpointError):  # which loading it will say
        known = load_config(path).to_dict()
    dropouts = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    changes = {**heads, **{name: options.dropout for name in dropouts if name in known}}
    common: dict[str, Any] = {"device": device, "dtype": torch.float32}
    auto_class: Any = task.auto_class
    has_other_head = _has_other_head(path, known, task, list(heads.get("label2id", ())))
    if not has_other_head or is_adapter(path) or not heads:
        return load_model_and_missing(path, auto_class, **common, **changes)
    body, _ = load_model_and_missing(path, AutoModel, **common)
    config = copy.deepcopy(body.config)
    for name, value in changes.items():
        setattr(config, name, value)
    model = auto_class.from_config(config, attn_implementation=config._attn_implementation)
    model.base_model.load_state_dict(body.state_dict(), strict=False)
    prefix = f"{model.base_model_prefix}."
    return model, [name for name in model.state_dict() if not name.startswith(prefix)]


def _has_other_head(path: str, known: dict[str, Any], task: Task, labels: list[str]) -> bool:
    """Say whether an encoder's head is for another task or other labels, and warn of it."""
    kinds = map(str, known.get("architectures") or ())
    heads = [name for name in kinds if name.endswith(WITH_LABELS)]
    before = [str(label) for _, label in sorted((known.get("id2label") or {}).items())]
    card, kind = card_of(path), task.auto_class.__name__.removeprefix("AutoModel")
    if not heads:
        return False
    if task.name not in (card.task or task.name, *card.others) or not all(
        name.endswith(kind) for name in heads
    ):
        about = f"was trained for the task '{card.task or heads[0]}'; its head for '{task.name}'"
    elif labels and before != labels:
        about = f"has a head for the labels {', '.join(before)}; the one for {', '.join(labels)}"
    else:
        return False
    log.warning("%s %s is new", path, about)
    return True
