"""Suites of one task side by side: the rows they share, a column a suite."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kbert_core.errors import ExperimentError
from kbert_core.experiments.keys import Baseline, Run, SideBySide
from kbert_core.experiments.statistics import Difference, Metric
from kbert_core.experiments.suite import Suite
from kbert_core.experiments.tables import Pair, Tables
from kbert_core.experiments.text import (
    MISSING,
    NONE,
    counts_text,
    score_text,
    signed,
    table,
)

ABOUT_ROWS = (
    "The rows that these experiments share by name; how they were trained, and intervals, stand "
    "below, with each. In brackets: the difference from the row that a row is compared with there, "
    "on the same seeds."
)
log = logging.getLogger(__name__)
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
        return self.members[0][1].main_metrics

    def seeds_text(self, tables: Tables) -> str:
        """What is missing of all its rows alike, as in "1 of 3 seeds".

        Empty where nothing is, or rows differ.
        """
        of_rows = {
            seeds_text(tables, row)
            for row in tables.suite.rows
            if row.name in self.rows and row.name in tables.results
        }
        return of_rows.pop() if len(of_rows) == 1 else ""


def seeds_text(tables: Tables, row: Run | Baseline) -> str:
    """What a row's figures lack: "stale", or as in "1 of 3 seeds"; empty where nothing."""
    if row.name in tables.stale:
        return "stale"
    done, planned = tables.done(row), len(row.seeds)
    return f"{done} of {planned} seeds" if done < planned else ""


def check_tasks(suites: Sequence[Suite]) -> None:
    """Refuse suites of different tasks side by side.

    Raises:
        ExperimentError: naming one.
    """
    for suite in suites:
        beside = suite.side_by_side.suites if suite.side_by_side else ()
        for other in suites:
            if other.name in beside and other.task != suite.task:
                raise ExperimentError(
                    f"{suite.path}: side_by_side has '{other.name}', whose task is "
                    f"'{other.task}', beside '{suite.task}'. Take it out."
                )


def groups(suites: Sequence[Tables]) -> list[Group]:
    """The groups that suites of a report ask for and of which two at least have results."""
    known = {tables.suite.name: tables for tables in suites}
    found = []
    for tables in suites:
        declared = tables.suite.side_by_side
        if declared is None:
            continue
        members = {name: known[name] for name in declared.suites if name in known}
        absent = tuple(name for name in declared.suites if name not in known)
        group = Group(
            tables.suite.name,
            declared,
            tuple((declared.suites[name], member) for name, member in members.items()),
            absent,
        )
        if len(suites) > 1 and len(members) < 2:
            log.warning(
                "%s: nothing to stand side by side: %s isn't among the suites given",
                *(tables.suite.path, ", ".join(absent)),
            )
        with_results = [member for member in members.values() if member.results]
        if len(with_results) > 1 and group.rows and group.metrics:
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
        ABOUT_ROWS,
        f"![{title}: scores on test]({picture})",
        _data(group),
        *(_scores(group, metric) for metric in group.metrics),
        absent,
        group.declared.about,
    ]


def _scores(group: Group, metric: Metric) -> str:
    columns = [[f"{metric.name}, %", *group.rows]]
    for called, tables in group.members:
        lacking = group.seeds_text(tables)
        differences = tables.differences(metric)
        cells = [_cell(tables, name, metric, differences, lacking) for name in group.rows]
        columns.append([called + (f" ({lacking})" if lacking else ""), *cells])
    lines = list(zip(*columns, strict=True))
    return table(lines[0], lines[1:])


def _data(group: Group) -> str:
    """What the suites' data are like."""
    rows = [["to train on", *(_to_train_on(tables) for _, tables in group.members)]]
    rows += [
        [f"{fact.name}, %", *(_fact(tables, fact) for _, tables in group.members)]
        for fact in TEST_SETS.get(group.members[0][1].suite.task, ())
    ]
    return table(["data", *(called for called, _ in group.members)], rows)


def _to_train_on(tables: Tables) -> str:
    results = [result for of in tables.results.values() for result in of.values()]
    sizes = [r["examples"]["train"] for r in results if "train" in r.get("examples", {})]
    return counts_text(sizes) if sizes else MISSING


def _fact(tables: Tables, fact: Metric) -> str:
    """Of the row of most seeds, as it is the same for every row; of a stale one if need be."""
    rows = sorted(
        tables.results, key=lambda name: (name not in tables.stale, len(tables.results[name]))
    )
    return score_text(tables.score(rows[-1], fact)) if rows else MISSING


def _cell(
    tables: Tables,
    name: str,
    metric: Metric,
    differences: Mapping[Pair, Difference],
    said_in_head: str,
) -> str:
    row = next((row for row in tables.suite.rows if row.name == name), None)
    if row is None:
        return NONE
    score = tables.score(name, metric)
    if score is None:
        return MISSING
    parts = [score_text(score)]
    found = differences.get(Pair(name, row.compare_with or ""))
    if found is not None and row.compare_with not in tables.stale:
        parts.append(f"({signed(100 * found.mean)})")
    lacking = seeds_text(tables, row)
    parts += [f"*{lacking}*"] if lacking != said_in_head else []
    return " ".join(parts)
