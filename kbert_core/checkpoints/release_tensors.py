"""A ``.bin`` checkpoint's tensors under Hugging Face's names, whoever named them.

K-BERT's release (and UER-py, which it is built on) and transformers name
BERT's tensors differently. BERT is the same in both, with two differences
that are settled here so that the numbers stay the same:

- The release's segment table begins with a row for padding; the two below it
  are token types 0 and 1.
- The release's layer norm divides by the standard deviation with H - 1 in
  place of H. A factor of sqrt((H - 1) / H) on its weights does the same.
"""

import math
import pickle
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from kbert_core.errors import CheckpointError

Kind = Literal["K-BERT", "UER-py", "Hugging Face BERT"]
WORDS = "bert.embeddings.word_embeddings.weight"
POSITIONS = "bert.embeddings.position_embeddings.weight"
TYPES = "bert.embeddings.token_type_embeddings.weight"
WITH_LABELS = ("ner", "classify")  # tasks
DECODER = "cls.predictions.decoder.weight"


@dataclass(frozen=True)
class Found:
    """A checkpoint's tensors under Hugging Face's names.

    Attributes:
        kind: whose they were.
        tensors: by the names of ``BertFor...``.
        names: the checkpoint's own, by Hugging Face's.
        left_out: the reason, by the checkpoint's own name.
        task: of the head; None: no head.
    """

    kind: Kind
    tensors: dict[str, Tensor]
    names: dict[str, str]
    left_out: dict[str, str] = field(default_factory=dict)
    task: str | None = None

    @property
    def tuned_by_release(self) -> bool:
        """Whether the release's own scripts fine-tuned it."""
        return self.kind == "K-BERT" and self.task in WITH_LABELS

    @property
    def tied(self) -> bool:
        """Whether fill-mask scores words with the embeddings themselves."""
        decoder = self.tensors.get(DECODER)
        return decoder is None or torch.equal(decoder, self.tensors[WORDS])

    def without(self, dropped: Iterable[str], why: str) -> "Found":
        """Leave tensors out, saying why."""
        dropped = [name for name in dropped if name in self.tensors]
        kept = {name: t for name, t in self.tensors.items() if name not in dropped}
        reasons = {self.names[name]: why for name in dropped}
        return replace(self, tensors=kept, left_out={**self.left_out, **reasons})

    def starting(self, *starts: str) -> list[str]:
        """The names that start so."""
        return [name for name in self.tensors if name.startswith(starts)]


_NEWER = (  # UER-py renamed some tensors after K-BERT's release
    (r"^embedding\.(word|pos|seg)\.embedding\.", r"embedding.\1_embedding."),
    (r"^embedding\.pos_", "embedding.position_"),
    (r"^embedding\.seg_", "embedding.segment_"),
    (r"^target\.mlm\.linear_", "target.mlm_linear_"),
    (r"^target\.mlm\.layer_norm", "target.layer_norm"),
    (r"^target\.sp\.linear_", "target.nsp_linear_"),
)
_LAYER, _BERT_LAYER = r"^encoder\.transformer\.(\d+)\.", r"bert.encoder.layer.\1."
_RELEASE = (
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
    (r"^target\.mlm_linear_2\.weight$", "cls.predictions.decoder.weight"),
    (r"^target\.mlm_linear_2\.bias$", "cls.predictions.bias"),
    (r"^target\.nsp_linear_", "cls.seq_relationship."),
    (r"^output_layer_1\.", "bert.pooler.dense."),
    (r"^output_layer(_2)?\.", "classifier."),
)
_OLD = ((r"\.gamma$", ".weight"), (r"\.beta$", ".bias"))  # a layer norm's, before 2019
_BARE = ((r"^(embeddings|encoder|pooler)\.", r"bert.\1."),)

_MASK_HEAD = (
    "cls.predictions.transform.dense.weight",
    "cls.predictions.transform.dense.bias",
    "cls.predictions.transform.LayerNorm.weight",
    "cls.predictions.transform.LayerNorm.bias",
    "cls.predictions.bias",
)


