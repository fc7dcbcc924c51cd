"""Texts → words or characters, with their places in the texts: tokens where no model is."""

from collections.abc import Sequence

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from kbert_core.text import refuse_half_characters
from kbert_core.tokens import Layout, Special, Tokens

BETWEEN_SPACES = r"\S+"
WITHOUT_MARKS = r"[\p{L}\p{M}\p{N}_]+|\S"
AS_BERT = r"\p{Han}|[\p{L}\p{M}\p{N}_&&[^\p{Han}]]+|\S"  # before it looks for word pieces


class _NoVocabulary:
    """Base of the tokenizers that show a tree without a model."""

    pad_id = 0
    unknown_id: int | None = None

    def __init__(self, *, special: bool = False) -> None:
        self.special = special
        self.known_branches: dict[tuple[str, ...], list[int]] = {}

    def layout(self, sentences: int) -> Layout:
        """[CLS] a [SEP], or [CLS] a [SEP] b [SEP]; nothing without ``special``."""
        segments = tuple(range(sentences))
        if not self.special:
            return Layout(((),) * sentences, (), segments)
        before = ((Special("[CLS]", 0, 0),), (Special("[SEP]", 0, 0),))[:sentences]
        return Layout(before, (Special("[SEP]", 0, sentences - 1),), segments)


class Words(_NoVocabulary):
    """A text split at white space, one token per word; or what another pattern calls a word."""

    def __init__(self, *, special: bool = False, word: str = BETWEEN_SPACES) -> None:
        super().__init__(special=special)
        self._split = Split(Regex(word), "removed", invert=True)

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut texts of the trunk, relations or tails."""
        refuse_half_characters(texts)
        return list(map(self._words, texts))

    def _words(self, text: str) -> Tokens:
        spans = [span for _, span in self._split.pre_tokenize_str(text)]
        return Tokens([0] * len(spans), [start for start, _ in spans], [end for _, end in spans])

    tokenize_branches = tokenize


class Characters(_NoVocabulary):
    """Every character is a token, also white space."""

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut texts of the trunk, relations or tails."""
        sizes = map(len, texts)
        return [Tokens([0] * size, range(size), range(1, size + 1)) for size in sizes]

    tokenize_branches = tokenize
