"""Scores of entity linking: all links of a text, or each given span among given candidates."""

from collections.abc import Sequence
from typing import Any, cast

from kbert_core.data.labelled import Example, GoldLink
from kbert_core.knowbert.candidates import Span, entity_span
from kbert_core.knowbert.morphology import part_of_speech
from kbert_core.knowbert.reader import KnowBertReader
from kbert_core.knowbert.reading import KnowBertReading
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.pipeline import Pipeline
from kbert_core.tasks.link import LinkPrediction

PARTS = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}


def link_scores(
    pipeline: Pipeline, examples: Sequence[Example], graph: KnowledgeGraph, **reading: Any
) -> dict[str, Any]:
    """Score the links of labelled texts.

    A span whose label names candidates is judged among these alone, as word sense disambiguation
    is; every such span has an answer. Else the links that the model finds by itself count, and
    those that mean nothing (NULL) are none.

    Returns:
        ``right``, ``predicted`` and ``gold``; ``precision``, ``recall`` and ``f1``. With candidates
        also ``first`` and ``prior``: shares right by the first candidate and by the highest prior;
        ``by_part`` of speech; ``not_first``: where the first candidate is wrong.
    """
    size = reading.pop("batch_size", 32)
    reader = cast(KnowBertReader, pipeline.reader)
    readings = [
        given_spans(reader, cast(KnowBertReading, own), example.links, graph)
        for own, example in zip(
            pipeline.readings([e.sentences for e in examples], graph=graph, **reading),
            examples,
            strict=True,
        )
    ]
    predictions = [own.prediction for own in pipeline.predicted(readings, batch_size=size)]
    return scores_of_links(readings, predictions, examples)


def given_spans(
    reader: KnowBertReader,
    reading: KnowBertReading,
    links: Sequence[GoldLink],
    graph: KnowledgeGraph,
) -> KnowBertReading:
    """Put the candidates that labels name into a reading, in place of those it has there."""
    config, number = reading.config, len(reading.config.bases) - 1
    spans = [
        entity_span(
            link.start,
            link.end,
            link.candidates,
            link.word,
            graph,
            config.options,
            config.bases[number],
            number,
        )
        for link in links
        if link.candidates
    ]
    return reader.with_spans(reading, [span for span in spans if span is not None])


def scores_of_links(
    readings: Sequence[KnowBertReading],
    predictions: Sequence[LinkPrediction],
    examples: Sequence[Example],
) -> dict[str, Any]:
    """Score links; see :func:`link_scores`."""
    right = predicted = gold = first = prior = 0
    slices: dict[str, list[bool]] = {}
    among = False
    for reading, prediction, example in zip(readings, predictions, examples, strict=True):
        found = {(own.start, own.end): own.entity for own in prediction.links}
        spans: dict[tuple[int, int], Span] = {
            (own.mention.start, own.mention.end): own for own in reading.linked_spans
        }
        wanted = {(own.start, own.end) for own in example.links if own.candidates}
        predicted += sum(
            entity is not None for place, entity in found.items() if not wanted or place in wanted
        )
        for link in example.links:
            place = link.start, link.end
            is_right = found.get(place) in link.entities
            right, gold = right + is_right, gold + 1
            if not link.candidates:
                continue
            among = True
            by_first = link.candidates[0] in link.entities
            first += by_first
            best = spans[place].candidates[0].entity if place in spans else None
            prior += best in link.entities
            part = PARTS.get(part_of_speech(link.entities[0]), "other")
            slices.setdefault(part, []).append(is_right)
            if not by_first:
                slices.setdefault("not_first", []).append(is_right)
    precision, recall = right / max(1, predicted), right / max(1, gold)
    scores: dict[str, Any] = {
        **{"right": right, "predicted": predicted, "gold": gold},
        **{"precision": precision, "recall": recall},
        "f1": 2 * right / max(1, predicted + gold),
    }
    if among:
        shares = {name: sum(own) / len(own) for name, own in slices.items()}
        not_first = shares.pop("not_first", None)
        scores |= {"first": first / gold, "prior": prior / gold}
        scores |= {"not_first": not_first, "by_part": shares}
    return scores
