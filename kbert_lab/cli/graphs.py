"""`kbert kg`: graphs made, compared, checked and counted; a graph file edited, and its log."""

import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from kbert_core.errors import GraphEditError, GraphFileError, OptionError
from kbert_core.knowledge import join_graphs, load_graph
from kbert_core.knowledge.edit import Action, Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io import ReadOptions, open_rows, read_triples, unit_of
from kbert_core.knowledge.io.compression import plain_ending
from kbert_core.knowledge.io.sources import SERVER, STORED, is_stored
from kbert_core.knowledge.io.write import ENDINGS as WRITTEN
from kbert_core.knowledge.io.write import write_triples
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_lab.cli import commands as options
from kbert_lab.cli.commands import argument, command, several
from kbert_lab.cli.output import (
    SHOWN,
    TRIPLE,
    Progress,
    entry_text,
    history_text,
    table,
    triple_line,
)
from kbert_lab.graphs.check import EXAMPLES, check
from kbert_lab.graphs.controls import shuffled, with_constant_tail
from kbert_lab.graphs.remote import fetched as fetch_rows
from kbert_lab.graphs.remote import is_remote
from kbert_lab.graphs.store.anywhere import copy_graph, import_into, is_there, open_store
from kbert_lab.graphs.store.importing import Source
from kbert_lab.graphs.store.log import Entry
from kbert_lab.graphs.store.store import GraphStore

FORMATS = ".spo .tsv .csv .jsonl .nt .ttl, packed or not"
READ_FORMATS = f".rdf .owl .nq .trig .n3 .jsonld {FORMATS}"
READ = several(
    argument("--skip-bad", "load the good lines, and list the bad ones", False),
    options.options_of(ReadOptions),
)
WHO = argument("--by", "your name, for the log", "", metavar="NAME")
Report = dict[str, Any]


def logged(name: str) -> str | Path:
    """Refuse a graph that has no log, with the command that makes one."""
    return name if name.startswith(SERVER) else graph_file(name)


def graph_file(name: str) -> Path:
    """Refuse what is no graph file."""
    if (path := Path(name)).suffix != STORED:
        graph = path.with_suffix(STORED).name
        remedy = f"Make one: kbert kg import {path} --output {graph}"
        raise OptionError(
            f"{path}: edits and their log need a graph file, whose name ends with {STORED}. "
            + (remedy if path.exists() else f"Call it {graph}.")
        )
    return path


GRAPH_KG = argument("graph", type=logged, metavar="GRAPH.kg")


def _opened(name: str, args: Namespace) -> KnowledgeGraph:
    """Open a graph by the name given; ``NAME.kg@N`` is one as it was at entry N of its log."""
    path, at, revision = name.rpartition("@")
    if at and is_stored(path) and revision.isdecimal():
        with open_store(path) as store:
            return store.at(int(revision))
    return load_graph(name, options=options.build(ReadOptions, args), skip_bad=args.skip_bad)


def _origin_text(fields: Mapping[str, Any]) -> str | None:
    """Where a triple of a graph file comes from; None: that isn't known."""
    file, line = fields.get("file"), fields.get("line")
    if file:
        return f"{file}, {unit_of(file)} {line}" if line else file
    return f"entry {fields['revision']} of the log" if "revision" in fields else None


@command(
    "kg stats",
    argument("graphs", "the same as --kg FILE", nargs="*", metavar="GRAPH"),
    options.GRAPH_FILES,
)
def stats(args: Namespace) -> Report:
    """Count what a graph holds."""
    args.kg = [*args.graphs, *args.kg]
    graph = options.graph_of(args, needed=True)
    files = []
    for path in args.kg:
        text = not is_stored(path)
        read = read_triples(path, skip_bad=args.skip_bad) if text else None
        triples = len(read.triples if read else load_graph(path))
        bad = {"bad_lines": list(read.problems) if read else []}
        more = {"duplicates": read.duplicates if read else 0, **bad}
        files.append({"file": str(path), "triples": triples, **more})
    relations = Counter(triple.relation for triple in graph.active_triples())
    # "+" leaves those out all of whose triples are off
    sizes = +Counter({entity: sum(map(graph.is_on, own)) for entity, own in graph.items()})
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


