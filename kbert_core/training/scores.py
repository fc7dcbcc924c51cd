"""Scores of predictions against gold labels."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import comb
from typing import Any

from kbert_core.labels import order

SpanKey = tuple[int, int, str]


@dataclass(frozen=True)
class Counts:
    """Precision, recall and F1 from counts."""

    right: int  # spans with the right borders and type
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
        return asdict(self) | {name: getattr(self, name) for name in ("precision", "recall", "f1")}


def span_scores(
    gold: Sequence[Iterable[SpanKey]], predicted: Sequence[Iterable[SpanKey]]
) -> dict[str, Any]:
    """Typed exact-span scores, over all spans (micro) and ``by_label``, as ``Counts`` has them.

    Args:
        gold, predicted: per text its (start, end, label) spans.
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
    scores = span_scores(*([[(0, 0, label)] for label in side] for side in (gold, predicted)))
    by_label = scores["by_label"]
    return {
        "accuracy": scores["right"] / len(gold) if gold else 0.0,
        "macro_f1": sum(c["f1"] for c in by_label.values()) / len(by_label) if by_label else 0.0,
        "count": len(gold),
        "by_label": by_label,
    }


def pair_scores(
    gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]
) -> dict[str, Any]:
    """Scores of sentence pairs, as :func:`class_scores`, and ``f1``.

    It is of a model with two labels that of the positive one ("1", else the
    last in order), of one with more the macro F1.
    """
    scores = class_scores(gold, predicted)
    if len(labels) != 2:
        return {**scores, "f1": scores["macro_f1"]}
    positive = "1" if "1" in labels else max(labels)
    return {
        **scores,
        "f1": scores["by_label"].get(positive, {"f1": 0.0})["f1"],
        "positive": positive,
    }


def ranking_scores(
    questions: Sequence[str], right: Sequence[bool], scores: Sequence[float]
) -> dict[str, Any]:
    """Mean reciprocal rank and precision at 1 of ranked answers.

    Candidates of a question are ranked by score, equal ones in their order.
    A question's reciprocal rank is that of its first right answer. Questions
    without a right answer can't be scored and are left out, as is usual.

    Args:
        questions, right, scores: per candidate, which question it belongs to,
            whether it answers, and its score; the highest is ranked first.

    Returns:
        ``mrr``, ``p_at_1``; ``chance_mrr`` of a random order and ``order_mrr``
        of the order given; how many ``questions`` and ``candidates`` were
        scored, and questions ``without_answer`` left out.
    """
    groups: dict[str, list[tuple[bool, float]]] = {}
    for question, answers, score in zip(questions, right, scores, strict=True):
        groups.setdefault(question, []).append((answers, score))
    scored = [group for group in groups.values() if any(answers for answers, _ in group)]
    ranks, given = [], []
    for group in scored:
        places = order([score for _, score in group])
        ranks.append(1 + next(i for i, number in enumerate(places) if group[number][0]))
        given.append(1 + next(i for i, (answers, _) in enumerate(group) if answers))
    chances = [_chance(len(group), sum(answers for answers, _ in group)) for group in scored]
    count = max(1, len(scored))
    return {
        "mrr": sum(1 / rank for rank in ranks) / count,
        "p_at_1": sum(rank == 1 for rank in ranks) / count,
        "chance_mrr": sum(chances) / count,
        "order_mrr": sum(1 / rank for rank in given) / count,
        "questions": len(scored),
        "without_answer": len(groups) - len(scored),
        "candidates": sum(map(len, scored)),
    }


def shared_characters(question: str, answer: str) -> float:
    """The share of a question's pairs of neighbouring characters that an answer holds.

    What a model that reads has to beat. White space and case don't count.
    """
    asked, held = (set(pairwise("".join(text.split()).casefold())) for text in (question, answer))
    return len(asked & held) / max(1, len(asked))


def _chance(candidates: int, right: int) -> float:
    """Expected reciprocal rank of the first right answer in a random order."""
    ways = comb(candidates, right)
    return sum(
        comb(candidates - rank, right - 1) / ways / rank
        for rank in range(1, candidates - right + 2)
    )


def unseen_recall(
    texts: Sequence[str],
    gold: Sequence[Iterable[SpanKey]],
    predicted: Sequence[Iterable[SpanKey]],
    seen: set[str],
) -> dict[str, float]:
    """Recall on gold spans whose surface form is not among those seen in training labels."""
    right = count = 0
    for text, gold_spans, predicted_spans in zip(texts, gold, predicted, strict=True):
        found = set(predicted_spans)
        unseen = [s for s in gold_spans if text[s[0] : s[1]] not in seen]
        count += len(unseen)
        right += sum(span in found for span in unseen)
    return {"recall": right / count if count else 0.0, "gold": count, "right": right}
