"""Scores of one finished run, and what it did on every test sentence, as counts."""

from collections.abc import Sequence
from typing import Any

from kbert_core.data.labelled import Example
from kbert_core.experiments.counts import Spans, sentence_counts
from kbert_core.experiments.dictionary import TagScores
from kbert_core.experiments.release import release_count, release_count_of_spans
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_core.tasks.rank import probability_right
from kbert_core.training.edit_scores import edit_response
from kbert_core.training.evaluate import predict_all, scores_of, surface_forms
from kbert_core.training.finetune import Fitted
from kbert_core.training.scores import (
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
        result["scores"][split] = _scores(fitted, examples, fitted.graph, found, seen)
        if len(fitted.graph):
            off = predict_all(pipeline, examples, NO_KNOWLEDGE)
            result["without_knowledge"][split] = _scores(fitted, examples, NO_KNOWLEDGE, off, seen)
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
    scores |= release_count_of_spans(examples, found)
    scores["unseen"] = unseen_recall([e.sentences[0] for e in examples], gold, found, seen)
    return {
        "scores": {"test": scores},
        "sentences": sentence_counts("ner", examples, found, seen, covering),
    }


def _scores(
    fitted: Fitted,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    predictions: Sequence[Any],
    seen: set[str],
) -> dict[str, Any]:
    assert fitted.pipeline.task is not None
    task = fitted.pipeline.task.name
    scores = scores_of(task, examples, predictions, seen=seen)
    if task == "ner":
        scores |= release_count(fitted.pipeline, examples, graph, predictions)
    return scores


def _plain(task: str, predictions: Sequence[Any]) -> list[Any]:
    if task == "ner":
        return [[(s.start, s.end, s.label) for s in p.spans] for p in predictions]
    if task == "rank":
        return [probability_right(p) for p in predictions]
    return [getattr(p, "label", None) for p in predictions]
