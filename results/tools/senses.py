"""Word sense disambiguation without a linker: first senses, priors, nearest centroids."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from kbert_core.knowbert.candidates import Base, entity_span
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.pipeline import Pipeline
from kbert_lab.data.labelled import Example
from kbert_lab.training.scores import Columns, Found, count_links

AT_ONCE = 2048  # texts


def sense_columns(
    way: str, train: Sequence[Example], test: Sequence[Example], graph: KnowledgeGraph, encoder: str
) -> Columns:
    """Count what a way without a linker has right; see :func:`link_columns`.

    Args:
        way: "first": the first candidate of each span; "prior": the one that the graph counts
            most; "centroid": the one whose spans in training have the nearest mean state, and
            the first where training has none of them.
        encoder: that makes the states, without knowledge.
    """
    first: list[Found] = [_each(e, lambda link: link.candidates[0]) for e in test]
    base, options = Base.of("wordnet"), InjectionOptions()

    def likeliest(link: Any) -> str:
        span = entity_span((0, 1), link.candidates, link.word, graph, options, base)
        return span.candidates[0].entity if span else link.candidates[0]

    prior: list[Found] = [_each(example, likeliest) for example in test]
    if way == "centroid":
        return count_links(test, _nearest(train, test, encoder), prior, train)
    return count_links(test, first if way == "first" else prior, prior, train)


def _each(example: Example, choose: Any) -> dict[tuple[int, int], str]:
    return {(own.start, own.end): choose(own) for own in example.links if own.candidates}


def _nearest(train: Sequence[Example], test: Sequence[Example], encoder: str) -> list[Found]:
    pipeline = Pipeline.from_pretrained(encoder, device="cpu")
    sums: dict[str, Tensor] = defaultdict(lambda: torch.zeros(()))
    for example, states in _span_states(pipeline, train):
        for link, state in zip(example.links, states, strict=True):
            for entity in link.entities:
                sums[entity] = sums[entity] + state
    centroids = {entity: own / own.norm() for entity, own in sums.items()}
    found: list[Found] = []
    for example, states in _span_states(pipeline, test):
        nearest: dict[tuple[int, int], str | None] = {}
        for link, state in zip(example.links, states, strict=True):
            known = [entity for entity in link.candidates if entity in centroids]
            near = max(known, key=lambda e: float(centroids[e] @ state), default=None)
            nearest[link.start, link.end] = near or link.candidates[0]
        found.append(nearest)
    return found


def _span_states(pipeline: Pipeline, examples: Sequence[Example]) -> Any:
    """Yield examples with the unit mean states (H,) of their links."""
    for start in range(0, len(examples), AT_ONCE):
        some = examples[start : start + AT_ONCE]
        readings = pipeline.readings([example.sentences for example in some])
        for example, reading, states in zip(
            some, readings, pipeline.reader.states(readings), strict=True
        ):
            tokens, spans = reading.tokens[0], []
            for link in example.links:
                first, stop = tokens.over(link.start, link.end)
                mean = states[first : max(stop, first + 1)].mean(0)
                spans.append(mean / mean.norm())
            yield example, spans
