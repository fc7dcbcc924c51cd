"""A vocabulary of characters, and of word pieces for Latin words, as a fast tokenizer."""

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import WordPieceTrainer
from transformers import PreTrainedTokenizerFast

from kbert_core.checkpoints.checkpoint import bert_tokenizer
from kbert_core.errors import DataError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.compression import PROBLEMS, open_unpacked, remedy
from kbert_core.knowledge.triple import Triple

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LATIN = "[0-9A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+"
LONGEST_WORD = 10  # characters of a word to mask whole; longer names are phrases


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
        texts: what the vocabulary is counted on.
        size: at most so many tokens, the five special ones included.
        word_pieces: at most so many of them for Latin words, but always
            every letter and digit; 0: single characters there too.
        min_count: characters seen less often are unknown.
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
    kept = [c for c, count in ranked if count >= min_count and not c.isspace() and c.isprintable()]
    if not kept and not pieces:
        if most := max((n for c, n in ranked if not c.isspace() and c.isprintable()), default=0):
            raise DataError(
                f"No character stands {min_count} times in the texts; the commonest stands {most} "
                "times. Give a lower --min-count, or more text."
            )
        raise DataError("The texts hold no character to build a vocabulary from. Give some text.")
    first = [*SPECIALS, *pieces]
    tokens = [*first, *kept[: max(0, size - len(first))]]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    if word_pieces:
        backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
        backend.decoder = decoders.WordPiece()
    else:
        backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
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
    usual = {word: count for word, count in words.items() if set(word) <= set(known)}
    repeated = (" ".join([word] * usual[word]) for word in sorted(usual))
    learned.train_from_iterator(repeated, trainer)
    return sorted(learned.get_vocab(), key=learned.get_vocab().__getitem__)[:size]


def read_words(paths: Sequence[str | Path]) -> KnowledgeGraph:
    """Read words to be masked whole, as the heads of a graph, to be found in texts.

    Args:
        paths: files, as they are or packed, of a word a line, or a triple, whose
            head is taken. Words of one character, and names of more than ten,
            are left out.
    """
    lines = (line for path in paths for line in lines_of(path, "words, one a line"))
    words = dict.fromkeys(line.split("\t")[0].strip() for line in lines)
    triples = [Triple(word, "is", word) for word in words if 2 <= len(word) <= LONGEST_WORD]
    found = [triple for triple in triples if triple.problem() is None]
    if not found:
        raise DataError(
            f"{', '.join(map(str, paths))}: no word of 2 to {LONGEST_WORD} characters. "
            "Give a file of words, one a line, or of triples."
        )
    return KnowledgeGraph(found, name="words")


def lines_of(path: str | Path, what: str) -> Iterator[str]:
    """Stream the lines of a text file, as it is or packed.

    Raises:
        DataError: it can't be read as ``what`` it is to hold.
    """
    try:
        with io.TextIOWrapper(open_unpacked(path), encoding="utf-8-sig") as file:
            yield from file
    except (*PROBLEMS, UnicodeDecodeError) as error:
        raise DataError(f"{path}: can't be read as {what} ({error}). {remedy(error)}") from error
