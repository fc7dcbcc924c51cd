"""Scores of several readings of the same labelled texts, and how sure their differences are."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from kbert_core.data.labelled import Example
from kbert_core.drawing import BLUE, INK, drawing, tidy
from kbert_core.experiments.counts import sentence_counts
from kbert_core.experiments.file_rows import Answer
from kbert_core.experiments.statistics import (
    METRICS,
    Counts,
    Difference,
    Resampled,
    Score,
)
from kbert_core.explain.tables import frame
from kbert_core.labels import RIGHT
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_core.training.scores import class_scores, pair_scores, ranking_scores, span_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

RESAMPLES = 2000
SEED = 0


@dataclass(frozen=True)
class FileScores:
    """Scores of several ways of reading the same texts.

    Attributes:
        metric: the one that is compared: F1, accuracy or MRR.
        texts: how many.
        all_scores: by way, as ``kbert evaluate`` gives them.
        main: by way the metric with 95 % of the resamples of the texts; a
            way is missing where there was nothing to count.
        differences: (way, earlier way) → the first minus the second, paired
            over the texts.
    """

    metric: str
    texts: int
    all_scores: Mapping[str, Mapping[str, Any]]
    main: Mapping[str, Score]
    differences: Mapping[tuple[str, str], Difference]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        return {
            "metric": self.metric,
            "texts": self.texts,
            "ways": {
                way: {
                    "scores": dict(scores),
                    "low": self.main[way].low if way in self.main else None,
                    "high": self.main[way].high if way in self.main else None,
                }
                for way, scores in self.all_scores.items()
            },
            "differences": [
                {"of": one, "minus": other, **_plain(difference)}
                for (one, other), difference in self.differences.items()
            ],
        }

    def to_frame(self) -> "DataFrame":
        """A row a way."""
        rows = [
            {"way": way, self.metric: score.mean, "low": score.low, "high": score.high}
            for way, score in self.main.items()
        ]
        return frame(rows, ("way", self.metric, "low", "high"))

    def figure(self) -> "Figure":
        """Draw a point a way, with the interval as a line."""
        with drawing(6.4, 1.2 + 0.42 * max(1, len(self.main))) as figure:
            panel = figure.subplots()
            for place, score in enumerate(self.main.values()):
                low, high = 100 * score.low, 100 * score.high
                panel.plot([low, high], [place, place], color=INK, linewidth=1.6)
                panel.plot(100 * score.mean, place, "o", color=BLUE, markersize=8)
                panel.annotate(
                    f"{100 * score.mean:.1f}",
                    (100 * score.mean, place),
                    xytext=(0, 8),
                    textcoords="offset points",
                    ha="center",
                    fontsize=9,
                )
            panel.set_yticks(range(len(self.main)), list(self.main))
            panel.invert_yaxis()
            panel.margins(x=0.1, y=0.4)
            panel.set_xlabel(f"{self.metric}, %; line: 95 % of resampled texts")
            tidy(panel, "x")
        return figure


def score_ways(
    task: str,
    labels: Sequence[str],
    examples: Sequence[Example],
    answers: Mapping[str, Sequence[Answer]],
) -> FileScores:
    """Score several ways of reading the same texts beside each other.

    Args:
        task: "ner", "classify", "pair" or "rank".
        labels: the model's.
        answers: by way, one for every example; the way to compare with first.
    """
    metric = METRICS[task][0]
    said = {way: _said(task, examples, own) for way, own in answers.items()}
    counts = {
        way: {0: Counts(**sentence_counts(task, examples, own, set(), NO_KNOWLEDGE))}
        for way, own in said.items()
    }
    drawn = Resampled(counts, resamples=RESAMPLES, seed=SEED)
    scores = {way: score for way in answers if (score := drawn.score(way, metric)) is not None}
    differences = {
        (one, other): difference
        for other, one in combinations(scores, 2)
        if (difference := drawn.difference(one, other, metric)) is not None
    }
    return FileScores(
        metric.name,
        len(examples),
        {way: _scores(task, labels, examples, own) for way, own in said.items()},
        scores,
        differences,
    )


def _said(task: str, examples: Sequence[Example], answers: Sequence[Answer]) -> list[Any]:
    """Spans, labels, or how sure it is that a candidate answers: what scores are made of."""
    if task == "rank":  # of two labels, the log-odds of one are those of the other, negated
        pairs = zip(examples, answers, strict=True)
        return [a.score if e.label == RIGHT else -a.score for e, a in pairs]
    return [answer.spans if task == "ner" else answer.label for answer in answers]


def _scores(
    task: str, labels: Sequence[str], examples: Sequence[Example], said: Sequence[Any]
) -> dict[str, Any]:
    gold = [example.label or "" for example in examples]
    if task == "ner":
        return span_scores([example.spans for example in examples], said)
    if task == "rank":
        right = [example.label == RIGHT for example in examples]
        return ranking_scores([example.group for example in examples], right, said)
    return pair_scores(gold, said, labels) if task == "pair" else class_scores(gold, said)


def _plain(difference: Difference) -> dict[str, float]:
    names = ("mean", "low", "high", "p")
    return {name: value for name, value in asdict(difference).items() if name in names}
