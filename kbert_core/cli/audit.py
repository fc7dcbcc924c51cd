"""`kbert audit`: what a data set and a graph can show together, in the terminal."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kbert_core.cli.commands import argument, command
from kbert_core.cli.output import per_cent, table
from kbert_core.cli.shared import COLUMNS, DATA_SETS, GRAPH, graph_of, injection_of
from kbert_core.data.columns import parse_columns
from kbert_core.data.guess import TASKS
from kbert_core.errors import OptionError
from kbert_core.experiments.audit import MAX_LENGTH, audit
from kbert_core.experiments.audit_values import (
    Audit,
    Coverage,
    Share,
    as_plain,
    plain_tokenizer,
    read_data,
)
from kbert_core.experiments.verdict import Level, Verdict, verdict_of
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.text import WordPieces

MARKS = {Level.WARNING: "!", Level.NOTE: "·", Level.GOOD: "+"}
SHOWN = 5  # examples of what is odd
Row = Sequence[str]


@dataclass(frozen=True)
class Report:
    """What was counted, and what it means."""

    counts: Audit
    verdict: Verdict

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; the verdict first."""
        return {"verdict": self.verdict.as_dict(), **as_plain(self.counts)}

    def text(self) -> str:
        """For reading: the verdict, then small tables."""
        audit, verdict = self.counts, self.verdict
        parts = [
            [
                f"{audit.data} ({TASKS[audit.task]}) with {audit.graph}: {audit.triples:,} "
                f"triples, {audit.heads:,} heads"
            ],
            [verdict.headline, *(f"  {MARKS[f.level]} {f.text}" for f in verdict.findings)],
            *(part(audit) for part in (_splits, _mentions, _names, _heads, _dictionary, _lengths)),
        ]
        return "\n\n".join("\n".join(part) for part in parts if part)


@command(
    "audit",
    "count what data and a graph can show together",
    argument("--data", required=True, metavar="DIR|hf:NAME", help=DATA_SETS),
    argument(
        "--task",
        choices=("ner", "classify", "pair", "rank"),
        help="kind of task; default: as the training set looks",
    ),
    COLUMNS,
    GRAPH,
    argument("--max-length", type=int, metavar="N", help=f"in tokens; default: {MAX_LENGTH}"),
    argument(
        "--model",
        metavar="DIR",
        help="count tokens and triples as this model does; default: characters, or words of a "
        "language with spaces, and two triples a mention",
    ),
    text=Report.text,
)
def run(args: Namespace) -> Report:
    """Audit a data set and a graph.

    Raises:
        OptionError: no graph is named; DataError, GraphFileError: a file
            can't be read.
    """
    graph = graph_of(args, needed=True)
    if args.max_length is not None and args.max_length < 3:
        raise OptionError(f"max_length is {args.max_length}, expected 3 or more tokens.")
    data = read_data(args.data, args.task, parse_columns(args.columns))
    tokenizer, trained = plain_tokenizer(data), InjectionOptions()
    if args.model:
        from kbert_core.checkpoints.checkpoint import card_of, load_tokenizer  # seconds to start

        tokenizer = WordPieces(load_tokenizer(args.model))
        trained = card_of(args.model).reading.options
    options = injection_of(args, trained)
    scorer = None
    if options.needs_model:
        from kbert_core.pipeline import Pipeline
        from kbert_core.scoring import scorer_of

        scorer = scorer_of(
            options, Pipeline.load(args.model).kbert.similarity if args.model else None
        )
    counts = audit(
        data.splits,
        graph,
        task=data.task,
        tokenizer=tokenizer,
        options=options,
        max_length=args.max_length or MAX_LENGTH,
        data=data.name,
        scorer=scorer,
    )
    return Report(counts, verdict_of(counts))


def _splits(audit: Audit) -> list[str]:
    rows = [["split", "rows", "repeated", "with a head", "matches a row", "are mentions"]]
    for name, split in audit.splits.items():
        rows.append(
            [
                name,
                f"{split.examples:,}",
                _percent(split.repeated),
                _percent(split.with_match),
                f"{split.matches / split.examples:.2f}",
                _percent(split.gold_matches),
            ]
        )
    lines = _table(rows)
    lines += [f"  no {name} set" for name in audit.missing]
    lines += [
        f"  texts of {leak.of} that stand in {leak.into}: {leak.texts}, "
        f"{_percent(leak.same_label)} of them labelled as there"
        for leak in audit.leaks
    ]
    conflicts = audit.conflicts
    lines.append(f"  texts labelled in several ways: {conflicts.texts}, in {conflicts.rows:,} rows")
    lines += [f"    {text[:60]}" for text in conflicts.examples[:SHOWN]]
    return lines


