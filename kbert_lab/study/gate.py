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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, log1p
from typing import Annotated, Any, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict
from scipy.special import expit, logit

from kbert_core.errors import DataError
from kbert_core.labels import OUTSIDE
from kbert_lab.data.labelled import Example
from kbert_lab.study.dictionary import Spans, TagScores, guided_spans, written_over
from kbert_lab.training.scores import SpanKey, span_scores

FOLDS = 5
PENALTY = 1.0  # of squared weights
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


Names = dict[str, dict[str, tuple[int, int]]]  # label → name → (right, matches)
RECIPE = {"features": FEATURES, "folds": FOLDS, "penalty": PENALTY, "trust": TRUST}


@dataclass(frozen=True)
class Record:
    """How often a dictionary was right in the training set."""

    names: Names

    @classmethod
    def of(cls, examples: Sequence[Example], dictionary: Sequence[Sequence[SpanKey]]) -> Self:
        """Count its spans in labelled texts; right is one that is a gold span, type and all."""
        names: Names = {}
        for example, spans in zip(examples, dictionary, strict=True):
            gold = set(example.spans)
            for start, end, label in spans:
                name, of_label = example.sentences[0][start:end], names.setdefault(label, {})
                right, count = of_label.get(name, (0, 0))
                of_label[name] = right + ((start, end, label) in gold), count + 1
        return cls(names)

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
            kept[number] += [span] * keep
        return kept


@dataclass(frozen=True)
class Candidates:
    """Texts, the spans that a dictionary finds in them, and what a model says of their tokens."""

    examples: Sequence[Example]
    spans: Sequence[Sequence[SpanKey]]
    scores: TagScores

    @cached_property
    def found(self) -> list[Spans]:
        """The spans that the model predicts."""
        return found_by(self.scores)


def judged(candidates: Candidates, record: Record) -> Judged:
    """Describe each span of a dictionary by what the model thinks of it and train says of its name.

    A span whose borders aren't tokens', or whose label the model doesn't know, is left out.

    Args:
        record: how often the dictionary was right in train.
    """
    kept: list[tuple[int, SpanKey]] = []
    rows: list[list[float]] = []
    scores = candidates.scores
    tags = {name: index for index, name in enumerate(scores.names)}
    inside = [index for name, index in tags.items() if name.startswith("I-")]
    read = zip(
        candidates.examples, candidates.spans, candidates.found, scores.by_text(), strict=True
    )
    for number, (example, spans, of_model, of_text) in enumerate(read):
        own = of_text.scores
        goes_on = [*np.log(np.maximum(np.exp(own[:, inside]).sum(1), 1e-7)), LOWEST]
        for span in spans:
            if (tokens := of_text.tokens_of(span)) is None:
                continue
            (first, last), (start, end, label) = tokens, span
            spelled = own[first, tags[f"B-{label}"]]
            spelled += own[first + 1 : last, tags[f"I-{label}"]].sum()
            count, name, type_rate = record.of_name(example.sentences[0][start:end], label)
            rows.append(
                [
                    spelled / (last - first),
                    own[first:last, tags[OUTSIDE]].mean() if OUTSIDE in tags else LOWEST,
                    goes_on[first],
                    goes_on[last],
                    *_there(span, of_model),
                    log(end - start),
                    log1p(count),
                    logit(name),
                    logit(type_rate),
                ]
            )
            kept.append((number, span))
    return Judged(tuple(kept), np.array(rows).reshape(-1, len(FEATURES)))


def _there(span: SpanKey, found: Sequence[SpanKey]) -> list[float]:
    """Return what the model found at a span: one of four cases, or nothing."""
    start, end, _ = span
    over = [own for own in found if own[0] < end and start < own[1]]
    ways = [
        span in over,
        any(own[:2] == (start, end) for own in over),
        any(own[0] <= start and end <= own[1] for own in over),
        bool(over),
    ]
    return [float(way and not any(ways[:number])) for number, way in enumerate(ways)]


def _complete(features: dict[str, float]) -> dict[str, float]:
    if features.keys() != set(FEATURES):
        raise ValueError(f"{len(features)} features, expected the {len(FEATURES)} of this version")
    return features


