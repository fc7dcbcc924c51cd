"""A whole labelled file, read with knowledge and without: where it helps, where it hurts, how sure.

Only a small part of each prediction is kept, so that thousands of rows fit into memory.

Texts are grouped by label (named entities: gold entities found and lost), and
by the entities, relations and triples that stood in them. Several triples of
one text share its verdict, so these counts say where to look; leaving the
triples out one by one says which it was. :func:`prune` takes out of the graph
what hurt more texts than it helped.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from kbert_core.errors import DataError
from kbert_core.explain.case import AT_ONCE, Target
from kbert_core.explain.result import Plain, batches, name_of
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple
from kbert_core.labels import OUTSIDE, RIGHT
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_core.reader import Fact, Reading
from kbert_core.tasks.ner import NerPrediction
from kbert_core.tokens import Ints
from kbert_lab.data.labelled import Example, check_labels
from kbert_lab.explain.drawing import BLUE, ORANGE, Figure, clipped, signed_bars
from kbert_lab.study.counts import sentence_counts
from kbert_lab.study.statistics import LEVEL, METRICS, Difference, Resampled, Score
from kbert_lab.training.evaluate import BY_COLUMNS
from kbert_lab.training.scores import SpanKey

TEXTS_AT_ONCE = 8
UNGROUPED = (*BY_COLUMNS, "multilabel")  # tasks without one label a text, to group them by
By = Literal["label", "entity", "relation", "triple"]
KINDS: tuple[By, ...] = ("label", "entity", "relation", "triple")
Rule = Literal["counts", "leave one out"]
WITHOUT, WITH = "without a graph", "with the graph"
SCORE_RESAMPLES = 2000
Interval = tuple[float, float]


# The texts


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
    triples: tuple[Triple, ...]  # that stood in it, each once, in reading order
    known: Answer  # what is predicted with knowledge
    plain: Answer  # and without

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


def each_row(
    pipeline: Pipeline, examples: Sequence[Example], graph: KnowledgeGraph, **reading: Any
) -> Iterator[FileRow]:
    """Read labelled texts with knowledge and without; yield rows in order, batch by batch.

    Args:
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
    reader = pipeline.reader
    for some in batches([*enumerate(examples)], TEXTS_AT_ONCE):
        texts = [example.sentences for _, example in some]
        read = pipeline.readings(texts, graph=graph, **reading)
        plain = [reader.without(own, own.facts) for own in read]
        different = {reader.cache_key(variant): variant for variant in [*read, *plain]}
        logits = dict(zip(different, reader.logits([*different.values()]), strict=True))
        for (number, example), own, bare in zip(some, read, plain, strict=True):
            known, without = (
                _answer(pipeline, example, variant, logits[reader.cache_key(variant)])
                for variant in (own, bare)
            )
            triples = tuple(dict.fromkeys(fact.triple for fact in own.facts))
            yield FileRow(number, example, triples, known, without)


def each_left_out(
    pipeline: Pipeline, rows: Iterable[FileRow], graph: KnowledgeGraph, **reading: Any
) -> Iterator[LeftOut]:
    """Leave every triple out of every text that has it; yield text by text.

    The rows were read with the same graph and options, see :func:`each_row`.
    """
    for row in (row for row in rows if row.triples):
        (own,) = pipeline.readings([row.example.sentences], graph=graph, **reading)
        variants = [pipeline.reader.without(own, [Fact(triple)]) for triple in row.triples]
        logits = pipeline.reader.logits(variants, batch_size=AT_ONCE)
        for triple, variant, scores in zip(row.triples, variants, logits, strict=True):
            less = _answer(pipeline, row.example, variant, scores)
            effect, wrong = row.known.score - less.score, less.wrong - row.known.wrong
            yield LeftOut(row.number, triple, effect, wrong)


def _answer(pipeline: Pipeline, example: Example, reading: Reading, logits: Tensor) -> Answer:
    labels, task = pipeline.labels, pipeline.task
    assert task is not None
    prediction: Any = task.decode(reading, logits, labels)
    if not isinstance(prediction, NerPrediction):
        gold = example.label or ""
        score = Target(gold).score(reading, logits, labels)
        return Answer(prediction.label, score, int(prediction.label != gold))
    tags = [OUTSIDE] * len(reading.tokens[0])
    for start, end, label in example.spans:
        first, last = reading.tokens[0].over(start, end)
        tags[first:last] = labels.tags_of(label, last - first) if last > first else []
    numbers = [labels.numbers[tag] for tag in tags]
    likely = logits.float().log_softmax(-1).cpu()[range(len(tags)), numbers]
    spans = tuple((s.start, s.end, s.label) for s in prediction.spans)
    wrong = len(set(spans) ^ set(example.spans))
    return Answer(spans, float(likely.mean()) if tags else 0.0, wrong)


# Where it helps and hurts

OF_ROW: dict[By, Callable[[FileRow], Iterable[Triple | str]]] = {  # what groups a text is in
    "label": lambda row: [row.example.label or ""],
    "entity": lambda row: [triple.head for triple in row.triples],
    "relation": lambda row: [triple.relation for triple in row.triples],
    "triple": lambda row: row.triples,
}


