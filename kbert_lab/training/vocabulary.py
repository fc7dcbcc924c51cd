"""A vocabulary of characters, and of word pieces for Latin words; and which tokens are masked."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import WordPieceTrainer
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from kbert_core.errors import DataError
from kbert_core.labels import IGNORED
from kbert_lab.encoders import bert_tokenizer

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LATIN = "[0-9A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+"
UNUSED = re.compile(r"\[unused\d+\]")  # places that BERT's vocabularies keep free
MASKED_SHARE = 0.15  # of the tokens
BECOME_MASK, STAY_FROM = 0.8, 0.9  # of the masked tokens; those between become a random token


def character_tokenizer(
    texts: Iterable[str],
    *,
    size: int = 6000,
    word_pieces: int = 0,
    min_count: int = 1,
    max_length: int = 512,
) -> PreTrainedTokenizerFast:
    """Build a tokenizer that makes every character but white space a token.

    With ``word_pieces``, words of Latin letters and digits become word pieces
    instead. Texts are normalised on the way in (NFKC and lower case; with
    word pieces BERT's own normaliser too, which takes accents off); offsets
    point into the text as given.

    Args:
        texts: the texts from which the vocabulary is made.
        size: the most tokens, with the five special ones.
        word_pieces: the most word pieces for Latin words; every letter and digit is
            always one. 0: single characters for Latin words, too.
        min_count: characters that occur less often are unknown.
        max_length: written into the tokenizer's config, in tokens.

    Raises:
        DataError: the texts hold no character, or none that often.
    """
    latin = re.compile(LATIN if word_pieces else "(?!)")
    lower = normalizers.BertNormalizer(handle_chinese_chars=False, lowercase=True)
    normalizer = normalizers.Sequence(
        [normalizers.NFKC(), lower if word_pieces else normalizers.Lowercase()]
    )
    counts: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for text in texts:
        text = normalizer.normalize_str(text)
        words.update(latin.findall(text))
        counts.update(latin.sub("", text))
    pieces = _word_pieces(words, size=word_pieces, min_count=min_count)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ranked = [(c, count) for c, count in ranked if not c.isspace() and c.isprintable()]
    kept = [c for c, count in ranked if count >= min_count]
    if not kept and not pieces:
        if ranked:
            raise DataError(
                f"No character occurs {min_count} times in the texts; the most frequent one occurs "
                f"{ranked[0][1]} times. Give a lower --min-count, or more text."
            )
        raise DataError("The texts hold no character to build a vocabulary from. Give some text.")
    first = [*SPECIALS, *pieces]
    tokens = [*first, *kept[: max(0, size - len(first))]]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    model = models.WordPiece if word_pieces else models.WordLevel
    backend = Tokenizer(model(vocabulary, unk_token="[UNK]"))
    if word_pieces:
        backend.decoder = decoders.WordPiece()
    backend.normalizer = normalizer
    one = Regex(rf"{LATIN}|[\s\S]" if word_pieces else r"[\s\S]")
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split(one, "isolated")]
    )
    return with_specials(backend, vocabulary, max_length)


def with_specials(
    backend: Tokenizer, vocabulary: Mapping[str, int], max_length: int
) -> PreTrainedTokenizerFast:
    """Wrap a tokenizer with ``SPECIALS``, and have it put [CLS] and [SEP] around texts."""
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return bert_tokenizer(backend, max_length)


def _word_pieces(words: Counter[str], *, size: int, min_count: int) -> list[str]:
    """Learn the pieces of words; all of their letters, at both places, come first."""
    letters: Counter[str] = Counter()
    for word, count in words.items():
        letters.update(dict.fromkeys(word, count))
    known = sorted(letter for letter, count in letters.items() if count >= min_count)
    pieces = [*known, *(f"##{letter}" for letter in known)]
    if len(pieces) >= size:
        return pieces if size else []
    learned = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    learned.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = WordPieceTrainer(
        vocab_size=size, min_frequency=max(2, min_count), show_progress=False, special_tokens=pieces
    )
    usual = sorted(word for word in words if set(word) <= set(known))
    learned.train_from_iterator((" ".join([word] * words[word]) for word in usual), trainer)
    return sorted(learned.get_vocab(), key=learned.get_vocab().__getitem__)[:size]


class Masking:
    """Masked language modelling as BERT's: which tokens of a vocabulary are hidden, and by what."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.mask_id: int = tokenizer.mask_token_id
        self.specials = np.array(sorted(tokenizer.all_special_ids))  # never hidden
        unused = [i for token, i in tokenizer.get_vocab().items() if UNUSED.fullmatch(token)]
        self._is_word = np.ones(len(tokenizer), bool)
        self._is_word[[*self.specials, *unused]] = False
        self._words = np.flatnonzero(self._is_word)  # which random tokens are drawn from

    def special(self, ids: np.ndarray) -> np.ndarray:
        """Say which of some ids are special tokens."""
        return np.isin(ids, self.specials)

    def hide(
        self,
        ids: np.ndarray,
        chosen: np.ndarray,
        random: np.random.Generator,
        first: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Hide tokens: of those chosen 80 % become [MASK], 10 % a random token, 10 % stay.

        Args:
            ids, chosen: (N,) int64, and bool: the tokens to predict.
            first: (N,) the first token of each token's word, so that a word's
                tokens are hidden in one manner; None: each by itself.

        Returns:
            What the model reads, and its labels, ``IGNORED`` elsewhere; (N,) int64 each.
        """
        labels = np.where(chosen, ids, IGNORED)
        dice = random.random(len(ids))
        if first is not None:
            dice = dice[first]
        read = np.where(chosen & (dice < BECOME_MASK), self.mask_id, ids)
        other = chosen & (dice >= STAY_FROM)
        read[other] = self._words[random.integers(0, len(self._words), other.sum())]
        return read, labels

    def stand_ins(self, count: int, random: np.random.Generator) -> list[int]:
        """Draw ids for so many hidden tokens: all the mask token, or all random words or masks."""
        if random.random() < 0.5:
            return [self.mask_id] * count
        drawn = [int(random.integers(len(self._is_word))) for _ in range(count)]
        return [token if self._is_word[token] else self.mask_id for token in drawn]
