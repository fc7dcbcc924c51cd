"""`kbert audit`, `split`, `data rank` and `explain file`: what labelled data and a graph show."""

import logging
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbert_core.errors import DataError, OptionError
from kbert_core.knowledge.io.write import write_triples
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.surface_forms import ALL_RULES
from kbert_core.systems import reader_class
from kbert_core.text import WordPieces
from kbert_lab.cli import commands as options
from kbert_lab.cli.commands import argument, columns_of, command, graph_of, loaded
from kbert_lab.cli.explain import NO_HEAD, Page, cell, explanation
from kbert_lab.cli.output import Progress, per_cent, report_text, table
from kbert_lab.data.sources import DATA_SETS, TASKS, read_present, read_split
from kbert_lab.data.splits import (
    EntityDisjoint,
    deduplicated,
    entity_disjoint,
    substituted,
    write_split,
)
from kbert_lab.study.audit import MAX_LENGTH, audit
from kbert_lab.study.audit_values import Audit, Share, plain_tokenizer, read_data
from kbert_lab.study.verdict import Level, Verdict, verdict_of

if TYPE_CHECKING:  # not imported to run: they need PyTorch
    from kbert_lab.study.whole_file import FileScores, Group

log = logging.getLogger(__name__)

TASK_NAMES = [*TASKS]
AUDITED = {**TASKS, "qa": "reading comprehension"}
WAYS = ("entity-disjoint", "deduplicated", "substitution")  # to split
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
        return {"verdict": self.verdict.as_dict(), **asdict(self.counts)}

    def text(self) -> str:
        """For reading: the verdict, then the counts, those of the splits side by side."""
        audit, verdict = self.counts, self.verdict
        splits = {name: dict(_flat(split)) for name, split in audit.splits.items()}
        counts = dict.fromkeys(chain(splits[audit.held_out], *splits.values()))
        rows = ({"": count, **{s: splits[s].get(count) for s in splits}} for count in counts)
        facts: dict[str, Any] = {
            "no data": audit.missing or None,
            "texts that stand in two splits": [dict(_flat(leak)) for leak in audit.leaks] or None,
            "texts labelled in several ways": dict(_flat(audit.conflicts)),
            "heads of several types": dict(_flat(audit.ambiguity)),
            "learnt from train": audit.tail_labels or None,
        }
        if audit.answers is not None:
            known = dict(_flat(replace(audit.answers, groups=())))
            groups = [dict(_flat(group)) for group in audit.answers.groups]
            facts |= {"gold mentions in the graph": known, "types": groups or None}
        about = f"{audit.data} ({AUDITED[audit.task]}) with {audit.graph}"
        findings = [f"  {MARKS[f.level]} {f.in_words()}" for f in verdict.findings]
        said = [verdict.headline.in_words(), *findings, "", *table(rows, shown=0)]
        sizes = f"{audit.triples:,} triples, {audit.heads:,} heads"
        return "\n".join([f"{about}: {sizes}\n", *said, report_text(facts)])


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The counts in a value, each with its name; of those by label what the graph knows."""
    if is_dataclass(value) and not isinstance(value, Share):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        value = dict(value[:SHOWN])
    if isinstance(value, Mapping):
        for key, part in value.items():
            key = key.replace("_", " ")
            yield from _flat(part, f"{name}, {key}" if name else key)
    elif value not in (None, ()) and ("by label" not in name or name.endswith("known")):
        yield name, per_cent(value) if isinstance(value, float) else value


@command(
    "audit",
    DATA,
    argument("--task", "kind of task; default: by the training set's form", choices=[*AUDITED]),
    argument("--dev", "take dev from this file", metavar="FILE"),
    argument("--test", "take test from this file", metavar="FILE"),
    *(options.COLUMNS, options.GRAPH),
    argument("--max-length", f"in tokens; default: {MAX_LENGTH}", type=int, metavar="N"),
    argument(
        "--model",
        "count tokens as this model does (default: characters or words); a model for named "
        "entities also reads the held-out texts: what would a dictionary and a gate over it score?",
        metavar="DIR",
    ),
    text=Report.text,
)
def audit_data(args: Namespace) -> Report:
    """Count what data and a graph can show together."""
    graph = graph_of(args, needed=True)
    if args.max_length is not None and args.max_length < 3:
        raise OptionError(f"max_length is {args.max_length}, expected 3 or more tokens.")
    others = {"dev": args.dev, "test": args.test}
    data = read_data(args.data, args.task, columns_of(args), others=others)
    tokenizer, trained, scorer = plain_tokenizer(data), InjectionOptions(), None
    as_tokens = True
    if args.model:
        from kbert_core.checkpoints.checkpoint import card_of, load_tokenizer  # seconds to start

        tokenizer = WordPieces(load_tokenizer(args.model))
        card = card_of(args.model)
        card = replace(card, task=card.task or args.task)  # of others' models
        trained = replace(card.reading.options, names=card.names)
        as_tokens = not reader_class(card.system).inserts
    how = options.injection_of(args, trained)
    if how.needs_model:
        from kbert_core.pipeline import Pipeline
        from kbert_core.scoring import scorer_of

        similarity = Pipeline.load(args.model).kbert.similarity if args.model else None
        scorer = scorer_of(how, similarity)
    relations = {triple.relation for triple in graph.active_triples()}
    if unknown := sorted({*(how.relations or ())} - relations):
        some = ", ".join([*sorted(relations)[:SHOWN], "…"][: len(relations)])
        log.warning("No triple has the relation %s; there is %s.", ", ".join(unknown), some)
    counts = audit(
        data.splits,
        graph,
        task=data.task,
        tokenizer=tokenizer,
        options=how,
        max_length=args.max_length or MAX_LENGTH,
        data=data.name,
        scorer=scorer,
        as_tokens=as_tokens,
    )
    if args.model and card.task == data.task == "ner" and counts.missing != ("dev", "test"):
        from kbert_core.pipeline import Pipeline
        from kbert_lab.study.expected import expected_gains, point_of
        from kbert_lab.study.gated import look_up

        try:
            read = look_up(
                Pipeline.load(args.model, task="ner"), args.model, data.splits, graph, how.names
            )
            counts = replace(counts, looked_up=read)
            point = point_of(counts.splits[counts.held_out])
            if point is not None and read.new_names is not None:
                found = (read.new_names,) * 3
                counts = replace(counts, found=found, expected=expected_gains(point, found))
        except DataError as error:  # its labels aren't the data's
            log.warning("The model isn't read: %s", error)
    elif args.model and data.task == "ner" and card.task not in (None, "ner"):
        log.warning(
            "The model is for %s, and only one for %s is read here. It only counts tokens.",
            *(AUDITED.get(str(card.task), card.task), TASKS["ner"]),
        )
    return Report(counts, verdict_of(counts))


# Data sets made of others


@command(
    "split",
    *(DATA, options.COLUMNS, options.GRAPH_FILES),
    argument("--output", "folder for the new files", required=True, metavar="DIR"),
    argument("--by", default=WAYS[0], choices=WAYS),
    argument("--task", default="ner", choices=TASK_NAMES),
    options.options_of(EntityDisjoint),
    argument(
        "--unseen",
        "by substitution: share of the mentions of dev and of test whose names train doesn't label",
        type=float,
        metavar="P",
    ),
)
def split(args: Namespace) -> dict[str, Any]:
    """Split a data set so that knowledge can show."""
    before = read_present(args.data, args.task, columns_of(args))
    shares, graph = options.build(EntityDisjoint, args), graph_of(args) if args.kg else None
    if (args.by == "substitution") != (args.unseen is not None):
        raise OptionError("--by substitution and --unseen go together. Give both, or neither.")
    if args.by == "deduplicated":
        after = deduplicated(before)
    elif args.task != "ner":
        raise DataError(
            f"Only data for named entities can be split --by {args.by} (--task ner). For others "
            "there is --by deduplicated."
        )
    elif args.by == "substitution":
        after = substituted(before, args.unseen, seed=shares.seed, graph=graph, rules=ALL_RULES)
    else:
        after = entity_disjoint(chain(*before.values()), shares, graph=graph, rules=ALL_RULES)
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
)
def rank(args: Namespace) -> dict[str, Any]:
    """Make data for answer selection from CMRC 2018, DRCD or another file in SQuAD's form."""
    from kbert_lab.data.squad import write_ranking_set

    counts = write_ranking_set(args.input, args.output)
    return {"output": str(args.output), **asdict(counts)}


