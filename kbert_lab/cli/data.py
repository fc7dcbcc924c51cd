"""`kbert audit`, `split` and `data`: what labelled data and a graph show, and data sets made."""

import logging
from argparse import Namespace
from dataclasses import asdict, replace
from itertools import chain
from typing import Annotated, Any, Literal

from kbert_core.errors import DataError, OptionError
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.surface_forms import ALL_RULES
from kbert_core.systems import reader_class
from kbert_core.text import WordPieces
from kbert_lab.cli import commands as options
from kbert_lab.cli.commands import columns_of, command, graph_of
from kbert_lab.cli.output import report_text, table
from kbert_lab.data.files import DATA_SETS
from kbert_lab.data.sources import TASKS, read_present
from kbert_lab.data.splits import (
    EntityDisjoint,
    deduplicated,
    entity_disjoint,
    substituted,
    write_split,
)
from kbert_lab.study.audit import MAX_LENGTH, audit
from kbert_lab.study.audit_values import plain_tokenizer, read_data
from kbert_lab.study.verdict import Level, Report, verdict_of

log = logging.getLogger(__name__)

AUDITED = {**TASKS, "qa": "reading comprehension"}
MARKS = {Level.WARNING: "!", Level.NOTE: "·", Level.GOOD: "+"}
SHOWN = 5  # relations
MOST_FINDINGS = 8  # the first, unless all are asked for
Data = Annotated[str, {"metavar": "DIR|hf:NAME", "help": DATA_SETS}]


def report_text_of(report: Report) -> str:
    """For reading: what to expect, the verdict, what matters most; or all, and the counts."""
    audit, verdict = report.counts, report.verdict
    sizes = f"{audit.triples:,} triples, {audit.heads:,} heads"
    about = f"{audit.data} ({AUDITED[audit.task]}) with {audit.graph}: {sizes}"
    answers = [answer.in_words() for answer in verdict.answers]
    most = len(verdict.findings) if report.every else MOST_FINDINGS
    findings = [f"  {MARKS[f.level]} {f.in_words()}" for f in verdict.findings[:most]]
    said = [f"{about}\n", *answers, *[""] * bool(answers), verdict.headline.in_words(), *findings]
    if report.every:
        rows, facts = report.rows(), report_text(report.facts())
        return "\n".join([*said, "", *table(rows, shown=0), facts])
    more = len(verdict.findings) - len(findings)
    left_out = f"{more} more finding{'s' * (more != 1)} and the" if more else "The"
    return "\n".join([*said, f"{left_out} counts: --all"])


@command("audit", options.COLUMNS, options.GRAPH, text=report_text_of)
def audit_data(
    args: Namespace,
    *,
    data: Data,
    task: Annotated[str | None, {"choices": [*AUDITED]}] = None,
    dev: str | None = None,
    test: str | None = None,
    max_length: int = MAX_LENGTH,
    model: str | None = None,
    all: bool = False,
) -> Report:
    """Count what data and a graph can show together.

    Args:
        task: kind of task; default: by the training set's form
        dev (FILE): take dev from this file
        test (FILE): take test from this file
        max_length: in tokens
        model (DIR): count tokens as this model does (default: characters or words); a model for
            named entities also reads the held-out texts: what would a dictionary and a gate over it
            score?
        all: print every finding, and the counts
    """
    graph = graph_of(args, needed=True)
    if max_length < 3:
        raise OptionError(f"max_length is {max_length}, expected 3 or more tokens.")
    splits = read_data(data, task, columns_of(args), others={"dev": dev, "test": test})
    tokenizer, trained, scorer = plain_tokenizer(splits), InjectionOptions(), None
    as_tokens = True
    if model:
        from kbert_core.checkpoints.checkpoint import card_of, load_tokenizer  # seconds to start

        tokenizer = WordPieces(load_tokenizer(model))
        card = card_of(model)
        card = replace(card, task=card.task or task)  # of others' models
        trained = replace(card.reading.options, names=card.names)
        as_tokens = not reader_class(card.system).inserts
    how = options.injection_of(args, trained)
    if how.needs_model:
        from kbert_core.pipeline import Pipeline
        from kbert_core.scoring import scorer_of

        similarity = Pipeline.from_pretrained(model).kbert.similarity if model else None
        scorer = scorer_of(how, similarity)
    relations = {triple.relation for triple in graph.active_triples()}
    if unknown := sorted({*(how.relations or ())} - relations):
        some = ", ".join([*sorted(relations)[:SHOWN], "…"][: len(relations)])
        log.warning("No triple has the relation %s; there is %s.", ", ".join(unknown), some)
    counts = audit(
        splits.splits,
        graph,
        task=splits.task,
        tokenizer=tokenizer,
        options=how,
        max_length=max_length,
        data=splits.name,
        scorer=scorer,
        as_tokens=as_tokens,
    )
    if model and card.task == splits.task == "ner" and counts.missing != ("dev", "test"):
        from kbert_core.pipeline import Pipeline
        from kbert_lab.study.expected import expected_gains, point_of
        from kbert_lab.study.gated import look_up

        try:
            pipeline = Pipeline.from_pretrained(model, task="ner")
            read = look_up(pipeline, model, splits.splits, graph, how.names)
            counts = replace(counts, looked_up=read)
            point = point_of(counts.splits[counts.held_out])
            if point is not None and read.new_names is not None:
                found = (read.new_names,) * 3
                counts = replace(counts, found=found, expected=expected_gains(point, found))
        except DataError as error:  # its labels aren't the data's
            log.warning("The model isn't read: %s", error)
    elif model and splits.task == "ner" and card.task not in (None, "ner"):
        log.warning(
            "The model is for %s, and only one for %s is read here. It only counts tokens.",
            *(AUDITED.get(str(card.task), card.task), TASKS["ner"]),
        )
    return Report(counts, verdict_of(counts), all)


