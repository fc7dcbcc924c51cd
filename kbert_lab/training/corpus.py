"""Text to pretrain on: passages as token ids, packed into rows, and masked.

Several passages share a row, so that there is hardly any padding; each passage
sees only itself.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerBase

from kbert_core.errors import DataError
from kbert_lab.data.squad import comprehension_texts
from kbert_lab.data.tables import Source, conll_rows, each_line, is_conll, plain_lines, read_lines
from kbert_lab.training.batches import BATCH
from kbert_lab.training.vocabulary import MASKED_SHARE, Masking

OPEN_ROWS = 64  # rows that still take passages while packing
BATCH_OF_PASSAGES = 4096  # tokenised at once
SHOWN_ROWS = 3  # of a batch that is named in an error
OFFSET_SHARE = 0.15  # of passages, moved to later positions so that those are trained
LONG_ENOUGH = 15  # characters of a text to leave out, so that no mere phrase is one


def read_passages(paths: Sequence[str | Path], exclude: Iterable[str] = ()) -> Iterator[str]:
    """Stream the passages of files, as they are or packed, one a line.

    Args:
        exclude: sentences of test sets; a passage that contains one of at
            least ``LONG_ENOUGH`` characters is left out. White space counts
            in neither.

    Raises:
        DataError: a file can't be read as text.
    """
    heads: dict[str, list[str]] = {}
    for sentence in exclude:
        sentence = "".join(sentence.split())
        if len(sentence) >= LONG_ENOUGH:
            heads.setdefault(sentence[:LONG_ENOUGH], []).append(sentence)
    for path in paths:
        for passage in map(str.strip, plain_lines(each_line(path), str(path))):
            if passage and not (heads and _contains(passage, heads)):
                yield passage


def _contains(passage: str, heads: dict[str, list[str]]) -> bool:
    """Say whether a passage contains one of the sentences; spaces don't count."""
    passage = "".join(passage.split())
    return any(
        passage.startswith(sentence, start)
        for start in range(len(passage) - LONG_ENOUGH + 1)
        for sentence in heads.get(passage[start : start + LONG_ENOUGH], ())
    )


def sentences_of(paths: Sequence[str]) -> list[str]:
    """Return the texts of labelled files: every column; in JSON every question and sentence.

    A file with one token per line gives its sentences. White space in them doesn't count.
    """
    sentences: list[str] = []
    for path in paths:
        if path.endswith(".json"):
            sentences += comprehension_texts(path)
            continue
        lines = read_lines(Path(path))
        if is_conll(lines):
            sentences += ["".join(tokens) for _, tokens, _ in conll_rows(lines, Source(path))]
        else:
            sentences += [column for line in lines for column in line.split("\t")]
    return sentences


@dataclass(frozen=True)
class Corpus:
    """Passages as token ids."""

    ids: np.ndarray  # every passage's tokens, one after the other, int32
    ends: np.ndarray  # where each passage ends in ``ids``, int64
    inside: np.ndarray  # whether a token goes on with the word of the token before it

    def __len__(self) -> int:
        return len(self.ends)

    def place(self, number: int) -> slice:
        """Where a passage stands in ``ids`` and ``inside``."""
        return slice(self.ends[number - 1] if number else 0, self.ends[number])

    def passage(self, number: int) -> np.ndarray:
        """The token ids of one passage."""
        return self.ids[self.place(number)]


def encode_passages(
    passages: Iterable[str], tokenizer: PreTrainedTokenizerBase, *, max_length: int
) -> Corpus:
    """Tokenise passages and cut them into pieces that fit a row; words are cut only if too long.

    Args:
        max_length: of a piece [CLS] ... [SEP], in tokens.
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
        for encoding in backend.encode_batch(batch, add_special_tokens=False):
            ids = encoding.ids
            words = np.array([-1 if word is None else word for word in encoding.word_ids])
            inside = np.zeros(len(ids), bool)  # whether a token goes on with the word before it
            inside[1:] = words[1:] == words[:-1]
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
    """Move a cut back to the beginning of the word that it would divide."""
    at = end
    while at < len(inside) and at > start and inside[at]:
        at -= 1
    return at if at > start else end


def pack(corpus: Corpus, *, max_length: int, seed: int) -> list[list[int]]:
    """Put passages into rows of at most ``max_length`` tokens, each into the fullest that fits.

    Only ``OPEN_ROWS`` rows are open for more passages; if there are more, the fullest is closed.
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


@dataclass(eq=False)
class MaskedRows(Dataset[dict[str, Tensor]]):
    """Packed rows with tokens masked anew each time round (dynamic masking).

    Item i is a function of (seed, i) alone, so that training can stop and go
    on at any item. The rows are gone through in a new order each time. A word
    is masked whole or not at all, its tokens in the same manner; each word
    with the same probability, so that the share of masked tokens stays.
    """

    corpus: Corpus
    rows: list[list[int]]  # which passages of the corpus share a row
    tokenizer: PreTrainedTokenizerBase
    _: KW_ONLY
    max_length: int  # N, tokens a row
    positions: int  # how many the encoder has
    count: int  # how many items there are; several times the rows is fine
    seed: int = 0
    whole_words: bool = True  # False: every token is masked by itself

    def __post_init__(self) -> None:
        self.masking = Masking(self.tokenizer)
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
                positions[at + 1 : end] += random.integers(0, self.positions - len(passage) + 1)
            trees[at:end] = tree
            if self.whole_words:
                first[at:end][self.corpus.inside[self.corpus.place(number)]] = 0
            at = end
        first = np.maximum.accumulate(first)
        chosen = (random.random(size) < MASKED_SHARE)[first] & ~self.masking.special(ids)
        read, labels = self.masking.hide(ids, chosen, random, first)
        arrays = {"input_ids": read, "position_ids": positions, "tree_ids": trees, "labels": labels}
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return {**tensors, BATCH: torch.tensor(item)}