OUTPUT = argument("--output", "new graph", type=Path, required=True, metavar="FILE")


@command(
    "kg control",
    *(options.GRAPH_FILES, OUTPUT),
    argument(
        "--tails",
        "shuffled: every head gets a wrong tail; permuted: one drawn from all; constant: the same",
        choices=["shuffled", "permuted", "constant"],
        required=True,
    ),
    argument("--seed", "of what is drawn", 0),
)
def control(args: Namespace) -> Report:
    """Make a control of a graph: the same names with other tails."""
    graph = options.graph_of(args, needed=True)
    report: Report = {"output": str(args.output)}
    if args.tails == "constant":
        graph = with_constant_tail(graph)
    else:
        result = shuffled(graph, seed=args.seed, deranged=args.tails == "shuffled")
        graph = result.graph
        report["share with a true tail still"] = round(result.unchanged, 4)
    write_triples(graph, args.output)
    return {**report, "triples": len(graph)}


@command(
    "kg import",
    argument(
        "files",
        f"{READ_FORMATS}; or the address of a SPARQL endpoint or a Neo4j server",
        nargs="+",
        metavar="FILE|ADDRESS",
    ),
    argument(
        "--query",
        "asked of an address: SPARQL that selects ?head ?relation ?tail, or Cypher that returns "
        "head, relation and tail; default: all there is",
        type=Path,
        metavar="FILE",
    ),
    argument(
        "--output",
        "graph file (.kg), or postgresql://…; if the graph exists, the triples are added",
        required=True,
        type=logged,
        metavar="GRAPH.kg",
    ),
    argument("--name", "name of a new graph; default: the file's", ""),
    *(options.ALIASES, READ, WHO),
)
def import_files(args: Namespace) -> Report:
    """Make a graph from text files, endpoints and servers, or add them to one.

    What came from an address is kept until the import is done: after a break, the same command goes
    on where it stopped.
    """
    read_as = options.build(ReadOptions, args)
    begun = time.perf_counter()
    fetched = []
    readings = []
    query = _query(args)
    with ExitStack() as until_imported:
        for file in args.files:
            if is_remote(file):
                with Progress("rows") as progress:
                    how: Any = {"query": query, "skip_bad": args.skip_bad, "progress": progress}
                    came = until_imported.enter_context(fetch_rows(file, read_as, **how))
                fetched.append({"from": file, "rows": came.rows, "sha256": came.sha256})
                readings.append(came.reading)
            else:
                readings.append(open_rows(file, read_as, skip_bad=args.skip_bad))
        sources = [Source(reading.name, reading) for reading in readings]
        aliases = options.aliases_of(args) if args.alias or args.alias_of else None
        with Progress("triples") as progress:
            how = {"who": args.by, "aliases": aliases, "progress": progress}
            done = import_into(args.output, sources, name=args.name, **how)
    for problem in [problem for reading in readings for problem in reading.problems][:SHOWN]:
        print(f"left out: {problem}", file=sys.stderr)
    passed = sum((reading.passed for reading in readings), Counter[str]())
    for what, count in passed.items():
        print(f"passed over: {count:,} with {what}", file=sys.stderr)
    return {
        "graph": str(args.output),
        "fetched": fetched or None,
        "triples": done.triples,
        "repeated": done.repeated,
        "left_out": sum(reading.bad for reading in readings),
        "passed_over": passed.total(),
        "entry": done.revision,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def _query(args: Namespace) -> str:
    """What is asked of addresses, read from its file."""
    if args.query is None:
        return ""
    if not any(map(is_remote, args.files)):
        raise OptionError("--query is asked of an address, and only files are given. Leave it out.")
    try:
        return args.query.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            f"{args.query}: can't be read ({error}). Give a text file with the query."
        ) from error


