"""`kbert explain file`: a labelled file with a graph and without, and the graph pruned by it."""

from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kbert_core.cli.commands import COLUMNS, argument, columns_of, loaded
from kbert_core.cli.explain import NO_HEAD, Page, cell, explanation
from kbert_core.cli.output import Progress
from kbert_core.data.sources import labelled_file, read_split
from kbert_core.errors import OptionError
from kbert_core.knowledge.io.write import write_triples

if TYPE_CHECKING:  # not imported to run: they need PyTorch
    from kbert_core.experiments.whole_file_groups import Group
    from kbert_core.experiments.whole_file_ways import FileScores

T = TypeVar("T")


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
        "--test", "other texts, to read the pruned graph on; default: DIR's test", metavar="FILE"
    ),
    of=argument("--data", "labelled texts", required=True, metavar="FILE|DIR|hf:NAME"),
)
def file(args: Namespace) -> Page:
    """Read a labelled file with the graph and without: where it helps and where it hurts."""
    from kbert_core.experiments import whole_file
    from kbert_core.experiments.whole_file_groups import read_whole_file
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
    whole = read_whole_file(pipeline, examples, graph, rows)
    data = whole.as_dict()
    figure: Callable[[], Any] = partial(whole.figure, args.by)
    facts = {
        "texts": len(whole.rows),
        f"with a triple of {whole.graph}": len(whole.with_knowledge),
        "changed by knowledge": len(whole.changed),
        **{"helped": whole.whole.helped, "hurt": whole.whole.hurt},
        whole.scores.metric: _scores(whole.scores),
        "in common": [_group(group) for group in whole.groups(args.by)],
    }
    if args.attention:
        each = whole_file.each_attention(pipeline, whole.rows, graph, config=config)
        pieces = _counted(each, len(whole.with_knowledge), "texts with knowledge")
        data["attention"] = [
            rank_correlation(pieces, looker="trunk").as_dict(),
            rank_correlation(pieces, looker="target").as_dict(),
        ]
        facts["rank correlation of attention and effect"] = data["attention"]
    if args.prune:
        left_out = []
        if args.prune == "leave-one-out":
            tried = whole_file.each_left_out(pipeline, whole.rows, graph, config=config)
            left_out = _counted(tried, None, "triples")
        rule: Any = args.prune.replace("-", " ")
        pruned = prune(graph, whole.rows, left_out, rule=rule, what=args.what, least=args.least)
        if args.output is not None:
            write_triples((t for t in pruned.graph if pruned.graph.is_on(t)), args.output)
        three = whole_file.each_of_three(pipeline, test, graph, pruned.graph, config=config)
        answers = _counted(three, len(test), "texts of test")
        scores = score_three(whole.task, whole.labels, test, answers)
        data |= {"pruned": pruned.as_dict(), "test": scores.as_dict()}
        facts |= {
            "pruned": str(pruned),
            "taken out": data["pruned"]["removed"] or None,
            f"{scores.metric} on {scores.texts:,} texts of test": _scores(scores),
        }
        figure = scores.figure
    return Page(data, figure, facts)


def _counted(items: Iterable[T], total: int | None, what: str) -> list[T]:
    """Read to the end; someone who looks on sees how far it is."""
    return list(Progress(what, total=total).over(items))


def _other_texts(args: Namespace) -> str:
    """Where the texts are that a pruned graph is read on; never those it is chosen on."""
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


def _scores(scores: "FileScores") -> list[dict[str, str]]:
    """The score of each way and their differences in per cent, with 95 %."""
    minus = {f"{one} minus {other}": d for (one, other), d in scores.differences.items()}
    every: dict[str, Any] = {**scores.main, **minus}
    return [
        {"": name, " ": f"{100 * s.mean:{sign}.1f}", "95 %": _interval(s.low, s.high, sign)}
        for name, s in every.items()
        for sign in ["+" if name in minus else ""]
    ]


def _interval(low: float, high: float, sign: str = "") -> str:
    return f"{100 * low:{sign}.1f} to {100 * high:{sign}.1f}"


def _group(group: "Group") -> dict[str, Any]:
    """A row of the table; the shares of its texts in per cent, with 95 %."""
    return {
        group.by: group.name,
        "of": group.count,
        "hurt": group.hurt,
        "95 %": _interval(*group.hurt_interval),
        "helped": group.helped,
        "95 % ": _interval(*group.helped_interval),
        "mean gain": cell(group.mean_gain),
    }
