"""What a finished run gives: its scores, and what was right in every test sentence, as counts.

The counts are all that the statistics need, and hold no text: see
:mod:`kbert_core.experiments.statistics`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from kbert_core.data.labelled import Example
from kbert_core.experiments.dictionary import TagScores
from kbert_core.experiments.release_count import release_count, release_count_of_spans
from kbert_core.experiments.statistics import Counts
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.labels import RIGHT
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_core.tasks.classify import probability_right
from kbert_core.training.edit_scores import edit_response
from kbert_core.training.evaluate import predict_all, scores_of, surface_forms
from kbert_core.training.finetune import Fitted
from kbert_core.training.scores import SpanKey, ranking_scores, span_scores, unseen_recall

Spans = Sequence[Sequence[SpanKey]]


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
    task, seen = pipeline.task.name, surface_forms(splits["train"])
    result: dict[str, Any] = {"scores": {}, "without_knowledge": {}, "edit_response": {}}
    predictions: list[Any] = []
    tags: dict[str, TagScores] = {}

    def read(
        examples: Sequence[Example], graph: KnowledgeGraph
    ) -> tuple[list[Any], dict[str, Any]]:
        predicted = predict_all(pipeline, examples, graph)
        scores = scores_of(task, examples, predicted, seen=seen)
        if task == "ner":
            scores |= release_count(pipeline, examples, graph, predicted)
        return predicted, scores

    for split in ("dev", "test"):
        examples = splits.get(split)
        if not examples:
            continue
        predicted, result["scores"][split] = read(examples, fitted.graph)
        if len(fitted.graph):
            _, result["without_knowledge"][split] = read(examples, NO_KNOWLEDGE)
            if fitted.type_labels:
                result["edit_response"][split] = edit_response(
                    pipeline, examples, fitted.graph, fitted.type_labels, seen=seen
                )
        if task == "ner":
            tags[split] = TagScores.of(predicted)
        if split == "test":
            predictions = _plain(task, predicted)
            counts = sentence_counts(task, examples, predictions, seen, covering)
            result["sentences"] = packed(counts)
    return result, predictions, tags


def score_spans(
    examples: Sequence[Example], spans: Spans, seen: set[str], covering: KnowledgeGraph
) -> dict[str, Any]:
    """The same for spans that come from no model of ours, and so begin on no injected token."""
    gold = [example.spans for example in examples]
    texts = [example.sentences[0] for example in examples]
    unseen = {"unseen": unseen_recall(texts, gold, spans, seen)}
    scores = span_scores(gold, spans) | release_count_of_spans(examples, spans) | unseen
    counts = sentence_counts("ner", examples, spans, seen, covering)
    return {"scores": {"test": scores}, "sentences": packed(counts)}


def _plain(task: str, predictions: Sequence[Any]) -> list[Any]:
    if task == "ner":
        return [[(s.start, s.end, s.label) for s in p.spans] for p in predictions]
    if task == "rank":
        return [probability_right(p) for p in predictions]
    return [getattr(p, "label", None) for p in predictions]


# Counts


def sentence_counts(
    task: str,
    examples: Sequence[Example],
    predictions: Sequence[Any],
    seen: set[str],
    covering: KnowledgeGraph,
) -> Counts:
    """What was right in every sentence; of answer selection, in every question with an answer.

    Args:
        predictions: spans, labels or chances, as ``score_run`` returns them.
        seen: surface forms labelled in training.
        covering: an unseen mention is covered if it is a head of this graph.
    """
    if task == "rank":
        return _question_counts(examples, predictions)
    ids = [_id(example.sentences) for example in examples]
    if task == "ner":
        return Counts(ids, _span_columns(examples, predictions, seen, covering))
    pairs = [(e.label, label) for e, label in zip(examples, predictions, strict=True)]
    columns = {"right": [int(g == label) for g, label in pairs], "count": [1] * len(pairs)}
    labels = {gold for gold, _ in pairs if gold is not None}
    if task == "pair" and len(labels) == 2:
        positive = RIGHT if RIGHT in labels else max(labels)
        columns["positive"] = [int(gold == positive) for gold, _ in pairs]
        columns["positive_predicted"] = [int(label == positive) for _, label in pairs]
        columns["positive_right"] = [int(gold == label == positive) for gold, label in pairs]
    return Counts(ids, columns)


def _question_counts(examples: Sequence[Example], chances: Sequence[float]) -> Counts:
    questions: dict[str, list[tuple[Example, float]]] = {}
    for example, chance in zip(examples, chances, strict=True):
        questions.setdefault(example.group, []).append((example, chance))
    ids: list[str] = []
    columns: dict[str, list[float]] = {"reciprocal": [], "first": [], "count": []}
    for rows in questions.values():
        right = [example.label == RIGHT for example, _ in rows]
        scores = ranking_scores([""] * len(rows), right, [chance for _, chance in rows])
        if any(right):
            ids.append(_id([text for example, _ in rows for text in example.sentences]))
            for name, value in zip(columns, (scores["mrr"], int(scores["p_at_1"]), 1), strict=True):
                columns[name].append(value)
    return Counts(ids, columns)


def _span_columns(
    examples: Sequence[Example], predictions: Spans, seen: set[str], covering: KnowledgeGraph
) -> dict[str, list[int]]:
    is_head = cache(lambda name: bool(covering.triples_of(name)))
    names = ("right", "predicted", "gold", "unseen", "unseen_right", "covered", "covered_right")
    columns: dict[str, list[int]] = {name: [] for name in names}
    for example, spans in zip(examples, predictions, strict=True):
        text, gold, predicted = example.sentences[0], set(example.spans), set(spans)
        unseen = {s for s in gold if text[s[0] : s[1]] not in seen}
        known = {s for s in unseen if is_head(text[s[0] : s[1]])}
        sets = (gold & predicted, predicted, gold, unseen, unseen & predicted)
        for name, group in zip(names, (*sets, known, known & predicted), strict=True):
            columns[name].append(len(group))
    return columns


def _id(texts: Sequence[str]) -> str:
    """Eight hexadecimal digits of a hash, the same wherever a sentence stands."""
    return hashlib.sha256("\t".join(texts).encode()).hexdigest()[:8]


def packed(counts: Counts) -> dict[str, Any]:
    """Columns as one short line each, for JSON."""
    columns = {n: " ".join(f"{v:.6g}" for v in column) for n, column in counts.columns.items()}
    return {"ids": " ".join(counts.ids), "columns": columns}


def unpacked(sentences: Mapping[str, Any], data: str = "") -> Counts:
    """The counts again; undoes :func:`packed`.

    Args:
        data: hash of the split.
    """
    columns = {n: [float(v) for v in line.split()] for n, line in sentences["columns"].items()}
    return Counts(sentences["ids"].split(), columns, data)