# Data sets made of others


@command("split", options.COLUMNS, options.GRAPH_FILES, options.arguments_of(EntityDisjoint))
def split(
    args: Namespace,
    *,
    data: Data,
    output: str,
    by: Literal["entity-disjoint", "deduplicated", "substitution"] = "entity-disjoint",
    task: Annotated[str, {"choices": [*TASKS]}] = "ner",
    unseen: float | None = None,
) -> dict[str, Any]:
    """Split a data set so that knowledge can show.

    Args:
        output (DIR): folder for the new files
        unseen (P): by substitution: share of the mentions of dev and of test whose names train
            doesn't label
    """
    before = read_present(data, task, columns_of(args))
    shares, graph = options.build(EntityDisjoint, args), graph_of(args) if args.kg else None
    if (by == "substitution") != (unseen is not None):
        raise OptionError("--by substitution and --unseen go together. Give both, or neither.")
    if by == "deduplicated":
        after = deduplicated(before)
    elif task != "ner":
        raise DataError(
            f"Only data for named entities can be split --by {by} (--task ner). For others "
            "there is --by deduplicated."
        )
    elif unseen is not None:
        after = substituted(before, unseen, seed=shares.seed, graph=graph, rules=ALL_RULES)
    else:
        after = entity_disjoint(chain(*before.values()), shares, graph=graph, rules=ALL_RULES)
    write_split(output, after)
    report: dict[str, Any] = {"output": output, "by": by}
    in_train: set[str] = set()
    for name, examples in after.items():
        report[name] = {"sentences": len(examples), "before": len(before.get(name, ()))}
        if task == "ner":
            mentions = [e.sentences[0][a:b] for e in examples for a, b, _ in e.spans]
            in_train |= set(mentions) if name == "train" else set()
            new = sum(mention not in in_train for mention in mentions)
            report[name] |= {"mentions": len(mentions), "unseen in train": new}
    return report


@command("data rank")
def rank(*, input: str, output: str) -> dict[str, Any]:
    """Make data for answer selection from CMRC 2018, DRCD or another file in SQuAD's form.

    Args:
        input (FILE): such as cmrc2018_dev.json
        output (FILE): qid, label and texts, .tsv
    """
    from kbert_lab.data.squad import write_ranking_set

    return {"output": output, **asdict(write_ranking_set(input, output))}


@command("data spans")
def spans(*, input: str, output: str, skip_bad: bool = False) -> dict[str, Any]:
    """Make data for named entities from texts with labelled spans, as annotation tools export.

    Args:
        input (FILE|DIR): texts with labelled spans (JSON or JSON Lines of doccano, Label Studio,
            CLUENER and others; a folder of brat), or a table of tokens with a sentence's number
        output (FILE): tokens and tags, .tsv
        skip_bad: leave out texts whose spans overlap or don't fit, and count them
    """
    from kbert_lab.data.spans import write_spans

    return write_spans(input, output, skip_bad=skip_bad)