def checkpoint_file(source: Path) -> Path:
    """Find the one ``.bin`` file that is meant."""
    if source.is_file():
        return source
    if not source.is_dir():
        raise CheckpointError(f"{source}: no such file or folder. Name a .bin checkpoint.")
    if (source / "pytorch_model.bin").is_file():
        return source / "pytorch_model.bin"
    found = sorted(source.glob("*.bin"))
    if len(found) == 1:
        return found[0]
    if found:
        raise CheckpointError(
            f"{source}: found {', '.join(p.name for p in found[:5])}, expected one checkpoint. "
            "Name the file. One that is split into parts has to be joined first."
        )
    if list(source.glob("*.safetensors")):
        raise CheckpointError(f"{source}: is in safetensors already. Use it as it is.")
    raise CheckpointError(f"{source}: holds no .bin file. Name the folder or file that does.")


def read_tensors(file: Path, stated: Mapping[str, Any]) -> Found:
    """Read a checkpoint's tensors, and nothing that could run.

    Args:
        file: a ``.bin`` file.
        stated: what its config states.

    Raises:
        CheckpointError: it holds something else, or no BERT.
    """
    tensors = _read(file)
    if any(name.startswith("embedding.") for name in tensors):
        return _from_release(tensors, file)
    return _from_hugging_face(tensors, file, stated)


def _from_release(tensors: Mapping[str, Tensor], file: Path) -> Found:
    """Tensors of K-BERT's release or of UER-py."""
    kind: Kind = "K-BERT" if "embedding.word_embedding.weight" in tensors else "UER-py"
    found = _renamed(kind, tensors, (*_NEWER, *_RELEASE, *_OLD), file)
    strange = [name for name in found.starting("embedding.", "encoder.")]
    if strange:
        raise CheckpointError(
            f"{file}: {strange[0]} belongs to no BERT, so the encoder is of another kind. Only "
            "BERT with layer norm after each block is converted."
        )
    mapped = dict(found.tensors)
    for name, value in mapped.items():
        if name.endswith("LayerNorm.weight"):  # H - 1 becomes H: see the head of this file
            mapped[name] = value * math.sqrt(1 - 1 / max(value.numel(), 1))
    left_out = dict(found.left_out)
    if TYPES in mapped and mapped[TYPES].dim() == 2 and len(mapped[TYPES]) > 1:
        mapped[TYPES] = mapped[TYPES][1:]
        left_out[f"{found.names[TYPES]}[0]"] = "the row for padding, which nothing attends to"
    task = None
    if "output_layer_1.weight" in tensors:
        task = "classify"
    elif "output_layer.weight" in tensors:
        task = "ner"
    return replace(found, tensors=mapped, left_out=left_out, task=task)


def _from_hugging_face(
    tensors: Mapping[str, Tensor], file: Path, stated: Mapping[str, Any]
) -> Found:
    """Tensors of a BERT of transformers or its predecessors."""
    found = _renamed("Hugging Face BERT", tensors, (*_BARE, *_OLD), file)
    if not found.starting("bert."):
        raise CheckpointError(
            f"{file}: holds no BERT; its tensors are called {', '.join(list(tensors)[:3])}, … . "
            "Only K-BERT's release, UER-py and Hugging Face's BERT are converted."
        )
    found = found.without(["bert.embeddings.position_ids"], "a constant, no parameter")
    if "cls.predictions.bias" in found.tensors:
        found = found.without(["cls.predictions.decoder.bias"], "repeats cls.predictions.bias")
    task = None
    if "classifier.weight" in found.tensors:
        names = " ".join(map(str, stated.get("architectures") or ()))
        if "Classification" in names:
            task = "ner" if "Token" in names else "classify"
        else:
            task = "classify" if found.starting("bert.pooler.") else "ner"
    return replace(found, task=task)


def _renamed(
    kind: Kind, tensors: Mapping[str, Tensor], rules: Iterable[tuple[str, str]], file: Path
) -> Found:
    compiled = [(re.compile(pattern), name) for pattern, name in rules]
    names: dict[str, str] = {}
    for old in tensors:
        new = old
        for pattern, name in compiled:
            new = pattern.sub(name, new)
        if new in names:
            raise CheckpointError(
                f"{file}: both {names[new]} and {old} stand for {new}. Leave one of them out."
            )
        names[new] = old
    return Found(kind, {new: tensors[old] for new, old in names.items()}, names)


