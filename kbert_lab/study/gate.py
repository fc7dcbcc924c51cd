"""A gate: a light classifier that judges each of a dictionary's spans before it is written.

A dictionary written over a model (:mod:`kbert_lab.study.dictionary`) doubts nothing. The
gate asks of each of its spans what the model thinks of it, what the model found there, how long it
is, and how often the dictionary was right with that name in the training set. It is a logistic
regression, fitted on dev; a span is written where its probability to be right reaches a threshold.

The threshold is chosen by cross-fitting: dev is cut into folds, and every span is judged by a
classifier that was fitted without its fold. What the gate scores on dev is told with each fold's
threshold chosen on the others, or else it could never be less than the model's own. The *oracle*
writes the spans that are right and no others: the most that judging can give.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, log1p
from typing import Any, Self

import numpy as np

from kbert_core.errors import DataError
from kbert_core.labels import OUTSIDE
from kbert_lab.data.labelled import Example
from kbert_lab.study.dictionary import Spans, TagScores, guided_spans, written_over
from kbert_lab.training.scores import SpanKey, span_scores

FOLDS = 5
PENALTY = 1.0  # of squared weights
STEPS = 50  # of Newton's method; ten suffice
TRUST = 2.0  # matches that the rate of the type's other names counts for
LOWEST = log(1e-7)  # of a log-probability, as TagScores has it
THRESHOLDS = (*(round(0.05 * n, 2) for n in range(2, 20)), 1.0)  # at 1 nothing is written
FEATURES = (
    "spelled",  # log-probability of the tags that hold the span, mean of its tokens
    "outside",  # the same of O
    "begun before",  # log-probability that its first token goes on with an entity
    "goes on",  # and that the token after it does
    "found",  # by the model, with this type
    "found as another type",
    "inside a longer one",  # that the model found
    "overlaps",  # what the model found, in another way
    "length",  # logarithm, in characters
    "seen",  # how often it was matched in train: log(1 + n)
    "name",  # log-odds to be right in train of the name, with TRUST in those of its type
    "type",  # the same of other names of its type (leave-one-name-out)
)


RECIPE = {"features": FEATURES, "folds": FOLDS, "penalty": PENALTY, "trust": TRUST}


@dataclass(frozen=True)
class Record:
    """How often a dictionary was right in the training set: label → name → (right, matches)."""

    names: Mapping[str, Mapping[str, tuple[int, int]]]

    @classmethod
    def of(cls, examples: Sequence[Example], dictionary: Sequence[Sequence[SpanKey]]) -> Self:
        """Count its spans in labelled texts; right is one that is a gold span, type and all."""
        right: defaultdict[str, Counter[str]] = defaultdict(Counter)
        matches: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for example, spans in zip(examples, dictionary, strict=True):
            gold = set(example.spans)
            for start, end, label in spans:
                name = example.sentences[0][start:end]
                matches[label][name] += 1
                right[label][name] += (start, end, label) in gold
        return cls(
            {
                label: {name: (right[label][name], count) for name, count in names.items()}
                for label, names in matches.items()
            }
        )

    def of_name(self, name: str, label: str) -> tuple[int, float, float]:
        """Return what the training set says about a name.

        Returns:
            How often it was matched; the share that was right, with the type's rate added as
            ``TRUST`` more matches; and that rate, the mean over the type's other names. The
            rate says how far to trust a name that never occurred.
        """
        names = self.names.get(label, {})
        right, count = names.get(name, (0, 0))
        others = sum(r / n for r, n in names.values()) - (right / count if count else 0.0)
        type_rate = (others + 0.5) / (len(names) - (name in names) + 1)
        return count, (right + TRUST * type_rate) / (count + TRUST), type_rate


@dataclass(frozen=True)
class Judged:
    """The spans of a dictionary that can be judged, in S texts.

    Attributes:
        spans: M of them: the number of the text and the span.
        features: (M, F).
    """

    spans: tuple[tuple[int, SpanKey], ...]
    features: np.ndarray

    def written(self, texts: int, chosen: np.ndarray) -> list[Spans]:
        """Return for each text the spans that are ``chosen``, (M,) bool."""
        kept: list[Spans] = [[] for _ in range(texts)]
        for (number, span), keep in zip(self.spans, chosen.tolist(), strict=True):
            if keep:
                kept[number].append(span)
        return kept


def judged(
    texts: Sequence[str],
    dictionary: Sequence[Sequence[SpanKey]],
    scores: TagScores,
    found: Sequence[Sequence[SpanKey]],
    record: Record,
) -> Judged:
    """Describe each span of a dictionary by what the model thinks of it and train says of its name.

    Args:
        dictionary: (start, end, label) spans of each text. One whose borders aren't tokens', or
            whose label the model doesn't know, is left out.
        scores: the model's, of the same texts.
        found: the spans that the model predicts.
        record: how often the dictionary was right in train.
    """
    kept: list[tuple[int, SpanKey]] = []
    rows: list[list[float]] = []
    tags = {name: index for index, name in enumerate(scores.names)}
    inside = [index for name, index in tags.items() if name.startswith("I-")]
    stop = 0
    read = zip(scores.sizes.tolist(), texts, dictionary, found, strict=True)
    for number, (size, text, spans, of_model) in enumerate(read):
        begin, stop = stop, stop + size
        starts, ends = scores.starts[begin:stop].tolist(), scores.ends[begin:stop].tolist()
        first = {start: at for at, start in reversed(list(enumerate(starts)))}
        after = {end: at + 1 for at, end in enumerate(ends)}
        own = scores.scores[begin:stop].astype(np.float64)
        goes_on = [*_any(own[:, inside]), LOWEST]
        for start, end, label in spans:
            if start not in first or end not in after or f"I-{label}" not in tags:
                continue
            a, b = first[start], after[end]
            if b <= a:
                continue
            spelled = own[a, tags[f"B-{label}"]] + own[a + 1 : b, tags[f"I-{label}"]].sum()
            count, name, type_rate = record.of_name(text[start:end], label)
            rows.append(
                [
                    spelled / (b - a),
                    own[a:b, tags[OUTSIDE]].mean() if OUTSIDE in tags else LOWEST,
                    goes_on[a],
                    goes_on[b],
                    *_there((start, end, label), of_model),
                    log(end - start),
                    log1p(count),
                    _log_odds(name),
                    _log_odds(type_rate),
                ]
            )
            kept.append((number, (start, end, label)))
    return Judged(tuple(kept), np.array(rows).reshape(-1, len(FEATURES)))


def _any(scores: np.ndarray) -> list[float]:
    """Return the log-probability that a token has one of some tags: (T, K) → (T,)."""
    total = np.exp(scores).sum(1) if scores.shape[1] else np.zeros(len(scores))
    return [float(value) for value in np.log(np.maximum(total, 1e-7))]


def _there(span: SpanKey, found: Sequence[SpanKey]) -> list[float]:
    """Return what the model found at a span: one of four cases, or nothing."""
    start, end, label = span
    over = [own for own in found if own[0] < end and start < own[1]]
    same = [own for own in over if own[:2] == (start, end)]
    ways = (
        any(own[2] == label for own in same),
        bool(same),
        any(own[0] <= start and end <= own[1] for own in over),
        bool(over),
    )
    first = next((number for number, way in enumerate(ways) if way), None)
    return [float(number == first) for number in range(len(ways))]


def _log_odds(share: float) -> float:
    return log(share / (1 - share))


@dataclass(frozen=True)
class Weights:
    """A logistic regression.

    Attributes:
        features: F weights of features in their own units.
        bias: the weight of 1.
    """

    features: np.ndarray
    bias: float

    @classmethod
    def fitted(cls, features: np.ndarray, right: np.ndarray) -> Self:
        """Fit by Newton's method, with a penalty on the weights of standardised features.

        Args:
            features: (M, F).
            right: (M,) bool.
        """
        mean, scale = features.mean(0), features.std(0)
        scale = np.where(scale > 1e-9, scale, 1.0)  # a feature that is always the same says nothing
        columns = np.hstack([(features - mean) / scale, np.ones((len(features), 1))])
        penalty = np.full(columns.shape[1], PENALTY)
        penalty[-1] = 1e-6
        weights = np.zeros(columns.shape[1])
        for _ in range(STEPS):
            chance = _sigmoid(columns @ weights)
            slope = columns.T @ (chance - right) + penalty * weights
            curve = (columns.T * (chance * (1 - chance))) @ columns + np.diag(penalty)
            step = np.linalg.solve(curve, slope)
            weights -= step
            if np.abs(step).max() < 1e-8:
                break
        own = weights[:-1] / scale
        return cls(own, float(weights[-1] - own @ mean))

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """(M, F) → (M,): the probability of each span to be right."""
        return _sigmoid(features @ self.features + self.bias)


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(values, -30, 30)))


def folds_of(texts: Sequence[str]) -> np.ndarray:
    """Return the fold of each span, (M,) int; equal texts get the same fold."""
    dealt: dict[str, int] = {}
    return np.array([dealt.setdefault(text, len(dealt) % FOLDS) for text in texts], dtype=int)


def cross_fitted(features: np.ndarray, right: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Judge each span by a classifier fitted on the spans of all other folds: (M,).

    Args:
        features: (M, F).
        right: (M,) bool.
        folds: (M,) int.
    """
    chances = np.zeros(len(right))
    for fold in np.unique(folds):
        here = folds == fold
        chances[here] = Weights.fitted(features[~here], right[~here]).probabilities(features[here])
    return chances