@command(
    "data spans",
    argument(
        "--input",
        "texts with labelled spans (JSON or JSON Lines of doccano, Label Studio, CLUENER and "
        "others; a folder of brat), or a table of tokens with a sentence's number",
        required=True,
        metavar="FILE|DIR",
    ),
    argument("--output", "tokens and tags, .tsv", required=True, metavar="FILE"),
    argument(
        "--skip-bad", "leave out texts whose spans overlap or don't fit, and count them", False
    ),
)
def spans(args: Namespace) -> dict[str, Any]:
    """Make data for named entities from texts with labelled spans, as annotation tools export."""
    from kbert_lab.data.spans import write_spans

    return write_spans(args.input, args.output, skip_bad=args.skip_bad)


# A labelled file with a graph and without


@explanation(
    "file",
    argument("--split", "of a folder", "dev"),
    argument("--most", "read only the first N texts", type=int, metavar="N"),
    options.COLUMNS,
    argument("--by", default="relation", choices=["label", "entity", "relation", "triple"]),
    argument(
        "--prune",
        "take out of the graph what hurts more texts than it helps: counted over the "
        "texts where it stands (counts), or measured by leaving it out of each "
        "(leave-one-out)",
        choices=["counts", "leave-one-out"],
    ),
    argument("--what", "what is taken out", "triple", choices=["triple", "relation"]),
    argument("--least", "take out what hurts at least this many texts more than it helps", 1),
    argument("--output", "where to put the pruned graph", type=Path, metavar="FILE"),
    of=argument("--data", "labelled texts", required=True, metavar="FILE|DIR|hf:NAME"),
)
def file(args: Namespace) -> Page:
    """Read a labelled file with the graph and without: where it helps and where it hurts."""
    from kbert_lab.study.file_rows import each_left_out, each_row
    from kbert_lab.study.whole_file import WholeFile, prune

    if not args.kg:
        raise OptionError("No graph given. Name one or more with --kg FILE.")
    if args.most is not None and args.most < 1:
        raise OptionError(f"--most is {args.most}, expected at least 1 text.")
    if not args.prune and (args.output, args.what, args.least) != (None, "triple", 1):
        raise OptionError(
            "--output, --what and --least are of a pruned graph, and there is no --prune. Add it, "
            "or leave them out."
        )
    pipeline, graph, config = loaded(args, why=NO_HEAD)
    assert pipeline.task is not None
    task = pipeline.task.name
    examples = read_split(args.data, args.split, task, columns_of(args))[: args.most]
    reading = each_row(pipeline, examples, graph, config=config)
    rows = tuple(Progress("texts", total=len(examples)).over(reading))
    whole = WholeFile(task, graph.name, rows, len(examples))
    data = whole.as_dict()
    facts = {
        "texts": len(whole.rows),
        "graph": whole.graph,
        "texts with a triple of it": len(whole.with_knowledge),
        "changed by knowledge": len(whole.changed),
        **{"helped": whole.whole.helped, "hurt": whole.whole.hurt},
        whole.scores.metric: _scores(whole.scores),
        "in common": [_group(group) for group in whole.groups(args.by)],
    }
    if args.prune:
        left_out = []
        if args.prune == "leave-one-out":
            tried = each_left_out(pipeline, whole.rows, graph, config=config)
            left_out = list(Progress("triples", total=None).over(tried))
        rule: Any = args.prune.replace("-", " ")
        pruned = prune(graph, whole.rows, left_out, rule=rule, what=args.what, least=args.least)
        if args.output is not None:
            write_triples((t for t in pruned.graph if pruned.graph.is_on(t)), args.output)
        data["pruned"] = pruned.as_dict()
        facts |= {"pruned": str(pruned), "taken out": data["pruned"]["removed"] or None}
    return Page(data, partial(whole.figure, args.by), facts)


def _scores(scores: "FileScores") -> list[dict[str, str]]:
    """The score of each way and their difference in per cent, with 95 %."""
    from kbert_lab.study.whole_file import WITH, WITHOUT

    rows: list[tuple[str, Any, str]] = [(way, score, "") for way, score in scores.main.items()]
    if scores.difference is not None:
        rows.append((f"{WITH} minus {WITHOUT}", scores.difference, "+"))
    return [
        {"": name, " ": f"{100 * s.mean:{sign}.1f}", "95 %": _interval(s.low, s.high, sign)}
        for name, s, sign in rows
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
