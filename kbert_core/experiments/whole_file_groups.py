"""Where knowledge helps and where it hurts, over a whole labelled file; and how sure that is.

By label what is counted is texts (of named entities: gold entities found and
lost); by entity, relation and triple it is the texts in which such a triple
stood. Several triples of one text share its verdict, so these counts say where
to look, and leaving the triples out one by one says which it was.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

from kbert_core.data.labelled import Example
from kbert_core.experiments.whole_file import FileRow, Verdict, each_row
from kbert_core.experiments.whole_file_ways import FileScores, score_ways
from kbert_core.explain.drawing import BLUE, INK, ORANGE, drawing, legend_below, tidy
from kbert_core.explain.result import clipped, name_of, plain
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple
from kbert_core.pipeline import Pipeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

By = Literal["label", "entity", "relation", "triple"]
KINDS: tuple[By, ...] = ("label", "entity", "relation", "triple")
WITHOUT, WITH = "without a graph", "with the graph"
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
        gains: by how much knowledge raised the score of what is right, in
            nats, of every text; empty where entities are counted.
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

    @property
    def net(self) -> int:
        """Helped minus hurt."""
        return self.helped - self.hurt

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

    def flat_dict(self) -> dict[str, Any]:
        """The same as one row of a table: each interval in two columns."""
        row = self.as_dict()
        row.pop("triple", None)
        for name in ("helped_interval", "hurt_interval", "gain_interval"):
            row[f"{name}_low"], row[f"{name}_high"] = row.pop(name) or (None, None)
        return row


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
            found = self._by_label() if by == "label" else self._by_triple(by)
            found.sort(key=lambda group: (group.net, -group.hurt, -group.count))
            self._groups[by] = tuple(found)
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
        found: dict[str, tuple[Triple | None, list[FileRow]]] = {}
        for row in self.with_knowledge:
            if by == "triple":
                names: dict[str, Triple | None] = {name_of(t): t for t in row.triples}
            else:
                part = "head" if by == "entity" else "relation"
                names = dict.fromkeys(getattr(triple, part) for triple in row.triples)
            for name, triple in names.items():
                found.setdefault(name, (triple, []))[1].append(row)
        return [Group.of(by, name, rows, triple) for name, (triple, rows) in found.items()]

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

    def figure(self, by: By = "relation") -> "Figure":
        """Draw for each group a bar to the right for helped and to the left for hurt."""
        groups = [group for group in self.groups(by) if group.helped or group.hurt]
        return _drawn(groups, by, f"{len(self.changed):,} of {len(self.rows):,} texts changed")


def read_whole_file(
    pipeline: Pipeline, examples: Sequence[Example], graph: KnowledgeGraph, **reading: Any
) -> WholeFile:
    """Read labelled texts with a graph and without, and count where it helps and hurts.

    Args:
        reading: ``config`` and its fields, as for a call of the pipeline.

    Raises:
        DataError: a label that the model doesn't know, or texts to fill in.
        KBertError: a text or option that can't be used.
    """
    rows = each_row(pipeline, examples, graph, **reading)
    return whole_file_of(pipeline, rows, graph, len(examples))


def whole_file_of(
    pipeline: Pipeline, rows: Iterable[FileRow], graph: KnowledgeGraph, total: int
) -> WholeFile:
    """Put rows that were read elsewhere together; see :func:`read_whole_file`."""
    assert pipeline.task is not None
    labels = tuple(pipeline.labels.values())
    return WholeFile(pipeline.task.name, labels, graph.name, tuple(rows), total)


def wilson(count: int, total: int) -> Interval:
    """95 % of a share, from 0 to 1; all of it where nothing is known."""
    if not total:
        return 0.0, 1.0
    from scipy.stats import binomtest  # slow to start

    found = binomtest(count, total).proportion_ci(LEVEL, method="wilson")
    return float(found.low), float(found.high)


@lru_cache(4096)
def by_chance(changed: int) -> float:
    """Return how likely a group has a verdict other than neutral though knowledge did nothing.

    The probability that Wilson's interval of the share of hurt leaves out a
    half, where each of the changed fell to helped or hurt as a coin does.
    """
    from scipy.stats import binom  # slow to start

    low, high = -1, changed // 2  # the largest count whose interval lies below a half
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if wilson(middle, changed)[1] < 0.5 else (low, middle - 1)
    return 2 * float(binom.cdf(low, changed, 0.5)) if low >= 0 else 0.0


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


def _drawn(groups: Sequence[Group], by: By, title: str) -> "Figure":
    shown = [*groups[: MOST_DRAWN // 2], *groups[MOST_DRAWN // 2 :][-MOST_DRAWN // 2 :]]
    with drawing(8.4, 1.5 + 0.36 * max(1, len(shown))) as figure:
        panel = figure.subplots()
        for place, group in enumerate(shown):
            for value, side, colour in ((group.helped, 1, BLUE), (group.hurt, -1, ORANGE)):
                panel.barh(place, side * value, height=0.62, color=colour)
                panel.annotate(
                    str(value),
                    (side * value, place),
                    xytext=(5 * side, 0),
                    textcoords="offset points",
                    va="center",
                    ha="left" if side > 0 else "right",
                    fontsize=9,
                )
        panel.axvline(0, color=INK, linewidth=1)
        panel.set_yticks(
            range(len(shown)), [f"{clipped(g.name)}  (n = {g.count:,})" for g in shown]
        )
        panel.invert_yaxis()
        panel.margins(x=0.12)
        panel.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        unit = shown[0].unit if shown else "texts"
        panel.set_xlabel(f"{unit} by {by}")
        more = f", {len(shown)} of {len(groups)} groups" if len(shown) < len(groups) else ""
        figure.suptitle(title + more, fontsize=10)
        tidy(panel, "x")
        legend_below(figure, {"hurt": ORANGE, "helped": BLUE})
    return figure
