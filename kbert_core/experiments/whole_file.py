"""A whole labelled file, read with knowledge and without: what was said, what was right.

Nothing of a prediction is kept that isn't needed, so that thousands of rows
stay small. What the rows have in common is counted in
:mod:`kbert_core.experiments.whole_file_groups`; ways of reading are compared,
and a graph is pruned, in :mod:`kbert_core.experiments.whole_file_ways`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from torch import Tensor

from kbert_core.data.labelled import Example, check_labels
from kbert_core.errors import DataError
from kbert_core.explain.attention import AttentionEffect, attention_effect
from kbert_core.explain.case import AT_ONCE, Case, NothingPredicted, Target
from kbert_core.explain.result import batches
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.triple import Triple
from kbert_core.labels import OUTSIDE, Labels
from kbert_core.pipeline import Pipeline
from kbert_core.reader import Piece, Reading
from kbert_core.tasks.ner import NerPrediction
from kbert_core.training.scores import SpanKey

TEXTS_AT_ONCE = 8


class Verdict(StrEnum):
    """What knowledge did to a text."""

    HELPED = "helped"
    HURT = "hurt"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one reading of a text gives.

    Attributes:
        label: the class; None for named entities.
        spans: the named entities, (start, end, label) in characters.
        score: log-odds of the gold label, or mean log-probability of the gold
            tags over the text's tokens; in nats.
        wrong: 0 or 1 for a class; entities missed and wrongly predicted, together.
    """

    label: str | None
    spans: tuple[SpanKey, ...]
    score: float
    wrong: int

    @property
    def said(self) -> str | tuple[SpanKey, ...]:
        """What is compared with another answer."""
        return self.spans if self.label is None else self.label


