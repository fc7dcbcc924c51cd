"""Where knowledge helps and where it hurts, over a whole labelled file; and how sure that is.

By label what is counted is texts (of named entities: gold entities found and
lost); by entity, relation and triple it is the texts in which such a triple
stood. Several triples of one text share its verdict, so these counts say where
to look, and leaving the triples out one by one says which it was.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from kbert_core.data.labelled import Example
from kbert_core.experiments.whole_file import FileRow, Verdict, each_row
from kbert_core.experiments.whole_file_ways import WITHOUT, FileScores, Key, key_name, score_ways
from kbert_core.explain.drawing import BLUE, ORANGE, Figure, signed_bars
from kbert_core.explain.result import clipped, name_of, plain
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple
from kbert_core.pipeline import Pipeline

By = Literal["label", "entity", "relation", "triple"]
KINDS: tuple[By, ...] = ("label", "entity", "relation", "triple")
WITH = "with the graph"
FEWEST = 5  # texts for an interval of the mean gain
RESAMPLES = 1000
LEVEL = 0.95
MOST_DRAWN = 20  # groups in a figure
Interval = tuple[float, float]


@dataclass(frozen=True)
class Group:
    """What knowledge did to the texts that have something in common.

    Attributes:
        by: what they have in common.
        name: the label, the entity, the relation, or the triple in a line.
        unit: what is counted: "texts", or "entities" by label of named entities.
        count: how many.
        helped, hurt: of them; the others are neutral.
        gains: of every text, in nats; empty where entities are counted.
        triple: for a triple.
    """

    by: By
    name: str
    unit: Literal["texts", "entities"]
    count: int
    helped: int
    hurt: int
    gains: tuple[float, ...] = ()
    triple: Triple | None = None

    @classmethod
    def of(
        cls, by: By, name: str, rows: Sequence[FileRow], triple: Triple | None = None
    ) -> "Group":
        """Count texts."""
        verdicts = Counter(row.verdict for row in rows)
        helped, hurt = verdicts[Verdict.HELPED], verdicts[Verdict.HURT]
        gains = tuple(row.gain for row in rows)
        return cls(by, name, "texts", len(rows), helped, hurt, gains, triple)

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

    @cached_property
    def gain_interval(self) -> Interval | None:
        """95 % of resamples of the texts, seeded; None of fewer than five."""
        if len(self.gains) < FEWEST:
            return None
        if len(set(self.gains)) == 1:
            return self.gains[0], self.gains[0]
        from scipy.stats import bootstrap  # slow to start

        found = bootstrap(
            (self.gains,),
            lambda values, axis: values.mean(axis=axis),
            n_resamples=RESAMPLES,
            confidence_level=LEVEL,
            method="percentile",
            rng=0,
        ).confidence_interval
        return float(found.low), float(found.high)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        names = (
            *("by", "name", "unit", "count", "helped", "hurt", "neutral", "helped_interval"),
            *("hurt_interval", "verdict", "mean_gain", "gain_interval"),
        )
        data = {name: getattr(self, name) for name in names}
        return data if self.triple is None else {**data, "triple": plain(self.triple)}


def wilson(count: int, total: int) -> Interval:
    """95 % of a share, from 0 to 1; all of it where nothing is known."""
    if not total:
        return 0.0, 1.0
    from scipy.stats import binomtest  # slow to start

    found = binomtest(count, total).proportion_ci(LEVEL, method="wilson")
    return float(found.low), float(found.high)


@dataclass(frozen=True)
class WholeFile:
    """A labelled file, read with knowledge and without.

    Attributes:
        task: a key of ``TASKS``.
        labels: the model's.
        graph: what the graph is called.
        rows: the texts, in order.
        total: how many the file has; more than ``rows`` where it wasn't read
            to the end.
    """

    task: str
    labels: tuple[str, ...]
    graph: str
    rows: tuple[FileRow, ...]
    total: int

    @cached_property
    def with_knowledge(self) -> tuple[FileRow, ...]:
        """The texts in which a triple stood; all others read the same both ways."""
        return tuple(row for row in self.rows if row.hung)

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
        if by not in self._groups:
            groups = self._by_label() if by == "label" else self._by_triple(by)
            groups.sort(key=lambda group: (group.helped - group.hurt, -group.hurt, -group.count))
            self._groups[by] = tuple(groups)
        return self._groups[by]

    @cached_property
    def _groups(self) -> dict[By, tuple[Group, ...]]:
        """Those made so far, as their intervals take a while."""
        return {}

    def _by_label(self) -> list[Group]:
        """Texts by gold label; of named entities gold entities, found and lost."""
        if self.task != "ner":
            of_label: dict[str, list[FileRow]] = {}
            for row in self.rows:
                of_label.setdefault(row.example.label or "", []).append(row)
            return [Group.of("label", label, rows) for label, rows in of_label.items()]
        gold = Counter(label for row in self.rows for *_, label in row.example.spans)
        helped = Counter(label for row in self.changed for *_, label in row.found)
        hurt = Counter(label for row in self.changed for *_, label in row.lost)
        return [
            Group("label", label, "entities", count, helped[label], hurt[label])
            for label, count in gold.items()
        ]

    def _by_triple(self, by: By) -> list[Group]:
        """Texts by the entities, relations or triples that stood in them."""
        groups: dict[Key, list[FileRow]] = {}
        for row in self.with_knowledge:
            part = "head" if by == "entity" else "relation"
            keys = [t if by == "triple" else getattr(t, part) for t in row.triples]
            for key in dict.fromkeys(keys):
                groups.setdefault(key, []).append(row)
        triples = {key: key if isinstance(key, Triple) else None for key in groups}
        return [Group.of(by, key_name(key), rows, triples[key]) for key, rows in groups.items()]

    @cached_property
    def scores(self) -> FileScores:
        """The scores with knowledge and without, and how sure their difference is."""
        answers = {
            WITHOUT: [row.plain for row in self.rows],
            WITH: [row.known for row in self.rows],
        }
        return score_ways(self.task, self.labels, [row.example for row in self.rows], answers)

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
            "rows": [row_dict(row) for row in self.changed],
        }

    def figure(self, by: By = "relation") -> Figure:
        """Draw for each group a bar to the right for helped and to the left for hurt."""
        groups = [group for group in self.groups(by) if group.helped or group.hurt]
        half = MOST_DRAWN // 2
        shown = groups if len(groups) <= MOST_DRAWN else [*groups[:half], *groups[-half:]]
        more = f", {len(shown)} of {len(groups)} groups" if len(shown) < len(groups) else ""
        figure = signed_bars(
            [f"{clipped(group.name)}  (n = {group.count:,})" for group in shown],
            [[value for value in (group.helped, -group.hurt) if value] for group in shown],
            axis=f"{shown[0].unit if shown else 'texts'} by {by}",
            title=f"{len(self.changed):,} of {len(self.rows):,} texts changed{more}",
            number=lambda value: f"{abs(value):g}",
            colours={"helped": BLUE, "hurt": ORANGE},
        )
        figure.axes[0].xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        return figure


def read_whole_file(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    rows: Iterable[FileRow] | None = None,
    **reading: Any,
) -> WholeFile:
    """Read labelled texts with a graph and without, and count where it helps and hurts.

    Args:
        rows: where they were read already, see :func:`each_row`.
        reading: ``config`` and its fields, as for a call of the pipeline.

    Raises:
        DataError: a label that the model doesn't know, or texts to fill in.
        KBertError: a text or option that can't be used.
    """
    assert pipeline.task is not None
    rows = each_row(pipeline, examples, graph, **reading) if rows is None else rows
    labels = tuple(pipeline.labels.values())
    return WholeFile(pipeline.task.name, labels, graph.name, tuple(rows), len(examples))


def row_dict(row: FileRow) -> dict[str, Any]:
    """A text, what is right, what was said, as plain data."""
    gold = row.example.spans if row.known.label is None else row.example.label
    return {
        "number": row.number,
        "text": " ‖ ".join(row.example.sentences),
        "gold": answer_text(row, gold),
        "with_knowledge": answer_text(row, row.known.said),
        "without": answer_text(row, row.plain.said),
        "verdict": str(row.verdict),
        "changed": row.changed,
        "gain": row.gain,
        "wrong_with": row.known.wrong,
        "wrong_without": row.plain.wrong,
        "triples": [name_of(triple) for triple in row.triples],
    }


def answer_text(row: FileRow, answer: Any) -> str:
    """A label, or entities with their text, in a line."""
    if answer is None or isinstance(answer, str):
        return answer or ""
    text = row.example.sentences[0]
    return ", ".join(f"{text[start:end]} {label}" for start, end, label in sorted(answer))
