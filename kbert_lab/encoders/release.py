"""A ``.bin`` checkpoint of the released K-BERT, or of the UER-py it is built on → safetensors.

Its encoder is BERT under other names, with two differences that are settled
here so that the numbers stay the same:

- The release's segment table begins with a row for padding; the two below it
  are token types 0 and 1.
- The release's layer norm divides by the standard deviation with H - 1 in
  place of H. A factor of sqrt((H - 1) / H) on its weights does the same.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import processors
from torch import Tensor
from transformers import BertConfig, BertTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from kbert_core.checkpoints.adapters import misfit
from kbert_core.checkpoints.checkpoint import (
    Card,
)
from kbert_core.checkpoints.unreadable import SAVED_ANEW
from kbert_core.errors import CheckpointError
from kbert_core.knowledge.selection import InjectionOptions
from kbert_lab.encoders import bert_tokenizer, write_folder

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARIES = ("vocab.txt", "google_vocab.txt")  # the second is the release's
HEAD_WIDTH = 64  # BERT's, at every size Google published
AGAIN = "Download or copy it again."
SAVE_TENSORS = "with torch.save(model.state_dict(), FILE)."

WORDS = "bert.embeddings.word_embeddings.weight"
POSITIONS = "bert.embeddings.position_embeddings.weight"
TYPES = "bert.embeddings.token_type_embeddings.weight"
INNER = "bert.encoder.layer.0.intermediate.dense.weight"
DECODER = "cls.predictions.decoder.weight"
OUTPUT = "classifier.weight"
_LAYER, _BERT_LAYER = r"^encoder\.transformer\.(\d+)\.", r"bert.encoder.layer.\1."
_NAMES = (  # the release's → those of transformers
    (r"^embedding\.(word|position)_embedding\.", r"bert.embeddings.\1_embeddings."),
    (r"^embedding\.segment_embedding\.", "bert.embeddings.token_type_embeddings."),
    (r"^embedding\.layer_norm\.", "bert.embeddings.LayerNorm."),
    (_LAYER + r"self_attn\.linear_layers\.0\.", _BERT_LAYER + "attention.self.query."),
    (_LAYER + r"self_attn\.linear_layers\.1\.", _BERT_LAYER + "attention.self.key."),
    (_LAYER + r"self_attn\.linear_layers\.2\.", _BERT_LAYER + "attention.self.value."),
    (_LAYER + r"self_attn\.final_linear\.", _BERT_LAYER + "attention.output.dense."),
    (_LAYER + r"layer_norm_1\.", _BERT_LAYER + "attention.output.LayerNorm."),
    (_LAYER + r"feed_forward\.linear_1\.", _BERT_LAYER + "intermediate.dense."),
    (_LAYER + r"feed_forward\.linear_2\.", _BERT_LAYER + "output.dense."),
    (_LAYER + r"layer_norm_2\.", _BERT_LAYER + "output.LayerNorm."),
    (r"^target\.mlm_linear_1\.", "cls.predictions.transform.dense."),
    (r"^target\.layer_norm\.", "cls.predictions.transform.LayerNorm."),
    (r"^target\.mlm_linear_2\.weight$", DECODER),
    (r"^target\.mlm_linear_2\.bias$", "cls.predictions.bias"),
    (r"^target\.nsp_linear_", "cls.seq_relationship."),
    (r"^output_layer_1\.", "bert.pooler.dense."),
    (r"^output_layer(_2)?\.", "classifier."),
    (r"\.gamma$", ".weight"),
    (r"\.beta$", ".bias"),
)
_PARTS: tuple[tuple[str, tuple[str | None, ...], str], ...] = (
    # how a name starts; the tasks that need it; why others do without
    ("bert.pooler.", ("classify",), "a pooler, which this task doesn't use"),
    ("bert.", (None, "mask", "ner", "classify"), ""),
    ("classifier.", ("ner", "classify"), "not part of BERT"),
    ("cls.predictions.", ("mask",), "not a whole fill-mask head, or beside that of another task"),
    ("cls.seq_relationship.", (), "the next-sentence head; no task here uses it"),
    ("", (), "not part of BERT"),
)
_MODELS: dict[str | None, Any] = {
    None: partial(transformers.BertModel, add_pooling_layer=False),
    "mask": transformers.BertForMaskedLM,
    "ner": transformers.BertForTokenClassification,
    "classify": transformers.BertForSequenceClassification,
}
TUNED: Mapping[str | None, str] = {
    "ner": "Read as the release's tagger: LABEL_0 is [PAD] and LABEL_1 [ENT], the rest are the "
    "tags in the order in which its training file first has them. It was trained without [CLS] "
    "and [SEP], and on tails without their relations; both are kept so.",
    "classify": "Read as the release's classifier, with pooling on [CLS], its default, and without "
    "[SEP] after a single sentence.",
}
SIZES = (
    *("hidden_size", "intermediate_size", "num_hidden_layers"),
    *("vocab_size", "max_position_embeddings", "num_attention_heads"),
)


@dataclass(frozen=True)
class _Found:
    """A checkpoint's encoder with at most one head, under the names of ``BertFor...``."""

    task: str | None  # of the head
    tensors: dict[str, Tensor]
    names: Mapping[str, str]  # the checkpoint's own, by ours
    left_out: Mapping[str, str]


