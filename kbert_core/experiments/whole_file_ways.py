"""Several ways of reading one labelled file: their scores, and a graph without what hurts.

A graph is pruned by one rule: a triple (or all triples of a relation) goes
where it hurt more texts than it helped, by ``least`` at least. What counts as
hurt:

- "counts": texts in which it stood, and in which less is wrong without any
  knowledge. Triples of one text share its verdict.
- "leave one out": texts in which less is wrong without this triple alone.

A choice made on one file fits that file's accidents too: the pruned graph is
read beside the full one on texts that had no part in the choice, and may well
not be better there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

from kbert_core.data.labelled import Example
from kbert_core.errors import OptionError
from kbert_core.experiments.counts import sentence_counts
from kbert_core.experiments.statistics import METRICS, Difference, Resampled, Score
from kbert_core.experiments.whole_file import Answer, FileRow, LeftOut
from kbert_core.explain.drawing import BLUE, INK, drawing, tidy
from kbert_core.explain.result import name_of
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_core.labels import RIGHT
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_core.training.scores import class_scores, pair_scores, ranking_scores, span_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESAMPLES = 2000
WAYS = ("without a graph", "full graph", "pruned graph")
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
        ways = {
            way: {
                "scores": dict(scores),
                "low": self.main[way].low if way in self.main else None,
                "high": self.main[way].high if way in self.main else None,
            }
            for way, scores in self.all_scores.items()
        }
        differences = []
        for (way, other), difference in self.differences.items():
            numbers = asdict(difference)
            shown = {name: numbers[name] for name in ("mean", "low", "high", "p")}
            differences.append({"of": way, "minus": other, **shown})
        return {
            "metric": self.metric,
            "texts": self.texts,
            "ways": ways,
            "differences": differences,
        }

    def figure(self) -> "Figure":
        """Draw a point a way, with the interval as a line."""
        with drawing(6.4, 1.2 + 0.42 * max(1, len(self.main))) as figure:
            panel = figure.subplots()
            for place, score in enumerate(self.main.values()):
                mean, low, high = (100 * value for value in (score.mean, score.low, score.high))
                panel.plot([low, high], [place, place], color=INK, linewidth=1.6)
                panel.plot(mean, place, "o", color=BLUE, markersize=8)
                panel.annotate(
                    f"{mean:.1f}",
                    (mean, place),
                    xytext=(0, 8),
                    textcoords="offset points",
                    ha="center",
                    fontsize=9,
                )
            panel.set_yticks(range(len(self.main)), list(self.main))
            panel.invert_yaxis()
            panel.margins(x=0.1, y=0.4)
            panel.set_xlabel(f"{self.metric}, %; line: 95 % of resampled texts")
            tidy(panel, "x")
        return figure


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


def _said(task: str, examples: Sequence[Example], answers: Sequence[Answer]) -> list[Any]:
    """Spans, labels, or how sure it is that a candidate answers: what scores are made of."""
    if task == "rank":  # of two labels, the log-odds of one are those of the other, negated
        pairs = zip(examples, answers, strict=True)
        return [a.score if e.label == RIGHT else -a.score for e, a in pairs]
    return [answer.spans if task == "ner" else answer.label for answer in answers]


def _scores(
    task: str, labels: Sequence[str], examples: Sequence[Example], said: Sequence[Any]
) -> dict[str, Any]:
    gold = [example.label or "" for example in examples]
    if task == "ner":
        return span_scores([example.spans for example in examples], said)
    if task == "rank":
        right = [example.label == RIGHT for example in examples]
        return ranking_scores([example.group for example in examples], right, said)
    return pair_scores(gold, said, labels) if task == "pair" else class_scores(gold, said)


def score_three(
    pipeline: Pipeline,
    examples: Sequence[Example],
    answers: Sequence[tuple[Answer, Answer, Answer]],
) -> FileScores:
    """Score what ``each_of_three`` read; for as many texts as were."""
    assert pipeline.task is not None
    by_way = {way: [answer[number] for answer in answers] for number, way in enumerate(WAYS)}
    labels = tuple(pipeline.labels.values())
    return score_ways(pipeline.task.name, labels, examples[: len(answers)], by_way)


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
    helped, hurt, texts = _counted(rows, left_out, rule, what)
    gone = [key for key in texts if hurt[key] - helped[key] >= least]
    gone.sort(key=lambda key: (helped[key] - hurt[key], -hurt[key]))
    members: dict[Key, list[Triple]] = {key: [] for key in gone}
    if what == "relation" and gone:
        for triple in graph:
            if triple.relation in members:
                members[triple.relation].append(triple)
    else:
        members = {key: [key] for key in gone if isinstance(key, Triple)}
    removed = [
        Removed(
            name_of(key) if isinstance(key, Triple) else key,
            len(members[key]),
            texts[key],
            helped[key],
            hurt[key],
        )
        for key in gone
    ]
    left = without_triples(graph, [triple for key in gone for triple in members[key]])
    left.name = f"{graph.name} pruned"
    return Pruned(left, tuple(removed), rule, what, least, len(rows))


def _counted(
    rows: Sequence[FileRow], left_out: Iterable[LeftOut], rule: Rule, what: What
) -> tuple[Counter[Key], Counter[Key], Counter[Key]]:
    """Texts helped, hurt, and all, by triple or relation."""

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
    return helped, hurt, Counter(key for _, key in saved)


def without_triples(graph: KnowledgeGraph, gone: Iterable[Triple]) -> KnowledgeGraph:
    """Return a graph without some of its triples, taken out in one go."""
    out = set(gone)
    changed = {
        entity: tuple(triple for triple in graph.triples_of(entity) if triple not in out)
        for entity in {normalise_name(triple.head) for triple in out}
    }
    return graph.updated(changed)
