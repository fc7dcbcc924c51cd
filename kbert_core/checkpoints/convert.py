"""Checkpoints of the released K-BERT code, of UER-py, or of PyTorch's BERT → safetensors."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from tokenizers import processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    BertTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.activations import ACT2FN

from kbert_core.checkpoints.checkpoint import Card, bert_tokenizer, load_model, load_tokenizer
from kbert_core.checkpoints.release_tensors import (
    DECODER,
    WITH_LABELS,
    WORDS,
    Found,
    Kind,
    checkpoint_file,
    one_head,
    read_tensors,
    sizes_of,
)
from kbert_core.errors import CheckpointError
from kbert_core.files import json_object, new_folder
from kbert_core.knowledge.selection import InjectionOptions

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
VOCABULARIES = ("vocab.txt", "google_vocab.txt")  # the second is the release's
NOT_IN_SHAPES = ("num_attention_heads", "hidden_act")
HEAD_WIDTH = 64  # BERT's, at every size Google published

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConversionReport:
    """What became of a checkpoint.

    Attributes:
        kind: what it was found to be.
        task: of the head brought over; None for a bare encoder.
        mapped: how many of its tensors are in the result.
        left_out: the tensors that aren't, by name, each with the reason.
        remarks: what else to know before using it.
        config: sizes of the encoder.
    """

    kind: Kind
    task: str | None
    mapped: int
    left_out: Mapping[str, str]
    remarks: tuple[str, ...]
    config: Mapping[str, Any]


def convert(
    source: str | Path,
    target: str | Path,
    *,
    vocab: Path | None = None,
    config: Path | None = None,
    heads: int | None = None,
) -> ConversionReport:
    """Bring a ``.bin`` checkpoint into a folder that ``Pipeline.load`` reads.

    Only tensors are read from the file; one that would run code is refused.
    The folder appears whole, after it was loaded once, or not at all.

    Args:
        source: a ``.bin`` file, or a folder that holds one.
        target: the folder to make; it must not exist, or be empty.
        vocab: vocabulary, one token a line; None: ``vocab.txt`` beside the
            source.
        config: JSON with sizes, of the release's form or Hugging Face's;
            None: ``config.json`` beside the source, if there is one.
        heads: attention heads; None: as the config says, or H / 64.

    Returns:
        What was brought over, and what not.

    Raises:
        CheckpointError: the source is no such checkpoint, a part of it is
            missing or doesn't fit, or the target can't be written to.
    """
    file = checkpoint_file(Path(source))
    target = Path(target)
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise CheckpointError(f"{target} is there already, and kept. Name a new folder.")
    stated = _stated(file, config)
    found = one_head(read_tensors(file, stated))
    made = _bert_config(found, stated, heads, file)
    vocabulary = _vocabulary(file, vocab, made.vocab_size)
    made.pad_token_id = vocabulary["[PAD]"]
    lower_cased = _lower_cased(file, vocabulary)
    tokenizer = _tokenizer(vocabulary, found, lower_cased, made)
    guessed = heads is None and "num_attention_heads" not in stated
    options = InjectionOptions(tail_only=found.tuned_by_release and found.task == "ner")
    reading = replace(Card().reading, options=options)
    notes = {"converted_from": file.name, "kind": found.kind}
    Card(found.task, reading, notes=notes).write_to(made)
    _save(_model(found, made, file), tokenizer, target)
    report = ConversionReport(
        found.kind,
        found.task,
        len(found.tensors),
        found.left_out,
        _remarks(found, made, stated, guessed_heads=guessed, lower_cased=lower_cased),
        {name: getattr(made, name) for name in (*sizes_of(found, file), *NOT_IN_SHAPES)},
    )
    log.info("%s: %d tensors from %s", target, report.mapped, file)
    return report


def _stated(file: Path, config: Path | None) -> dict[str, Any]:
    """Read the sizes a JSON states, in Hugging Face's words."""
    path = config or file.with_name("config.json")
    if config is None and not path.is_file():
        return {}
    remedy = "Mend it, or go without: the sizes are read off the checkpoint too."
    data = json_object(path, CheckpointError, remedy)
    kind = data.get("model_type", "bert")
    if kind != "bert":
        raise CheckpointError(
            f"{path}: is for a model of the kind '{kind}', and only BERT is converted here. Load "
            "it with transformers and save it again, which writes safetensors."
        )
    if data.get("emb_size", data.get("hidden_size")) != data.get("hidden_size"):
        raise CheckpointError(
            f"{path}: emb_size {data['emb_size']} and hidden_size {data.get('hidden_size')} "
            "differ, so this is no BERT. Only BERT is converted here."
        )
    stated = {_RELEASE_SIZES.get(str(name), str(name)): value for name, value in data.items()}
    if "dropout" in data:
        stated["hidden_dropout_prob"] = stated["attention_probs_dropout_prob"] = data["dropout"]
    return stated


