"""Several ways of reading one labelled file: their scores, and a graph without what hurts.

A graph is pruned by one rule: a triple (or all triples of a relation) goes
where it hurt more texts than it helped, by ``least`` at least. By "counts" it
hurt the texts in which it stood and less is wrong without any knowledge; by
"leave one out" those in which less is wrong without this triple alone. The
choice fits the accidents of its file too, so the pruned graph is read beside
the full one on texts that had no part in it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, combinations
from typing import Any, Literal

from kbert_core.data.labelled import Example
from kbert_core.errors import OptionError
from kbert_core.experiments.counts import sentence_counts
from kbert_core.experiments.statistics import METRICS, Difference, Resampled, Score
from kbert_core.experiments.whole_file import Answer, FileRow, LeftOut
from kbert_core.explain.drawing import BLUE, Figure, signed_bars
from kbert_core.explain.result import name_of
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_core.labels import RIGHT
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_core.training.scores import class_scores, pair_scores, ranking_scores, span_scores

RESAMPLES = 2000
WITHOUT = "without a graph"
WAYS = (WITHOUT, "full graph", "pruned graph")
Rule = Literal["counts", "leave one out"]
What = Literal["triple", "relation"]
Key = Triple | str  # a triple, or the relation of many


@dataclass(frozen=True)
class FileScores:
    """Scores of several ways of reading the same texts.

    Attributes:
        metric: the one that is compared: F1, accuracy or MRR.
        texts: how many.
        all_scores: by way, as ``kbert evaluate`` gives them.
        main: by way the metric with 95 % of the resamples of the texts; a
            way is missing where there was nothing to count.
        differences: (way, earlier way) → the first minus the second, paired
            over the texts.
    """

    metric: str
    texts: int
    all_scores: Mapping[str, Mapping[str, Any]]
    main: Mapping[str, Score]
    differences: Mapping[tuple[str, str], Difference]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        ways = {}
        for way, scores in self.all_scores.items():
            main = self.main.get(way)
            interval = {"low": main and main.low, "high": main and main.high}
            ways[way] = {"scores": dict(scores), **interval}
        differences = [
            {"of": way, "minus": other, "mean": d.mean, "low": d.low, "high": d.high, "p": d.p}
            for (way, other), d in self.differences.items()
        ]
        counted = {"metric": self.metric, "texts": self.texts}
        return {**counted, "ways": ways, "differences": differences}

    def figure(self) -> Figure:
        """Draw a bar a way, with the interval as a line."""
        scores = self.main.values()
        return signed_bars(
            list(self.main),
            [[100 * score.mean] for score in scores],
            axis=f"{self.metric}, %; line: 95 % of resampled texts",
            title=f"{self.texts:,} texts",
            number=lambda value: f"{value:.1f}",
            colours={self.metric: BLUE},
            intervals=[(100 * score.low, 100 * score.high) for score in scores],
        )


def score_ways(
    task: str,
    labels: Sequence[str],
    examples: Sequence[Example],
    answers: Mapping[str, Sequence[Answer]],
) -> FileScores:
    """Score several ways of reading the same texts beside each other.

    Args:
        task: "ner", "classify", "pair" or "rank".
        labels: the model's.
        answers: by way, one for every example; the way to compare with first.
    """
    metric = METRICS[task][0]
    said = {way: _said(task, examples, of_way) for way, of_way in answers.items()}
    counts = {
        way: {0: sentence_counts(task, examples, of_way, set(), NO_KNOWLEDGE)}
        for way, of_way in said.items()
    }
    drawn = Resampled(counts, resamples=RESAMPLES)
    scores = {way: score for way in answers if (score := drawn.score(way, metric)) is not None}
    differences = {
        (way, other): difference
        for other, way in combinations(scores, 2)
        if (difference := drawn.difference(way, other, metric)) is not None
    }
    all_scores = {way: _scores(task, labels, examples, of_way) for way, of_way in said.items()}
    return FileScores(metric.name, len(examples), all_scores, scores, differences)


def score_three(
    task: str,
    labels: Sequence[str],
    examples: Sequence[Example],
    answers: Sequence[tuple[Answer, Answer, Answer]],
) -> FileScores:
    """Score what ``each_of_three`` read; for as many texts as were."""
    by_way = {way: [answer[number] for answer in answers] for number, way in enumerate(WAYS)}
    return score_ways(task, labels, examples[: len(answers)], by_way)


def _said(task: str, examples: Sequence[Example], answers: Sequence[Answer]) -> list[Any]:
    """Spans, labels, or how sure it is that a candidate answers: what scores are made of."""
    if task == "rank":  # of two labels, the log-odds of one are those of the other, negated
        pairs = zip(examples, answers, strict=True)
        return [a.score if e.label == RIGHT else -a.score for e, a in pairs]
    return [answer.said for answer in answers]


def _scores(
    task: str, labels: Sequence[str], examples: Sequence[Example], said: Sequence[Any]
) -> dict[str, Any]:
    gold = [example.label or "" for example in examples]
    if task == "ner":
        return span_scores([example.spans for example in examples], said)
    if task == "rank":
        right = [label == RIGHT for label in gold]
        return ranking_scores([example.group for example in examples], right, said)
    return pair_scores(gold, said, labels) if task == "pair" else class_scores(gold, said)


# A graph without what hurts


@dataclass(frozen=True, slots=True)
class Removed:
    """What was taken out of a graph.

    Attributes:
        name: the triple in a line, or the relation.
        triples: how many triples of the graph went with it.
        texts: in which it stood.
        helped, hurt: of these.
    """

    name: str
    triples: int
    texts: int
    helped: int
    hurt: int


@dataclass(frozen=True, eq=False)
class Pruned:
    """A graph without what hurt.

    Attributes:
        graph: what is left.
        removed: what went, that which hurt most first.
        rule, what, least: how it was chosen.
        texts: how many texts it was chosen on.
    """

    graph: KnowledgeGraph
    removed: tuple[Removed, ...]
    rule: Rule
    what: What
    least: int
    texts: int

    def as_dict(self) -> dict[str, Any]:
        """What was taken out and why, as plain data, for JSON."""
        return {
            **{name: getattr(self, name) for name in ("rule", "what", "least", "texts")},
            "removed": [asdict(removed) for removed in self.removed],
            "triples_left": len(self.graph),
            "note": str(self),
        }

    def __str__(self) -> str:
        least = f"by {self.least} texts or more" if self.least > 1 else "than it helped"
        return (
            f"every {self.what} that hurt more texts {least}, {self.rule}: "
            f"{len(self.removed)} of them, chosen on {self.texts} texts. It fits their accidents "
            "too, so it may not help on others."
        )


def prune(
    graph: KnowledgeGraph,
    rows: Sequence[FileRow],
    left_out: Iterable[LeftOut] = (),
    *,
    rule: Rule = "counts",
    what: What = "triple",
    least: int = 1,
) -> Pruned:
    """Take out what hurt more texts than it helped.

    Args:
        graph: the one the texts were read with.
        rows: the texts, read with it and without.
        left_out: for "leave one out": its results on the same texts.
        rule: what counts as hurt, see the module.
        what: single triples, or relations as a whole.
        least: how many more texts must be hurt than helped.

    Raises:
        OptionError: ``least`` is below 1.
    """
    if least < 1:
        raise OptionError(f"least is {least}, expected at least 1: more hurt than helped.")

    def key_of(triple: Triple) -> Key:
        return triple if what == "triple" else triple.relation

    saved: Counter[tuple[int, Key]] = Counter()  # (text, key) → how much less is wrong with it
    if rule == "counts":
        for row in rows:
            for triple in row.triples:
                saved[row.number, key_of(triple)] = row.plain.wrong - row.known.wrong
    else:
        for item in left_out:
            saved[item.number, key_of(item.triple)] += item.wrong
    helped: Counter[Key] = Counter(key for (_, key), saves in saved.items() if saves > 0)
    hurt: Counter[Key] = Counter(key for (_, key), saves in saved.items() if saves < 0)
    texts: Counter[Key] = Counter(key for _, key in saved)
    gone = [key for key in texts if hurt[key] - helped[key] >= least]
    gone.sort(key=lambda key: (helped[key] - hurt[key], -hurt[key]))
    members: dict[Key, list[Triple]] = {key: [] for key in gone}
    alone = [key for key in gone if isinstance(key, Triple)]
    for triple in graph if what == "relation" and gone else alone:
        if key_of(triple) in members:
            members[key_of(triple)].append(triple)
    removed = tuple(
        Removed(key_name(key), len(own), texts[key], helped[key], hurt[key])
        for key, own in members.items()
    )
    left = without_triples(graph, chain.from_iterable(members.values()))
    left.name = f"{graph.name} pruned"
    return Pruned(left, removed, rule, what, least, len(rows))


def without_triples(graph: KnowledgeGraph, gone: Iterable[Triple]) -> KnowledgeGraph:
    """Return a graph without some of its triples, taken out in one go."""
    out = set(gone)
    changed = {
        entity: tuple(triple for triple in graph.triples_of(entity) if triple not in out)
        for entity in {normalise_name(triple.head) for triple in out}
    }
    return graph.updated(changed)


def key_name(key: Key) -> str:
    """A triple in a line, or the relation."""
    return name_of(key) if isinstance(key, Triple) else key
