"""The released K-BERT's own count of named entities, to compare published figures with.

It takes the likeliest tag of each token, and looks at borders alone, whatever
the type. Its precision also divides by the entities begun on injected tokens,
for which the release trains a label of their own and this training doesn't,
so ``trunk_f1`` is the fairer figure. Two things differ: the release cuts a
text at its length limit and drops what is gold there, and it lets an entity
that a text ends with run on over what it predicts on padding.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

from kbert_core.data.labelled import Example
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.labels import OUTSIDE, begins
from kbert_core.pipeline import Pipeline
from kbert_core.tasks.ner import NerPrediction
from kbert_core.training.scores import SpanKey, precision_recall

PADDING = "[PAD]"  # a label of checkpoints trained with the release
TEXTS_AT_ONCE = 256
Borders = tuple[int, int]


def release_count(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    predictions: Sequence[NerPrediction],
    **reading: Any,
) -> dict[str, float]:
    """Count a model's entities as the release does (run_kbert_ner.py).

    Args:
        predictions: of the examples, read with the graph.
        reading: ``config`` and its fields, as for a call of the pipeline.

    Returns:
        As :func:`release_scores`, each name with ``release_`` before it.
    """
    predicted = []
    for example, prediction in zip(examples, predictions, strict=True):
        tags = [max(t.probabilities, key=lambda p: t.probabilities[p]) for t in prediction.tokens]
        starts = [token.start for token in prediction.tokens]
        predicted.append(release_spans(starts, tags, len(example.sentences[0])))
    return _named(examples, predicted, branch_begins(pipeline, examples, graph, **reading))


def release_count_of_spans(
    examples: Sequence[Example], predicted: Sequence[Iterable[SpanKey]]
) -> dict[str, float]:
    """The same of spans that come from no model, whose ends are read as the next token's start."""
    read = []
    for example, spans in zip(examples, predicted, strict=True):
        starts = [start for start, _ in example.words]
        stops = [*starts, len(example.sentences[0])]
        read.append([(start, stops[bisect_left(starts, end)]) for start, end, _ in spans])
    return _named(examples, read, [0] * len(examples))


def _named(
    examples: Sequence[Example], predicted: Sequence[Iterable[Borders]], begun: Sequence[int]
) -> dict[str, float]:
    gold = [
        release_spans([start for start, _ in e.words], e.tags, len(e.sentences[0]))
        for e in examples
    ]
    scores = release_scores(gold, predicted, begun)
    return {f"release_{name}": value for name, value in scores.items()}


def release_spans(starts: Sequence[int], tags: Sequence[str], end: int) -> list[Borders]:
    """Read entities off tags as the release's evaluation does.

    An entity goes from a tag that begins one to the next O, the next tag that
    begins one, or the end; an I- of another type goes on with it.

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
    gold: Sequence[Iterable[Borders]],
    predicted: Sequence[Iterable[Borders]],
    branch_begins: Sequence[int],
) -> dict[str, float]:
    """Score spans as the release does.

    Args:
        gold, predicted: per text its spans, see :func:`release_spans`.
        branch_begins: per text the tokens of branches predicted to begin an entity.

    Returns:
        ``precision, recall, f1, right, predicted, gold``; ``on_branches``:
        how many of those predicted are on branches; ``trunk_f1``: without these.
    """
    pairs = [(set(g), set(p)) for g, p in zip(gold, predicted, strict=True)]
    right = sum(len(g & p) for g, p in pairs)
    found, wanted = sum(len(p) for _, p in pairs), sum(len(g) for g, _ in pairs)
    on_branches = sum(branch_begins)
    return {
        **precision_recall(right, found + on_branches, wanted),
        "on_branches": on_branches,
        "trunk_f1": precision_recall(right, found, wanted)["f1"],
    }


def branch_begins(
    pipeline: Pipeline, examples: Sequence[Example], graph: KnowledgeGraph, **reading: Any
) -> list[int]:
    """Count per text the tokens of branches whose likeliest tag begins an entity.

    Tasks decode the tokens of the text alone, so the texts are read once more
    for this. A branch counts once where windows overlap.
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
                for placed in row.branches:
                    key = (placed.node, placed.branch.triple)
                    branches.setdefault(key, best[placed.start : placed.end])
            counts.append(sum(starting[tag] for tags in branches.values() for tag in tags))
    return counts
