"""Text to pretrain on: passages as token ids, packed into rows, and masked.

Several passages share a row, so that hardly a position is padding, and each
sees only itself.
"""

import hashlib
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Encoding
from torch import Tensor
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

from kbert_core.data.squad import comprehension_texts
from kbert_core.data.tables import Source, conll_rows, is_conll, read_lines
from kbert_core.errors import DataError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import find_mentions
from kbert_core.knowledge.surface_forms import AS_WRITTEN
from kbert_core.training.masking import MASKED_SHARE, Masking
from kbert_core.training.trainer import BATCH
from kbert_core.training.vocabulary import lines_of

OPEN_ROWS = 64  # rows that still take passages while packing
BATCH_OF_PASSAGES = 4096  # tokenised at once
SHOWN_ROWS = 3  # of a batch that is named in an error
OFFSET_SHARE = 0.15  # of passages, moved to later positions so that those are trained
LONG_ENOUGH = 15  # characters of a text to leave out, so that no mere phrase is one


@dataclass(frozen=True)
class Corpus:
    """Passages as token ids."""

    ids: np.ndarray  # every passage's tokens, one after the other, int32
    ends: np.ndarray  # where each passage ends in ``ids``, int64
    inside: np.ndarray  # whether a token goes on with the word of the token before it

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def fingerprint(self) -> str:
        """A digest of its tokens and words."""
        digest = hashlib.sha256()
        for part in (self.ids, self.ends, self.inside):
            digest.update(part.tobytes())
        return digest.hexdigest()[:16]

    def place(self, number: int) -> slice:
        """Where a passage stands in ``ids`` and ``inside``."""
        return slice(self.ends[number - 1] if number else 0, self.ends[number])

    def passage(self, number: int) -> np.ndarray:
        """The token ids of one passage."""
        return self.ids[self.place(number)]


def read_passages(paths: Sequence[str | Path], exclude: Iterable[str] = ()) -> Iterator[str]:
    """Stream the passages of files, as they are or packed, one a line.

    Args:
        exclude: sentences of test sets; a passage that contains one of at
            least ``LONG_ENOUGH`` characters is left out. White space counts
            in neither.
    """
    heads: dict[str, list[str]] = {}
    for sentence in map(_without_spaces, exclude):
        if len(sentence) >= LONG_ENOUGH:
            heads.setdefault(sentence[:LONG_ENOUGH], []).append(sentence)
    for path in paths:
        for line in lines_of(path, "text, one passage a line"):
            passage = line.strip()
            if passage and not _contains(passage, heads):
                yield passage


def sentences_of(paths: Sequence[str]) -> list[str]:
    """Texts of labelled files: every column, or of JSON every question and sentence.

    Of one token a line, the sentences; white space in them doesn't count.
    """
    found: list[str] = []
    for path in paths:
        if path.endswith(".json"):
            found += comprehension_texts(path)
            continue
        lines = read_lines(Path(path))
        if is_conll(lines):
            found += ["".join(tokens) for _, tokens, _ in conll_rows(lines, Source(path))]
        else:
            found += [column for line in lines for column in line.split("\t")]
    return found


def encode_passages(
    passages: Iterable[str],
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int,
    words: KnowledgeGraph | None = None,
) -> Corpus:
    """Tokenise passages and cut them into pieces that fit a row; no word that fits one is cut.

    Args:
        max_length: of a piece [CLS] ... [SEP], in tokens.
        words: words are this graph's heads, the longest first, and the word
            pieces of one word; None: word pieces alone.
    """
    pieces: list[np.ndarray] = []
    joined: list[np.ndarray] = []
    room = max_length - 2
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    stream = iter(passages)
    while batch := list(islice(stream, BATCH_OF_PASSAGES)):
        encodings = backend.encode_batch(batch, add_special_tokens=False)
        for encoding, inside in zip(encodings, _inside(batch, encodings, words), strict=True):
            ids = encoding.ids
            start = 0
            while start < len(ids):
                end = _cut(inside, start, min(start + room, len(ids)))
                if end - start > 1:
                    pieces.append(np.array([cls, *ids[start:end], sep], dtype=np.int32))
                    goes_on = np.zeros(end - start + 2, bool)
                    goes_on[2:-1] = inside[start + 1 : end]
                    joined.append(goes_on)
                start = end
    if not pieces:
        raise DataError(
            "No passage to train on is left: the files given with --text hold none, or --exclude "
            "takes out all of them. Give other files, or exclude less."
        )
    ends = np.cumsum([len(p) for p in pieces])
    return Corpus(np.concatenate(pieces), ends, np.concatenate(joined))


def _cut(inside: np.ndarray, start: int, end: int) -> int:
    """Move a cut at a token back to the border of its word."""
    at = end
    while at < len(inside) and at > start and inside[at]:
        at -= 1
    return at if at > start else end


def _inside(
    texts: Sequence[str], encodings: Sequence[Encoding], words: KnowledgeGraph | None
) -> Iterator[np.ndarray]:
    """Yield for each text whether its tokens go on with the word before."""
    found = find_mentions(texts, words, rules=AS_WRITTEN) if words else None
    for row, encoding in enumerate(encodings):
        of_word = np.array([-1 if w is None else w for w in encoding.word_ids], np.int64)
        inside = np.zeros(len(of_word), bool)
        inside[1:] = of_word[1:] == of_word[:-1]
        if found is not None and len(inside):
            own = slice(*np.searchsorted(found.rows, (row, row + 1)))
            starts, ends = np.array(encoding.offsets, np.int64).T
            firsts = np.searchsorted(ends, found.starts[own], "right")
            lasts = np.searchsorted(starts, found.ends[own], "left")
            for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
                inside[first + 1 : last] = True
        yield inside


