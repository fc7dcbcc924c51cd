"""Scores of a model on labelled examples."""

import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch.nn.functional import cross_entropy

from kbert_core.knowbert.candidates import entity_span
from kbert_core.knowbert.knowbert import KnowBertReading
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.labels import IGNORED, RIGHT
from kbert_core.options import check_count
from kbert_core.pipeline import Pipeline
from kbert_core.reader import batch_done
from kbert_core.tasks.classify import probability_right
from kbert_lab.data.labelled import Example, GoldLink, check_labels, refuse_unlabelled
from kbert_lab.training.rows import RowMaker, answer_tokens, batch_of
from kbert_lab.training.scores import (
    ANSWER_COUNTS,
    MASK_COUNTS,
    Columns,
    class_scores,
    columns,
    count_links,
    multilabel_scores,
    pair_scores,
    ranking_scores,
    scores_of_answers,
    scores_of_links,
    scores_of_masks,
    shared_characters,
    span_scores,
    unseen_recall,
    word_f1,
    words_of,
)

HARDLY = 0.01  # of the rows
BATCH = 32  # texts that a pipeline reads at once where nothing else is said
TOLD_EVERY = 20.0  # seconds, while scoring takes long
EVALUATION_EPOCH = 1_000_000  # seeds the masks of held-out texts, apart from training's
AT_ONCE = 16  # texts
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
        ``span_scores``, ``class_scores``, ``multilabel_scores``, ``pair_scores`` or
        ``ranking_scores``, the last with ``overlap_mrr``, that of an order by
        ``shared_characters``; for entity linking, fill-mask and reading comprehension see
        ``scores_of_links``, ``scores_of_masks`` and ``scores_of_answers``.

    Raises:
        DataError: a label that the model doesn't know, or a text without labels.
    """
    assert pipeline.task is not None
    refuse_unlabelled(examples)
    if pipeline.task.name in BY_COLUMNS:
        columns_of, scores_from = BY_COLUMNS[pipeline.task.name]
        with progress_logged(len(examples)):
            return scores_from(columns_of(pipeline, examples, graph, **reading))
    predictions = predict_all(pipeline, examples, graph, **reading)
    return scores_of(pipeline.task.name, examples, predictions, seen=seen)


def predict_all(
    pipeline: Pipeline, examples: Sequence[Example], graph: KnowledgeGraph, **kwargs: Any
) -> list[Any]:
    """Predict each labelled example as ``Pipeline.predict`` does.

    Raises:
        DataError: a label that the model doesn't know.
    """
    refuse_unlabelled(examples)
    check_labels(examples, pipeline.known_labels, "the model")
    with progress_logged(len(examples)):
        return list(pipeline.predict((e.sentences for e in examples), graph=graph, **kwargs))


@contextmanager
def progress_logged(texts: int, what: str = "scoring") -> Iterator[None]:
    """Log now and then how many batches the model has read; a long text makes several rows."""
    read, before = 0, time.monotonic()

    def told() -> None:
        nonlocal read, before
        read += 1
        if (now := time.monotonic()) - before >= TOLD_EVERY:
            before = now
            log.info("%s: %d of about %d batches", what, read, -(-texts // BATCH))

    token = batch_done.set(told)
    try:
        yield
    finally:
        batch_done.reset(token)


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
    if task == "multilabel":
        return multilabel_scores([e.classes for e in examples], [p.labels for p in predictions])
    if task != "ner":
        labels = [e.label or "" for e in examples], [p.label for p in predictions]
        if task != "pair":
            return class_scores(*labels)
        return pair_scores(*labels, list(predictions[0].probabilities) if predictions else [])
    gold = [e.spans for e in examples]
    found = [[(s.start, s.end, s.label) for s in p.spans] for p in predictions]
    scores = span_scores(gold, found)
    if seen is not None:
        texts = [e.sentences[0] for e in examples]
        scores["unseen"] = unseen_recall(texts, gold, found, seen)
    return scores


def tell_of_matches(used: Sequence[bool], what: str, *, relations: bool = False) -> None:
    """Log in what share of some rows a graph injects something (``used``); warn of hardly any."""
    rows = sum(used)
    share = f"{rows:,} of {len(used):,} rows of {what} ({rows / max(1, len(used)):.1%})"
    if rows < HARDLY * len(used):
        log.warning(
            "the graph adds triples to only %s, so knowledge can change very little. Check that "
            "the text and the graph use the same language and script%s; `kbert audit` shows "
            "more.",
            *(share, ", and that the graph has the relations of --relations" if relations else ""),
        )
    else:
        log.info("the graph injects something into %s", share)


# Tasks whose scores are ratios of sums of counts


def link_columns(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    train: Sequence[Example] = (),
    *,
    batch_size: int = 32,
    **reading: Any,
) -> Columns:
    """Count per text what was right.

    A span whose label names candidates is judged among these alone, as word sense disambiguation
    is, and nothing else of its text counts. Else the links that the model finds by itself count,
    and those that mean nothing (NULL) are none.

    Args:
        train: what was trained on, to tell words that are new.

    Returns:
        ``right``, ``predicted``, ``gold``; of spans with candidates ``first_right`` and
        ``prior_right``: by the first candidate and by the highest prior; and of each slice how
        many there are and ``…_right``: where the first candidate is wrong, the word has no gold
        entity in training (``new``), and by part of speech.
    """
    readings = pipeline.readings([e.sentences for e in examples], graph=graph, **reading)
    given = [
        _given(cast(KnowBertReading, own), e.links, graph)
        for own, e in zip(readings, examples, strict=True)
    ]
    found = [
        {(own.start, own.end): own.entity for own in read.prediction.links}
        for read in pipeline.predicted(given, batch_size=batch_size)
    ]
    likeliest = [
        {own.place[2:]: own.candidates[0].entity for own in read.linked_spans if own.candidates}
        for read in given
    ]
    return count_links(examples, found, likeliest, train)


def _given(
    reading: KnowBertReading, links: Sequence[GoldLink], graph: KnowledgeGraph
) -> KnowBertReading:
    """Put the candidates that labels name into a reading, in place of those it has there."""
    config, number = reading.config, len(reading.config.bases) - 1
    how = graph, config.options, config.bases[number], number
    given = (
        entity_span((link.start, link.end), link.candidates, link.word, *how)
        for link in links
        if link.candidates
    )
    by_place = {own.place: own for own in (*reading.spans, *filter(None, given))}
    return reading.with_nodes(list(by_place.values()))


def mask_columns(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    train: Sequence[Example] = (),
    *,
    batch_size: int = AT_ONCE,
    **reading: Any,
) -> Columns:
    """Sum the scores of the hidden tokens of each text.

    If a text has masks with a label, these are hidden. Otherwise a share of its tokens is drawn
    at random, the same ones every time.

    Args:
        train: the training examples, to find out which fillings are new.

    Returns:
        ``loss`` in nats; ``reciprocal``, of the token's rank in the whole vocabulary; ``right``,
        how many have rank 1; ``count``; and ``new`` and ``new_reciprocal`` for texts whose
        filling is in no training text.
    """
    assert pipeline.task is not None
    check_count("batch_size", batch_size)
    reader = pipeline.reader
    config = reader.configured(**reading)
    maker = RowMaker(examples, pipeline.task, reader, {}, graph, config, held_out=True)
    counts = [Counter[str]() for _ in examples]
    for start in range(0, len(examples), batch_size):
        numbers = range(len(examples))[start : start + batch_size]
        rows = maker.rows(numbers, EVALUATION_EPOCH)
        batch, labels = batch_of([row for own in rows for row in own], reader, config)
        with torch.inference_mode():
            logits = reader.forward(batch, config)["logits"].float().cpu()
        hidden = labels != IGNORED
        scores, gold = logits[hidden], labels[hidden]
        ranks = 1 + (scores > scores.gather(1, gold[:, None])).sum(1)
        losses = cross_entropy(scores, gold, reduction="none")
        texts = [number for number, own in zip(numbers, rows, strict=True) for _ in own]
        in_rows = hidden.nonzero()[:, 0].tolist()
        for row, *values in zip(
            in_rows, *(v.tolist() for v in (losses, 1 / ranks, ranks == 1)), strict=True
        ):
            counts[texts[row]].update(dict(zip(MASK_COUNTS, (*values, 1), strict=True)))
        batch_done.get()()
    known = {example.label for example in train}
    for example, count in zip(examples, counts, strict=True):
        if train and example.label is not None and example.label not in known:
            count.update({"new": count["count"], "new_reciprocal": count["reciprocal"]})
    return columns((*MASK_COUNTS, "new", "new_reciprocal"), counts)


def answer_columns(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    train: Sequence[Example] = (),
    **reading: Any,
) -> Columns:
    """Score the best answer to each question against the gold answer that is most similar to it.

    Returns:
        ``exact``: whether they are equal; ``f1`` of their words; ``read``: whether a gold answer
        stands whole in what the model reads of the paragraph, so that it can be found; ``count``.
    """
    del train
    counts = []
    readings = pipeline.read((e.sentences for e in examples), graph=graph, **reading)
    for example, own in zip(examples, readings, strict=True):
        best, gold = own.prediction.answers[0].text, [text for _, text in example.answers]
        exact = any(words_of(best) == words_of(text) for text in gold)
        f1 = max((word_f1(best, text) for text in gold), default=0.0)
        read = any(answer_tokens(own.tokens[1], *answer) for answer in example.answers)
        counts.append(dict(zip(ANSWER_COUNTS, (exact, f1, read, 1), strict=True)))
    return columns(ANSWER_COUNTS, counts)


BY_COLUMNS: dict[str, tuple[Any, Any]] = {  # tasks whose scores are ratios of sums of counts
    "link": (link_columns, scores_of_links),
    "mask": (mask_columns, scores_of_masks),
    "qa": (answer_columns, scores_of_answers),
}
