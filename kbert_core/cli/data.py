"""`kbert audit`, `split` and `data rank`: what data can show, and data made of others."""

from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kbert_core.cli.commands import argument, build, command, options_of
from kbert_core.cli.output import fields_text, per_cent, table
from kbert_core.cli.shared import (
    COLUMNS,
    DATA_SETS,
    GRAPH,
    GRAPH_FILES,
    columns_of,
    graph_of,
    injection_of,
)
from kbert_core.data.sources import TASKS, read_present
from kbert_core.data.splits import EntityDisjoint, deduplicated, entity_disjoint, write_split
from kbert_core.errors import DataError, OptionError
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

TASK_NAMES = ("ner", "classify", "pair", "rank")
WAYS = ("entity-disjoint", "deduplicated")  # to split
MARKS = {Level.WARNING: "!", Level.NOTE: "·", Level.GOOD: "+"}
SHOWN = 5  # examples of what is odd
DATA = argument("--data", DATA_SETS, required=True, metavar="DIR|hf:NAME")


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
    DATA,
    argument("--task", "kind of task; default: as the training set looks", choices=TASK_NAMES),
    *(COLUMNS, GRAPH),
    argument("--max-length", f"in tokens; default: {MAX_LENGTH}", type=int, metavar="N"),
    argument(
        "--model",
        "count tokens and triples as this model does; default: characters, or words of a language "
        "with spaces, and two triples a mention",
        metavar="DIR",
    ),
    text=Report.text,
)
def audit_data(args: Namespace) -> Report:
    """Count what data and a graph can show together."""
    graph = graph_of(args, needed=True)
    if args.max_length is not None and args.max_length < 3:
        raise OptionError(f"max_length is {args.max_length}, expected 3 or more tokens.")
    data = read_data(args.data, args.task, columns_of(args))
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

        similarity = Pipeline.load(args.model).kbert.similarity if args.model else None
        scorer = scorer_of(options, similarity)
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
    rows = [
        (
            name,
            split.examples,
            split.repeated,
            split.with_match,
            f"{split.matches / split.examples:.2f}",
            split.gold_matches,
        )
        for name, split in audit.splits.items()
    ]
    heads = ("split", "rows", "repeated", "with a head", "matches a row", "are mentions")
    conflicts = audit.conflicts
    return [
        *_table(heads, rows),
        *(f"  no {name} set" for name in audit.missing),
        *(
            f"  texts of {leak.of} that stand in {leak.into}: {leak.texts}, "
            f"{leak.same_label.percent} of them labelled as there"
            for leak in audit.leaks
        ),
        f"  texts labelled in several ways: {conflicts.texts}, in {conflicts.rows:,} rows",
        *(f"    {text[:60]}" for text in conflicts.examples[:SHOWN]),
    ]


def _mentions(audit: Audit) -> list[str]:
    rows: list[Sequence[Any]] = []
    for name, split in audit.splits.items():
        if split.mentions is None:
            return []
        gold = split.mentions
        rows.append((name, *_coverage(gold.all), *_coverage(gold.unseen)))
        rows += [
            (f"  {label}", *_coverage(of_label), *_coverage(gold.unseen_by_label.get(label)))
            for label, of_label in gold.by_label.items()
        ]
    return _table(("gold mentions", "all", "in the graph", "unseen", "in the graph"), rows)


def _names(audit: Audit) -> list[str]:
    answers = audit.answers
    if answers is None:
        return []
    names = [(where, *_known(share)) for where, share in answers.known_names.items()]
    lines = _table(("names that stand in", "names", "in the graph"), names)
    lines.append(f"  heads of the graph that are gold mentions: {answers.gold_heads}")
    if answers.test_only is not None and answers.test_only_of_gold is not None:
        lines.append(
            f"  heads that are gold mentions of the test set only: {answers.test_only}; "
            f"{answers.test_only_of_gold.percent} of those that are gold mentions"
        )
    kind = "type" if audit.ambiguity.relation else "relation"
    groups = [(group.name, *_known(group.gold)) for group in answers.groups]
    return [*lines, "", *_table((kind, "heads", "gold mentions"), groups)]


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
            f"in {homonyms.rows.percent} of the rows with a match"
        )
        lines += [f"    {name}: {', '.join(may)}" for name, may in homonyms.examples[:SHOWN]]
    return lines


