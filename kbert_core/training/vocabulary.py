"""A vocabulary of single characters, as a Hugging Face fast tokenizer."""

from collections import Counter
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from kbert_core.errors import DataError

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def character_tokenizer(
    texts: Iterable[str], *, size: int = 6000, min_count: int = 1, max_length: int = 512
) -> PreTrainedTokenizerFast:
    """Build a tokenizer that makes every character but white space a token.

    Texts are normalised (NFKC, lower case) on the way in; offsets point into
    the text as given.

    Args:
        texts: what the vocabulary is counted on.
        size: at most so many tokens, the five special ones included.
        min_count: characters seen less often are unknown.
        max_length: written into the tokenizer's config, in tokens.

    Raises:
        DataError: the texts hold no character.
    """
    normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(normalizer.normalize_str(text))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    kept = [c for c, count in ranked if count >= min_count and not c.isspace() and c.isprintable()]
    if not kept:
        raise DataError("The texts hold no character to build a vocabulary from. Give some text.")
    vocabulary = {token: i for i, token in enumerate([*SPECIALS, *kept[: size - len(SPECIALS)]])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizer
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")]
    )
    cls, sep = vocabulary["[CLS]"], vocabulary["[SEP]"]
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)],
    )
    return bert_tokenizer(backend, max_length)


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
