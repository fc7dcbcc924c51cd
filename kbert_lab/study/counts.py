"""What a finished run gives: its scores, and what was right in every test sentence, as counts.

The counts are all that the statistics need, and hold no text: see
:mod:`kbert_lab.study.statistics`.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.labels import OUTSIDE, RIGHT, begins
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_core.tasks.classify import probability_right
from kbert_core.tasks.ner import NerPrediction
from kbert_lab.data.labelled import Example, surface_forms
from kbert_lab.study.dictionary import TagScores
from kbert_lab.study.statistics import Counts, packed
from kbert_lab.training.edits import edit_response
from kbert_lab.training.evaluate import BY_COLUMNS, predict_all, scores_of
from kbert_lab.training.finetune import Fitted
from kbert_lab.training.scores import (
    SpanKey,
    precision_recall,
    ranking_scores,
    span_scores,
    unseen_recall,
)

PADDING = "[PAD]"  # a label of checkpoints trained with the release
TEXTS_AT_ONCE = 256
Spans = Sequence[Sequence[SpanKey]]
Borders = tuple[int, int]


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
    pipeline, splits, graph = fitted.pipeline, fitted.splits, fitted.graph
    assert pipeline.task is not None
    task, seen = pipeline.task.name, surface_forms(splits["train"])
    result: dict[str, Any] = {"scores": {}, "without_knowledge": {}, "edit_response": {}}
    predictions: list[Any] = []
    tags: dict[str, TagScores] = {}

    def read(examples: Sequence[Example], graph: KnowledgeGraph) -> tuple[dict[str, Any], Any]:
        """Scores, and the columns or predictions that they are of."""
        if task in BY_COLUMNS:
            columns_of, scores_from = BY_COLUMNS[task]
            columns = columns_of(pipeline, examples, graph, splits["train"])
            return scores_from(columns), columns
        predicted = predict_all(pipeline, examples, graph)
        scores = scores_of(task, examples, predicted, seen=seen)
        if task == "ner":
            scores |= release_count(pipeline, examples, graph, predicted)
        return scores, predicted

    for split in (split for split in ("dev", "test") if splits.get(split)):
        examples = splits[split]
        result["scores"][split], predicted = read(examples, graph)
        if len(graph) and task != "link":
            result["without_knowledge"][split], _ = read(examples, NO_KNOWLEDGE)
            if types := fitted.type_labels:
                response = edit_response(pipeline, examples, graph, types, seen=seen)
                result["edit_response"][split] = response
        if task == "ner":
            tags[split] = TagScores.of(predicted)
        if split == "test" and task in BY_COLUMNS:
            result["sentences"] = packed_links(examples, predicted)
        elif split == "test":
            predictions = _plain(task, predicted)
            counts = sentence_counts(task, examples, predictions, seen, covering)
            result["sentences"] = packed(counts)
    return result, predictions, tags


def packed_links(
    examples: Sequence[Example], columns: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """The counts of entity linking or fill-mask, for JSON; see :func:`packed`."""
    return packed(Counts([_id(example.sentences) for example in examples], columns))


def score_spans(
    examples: Sequence[Example], spans: Spans, seen: set[str], covering: KnowledgeGraph
) -> dict[str, Any]:
    """Do the same for spans that don't come from a model of ours and have no injected tokens."""
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
        if any(right):
            scores = ranking_scores([""] * len(rows), right, [chance for _, chance in rows])
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
    """Return eight hexadecimal digits of a sentence's hash."""
    return hashlib.sha256("\t".join(texts).encode()).hexdigest()[:8]


# The release's own count


def release_count(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    predictions: Sequence[NerPrediction],
    **reading: Any,
) -> dict[str, float]:
    """Count a model's entities as the released K-BERT does (run_kbert_ner.py).

    The release takes the likeliest tag of each token, and compares borders but not
    types. Its precision also counts entities that begin on injected tokens. The
    release trains a label for these and this training doesn't, so ``trunk_f1`` is
    fairer. Two things differ: the release cuts gold entities beyond its length
    limit, and lets a last entity continue over predicted padding.

    Args:
        predictions: of the examples, read with the graph.
        reading: ``config`` and its fields, as for a call of the pipeline.

    Returns:
        As :func:`release_scores`.
    """
    predicted = []
    for example, prediction in zip(examples, predictions, strict=True):
        tags = [max(t.probabilities, key=lambda p: t.probabilities[p]) for t in prediction.tokens]
        starts = [token.start for token in prediction.tokens]
        predicted.append(release_spans(starts, tags, len(example.sentences[0])))
    return release_scores(examples, predicted, branch_begins(pipeline, examples, graph, **reading))


