"""`kbert explain compare` and `file`: many readings side by side."""

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kbert_core.cli.commands import argument
from kbert_core.cli.explain import NO_HEAD, Page, case_of, cell, explanation, joined
from kbert_core.cli.output import Progress, table
from kbert_core.cli.shared import COLUMNS, columns_of, loaded, model_of
from kbert_core.data.sources import labelled_file, read_split
from kbert_core.errors import OptionError
from kbert_core.knowledge.io.write import write_triples

if TYPE_CHECKING:  # not imported to run: they need PyTorch
    from kbert_core.experiments.whole_file_groups import By, Group, WholeFile
    from kbert_core.experiments.whole_file_ways import FileScores, Pruned
    from kbert_core.explain.attention import FileCorrelation

T = TypeVar("T")
SHOWN = 15  # groups printed


@explanation(
    "compare",
    argument(
        "--beside",
        "other models that read the same, at most two; default: BERT, K-BERT, hard positions, "
        "everything visible",
        nargs="+",
        metavar="DIR",
    ),
)
def compare(args: Namespace) -> Page:
    """BERT, K-BERT and its ablations side by side, or several models, and why two are equal."""
    from kbert_core.explain.case import Case
    from kbert_core.explain.compare import BERT, ablations_of, compare

    case = case_of(args)
    if args.beside:
        bert = f"{BERT}, {model_of(args)}"
        readings: dict[str, Any] = {bert: case.without_knowledge(), model_of(args): case}
    else:
        readings = ablations_of(case)
    for model in args.beside or ():
        pipeline, graph, config = loaded(Namespace(**{**vars(args), "model": model}), why=NO_HEAD)
        how = {"target": case.target, "graph": graph, "config": config}
        readings[model] = Case.of(pipeline, *args.text, **how)
    result = compare(readings, of=case)
    sides = [
        (
            side.outcome.answer if side.outcome else "–",
            f"{side.outcome.score:.3f}" if side.outcome else "–",
            str(side.triples),
            side.name,
        )
        for side in result.sides
    ]
    lines = [
        joined(result.sentences),
        f"explained: {result.target}, in nats",
        *table(("predicts", "score", "triples", "reading"), sides),
        "",
    ]
    pairs = [
        (
            "–" if pair.score is None else pair.score,
            "–" if pair.variation is None else f"{pair.variation:.3f}",
            "flips" if pair.flips else "",
            f"{pair.one} → {pair.other}"
            + (f"\nequal: {pair.why} (largest difference {pair.largest:.0e})" if pair.why else ""),
        )
        for pair in result.pairs
    ]
    return Page(result, lines, ("change", "distance", "", "from → to"), pairs)


# A labelled file


@dataclass(frozen=True)
class FileReport:
    """What is found over a file, and a graph pruned by it.

    Attributes:
        whole: every text with knowledge and without.
        by: how groups are made for printing and drawing.
        attention: rank correlations; empty unless asked for.
        pruned: None unless asked for.
        test: of no graph, the full and the pruned one, on texts that
            had no part in the choice; None unless asked for.
    """

    whole: "WholeFile"
    by: "By"
    attention: "tuple[FileCorrelation, ...]" = ()
    pruned: "Pruned | None" = None
    test: "FileScores | None" = None

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        attention = [correlation.as_dict() for correlation in self.attention]
        parts = {"pruned": self.pruned, "test": self.test}
        return {
            **self.whole.as_dict(),
            **({"attention": attention} if attention else {}),
            **{name: part.as_dict() for name, part in parts.items() if part is not None},
        }

    def figure(self) -> Any:
        """Helped and hurt by group; the scores on test where the graph was pruned."""
        return self.whole.figure(self.by) if self.test is None else self.test.figure()

    def lines(self) -> list[str]:
        """For reading."""
        whole, pruned = self.whole, self.pruned
        lines = [
            f"{len(whole.rows):,} texts, {len(whole.with_knowledge):,} with a triple of "
            f"{whole.graph}; knowledge changes {len(whole.changed):,}: {whole.whole.helped} "
            f"helped, {whole.whole.hurt} hurt",
            *_score_lines(whole.scores),
            "",
            *_group_lines(whole.groups(self.by), self.by),
            *map(_attention_line, self.attention),
        ]
        if pruned is not None:
            lines += ["", f"pruned: {pruned}"]
            rows = [(r.hurt, r.helped, r.texts, r.name) for r in pruned.removed[:SHOWN]]
            lines += table(("hurt", "helped", "texts", pruned.what), rows) if rows else []
        if self.test is not None:
            lines += ["", f"on {self.test.texts:,} texts of test:", *_score_lines(self.test)]
        return lines


