"""What several suites say together: rows side by side, and rows that two of them ran alike."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kbert_core.errors import OptionError
from kbert_lab.study.statistics import Difference, Metric, Resampled
from kbert_lab.suites.results import Tables, canonical, without_defaults
from kbert_lab.suites.suite import SideBySide


@dataclass(frozen=True)
class Group:
    """Suites shown side by side: the rows they share, a column a suite."""

    name: str  # of the suite that asks for it
    declared: SideBySide  # what that suite says
    members: tuple[tuple[str, Tables], ...]  # what each is called here, and its results; in order

    @property
    def rows(self) -> list[str]:
        """Names that at least two of the suites have, in the order of the first."""
        names = Counter(row.name for _, tables in self.members for row in tables.suite.rows)
        return [name for name, count in names.items() if count > 1]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The main metrics of their task."""
        return self.members[0][1].main_metrics

    @property
    def seeds(self) -> int:
        """The most that one of the suites asks for."""
        return max(len(tables.suite.seeds) for _, tables in self.members)

    def lacking(self, tables: Tables) -> str:
        """What all rows of a suite lack alike, see ``Tables.lacking``; empty where they differ."""
        rows = [row for row in tables.suite.rows if row.name in self.rows]
        lacking = {tables.lacking(row) for row in rows if row.name in tables.results}
        return lacking.pop() if len(lacking) == 1 else ""


def groups(suites: Sequence[Tables]) -> list[Group]:
    """The groups that suites of a report ask for and of which two at least have results."""
    known, made = {tables.suite.name: tables for tables in suites}, []
    for suite in (tables.suite for tables in suites):
        if (declared := suite.side_by_side) is None:
            continue
        for name in declared.suites.keys() & known:
            if (task := known[name].suite.task) != suite.task:
                raise OptionError(
                    f"{suite.path}: side_by_side has '{name}', whose task is '{task}', beside "
                    f"'{suite.task}'. Take it out."
                )
        members = tuple((c, known[name]) for name, c in declared.suites.items() if name in known)
        group = Group(suite.name, declared, members)
        if sum(bool(member.results) for _, member in members) > 1 and group.rows:
            made.append(group)
    return made


@dataclass(frozen=True)
class Rerun:
    """A row that two suites made of the same inputs: whatever differs is noise."""

    row: str
    suites: tuple[Tables, Tables]
    differences: Mapping[str, Difference]  # by metric: the second suite's minus the first's


def reruns(suites: Sequence[Tables]) -> list[Rerun]:
    """Runs that a suite has which an earlier one has, too, at the seeds of both."""
    known: dict[str, tuple[Tables, str]] = {}  # what a result is made of → where it first stands
    twice: dict[tuple[Tables, str, Tables, str], list[int]] = {}
    for tables in suites:
        for run in tables.suite.runs:
            for seed, result in tables.results.get(run.name, {}).items():
                made_of = canonical(without_defaults(result["inputs"]))
                first = known.setdefault(made_of, (tables, run.name))
                if first[0] is not tables:
                    twice.setdefault((*first, tables, run.name), []).append(seed)
    made = []
    for (first_of, row, second, other), seeds in twice.items():
        here, there = first_of.resampled.counts[row], second.resampled.counts[other]
        both = {"here": {n: here[n] for n in seeds}, "there": {n: there[n] for n in seeds}}
        drawn = Resampled(both, resamples=second.resamples)
        found = {m.name: drawn.difference("there", "here", m) for m in second.main_metrics}
        differences = {name: d for name, d in found.items() if d is not None}
        made.append(Rerun(row, (first_of, second), differences))
    return made
