"""Text → tokens with their place in the text: words, characters, or word pieces."""

import copy
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from kbert_core.errors import CheckpointError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

UNKNOWN_LENGTH = 1_000_000  # a tokenizer without a limit states an absurd one


@dataclass(frozen=True, slots=True)
class Tokens:
    """T tokens of one text.

    Attributes:
        ids: T vocabulary ids; 0 where there is no vocabulary.
        starts, ends: per token its span in characters, end exclusive; two
            tokens share a span where one character makes several tokens.
    """

    ids: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]

    def __len__(self) -> int:
        return len(self.ids)

    def over(self, start: int, end: int) -> tuple[int, int]:
        """Find the tokens that stand over characters [start, end): first, last + 1."""
        return bisect_right(self.ends, start), bisect_left(self.starts, end)


@dataclass(frozen=True, slots=True)
class Special:
    """A token the encoder wants around sentences, such as [CLS]."""

    text: str
    id: int
    segment: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where special tokens stand around one or two sentences.

    Attributes:
        before: per sentence the special tokens ahead of it.
        after: those at the end.
        segments: token_type_id of each sentence.
    """

    before: tuple[tuple[Special, ...], ...]
    after: tuple[Special, ...]
    segments: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many special tokens there are."""
        return sum(map(len, self.before)) + len(self.after)


class Tokenizer(Protocol):
    """What flattening needs of a tokenizer."""

    pad_id: int

    def tokenize(self, text: str) -> Tokens:
        """Cut a text of the trunk."""
        ...

    def tokenize_branch(self, text: str) -> Tokens:
        """Cut a relation or a tail; the same text always gives the same tokens."""
        ...

    def layout(self, sentences: int) -> Layout:
        """Special tokens around so many sentences."""
        ...


class _NoVocabulary:
    """Tokens for looking at a tree without a model."""

    pad_id = 0

    def __init__(self, *, special: bool = False) -> None:
        self.special = special
        self._layouts = {n: self._layout(n) for n in (1, 2)}

    def layout(self, sentences: int) -> Layout:
        """[CLS] a [SEP], or [CLS] a [SEP] b [SEP]; nothing without ``special``."""
        return self._layouts[sentences]

    def _layout(self, sentences: int) -> Layout:
        segments = tuple(range(sentences))
        if not self.special:
            return Layout(((),) * sentences, (), segments)
        before = ((Special("[CLS]", 0, 0),), (Special("[SEP]", 0, 0),))[:sentences]
        return Layout(before, (Special("[SEP]", 0, sentences - 1),), segments)


class Words(_NoVocabulary):
    """A text split by white space, one token a word."""

    def tokenize(self, text: str) -> Tokens:
        """Cut a text of the trunk, or a relation or tail."""
        spans = [found.span() for found in re.finditer(r"\S+", text)]
        return Tokens([0] * len(spans), [s for s, _ in spans], [e for _, e in spans])

    tokenize_branch = tokenize


class Characters(_NoVocabulary):
    """Every character a token, white space too."""

    def tokenize(self, text: str) -> Tokens:
        """Cut a text of the trunk, or a relation or tail."""
        size = len(text)
        return Tokens([0] * size, range(size), range(1, size + 1))

    tokenize_branch = tokenize


class WordPieces:
    """A Hugging Face fast tokenizer, with offsets and without surprises.

    Special tokens typed into a text are plain text, but for the mask token
    when ``masks`` is set. Spans don't include white space.

    Args:
        tokenizer: a fast one; slow ones give no offsets.
        masks: whether the mask token in a text of the trunk is special.

    Raises:
        CheckpointError: the tokenizer is slow, or lacks a mask token when
            ``masks`` is set.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", *, masks: bool = False) -> None:
        if not tokenizer.is_fast:
            raise CheckpointError(
                f"The tokenizer {type(tokenizer).__name__} gives no character offsets. "
                "Save it with a tokenizer.json (a fast tokenizer) and load it again."
            )
        if masks and tokenizer.mask_token_id is None:
            raise CheckpointError("The tokenizer has no mask token; fill-mask needs one.")
        self.hugging_face = tokenizer
        self.pad_id = tokenizer.pad_token_id or 0
        self._mask = tokenizer.mask_token if masks else None
        self._mask_id = tokenizer.mask_token_id
        added = tokenizer.added_tokens_decoder.get(tokenizer.mask_token_id)
        self._mask_takes_space = added is not None and added.lstrip  # as RoBERTa's does
        self._backend = copy.deepcopy(tokenizer.backend_tokenizer)  # the caller's stays as it is
        self._backend.encode_special_tokens = True
        self._backend.no_truncation()
        self._backend.no_padding()
        self._layouts = {n: _layout(tokenizer, n) for n in (1, 2)}
        self.tokenize_branch = lru_cache(maxsize=100_000)(self._plain)

    def tokenize(self, text: str) -> Tokens:
        """Cut a text of the trunk."""
        if self._mask is None or self._mask not in text:
            return self._plain(text)
        ids: list[int] = []
        starts: list[int] = []
        ends: list[int] = []
        at = 0
        pieces = text.split(self._mask)
        for number, piece in enumerate(pieces):
            if number:
                ids.append(self._mask_id)
                starts.append(at)
                at += len(self._mask)
                ends.append(at)
            ends_at_mask = self._mask_takes_space and number < len(pieces) - 1
            tokens = self._plain(piece.rstrip() if ends_at_mask else piece)
            ids += tokens.ids
            starts += [at + start for start in tokens.starts]
            ends += [at + end for end in tokens.ends]
            at += len(piece)
        return Tokens(ids, starts, ends)

    def mask_spans(self, text: str) -> list[tuple[int, int]]:
        """Where a text holds a mask token that is read as one, in characters."""
        if self._mask is None:
            return []
        return [found.span() for found in re.finditer(re.escape(self._mask), text)]

    def layout(self, sentences: int) -> Layout:
        """Special tokens as the tokenizer itself puts them."""
        return self._layouts[sentences]

    def model_max_length(self) -> int | None:
        """The longest input the tokenizer says its encoder takes, in tokens."""
        length = self.hugging_face.model_max_length
        return int(length) if length < UNKNOWN_LENGTH else None

    def _plain(self, text: str) -> Tokens:
        encoding = self._backend.encode(text, add_special_tokens=False)
        starts, ends = [], []
        for start, end in encoding.offsets:
            while start < end - 1 and text[start].isspace():
                start += 1
            starts.append(start)
            ends.append(end)
        return Tokens(encoding.ids, starts, ends)


def _layout(tokenizer: "PreTrainedTokenizerBase", sentences: int) -> Layout:
    """Read off, from the tokenizer's own encoding, where it puts special tokens."""
    encoding = tokenizer(*["a"] * sentences, return_token_type_ids=True)
    owners = encoding.sequence_ids(0)
    ids, types = encoding["input_ids"], encoding["token_type_ids"]
    waiting: list[Special] = []
    before: list[tuple[Special, ...]] = []
    segments: list[int] = []
    for token, segment, owner in zip(ids, types, owners, strict=True):
        if owner is None:
            waiting.append(Special(str(tokenizer.convert_ids_to_tokens(token)), token, segment))
        elif owner == len(before):
            before.append(tuple(waiting))
            segments.append(segment)
            waiting = []
    return Layout(tuple(before), tuple(waiting), tuple(segments))