@dataclass(frozen=True)
class Group(Plain):
    """What knowledge did to the texts that have something in common."""

    by: By  # what they have in common
    name: str  # the label, the entity, the relation, or the triple in a line
    unit: Literal["texts", "entities"]  # what is counted; by label of named entities these
    count: int
    helped: int  # of them
    hurt: int
    gains: tuple[float, ...] = ()  # of every text, in nats; empty where entities are counted
    triple: Triple | None = None

    keys: ClassVar = (
        "by name unit count helped hurt neutral helped_interval hurt_interval verdict mean_gain "
        "triple"
    )

    @classmethod
    def of(cls, by: By, key: Triple | str, rows: Sequence[FileRow]) -> "Group":
        """Count texts."""
        verdicts = Counter(row.verdict for row in rows)
        counts = len(rows), verdicts[Verdict.HELPED], verdicts[Verdict.HURT]
        triple, name = (key, name_of(key)) if isinstance(key, Triple) else (None, key)
        return cls(by, name, "texts", *counts, tuple(row.gain for row in rows), triple)

    @property
    def neutral(self) -> int:
        """Neither helped nor hurt."""
        return self.count - self.helped - self.hurt

    @cached_property
    def helped_interval(self) -> Interval:
        """95 % of the share that is helped (Wilson 1927)."""
        return wilson(self.helped, self.count)

    @cached_property
    def hurt_interval(self) -> Interval:
        """95 % of the share that is hurt (Wilson 1927)."""
        return wilson(self.hurt, self.count)

    @cached_property
    def verdict(self) -> Verdict:
        """Hurt or helped where 95 % of the share of hurt among both is on one side of a half."""
        low, high = wilson(self.hurt, self.helped + self.hurt)
        if low > 0.5:
            return Verdict.HURT
        return Verdict.HELPED if high < 0.5 else Verdict.NEUTRAL

    @property
    def mean_gain(self) -> float | None:
        """Mean change of the score of what is right, in nats."""
        return sum(self.gains) / len(self.gains) if self.gains else None


def wilson(count: int, total: int) -> Interval:
    """95 % of a share, from 0 to 1; all of it where nothing is known."""
    if not total:
        return 0.0, 1.0
    from scipy.stats import binomtest  # slow to start

    found = binomtest(count, total).proportion_ci(LEVEL, method="wilson")
    return float(found.low), float(found.high)


@dataclass(frozen=True)
class FileScores:
    """The score of a file with knowledge and without."""

    metric: str  # F1, accuracy or MRR
    texts: int
    main: Mapping[str, Score]  # by way, with 95 % of resamples; none where nothing was counted
    difference: Difference | None  # with minus without, paired over the texts

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        ways = {way: {"mean": s.mean, "low": s.low, "high": s.high} for way, s in self.main.items()}
        d, of = self.difference, {"of": WITH, "minus": WITHOUT}
        differences = [{**of, "mean": d.mean, "low": d.low, "high": d.high}] if d else []
        counted = {"metric": self.metric, "texts": self.texts}
        return {**counted, "ways": ways, "differences": differences}