def convert(
    source: str | Path,
    target: str | Path,
    *,
    vocab: Path | None = None,
    heads: int | None = None,
) -> dict[str, Any]:
    """Bring a checkpoint of the release into a folder that ``Pipeline.from_pretrained`` reads.

    Only tensors are read from the file; one that would run code is refused.
    The folder appears whole, after it was loaded once, or not at all.

    Args:
        source: a ``.bin`` file, or a folder that holds one.
        vocab: one token a line; None: ``vocab.txt`` beside the source.
        heads: attention heads; None: H / 64, as in every BERT of Google's.

    Returns:
        The task of the head brought over, the number of tensors mapped, those
        left out with the reason, remarks, and the encoder's sizes.

    Raises:
        CheckpointError: the source is no such checkpoint, a part of it is
            missing or doesn't fit, or the target can't be written to.
    """
    file, target = _file(Path(source)), Path(target)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise CheckpointError(f"{target} is there already, and kept. Name a new folder.")
    found = _found(_tensors(file), file)
    made = _config(found, heads, file)
    vocabulary = _vocabulary(file, vocab, made.vocab_size)
    made.pad_token_id = vocabulary["[PAD]"]
    options = InjectionOptions(tail_only=found.task == "ner")
    reading = replace(Card().reading, options=options)
    Card(found.task, reading, notes={"converted_from": file.name}).write_to(made)
    model, tokenizer = _model(found, made, file), _tokenizer(vocabulary, found, made)
    write_folder(target, model, tokenizer)
    return {
        "task": found.task,
        "mapped": len(found.tensors),
        "left_out": found.left_out,
        "remarks": list(_remarks(found, made, heads is None, "A" in vocabulary)),
        "config": {name: getattr(made, name) for name in SIZES},
    }


def _file(source: Path) -> Path:
    """The one ``.bin`` file that is meant."""
    if not source.exists():
        raise CheckpointError(f"{source}: no such file or folder. Name a .bin checkpoint.")
    files = [source] if source.is_file() else sorted(source.glob("*.bin"))
    if len(files) != 1:
        raise CheckpointError(
            f"{source}: found {', '.join(p.name for p in files[:5]) or 'no .bin file'}, expected "
            "one checkpoint. Name its file; one that is split into parts has to be joined first, "
            "and a folder with safetensors needs no conversion."
        )
    return files[0]


