"""Scores of predictions against gold labels."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

SpanKey = tuple[int, int, str]


@dataclass(frozen=True)
class Counts:
    """Precision, recall and F1 from counts.

    Attributes:
        right: spans with the right borders and type.
        predicted, gold: all spans predicted, and all in the gold labels.
    """

    right: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        """Share of predicted spans that are right; 0 without any."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of gold spans that were found; 0 without any."""
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        both = self.predicted + self.gold
        return 2 * self.right / both if both else 0.0

    def as_dict(self) -> dict[str, float]:
        """Counts and scores, for JSON."""
        return {
            **asdict(self),
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
        }


def span_scores(
    gold: Sequence[Iterable[SpanKey]], predicted: Sequence[Iterable[SpanKey]]
) -> dict[str, Any]:
    """Typed exact-span scores, over all spans (micro) and by label.

    Args:
        gold, predicted: per text its (start, end, label) spans.

    Returns:
        ``precision, recall, f1, right, predicted, gold`` and ``by_label``.
    """
    right: Counter[str] = Counter()
    found: Counter[str] = Counter()
    wanted: Counter[str] = Counter()
    for gold_spans, predicted_spans in zip(gold, predicted, strict=True):
        gold_set, predicted_set = set(gold_spans), set(predicted_spans)
        wanted.update(label for _, _, label in gold_set)
        found.update(label for _, _, label in predicted_set)
        right.update(label for _, _, label in gold_set & predicted_set)
    labels = sorted(wanted | found)
    total = Counts(right.total(), found.total(), wanted.total())
    by_label = {la: Counts(right[la], found[la], wanted[la]).as_dict() for la in labels}
    return {**total.as_dict(), "by_label": by_label}


def class_scores(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, Any]:
    """Accuracy, macro F1, and precision, recall and F1 by label."""
    pairs = Counter(zip(gold, predicted, strict=True))
    labels = sorted(set(gold) | set(predicted))
    by_label = {}
    for label in labels:
        right = pairs[label, label]
        found = sum(n for (_, p), n in pairs.items() if p == label)
        wanted = sum(n for (g, _), n in pairs.items() if g == label)
        by_label[label] = Counts(right, found, wanted).as_dict()
    right = sum(pairs[label, label] for label in labels)
    return {
        "accuracy": right / len(gold) if gold else 0.0,
        "macro_f1": sum(c["f1"] for c in by_label.values()) / len(labels) if labels else 0.0,
        "count": len(gold),
        "by_label": by_label,
    }


def unseen_recall(
    texts: Sequence[str],
    gold: Sequence[Iterable[SpanKey]],
    predicted: Sequence[Iterable[SpanKey]],
    seen: set[str],
) -> dict[str, float]:
    """Recall on gold spans whose surface form stands in no training label.

    Args:
        texts: the sentences.
        gold, predicted: per text its spans.
        seen: surface forms labelled in the training set.
    """
    right = count = 0
    for text, gold_spans, predicted_spans in zip(texts, gold, predicted, strict=True):
        found = set(predicted_spans)
        unseen = [s for s in gold_spans if text[s[0] : s[1]] not in seen]
        count += len(unseen)
        right += sum(span in found for span in unseen)
    return {"recall": right / count if count else 0.0, "gold": count, "right": right}
