"""`kbert kg`: make, compare, check and count whole graphs; edits are in ``edits``."""

import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kbert_core.cli.commands import (
    ALIASES,
    GRAPH_FILES,
    aliases_of,
    argument,
    build,
    command,
    graph_of,
    options_of,
    several,
)
from kbert_core.cli.output import SHOWN, Progress, triple_line
from kbert_core.errors import GraphEditError, GraphFileError, OptionError
from kbert_core.knowledge import join_graphs, load_graph
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io import ENDINGS, ReadOptions, open_rows, read_triples, unit_of
from kbert_core.knowledge.io.compression import plain_ending
from kbert_core.knowledge.io.write import write_triples
from kbert_core.knowledge.store import ENDING
from kbert_core.knowledge.store.importing import Source, import_triples
from kbert_core.knowledge.store.store import GraphStore
from kbert_core.knowledge.tools.check import EXAMPLES, check
from kbert_core.knowledge.tools.controls import shuffled
from kbert_core.knowledge.triple import Triple

FORMATS = ".spo .tsv .csv .jsonl .nt .ttl, packed or not"
READ = several(
    argument("--skip-bad", "leave bad lines out, and list them", False), options_of(ReadOptions)
)
WHO = argument("--by", "your name, for the log", "", metavar="NAME")
Report = dict[str, Any]


def opened(name: str, args: Namespace) -> KnowledgeGraph:
    """Open a graph by the name given; ``NAME.kg@N`` is one as it was at entry N of its log."""
    path, at, revision = name.rpartition("@")
    if at and path.endswith(ENDING) and revision.isdecimal():
        with GraphStore(path) as store:
            return store.at(int(revision))
    return load_graph(name, options=build(ReadOptions, args), skip_bad=args.skip_bad)


def must_be_graph(path: Path) -> None:
    """Refuse a file that holds no log, with the command that makes one."""
    if path.suffix != ENDING:
        raise OptionError(
            f"{path}: edits and their log need a graph file, whose name ends with {ENDING}. Make "
            f"one: kbert kg import {path} --output {path.with_suffix(ENDING).name}"
        )


def origin_text(fields: Mapping[str, Any]) -> str | None:
    """Where a triple of a graph file comes from; None: that isn't known."""
    file, line = fields.get("file"), fields.get("line")
    if file:
        return f"{file}, {unit_of(file)} {line}" if line else file
    return f"entry {fields['revision']} of the log" if "revision" in fields else None


@command("kg stats", GRAPH_FILES)
def stats(args: Namespace) -> Report:
    """Count what a graph holds."""
    graph = graph_of(args, needed=True)
    files = []
    for path in args.kg:
        read = None
        if Path(path).suffix != ENDING:
            read = read_triples(path, skip_bad=args.skip_bad)
        files.append(
            {
                "file": str(path),
                "triples": len(read.triples if read else load_graph(path)),
                "duplicates": read.duplicates if read else 0,
                "bad_lines": list(read.problems) if read else [],
            }
        )
    relations = Counter(triple.relation for triple in graph.active_triples())
    sizes = Counter({entity: sum(map(graph.is_on, own)) for entity, own in graph.items()})
    sizes = +sizes  # without those all of whose triples are off
    return {
        "files": files,
        "triples": sizes.total(),
        "switched_off": len(graph.off),
        "entities": len(sizes),
        "entities_with_several_triples": sum(size > 1 for size in sizes.values()),
        "longest_name": max(sizes, key=len, default=""),
        "most_triples": dict(sizes.most_common(10)),
        "relations": dict(relations.most_common()),
    }


@command(
    "kg shuffle",
    GRAPH_FILES,
    argument("--output", "new graph", type=Path, required=True, metavar="FILE"),
    argument("--seed", "of the pairs", 0),
)
def shuffle(args: Namespace) -> Report:
    """Give every head a wrong tail, as a control."""
    result = shuffled(graph_of(args, needed=True), seed=args.seed)
    write_triples(result.graph, args.output)
    return {
        "output": str(args.output),
        "triples": len(result.graph),
        "share with a true tail still": round(result.unchanged, 4),
    }


@command(
    "kg import",
    argument("files", FORMATS, nargs="+", metavar="FILE"),
    argument("--output", "made, or added to", required=True, type=Path, metavar="GRAPH.kg"),
    argument("--name", "of a new graph; default: the file's", ""),
    *(ALIASES, READ, WHO),
)
def import_files(args: Namespace) -> Report:
    """Make a graph file (.kg) of text files, or add them to one."""
    must_be_graph(args.output)
    options = build(ReadOptions, args)
    readings = [open_rows(file, options, skip_bad=args.skip_bad) for file in args.files]
    sources = [Source(reading.name, reading) for reading in readings]
    aliases = aliases_of(args) if args.alias or args.alias_of else None
    begun = time.perf_counter()
    with Progress("triples") as progress:
        done = import_triples(
            args.output, sources, name=args.name, who=args.by, aliases=aliases, progress=progress
        )
    for problem in [problem for reading in readings for problem in reading.problems][:SHOWN]:
        print(f"left out: {problem}", file=sys.stderr)
    passed = sum((reading.passed for reading in readings), Counter[str]())
    for what, count in passed.items():
        print(f"passed over: {count:,} with {what}", file=sys.stderr)
    return {
        "graph": str(args.output),
        "triples": done.triples,
        "repeated": done.repeated,
        "left_out": sum(reading.bad for reading in readings),
        "passed_over": passed.total(),
        "entry": done.revision,
        "seconds": round(time.perf_counter() - begun, 1),
    }