def _dictionary(audit: Audit) -> list[str]:
    rows: list[Sequence[Any]] = []
    for name, split in audit.splits.items():
        scores = split.dictionary
        if scores is not None:
            every = {name: scores, **{f"  {n}": of for n, of in scores["by_label"].items()}}
            for title, of in every.items():
                shares = [per_cent(of[share]) for share in ("precision", "recall", "f1")]
                unseen = per_cent(of["unseen"]["recall"]) if of is scores else ""
                rows.append((title, *shares, unseen))
    if rows:
        tails = ", ".join(f"{tail} → {label}" for tail, label in audit.tail_labels.items())
        heads = ("plain dictionary", "precision", "recall", "F1", "recall on unseen")
        return [*_table(heads, rows), f"  learnt from train: {tails or 'nothing'}"]
    rows = [(n, s.majority) for n, s in audit.splits.items() if s.majority is not None]
    return _table(("always the same", "accuracy"), rows) if rows else []


def _lengths(audit: Audit) -> list[str]:
    limit = next(iter(audit.splits.values())).injection.limit
    rows = []
    for name, split in audit.splits.items():
        injection, count = split.injection, split.examples
        rows.append(
            (
                name,
                f"{injection.tokens / count:.1f}",
                f"{injection.added.count / count:.1f} ({injection.added.percent})",
                injection.longest,
                f"{injection.long_texts.count:,} → {injection.long_trees.count:,}",
                injection.added_over,
            )
        )
    heads = ("tokens", "text", "added", "longest", f"over {limit}", "branch tokens without room")
    return _table(heads, rows)


def _coverage(coverage: Coverage | None) -> Sequence[Any]:
    return _known(coverage.known) if coverage is not None else ("", "")


def _known(share: Share) -> Sequence[Any]:
    return share.total, share if share.total else ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    return table(heads, [map(_cell, row) for row in rows], numbers=True)


def _cell(value: Any) -> str:
    """A share in per cent, a count with its thousands apart, nothing for None."""
    if isinstance(value, Share):
        return value.percent
    return "" if value is None else f"{value:,}" if isinstance(value, int) else value


# Data sets made of others


@command(
    "split",
    *(DATA, COLUMNS, GRAPH_FILES),
    argument("--output", "folder for the new files", required=True, metavar="DIR"),
    argument("--by", default=WAYS[0], choices=WAYS),
    argument("--task", default="ner", choices=TASK_NAMES),
    options_of(EntityDisjoint),
    text=fields_text,
)
def split(args: Namespace) -> dict[str, Any]:
    """Split a data set so that knowledge can show."""
    before = read_present(args.data, args.task, columns_of(args))
    if args.by == "deduplicated":
        after = deduplicated(before)
    elif args.task != "ner":
        raise DataError(
            "Only data for named entities can be split entity-disjoint (--task ner). For others "
            "there is --by deduplicated."
        )
    else:
        after = entity_disjoint(
            (e for examples in before.values() for e in examples),
            build(EntityDisjoint, args),
            graph=graph_of(args) if args.kg else None,
        )
    write_split(args.output, after)
    report: dict[str, Any] = {"output": str(args.output), "by": args.by}
    in_train: set[str] = set()
    for name, examples in after.items():
        report[name] = {"sentences": len(examples), "before": len(before.get(name, ()))}
        if args.task == "ner":
            mentions = [e.sentences[0][a:b] for e in examples for a, b, _ in e.spans]
            in_train |= set(mentions) if name == "train" else set()
            new = sum(mention not in in_train for mention in mentions)
            report[name] |= {"mentions": len(mentions), "unseen in train": new}
    return report


@command(
    "data rank",
    argument("--input", "such as cmrc2018_dev.json", required=True, metavar="FILE"),
    argument("--output", "qid, label and texts, .tsv", required=True, metavar="FILE"),
    text=fields_text,
)
def rank(args: Namespace) -> dict[str, Any]:
    """Make a set for answer selection of CMRC 2018, DRCD or another in SQuAD's form."""
    from kbert_core.data.squad import write_ranking_set

    counts = write_ranking_set(args.input, args.output)
    return {"output": str(args.output), **asdict(counts)}