@dataclass(frozen=True)
class WholeFile:
    """A labelled file, read with knowledge and without."""

    task: str  # a key of ``TASKS``
    graph: str  # what it is called
    rows: tuple[FileRow, ...]  # the texts, in order
    total: int  # of the file; more than ``rows`` where the reading was stopped

    @cached_property
    def with_knowledge(self) -> tuple[FileRow, ...]:
        """The texts in which a triple stood; all others read the same both ways."""
        return tuple(row for row in self.rows if row.triples)

    @cached_property
    def changed(self) -> tuple[FileRow, ...]:
        """The texts whose prediction knowledge changes."""
        return tuple(row for row in self.rows if row.changed)

    @cached_property
    def whole(self) -> Group:
        """All texts together."""
        return Group.of("label", "", self.rows)

    def groups(self, by: By) -> tuple[Group, ...]:
        """The texts by what they have in common, those hurt most first."""
        return self._groups[by]

    @cached_property
    def _groups(self) -> dict[By, tuple[Group, ...]]:
        return {
            by: tuple(sorted(self._of(by), key=lambda g: (g.helped - g.hurt, -g.hurt, -g.count)))
            for by in KINDS
        }

    def _of(self, by: By) -> list[Group]:
        """Group texts; entities by label are counted themselves."""
        if by == "label" and self.task == "ner":
            counts: defaultdict[str, Ints] = defaultdict(lambda: np.zeros(3, int))
            for row in self.rows:
                for span in row.example.spans:
                    known, plain = span in row.known.said, span in row.plain.said
                    counts[span[2]] += (1, known > plain, known < plain)
            return [Group(by, label, "entities", *of.tolist()) for label, of in counts.items()]
        rows: dict[Triple | str, list[FileRow]] = {}
        for row in self.rows:
            for key in dict.fromkeys(OF_ROW[by](row)):
                rows.setdefault(key, []).append(row)
        return [Group.of(by, *group) for group in rows.items()]

    @cached_property
    def scores(self) -> FileScores:
        """The scores with knowledge and without, and how sure their difference is."""
        examples, metric = [row.example for row in self.rows], METRICS[self.task][0]
        read = {WITHOUT: [row.plain for row in self.rows], WITH: [row.known for row in self.rows]}
        counts = {}
        for way, answers in read.items():
            said: list[Any] = [answer.said for answer in answers]
            if self.task == "rank":  # one label's log-odds are those of the other, negated
                pairs = zip(examples, answers, strict=True)
                said = [a.score if e.label == RIGHT else -a.score for e, a in pairs]
            counts[way] = {0: sentence_counts(self.task, examples, said, set(), NO_KNOWLEDGE)}
        drawn = Resampled(counts, resamples=SCORE_RESAMPLES)
        main = {way: score for way in read if (score := drawn.score(way, metric)) is not None}
        difference = drawn.difference(WITH, WITHOUT, metric)
        return FileScores(metric.name, len(examples), main, difference)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON; of the rows those that changed."""
        return {
            "task": self.task,
            "graph": self.graph,
            "texts": len(self.rows),
            "of": self.total,
            "with_knowledge": len(self.with_knowledge),
            "changed": len(self.changed),
            "helped": self.whole.helped,
            "hurt": self.whole.hurt,
            "scores": self.scores.as_dict(),
            "groups": {by: [group.as_dict() for group in self.groups(by)] for by in KINDS},
            "rows": [row.as_dict() for row in self.changed],
        }

    def figure(self, by: By = "relation") -> Figure:
        """Draw for each group a bar to the right for helped and to the left for hurt."""
        groups = [group for group in self.groups(by) if group.helped or group.hurt]
        groups.sort(key=lambda group: -abs(group.helped - group.hurt))
        figure = signed_bars(
            [f"{clipped(group.name)}  (n = {group.count:,})" for group in groups],
            [[value for value in (group.helped, -group.hurt) if value] for group in groups],
            axis=f"{groups[0].unit if groups else 'texts'} by {by}",
            title=f"{len(self.changed):,} of {len(self.rows):,} texts changed",
            number=lambda value: f"{abs(value):g}",
            colours={"helped": BLUE, "hurt": ORANGE},
        )
        figure.axes[0].xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        return figure


def read_whole_file(
    pipeline: Pipeline, examples: Sequence[Example], graph: KnowledgeGraph, **reading: Any
) -> WholeFile:
    """Read labelled texts with a graph and without it; arguments and errors as :func:`each_row`."""
    assert pipeline.task is not None
    rows = each_row(pipeline, examples, graph, **reading)
    return WholeFile(pipeline.task.name, graph.name, tuple(rows), len(examples))


# A graph without what hurts


@dataclass(frozen=True, slots=True)
class Removed:
    """A triple taken out of a graph."""

    name: str  # the triple in a line
    texts: int  # in which it stood
    helped: int  # of these
    hurt: int


@dataclass(frozen=True, eq=False)
class Pruned(Plain):
    """A graph without what hurt."""

    graph: KnowledgeGraph  # what is left
    removed: tuple[Removed, ...]  # what went, that which hurt most first
    rule: Rule
    texts: int  # it was chosen on

    keys: ClassVar = "rule texts removed"

    def as_dict(self) -> dict[str, Any]:
        """What was taken out and why, as plain data, for JSON."""
        return {**super().as_dict(), "triples_left": len(self.graph), "note": str(self)}

    def __str__(self) -> str:
        return (
            f"every triple that hurt more texts than it helped, {self.rule}: "
            f"{len(self.removed)} of them, chosen on {self.texts} texts. It fits their accidents "
            "too, so it may not help on others."
        )


def prune(
    graph: KnowledgeGraph,
    rows: Sequence[FileRow],
    left_out: Iterable[LeftOut] = (),
    *,
    rule: Rule = "counts",
) -> Pruned:
    """Take out what hurt more texts than it helped.

    Args:
        graph, rows: the texts as they were read with this graph and without.
        left_out: for "leave one out": its results on the same texts.
        rule: "counts": it hurt the texts it stood in where less is wrong without
            any knowledge; "leave one out": where less is wrong without it alone.
    """
    if rule == "counts":
        left_out = (
            LeftOut(row.number, triple, 0.0, row.plain.wrong - row.known.wrong)
            for row in rows
            for triple in row.triples
        )
    saved = list(left_out)  # how much less is wrong with a triple, by text
    texts = Counter(item.triple for item in saved)
    helped = Counter(item.triple for item in saved if item.wrong > 0)
    hurt = Counter(item.triple for item in saved if item.wrong < 0)
    gone = [triple for triple in texts if hurt[triple] > helped[triple]]
    gone.sort(key=lambda triple: (helped[triple] - hurt[triple], -hurt[triple]))
    counts = texts, helped, hurt
    removed = tuple(Removed(name_of(triple), *(c[triple] for c in counts)) for triple in gone)
    left = graph.apply(*(Edit("remove", triple) for triple in gone))
    left.name = f"{graph.name} pruned"
    return Pruned(left, removed, rule, len(rows))
