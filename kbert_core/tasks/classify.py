"""One label for a sentence, or for a pair of sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from transformers import AutoModelForSequenceClassification

from kbert_core.kbert.flat_tree import FlatTree
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

    def decode(
        self, rows: Sequence[FlatTree], logits: Sequence[Tensor], labels: Mapping[int, str]
    ) -> ClassPrediction:
        """Softmax over the K labels."""
        probabilities = logits[0].float().softmax(-1).tolist()
        named = {labels[i]: p for i, p in enumerate(probabilities)}
        return ClassPrediction(max(named, key=lambda label: named[label]), named)


class Pair(Classify):
    """Sentence-pair classification."""

    name = "pair"
    title = "Sentence-pair classification"
    sentences = 2