def _mentions(audit: Audit) -> list[str]:
    rows = [["gold mentions", "all", "in the graph", "unseen", "in the graph"]]
    for name, split in audit.splits.items():
        if split.mentions is None:
            return []
        gold = split.mentions
        rows.append([name, *_coverage(gold.all), *_coverage(gold.unseen)])
        rows += [
            [f"  {label}", *_coverage(of_label), *_coverage(gold.unseen_by_label.get(label))]
            for label, of_label in gold.by_label.items()
        ]
    return _table(rows)


def _names(audit: Audit) -> list[str]:
    answers = audit.answers
    if answers is None:
        return []
    lines = _table(
        [
            ["names that stand in", "names", "in the graph"],
            *([where, *_known(share)] for where, share in answers.known_names.items()),
        ]
    )
    lines.append(f"  heads of the graph that are gold mentions: {answers.gold_heads}")
    if answers.test_only is not None and answers.test_only_of_gold is not None:
        lines.append(
            f"  heads that are gold mentions of the test set only: {answers.test_only}; "
            f"{_percent(answers.test_only_of_gold)} of those that are gold mentions"
        )
    what = "type" if audit.ambiguity.relation else "relation"
    rows = [[what, "heads", "gold mentions"]]
    rows += [[group.name, *_known(group.gold)] for group in answers.groups]
    return [*lines, "", *_table(rows)]


def _heads(audit: Audit) -> list[str]:
    heads = audit.ambiguity
    if heads.relation is None:
        lines = ["no relation of the graph looks like a type"]
    else:
        lines = [f"heads with several tails under {heads.relation}: {heads.several}"]
        lines += [f"    {head}: {', '.join(tails)}" for head, tails in heads.examples[:SHOWN]]
    if heads.several_labels is not None:
        lines.append(f"heads whose tails stand for several labels: {heads.several_labels}")
    homonyms = audit.splits[audit.held_out].homonyms
    if homonyms.matches.count:
        lines.append(
            f"matches in {audit.held_out} whose name may mean several heads: {homonyms.matches}, "
            f"in {_percent(homonyms.rows)} of the rows with a match"
        )
        lines += [f"    {name}: {', '.join(may)}" for name, may in homonyms.examples[:SHOWN]]
    return lines


def _dictionary(audit: Audit) -> list[str]:
    rows = [["plain dictionary", "precision", "recall", "F1", "recall on unseen"]]
    for name, split in audit.splits.items():
        scores = split.dictionary
        if scores is not None:
            rows.append([name, *_scores(scores), per_cent(scores["unseen"]["recall"])])
            rows += [[f"  {n}", *_scores(of), ""] for n, of in scores["by_label"].items()]
    if len(rows) > 1:
        tails = ", ".join(f"{tail} → {label}" for tail, label in audit.tail_labels.items())
        return [*_table(rows), f"  learnt from train: {tails or 'nothing'}"]
    rows = [["always the same", "accuracy"]]
    rows += [[n, _percent(s.majority)] for n, s in audit.splits.items() if s.majority is not None]
    return _table(rows) if len(rows) > 1 else []


def _lengths(audit: Audit) -> list[str]:
    limit = next(iter(audit.splits.values())).injection.limit
    rows = [["tokens", "text", "added", "longest", f"over {limit}", "branch tokens without room"]]
    for name, split in audit.splits.items():
        injection, count = split.injection, split.examples
        rows.append(
            [
                name,
                f"{injection.tokens / count:.1f}",
                f"{injection.added.count / count:.1f} ({_percent(injection.added)})",
                f"{injection.longest:,}",
                f"{injection.long_texts.count:,} → {injection.long_trees.count:,}",
                _percent(injection.added_over),
            ]
        )
    return _table(rows)


def _coverage(coverage: Coverage | None) -> Row:
    return _known(coverage.known) if coverage is not None else ("", "")


def _known(share: Share) -> Row:
    return f"{share.total:,}", _percent(share) if share.total else ""


def _scores(scores: Mapping[str, float]) -> list[str]:
    return [per_cent(scores[name]) for name in ("precision", "recall", "f1")]


def _percent(share: Share | None) -> str:
    return "" if share is None else f"{100 * share.share:.1f} %"


def _table(rows: Sequence[Row]) -> list[str]:
    return table(rows[0], rows[1:], numbers=True)
