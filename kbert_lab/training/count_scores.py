"""Scores of linking, fill-mask and reading comprehension: counts per text, ratios of sums."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch.nn.functional import cross_entropy

from kbert_core.knowbert.candidates import entity_span
from kbert_core.knowbert.knowbert import KnowBertReading
from kbert_core.knowbert.morphology import part_of_speech
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import is_word_character
from kbert_core.labels import IGNORED
from kbert_core.options import check_count
from kbert_core.pipeline import Pipeline
from kbert_core.reader import batch_done
from kbert_lab.data.labelled import Example, GoldLink
from kbert_lab.training.rows import RowMaker, answer_tokens, batch_of
from kbert_lab.training.scores import precision_recall

PARTS = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
SLICES = ("not_first", "new", *dict.fromkeys(PARTS.values()))
LINK_COUNTS = ("right", "predicted", "gold", "first_right", "prior_right")
MASK_COUNTS = ("loss", "reciprocal", "right", "count")
ANSWER_COUNTS = ("exact", "f1", "read", "count")
EVALUATION_EPOCH = 1_000_000  # seeds the masks of held-out texts, apart from training's
AT_ONCE = 16  # texts
WORD = re.compile(r"[^\W_]")
Found = Mapping[tuple[int, int], str | None]  # span → entity


# Entity linking


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
    readings = [
        _given(cast(KnowBertReading, own), example.links, graph)
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
    return count_links(examples, found, likeliest, train)


def count_links(
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
    names = (*LINK_COUNTS, *SLICES, *(f"{name}_right" for name in SLICES))
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


def scores_of_links(columns: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Shares of sums: precision, recall and F1, and recall on each slice that there is."""
    sums = {name: sum(column) for name, column in columns.items()}
    slices, gold = [name for name in SLICES if sums[name]], sums["gold"]
    return {
        **precision_recall(sums["right"], sums["predicted"], gold),
        "first": sums["first_right"] / max(1, gold),
        "prior": sums["prior_right"] / max(1, gold),
        "slices": {name: sums[f"{name}_right"] / sums[name] for name in slices},
    }


def _word(link: GoldLink, example: Example) -> str:
    return (link.word or example.sentences[0][link.start : link.end]).lower()


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


# Fill-mask


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
    columns = {name: [0.0] * len(examples) for name in MASK_COUNTS}
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
            for name, value in zip(MASK_COUNTS, (*sums, 1), strict=True):
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


# Reading comprehension


def answer_columns(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    train: Sequence[Example] = (),
    **reading: Any,
) -> dict[str, list[float]]:
    """Score the best answer to each question against the gold answer that is most similar to it.

    Returns:
        ``exact``: whether they are equal; ``f1`` of their words; ``read``: whether a gold answer
        stands whole in what the model reads of the paragraph, so that it can be found; ``count``.
    """
    del train
    columns: dict[str, list[float]] = {name: [] for name in ANSWER_COUNTS}
    texts = (example.sentences for example in examples)
    readings = pipeline.read(texts, graph=graph, **reading)
    for example, own in zip(examples, readings, strict=True):
        best, gold = own.prediction.answers[0].text, [text for _, text in example.answers]
        tokens = own.tokens[1]
        values = (
            max((float(words_of(best) == words_of(text)) for text in gold), default=0.0),
            max((word_f1(best, text) for text in gold), default=0.0),
            float(any(answer_tokens(tokens, *answer) for answer in example.answers)),
            1.0,
        )
        for name, value in zip(ANSWER_COUNTS, values, strict=True):
            columns[name].append(value)
    return columns


def scores_of_answers(columns: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Means over the questions: F1, exact match, and the share whose answer is read."""
    sums = {name: sum(column) for name, column in columns.items()}
    count = max(1.0, sums["count"])
    means = {name: sums[name] / count for name in ("f1", "exact", "read")}
    return {**means, "count": int(sums["count"])}


def words_of(text: str) -> list[str]:
    """Split an answer into units to compare: words in scripts with spaces, else characters.

    NFKC and case folding come first. White space and punctuation are dropped, unless the answer
    has nothing else. The scripts of CMRC 2018 and DRCD do the same.
    """
    words: list[str] = []
    inside = False  # a word that the next character may go on
    text = unicodedata.normalize("NFKC", text).casefold()
    for character in text:
        spaced = is_word_character(character) and character != "_"
        if spaced and inside:
            words[-1] += character
        elif spaced or WORD.match(character):
            words.append(character)
        inside = spaced
    return words or text.split()


def word_f1(predicted: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall of the words, counting repetitions."""
    found, wanted = words_of(predicted), words_of(gold)
    shared = (Counter(found) & Counter(wanted)).total()
    return 2 * shared / max(1, len(found) + len(wanted))
