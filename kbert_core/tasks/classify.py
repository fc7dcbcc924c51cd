"""One label for a sentence, or for a pair of sentences."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from transformers import AutoModelForSequenceClassification

from kbert_core.labels import Labels
from kbert_core.reader import Reading
from kbert_core.tasks.base import Task


@dataclass(frozen=True)
class ClassPrediction:
    """The label of a text.

    Attributes:
        label: the most probable.
        probabilities: of every label, summing to 1.
    """

    label: str
    probabilities: dict[str, float]


class Classify(Task):
    """Sentence classification."""

    name = "classify"
    title = "Sentence classification"
    auto_class: ClassVar[type] = AutoModelForSequenceClassification

    def decode(self, text: Reading, logits: Tensor, labels: Labels) -> ClassPrediction:
        """Softmax over the K labels."""
        named = dict(zip(labels.names, logits.float().softmax(-1).tolist(), strict=True))
        return ClassPrediction(max(named, key=lambda label: named[label]), named)


class Pair(Classify):
    """Sentence-pair classification."""

    name = "pair"
    title = "Sentence-pair classification"
    sentences = 2
