"""A linear tagger, fitted in seconds: how many new names their letters and neighbours give away.

No encoder, no graph: a token's tag is guessed from it, its two neighbours to each side and pairs of
these; of words also from their endings, beginnings and letters' shapes. What it finds of the names
that training doesn't label tells, before anything is trained, how many a BERT will find
(:func:`kbert_lab.study.expected.found_by_bert`).
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from kbert_core.labels import OUTSIDE
from kbert_core.tokens import Ints
from kbert_lab.data.labelled import Example, labels_of, surface_forms
from kbert_lab.study.audit_values import Share
from kbert_lab.training.scores import unseen_recall

Codes = npt.NDArray[np.uint64]

STEPS, RATE = 20, 0.1  # of Adam over all tokens at once
MOST = 1_000_000  # tokens; of more only every second text is read, or every third …
MOST_WEIGHTS = 60_000_000  # the most frequent features times labels
REACH = 2  # neighbours to each side
WINDOWS = ((0,), (-1,), (1,), (-2,), (2,), (-1, 0), (0, 1), (-2, -1), (1, 2), (-1, 0, 1))
WORDS = 1.5  # characters: longer tokens on average are words, with endings and shapes of their own


def linear_recall(train: Sequence[Example], held_out: Sequence[Example]) -> Share:
    """Of the held-out mentions with a name new to train, those that a linear tagger finds.

    Borders and label must be right.
    """
    read, asked = _some(train), _some(held_out)
    names = labels_of(read)
    found: Sequence[Any] = [[] for _ in asked]
    if len(names) > 1 and asked:
        ends = np.cumsum([len(e.words) for e in asked])[:-1]
        best = np.split(_scores(read, asked, names).argmax(1), ends)
        tags = (_begun([names[number] for number in own]) for own in best)
        found = [replace(e, tags=own).spans for e, own in zip(asked, tags, strict=True)]
    texts, gold = [e.sentences[0] for e in asked], [e.spans for e in asked]
    recall = unseen_recall(texts, gold, found, surface_forms(train))
    return Share(int(recall["right"]), int(recall["gold"]))


def _some(examples: Sequence[Example]) -> list[Example]:
    """Texts that have tokens, evenly drawn where there are many."""
    having = [e for e in examples if e.tags]
    return having[:: ceil(sum(len(e.words) for e in having) / MOST) or 1]


def _begun(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags whose entities all begin with B-."""
    return tuple(
        f"B-{tag[2:]}" if tag[:2] == "I-" and before[2:] != tag[2:] else tag
        for before, tag in pairwise([OUTSIDE, *tags])
    )


def _scores(train: Sequence[Example], asked: Sequence[Example], names: Sequence[str]) -> Any:
    """(T, labels): scores of the tags of T tokens asked for."""
    words = bool(np.mean([b - a for e in train for a, b in e.words]) > WORDS)
    features = _features(train, words)
    known, times = np.unique(features, return_counts=True)
    if len(known) > (most := MOST_WEIGHTS // len(names)):
        known = np.sort(known[np.argsort(-times, kind="stable")[:most]])
    tags = np.array([names.index(tag) for e in train for tag in e.tags])
    weights = _fitted(_rows(features, known), tags, len(names))
    return _rows(_features(asked, words), known) @ weights


def _features(examples: Sequence[Example], words: bool) -> Codes:
    """(N, F): a number for each feature of each token, the same wherever it has the feature."""
    tokens: list[str] = []
    starts: list[int] = []
    for example in examples:
        starts += [len(tokens) + REACH + i for i in range(len(example.words))]
        text = example.sentences[0]
        tokens += [*[""] * REACH, *(text[a:b] for a, b in example.words), *[""] * REACH]
    distinct, of = np.unique(np.array(tokens, dtype=object), return_inverse=True)
    at = np.array(starts)
    codes = np.array([_code(token) for token in distinct], np.uint64)[of]
    made: list[Codes] = []
    for window in WINDOWS:
        made.append(_mixed(len(made), *(codes[at + step] for step in window)))
    for part in range(len(_parts("a"))) if words else ():
        own = np.array([_code(_parts(token)[part]) for token in distinct], np.uint64)
        made.append(_mixed(len(made), own[of][at]))
    return np.stack(made, axis=1)


def _code(letters: str) -> int:
    return crc32(letters.encode("utf-8", "surrogatepass"))


def _parts(word: str) -> tuple[str, ...]:
    """What a word's own letters say: endings, beginnings, itself in small letters, its shape."""
    shape = "".join("A" if c.isupper() else "a" if c.islower() else "0" for c in word[:6])
    return word[-2:], word[-3:], word[-4:], word[:2], word[:3], word.lower(), shape


def _mixed(kind: int, *codes: Codes) -> Codes:
    """One number of a kind of feature and the codes that it is made of."""
    mixed = np.full(len(codes[0]), kind, np.uint64)
    for code in codes:
        mixed = (mixed + code + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _rows(features: Codes, known: Codes) -> Any:
    """A sparse (N, known) matrix with a one for each known feature of a token, of (N, F)."""
    from scipy.sparse import csr_matrix  # slow to start

    at = np.minimum(np.searchsorted(known, features), len(known) - 1)
    has = known[at] == features
    starts = np.concatenate([[0], np.cumsum(has.sum(1))])
    return csr_matrix((np.ones(has.sum(), np.float32), at[has], starts), (len(at), len(known)))


def _fitted(rows: Any, tags: Ints, count: int) -> Any:
    """Weights (known, labels) of a multinomial regression, by Adam from zero."""
    weights = np.zeros((rows.shape[1], count), np.float32)
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    across, each = rows.T.tocsr(), np.arange(len(tags))
    for step in range(1, STEPS + 1):
        logits = rows @ weights
        chances = np.exp(logits - logits.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        chances[each, tags] -= 1
        slope = across @ (chances / len(tags))
        mean += 0.1 * (slope - mean)
        square += 0.001 * (slope**2 - square)
        away = np.sqrt(square / (1 - 0.999**step)) + 1e-8
        weights -= RATE * mean / (1 - 0.9**step) / away
    return weights