@command(
    "kg merge",
    argument("graphs", "an earlier one's triples come first", nargs="+", metavar="GRAPH"),
    argument("--output", "a new file", required=True, type=Path, metavar="GRAPH.kg"),
    *(READ, WHO),
)
def merge(args: Namespace) -> Report:
    """Make one graph file of several graphs, without their logs.

    What is off in the first graph that has it stays off.
    """
    must_be_graph(args.output)
    if args.output.exists():
        raise GraphFileError(
            f"{args.output}: is there already. Give a new name, or add text files to it with "
            "`kg import`."
        )
    graphs = [opened(name, args) for name in args.graphs]
    rows = [((0, t.head, t.relation, t.tail) for t in graph) for graph in graphs]  # no line known
    sources = [Source(name, triples) for name, triples in zip(args.graphs, rows, strict=True)]
    with Progress("triples") as progress:
        aliases = join_graphs(graphs).aliases
        done = import_triples(args.output, sources, who=args.by, aliases=aliases, progress=progress)
    off = {triple for graph in graphs for triple in graph.off}
    if off:
        with GraphStore(args.output, write=True) as store:
            store.apply(*(Edit("switch_off", triple) for triple in sorted(off)), who=args.by)
    counts = {"triples": done.triples, "repeated": done.repeated, "switched_off": len(off)}
    return {"graph": str(args.output), **counts}


@command(
    "kg export",
    argument("graph", "a graph, or as it was at entry N of its log", metavar="GRAPH[@N]"),
    argument("output", FORMATS, type=Path, metavar="FILE"),
    argument("--all", "also what is switched off", False),
    READ,
)
def export(args: Namespace) -> Report:
    """Write a graph as text, in the format of the file's name."""
    if args.output.suffix == ENDING:
        raise OptionError(
            f"{args.output}: a graph file isn't exported to but made. Use `kbert kg merge "
            f"{args.graph} --output {args.output}`."
        )
    if args.output.suffix and plain_ending(args.output) not in ENDINGS:
        raise OptionError(
            f"{args.output}: no format of that ending can be written. Name it with one of "
            f"{' '.join(ENDINGS)}, and .xz .gz .bz2 or .zst after it where it is to be packed."
        )
    graph = opened(args.graph, args)
    triples = (t for t in graph if args.all or graph.is_on(t))
    count = write_triples(Progress("triples").over(triples), args.output)
    off = 0 if args.all else len(graph.off)
    return {"file": str(args.output), "triples": count, "switched_off_left_out": off}


@command(
    "kg get",
    argument("name", "which graph", choices=["medical", "hownet"]),
    argument("--output", "where to put it", type=Path, metavar="FILE"),
    text=lambda data: f"{data['file']}: {data['triples']:,} triples. Use it: --kg {data['file']}",
)
def get(args: Namespace) -> Report:
    """Fetch MedicalKG or HowNet from their public home."""
    from kbert_core.knowledge.io.download import PUBLIC, fetch

    path = fetch(args.name, args.output)
    public = PUBLIC[args.name]
    return {"name": args.name, "file": str(path), "triples": public.triples, "url": public.url}


def difference_text(data: Mapping[str, Any]) -> str:
    """What one graph has and another has not, a line a triple."""
    marks = {"removed": "-", "added": "+", "switched_off": "off", "switched_on": "on"}
    lines = [f"{mark} {triple_line(t)}" for kind, mark in marks.items() for t in data[kind]]
    return "\n".join(lines or ["no difference"])


@command(
    "kg diff",
    argument("before", "a graph, or as it was at entry N of its log", metavar="A[@N]"),
    argument("after", metavar="B[@N]"),
    READ,
    text=difference_text,
)
def difference(args: Namespace) -> Report:
    """What one graph has and another has not."""
    before, after = opened(args.before, args), opened(args.after, args)
    return {
        "removed": [asdict(t) for t in before if t not in after],
        "added": [asdict(t) for t in after if t not in before],
        "switched_off": [asdict(t) for t in sorted(after.off - before.off) if t in before],
        "switched_on": [asdict(t) for t in sorted(before.off - after.off) if t in after],
    }


def findings_text(data: Mapping[str, Any]) -> str:
    """What is doubtful in a graph, with examples and what to do."""
    lines = []
    for finding in data["findings"]:
        lines.append(f"{finding['title']}: {finding['count']:,}")
        for example in finding["examples"]:
            notes = dict.fromkeys(filter(None, map(origin_text, example["triples"])))
            lines.append(f"  {example['text']}" + (f"   ({'; '.join(notes)})" if notes else ""))
        more = finding["count"] - len(finding["examples"])
        lines += [f"  … and {more:,} more"] if more else []
        lines.append(f"  → {finding['remedy']}")
    return "\n".join(lines or [f"{data['graph']}: nothing doubtful found."])


@command(
    "kg check",
    argument("graph", metavar="GRAPH[@N]"),
    argument("--examples", "of each kind", EXAMPLES),
    *(ALIASES, READ),
    text=findings_text,
)
def check_graph(args: Namespace) -> Report:
    """List what is probably not meant so; changes nothing."""
    graph = opened(args.graph, args)
    aliases = graph.aliases.joined(aliases_of(args))
    with Progress("triples") as progress:
        findings = check(graph, alias_relations=aliases, examples=args.examples, progress=progress)
    data = [asdict(finding) for finding in findings]
    if Path(args.graph).suffix == ENDING:
        with GraphStore(args.graph) as store:
            for example in (example for finding in data for example in finding["examples"]):
                for fields in example["triples"]:
                    with suppress(GraphEditError):  # taken out meanwhile
                        fields.update(asdict(store.origin(Triple(**fields))))
    return {"graph": args.graph, "findings": data}
