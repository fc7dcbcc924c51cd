"""Packed rows of plain passages for pretraining: hardly a position is padding.

Several passages share a row and each sees only itself: ``tree_ids`` keeps
them apart in the visible matrix, and positions start anew with each.
"""

import lzma
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

from kbert_core.errors import DataError

NOT_MASKED = -100  # the label that PyTorch's cross entropy ignores
OPEN_ROWS = 64  # rows that still take passages while packing
OFFSET_SHARE = 0.15  # of passages, moved to later positions so that those are trained


@dataclass(frozen=True)
class Corpus:
    """Passages as token ids.

    Attributes:
        ids: every passage's tokens, one after the other, int32.
        ends: where each passage ends in ``ids``, int64.
    """

    ids: np.ndarray
    ends: np.ndarray

    def __len__(self) -> int:
        return len(self.ends)

    def passage(self, number: int) -> np.ndarray:
        """The token ids of one passage."""
        start = self.ends[number - 1] if number else 0
        return self.ids[start : self.ends[number]]


def read_passages(paths: Sequence[str | Path], exclude: Iterable[str] = ()) -> Iterator[str]:
    """Stream the passages of ``.txt`` or ``.txt.xz`` files, one a line.

    Args:
        paths: files.
        exclude: sentences of test sets; a passage that contains one of at
            least 15 characters is left out.

    Raises:
        DataError: a file is missing, broken, or not UTF-8.
    """
    heads: dict[str, list[str]] = {}
    for sentence in exclude:
        if len(sentence) >= 15:
            heads.setdefault(sentence[:15], []).append(sentence)
    for path in paths:
        opener = lzma.open if str(path).endswith(".xz") else open
        try:
            with opener(path, "rt", encoding="utf-8") as file:
                for line in file:
                    passage = line.strip()
                    if passage and not _contains(passage, heads):
                        yield passage
        except (OSError, lzma.LZMAError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: can't be read as text, one passage a line ({error}).") from (
                error
            )


def encode_passages(
    passages: Iterable[str], tokenizer: PreTrainedTokenizerBase, *, max_length: int
) -> Corpus:
    """Tokenise passages and cut them into pieces that fit a row.

    Each piece is [CLS] ... [SEP], at most ``max_length`` tokens.
    """
    pieces: list[np.ndarray] = []
    room = max_length - 2
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    batch: list[str] = []

    def flush() -> None:
        for encoding in backend.encode_batch_fast(batch, add_special_tokens=False):
            ids = encoding.ids
            for start in range(0, len(ids), room):
                part = ids[start : start + room]
                if len(part) > 1:
                    pieces.append(np.array([cls, *part, sep], dtype=np.int32))
        batch.clear()

    for passage in passages:
        batch.append(passage)
        if len(batch) == 4096:
            flush()
    flush()
    if not pieces:
        raise DataError("The text files hold no passage to train on.")
    return Corpus(np.concatenate(pieces), np.cumsum([len(p) for p in pieces]))


def pack(corpus: Corpus, *, max_length: int, seed: int) -> list[list[int]]:
    """Put passages into rows of at most ``max_length`` tokens (best fit).

    Returns:
        Rows, each the numbers of its passages; every passage in one row.
    """
    sizes = np.diff(corpus.ends, prepend=0)
    order = np.random.default_rng(seed).permutation(len(corpus))
    done: list[list[int]] = []
    open_rows: list[tuple[int, list[int]]] = []  # (room left, passages)
    for number in order:
        size = int(sizes[number])
        fitting = [i for i, (room, _) in enumerate(open_rows) if room >= size]
        if fitting:
            best = min(fitting, key=lambda i: open_rows[i][0])
            room, row = open_rows[best]
            row.append(int(number))
            open_rows[best] = (room - size, row)
        else:
            open_rows.append((max_length - size, [int(number)]))
        if len(open_rows) > OPEN_ROWS:
            fullest = min(range(len(open_rows)), key=lambda i: open_rows[i][0])
            done.append(open_rows.pop(fullest)[1])
    return done + [row for _, row in open_rows]


class MaskedRows(Dataset[dict[str, Tensor]]):
    """Packed rows with tokens masked anew each time round (dynamic masking).

    Item i is a function of (seed, i) alone, so that training can stop and go
    on at any item. The rows are gone through in a new order each time.

    Args:
        corpus: the passages.
        rows: which passages share a row.
        tokenizer: for the mask token and the size of the vocabulary.
        max_length: N, tokens a row.
        positions: how many positions the encoder has.
        count: how many items there are; several times the rows is fine.
        masked: share of tokens to predict; of these 80 % become [MASK], 10 %
            a random token, 10 % stay.
    """

    def __init__(
        self,
        corpus: Corpus,
        rows: list[list[int]],
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_length: int,
        positions: int,
        count: int,
        masked: float = 0.15,
        seed: int = 0,
    ) -> None:
        self.corpus, self.rows, self.count, self.seed = corpus, rows, count, seed
        self.max_length, self.positions, self.masked = max_length, positions, masked
        self.mask_id, self.pad_id = tokenizer.mask_token_id, tokenizer.pad_token_id
        self.specials = set(tokenizer.all_special_ids)
        self.vocabulary = len(tokenizer)
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, item: int) -> dict[str, Tensor]:
        round_, place = divmod(item, len(self.rows))
        if self._order[0] != round_:
            order = np.random.default_rng((self.seed, 1, round_)).permutation(len(self.rows))
            self._order = (round_, order)
        random = np.random.default_rng((self.seed, 2, item))
        size = self.max_length
        ids = np.full(size, self.pad_id, dtype=np.int64)
        positions = np.zeros(size, dtype=np.int64)
        trees = np.full(size, -1, dtype=np.int64)
        at = 0
        for tree, number in enumerate(self.rows[self._order[1][place]]):
            passage = self.corpus.passage(number)
            end = at + len(passage)
            ids[at:end] = passage
            positions[at:end] = np.arange(len(passage))
            if random.random() < OFFSET_SHARE:
                shift = random.integers(0, self.positions - len(passage) + 1)
                positions[at + 1 : end] += shift
            trees[at:end] = tree
            at = end
        chosen = (random.random(size) < self.masked) & ~np.isin(ids, list(self.specials))
        labels = np.where(chosen, ids, NOT_MASKED)
        dice = random.random(size)
        ids[chosen & (dice < 0.8)] = self.mask_id
        other = chosen & (dice >= 0.9)
        ids[other] = random.integers(len(self.specials), self.vocabulary, other.sum())
        return {
            "input_ids": torch.from_numpy(ids),
            "position_ids": torch.from_numpy(positions),
            "tree_ids": torch.from_numpy(trees),
            "labels": torch.from_numpy(labels),
        }


def stack(items: Sequence[dict[str, Tensor]]) -> dict[str, Any]:
    """Stack rows to a batch, (B, N) each."""
    return {name: torch.stack([item[name] for item in items]) for name in items[0]}


def _contains(passage: str, heads: dict[str, list[str]]) -> bool:
    if not heads:
        return False
    return any(
        passage.startswith(sentence, start)
        for start in range(len(passage) - 14)
        for sentence in heads.get(passage[start : start + 15], ())
    )
