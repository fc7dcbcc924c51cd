"""Suites of one task side by side: the rows they share, a column a suite."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kbert_core.errors import ExperimentError
from kbert_core.training.experiment.statistics import Difference, Metric
from kbert_core.training.experiment.suite import Baseline, Run, SideBySide
from kbert_core.training.experiment.tables import Pair, Tables
from kbert_core.training.experiment.text import MISSING, NONE, score_text, signed, table

HOW_TO_READ = (
    "The rows that these experiments share, trained alike; details and intervals stand below, with "
    "each. In brackets: the difference from the run without knowledge on the same seeds."
)
TEST_SETS: dict[str, tuple[Metric, ...]] = {  # by task: what makes a test set easy or hard
    "ner": (
        Metric("mentions not labelled in training", {"unseen": 1}, {"gold": 1}),
        Metric("of these known to the graph", {"covered": 1}, {"unseen": 1}),
    ),
}


@dataclass(frozen=True)
class Group:
    """Suites shown together.

    Attributes:
        name: of the suite that asks for it.
        declared: what that suite says.
        members: what each suite is called here, and its results; in order.
        absent: suites named that aren't in this report.
    """

    name: str
    declared: SideBySide
    members: tuple[tuple[str, Tables], ...]
    absent: tuple[str, ...] = ()

    @property
    def rows(self) -> list[str]:
        """Names that at least two of the suites have, in the order of the first."""
        names = Counter(row.name for _, tables in self.members for row in tables.suite.rows)
        return [name for name, count in names.items() if count > 1]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The main metrics of their task."""
        return self.members[0][1].metrics[:2]

    def seeds(self, tables: Tables) -> str:
        """How many seeds there are of all its rows alike, as in "1 of 3 seeds".

        Empty where all are there, none is, or rows differ.
        """
        of_rows = {
            _seeds(tables, row)
            for row in tables.suite.rows
            if row.name in self.rows and row.name in tables.results
        }
        return of_rows.pop() if len(of_rows) == 1 else ""


def _seeds(tables: Tables, row: Run | Baseline) -> str:
    if row.name in tables.stale:
        return "stale"
    done, planned = tables.done(row), len(row.seeds)
    return f"{done} of {planned} seeds" if done < planned else ""


def groups(suites: Sequence[Tables]) -> list[Group]:
    """The groups that suites of a report ask for and of which two at least have results.

    Raises:
        ExperimentError: they are of different tasks.
    """
    known = {tables.suite.name: tables for tables in suites}
    found = []
    for tables in suites:
        declared = tables.suite.side_by_side
        if declared is None:
            continue
        members = {name: known[name] for name in declared.suites if name in known}
        for name, member in members.items():
            if member.suite.task != tables.suite.task:
                raise ExperimentError(
                    f"{tables.suite.path}: side_by_side has '{name}', whose task is "
                    f"'{member.suite.task}', beside '{tables.suite.task}'. Take it out."
                )
        absent = tuple(name for name in declared.suites if name not in known)
        group = Group(
            tables.suite.name,
            declared,
            tuple((declared.suites[name], member) for name, member in members.items()),
            absent,
        )
        if sum(bool(member.results) for member in members.values()) > 1 and group.metrics:
            found.append(group)
    return found


def section(group: Group, picture: str) -> list[str]:
    """The section's Markdown.

    Args:
        picture: where it stands, from the report.
    """
    title = group.declared.title
    absent = f"Not in this report: {', '.join(group.absent)}." if group.absent else ""
    return [
        f"## {title}",
        HOW_TO_READ,
        f"![{title}: scores on test]({picture})",
        _test_sets(group),
        *(_scores(group, metric) for metric in group.metrics),
        absent,
        group.declared.about,
    ]


def _scores(group: Group, metric: Metric) -> str:
    differences = [tables.differences(metric) for _, tables in group.members]
    said = [group.seeds(tables) for _, tables in group.members]
    rows = [
        [
            name,
            *(
                _cell(tables, name, metric, found, said_above)
                for (_, tables), found, said_above in zip(
                    group.members, differences, said, strict=True
                )
            ),
        ]
        for name in group.rows
    ]
    head = [
        called + (f" ({seeds})" if seeds else "")
        for (called, _), seeds in zip(group.members, said, strict=True)
    ]
    return table([f"{metric.name}, %", *head], rows)


def _test_sets(group: Group) -> str:
    """What the test sets are like; nothing for a task of which nothing is said."""
    facts = TEST_SETS.get(group.members[0][1].suite.task, ())
    rows = [[fact.name, *(_fact(tables, fact) for _, tables in group.members)] for fact in facts]
    return (
        table(["of each test set, %", *(called for called, _ in group.members)], rows)
        if rows
        else ""
    )


def _fact(tables: Tables, fact: Metric) -> str:
    """Of the row of most seeds: it is the same for every row."""
    if not tables.results:
        return MISSING
    return score_text(tables.score(max(tables.results, key=lambda r: len(tables.results[r])), fact))


def _cell(
    tables: Tables,
    name: str,
    metric: Metric,
    differences: Mapping[Pair, Difference],
    said_above: str,
) -> str:
    row = next((row for row in tables.suite.rows if row.name == name), None)
    if row is None:
        return NONE
    score = tables.score(name, metric)
    if score is None:
        return MISSING
    said = [score_text(score)]
    if (found := differences.get(Pair(name, row.compare_with or ""))) is not None:
        said.append(f"({signed(100 * found.mean)})")
    seeds = _seeds(tables, row)
    said += [f"*{seeds}*"] if seeds != said_above else []
    return " ".join(said)