class Fit(BaseModel):
    """A gate as it was fitted, and what cross-fitting says of it on dev."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    # the weights of FEATURES in their own units
    features: Annotated[dict[str, float], AfterValidator(_complete)]
    bias: float  # the weight of 1
    threshold: float  # the least probability of a span that is written
    matches: int  # how many of dev's spans were judged
    right: int  # of these
    # of the model, the dictionary written over it, the gate (each span judged by a classifier that
    # hasn't seen its fold, by a threshold chosen on the others) and the oracle
    dev_f1: dict[str, float]

    def probabilities(self, described: Judged) -> np.ndarray:
        """Return the probability of each span to be right: (M,)."""
        weights = np.array([self.features[name] for name in FEATURES])
        chances: np.ndarray = expit(described.features @ weights + self.bias)
        return chances

    def chosen(self, described: Judged) -> np.ndarray:
        """Return which spans are written: (M,) bool."""
        return self.probabilities(described) >= self.threshold


def regression() -> Any:
    """A logistic regression over standardised features, its weights penalised."""
    from sklearn.linear_model import LogisticRegression  # slow to start
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    exact = LogisticRegression(C=1 / PENALTY, solver="newton-cholesky", tol=1e-10)
    return make_pipeline(StandardScaler(), exact)


def weights_of(features: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, float]:
    """Fit the regression: the weights of features, (M, F), in their own units, and the bias."""
    scaler, fitted = (step for _, step in regression().fit(features, right).steps)
    weights = fitted.coef_[0] / scaler.scale_
    return weights, float(fitted.intercept_[0] - weights @ scaler.mean_)


def folds_of(texts: Sequence[str]) -> np.ndarray:
    """Return the fold of each span, (M,) int; equal texts get the same fold."""
    dealt: dict[str, int] = {}
    return np.array([dealt.setdefault(text, len(dealt) % FOLDS) for text in texts], dtype=int)


def cross_fitted(features: np.ndarray, right: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Judge each span by a regression fitted on the spans of all other folds: (M,).

    Args:
        features: (M, F).
        right: (M,) bool.
        folds: (M,) int.
    """
    from sklearn.model_selection import PredefinedSplit, cross_val_predict  # slow to start

    how = {"cv": PredefinedSplit(folds), "method": "predict_proba"}
    chances: np.ndarray = cross_val_predict(regression(), features, right, **how)[:, 1]
    return chances


def fit_gate(dev: Candidates, record: Record) -> Fit:
    """Fit a gate on dev.

    Args:
        record: of the training set.

    Raises:
        DataError: the dictionary finds nothing, or all that it finds is right, or wrong.
    """
    texts = [example.sentences[0] for example in dev.examples]
    gold = [example.spans for example in dev.examples]
    described = judged(dev, record)
    right = np.array([span in gold[number] for number, span in described.spans], dtype=bool)
    folds = folds_of([texts[number] for number, _ in described.spans])
    _check(right, folds)
    chances = cross_fitted(described.features, right, folds)

    def f1(chosen: np.ndarray) -> float:
        written = written_over(dev.found, described.written(len(texts), chosen))
        return round(float(span_scores(gold, written)["f1"]), 4)

    def threshold(among: np.ndarray) -> float:  # of equal ones the most careful
        return max(reversed(THRESHOLDS), key=lambda least: f1(among & (chances >= least)))

    every = np.ones_like(right)
    of_fold = {fold: threshold(folds != fold) for fold in np.unique(folds).tolist()}
    dev_f1 = {
        "model": f1(~every),
        "dictionary": f1(every),
        "gate": f1(chances >= np.array([of_fold[fold] for fold in folds.tolist()])),
        "oracle": f1(right),
    }
    weights, bias = weights_of(described.features, right)
    return Fit(
        features=dict(zip(FEATURES, weights.tolist(), strict=True)),
        bias=bias,
        threshold=threshold(every),
        matches=len(right),
        right=right.sum(),
        dev_f1=dev_f1,
    )


def gated_spans(fitted: Fit, candidates: Candidates, record: Record) -> list[Spans]:
    """Write the spans that pass a gate over a model's predictions."""
    described = judged(candidates, record)
    written = described.written(len(candidates.examples), fitted.chosen(described))
    return written_over(candidates.found, written)


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
