"""The rows of a labelled file, read with knowledge and without, and without single triples.

Only a small part of each prediction is kept, so that thousands of rows fit into memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from torch import Tensor

from kbert_core.errors import DataError
from kbert_core.explain.case import AT_ONCE, Target
from kbert_core.explain.result import batches, name_of
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.triple import Triple
from kbert_core.labels import OUTSIDE
from kbert_core.pipeline import Pipeline
from kbert_core.reader import Piece, Reading
from kbert_core.tasks.ner import NerPrediction
from kbert_lab.data.labelled import Example, check_labels
from kbert_lab.training.evaluate import BY_COLUMNS
from kbert_lab.training.scores import SpanKey

TEXTS_AT_ONCE = 8
UNGROUPED = (*BY_COLUMNS, "multilabel")  # tasks without one label a text, to group them by


class Verdict(StrEnum):
    """The effect of knowledge on a text."""

    HELPED = "helped"
    HURT = "hurt"
    NEUTRAL = "neutral"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one reading of a text gives."""

    said: str | tuple[SpanKey, ...]  # the class, or the entities: (start, end, label) in characters
    score: float  # log-odds of the gold label, or mean log-probability of the gold tags; in nats
    wrong: int  # 0 or 1 for a class; entities missed and wrongly predicted, together


