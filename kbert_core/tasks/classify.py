"""One label for a sentence or a pair, or several; which of several sentences answers a question."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification

from kbert_core.errors import CheckpointError, OptionError
from kbert_core.labels import RIGHT, Labels, order
from kbert_core.reader import Reading
from kbert_core.tasks.base import Task


@dataclass(frozen=True)
class ClassPrediction:
    """The most probable label of a text, and the probabilities of all, summing to 1."""

    label: str
    probabilities: dict[str, float]

    def _repr_html_(self) -> str:
        from kbert_core.markup import table

        ordered = sorted(self.probabilities.items(), key=lambda own: -own[1])
        return table(("label", "probability"), ordered)


class Classify(Task):
    """Sentence classification."""

    name = "classify"
    title = "Sentence classification"
    auto_class: ClassVar[type] = AutoModelForSequenceClassification

    def decode(self, text: Reading, logits: Tensor, labels: Labels) -> ClassPrediction:
        """Softmax over the K labels."""
        named = dict(zip(labels.names, logits.float().softmax(-1).tolist(), strict=True))
        return ClassPrediction(max(named, key=lambda label: named[label]), named)


@dataclass(frozen=True)
class LabelsPrediction(ClassPrediction):
    """The labels of a text; ``label`` is the most probable, given or not.

    Attributes:
        probabilities: of each label by itself; they don't sum to 1.
        labels: those as probable as the task's threshold or more, in the model's order.
    """

    labels: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {"labels": list(self.labels), "probabilities": self.probabilities}


@dataclass(frozen=True)
class MultiLabel(Task):
    """Any number of labels for a sentence, each by itself.

    Args:
        threshold: the least probability of a label that is given.

    Raises:
        OptionError: the threshold is no probability.
    """

    name: ClassVar = "multilabel"
    title: ClassVar = "Several labels a text"
    auto_class: ClassVar[type] = AutoModelForSequenceClassification
    problem_type: ClassVar[Literal["multi_label_classification"]] = "multi_label_classification"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise OptionError(
                f"The threshold of labels is {self.threshold}, expected a probability, from 0 to 1."
            )

    def decode(self, text: Reading, logits: Tensor, labels: Labels) -> LabelsPrediction:
        """A sigmoid for each of the K labels."""
        named = dict(zip(labels.names, logits.float().sigmoid().tolist(), strict=True))
        given = tuple(label for label, p in named.items() if p >= self.threshold)
        return LabelsPrediction(max(named, key=lambda label: named[label]), named, given)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Sum up the binary cross entropy of every label, in nats.

        Args:
            logits: (B, K).
            targets: (B, K), 1 for a label that the text has, else 0.
        """
        return nn.functional.binary_cross_entropy_with_logits(
            logits.float(), targets.float(), reduction="sum"
        )


class Pair(Classify):
    """Sentence-pair classification."""

    name = "pair"
    title = "Sentence-pair classification"
    sentences = 2


@dataclass(frozen=True)
class RankedAnswer:
    """A candidate in its place.

    Attributes:
        rank: from 1.
        number: its place among the candidates given, from 0.
        probability: that it answers the question; those of several candidates don't sum to 1.
    """

    rank: int
    number: int
    answer: str
    probability: float


class Rank(Pair):
    """Answer selection: question and candidate as a pair, scored by P(label 1)."""

    name = "rank"
    title = "Answer selection"


def probability_right(prediction: ClassPrediction) -> float:
    """The probability that a candidate answers its question.

    Raises:
        CheckpointError: the model has no label 1.
    """
    if RIGHT not in prediction.probabilities:
        raise CheckpointError(
            f"The model has the labels {', '.join(prediction.probabilities)}, and answer selection "
            f"needs one named {RIGHT}. Train one with `kbert train --task rank`."
        )
    return prediction.probabilities[RIGHT]


def ranked(answers: Sequence[str], predictions: Sequence[ClassPrediction]) -> list[RankedAnswer]:
    """Put candidates into order by the prediction for each."""
    chances = [probability_right(prediction) for prediction in predictions]
    return [
        RankedAnswer(rank, number, answers[number], chances[number])
        for rank, number in enumerate(order(chances), start=1)
    ]