def release_count_of_spans(examples: Sequence[Example], predicted: Spans) -> dict[str, float]:
    """Do the same for spans without a model; their ends count as the next token's start."""
    read = []
    for example, spans in zip(examples, predicted, strict=True):
        starts = [start for start, _ in example.words]
        stops = [*starts, len(example.sentences[0])]
        read.append([(start, stops[bisect_left(starts, end)]) for start, end, _ in spans])
    return release_scores(examples, read, [])


def release_spans(starts: Sequence[int], tags: Sequence[str], end: int) -> list[Borders]:
    """Read entities off tags as the release's evaluation does.

    An entity begins with a tag that begins one. It ends before the next O or the next
    beginning, or with the text. An I- tag of another type continues it.

    Args:
        starts: where each token begins, in characters.
        tags: of these tokens.
        end: where the text ends.

    Returns:
        (start, start of the first token after it), in characters.
    """
    spans, after = [], end
    for start, tag in reversed(list(zip(starts, tags, strict=True))):
        if begins(tag):
            spans.append((start, after))
        if begins(tag) or tag in (OUTSIDE, PADDING):
            after = start
    return spans[::-1]


def release_scores(
    examples: Sequence[Example], predicted: Sequence[Iterable[Borders]], begun: Sequence[int]
) -> dict[str, float]:
    """Score spans as the release does.

    Args:
        predicted: per text its spans, see :func:`release_spans`.
        begun: per text the tokens of branches predicted to begin an entity.

    Returns:
        ``precision, recall, f1, right, predicted, gold``; ``on_branches``:
        how many of those predicted are on branches; ``trunk_f1``: without these.
        Each name has ``release_`` before it.
    """
    pairs = [
        ({*release_spans([start for start, _ in e.words], e.tags, len(e.sentences[0]))}, {*spans})
        for e, spans in zip(examples, predicted, strict=True)
    ]
    right = sum(len(gold & spans) for gold, spans in pairs)
    wanted, found = (sum(map(len, of)) for of in zip(*pairs, strict=True))
    scores = {
        **precision_recall(right, found + sum(begun), wanted),
        "on_branches": sum(begun),
        "trunk_f1": precision_recall(right, found, wanted)["f1"],
    }
    return {f"release_{name}": value for name, value in scores.items()}


def branch_begins(
    pipeline: Pipeline, examples: Sequence[Example], graph: KnowledgeGraph, **reading: Any
) -> list[int]:
    """Count per text the tokens of branches whose likeliest tag begins an entity.

    Tasks decode the tokens of the text alone, so the texts are read once more
    for this. A branch counts once where windows overlap. A system that writes
    no knowledge into the row has no such tokens.
    """
    if not len(graph):
        return [0] * len(examples)
    starting = [begins(pipeline.labels[i]) for i in range(len(pipeline.labels))]
    counts = []
    for first in range(0, len(examples), TEXTS_AT_ONCE):
        texts = [example.sentences for example in examples[first : first + TEXTS_AT_ONCE]]
        readings = pipeline.readings(texts, graph=graph, **reading)
        for own, logits in zip(readings, pipeline.reader.outputs(readings), strict=True):
            branches: dict[Any, list[int]] = {}  # the likeliest tags of its tokens
            for row, scores in zip(own.rows, logits, strict=True):
                best = scores.argmax(-1).tolist()
                for placed in getattr(row, "branches", ()):
                    key = (placed.node, placed.branch.triple)
                    branches.setdefault(key, best[placed.start : placed.end])
            counts.append(sum(starting[tag] for tags in branches.values() for tag in tags))
    return counts