@dataclass(frozen=True, slots=True)
class FileRow:
    """One labelled text, read with knowledge and without."""

    number: int  # its place in the data, from 0
    example: Example  # text and gold label
    hung: tuple[tuple[Mention, Triple], ...]  # the triples that stood in it, each at its mention
    known: Answer  # what is predicted with knowledge
    plain: Answer  # and without

    @property
    def triples(self) -> tuple[Triple, ...]:
        """The triples that were injected, each once, in reading order."""
        return tuple(dict.fromkeys(triple for _, triple in self.hung))

    @property
    def changed(self) -> bool:
        """Whether knowledge changed the prediction."""
        return self.known.said != self.plain.said

    @property
    def verdict(self) -> Verdict:
        """Helped if there are fewer errors with knowledge, hurt if there are more."""
        if self.known.wrong == self.plain.wrong:
            return Verdict.NEUTRAL
        return Verdict.HELPED if self.known.wrong < self.plain.wrong else Verdict.HURT

    @property
    def gain(self) -> float:
        """By how much knowledge raises the score of what is right, in nats."""
        return self.known.score - self.plain.score

    @property
    def gold(self) -> str | tuple[SpanKey, ...]:
        """The right answer, in the form of :attr:`Answer.said`."""
        return self.example.label or "" if isinstance(self.known.said, str) else self.example.spans

    def gold_only(self, here: Answer, there: Answer) -> tuple[SpanKey, ...]:
        """Return gold entities that one answer has and the other doesn't."""
        return tuple(s for s in self.example.spans if s in here.said and s not in there.said)

    def text(self, answer: str | tuple[SpanKey, ...]) -> str:
        """A label, or entities with their text, in a line."""
        if isinstance(answer, str):
            return answer
        text = self.example.sentences[0]
        return ", ".join(f"{text[start:end]} {label}" for start, end, label in sorted(answer))

    def as_dict(self) -> dict[str, Any]:
        """The text, what is right, what was said, as plain data."""
        return {
            "number": self.number,
            "text": " ‖ ".join(self.example.sentences),
            "gold": self.text(self.gold),
            "with_knowledge": self.text(self.known.said),
            "without": self.text(self.plain.said),
            "verdict": str(self.verdict),
            "changed": self.changed,
            "gain": self.gain,
            "wrong_with": self.known.wrong,
            "wrong_without": self.plain.wrong,
            "triples": [name_of(triple) for triple in self.triples],
        }


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One triple left out of a text (by its number), the rest of its knowledge held fixed."""

    number: int
    triple: Triple
    effect: float  # score of what is right with it minus without it, in nats
    wrong: int  # how much more is wrong without it; negative: it hurt


# Reading


def each_row(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    *,
    at_once: int = TEXTS_AT_ONCE,
    **reading: Any,
) -> Iterator[FileRow]:
    """Read labelled texts with knowledge and without; yield rows in order, batch by batch.

    Args:
        at_once: texts in a batch.
        reading: ``config`` and its fields, as for a call of the pipeline.

    Raises:
        DataError: a task of ``UNGROUPED``, or an unknown label.
        KBertError: a text or option that can't be used.
    """
    assert pipeline.task is not None
    if pipeline.task.name in UNGROUPED:
        raise DataError(
            f"The model is for the task '{pipeline.task.name}', whose texts have no single label. "
            "Choose a model that labels texts or entities; `kbert evaluate` scores this one."
        )
    check_labels(examples, pipeline.known_labels, "the model")
    numbered = list(enumerate(examples))
    for some in batches(numbered, at_once):
        texts = [example.sentences for _, example in some]
        read = pipeline.readings(texts, graph=graph, **reading)
        ways = [[own, pipeline.reader.without(own, own.pieces)] for own in read]
        answers = _answers(pipeline, [example for _, example in some], ways)
        for item, own, (known, without) in zip(some, read, answers, strict=True):
            hung = tuple((own.mentions[p.node or 0], p.triple) for p in own.pieces)
            yield FileRow(*item, hung, known, without)


def each_left_out(
    pipeline: Pipeline, rows: Sequence[FileRow], graph: KnowledgeGraph, **reading: Any
) -> Iterator[LeftOut]:
    """Leave every triple out of every text that has it; yield batch by batch.

    The rows were read with the same graph and options, see :func:`each_row`.
    """
    hung = [row for row in rows if row.hung]
    most = max((len(row.triples) for row in hung), default=1)
    for some in batches(hung, max(1, AT_ONCE // most)):
        examples = [row.example for row in some]
        read = pipeline.readings([one.sentences for one in examples], graph=graph, **reading)
        variants = [
            [own, *(pipeline.reader.without(own, [Piece(triple)]) for triple in row.triples)]
            for row, own in zip(some, read, strict=True)
        ]
        answers = _answers(pipeline, examples, variants)
        for row, (whole, *less) in zip(some, answers, strict=True):
            for triple, one in zip(row.triples, less, strict=True):
                yield LeftOut(row.number, triple, whole.score - one.score, one.wrong - whole.wrong)


def _answers(
    pipeline: Pipeline, examples: Sequence[Example], variants: Sequence[Sequence[Reading]]
) -> Iterator[list[Answer]]:
    """Run several readings of each text, equal ones once; return the answers of each text."""
    key = pipeline.reader.cache_key
    different = [{key(variant): variant for variant in of_text} for of_text in variants]
    logits = iter(pipeline.reader.logits([own for unlike in different for own in unlike.values()]))
    for example, of_text, unlike in zip(examples, variants, different, strict=True):
        by_key = {name: _answer(pipeline, example, r, next(logits)) for name, r in unlike.items()}
        yield [by_key[key(variant)] for variant in of_text]


def _answer(pipeline: Pipeline, example: Example, reading: Reading, logits: Tensor) -> Answer:
    labels, task = pipeline.labels, pipeline.task
    assert task is not None
    prediction: Any = task.decode(reading, logits, labels)
    if not isinstance(prediction, NerPrediction):
        gold = example.label or ""
        score = Target(gold).score(reading, logits, labels)
        return Answer(prediction.label, score, int(prediction.label != gold))
    tokens = reading.tokens[0]
    tags = [OUTSIDE] * len(tokens)
    for start, end, label in example.spans:
        first, last = tokens.over(start, end)
        if last > first:
            tags[first:last] = [f"B-{label}"] + [f"I-{label}"] * (last - first - 1)
    numbers = [labels.numbers[tag] for tag in tags]
    likely = logits.float().log_softmax(-1).cpu()[range(len(tags)), numbers]
    spans = tuple((s.start, s.end, s.label) for s in prediction.spans)
    wrong = len(set(spans) ^ set(example.spans))
    return Answer(spans, float(likely.mean()) if tags else 0.0, wrong)