@dataclass(frozen=True)
class Fit:
    """A gate as it was fitted, and what cross-fitting says of it on dev.

    Attributes:
        threshold: the least probability of a span that is written.
        matches: how many of dev's spans were judged; ``right`` of these.
        dev_f1: of the model, the dictionary written over it, the gate (each span judged by a
            classifier that hasn't seen its fold, by a threshold chosen on the others) and the
            oracle.
    """

    weights: Weights
    threshold: float
    matches: int
    right: int
    dev_f1: Mapping[str, float]

    def chosen(self, described: Judged) -> np.ndarray:
        """Return which spans are written: (M,) bool."""
        return self.weights.probabilities(described.features) >= self.threshold

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {
            "features": dict(zip(FEATURES, self.weights.features.tolist(), strict=True)),
            "bias": self.weights.bias,
            "threshold": self.threshold,
            "matches": self.matches,
            "right": self.right,
            "dev_f1": dict(self.dev_f1),
        }


def fit_gate(
    examples: Sequence[Example],
    dictionary: Sequence[Sequence[SpanKey]],
    scores: TagScores,
    record: Record,
) -> Fit:
    """Fit a gate on dev.

    Args:
        examples: dev.
        dictionary: its spans in them.
        scores: the model's.
        record: of the training set.

    Raises:
        DataError: the dictionary finds nothing, or all that it finds is right, or wrong.
    """
    texts = [example.sentences[0] for example in examples]
    gold = [example.spans for example in examples]
    found = found_by(scores)
    of_dev = judged(texts, dictionary, scores, found, record)
    right = np.array([span in gold[number] for number, span in of_dev.spans], dtype=bool)
    folds = folds_of([texts[number] for number, _ in of_dev.spans])
    _check(right, folds)
    chances = cross_fitted(of_dev.features, right, folds)

    def f1(chosen: np.ndarray) -> float:
        written = written_over(found, of_dev.written(len(texts), chosen))
        return round(float(span_scores(gold, written)["f1"]), 4)

    def threshold(among: np.ndarray) -> float:  # of equal ones the most careful
        return max(reversed(THRESHOLDS), key=lambda least: f1(among & (chances >= least)))

    of_fold = {fold: threshold(folds != fold) for fold in np.unique(folds).tolist()}
    dev_f1 = {
        "model": f1(np.zeros_like(right)),
        "dictionary": f1(np.ones_like(right)),
        "gate": f1(chances >= np.array([of_fold[fold] for fold in folds.tolist()])),
        "oracle": f1(right),
    }
    weights, every = Weights.fitted(of_dev.features, right), np.ones_like(right)
    return Fit(weights, threshold(every), len(right), int(right.sum()), dev_f1)