def _tensors(file: Path) -> dict[str, Tensor]:
    """Read a file's tensors, and nothing that could run."""
    try:
        data = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # of all kinds, for bytes of all kinds
        code = re.search(r"(?:GLOBAL|Unsupported global:?)\s+`?([\w.]+)", str(error))
        if code:
            raise CheckpointError(
                f"{file}: holds more than tensors ({code[1]}) and could run code when it is "
                "opened, so it was not opened. If you trust the file, open it where it was made "
                f"and save only the tensors, {SAVE_TENSORS}"
            ) from error
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise CheckpointError(
            f"{file}: can't be read as a PyTorch checkpoint: it is incomplete or of another kind "
            f"({reason}). {AGAIN}"
        ) from error
    for name in ("state_dict", "model_state_dict", "model"):  # as trainers wrap it
        if isinstance(data, Mapping) and isinstance(data.get(name), Mapping):
            data = data[name]
    other = "" if isinstance(data, Mapping) and data else f"a {type(data).__name__}"
    if not other:
        other = next((f"'{n}'" for n, v in data.items() if not isinstance(v, Tensor)), "")
    if other:
        raise CheckpointError(
            f"{file}: holds {other}, expected tensors by name only. Save the model {SAVE_TENSORS}"
        )
    for name, value in data.items():
        if value.is_floating_point() and not value.isfinite().all():
            raise CheckpointError(f"{file}: {name} has infinite or undefined values. {AGAIN}")
    return {str(name).removeprefix("module."): value for name, value in data.items()}


def _found(given: Mapping[str, Tensor], file: Path) -> _Found:
    """Take a BERT and the head of one task from a checkpoint's tensors."""
    if not any(name.startswith("embedding.") for name in given):
        raise CheckpointError(
            f"{file}: its tensors are called {', '.join(list(given)[:3])}, … . Only checkpoints "
            f"of the released K-BERT and its UER-py are converted. {SAVED_ANEW}"
        )
    names: dict[str, str] = {}
    for own in given:
        new = own
        for pattern, name in _NAMES:
            new = re.sub(pattern, name, new)
        if new in names:
            raise CheckpointError(
                f"{file}: both {names[new]} and {own} stand for {new}. Leave one of them out."
            )
        if new.startswith(("embedding.", "encoder.")):
            raise CheckpointError(
                f"{file}: the released BERT has no tensor {own}. The encoder is of another kind, "
                "or comes from a newer UER-py. A newer UER-py has its own script for BERT: "
                "convert_bert_from_uer_to_huggingface.py."
            )
        names[new] = own
    task = "mask" if sum(name.startswith("cls.predictions.") for name in names) == 6 else None
    task = "ner" if "output_layer.weight" in given else task
    task = "classify" if "output_layer_1.weight" in given else task
    tensors, left_out = {}, {}
    for new, own in names.items():
        _, tasks, why = next(part for part in _PARTS if new.startswith(part[0]))
        if task not in tasks:
            left_out[own] = why
            continue
        tensors[new] = value = given[own]
        if new.endswith("LayerNorm.weight"):  # H - 1 becomes H: see the head of this file
            tensors[new] = value * math.sqrt(1 - 1 / max(value.numel(), 1))
        if new == TYPES and value.dim() == 2 and len(value) > 1:
            tensors[new] = value[1:]
            left_out[f"{own}[0]"] = "the row for padding, which nothing attends to"
    return _Found(task, tensors, names, left_out)


def _config(found: _Found, heads: int | None, file: Path) -> BertConfig:
    """A config of the sizes that the tensors have."""
    for name in (WORDS, POSITIONS, TYPES, INNER, *([OUTPUT] if found.task in TUNED else [])):
        value = found.tensors.get(name)
        if value is None or value.dim() != 2:
            what = "is missing" if value is None else f"has the shape {tuple(value.shape)}"
            own = found.names.get(name, name)
            raise CheckpointError(f"{file}: {own} {what}, so this is no whole BERT. {AGAIN}")
    layers = {n.split(".")[3] for n in found.tensors if n.startswith("bert.encoder.layer.")}
    made = BertConfig(
        hidden_size=found.tensors[WORDS].shape[1],
        num_hidden_layers=len(layers),
        intermediate_size=len(found.tensors[INNER]),
        vocab_size=len(found.tensors[WORDS]),
        max_position_embeddings=len(found.tensors[POSITIONS]),
        type_vocab_size=len(found.tensors[TYPES]),
    )
    if found.task in TUNED:
        made.num_labels = len(found.tensors[OUTPUT])
    if DECODER in found.tensors:
        made.tie_word_embeddings = found.tensors[DECODER].equal(found.tensors[WORDS])
    made.num_attention_heads = _heads(made.hidden_size, heads, file)
    return made