@command(
    "kg merge",
    argument("graphs", "graphs, in the order of their triples", nargs="+", metavar="GRAPH"),
    argument(
        "--output", "a new one, file or server", required=True, type=logged, metavar="GRAPH.kg"
    ),
    *(READ, WHO),
)
def merge(args: Namespace) -> Report:
    """Make one graph from several, without their logs.

    What is switched off in one of them stays off.
    """
    if is_there(args.output):
        raise GraphFileError(
            f"{args.output}: is there already. Give a new name, or add text files to it with "
            "`kg import`."
        )
    graphs = [_opened(name, args) for name in args.graphs]
    rows = [((0, t.head, t.relation, t.tail) for t in graph) for graph in graphs]  # no line known
    sources = [Source(name, triples) for name, triples in zip(args.graphs, rows, strict=True)]
    with Progress("triples") as progress:
        aliases = join_graphs(graphs).aliases
        done = import_into(args.output, sources, who=args.by, aliases=aliases, progress=progress)
    off = {triple for graph in graphs for triple in graph.off}
    if off:
        with open_store(args.output, write=True) as store:
            store.apply(*(Edit("switch_off", triple) for triple in sorted(off)), who=args.by)
    counts = {"triples": done.triples, "repeated": done.repeated, "switched_off": len(off)}
    return {"graph": str(args.output), **counts}


@command(
    "kg export",
    argument(
        "graph", "a graph, or with @N as it was after entry N of its log", metavar="GRAPH[@N]"
    ),
    argument("output", FORMATS, type=Path, metavar="FILE"),
    argument("--all", "also write what is switched off", False),
    argument("--neo4j", "as Neo4j reads it: .csv, with the nodes in another; or .jsonl", False),
    READ,
)
def export(args: Namespace) -> Report:
    """Write a graph as text, in the format of the file's name."""
    if args.output.suffix == STORED:
        raise OptionError(
            f"{args.output}: `kbert kg export` can't write a graph file. Use `kbert kg merge "
            f"{args.graph} --output {args.output}`."
        )
    if args.output.suffix and plain_ending(args.output) not in WRITTEN:
        raise OptionError(
            f"{args.output}: no format with this ending can be written. Use one of "
            f"{' '.join(WRITTEN)}. To pack the file, add .xz .gz .bz2 or .zst after it."
        )
    graph = _opened(args.graph, args)
    triples = (t for t in graph if args.all or graph.is_on(t))
    counted = Progress("triples").over(triples)
    report: Report = {"file": str(args.output)}
    if args.neo4j:
        from kbert_lab.graphs.neo4j import write_neo4j

        report["triples"], files = write_neo4j(counted, args.output)
        report["file"] = " ".join(map(str, files))
    else:
        report["triples"] = write_triples(counted, args.output)
    return {**report, "switched_off_left_out": 0 if args.all else len(graph.off)}


GRAPH_NAME = "graph file (.kg), or postgresql://USER@HOST/DATABASE[?graph=NAME]"


@command(
    "kg copy",
    argument("graph", GRAPH_NAME, type=logged, metavar="GRAPH.kg"),
    argument("output", "a new one, file or server", type=logged, metavar="COPY.kg"),
)
def copy(args: Namespace) -> Report:
    """Copy a graph with its whole log, between files and PostgreSQL servers."""
    with Progress("triples") as progress:
        entries = copy_graph(args.graph, args.output, progress=progress)
    return {"graph": str(args.output), "entries": entries}


@command(
    "kg get",
    argument("name", "which graph", choices=["medical", "hownet"]),
    argument("--output", "where the file goes", type=Path, metavar="FILE"),
    text=lambda data: f"{data['file']}: {data['triples']:,} triples. Use it: --kg {data['file']}",
)
def get(args: Namespace) -> Report:
    """Fetch MedicalKG or HowNet from their public home."""
    from kbert_lab.graphs.download import PUBLIC, fetch

    path, public = fetch(args.name, args.output), PUBLIC[args.name]
    return {"name": args.name, "file": str(path), "triples": public.triples, "url": public.url}