@explanation(
    "file",
    argument("--split", "of a folder", "dev"),
    argument("--most", "read only the first N texts", type=int, metavar="N"),
    COLUMNS,
    argument("--by", default="relation", choices=["label", "entity", "relation", "triple"]),
    argument("--attention", "rank correlation of attention and effect", False),
    argument(
        "--prune",
        "take out of the graph what hurts more texts than it helps, as counted over the texts it "
        "stood in, or by leaving it out of each",
        choices=["counts", "leave-one-out"],
    ),
    argument("--what", "what is taken out", "triple", choices=["triple", "relation"]),
    argument("--least", "so many more hurt than helped", 1),
    argument("--output", "where to put the pruned graph", type=Path, metavar="FILE"),
    argument(
        "--test",
        "other texts, to read the pruned graph on; default: DIR's test",
        metavar="FILE",
    ),
    of=argument("--data", "labelled texts", required=True, metavar="FILE|DIR|hf:NAME"),
)
def file(args: Namespace) -> Page:
    """Read a labelled file with the graph and without: where it helps and where it hurts."""
    from kbert_core.experiments import whole_file
    from kbert_core.experiments.whole_file_groups import whole_file_of
    from kbert_core.experiments.whole_file_ways import prune, score_three
    from kbert_core.explain.attention import rank_correlation

    if not args.kg:
        raise OptionError("No graph given. Name one or more with --kg FILE.")
    if args.most is not None and args.most < 1:
        raise OptionError(f"--most is {args.most}, expected at least 1 text.")
    pipeline, graph, config = loaded(args, why=NO_HEAD)
    assert pipeline.task is not None
    task, columns = pipeline.task.name, columns_of(args)
    examples = read_split(args.data, args.split, task, columns)[: args.most]
    test = []
    if args.prune:
        test = read_split(_other_texts(args), "test", task, columns)[: args.most]
    reading = whole_file.each_row(pipeline, examples, graph, config=config)
    rows = _counted(reading, len(examples), "texts")
    whole = whole_file_of(pipeline, rows, graph, len(examples))
    attention: tuple[FileCorrelation, ...] = ()
    if args.attention:
        pieces = _counted(
            whole_file.each_attention(pipeline, whole.rows, graph, config=config),
            len(whole.with_knowledge),
            "texts with knowledge",
        )
        attention = (
            rank_correlation(pieces, looker="trunk"),
            rank_correlation(pieces, looker="target"),
        )
    pruned = scores = None
    if args.prune:
        left_out = []
        if args.prune == "leave-one-out":
            each = whole_file.each_left_out(pipeline, whole.rows, graph, config=config)
            left_out = _counted(each, None, "triples")
        rule: Any = args.prune.replace("-", " ")
        pruned = prune(graph, whole.rows, left_out, rule=rule, what=args.what, least=args.least)
        if args.output is not None:
            write_triples((t for t in pruned.graph if pruned.graph.is_on(t)), args.output)
        three = whole_file.each_of_three(pipeline, test, graph, pruned.graph, config=config)
        scores = score_three(pipeline, test, _counted(three, len(test), "texts of test"))
    report = FileReport(whole, args.by, attention, pruned, scores)
    return Page(report, report.lines())


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


def _score_lines(scores: "FileScores") -> list[str]:
    return [
        f"{way}: {scores.metric} {100 * s.mean:.1f} ({100 * s.low:.1f} to {100 * s.high:.1f})"
        for way, s in scores.main.items()
    ] + [
        f"{one} minus {other}: {100 * d.mean:+.1f} ({100 * d.low:+.1f} to {100 * d.high:+.1f})"
        for (one, other), d in scores.differences.items()
    ]


def _group_lines(groups: "tuple[Group, ...]", by: "By") -> list[str]:
    rows = [
        (
            _with_share(group.hurt, group.hurt_interval),
            _with_share(group.helped, group.helped_interval),
            f"{group.count:,}",
            cell(group.mean_gain),
            group.name,
        )
        for group in groups[:SHOWN]
    ]
    lines = table(("hurt", "helped", "of", "mean gain", by), rows)
    more = len(groups) - len(rows)
    return lines + ([f"… and {more:,} more"] if more else [])


def _with_share(count: int, interval: tuple[float, float]) -> str:
    """A count, and 95 % of its share of the group's texts in per cent."""
    return f"{count:,} ({100 * interval[0]:.0f}–{100 * interval[1]:.0f} %)"


def _attention_line(correlation: "FileCorrelation") -> str:
    rho, low, high = correlation.rho, correlation.low, correlation.high
    value = "none can be said" if rho is None else f"{rho:+.2f}"
    if rho is not None and low is not None and high is not None:
        value += f" ({low:+.2f} to {high:+.2f})"
    return (
        f"attention of the {correlation.looker} and effect, rank correlation: {value}; "
        f"{correlation.pieces:,} triples, {correlation.texts:,} texts; they disagree in "
        f"{correlation.disagreeing:,}"
    )