_RELEASE_SIZES = {
    "feedforward_size": "intermediate_size",
    "heads_num": "num_attention_heads",
    "layers_num": "num_hidden_layers",
}


# Sizes

_ACTIVATIONS = {"gelu_fast": "gelu_new"}  # UER-py's word for the tanh approximation


def _bert_config(
    found: Found, stated: Mapping[str, Any], heads: int | None, file: Path
) -> BertConfig:
    sizes = sizes_of(found, file)
    for name, size in sizes.items():
        if name in stated and stated[name] != size:
            raise CheckpointError(
                f"{file}: its tensors have {name} {size}, and the config states {stated[name]}. "
                "Give the config that belongs to it, or none: the sizes are read off the tensors."
            )
    heads = stated.get("num_attention_heads") if heads is None else heads
    heads = _heads(sizes["hidden_size"], heads, file)
    act = stated.get("hidden_act", "gelu")
    act = _ACTIVATIONS.get(act, act) if isinstance(act, str) else act
    if not isinstance(act, str) or act not in ACT2FN:
        raise CheckpointError(
            f"The config states the activation {act!r}, expected one that transformers knows, "
            "such as gelu."
        )
    others: dict[str, Any] = {
        name: float(stated[name])
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "layer_norm_eps")
        if isinstance(stated.get(name), int | float)
    }
    others.update(sizes, num_attention_heads=heads, hidden_act=act)
    made = BertConfig(**others)
    if found.task == "mask":
        made.tie_word_embeddings = found.tied
    if found.task in WITH_LABELS:
        _name_labels(made, found.tensors["classifier.weight"].shape[0], stated)
    return made


def _heads(width: int, stated: Any, file: Path) -> int:
    """The attention heads; tensors don't tell, so BERT's usual width if nothing is stated."""
    heads = width / HEAD_WIDTH if stated is None else stated
    if not isinstance(heads, int | float) or heads < 1 or heads % 1 or width % heads:
        raise CheckpointError(
            f"{file}: {heads} attention heads don't fit its width {width}. Give how many it "
            "has (`--heads N`); its tensors don't tell."
        )
    return int(heads)


def _name_labels(made: BertConfig, count: int, stated: Mapping[str, Any]) -> None:
    made.num_labels = count  # LABEL_0 and so on
    if _labels_stated(stated, count):
        made.id2label = {int(i): str(label) for i, label in stated["id2label"].items()}
        made.label2id = {label: i for i, label in made.id2label.items()}


def _labels_stated(stated: Mapping[str, Any], count: int) -> bool:
    names = stated.get("id2label")
    return isinstance(names, dict) and {str(i) for i in names} == {str(i) for i in range(count)}


# Vocabulary


def _vocabulary(file: Path, given: Path | None, size: int) -> dict[str, int]:
    """Read a vocabulary that belongs to an embedding of so many rows."""
    beside = [file.with_name(name) for name in VOCABULARIES]
    path = given or next((p for p in beside if p.is_file()), None)
    if path is None:
        raise CheckpointError(
            f"{file}: found no vocab.txt beside it. Name the vocabulary it was trained with "
            "(`--vocab FILE`), one token a line."
        )
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"{path}: can't be read as a vocabulary ({error}). Expected UTF-8, one token a line."
        ) from error
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    vocabulary: dict[str, int] = {}
    for number, token in enumerate(lines):
        if token in vocabulary:
            raise CheckpointError(
                f"{path}, line {number + 1}: the token '{token}' stands in line "
                f"{vocabulary[token] + 1} too. Take the vocabulary as it was released."
            )
        vocabulary[token] = number
    if len(vocabulary) != size:
        raise CheckpointError(
            f"{path}: found {len(vocabulary)} tokens, expected {size}, as {file.name} has. Name "
            "the vocabulary it was trained with (`--vocab FILE`)."
        )
    lacking = [token for token in SPECIALS if token not in vocabulary]
    if lacking:
        raise CheckpointError(
            f"{path}: lacks {', '.join(lacking)}, so it is no vocabulary of BERT's. Name the one "
            "it was trained with (`--vocab FILE`)."
        )
    return vocabulary


def _lower_cased(file: Path, vocabulary: Mapping[str, int]) -> bool:
    """Whether texts are to be lower-cased: as stated, or if the vocabulary has no capitals."""
    path = file.with_name("tokenizer_config.json")
    if path.is_file():
        stated = json_object(path, CheckpointError, "Mend or remove it.").get("do_lower_case")
        if isinstance(stated, bool):
            return stated
    return "A" not in vocabulary


