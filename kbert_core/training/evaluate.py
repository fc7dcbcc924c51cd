"""Scores of a model on labelled examples."""

import logging
import math
from collections.abc import Sequence
from typing import Any

import torch

from kbert_core.data.labelled import Example, check_labels
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.labels import IGNORED, RIGHT
from kbert_core.pipeline import Pipeline
from kbert_core.tasks.classify import probability_right
from kbert_core.training.rows import RowMaker, batch_of
from kbert_core.training.scores import (
    class_scores,
    pair_scores,
    ranking_scores,
    shared_characters,
    span_scores,
    unseen_recall,
)

EVALUATION_EPOCH = 1_000_000  # seeds the masks of held-out texts, apart from training's
MASKED_AT_ONCE = 16  # texts
HARDLY = 0.01  # of the rows
log = logging.getLogger(__name__)


def evaluate(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    *,
    seen: set[str] | None = None,
    **reading: Any,
) -> dict[str, Any]:
    """Score a model on labelled examples.

    Args:
        seen: surface forms labelled in training, to report recall on unseen
            ones; named entities only.
        reading: ``config``, its fields and ``batch_size``, as for
            :meth:`Pipeline.read`.

    Returns:
        For named entities ``span_scores``; for classification ``class_scores``;
        for pairs ``pair_scores``; for answer selection ``ranking_scores``, and as
        ``overlap_mrr`` that of an order by ``shared_characters``; for
        fill-mask loss (nats), perplexity and accuracy.

    Raises:
        DataError: a label that the model doesn't know.
    """
    assert pipeline.task is not None
    if pipeline.task.name == "mask":
        return _mask_scores(pipeline, examples, graph, **reading)
    predictions = predict_all(pipeline, examples, graph, **reading)
    return scores_of(pipeline.task.name, examples, predictions, seen=seen)


def predict_all(
    pipeline: Pipeline, examples: Sequence[Example], graph: KnowledgeGraph, **kwargs: Any
) -> list[Any]:
    """Predict each labelled example as ``Pipeline.predict`` does.

    Raises:
        DataError: a label that the model doesn't know.
    """
    check_labels(examples, list(pipeline.labels.values()), "the model")
    return list(pipeline.predict((e.sentences for e in examples), graph=graph, **kwargs))


def scores_of(
    task: str,
    examples: Sequence[Example],
    predictions: Sequence[Any],
    *,
    seen: set[str] | None = None,
) -> dict[str, Any]:
    """Score predictions made elsewhere; see :func:`evaluate`."""
    if task == "rank":
        questions, right = [e.group for e in examples], [e.label == RIGHT for e in examples]
        shared = [shared_characters(*e.sentences) for e in examples]
        return {
            **ranking_scores(questions, right, [probability_right(p) for p in predictions]),
            "overlap_mrr": ranking_scores(questions, right, shared)["mrr"],
        }
    if task == "pair":
        labels = list(predictions[0].probabilities) if predictions else []
        return pair_scores(
            [e.label or "" for e in examples], [p.label for p in predictions], labels
        )
    if task != "ner":
        return class_scores([e.label or "" for e in examples], [p.label for p in predictions])
    gold = [e.spans for e in examples]
    found = [[(s.start, s.end, s.label) for s in p.spans] for p in predictions]
    scores = span_scores(gold, found)
    if seen is not None:
        texts = [e.sentences[0] for e in examples]
        scores["unseen"] = unseen_recall(texts, gold, found, seen)
    return scores


def surface_forms(examples: Sequence[Example]) -> set[str]:
    """Every entity name labelled in a data set, as it stands in the texts."""
    return {e.sentences[0][start:end] for e in examples for start, end, _ in e.spans}


def tell_of_matches(used: Sequence[bool], what: str, *, relations: bool = False) -> None:
    """Log in what share of some rows a graph injects something (``used``); warn of hardly any."""
    rows = sum(used)
    share = f"{rows:,} of {len(used):,} rows of {what} ({rows / max(1, len(used)):.1%})"
    if rows < HARDLY * len(used):
        log.warning(
            "the graph injects something into %s, so knowledge can change hardly anything. See "
            "that text and graph are in one language and script%s; `kbert audit` shows more.",
            *(share, ", and that --relations names some it has" if relations else ""),
        )
    else:
        log.info("the graph injects something into %s", share)


def _mask_scores(
    pipeline: Pipeline, examples: Sequence[Example], graph: KnowledgeGraph, **reading: Any
) -> dict[str, Any]:
    assert pipeline.task is not None
    reader, size = pipeline.reader, reading.pop("batch_size", MASKED_AT_ONCE)
    config = reader.configured(**reading)
    maker = RowMaker(examples, pipeline.task, reader, {}, graph, config)
    total, right, count = 0.0, 0, 0
    for start in range(0, len(examples), size):
        numbers = range(len(examples))[start : start + size]
        rows = [row for rows in maker.rows(numbers, EVALUATION_EPOCH) for row in rows]
        batch, labels = batch_of(rows, reader, config)
        with torch.inference_mode():
            logits = reader.forward(batch, config)["logits"].float().cpu()
            total += pipeline.task.loss(logits, labels).item()
        chosen = labels != IGNORED
        right += int((logits[chosen].argmax(-1) == labels[chosen]).sum())
        count += int(chosen.sum())
    loss = total / max(1, count)
    accuracy = right / max(1, count)
    return {"loss": loss, "perplexity": math.exp(loss), "accuracy": accuracy, "count": count}
