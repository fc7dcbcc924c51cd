"""Learn which triples are of use: `kbert select-train`.

A labelled text is read without knowledge, and once for every triple of every
mention with that triple alone; what the loss falls by is what a scorer learns
to tell from the triple, the text and their similarity.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from kbert_core.data.labelled import Example
from kbert_core.data.sources import read_split
from kbert_core.errors import DataError, OptionError
from kbert_core.kbert.sentence_tree import SentenceTree, k_query
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import find_mentions
from kbert_core.knowledge.selection import InjectionOptions, Strategy
from kbert_core.knowledge.strategies import Candidates
from kbert_core.knowledge.tools.controls import with_noise
from kbert_core.labels import IGNORED
from kbert_core.pipeline import Pipeline
from kbert_core.scoring import OWN, similarity_under
from kbert_core.scoring.learned import LearnedScorer, features
from kbert_core.training.batches import RowMaker, TrainingRow, batch_of
from kbert_core.training.options import RunOptions

MOST_TRIPLES = 8  # of a mention that are tried
CLIPPED = 2.0  # nats: a larger difference counts as this one
HELD_OUT = 0.2  # of the texts
ROWS_AT_ONCE = 64
RIDGE = 10.0
log = logging.getLogger(__name__)
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Tried:
    """The triples of one mention that were tried."""

    text: int  # number of the example
    candidates: Candidates  # all triples of the mention
    places: tuple[int, ...]  # which of them were tried
    gains: tuple[float, ...]  # what the loss of the text fell by with each, in nats


def ridge(x: Floats, y: Floats) -> tuple[Floats, float]:
    """Fit y by a weighted sum of x's columns, each brought to unit deviation first.

    Returns:
        (F,) weights of the columns as they are, and what is added.
    """
    mean, deviation = x.mean(0), x.std(0)
    deviation = np.where(deviation > 1e-6, deviation, np.inf)  # a constant column says nothing
    z = ((x - mean) / deviation).astype(np.float64)
    found = np.linalg.solve(z.T @ z + RIDGE * np.eye(z.shape[1]), z.T @ (y - y.mean()))
    weights = (found / deviation).astype(np.float32)
    return weights, float(y.mean() - mean @ weights)


def _tried(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    seed: int,
) -> Iterator[Tried]:
    """Read every text without knowledge and with each triple alone."""
    assert pipeline.task is not None
    labels = {label: number for number, label in pipeline.labels.items()}
    config = replace(pipeline.config, options=options)
    maker = RowMaker(examples, pipeline.task, pipeline.reader, labels, graph, config)
    everything = replace(options, max_triples=1000)
    for number, example in enumerate(examples):
        random = np.random.default_rng((seed, number))
        trees = [SentenceTree(example.sentences, ())]
        mentions: list[tuple[Candidates, list[int]]] = []
        for node in k_query([example.sentences], graph, everything)[0]:
            places = random.permutation(len(node.branches))[:MOST_TRIPLES].tolist()
            if not places:
                continue
            mentions.append((Candidates(example.sentences, node.mention, node.used), places))
            for place in places:
                alone = replace(node, branches=node.branches[place : place + 1], left_out=())
                trees.append(SentenceTree(example.sentences, (alone,)))
        if not mentions:
            continue
        losses = _losses(pipeline, [maker.with_targets(number, own) for own in pipeline.lay(trees)])
        each = iter(losses[1:])
        for candidates, places in mentions:
            gains = tuple(losses[0] - next(each) for _ in places)
            yield Tried(number, candidates, tuple(places), gains)
        if number % 200 == 199:
            log.info("%d of %d texts tried", number + 1, len(examples))


def _losses(pipeline: Pipeline, made: Sequence[Sequence[TrainingRow]]) -> list[float]:
    """The loss of every input in nats, summed over its tokens."""
    rows = [(i, item) for i, items in enumerate(made) for item in items]
    rows.sort(key=lambda row: len(row[1].row))
    losses = [0.0] * len(made)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[start : start + ROWS_AT_ONCE]
        batch, labels = batch_of([row for _, row in some], pipeline.reader, pipeline.config)
        output = pipeline.encoder(batch, ablation=pipeline.config.ablation)
        logits = output["logits"].float().cpu()
        with torch.inference_mode():
            each = cross_entropy(
                logits.flatten(0, -2), labels.flatten(), reduction="none", ignore_index=IGNORED
            )
            sums = each.view(len(some), -1).sum(1).tolist()
        for (i, _), loss in zip(some, sums, strict=True):
            losses[i] += loss
    return losses


def _notes(scorer: LearnedScorer, train: Sequence[Tried], test: Sequence[Tried]) -> dict[str, Any]:
    """What the scorer learned from, and how it does on held-out texts."""
    notes: dict[str, Any] = {
        "triples": sum(len(one.places) for one in train),
        "held-out triples": sum(len(one.places) for one in test),
    }
    several = [one for one in test if len(one.places) > 1]
    if not several:
        return notes
    scores = scorer.score([one.candidates for one in several])
    gains = [dict(zip(one.places, one.gains, strict=True)) for one in several]
    taken = [of[max(of, key=own.__getitem__)] for of, own in zip(gains, scores, strict=True)]
    return {
        **notes,
        "held-out mentions with several": len(several),
        "mean gain in nats of the triple scored highest": _mean(taken),
        "of the first in graph order": _mean(of[min(of)] for of in gains),
        "of the best there is": _mean(max(of.values()) for of in gains),
    }


def _mean(gains: Iterable[float]) -> float:
    return round(float(np.mean(list(gains))), 4)


def train_scorer(
    model: str,
    data: str,
    output: str,
    graph: KnowledgeGraph,
    options: InjectionOptions,
    *,
    encoder: str | None = None,
    max_texts: int = 1000,
    noise: int = 0,
    seed: int = 0,
    device: str = "auto",
    command: str = "",
) -> dict[str, Any]:
    """Learn to tell by how much a triple lowers a model's loss; save the scorer, return a report.

    Args:
        model: folder of a model with labels.
        data: its training set, as ``read_split`` takes it.
        output: folder for the scorer.
        options: which triples may be used, and whether without relations;
            the strategy doesn't matter.
        encoder: whose similarity is used; None: the model's own.
        max_texts: so many texts are tried, drawn by ``seed``.
        noise: every mention gets so many triples of other entities.
        command: what was typed, for the scorer's notes.

    Raises:
        OptionError: a model that can't be learned from, or a number that can't be.
        DataError: the texts have too few triples to learn from.
    """
    RunOptions(output, seed)  # which checks the two
    for name, value, least in (("max_texts", max_texts, 1), ("noise", noise, 0)):
        if value < least:
            raise OptionError(f"{name} is {value}, expected at least {least}.")
    pipeline = Pipeline.load(model, device=device)
    if pipeline.task is None or pipeline.task.name == "mask":
        raise OptionError(
            f"{model} has no task with labels, so no triple can lower its loss. "
            "Train one with `kbert train`."
        )
    encoder = encoder or OWN
    similarity = pipeline.kbert.similarity if encoder == OWN else similarity_under(encoder)
    examples = read_split(data, "train", pipeline.task.name, {})
    order = np.random.default_rng(seed).permutation(len(examples))[:max_texts]
    examples = [examples[i] for i in sorted(order.tolist())]
    if noise:
        texts = [text for example in examples for text in example.sentences]
        mentions = chain.from_iterable(find_mentions(texts, graph, rules=options.names))
        names = [entity for mention in mentions for entity in mention.entities]
        graph = with_noise(graph, names, noise, seed=seed)
    options = replace(
        options, strategy=Strategy.FIRST, threshold=None, one_sense=False, scorer=None
    )
    tried = list(_tried(pipeline, examples, graph, options, seed))
    order = np.random.default_rng(seed).permutation(len(examples))
    held_out = set(order[: round(HELD_OUT * len(examples))].tolist())
    train = [one for one in tried if one.text not in held_out]
    gains = np.array([gain for one in train for gain in one.gains], np.float32)
    if len(gains) < 2:
        raise DataError(
            f"The texts have {len(gains)} triples to learn from. Give more texts, or a graph that "
            "knows their names."
        )
    described = features([one.candidates for one in train], similarity)
    x = [of[list(one.places)] for one, of in zip(train, described, strict=True)]
    weights, bias = ridge(np.concatenate(x), np.clip(gains, -CLIPPED, CLIPPED))
    scorer = LearnedScorer(weights, bias, encoder, similarity=similarity)
    test = [one for one in tried if one.text in held_out]
    learned = {"texts": len(examples), **_notes(scorer, train, test)}
    about = {"model": Path(model).name, "data": Path(data).name, "noise": noise, "seed": seed}
    replace(scorer, notes={**about, "command": command, **learned}).save(output)
    weights_by_name = {f"weight of {name}": weight for name, weight in scorer.about().items()}
    return {"output": output, **learned, **weights_by_name}
