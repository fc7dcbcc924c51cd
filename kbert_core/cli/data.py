"""`kbert split` and `kbert data`: data sets made of others."""

from argparse import Namespace
from dataclasses import asdict
from typing import Any

from kbert_core.cli.commands import argument, build, command, options_of
from kbert_core.cli.output import fields_text
from kbert_core.cli.shared import COLUMNS, DATA_SETS, GRAPH_FILES, graph_of
from kbert_core.data.columns import parse_columns
from kbert_core.data.sources import read_present
from kbert_core.data.splits import EntityDisjoint, deduplicated, entity_disjoint, write_split
from kbert_core.errors import DataError

WAYS = ("entity-disjoint", "deduplicated")


@command(
    "split",
    "split a data set so that knowledge can show",
    argument("--data", required=True, metavar="DIR|hf:NAME", help=DATA_SETS),
    COLUMNS,
    GRAPH_FILES,
    argument("--output", required=True, metavar="DIR", help="folder for the new files"),
    argument("--by", choices=WAYS, default=WAYS[0], help=f"default: {WAYS[0]}"),
    argument(
        "--task",
        choices=("ner", "classify", "pair", "rank"),
        default="ner",
        help="default: ner",
    ),
    options_of(EntityDisjoint),
    text=fields_text,
)
def split(args: Namespace) -> dict[str, Any]:
    """The same sentences, deduplicated or entity-disjoint; returns counts."""
    before = read_present(args.data, args.task, parse_columns(args.columns))
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
    seen: set[str] = set()
    for name, examples in after.items():
        mentions = [e.sentences[0][a:b] for e in examples for a, b, _ in e.spans]
        report[name] = {"sentences": len(examples), "before": len(before.get(name, ()))}
        if args.task == "ner":
            new = sum(mention not in seen for mention in mentions) if name != "train" else 0
            report[name] |= {"mentions": len(mentions), "unseen in train": new}
            if name == "train":
                seen = set(mentions)
    return report


@command(
    "data rank",
    "make a set for answer selection of CMRC 2018, DRCD or another in SQuAD's form",
    argument("--input", required=True, metavar="FILE", help="such as cmrc2018_dev.json"),
    argument("--output", required=True, metavar="FILE", help="qid, label and texts, .tsv"),
    text=fields_text,
)
def rank(args: Namespace) -> dict[str, Any]:
    """Reading comprehension → a file for answer selection."""
    from kbert_core.data.squad import write_ranking_set

    counts = write_ranking_set(args.input, args.output)
    return {"output": str(args.output), **asdict(counts)}
