"""`kbert split`: a data set's files → the same sentences, split otherwise."""

import argparse
from typing import Any

from kbert_core.cli.options import graph_of
from kbert_core.cli.train_options import DATA_SETS, add_columns
from kbert_core.data.columns import parse_columns
from kbert_core.data.sources import read_present
from kbert_core.data.splits import (
    EntityDisjoint,
    deduplicated,
    entity_disjoint,
    write_split,
)
from kbert_core.errors import DataError

WAYS = ("entity-disjoint", "deduplicated")


def add_split_options(parser: argparse.ArgumentParser) -> None:
    """Options of `kbert split`, besides those of a graph."""
    base = EntityDisjoint()
    add = parser.add_argument
    add("--data", required=True, metavar="DIR|hf:NAME", help=DATA_SETS)
    add_columns(parser)
    add("--output", required=True, metavar="DIR", help="folder for the new files")
    add("--by", choices=WAYS, default=WAYS[0], help=f"default: {WAYS[0]}")
    add("--task", choices=("ner", "classify", "pair", "rank"), default="ner", help="default: ner")
    add("--seed", type=int, default=0, help="which names are held out; default: 0")
    for name in ("test", "dev"):
        value = getattr(base, f"{name}_share")
        add(
            f"--{name}-share",
            type=float,
            default=value,
            help=f"of all entity names, held out for {name}; default: {value}",
        )


def run_split(args: argparse.Namespace) -> dict[str, Any]:
    """Split as the command line says; returns counts."""
    found = read_present(args.data, args.task, parse_columns(args.columns))
    if args.by == "deduplicated":
        made = deduplicated(found)
    elif args.task != "ner":
        raise DataError(
            "Only data for named entities can be split entity-disjoint (--task ner). For others "
            "there is --by deduplicated."
        )
    else:
        made = entity_disjoint(
            (e for examples in found.values() for e in examples),
            EntityDisjoint(args.seed, args.test_share, args.dev_share),
            graph=graph_of(args) if args.kg else None,
        )
    write_split(args.output, made)
    report: dict[str, Any] = {"output": str(args.output), "by": args.by}
    seen: set[str] = set()
    for split, examples in made.items():
        names = [e.sentences[0][a:b] for e in examples for a, b, _ in e.spans]
        report[split] = {"sentences": len(examples), "before": len(found.get(split, ()))}
        if args.task == "ner":
            new = sum(name not in seen for name in names) if split != "train" else 0
            report[split] |= {"mentions": len(names), "unseen in train": new}
            if split == "train":
                seen = set(names)
    return report