def difference_text(data: Mapping[str, Any]) -> str:
    """Show what differs between two graphs, one triple per line."""
    marks = {"removed": "-", "added": "+", "switched_off": "off", "switched_on": "on"}
    lines = [f"{mark} {triple_line(t)}" for kind, mark in marks.items() for t in data[kind]]
    return "\n".join(lines or ["no difference"])


@command(
    "kg diff",
    argument("before", "a graph, or with @N as it was after entry N of its log", metavar="A[@N]"),
    argument("after", metavar="B[@N]"),
    READ,
    text=difference_text,
)
def difference(args: Namespace) -> Report:
    """Show what differs between two graphs."""
    before, after = _opened(args.before, args), _opened(args.after, args)
    found = {
        "removed": (t for t in before if t not in after),
        "added": (t for t in after if t not in before),
        "switched_off": (t for t in sorted(after.off - before.off) if t in before),
        "switched_on": (t for t in sorted(before.off - after.off) if t in after),
    }
    return {what: [*map(asdict, triples)] for what, triples in found.items()}


def findings_text(data: Mapping[str, Any]) -> str:
    """What is doubtful in a graph, with examples and what to do."""
    lines = []
    for finding in data["findings"]:
        lines.append(f"{finding['title']}: {finding['count']:,}")
        for example in finding["examples"]:
            notes = dict.fromkeys(filter(None, map(_origin_text, example["triples"])))
            lines.append(f"  {example['text']}" + (f"   ({'; '.join(notes)})" if notes else ""))
        more = finding["count"] - len(finding["examples"])
        lines += [f"  … and {more:,} more"] if more else []
        lines.append(f"  → {finding['remedy']}")
    return "\n".join(lines or [f"{data['graph']}: nothing doubtful found."])


@command(
    "kg check",
    argument("graph", metavar="GRAPH[@N]"),
    argument("--examples", "examples of each kind", EXAMPLES),
    *(options.ALIASES, READ),
    text=findings_text,
)
def check_graph(args: Namespace) -> Report:
    """List likely mistakes; changes nothing."""
    graph = _opened(args.graph, args)
    aliases = graph.aliases.joined(options.aliases_of(args))
    with Progress("triples") as progress:
        findings = check(graph, alias_relations=aliases, examples=args.examples, progress=progress)
    data = [asdict(finding) for finding in findings]
    if is_stored(args.graph):
        with open_store(args.graph) as store:
            for example in (example for finding in data for example in finding["examples"]):
                for fields in example["triples"]:
                    with suppress(GraphEditError):  # taken out meanwhile
                        fields.update(asdict(store.origin(Triple(**fields))))
    return {"graph": args.graph, "findings": data}


# Edits of a graph file, and its log


def entity_text(data: Mapping[str, Any]) -> str:
    """The triples of an entity, each with where it comes from, and the log of them."""
    rows = [
        {"triple": triple_line(r), "": "" if r["on"] else "switched off", "from": _origin_text(r)}
        for r in data["triples"]
    ]
    log = [entry_text(entry) for entry in data.get("history", ())]
    return "\n".join([*table(rows, shown=0), *(["", "log:", *log] if log else [])])


def _entry(store: GraphStore, entry: Entry, entity: str | None = None) -> Report:
    """An entry as plain data, with the first of its changes."""
    changes = store.changes(entry.revision, entity=entity, most=SHOWN)
    return {**asdict(entry), "changes": [*map(asdict, changes)]}


def _again(args: Namespace) -> Report:
    """Undo an entry of the log, or redo what was undone last."""
    with open_store(args.graph, write=True) as store:
        undo = hasattr(args, "entry")
        entry = store.undo(args.entry, who=args.by) if undo else store.redo(who=args.by)
        return _entry(store, entry)


ALREADY: dict[Action, str] = {  # what an edit would change nothing of
    "replace": "is as you would have it already",
    "switch_off": "is switched off already",
    "switch_on": "is on already",
}


