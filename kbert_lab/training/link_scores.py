"""Scores of entity linking: all links of a text, or each given span among given candidates."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from kbert_core.knowbert.candidates import entity_span
from kbert_core.knowbert.morphology import part_of_speech
from kbert_core.knowbert.reader import KnowBertReader
from kbert_core.knowbert.reading import KnowBertReading
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.pipeline import Pipeline
from kbert_lab.data.labelled import Example, GoldLink

PARTS = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
SLICES = ("not_first", "new", *dict.fromkeys(PARTS.values()))
Found = Mapping[tuple[int, int], str | None]  # span → entity
COUNTED = ("right", "predicted", "gold", "first_right", "prior_right")


def link_columns(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    train: Sequence[Example] = (),
    *,
    batch_size: int = 32,
    **reading: Any,
) -> dict[str, list[int]]:
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
    reader = cast(KnowBertReader, pipeline.reader)
    readings = [
        _given(reader, cast(KnowBertReading, own), example.links, graph)
        for own, example in zip(
            pipeline.readings([e.sentences for e in examples], graph=graph, **reading),
            examples,
            strict=True,
        )
    ]
    found = [
        {(own.start, own.end): own.entity for own in read.prediction.links}
        for read in pipeline.predicted(readings, batch_size=batch_size)
    ]
    likeliest = [
        {own.place[2:]: own.candidates[0].entity for own in read.linked_spans if own.candidates}
        for read in readings
    ]
    return columns_of(examples, found, likeliest, train)


def columns_of(
    examples: Sequence[Example],
    found: Sequence[Found],
    likeliest: Sequence[Found],
    train: Sequence[Example] = (),
) -> dict[str, list[int]]:
    """Count links that are there already; see :func:`link_columns`.

    Args:
        found: per text what spans were taken to mean; None: nothing.
        likeliest: per text their candidates with the highest prior.
    """
    among = any(link.candidates for example in examples for link in example.links)
    seen = {_word(link, example) for example in train for link in example.links}
    names = (*COUNTED, *SLICES, *(f"{name}_right" for name in SLICES))
    columns: dict[str, list[int]] = {name: [0] * len(examples) for name in names}
    for row, example in enumerate(examples):
        wanted = {(link.start, link.end) for link in example.links if link.candidates}
        columns["predicted"][row] = sum(
            entity is not None and (not among or place in wanted)
            for place, entity in found[row].items()
        )
        for link in example.links:
            place = link.start, link.end
            right = found[row].get(place) in link.entities
            first = bool(link.candidates) and link.candidates[0] in link.entities
            counted = {"right": right, "gold": True, "first_right": first}
            counted["prior_right"] = likeliest[row].get(place) in link.entities
            slices = {"new": bool(train) and _word(link, example) not in seen}
            slices["not_first"] = bool(link.candidates) and not first
            if part := PARTS.get(part_of_speech(link.entities[0])):
                slices[part] = True
            counted |= slices | {f"{name}_right": on and right for name, on in slices.items()}
            for name, value in counted.items():
                columns[name][row] += value
    return columns


def scores_of_columns(columns: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Shares of sums: precision, recall and F1, and recall on each slice that there is."""
    sums = {name: sum(column) for name, column in columns.items()}
    right, predicted, gold = (sums[name] for name in ("right", "predicted", "gold"))
    slices = [name for name in SLICES if sums[name]]
    return {
        **{"right": right, "predicted": predicted, "gold": gold},
        "precision": right / max(1, predicted),
        "recall": right / max(1, gold),
        "f1": 2 * right / max(1, predicted + gold),
        "first": sums["first_right"] / max(1, gold),
        "prior": sums["prior_right"] / max(1, gold),
        "slices": {name: sums[f"{name}_right"] / sums[name] for name in slices},
    }


def _word(link: GoldLink, example: Example) -> str:
    return (link.word or example.sentences[0][link.start : link.end]).lower()


def _given(
    reader: KnowBertReader,
    reading: KnowBertReading,
    links: Sequence[GoldLink],
    graph: KnowledgeGraph,
) -> KnowBertReading:
    """Put the candidates that labels name into a reading, in place of those it has there."""
    config, number = reading.config, len(reading.config.bases) - 1
    spans = [
        entity_span(
            (link.start, link.end),
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