def one_head(found: Found) -> Found:
    """Keep the encoder and the head of one task."""
    if found.task is None and all(name in found.tensors for name in _MASK_HEAD):
        found = replace(found, task="mask")
    elif found.task is None:
        found = found.without(found.starting("cls.predictions."), "half of a fill-mask head")
    else:
        found = found.without(
            found.starting("cls.predictions."), "a folder holds one head, and this is fine-tuned"
        )
    found = found.without(
        found.starting("cls.seq_relationship."), "the next-sentence head; no task here uses it"
    )
    if found.task in ("mask", "ner"):
        found = found.without(found.starting("bert.pooler."), f"the task {found.task} uses none")
    head = {"mask": ("cls.predictions.",), "ner": ("classifier.",), "classify": ("classifier.",)}
    kept = set(found.starting("bert.", *head.get(found.task or "", ())))
    return found.without([name for name in found.tensors if name not in kept], "not part of BERT")


def sizes_of(found: Found, file: Path) -> dict[str, int]:
    """Read the sizes of a BERT off its tensors."""
    layers = {name.split(".")[3] for name in found.starting("bert.encoder.layer.")}
    inner = "bert.encoder.layer.0.intermediate.dense.weight"
    head = ("classifier.weight",) if found.task in WITH_LABELS else ()
    for name in (WORDS, POSITIONS, TYPES, inner, *head):
        value = found.tensors.get(name)
        if value is None or value.dim() != 2:
            what = "is missing" if value is None else f"has the shape {tuple(value.shape)}"
            raise CheckpointError(
                f"{file}: {found.names.get(name, name)} {what}, so this is no whole BERT. "
                "Download or copy it again."
            )
    words, width = found.tensors[WORDS].shape
    return {
        "hidden_size": width,
        "num_hidden_layers": len(layers),
        "intermediate_size": found.tensors[inner].shape[0],
        "vocab_size": words,
        "max_position_embeddings": found.tensors[POSITIONS].shape[0],
        "type_vocab_size": found.tensors[TYPES].shape[0],
    }


def _read(file: Path) -> dict[str, Tensor]:
    """Read a file's tensors, and nothing that could run."""
    again = "Download or copy it again."
    try:
        data = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(f"{file}: {_why_refused(str(error))}") from error
    except Exception as error:  # of all kinds, for bytes of all kinds
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise CheckpointError(
            f"{file}: can't be read as a PyTorch checkpoint, it is cut off or something else "
            f"({reason}). {again}"
        ) from error
    for name in ("state_dict", "model_state_dict", "model"):  # as trainers wrap it
        if isinstance(data, Mapping) and isinstance(data.get(name), Mapping):
            data = data[name]
    if not isinstance(data, Mapping) or not data:
        raise CheckpointError(
            f"{file}: holds a {type(data).__name__}, expected tensors by name. Save the model "
            "with torch.save(model.state_dict(), FILE)."
        )
    other = [name for name, value in data.items() if not isinstance(value, Tensor)]
    if other:
        raise CheckpointError(
            f"{file}: '{other[0]}' is no tensor, expected tensors by name only. Save the model "
            "with torch.save(model.state_dict(), FILE)."
        )
    tensors = {str(name).removeprefix("module."): value for name, value in data.items()}
    for name, value in tensors.items():
        if value.is_floating_point() and not value.isfinite().all():
            raise CheckpointError(f"{file}: {name} has infinite or undefined values. {again}")
    return tensors


def _why_refused(error: str) -> str:
    what = re.search(r"(?:GLOBAL|Unsupported global:?)\s+`?([\w.]+)", error)
    if what is None:
        return "no PyTorch checkpoint, or a broken one. Download or copy it again."
    return (
        f"holds more than tensors ({what[1]}), which could run code when it is opened, so it "
        "wasn't. If you trust it, open it where it was made and save the tensors alone, with "
        "torch.save(model.state_dict(), FILE)."
    )