def pack(corpus: Corpus, *, max_length: int, seed: int) -> list[list[int]]:
    """Put passages into rows of at most ``max_length`` tokens, each where the least room stays.

    ``OPEN_ROWS`` rows still take a passage; of more the fullest is closed.
    """
    order = np.random.default_rng(seed).permutation(len(corpus)).tolist()
    sizes = np.diff(corpus.ends, prepend=0).tolist()
    rows: list[list[int]] = []
    left: list[tuple[int, int]] = []  # (room, row) of those open, sorted
    closed: list[int] = []
    for number in order:
        best = bisect_left(left, (sizes[number], -1))
        if best == len(left):
            left.append((max_length, len(rows)))
            rows.append([])
        room, row = left.pop(best)
        rows[row].append(number)
        insort(left, (room - sizes[number], row))
        if len(left) > OPEN_ROWS:
            closed.append(left.pop(0)[1])
    return [rows[row] for row in (*closed, *sorted(row for _, row in left))]


class MaskedRows(Dataset[dict[str, Tensor]]):
    """Packed rows with tokens masked anew each time round (dynamic masking).

    Item i is a function of (seed, i) alone, so that training can stop and go
    on at any item. The rows are gone through in a new order each time. A word
    is masked whole or not at all, its tokens in the same manner; each word
    with the same probability, so that the share of masked tokens stays.

    Args:
        rows: which passages of the corpus share a row.
        max_length: N, tokens a row.
        positions: how many positions the encoder has.
        count: how many items there are; several times the rows is fine.
        whole_words: False: every token is masked by itself.
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
        seed: int = 0,
        whole_words: bool = True,
    ) -> None:
        self.corpus, self.rows, self.count, self.seed = corpus, rows, count, seed
        self.max_length, self.positions = max_length, positions
        self.whole_words, self.tokenizer = whole_words, tokenizer
        self.masking = Masking(tokenizer)
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0))

    def __len__(self) -> int:
        return self.count

    def passages(self, item: int) -> list[int]:
        """The numbers of the passages that share an item's row."""
        round_, place = divmod(item, len(self.rows))
        if self._order[0] != round_:
            order = np.random.default_rng((self.seed, 1, round_)).permutation(len(self.rows))
            self._order = (round_, order)
        return self.rows[self._order[1][place]]

    def described(self, items: Sequence[int]) -> str:
        """Say in words which text some items hold."""
        texts = []
        for item in items[:SHOWN_ROWS]:
            ids = self.corpus.passage(self.passages(item)[0])[1:25]
            texts.append(f"'{self.tokenizer.decode(ids.tolist())}'")
        rest = f" and {len(items) - SHOWN_ROWS} more" if len(items) > SHOWN_ROWS else ""
        return f"rows of text that begin with {', '.join(texts)}{rest}"

    def __getitem__(self, item: int) -> dict[str, Tensor]:
        random = np.random.default_rng((self.seed, 2, item))
        size = self.max_length
        ids = np.full(size, self.tokenizer.pad_token_id, dtype=np.int64)
        positions = np.zeros(size, dtype=np.int64)
        trees = np.full(size, -1, dtype=np.int64)
        first = np.arange(size)  # per token the first of its word
        at = 0
        for tree, number in enumerate(self.passages(item)):
            passage = self.corpus.passage(number)
            end = at + len(passage)
            ids[at:end] = passage
            positions[at:end] = np.arange(len(passage))
            if random.random() < OFFSET_SHARE:
                shift = random.integers(0, self.positions - len(passage) + 1)
                positions[at + 1 : end] += shift
            trees[at:end] = tree
            if self.whole_words:
                first[at:end][self.corpus.inside[self.corpus.place(number)]] = 0
            at = end
        first = np.maximum.accumulate(first)
        chosen = (random.random(size) < MASKED_SHARE)[first]
        chosen &= ~self.masking.special(ids)
        read, labels = self.masking.hide(ids, chosen, random, first)
        return {
            "input_ids": torch.from_numpy(read),
            "position_ids": torch.from_numpy(positions),
            "tree_ids": torch.from_numpy(trees),
            "labels": torch.from_numpy(labels),
            BATCH: torch.tensor(item),
        }


def stack(items: Sequence[dict[str, Tensor]]) -> dict[str, Any]:
    """Stack rows to a batch, (B, N) each."""
    return {name: torch.stack([item[name] for item in items]) for name in items[0]}


def _contains(passage: str, heads: dict[str, list[str]]) -> bool:
    """Whether a passage holds one of the sentences, by their first characters; without spaces."""
    if not heads:
        return False
    passage = _without_spaces(passage)
    return any(
        passage.startswith(sentence, start)
        for start in range(len(passage) - LONG_ENOUGH + 1)
        for sentence in heads.get(passage[start : start + LONG_ENOUGH], ())
    )


def _without_spaces(text: str) -> str:
    return "".join(text.split())
