"""`kbert audit`: options in, a report out, and how it reads in a terminal."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from kbert_core.cli.options import graph_of, injection_of
from kbert_core.cli.text import width
from kbert_core.data.columns import parse_columns
from kbert_core.data.guess import TASKS
from kbert_core.errors import OptionError
from kbert_core.experiments.audit import MAX_LENGTH, audit
from kbert_core.experiments.audit_data import plain_tokenizer, read_data
from kbert_core.experiments.audit_values import Audit, Coverage, Share, as_plain
from kbert_core.experiments.verdict import Level, Verdict, verdict_of
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.text import WordPieces

MARKS = {Level.WARNING: "!", Level.NOTE: "·", Level.GOOD: "+"}
SHOWN = 5  # examples of what is odd
Row = Sequence[str]


def run_audit(args: argparse.Namespace) -> tuple[Audit, Verdict]:
    """Audit as the command line says.

    Raises:
        OptionError: no graph is named; DataError, GraphFileError: a file
            can't be read.
    """
    if not args.kg:
        raise OptionError("No graph given. Name one or more with --kg FILE.")
    if args.max_length is not None and args.max_length < 3:
        raise OptionError(f"max_length is {args.max_length}, expected 3 or more tokens.")
    graph = graph_of(args)
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
        from kbert_core.scoring.opening import scorer_of

        scorer = scorer_of(
            options, Pipeline.load(args.model).kbert.similarity if args.model else None
        )
    made = audit(
        data.splits,
        graph,
        task=data.task,
        tokenizer=tokenizer,
        options=options,
        max_length=args.max_length or MAX_LENGTH,
        data=data.name,
        scorer=scorer,
    )
    return made, verdict_of(made)


def audit_data(report: tuple[Audit, Verdict]) -> dict[str, Any]:
    """The report as plain data, for JSON; the verdict first."""
    made, verdict = report
    return {"verdict": verdict.as_dict(), **as_plain(made)}


def audit_text(report: tuple[Audit, Verdict]) -> str:
    """The report for reading: the verdict, then small tables."""
    made, verdict = report
    parts = [
        [
            f"{made.data} ({TASKS[made.task]}) with {made.graph}: {made.triples:,} triples, "
            f"{made.heads:,} heads"
        ],
        [verdict.headline, *(f"  {MARKS[f.level]} {f.text}" for f in verdict.findings)],
        _splits(made),
        _mentions(made),
        _names(made),
        _heads(made),
        _dictionary(made),
        _lengths(made),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _splits(made: Audit) -> list[str]:
    rows = [["split", "rows", "repeated", "with a head", "matches a row", "are mentions"]]
    for name, split in made.splits.items():
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
    lines += [f"  no {name} set" for name in made.missing]
    lines += [
        f"  texts of {leak.of} that stand in {leak.into}: {leak.texts}, "
        f"{_percent(leak.same_label)} of them labelled as there"
        for leak in made.leaks
    ]
    conflicts = made.conflicts
    lines.append(f"  texts labelled in several ways: {conflicts.texts}, in {conflicts.rows:,} rows")
    lines += [f"    {text[:60]}" for text in conflicts.examples[:SHOWN]]
    return lines


def _mentions(made: Audit) -> list[str]:
    rows = [["gold mentions", "all", "in the graph", "unseen", "in the graph"]]
    for name, split in made.splits.items():
        if split.mentions is None:
            return []
        gold = split.mentions
        rows.append([name, *_coverage(gold.all), *_coverage(gold.unseen)])
        rows += [
            [f"  {label}", *_coverage(of_label), *_coverage(gold.unseen_by_label.get(label))]
            for label, of_label in gold.by_label.items()
        ]
    return _table(rows)


def _names(made: Audit) -> list[str]:
    answers = made.answers
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
    what = "type" if made.ambiguity.relation else "relation"
    rows = [[what, "heads", "gold mentions"]]
    rows += [[group.name, *_known(group.gold)] for group in answers.groups]
    return [*lines, "", *_table(rows)]


def _heads(made: Audit) -> list[str]:
    heads = made.ambiguity
    if heads.relation is None:
        lines = ["no relation of the graph looks like a type"]
    else:
        lines = [f"heads with several tails under {heads.relation}: {heads.several}"]
        lines += [f"    {head}: {', '.join(tails)}" for head, tails in heads.examples[:SHOWN]]
    if heads.several_labels is not None:
        lines.append(f"heads whose tails stand for several labels: {heads.several_labels}")
    homonyms = made.splits[made.held_out].homonyms
    if homonyms.matches.count:
        lines.append(
            f"matches in {made.held_out} whose name may mean several heads: {homonyms.matches}, "
            f"in {_percent(homonyms.rows)} of the rows with a match"
        )
        lines += [f"    {name}: {', '.join(may)}" for name, may in homonyms.examples[:SHOWN]]
    return lines


def _dictionary(made: Audit) -> list[str]:
    rows = [["plain dictionary", "precision", "recall", "F1", "recall on unseen"]]
    for name, split in made.splits.items():
        scores = split.dictionary
        if scores is not None:
            rows.append([name, *_scores(scores), _score(scores["unseen"]["recall"])])
            rows += [[f"  {n}", *_scores(of), ""] for n, of in scores["by_label"].items()]
    if len(rows) > 1:
        tails = ", ".join(f"{tail} → {label}" for tail, label in made.tail_labels.items())
        return [*_table(rows), f"  learnt from train: {tails or 'nothing'}"]
    rows = [["always the same", "accuracy"]]
    rows += [[n, _percent(s.majority)] for n, s in made.splits.items() if s.majority is not None]
    return _table(rows) if len(rows) > 1 else []


def _lengths(made: Audit) -> list[str]:
    limit = next(iter(made.splits.values())).injection.limit
    rows = [["tokens", "text", "added", "longest", f"over {limit}", "branch tokens without room"]]
    for name, split in made.splits.items():
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
    return [_score(scores[name]) for name in ("precision", "recall", "f1")]


def _score(value: float) -> str:
    return f"{100 * value:.1f}"


def _percent(share: Share | None) -> str:
    return "" if share is None else f"{100 * share.share:.1f} %"


def _table(rows: Sequence[Row]) -> list[str]:
    """Columns side by side: the first to the left, numbers to the right."""
    widest = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        first, *others = row
        cells = [first + " " * (widest[0] - width(first))]
        cells += [
            " " * (size - width(cell)) + cell for cell, size in zip(others, widest[1:], strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
