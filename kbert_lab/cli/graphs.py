"""`kbert kg`: graphs made, compared, checked and counted; a graph file edited, and its log."""

import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal

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
from kbert_lab.cli.commands import arguments_of, command
from kbert_lab.cli.output import (
    SHOWN,
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

Report = dict[str, Any]


def logged(name: str) -> str | Path:
    """Refuse a graph that has no log, with the command that makes one."""
    path = Path(name)
    if name.startswith(SERVER) or path.suffix == STORED:
        return name if name.startswith(SERVER) else path
    graph = path.with_suffix(STORED).name
    remedy = f"Make one: kbert kg import {path} --output {graph}"
    raise OptionError(
        f"{path}: edits and their log need a graph file, whose name ends with {STORED}. "
        + (remedy if path.exists() else f"Call it {graph}.")
    )


@dataclass(frozen=True)
class Written:
    """What commands take that read graphs or write one.

    Args:
        skip_bad: load the good lines, and list the bad ones
        by (NAME): your name, for the log
    """

    skip_bad: bool = False
    by: str = ""


READ = options.several(arguments_of(Written, only=("skip_bad",)), arguments_of(ReadOptions))
WHO = arguments_of(Written, only=("by",))
Logged = Annotated[str | Path, {"type": logged, "metavar": "GRAPH.kg"}]
New = Annotated[Logged, {"help": "a new one, file or server"}]
Dated = Annotated[
    str, {"metavar": "GRAPH[@N]", "help": "a graph, or with @N as it was after entry N of its log"}
]


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


@command("kg stats", options.GRAPH_FILES)
def stats(args: Namespace, graphs: tuple[str, ...] = ()) -> Report:
    """Count what a graph holds.

    Args:
        graphs (GRAPH): the same as --kg FILE
    """
    args.kg = [*graphs, *args.kg]
    graph = options.graph_of(args, needed=True)
    files = []
    for path in args.kg:
        read = None if is_stored(path) else read_triples(path, skip_bad=args.skip_bad)
        triples = len(read.triples if read else load_graph(path))
        bad = {"duplicates": read.duplicates, "bad_lines": [*read.problems]} if read else {}
        files.append({"file": str(path), "triples": triples, **bad})
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


@command("kg control", options.GRAPH_FILES)
def control(
    args: Namespace,
    *,
    output: Path,
    tails: Literal["shuffled", "permuted", "constant"],
    seed: int = 0,
) -> Report:
    """Make a control of a graph: the same names with other tails.

    Args:
        output (FILE): new graph
        tails: shuffled: every head gets a wrong tail; permuted: one drawn from all; constant: the
            same
        seed: of what is drawn
    """
    graph = options.graph_of(args, needed=True)
    report: Report = {"output": str(output)}
    if tails == "constant":
        graph = with_constant_tail(graph)
    else:
        result = shuffled(graph, seed=seed, deranged=tails == "shuffled")
        graph = result.graph
        report["share with a true tail still"] = round(result.unchanged, 4)
    write_triples(graph, output)
    return {**report, "triples": len(graph)}


@command("kg import", options.ALIASES, READ, WHO)
def import_files(
    args: Namespace,
    files: tuple[str, ...],
    *,
    query: Path | None = None,
    output: Logged,
) -> Report:
    """Make a graph from text files, endpoints and servers, or add them to one.

    What came from an address is kept until the import is done: after a break, the same command goes
    on where it stopped.

    Args:
        files (FILE|ADDRESS): .rdf .owl .nq .trig .n3 .jsonld .spo .tsv .csv .jsonl .nt .ttl, packed
            or not; or the address of a SPARQL endpoint or a Neo4j server
        query (FILE): asked of an address: SPARQL that selects ?head ?relation ?tail, or Cypher that
            returns head, relation and tail; default: all there is
        output (GRAPH.kg): graph file (.kg), or postgresql://…; if the graph exists, the triples are
            added
    """
    read_as, begun = options.build(ReadOptions, args), time.perf_counter()
    fetched, readings, asked = [], [], _query(query, files)
    with ExitStack() as until_imported:
        for file in files:
            if not is_remote(file):
                readings.append(open_rows(file, read_as, skip_bad=args.skip_bad))
                continue
            with Progress("rows") as progress:
                how: Any = {"query": asked, "skip_bad": args.skip_bad, "progress": progress}
                came = until_imported.enter_context(fetch_rows(file, read_as, **how))
            fetched.append({"from": file, "rows": came.rows, "sha256": came.sha256})
            readings.append(came.reading)
        sources = [Source(reading.name, reading) for reading in readings]
        aliases = options.aliases_of(args) if args.alias or args.alias_of else None
        with Progress("triples") as progress:
            done = import_into(output, sources, who=args.by, aliases=aliases, progress=progress)
    for problem in islice(chain.from_iterable(r.problems for r in readings), SHOWN):
        print(f"left out: {problem}", file=sys.stderr)
    passed = sum((reading.passed for reading in readings), Counter[str]())
    for what, count in passed.items():
        print(f"passed over: {count:,} with {what}", file=sys.stderr)
    return {
        "graph": str(output),
        "fetched": fetched or None,
        "triples": done.triples,
        "repeated": done.repeated,
        "left_out": sum(reading.bad for reading in readings),
        "passed_over": passed.total(),
        "entry": done.revision,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def _query(query: Path | None, files: Sequence[str]) -> str:
    """What is asked of addresses, read from its file."""
    if query is None:
        return ""
    if not any(map(is_remote, files)):
        raise OptionError("--query is asked of an address, and only files are given. Leave it out.")
    try:
        return query.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            f"{query}: can't be read ({error}). Give a text file with the query."
        ) from error


@command("kg merge", READ, WHO)
def merge(args: Namespace, graphs: tuple[str, ...], *, output: New) -> Report:
    """Make one graph from several, without their logs.

    What is switched off in one of them stays off.

    Args:
        graphs (GRAPH): graphs, in the order of their triples
    """
    if is_there(output):
        raise GraphFileError(
            f"{output}: is there already. Give a new name, or add text files to it with "
            "`kg import`."
        )
    opened = [_opened(name, args) for name in graphs]
    rows = [((0, t.head, t.relation, t.tail) for t in graph) for graph in opened]  # no line known
    sources = [Source(name, triples) for name, triples in zip(graphs, rows, strict=True)]
    with Progress("triples") as progress:
        aliases = join_graphs(opened).aliases
        done = import_into(output, sources, who=args.by, aliases=aliases, progress=progress)
    off = {triple for graph in opened for triple in graph.off}
    if off:
        with open_store(output, write=True) as store:
            store.apply(*(Edit("switch_off", triple) for triple in sorted(off)), who=args.by)
    counts = {"triples": done.triples, "repeated": done.repeated, "switched_off": len(off)}
    return {"graph": str(output), **counts}


@command("kg export", READ)
def export(
    args: Namespace, graph: Dated, output: Path, *, all: bool = False, neo4j: bool = False
) -> Report:
    """Write a graph as text, in the format of the file's name.

    Args:
        output (FILE): .spo .tsv .csv .jsonl .nt .ttl, packed or not
        all: also write what is switched off
        neo4j: as Neo4j reads it: .csv, with the nodes in another; or .jsonl
    """
    if output.suffix and plain_ending(output) not in WRITTEN:
        merge = f" For a graph file: `kbert kg merge {graph} --output {output}`."
        raise OptionError(
            f"{output}: no format with this ending can be written. Use one of "
            f"{' '.join(WRITTEN)}. To pack the file, add .xz .gz .bz2 or .zst after it."
            + (merge if output.suffix == STORED else "")
        )
    opened = _opened(graph, args)
    written = Progress("triples").over(t for t in opened if all or opened.is_on(t))
    if neo4j:
        from kbert_lab.graphs.neo4j import write_neo4j

        count, files = write_neo4j(written, output)
    else:
        count, files = write_triples(written, output), [output]
    left_out = 0 if all else len(opened.off)
    names = " ".join(map(str, files))
    return {"file": names, "triples": count, "switched_off_left_out": left_out}


@command("kg copy")
def copy(graph: Logged, output: New) -> Report:
    """Copy a graph with its whole log, between files and PostgreSQL servers.

    Args:
        graph (GRAPH.kg): graph file (.kg), or postgresql://USER@HOST/DATABASE[?graph=NAME]
    """
    with Progress("triples") as progress:
        entries = copy_graph(graph, output, progress=progress)
    return {"graph": str(output), "entries": entries}


@command(
    "kg get",
    text=lambda data: f"{data['file']}: {data['triples']:,} triples. Use it: --kg {data['file']}",
)
def get(name: Literal["medical", "hownet"], *, output: Path | None = None) -> Report:
    """Fetch MedicalKG or HowNet from their public home.

    Args:
        name: which graph
        output (FILE): where the file goes
    """
    from kbert_lab.graphs.download import PUBLIC, fetch

    path, public = fetch(name, output), PUBLIC[name]
    return {"name": name, "file": str(path), "triples": public.triples, "url": public.url}


def difference_text(data: Mapping[str, Any]) -> str:
    """Show what differs between two graphs, one triple per line."""
    marks = {"removed": "-", "added": "+", "switched_off": "off", "switched_on": "on"}
    lines = [f"{mark} {triple_line(t)}" for kind, mark in marks.items() for t in data[kind]]
    return "\n".join(lines or ["no difference"])


@command("kg diff", READ, text=difference_text)
def difference(args: Namespace, before: Dated, after: Dated) -> Report:
    """Show what differs between two graphs."""
    old, new = _opened(before, args), _opened(after, args)
    found = {
        "removed": (t for t in old if t not in new),
        "added": (t for t in new if t not in old),
        "switched_off": (t for t in sorted(new.off - old.off) if t in old),
        "switched_on": (t for t in sorted(old.off - new.off) if t in new),
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


@command("kg check", options.ALIASES, READ, text=findings_text)
def check_graph(args: Namespace, graph: Dated, *, examples: int = EXAMPLES) -> Report:
    """List likely mistakes; changes nothing.

    Args:
        examples: examples of each kind
    """
    opened = _opened(graph, args)
    aliases = opened.aliases.joined(options.aliases_of(args))
    with Progress("triples") as progress:
        findings = check(opened, alias_relations=aliases, examples=examples, progress=progress)
    data = [asdict(finding) for finding in findings]
    if is_stored(graph):
        with open_store(graph) as store:
            for example in (example for finding in data for example in finding["examples"]):
                for fields in example["triples"]:
                    with suppress(GraphEditError):  # taken out meanwhile
                        fields.update(asdict(store.origin(Triple(**fields))))
    return {"graph": graph, "findings": data}


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


ALREADY: dict[Action, str] = {  # what an edit would change nothing of
    "replace": "is as you would have it already",
    "switch_off": "is switched off already",
    "switch_on": "is on already",
}


def _edit(args: Namespace, action: Action, old: Triple, new: Triple | None = None) -> Report:
    """Make an edit; the graph file is made by its first triple."""
    edit = Edit(action, old, new)
    made = action == "add" and isinstance(args.graph, Path) and not args.graph.exists()
    with GraphStore.create(args.graph) if made else open_store(args.graph, write=True) as store:
        graph = store.graph()
        on = old in graph and graph.is_on(old)
        same = {"replace": old == new, "switch_off": not on, "switch_on": on}
        if old in graph and same.get(action):
            raise GraphEditError(f"{args.graph}: {old} {ALREADY[action]}; nothing was changed.")
        return _entry(store, store.apply(edit, who=args.by))


EDITS: dict[str, tuple[Action, str]] = {
    "add": ("add", "Add a triple to a graph file."),
    "remove": ("remove", "Take a triple out of a graph file."),
    "off": ("switch_off", "Keep a triple, but don't inject it."),
    "on": ("switch_on", "Inject a triple again."),
}


def _edit_one(action: Action, about: str) -> Any:
    def edit(args: Namespace, graph: Logged, head: str, relation: str, tail: str) -> Report:
        return _edit(args, action, Triple.checked(head, relation, tail))

    edit.__doc__ = about
    return edit


for name, of in EDITS.items():
    command(f"kg {name}", WHO, text=entry_text)(_edit_one(*of))


@command("kg replace", WHO, text=entry_text)
def replace(
    args: Namespace,
    graph: Logged,
    head: str,
    relation: str,
    tail: str,
    new_head: str,
    new_relation: str,
    new_tail: str,
) -> Report:
    """Put one triple in the place of another."""
    old, new = (head, relation, tail), (new_head, new_relation, new_tail)
    return _edit(args, "replace", Triple.checked(*old), Triple.checked(*new))


@command("kg undo", WHO, text=entry_text)
def undo(args: Namespace, graph: Logged, entry: int | None = None) -> Report:
    """Take back the last edit of a graph file, or any one.

    Args:
        entry: its number in the log; default: the last
    """
    with open_store(graph, write=True) as store:
        return _entry(store, store.undo(entry, who=args.by))


@command("kg redo", WHO, text=entry_text)
def redo(args: Namespace, graph: Logged) -> Report:
    """Redo the edit that was undone last."""
    with open_store(graph, write=True) as store:
        return _entry(store, store.redo(who=args.by))


@command("kg history", text=history_text)
def history(graph: Logged, *, most: int = SHOWN) -> Report:
    """Show the log of a graph file, the latest edit first.

    Args:
        most: at most this many entries; default: 20; 0: all
    """
    if most < 0:
        raise OptionError(f"--most is {most}. Give a number of entries, or 0 for all.")
    with open_store(graph) as store:
        shown = [_entry(store, entry) for entry in store.history(most=most or None)]
        return {"graph": str(graph), "entries": shown, "of": store.revision + 1}


@command("kg show", READ, text=entity_text)
def show_entity(args: Namespace, graph: str, entity: str) -> Report:
    """Show the triples of an entity, where they come from and who edited them."""
    opened = _opened(graph, args)
    triples = opened.triples_of(entity)
    if not triples:
        near = [e for e in islice(opened.entities(), 200_000) if normalise_name(entity) in e]
        hint = f" Names that hold it: {', '.join(near[:8])}." if near else ""
        raise OptionError(f"{graph}: no entity is called '{entity}'.{hint}")
    rows = [{**asdict(t), "on": opened.is_on(t)} for t in triples]
    data: Report = {"entity": normalise_name(entity), "triples": rows}
    if is_stored(graph):
        with open_store(graph) as store:
            origins = store.origins(entity)
            for row, triple in zip(rows, triples, strict=True):
                row.update(asdict(origins[triple]) if triple in origins else {})
            entries = store.history(entity=entity, most=SHOWN)
            data["history"] = [_entry(store, entry, entity) for entry in entries]
    return data
