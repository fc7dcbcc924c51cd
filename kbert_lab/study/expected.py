"""What injecting or looking up a graph can be expected to change, before it is tried.

Two counts tell most of it: names that training doesn't label, a dictionary of the graph gets right
and a BERT misses; and names that the dictionary gets wrong. What each is worth is fitted to the
gains measured on the map and on five splits (one point a data set and graph), through the origin: a
graph that names nothing changes nothing. A prediction interval says how far another data set may
lie from it, as far as a group of points lies from a fit to the others: the map's conditions share
records and trainings, and are one group. The fits are in ``expected.json``, which ``python -m
benchmarks.expected`` makes.

How many new names a BERT will find is judged by a linear tagger, fitted in seconds: by how many
their letters and neighbours give away. No encoder, no graph: a token's tag is guessed from it, its
two neighbours to each side and pairs of these; of words also from their endings, beginnings and
letters' shapes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import ceil
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from kbert_core.tokens import Ints
from kbert_lab.data.labelled import Example, labels_of, surface_forms
from kbert_lab.data.tagging import IOB1, as_bio
from kbert_lab.study.audit_values import Gain, Share, SplitAudit
from kbert_lab.study.statistics import LEVEL
from kbert_lab.training.scores import unseen_recall

# What the gain of each way over a BERT trained alike, as in the paper, depends on: of ``Point``.
WAYS = {"K-BERT": ("new",), "dictionary": ("new", "wrong"), "gate": ("new",)}
STEPS, RATE = 20, 0.1  # of the linear tagger: of Adam over all tokens at once
MOST = 1_000_000  # tokens; of more only every second text is read, or every third …
MOST_WEIGHTS = 60_000_000  # the most frequent features times labels
REACH = 2  # neighbours to each side
WINDOWS = ((0,), (-1,), (1,), (-2,), (2,), (-1, 0), (0, 1), (-2, -1), (1, 2), (-1, 0, 1))
WORDS = 1.5  # characters: longer tokens on average are words, with endings and shapes of their own
Codes = npt.NDArray[np.uint64]
Found = tuple[float, float, float]  # share of the new names that BERT finds: least, middle, most


class Point(NamedTuple):
    """What a gain depends on, of a held-out split, as shares of its mentions."""

    new: float  # not labelled in train, right in the dictionary, missed by BERT
    wrong: float  # in the dictionary: over a mention; of no mention, which costs half as much


@dataclass(frozen=True)
class Fit:
    """gain = weights · what a way depends on, fitted to P points of F features.

    Attributes:
        uses: the F features, fields of ``Point``.
        weights: (F,).
        spread: (F, F), (XᵀX)⁻¹ of the points.
        deviation: of a group of points from a fit to the others, where these say all they can.
        freedom: groups − F.
        box: (2, F), the least and the most of each feature among the points.
    """

    uses: Sequence[str]
    weights: Sequence[float]
    spread: Sequence[Sequence[float]]
    deviation: float
    freedom: int
    box: Sequence[Sequence[float]]

    def at(self, point: Point) -> Gain:
        """The gain expected of one data set and graph."""
        from scipy.special import stdtrit  # slow to start

        row = np.array([getattr(point, name) for name in self.uses])
        mean = row @ self.weights
        away = self.deviation * (1 + row @ self.spread @ row) ** 0.5
        half = stdtrit(self.freedom, (1 + LEVEL) / 2) * away
        outside = bool((row > self.box[1]).any())  # below it the fit goes to the origin
        mean, low, high = np.clip((mean, mean - half, mean + half), -1, 1).tolist()  # as F1 can
        return Gain(mean, low, high, outside)

    def among(self, new: float, wrong: float, found: Found) -> Gain:
        """The gain expected where BERT finds a share of the new names; see :func:`found_by_bert`.

        Args:
            new, wrong: as of a point, but names that BERT finds are among the new ones.
            found: the interval holds those of the least and the most.
        """
        least, mean, most = (self.at(Point(new * (1 - share), wrong)) for share in found)
        ends = (least.low, most.low, least.high, most.high)
        return Gain(mean.mean, min(ends), max(ends), mean.outside)


def point_of(split: SplitAudit) -> Point | None:
    """What the dictionary gets right of the new names, found by BERT or not, and what wrong.

    None where a split has no mentions or matches, or is the training set.
    """
    scores, kinds = split.dictionary, split.kinds
    if scores is None or kinds is None or not kinds.exact.total or not scores["gold"]:
        return None
    wrong = scores["over_mentions"] + scores["outside"] / 2
    return Point(scores["unseen"]["right"] / scores["gold"], wrong / scores["gold"])


def found_by_bert(linear: Share, ahead: Sequence[float] | None = None) -> Found:
    """The share of the new names that a BERT like ours finds, judged by a linear tagger's.

    In logits BERT is ahead by about as much on all data sets. The interval is a prediction's for
    one more of them, in which the linear tagger was asked for so many names.

    Args:
        linear: from :func:`linear_recall`.
        ahead: by how much on other data sets; None: on all that were measured.
    """
    from scipy.special import expit, stdtrit  # slow to start

    many = np.array(_measured()["ahead"] if ahead is None else ahead)
    of_names = 1 / (linear.count + 0.5) + 1 / (linear.total - linear.count + 0.5)
    unsure = (many.var(ddof=1) * (1 + 1 / len(many)) + of_names) ** 0.5
    away = float(stdtrit(len(many) - 1, (1 + LEVEL) / 2)) * unsure
    at = np.log(linear.odds) + many.mean()
    least, middle, most = (float(expit(at + by)) for by in (-away, 0, away))
    return least, middle, most


def expected_gains(point: Point, found: Found) -> dict[str, Gain]:
    """By way, of a held-out split's :func:`point_of`; ``found`` as for :meth:`Fit.among`."""
    return {way: Fit(**fit).among(*point, found) for way, fit in _measured()["ways"].items()}


@cache
def _measured() -> dict[str, Any]:
    text = files("kbert_lab.study").joinpath("expected.json").read_text(encoding="utf-8")
    fitted: dict[str, Any] = json.loads(text)
    return fitted


# A linear tagger


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
        tags = (as_bio([names[number] for number in own], IOB1) for own in best)
        found = [replace(e, tags=tuple(own)).spans for e, own in zip(asked, tags, strict=True)]
    texts, gold = [e.sentences[0] for e in asked], [e.spans for e in asked]
    recall = unseen_recall(texts, gold, found, surface_forms(train))
    return Share(int(recall["right"]), int(recall["gold"]))


def _some(examples: Sequence[Example]) -> list[Example]:
    """Texts that have tokens, evenly drawn where there are many."""
    having = [e for e in examples if e.tags]
    return having[:: ceil(sum(len(e.words) for e in having) / MOST) or 1]


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
    made = [_mixed(n, *(codes[at + step] for step in of_w)) for n, of_w in enumerate(WINDOWS)]
    for part in zip(*map(_parts, distinct), strict=True) if words else ():
        made.append(_mixed(len(made), np.array([*map(_code, part)], np.uint64)[of][at]))
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
