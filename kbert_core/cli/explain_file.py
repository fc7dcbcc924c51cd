"""What `kbert explain file` runs and prints."""

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from kbert_core.cli.explanations import model_and_reading
from kbert_core.cli.output import Progress, table
from kbert_core.data.columns import parse_columns
from kbert_core.data.sources import labelled_file, read_split
from kbert_core.errors import OptionError
from kbert_core.experiments.whole_file import each_attention, each_left_out, each_of_three, each_row
from kbert_core.experiments.whole_file_groups import By, Group, Interval, WholeFile, whole_file_of
from kbert_core.experiments.whole_file_ways import FileScores, Pruned, Rule, prune, score_three
from kbert_core.explain.attention import FileCorrelation, rank_correlation
from kbert_core.explain.result import nats
from kbert_core.knowledge.io import write_triples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")
SHOWN = 15  # groups printed
RULES: dict[str, Rule] = {"counts": "counts", "leave-one-out": "leave one out"}


@dataclass(frozen=True)
class FileReport:
    """What is found over a file, and a graph pruned by it.

    Attributes:
        found: every text with knowledge and without.
        by: how groups are made for printing and drawing.
        pruned: None unless asked for.
        test: of no graph, the full and the pruned one, on texts that
            had no part in the choice; None unless asked for.
        attention: rank correlations; empty unless asked for.
    """

    found: WholeFile
    by: By
    pruned: Pruned | None = None
    test: FileScores | None = None
    attention: tuple[FileCorrelation, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        data = self.found.as_dict()
        if self.attention:
            data["attention"] = [one.as_dict() for one in self.attention]
        if self.pruned is not None:
            data["pruned"] = self.pruned.as_dict()
        if self.test is not None:
            data["test"] = self.test.as_dict()
        return data

    def figure(self) -> "Figure":
        """Helped and hurt by group; the scores on test where the graph was pruned."""
        return self.found.figure(self.by) if self.test is None else self.test.figure()


def file(args: Namespace) -> FileReport:
    """A labelled file with the graph and without."""
    if not args.kg:
        raise OptionError("No graph given. Name one or more with --kg FILE.")
    if args.most is not None and args.most < 1:
        raise OptionError(f"--most is {args.most}, expected at least 1 text.")
    pipeline, reading = model_and_reading(args)
    graph = reading.pop("graph")
    assert pipeline.task is not None
    task, columns = pipeline.task.name, parse_columns(args.columns)
    examples = read_split(args.data, args.split, task, columns)[: args.most]
    test = []
    if args.prune:
        test = read_split(_other_texts(args), "test", task, columns)[: args.most]
    rows = _counted(each_row(pipeline, examples, graph, **reading), len(examples), "texts")
    found = whole_file_of(pipeline, rows, graph, len(examples))
    attention: tuple[FileCorrelation, ...] = ()
    if args.attention:
        read = each_attention(pipeline, found.rows, graph, **reading)
        some = _counted(read, len(found.with_knowledge), "texts with knowledge")
        lookers: tuple[Literal["target", "trunk"], ...] = ("trunk", "target")
        attention = tuple(rank_correlation(some, looker=looker) for looker in lookers)
    if not args.prune:
        return FileReport(found, args.by, attention=attention)
    left = each_left_out(pipeline, found.rows, graph, **reading)
    left_out = _counted(left, None, "triples") if args.prune == "leave-one-out" else []
    pruned = prune(
        graph, found.rows, left_out, rule=RULES[args.prune], what=args.what, least=args.least
    )
    if args.output is not None:
        write_triples((t for t in pruned.graph if pruned.graph.is_on(t)), args.output)
    three = each_of_three(pipeline, test, graph, pruned.graph, **reading)
    answers = _counted(three, len(test), "texts of test")
    return FileReport(found, args.by, pruned, score_three(pipeline, test, answers), attention)


def _counted(items: Iterable[T], total: int | None, what: str) -> list[T]:
    """Read to the end; someone who looks on sees how far it is."""
    return list(Progress(what, total=total).over(items))


def _other_texts(args: Namespace) -> str:
    """Where the texts are that a pruned graph is read on.

    Raises:
        OptionError: they are those it is chosen on.
    """
    name: str = args.test or args.data
    if _place(name, "test") == _place(args.data, args.split):
        raise OptionError(
            f"The graph would be pruned on {name} and read on the same texts, which shows nothing "
            "of others. Name other texts with --test."
        )
    return name


def _place(name: str, split: str) -> tuple[Path | str, str]:
    """What tells a split's texts from others: their file, else the set's name and the split."""
    path = Path(name) if Path(name).is_file() else labelled_file(name, split)
    return (name, split) if path is None else (path.resolve(), "")


def file_text(report: FileReport) -> str:
    """A report, for reading."""
    found = report.found
    whole = found.whole
    lines = [
        f"{len(found.rows):,} texts, {len(found.with_knowledge):,} with a triple of {found.graph}; "
        f"knowledge changes {len(found.changed):,}: {whole.helped} helped, {whole.hurt} hurt",
        *_score_lines(found.scores),
        "",
        *_groups_text(found.groups(report.by), report.by),
    ]
    lines += [_attention_text(one) for one in report.attention]
    if report.pruned is not None:
        lines += ["", f"pruned: {report.pruned}"]
        rows = [
            (str(one.hurt), str(one.helped), str(one.texts), one.name)
            for one in report.pruned.removed[:SHOWN]
        ]
        lines += table(("hurt", "helped", "texts", report.pruned.what), rows) if rows else []
    if report.test is not None:
        lines += [
            "",
            f"on {report.test.texts:,} texts of test:",
            *_score_lines(report.test),
        ]
    return "\n".join(lines)


def _score_lines(scores: FileScores) -> list[str]:
    lines = [
        f"{way}: {scores.metric} {100 * score.mean:.1f} ({100 * score.low:.1f} to "
        f"{100 * score.high:.1f})"
        for way, score in scores.main.items()
    ]
    return lines + [
        f"{one} minus {other}: {100 * d.mean:+.1f} ({100 * d.low:+.1f} to {100 * d.high:+.1f})"
        for (one, other), d in scores.differences.items()
    ]


def _groups_text(groups: tuple[Group, ...], by: By) -> list[str]:
    rows = [
        (
            _with_share(group.hurt, group.hurt_interval),
            _with_share(group.helped, group.helped_interval),
            f"{group.count:,}",
            "" if group.mean_gain is None else nats(group.mean_gain),
            group.name,
        )
        for group in groups[:SHOWN]
    ]
    more = len(groups) - len(rows)
    return [
        *table(("hurt", "helped", "of", "mean gain", by), rows),
        *([f"… and {more:,} more"] if more else []),
    ]


def _with_share(count: int, interval: Interval) -> str:
    """A count, and 95 % of its share of the group's texts in per cent."""
    return f"{count:,} ({100 * interval[0]:.0f}–{100 * interval[1]:.0f} %)"


def _attention_text(found: FileCorrelation) -> str:
    said = "none can be said"
    if found.rho is not None:
        said = f"{found.rho:+.2f}"
        if found.low is not None and found.high is not None:
            said += f" ({found.low:+.2f} to {found.high:+.2f})"
    return (
        f"attention of the {found.looker} and effect, rank correlation: {said}; "
        f"{found.pieces:,} triples, {found.texts:,} texts; they disagree in {found.disagreeing:,}"
    )