def gated_spans(
    fitted: Fit,
    examples: Sequence[Example],
    dictionary: Sequence[Sequence[SpanKey]],
    scores: TagScores,
    record: Record,
) -> list[Spans]:
    """Write the spans that pass a gate over a model's predictions; arguments as in ``fit_gate``."""
    found, texts = found_by(scores), [example.sentences[0] for example in examples]
    described = judged(texts, dictionary, scores, found, record)
    return written_over(found, described.written(len(texts), fitted.chosen(described)))


def found_by(scores: TagScores) -> list[Spans]:
    """Return the spans that a model predicts, decoded from its scores."""
    return guided_spans(scores, [[] for _ in scores.sizes], 0.0)


def _check(right: np.ndarray, folds: np.ndarray) -> None:
    if not len(right):
        raise DataError(
            "The graph gives no label to any name in dev, so a gate has nothing to learn from. "
            "Use a graph that fits these texts; `kbert audit` shows what it finds."
        )
    count, all_right = len(right), int(right.sum())
    if all_right in (0, count):
        said = "right" if all_right else "wrong"
        raise DataError(
            f"All {count} names that the graph finds in dev are {said}. A gate needs both kinds, "
            "right and wrong. Fit the gate on more texts."
        )
    for fold in np.unique(folds):
        if len(set(right[folds != fold].tolist())) < 2:
            raise DataError(
                f"Of the {count} names that the graph finds in dev {all_right} are right. They "
                "are in too few texts for cross-validation. Fit the gate on more texts."
            )


def oracle(examples: Sequence[Example], dictionary: Sequence[Sequence[SpanKey]]) -> list[Spans]:
    """Return for each text the dictionary's spans that are gold: those of a perfect judge."""
    pairs = zip(examples, dictionary, strict=True)
    return [[span for span in spans if span in example.spans] for example, spans in pairs]
