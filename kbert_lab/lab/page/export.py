"""What the page's scripts read: a model's weights in few bits, its vocabulary, and tables of names.

The weights of a matrix are whole numbers, each run of ``GROUP`` with a scale of its own. They are
written packed by gzip: the layers in one file, the vocabulary's rows in parts, of which a text
needs a few.
"""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbert_core.errors import CheckpointError
from kbert_core.knowledge.names import APOSTROPHES, DASHES, simplified
from kbert_core.knowledge.surface_forms import NO_PLURALS
from kbert_core.knowledge.triple import ALIAS_RELATIONS
from kbert_core.pipeline import Pipeline
from kbert_core.systems import K_BERT

Array = NDArray[np.float32]
ROWS = 128  # of the vocabulary in a part
GROUP = 32  # neighbours in a row that share a scale
LONGEST = 256  # tokens of a row
STEPS = {8: (127, np.int8), 16: (32_767, np.int16)}  # bits → the largest number, and its type
LAYER = {  # the page's name of a layer's tensor → BERT's
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixed": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "inner": "intermediate.dense",
    "outer": "output.dense",
    "norm2": "output.LayerNorm",
}


def export_model(pipeline: Pipeline, folder: Path, bits: int = 16) -> dict[str, Any]:
    """Write a model's files, and return what a page has to know of it.

    Args:
        pipeline: a K-BERT on a BERT, with a task head of tags.
        folder: is made.
        bits: of a weight: 8, 16 or 32.

    Raises:
        CheckpointError: it is another kind of model.
    """
    config, card = pipeline.reader.model.config, pipeline.card
    if (config.model_type, card.task, card.system) != ("bert", "ner", K_BERT):
        raise CheckpointError(
            f"The model is {config.model_type} for {card.task} by {card.system}. A page reads a "
            "BERT for ner by k-bert; name such a model."
        )
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        name: value.float().cpu().numpy()
        for name, value in pipeline.reader.model.state_dict().items()
    }
    tensors = _layers(weights, config.num_hidden_layers)
    _pack(folder / "layers.bin", tensors, bits)
    words = weights["bert.embeddings.word_embeddings.weight"]
    for part, start in enumerate(range(0, len(words), ROWS)):
        _pack(folder / f"words-{part}.bin", {"words": words[start : start + ROWS]}, bits)
    made = {
        "layers": config.num_hidden_layers,
        "heads": config.num_attention_heads,
        "width": config.hidden_size,
        "epsilon": config.layer_norm_eps,
        "labels": pipeline.labels.names,
        "bits": bits,
        "tensors": [[name, *value.shape] for name, value in tensors.items()],
        "group": GROUP,
        "rows": ROWS,
        "count": len(words),
        "longest": len(tensors["positions"]),
        "bytes": (folder / "layers.bin").stat().st_size,
        "injection": pipeline.config.options.as_dict(),
        "pieces": pieces_of(pipeline),
    }
    (folder / "model.json").write_text(json.dumps(made, ensure_ascii=False), "utf-8")
    return made


def _layers(weights: Mapping[str, Array], count: int) -> dict[str, Array]:
    """Every tensor but the vocabulary's, by the page's names, vectors first, plus the segment."""
    of = "bert.embeddings."
    segment = weights[f"{of}token_type_embeddings.weight"][0]
    named = {
        "norm": f"{of}LayerNorm",
        **{
            f"{n}.{mine}": f"bert.encoder.layer.{n}.{theirs}"
            for n in range(count)
            for mine, theirs in LAYER.items()
        },
        "head": "classifier",
    }
    found = {"positions": weights[f"{of}position_embeddings.weight"][:LONGEST] + segment}
    for mine, theirs in named.items():
        found[mine], found[f"{mine}.bias"] = weights[f"{theirs}.weight"], weights[f"{theirs}.bias"]
    return dict(sorted(found.items(), key=lambda item: item[1].ndim))


def _pack(path: Path, tensors: Mapping[str, Array], bits: int) -> None:
    """Write tensors: all that is in 32 bits, then the scales of matrices, then their whole numbers.

    Of a scale the upper 16 bits are kept, rounded up.
    """
    large, scales, small = [], [], []
    for value in tensors.values():
        if value.ndim == 1 or bits == 32:
            large.append(value)
            continue
        most, kind = STEPS[bits]
        groups = value.reshape(-1, GROUP)
        exact = np.maximum(np.abs(groups).max(1), 1e-12) / most
        halves = (exact.astype(np.float32).view(np.uint32) >> 16) + 1
        scales.append(halves.astype(np.uint16))
        small.append(np.round(groups / (halves << 16).view(np.float32)[:, None]).astype(kind))
    data = b"".join(part.tobytes() for part in [*large, *scales, *small])
    path.write_bytes(gzip.compress(data, 6, mtime=0))


def pieces_of(pipeline: Pipeline) -> dict[str, Any]:
    """A tokenizer as the page's ``Pieces`` takes it.

    Raises:
        CheckpointError: it cuts words in another way.
    """
    tokenizer = pipeline.hugging_face_tokenizer
    parts = json.loads(tokenizer.backend_tokenizer.to_str())
    kinds = {"BertPreTokenizer": "bert", "Sequence": "characters"}
    kind = kinds.get(parts["pre_tokenizer"]["type"])
    if kind is None or parts["model"]["type"] not in ("WordPiece", "WordLevel"):
        raise CheckpointError("A page cuts words as BERT does, or into characters; this one not.")
    vocabulary = tokenizer.get_vocab()
    special = {
        "unknown": tokenizer.unk_token_id,
        "first": tokenizer.cls_token_id,
        "last": tokenizer.sep_token_id,
    }
    return {
        "kind": kind,
        "words": sorted(vocabulary, key=vocabulary.__getitem__),
        "special": special,
    }


def tables_js() -> str:
    """The module ``tables.js``: what names are compared with that isn't in JavaScript itself."""
    pairs = [
        [c, simple]
        for c in map(chr, range(0x2E80, 0x30000))
        if not 0xD800 <= ord(c) < 0xF900 and (simple := simplified(c)) != c
    ]
    compared = ALIAS_RELATIONS._compared
    tables = {
        "SIMPLIFIED": pairs,
        "DASHES": sorted(DASHES),
        "APOSTROPHES": sorted(APOSTROPHES),
        "NO_PLURALS": sorted(NO_PLURALS),
        "ALIASES": [sorted(compared[0]), sorted(compared[1])],
    }
    return "".join(
        f"export const {name} = {json.dumps(value, ensure_ascii=False, separators=(',', ':'))};\n"
        for name, value in tables.items()
    )
