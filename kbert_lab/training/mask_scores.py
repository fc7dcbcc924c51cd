"""Scores of fill-mask: how well hidden tokens are guessed, by loss and by rank."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.labels import IGNORED
from kbert_core.options import check_count
from kbert_core.pipeline import Pipeline
from kbert_core.reader import batch_done
from kbert_lab.data.labelled import Example
from kbert_lab.training.rows import RowMaker, batch_of

EVALUATION_EPOCH = 1_000_000  # seeds the masks of held-out texts, apart from training's
AT_ONCE = 16  # texts
COLUMNS = ("loss", "reciprocal", "right", "count")


def mask_columns(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    train: Sequence[Example] = (),
    *,
    batch_size: int = AT_ONCE,
    **reading: Any,
) -> dict[str, list[float]]:
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
    columns = {name: [0.0] * len(examples) for name in COLUMNS}
    for start in range(0, len(examples), batch_size):
        numbers = range(len(examples))[start : start + batch_size]
        rows = maker.rows(numbers, EVALUATION_EPOCH)
        batch, labels = batch_of([row for own in rows for row in own], reader, config)
        with torch.inference_mode():
            logits = reader.forward(batch, config)["logits"].float().cpu()
        hidden = labels != IGNORED
        scores, gold = logits[hidden], labels[hidden]
        ranks = 1 + (scores > scores.gather(1, gold[:, None])).sum(1)
        values = (cross_entropy(scores, gold, reduction="none"), 1 / ranks, ranks == 1)
        texts = [number for number, own in zip(numbers, rows, strict=True) for _ in own]
        places = [texts[row] for row in hidden.nonzero()[:, 0].tolist()]
        told = zip(places, *(value.tolist() for value in values), strict=True)
        for place, *sums in told:
            for name, value in zip(COLUMNS, (*sums, 1), strict=True):
                columns[name][place] += value
        batch_done.get()()
    known = {example.label for example in train}
    new = [bool(train) and e.label is not None and e.label not in known for e in examples]
    for name, column in (("new", "count"), ("new_reciprocal", "reciprocal")):
        columns[name] = [v if on else 0.0 for v, on in zip(columns[column], new, strict=True)]
    return columns


def scores_of_masks(columns: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Means over the hidden tokens: loss in nats, mean reciprocal rank, and the share right."""
    sums = {name: sum(column) for name, column in columns.items()}
    count = max(1, sums["count"])
    loss = sums["loss"] / count
    scores = {"loss": loss, "perplexity": math.exp(loss), "accuracy": sums["right"] / count}
    scores |= {"mrr": sums["reciprocal"] / count, "count": int(sums["count"])}
    if sums["new"]:
        scores["new_mrr"] = sums["new_reciprocal"] / sums["new"]
    return scores