def _heads(width: int, stated: int | None, file: Path) -> int:
    """The attention heads; tensors don't tell, so BERT's usual width if nothing is stated."""
    heads = width / HEAD_WIDTH if stated is None else stated
    if heads < 1 or heads % 1 or width % heads:
        raise CheckpointError(
            f"{file}: {heads} attention heads don't fit its width {width}. Give the right number "
            "with `--heads N`: the tensors don't show it."
        )
    return int(heads)


def _vocabulary(file: Path, given: Path | None, size: int) -> dict[str, int]:
    """Read a vocabulary that belongs to an embedding of so many rows."""
    beside = [file.with_name(name) for name in VOCABULARIES]
    path = given or next((p for p in beside if p.is_file()), beside[0])
    remedy = "Name the vocabulary it was trained with (`--vocab FILE`): UTF-8, one token per line."
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"{path}: can't be read as a vocabulary ({error}). {remedy}"
        ) from error
    vocabulary: dict[str, int] = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n")):
        token = line.removesuffix("\r")
        if token in vocabulary:
            raise CheckpointError(
                f"{path}, line {number + 1}: the token '{token}' is also in line "
                f"{vocabulary[token] + 1}. Use the vocabulary file as it was released."
            )
        vocabulary[token] = number
    lacking = [token for token in SPECIALS if token not in vocabulary]
    if lacking or len(vocabulary) != size:
        what = f"lacks {', '.join(lacking)}" if lacking else f"found {len(vocabulary)} tokens"
        raise CheckpointError(
            f"{path}: {what}, expected {size} with BERT's special ones, as {file.name} has. "
            f"{remedy}"
        )
    return vocabulary


def _tokenizer(
    vocabulary: dict[str, int], found: _Found, made: BertConfig
) -> PreTrainedTokenizerBase:
    """A fast BERT tokenizer, with the special tokens the head was trained with."""
    lower, length = "A" not in vocabulary, made.max_position_embeddings
    bert = BertTokenizer(vocab=vocabulary, do_lower_case=lower, model_max_length=length)
    if found.task not in TUNED:
        return bert
    form = ("$A", "$A $B:1") if found.task == "ner" else ("[CLS] $A", "[CLS] $A [SEP] $B:1 [SEP]:1")
    special = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    backend = bert.backend_tokenizer
    backend.post_processor = processors.TemplateProcessing(*form, special)
    return bert_tokenizer(backend, length)


def _model(found: _Found, made: BertConfig, file: Path) -> PreTrainedModel:
    """Make a model of the tensors; refuse a file that lacks one or has one too many."""
    model: PreTrainedModel = _MODELS[found.task](made)
    prefix, tensors = "" if found.task else "bert.", dict(found.tensors)
    if found.task == "mask":
        tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"]
    wanted = {prefix + name: tensor for name, tensor in model.state_dict().items()}
    if wrong := misfit(tensors, wanted, found.names):
        raise CheckpointError(f"{file}: {wrong}, so this is no whole BERT. {AGAIN}")
    model.load_state_dict({name.removeprefix(prefix): value for name, value in tensors.items()})
    return model


def _remarks(found: _Found, made: BertConfig, guessed: bool, capitals: bool) -> Iterator[str]:
    """Yield what a user should know of the converted model, in sentences."""
    if guessed:
        yield (
            f"{made.num_attention_heads} attention heads were assumed, {HEAD_WIDTH} wide each, as "
            "in every BERT of Google's; its tensors don't tell."
        )
    if found.task == "mask" and not made.tie_word_embeddings:
        yield "Fill-mask has output embeddings of its own, kept apart from the input's."
    if found.task in TUNED:
        labels = found.tensors[OUTPUT]
        yield TUNED[found.task]
        yield (
            f"No label names are stored in it: they are LABEL_0 to LABEL_{len(labels) - 1}. "
            "Write the names into id2label in config.json, in the order of its training."
        )
        yield (
            "The release read texts by single characters; here runs of Latin letters and digits "
            "are word pieces, so texts with many of them may be split differently."
        )
    else:
        yield "No pooler is kept; a classifier trained from it starts with a new one."
    yield f"Texts {'keep their capitals' if capitals else 'are lower-cased'}, as in the vocabulary."
