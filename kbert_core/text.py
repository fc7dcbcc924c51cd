"""Texts → word pieces with their places in the texts; where no model is, see ``words``."""

import copy
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from kbert_core.errors import CheckpointError, TextError
from kbert_core.tokens import (
    EXTENDS,
    IN_RUN,
    NO_TOKEN,
    CharacterTable,
    Layout,
    Special,
    Tokens,
    code_points,
    extends,
    tokenize_by_table,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SURROGATE = re.compile("[\ud800-\udfff]")
UNKNOWN_LENGTH = 1_000_000  # a tokenizer without a limit states an absurd one


Text = str | Sequence[str]  # a sentence, or a pair of them


def refuse_single(texts: Any, what: str = "texts") -> None:
    """Refuse a single text where several are expected: it would be read character by character.

    Raises:
        TextError: see above.
    """
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise TextError(
            f"Got {texts!r:.60}, expected a list of {what}. Put a single one into a list: [...]."
        )


def sentences_of(texts: Iterable[Text]) -> Iterator[tuple[str, ...]]:
    """Return the sentences of each text.

    Raises:
        TextError: a single text is given, or something that is no text.
    """
    refuse_single(texts)
    return map(_sentences_of, texts)


def _sentences_of(text: Text) -> tuple[str, ...]:
    if isinstance(text, str):
        return (text,)
    refuse_single(text, "sentences")
    return tuple(text)


def refuse_half_characters(texts: Sequence[str]) -> None:
    """Refuse a text with half a character, which no tokenizer takes.

    Raises:
        TextError: with its place; or something is no text.
    """
    try:
        "".join(texts).encode()
    except TypeError:
        wrong = next(text for text in texts if not isinstance(text, str))
        raise TextError(f"Got {wrong!r:.60}, expected a text (str).") from None
    except UnicodeEncodeError:
        for text in texts:
            if broken := _SURROGATE.search(text):
                raise TextError(
                    f"Character {broken.start()} of the text is half a character "
                    f"(surrogate U+{ord(broken.group()):04X}). Take it out."
                ) from None


class Tokenizer(Protocol):
    """The methods that flattening needs of a tokenizer."""

    pad_id: int
    unknown_id: int | None  # of what the vocabulary lacks; None: it lacks nothing
    known_branches: dict[tuple[str, ...], list[int]]  # ids of branches met, by their texts

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut texts of the trunk."""
        ...

    def tokenize_branches(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut relations or tails of branches; equal texts always give equal tokens."""
        ...

    def layout(self, sentences: int) -> Layout:
        """Return the special tokens around one sentence or two."""
        ...


class WordPieces:
    """A Hugging Face fast tokenizer, with offsets.

    Special tokens in a text are plain text, except the mask token
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
        self.unknown_id = tokenizer.unk_token_id
        self._mask = tokenizer.mask_token if masks else None
        self._mask_id = tokenizer.mask_token_id
        added = tokenizer.added_tokens_decoder.get(tokenizer.mask_token_id)
        self._mask_takes_space = added is not None and added.lstrip  # as RoBERTa's does
        self._backend = copy.deepcopy(tokenizer.backend_tokenizer)  # the caller's stays as it is
        self._backend.encode_special_tokens = True
        self._backend.no_truncation()
        self._backend.no_padding()
        self._layouts = {n: _layout(self._backend, n) for n in (1, 2)}
        self._ids = CharacterTable(self._id_of) if _cuts_by_character(self._backend) else None
        self._known_runs: dict[str, Tokens] = {}
        self.known_branches: dict[tuple[str, ...], list[int]] = {}

    def tokenize(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut texts of the trunk."""
        mask = self._mask
        if mask is None or not any(mask in text for text in texts):
            return self.tokenize_branches(texts)
        parts = [text.split(mask) for text in texts]
        read = [
            part.rstrip() if self._mask_takes_space and number < len(own) - 1 else part
            for own in parts
            for number, part in enumerate(own)
        ]
        tokens = iter(self.tokenize_branches(read))
        return [self._with_masks(own, [next(tokens) for _ in own]) for own in parts]

    def _with_masks(self, parts: Sequence[str], tokens: Sequence[Tokens]) -> Tokens:
        """Put the tokens of a text's parts together, with a mask token between two of them."""
        ids: list[int] = []
        starts: list[int] = []
        ends: list[int] = []
        at, size = 0, len(self._mask or "")
        for part, own in zip(parts, tokens, strict=True):
            ids += [*own.ids, self._mask_id]
            starts += [*(at + start for start in own.starts), at + len(part)]
            at += len(part) + size
            ends += [*(at - len(part) - size + end for end in own.ends), at]
        return Tokens(ids[:-1], starts[:-1], ends[:-1])

    def tokenize_branches(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut relations or tails: by table, and by the tokenizer what the table doesn't know."""
        joined = "".join(texts)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        ids = np.full(len(joined), IN_RUN) if self._ids is None else self._ids(code_points(joined))

        def of_runs(spans: list[tuple[int, int]]) -> list[Tokens]:
            return self._runs([joined[slice(*span)] for span in spans])

        return tokenize_by_table(lengths, ids, of_runs).split()

    @property
    def empty_id(self) -> int:
        """The id that stands for a token without content: [MASK], or padding if there is none."""
        return self.pad_id if self._mask_id is None else self._mask_id

    @property
    def reads_masks(self) -> bool:
        """Whether the mask token in a text of the trunk is special."""
        return self._mask is not None

    def mask_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the spans, in characters, of mask tokens that are read as such."""
        if self._mask is None:
            return []
        return [mask.span() for mask in re.finditer(re.escape(self._mask), text)]

    def layout(self, sentences: int) -> Layout:
        """Special tokens as the tokenizer itself puts them."""
        return self._layouts[sentences]

    def model_max_length(self) -> int | None:
        """Return the longest input in tokens, as the tokenizer states it; None: no limit."""
        length = self.hugging_face.model_max_length
        return int(length) if length < UNKNOWN_LENGTH else None

    def _runs(self, runs: Sequence[str]) -> list[Tokens]:
        """Tokenize runs of characters, equal runs only once."""
        if len(self._known_runs) > MOST_KNOWN_RUNS:
            self._known_runs = {}
        known = self._known_runs
        new = [run for run in dict.fromkeys(runs) if run not in known]
        tokens = dict(zip(new, map(_tokens, new, self._encoded(new)), strict=True))
        known.update((run, cut) for run, cut in tokens.items() if len(run) <= LONGEST_KNOWN)
        return [tokens[run] if run in tokens else known[run] for run in runs]

    def _encoded(self, texts: list[str]) -> list[Any]:
        return self._backend.encode_batch(texts, add_special_tokens=False)

    def _id_of(self, codes: list[int]) -> list[int]:
        """Ask the tokenizer for the ids of characters, alone and between two others."""
        characters = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
        beside = f"{NEIGHBOUR}{{}}{NEIGHBOUR}"
        alone = self._encoded([NEIGHBOUR, *characters])
        between = self._encoded([beside.format(character) for character in characters])
        neighbour = alone.pop(0).ids
        ids = dict.fromkeys(codes, IN_RUN)
        for character, token, three in zip(characters, alone, between, strict=True):
            apart = [*neighbour, *token.ids, *neighbour] == three.ids
            if extends(character) or unicodedata.category(character) == UNASSIGNED:
                ids[ord(character)] = EXTENDS
            elif apart and len(token.ids) <= 1:
                ids[ord(character)] = token.ids[0] if token.ids else NO_TOKEN
        return list(ids.values())


NEIGHBOUR = "x"  # a letter: what isn't cut off from it by itself isn't cut off from any
UNASSIGNED = "Cn"  # a newer Unicode may know it, and that it composes
MOST_KNOWN_RUNS, LONGEST_KNOWN = 100_000, 32
_CONTEXT_FREE = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "BertNormalizer", "StripAccents")
_CUTTING = ("WhitespaceSplit", "BertPreTokenizer")
_EVERY = {"type": "Split", "pattern": {"Regex": "[\\s\\S]"}}
_EACH_ALONE = {**_EVERY, "behavior": "Isolated", "invert": False}


def _cuts_by_character(backend: Any) -> bool:
    """Say whether a tokenizer's normalizer and pre-tokenizer look at single characters.

    Then a character that is cut off from a letter beside it is so in any text.
    """
    parts = json.loads(backend.to_str())
    normalizers = _steps(parts["normalizer"], "normalizers")
    cuts = _steps(parts["pre_tokenizer"], "pretokenizers")
    return (
        all(step["type"] in _CONTEXT_FREE for step in normalizers)
        and all(step["type"] in _CUTTING or step == _EACH_ALONE for step in cuts)
        and all(token["special"] for token in parts["added_tokens"])
    )


def _steps(part: Mapping[str, Any] | None, name: str) -> list[Mapping[str, Any]]:
    if part is None:
        return []
    return part[name] if part["type"] == "Sequence" else [part]


def _tokens(text: str, encoding: Any) -> Tokens:
    starts, ends = [], []
    for start, end in encoding.offsets:
        while start < end - 1 and text[start].isspace():
            start += 1
        starts.append(start)
        ends.append(end)
    return Tokens(encoding.ids, starts, ends)


def _layout(backend: Any, sentences: int) -> Layout:
    """Read off, from the tokenizer's own encoding, where it puts special tokens."""
    encoding = backend.encode(*["a"] * sentences)
    waiting: list[Special] = []
    before: list[tuple[Special, ...]] = []
    segments: list[int] = []
    for token, number, segment, owner in zip(
        encoding.tokens, encoding.ids, encoding.type_ids, encoding.sequence_ids, strict=True
    ):
        if owner is None:
            waiting.append(Special(token, number, segment))
        elif owner == len(before):
            before.append(tuple(waiting))
            segments.append(segment)
            waiting = []
    if len(before) != sentences:
        raise CheckpointError(
            f"The tokenizer leaves out or swaps sentences where it is given {sentences}. Copy the "
            "encoder's own tokenizer.json into its folder."
        )
    return Layout(tuple(before), tuple(waiting), tuple(segments))
