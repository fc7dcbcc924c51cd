"""Scores of one finished run, and what it did on every test sentence, as counts."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from kbert_core.data.labelled import Example
from kbert_core.experiments.counts import Spans, sentence_counts
from kbert_core.experiments.guided import TagScores
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_core.tasks.rank import probability_right
from kbert_core.training.edit_scores import edit_response
from kbert_core.training.evaluate import predict_all, scores_of, surface_forms
from kbert_core.training.finetune import Fitted
from kbert_core.training.scores import (
    release_scores,
    release_spans,
    span_scores,
    unseen_recall,
)


def score_run(
    fitted: Fitted, covering: KnowledgeGraph
) -> tuple[dict[str, Any], list[Any], dict[str, TagScores]]:
    """Score a fitted model on dev and test, each read once with and once without knowledge.

    Args:
        covering: graph that tells covered from uncovered mentions.

    Returns:
        What goes into the run's JSON; the predictions on test, for named
        entities (start, end, label) spans a sentence, else labels; and for
        named entities the scores of all tags, by split.
    """
    pipeline, splits = fitted.pipeline, fitted.splits
    assert pipeline.task is not None
    task = pipeline.task.name
    seen = surface_forms(splits["train"])
    result: dict[str, Any] = {"scores": {}, "without_knowledge": {}, "edit_response": {}}
    predictions: list[Any] = []
    tags: dict[str, TagScores] = {}
    for split in ("dev", "test"):
        examples = splits.get(split)
        if not examples:
            continue
        found = predict_all(pipeline, examples, fitted.graph)
        result["scores"][split] = scores_of(task, examples, found, seen=seen)
        if len(fitted.graph):
            off = predict_all(pipeline, examples, NO_KNOWLEDGE)
            result["without_knowledge"][split] = scores_of(task, examples, off, seen=seen)
            if fitted.type_labels:
                result["edit_response"][split] = edit_response(
                    pipeline, examples, fitted.graph, fitted.type_labels, seen=seen
                )
        if task == "ner":
            tags[split] = TagScores.of(found)
        if split == "test":
            predictions = _plain(task, found)
            result["sentences"] = sentence_counts(task, examples, predictions, seen, covering)
    return result, predictions, tags


def score_spans(
    examples: Sequence[Example], found: Spans, seen: set[str], covering: KnowledgeGraph
) -> dict[str, Any]:
    """The same for spans that come from no model of ours, and so begin on no injected token."""
    gold = [e.spans for e in examples]
    scores = span_scores(gold, found)
    scores |= {f"release_{name}": value for name, value in _release_scores(examples, found).items()}
    scores["unseen"] = unseen_recall([e.sentences[0] for e in examples], gold, found, seen)
    return {
        "scores": {"test": scores},
        "sentences": sentence_counts("ner", examples, found, seen, covering),
    }


def _release_scores(examples: Sequence[Example], found: Spans) -> dict[str, float]:
    """The released K-BERT's count of spans, whose ends it reads as the next token's start."""
    gold, predicted = [], []
    for example, spans in zip(examples, found, strict=True):
        starts = [start for start, _ in example.words]
        stops = [*starts, len(example.sentences[0])]
        gold.append(release_spans(starts, example.tags, stops[-1]))
        predicted.append([(start, stops[bisect_left(starts, end)]) for start, end, _ in spans])
    return release_scores(gold, predicted, [0] * len(examples))


def _plain(task: str, predictions: Sequence[Any]) -> list[Any]:
    if task == "ner":
        return [[(s.start, s.end, s.label) for s in p.spans] for p in predictions]
    if task == "rank":
        return [probability_right(p) for p in predictions]
    return [getattr(p, "label", None) for p in predictions]