@dataclass(frozen=True, slots=True)
class FileRow:
    """One labelled text, read with knowledge and without.

    Attributes:
        number: its place in the data, from 0.
        example: text and gold label.
        hung: the triples that stood in it, each at its mention.
        known, plain: what is predicted with knowledge and without.
    """

    number: int
    example: Example
    hung: tuple[tuple[Mention, Triple], ...]
    known: Answer
    plain: Answer

    @property
    def triples(self) -> tuple[Triple, ...]:
        """The triples that stood in it, each once, in reading order."""
        return tuple(dict.fromkeys(triple for _, triple in self.hung))

    @property
    def changed(self) -> bool:
        """Whether knowledge changed the prediction."""
        return self.known.said != self.plain.said

    @property
    def verdict(self) -> Verdict:
        """Helped where less is wrong with knowledge, hurt where more is."""
        if self.known.wrong == self.plain.wrong:
            return Verdict.NEUTRAL
        return Verdict.HELPED if self.known.wrong < self.plain.wrong else Verdict.HURT

    @property
    def gain(self) -> float:
        """By how much knowledge raises the score of what is right, in nats."""
        return self.known.score - self.plain.score

    @property
    def found(self) -> tuple[SpanKey, ...]:
        """Gold entities that are predicted with knowledge only."""
        return self._gold(self.known, self.plain)

    @property
    def lost(self) -> tuple[SpanKey, ...]:
        """Gold entities that are predicted without knowledge only."""
        return self._gold(self.plain, self.known)

    def _gold(self, one: Answer, other: Answer) -> tuple[SpanKey, ...]:
        return tuple(s for s in self.example.spans if s in one.spans and s not in other.spans)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One triple left out of one text, the rest of its knowledge held fixed.

    Attributes:
        number: of the text in its file.
        triple: which.
        effect: score of what is right with it minus without it, in nats.
        wrong: how much more is wrong without it; negative: it hurt.
    """

    number: int
    triple: Triple
    effect: float
    wrong: int


def each_row(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    *,
    at_once: int = TEXTS_AT_ONCE,
    **reading: Any,
) -> Iterator[FileRow]:
    """Read labelled texts with knowledge and without, in order; yields as batches are done.

    Args:
        at_once: texts a batch.
        reading: ``config`` and its fields, as for a call of the pipeline.

    Raises:
        DataError: fill-mask, whose texts have no gold; or an unknown label.
        KBertError: a text or option that can't be used.
    """
    read = _each(pipeline, examples, [graph], at_once, reading)
    for number, (own, (plain, known)) in enumerate(read):
        hung = tuple((own.mentions[p.node or 0], p.triple) for p in own.pieces)
        yield FileRow(number, examples[number], hung, known, plain)


def each_left_out(
    pipeline: Pipeline, rows: Sequence[FileRow], graph: KnowledgeGraph, **reading: Any
) -> Iterator[LeftOut]:
    """Leave every triple out of every text it stood in; yields as batches are done.

    Args:
        rows: read with the same graph and options, see :func:`each_row`.
        reading: as for :func:`each_row`.
    """
    waiting: list[FileRow] = []
    size = 0
    for row in [row for row in rows if row.hung]:
        if waiting and size + len(row.triples) > AT_ONCE:
            yield from _left_out(pipeline, waiting, graph, reading)
            waiting, size = [], 0
        waiting.append(row)
        size += len(row.triples)
    yield from _left_out(pipeline, waiting, graph, reading)


def _left_out(
    pipeline: Pipeline, rows: Sequence[FileRow], graph: KnowledgeGraph, reading: dict[str, Any]
) -> Iterator[LeftOut]:
    examples = [row.example for row in rows]
    without = pipeline.reader.without
    variants = [
        [own, *(without(own, [Piece(triple)]) for triple in row.triples)]
        for row, own in zip(rows, _read(pipeline, examples, graph, reading), strict=True)
    ]
    for row, (whole, *less) in zip(rows, _answers(pipeline, examples, variants), strict=True):
        for triple, one in zip(row.triples, less, strict=True):
            yield LeftOut(row.number, triple, whole.score - one.score, one.wrong - whole.wrong)


def each_of_three(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    pruned: KnowledgeGraph,
    **reading: Any,
) -> Iterator[tuple[Answer, Answer, Answer]]:
    """Read labelled texts without a graph, with the full one and with the pruned one.

    Args:
        reading: as for :func:`each_row`.
    """
    for _, (none, full, less) in _each(pipeline, examples, [graph, pruned], TEXTS_AT_ONCE, reading):
        yield none, full, less


def each_attention(
    pipeline: Pipeline, rows: Iterable[FileRow], graph: KnowledgeGraph, **reading: Any
) -> Iterator[AttentionEffect]:
    """Put attention beside effect in every text in which a triple stands, one prediction of each.

    What is explained is what is predicted, of named entities the first with
    knowledge on it; a text without any entity predicted is left out.

    Args:
        rows: read with the same graph and options, see :func:`each_row`.
        reading: as for :meth:`Case.of`.
    """
    for row in rows:
        if not row.hung:
            continue
        try:
            case = Case.of(pipeline, *row.example.sentences, graph=graph, **reading)
        except NothingPredicted:
            continue
        yield attention_effect(case)


# How texts are read


def _each(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graphs: Sequence[KnowledgeGraph],
    at_once: int,
    reading: dict[str, Any],
) -> Iterator[tuple[Reading, list[Answer]]]:
    """Every text as read with the first graph; its answers without knowledge and with each."""
    assert pipeline.task is not None
    if pipeline.task.name == "mask":
        raise DataError(
            "The model fills masks, and a file of texts doesn't say what stands at a [MASK]. "
            "Choose a model that labels texts or entities."
        )
    check_labels(examples, list(pipeline.labels.values()), "the model")
    without = pipeline.reader.without
    for some in batches(examples, at_once):
        read = [_read(pipeline, some, graph, reading) for graph in graphs]
        ways = [[without(own[0], own[0].pieces), *own] for own in zip(*read, strict=True)]
        yield from zip(read[0], _answers(pipeline, some, ways), strict=True)


def _read(
    pipeline: Pipeline, examples: Sequence[Example], graph: KnowledgeGraph, reading: dict[str, Any]
) -> Sequence[Reading]:
    return pipeline.readings([own.sentences for own in examples], graph=graph, **reading)


def _answers(
    pipeline: Pipeline, examples: Sequence[Example], variants: Sequence[Sequence[Reading]]
) -> Iterator[list[Answer]]:
    """Run several readings of each text, those that are the same once; its answers per text."""
    key = pipeline.reader.key
    different = [{key(variant): variant for variant in of_text} for of_text in variants]
    logits = iter(pipeline.reader.logits([own for unlike in different for own in unlike.values()]))
    for example, of_text, unlike in zip(examples, variants, different, strict=True):
        by_key = {name: _answer(pipeline, example, r, next(logits)) for name, r in unlike.items()}
        yield [by_key[key(variant)] for variant in of_text]


def _answer(pipeline: Pipeline, example: Example, reading: Reading, logits: Tensor) -> Answer:
    labels, task = pipeline.labels, pipeline.task
    assert task is not None
    prediction: Any = task.decode(reading, logits, labels)
    if isinstance(prediction, NerPrediction):
        spans = tuple((s.start, s.end, s.label) for s in prediction.spans)
        wrong = len(set(spans) ^ set(example.spans))
        return Answer(None, spans, _tags_score(example, reading, logits, labels), wrong)
    gold = example.label or ""
    score = Target(gold).score(reading, logits, labels)
    return Answer(prediction.label, (), score, int(prediction.label != gold))


def _tags_score(example: Example, reading: Reading, logits: Tensor, labels: Labels) -> float:
    """Mean log-probability of the gold tags over the text's tokens, in nats."""
    tokens = reading.tokens[0]
    tags = [OUTSIDE] * len(tokens)
    for start, end, label in example.spans:
        first, last = tokens.over(start, end)
        if last > first:
            tags[first:last] = [f"B-{label}"] + [f"I-{label}"] * (last - first - 1)
    if not tags:
        return 0.0
    scores = logits.float().log_softmax(-1).cpu()
    return float(scores[range(len(tags)), [labels.numbers[tag] for tag in tags]].mean())
