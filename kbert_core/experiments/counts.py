"""What a finished run gives: its scores, and what was right in every test sentence, as counts.

The counts are all that the statistics need, and hold no text: see
:mod:`kbert_core.experiments.statistics`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from kbert_core.data.labelled import Example
from kbert_core.experiments.dictionary import TagScores
from kbert_core.experiments.release import release_count, release_count_of_spans
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.labels import RIGHT, order
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_core.tasks.rank import probability_right
from kbert_core.training.edit_scores import edit_response
from kbert_core.training.evaluate import predict_all, scores_of, surface_forms
from kbert_core.training.finetune import Fitted
from kbert_core.training.scores import SpanKey, span_scores, unseen_recall

Columns = dict[str, list[float]]
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


# Counts


def sentence_counts(
    task: str,
    examples: Sequence[Example],
    found: Sequence[Any],
    seen: set[str],
    covering: KnowledgeGraph,
) -> dict[str, Any]:
    """What was right in every sentence, as columns of whole numbers.

    Args:
        found: spans or labels, as ``scoring.score_run`` returns them.
        seen: surface forms labelled in training.
        covering: an unseen mention is covered if it is a head of this graph.

    Returns:
        ``ids``: a short hash of every sentence, to pair it over runs and
        seeds; and columns, one number a sentence.
    """
    if task == "rank":
        return _question_counts(examples, found)
    columns: Columns = {}
    if task == "ner":
        columns = _ner_columns(examples, found, seen, covering)
    elif task in ("classify", "pair"):
        gold = [e.label for e in examples]
        columns = {
            "right": [int(g == label) for g, label in zip(gold, found, strict=True)],
            "count": [1] * len(examples),
        }
        labels = {label for label in gold if label is not None}
        if task == "pair" and len(labels) == 2:
            positive = RIGHT if RIGHT in labels else max(labels)
            columns |= {
                "positive": [int(g == positive) for g in gold],
                "positive_predicted": [int(label == positive) for label in found],
                "positive_right": [
                    int(g == positive == label) for g, label in zip(gold, found, strict=True)
                ],
            }
    return {"ids": [_id("\t".join(e.sentences)) for e in examples], "columns": columns}


def _question_counts(examples: Sequence[Example], chances: Sequence[float]) -> dict[str, Any]:
    """Per question that has an answer: 1 / the rank of its first, as ``ranking_scores``."""
    groups: dict[str, list[int]] = {}
    for number, example in enumerate(examples):
        groups.setdefault(example.group, []).append(number)
    columns: Columns = {"reciprocal": [], "first": [], "count": []}
    ids = []
    for numbers in groups.values():
        right = [examples[number].label == RIGHT for number in numbers]
        if not any(right):
            continue
        places = order([chances[number] for number in numbers])
        rank = 1 + next(i for i, place in enumerate(places) if right[place])
        ids.append(_id("\t".join(text for n in numbers for text in examples[n].sentences)))
        for name, value in (("reciprocal", 1 / rank), ("first", int(rank == 1)), ("count", 1)):
            columns[name].append(value)
    return {"ids": ids, "columns": columns}


def _ner_columns(
    examples: Sequence[Example], found: Spans, seen: set[str], covering: KnowledgeGraph
) -> Columns:
    names = ("right", "predicted", "gold", "unseen", "unseen_right", "covered", "covered_right")
    columns: Columns = {name: [] for name in names}
    covered = _Memo(covering)
    for example, spans in zip(examples, found, strict=True):
        text, gold, predicted = example.sentences[0], set(example.spans), set(spans)
        unseen = {s for s in gold if text[s[0] : s[1]] not in seen}
        known = {s for s in unseen if covered[text[s[0] : s[1]]]}
        sets = (gold & predicted, predicted, gold, unseen, unseen & predicted)
        for name, group in zip(names, (*sets, known, known & predicted), strict=True):
            columns[name].append(len(group))
    return columns


class _Memo(dict[str, bool]):
    """Whether a graph has triples of a name, looked up once."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        super().__init__()
        self._graph = graph

    def __missing__(self, name: str) -> bool:
        self[name] = bool(self._graph.triples_of(name))
        return self[name]


def _id(text: str) -> str:
    """Eight hexadecimal digits of a text's hash."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def packed(sentences: Mapping[str, Any]) -> dict[str, Any]:
    """Columns as one short line each, for JSON."""
    columns = {
        name: " ".join(f"{number:.6g}" for number in column)
        for name, column in sentences["columns"].items()
    }
    return {"ids": " ".join(sentences["ids"]), "columns": columns}


def unpacked(sentences: Mapping[str, Any]) -> dict[str, Any]:
    """The columns again; undoes :func:`packed`."""
    columns = {name: [float(n) for n in c.split()] for name, c in sentences["columns"].items()}
    return {"ids": sentences["ids"].split(), "columns": columns}