def _tokenizer(
    vocabulary: dict[str, int], found: Found, lower_cased: bool, made: BertConfig
) -> PreTrainedTokenizerBase:
    """A fast BERT tokenizer, with the special tokens the head was trained with."""
    length = made.max_position_embeddings
    bert = BertTokenizer(vocab=vocabulary, do_lower_case=lower_cased, model_max_length=length)
    if not found.tuned_by_release:
        return bert
    backend = bert.backend_tokenizer
    single, pair = "[CLS] $A", "[CLS] $A [SEP] $B:1 [SEP]:1"
    if found.task == "ner":
        single, pair = "$A", "$A $B:1"
    backend.post_processor = processors.TemplateProcessing(
        single=single,
        pair=pair,
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return bert_tokenizer(backend, length)


# Writing


def _model(found: Found, made: BertConfig, file: Path) -> PreTrainedModel:
    tensors = dict(found.tensors)
    model: PreTrainedModel
    if found.task == "mask":
        model = BertForMaskedLM(made)
        tensors.setdefault(DECODER, tensors[WORDS])
        tensors["cls.predictions.decoder.bias"] = tensors["cls.predictions.bias"]
    elif found.task == "ner":
        model = BertForTokenClassification(made)
    elif found.task == "classify":
        model = BertForSequenceClassification(made)
    else:
        model = BertModel(made, add_pooling_layer=bool(found.starting("bert.pooler.")))
        tensors = {name.removeprefix("bert."): value for name, value in tensors.items()}
    wanted = model.state_dict()
    for name in [*wanted, *tensors]:
        if name not in tensors:
            problem = "is missing, so this is no whole BERT"
        elif name not in wanted:
            problem = "belongs to no BERT, so this is a model of another kind"
        elif wanted[name].shape != tensors[name].shape:
            shapes = tuple(tensors[name].shape), tuple(wanted[name].shape)
            problem = f"has the shape {shapes[0]}, expected {shapes[1]}"
        else:
            continue
        own = found.names.get(name, found.names.get(f"bert.{name}", name))
        raise CheckpointError(f"{file}: {own} {problem}. Download or copy it again.")
    model.load_state_dict(tensors)
    return model


def _save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, target: Path) -> None:
    """Write the folder, load it once, and only then give it its name."""
    try:
        with new_folder(target) as folder:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            load_tokenizer(folder)
            load_model(folder, type(model), device="cpu")
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{target}: can't be written ({error}). Name another folder."
        ) from error


def _remarks(
    found: Found,
    made: BertConfig,
    stated: Mapping[str, Any],
    *,
    guessed_heads: bool,
    lower_cased: bool,
) -> tuple[str, ...]:
    labels = found.tensors["classifier.weight"].shape[0] if found.task in WITH_LABELS else 0
    remarks = (
        (
            found.kind != "Hugging Face BERT",
            "The weights of every layer norm were multiplied by sqrt((H - 1) / H), because the "
            "released code takes the standard deviation over H - 1; the results are the same.",
        ),
        (
            guessed_heads,
            f"{made.num_attention_heads} attention heads were assumed, {HEAD_WIDTH} wide each, as "
            "in every BERT of Google's; its tensors don't tell.",
        ),
        (
            found.task is None and not found.starting("bert.pooler."),
            "No pooler in it: where one is asked for, transformers makes a random one.",
        ),
        (
            found.task == "mask",
            "No pooler is kept; a classifier trained from it starts with a new one.",
        ),
        (
            found.task == "mask" and not made.tie_word_embeddings,
            "Fill-mask has output embeddings of its own, kept apart from the input's.",
        ),
        (
            labels and not _labels_stated(stated, labels),
            f"No label names are stored in it: they are LABEL_0 to LABEL_{labels - 1}. Write "
            "the names into id2label in config.json, in the order of its training.",
        ),
        (
            found.tuned_by_release and found.task == "ner",
            "Read as the release's tagger: LABEL_0 is [PAD] and LABEL_1 [ENT], the rest are the "
            "tags in the order in which its training file first has them. It was trained without "
            "[CLS] and [SEP], and on tails without their relations; both are kept so.",
        ),
        (
            found.tuned_by_release and found.task == "classify",
            "Read as the release's classifier, with pooling on [CLS], its default, and without "
            "[SEP] after a single sentence.",
        ),
        (
            found.tuned_by_release,
            "The release read texts by single characters; here runs of Latin letters and digits "
            "are word pieces, so texts with many of them may come out otherwise.",
        ),
        (lower_cased, "Texts are lower-cased, as the vocabulary is."),
        (not lower_cased, "Texts keep their capitals, as the vocabulary does."),
    )
    return tuple(remark for holds, remark in remarks if holds)