def _edit(action: Action, args: Namespace) -> Report:
    """Make an edit; the graph file is made by its first triple."""
    prefixes = ("", "new_") if action == "replace" else ("",)
    old, *new = (Triple.checked(*(getattr(args, p + name) for name in TRIPLE)) for p in prefixes)
    index = 0 if getattr(args, "first", False) else None
    edit = Edit(action, old, new[0] if new else None, index)
    made = action == "add" and isinstance(args.graph, Path) and not args.graph.exists()
    with GraphStore.create(args.graph) if made else open_store(args.graph, write=True) as store:
        triple, graph = edit.triple, store.graph()
        on = triple in graph and graph.is_on(triple)
        same = {"replace": triple == edit.new, "switch_off": not on, "switch_on": on}
        if triple in graph and same.get(action):
            raise GraphEditError(f"{args.graph}: {triple} {ALREADY[action]}; nothing was changed.")
        return _entry(store, store.apply(edit, who=args.by))


OLD, NEW = (several(*(argument(prefix + n) for n in TRIPLE)) for prefix in ("", "new_"))
FIRST = argument("--first", "put it before the entity's other triples", False)
ENTRY = argument("entry", "its number in the log; default: the last", nargs="?", type=int)
EDITS: tuple[tuple[str, Action | None, str, tuple[options.Argument, ...]], ...] = (
    ("add", "add", "Add a triple to a graph file.", (OLD, FIRST)),
    ("replace", "replace", "Put one triple in the place of another.", (OLD, NEW)),
    ("remove", "remove", "Take a triple out of a graph file.", (OLD,)),
    ("off", "switch_off", "Keep a triple, but don't inject it.", (OLD,)),
    ("on", "switch_on", "Inject a triple again.", (OLD,)),
    ("undo", None, "Take back the last edit of a graph file, or any one.", (ENTRY,)),
    ("redo", None, "Redo the edit that was undone last.", ()),
)
for _name, _action, _help, _arguments in EDITS:
    _add = command(f"kg {_name}", GRAPH_KG, *_arguments, WHO, text=entry_text, help=_help)
    _add(partial(_edit, _action) if _action else _again)


@command(
    "kg history",
    GRAPH_KG,
    argument("--entity", "only edits of this entity's triples"),
    argument("--most", f"at most this many entries; default: {SHOWN}; 0: all", SHOWN),
    text=history_text,
)
def history(args: Namespace) -> Report:
    """Show the log of a graph file, the latest edit first."""
    if args.most < 0:
        raise OptionError(f"--most is {args.most}. Give a number of entries, or 0 for all.")
    with open_store(args.graph) as store:
        entries = store.history(entity=args.entity, most=args.most or None)
        if not entries:
            raise OptionError(f"{args.graph}: no entry of its log edits '{args.entity}'.")
        shown = [_entry(store, entry, args.entity) for entry in entries]
        return {"graph": str(args.graph), "entries": shown, "of": store.revision + 1}


@command(
    "kg show", *(argument("graph", metavar="GRAPH"), argument("entity"), READ), text=entity_text
)
def show_entity(args: Namespace) -> Report:
    """Show the triples of an entity, where they come from and who edited them."""
    graph = _opened(args.graph, args)
    triples = graph.triples_of(args.entity)
    if not triples:
        near = [e for e in islice(graph.entities(), 200_000) if normalise_name(args.entity) in e]
        hint = f" Names that hold it: {', '.join(near[:8])}." if near else ""
        raise OptionError(f"{args.graph}: no entity is called '{args.entity}'.{hint}")
    rows = [{**asdict(t), "on": graph.is_on(t)} for t in triples]
    data: Report = {"entity": normalise_name(args.entity), "triples": rows}
    if is_stored(args.graph):
        with open_store(args.graph) as store:
            origins = store.origins(args.entity)
            for row, triple in zip(rows, triples, strict=True):
                row.update(asdict(origins[triple]) if triple in origins else {})
            entries = store.history(entity=args.entity, most=SHOWN)
            data["history"] = [_entry(store, entry, args.entity) for entry in entries]
    return data
