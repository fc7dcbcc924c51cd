"""`kbert kg`: make, look at, edit, undo, compare and check graphs."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from kbert_core.cli.options import add_alias_options
from kbert_core.errors import GraphEditError, GraphFileError, OptionError
from kbert_core.knowledge import join_graphs, load_graph
from kbert_core.knowledge.aliases import AliasRelations
from kbert_core.knowledge.edit import Action, Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io import ReadOptions, Row, open_rows
from kbert_core.knowledge.io.compression import plain_ending
from kbert_core.knowledge.io.opening import ENDINGS, unit_of
from kbert_core.knowledge.io.writers import write_triples
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.store.importing import Source, import_triples
from kbert_core.knowledge.store.log import Entry
from kbert_core.knowledge.store.schema import ENDING
from kbert_core.knowledge.store.store import GraphStore
from kbert_core.knowledge.tools.check import EXAMPLES, check
from kbert_core.knowledge.triple import Triple

EDITS = ("add", "remove", "replace", "off", "on")
SHOWN = 20

_ACTIONS: dict[str, Action] = {"remove": "remove", "off": "switch_off", "on": "switch_on"}

Add = Callable[[str, str], argparse.ArgumentParser]


def add_graph_commands(add: Add) -> dict[str, Callable[[argparse.Namespace], dict[str, Any]]]:
    """Add the commands that work on one graph or two.

    Args:
        add: makes a sub-command of a name and a help text.

    Returns:
        What runs each.
    """
    make = add("import", "make a graph file (.kg) of text files, or add them to one")
    make.add_argument(
        "files", nargs="+", metavar="FILE", help=".spo .tsv .csv .jsonl .nt .ttl, packed or not"
    )
    make.add_argument(
        "--output", required=True, type=Path, metavar="GRAPH.kg", help="made, or added to"
    )
    make.add_argument("--name", default="", help="of a new graph; default: the file's")
    add_alias_options(make)
    _reading(make)
    _who(make)

    export = add("export", "write a graph as text, in the format of the file's name")
    export.add_argument(
        "graph", metavar="GRAPH[@N]", help="a graph, or as it was at entry N of its log"
    )
    export.add_argument(
        "output", type=Path, metavar="FILE", help=".spo .tsv .csv .jsonl .nt .ttl, packed or not"
    )
    export.add_argument("--all", action="store_true", help="also what is switched off")
    _reading(export)

    show = add("show", "the triples of an entity, where they come from and who edited them")
    show.add_argument("graph", metavar="GRAPH")
    show.add_argument("entity")
    _reading(show)

    for action, text in (
        ("add", "add a triple to a graph file"),
        ("remove", "take a triple out of a graph file"),
        ("replace", "put one triple in the place of another"),
        ("off", "keep a triple, but don't inject it"),
        ("on", "inject a triple again"),
    ):
        edit = add(action, text)
        edit.add_argument("graph", type=Path, metavar="GRAPH.kg")
        for field in ("head", "relation", "tail"):
            edit.add_argument(field)
        if action == "replace":
            for field in ("head", "relation", "tail"):
                edit.add_argument(f"new_{field}")
        if action == "add":
            edit.add_argument("--first", action="store_true", help="before the entity's others")
        _who(edit)

    history = add("history", "the log of a graph file: every edit, the latest first")
    history.add_argument("graph", type=Path, metavar="GRAPH.kg")
    history.add_argument("--entity", help="only edits of its triples")
    history.add_argument(
        "--most", type=int, default=SHOWN, metavar="N", help=f"default: {SHOWN}; 0: all"
    )

    undo = add("undo", "take back the last edit of a graph file, or any one")
    undo.add_argument("graph", type=Path, metavar="GRAPH.kg")
    undo.add_argument("entry", nargs="?", type=int, help="its number in the log; default: the last")
    _who(undo)
    redo = add("redo", "make again what was undone last")
    redo.add_argument("graph", type=Path, metavar="GRAPH.kg")
    _who(redo)

    diff = add("diff", "what one graph has and another has not")
    diff.add_argument("before", metavar="A[@N]", help="a graph, or as it was at entry N of its log")
    diff.add_argument("after", metavar="B[@N]")
    _reading(diff)

    looked = add("check", "list what is probably not meant so; changes nothing")
    looked.add_argument("graph", metavar="GRAPH[@N]")
    looked.add_argument(
        "--examples", type=int, default=EXAMPLES, metavar="N", help=f"default: {EXAMPLES}"
    )
    add_alias_options(looked)
    _reading(looked)

    merge = add("merge", "make one graph file of several graphs, without their logs")
    merge.add_argument(
        "graphs",
        nargs="+",
        metavar="GRAPH",
        help="graph files and text files; an earlier one's triples come first",
    )
    merge.add_argument("--output", required=True, type=Path, metavar="GRAPH.kg", help="a new file")
    _reading(merge)
    _who(merge)

    runs = dict.fromkeys(EDITS, run_edit)
    return runs | {
        "import": run_import,
        "export": run_export,
        "show": run_show,
        "history": run_history,
        "undo": run_undo,
        "redo": run_redo,
        "diff": run_diff,
        "check": run_check,
        "merge": run_merge,
    }


def run_import(args: argparse.Namespace) -> dict[str, Any]:
    """`kbert kg import`."""
    _must_be_graph(args.output)
    options = _options(args)
    readings = [open_rows(file, options, skip_bad=args.skip_bad) for file in args.files]
    sources = [Source(reading.name, reading) for reading in readings]
    aliases = None
    if args.alias or args.alias_of:
        aliases = AliasRelations.default_and(args.alias, args.alias_of)
    begun = time.perf_counter()
    with _Told("triples") as told:
        done = import_triples(
            args.output, sources, name=args.name, who=args.by, aliases=aliases, progress=told
        )
    problems = [problem for reading in readings for problem in reading.problems]
    for problem in problems[:SHOWN]:
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


def run_merge(args: argparse.Namespace) -> dict[str, Any]:
    """`kbert kg merge`."""
    _must_be_graph(args.output)
    if args.output.exists():
        raise GraphFileError(
            f"{args.output}: is there already. Give a new name, or add text files to it with "
            "`kg import`."
        )
    graphs = [opened(name, args) for name in args.graphs]
    sources = [Source(name, _rows(graph)) for name, graph in zip(args.graphs, graphs, strict=True)]
    with _Told("triples") as told:
        aliases = join_graphs(graphs).aliases
        done = import_triples(args.output, sources, who=args.by, aliases=aliases, progress=told)
    off = [t for i, graph in enumerate(graphs) for t in graph.off if _first(graphs, t) == i]
    if off:
        with GraphStore(args.output, write=True) as store:
            store.apply(*(Edit("switch_off", triple) for triple in sorted(off)), who=args.by)
    return {
        "graph": str(args.output),
        "triples": done.triples,
        "repeated": done.repeated,
        "switched_off": len(off),
    }


def _first(graphs: Sequence[KnowledgeGraph], triple: Triple) -> int:
    """Which of several graphs is the first that has a triple."""
    return next(i for i, graph in enumerate(graphs) if triple in graph)


def run_export(args: argparse.Namespace) -> dict[str, Any]:
    """`kbert kg export`."""
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
    with _Told("triples") as told:
        found = told.counting(t for t in graph if args.all or graph.is_on(t))
        count = write_triples(found, args.output)
    off = 0 if args.all else len(graph.off)
    return {"file": str(args.output), "triples": count, "switched_off_left_out": off}


def run_show(args: argparse.Namespace) -> dict[str, Any]:
    """`kbert kg show`."""
    graph = opened(args.graph, args)
    triples = graph.triples_of(args.entity)
    if not triples:
        near = [e for e in islice(graph.entities(), 200_000) if normalise_name(args.entity) in e]
        hint = f" Names that hold it: {', '.join(near[:8])}." if near else ""
        raise OptionError(f"{args.graph}: no entity is called '{args.entity}'.{hint}")
    rows: list[dict[str, Any]] = [
        {"head": t.head, "relation": t.relation, "tail": t.tail, "on": graph.is_on(t)}
        for t in triples
    ]
    data: dict[str, Any] = {"entity": normalise_name(args.entity), "triples": rows}
    if Path(args.graph).suffix == ENDING:
        with GraphStore(args.graph) as store:
            origins = store.origins(args.entity)
            for row, triple in zip(rows, triples, strict=True):
                row.update(asdict(origins[triple]) if triple in origins else {})
            history = store.history(entity=args.entity, most=SHOWN)
            data["history"] = [_entry(store, entry, args.entity) for entry in history]
    return data


def run_edit(args: argparse.Namespace) -> dict[str, Any]:
    """`kbert kg add`, `remove`, `replace`, `off` and `on`."""
    _must_be_graph(args.graph)
    action = args.command_name
    triple = Triple.checked(args.head, args.relation, args.tail)
    if action == "replace":
        new = Triple.checked(args.new_head, args.new_relation, args.new_tail)
        edit = Edit("replace", triple, new)
    elif action == "add":
        edit = Edit("add", triple, index=0 if args.first else None)
    else:
        edit = Edit(_ACTIONS[action], triple)
    with _to_edit(args.graph, make=action == "add") as store:
        nothing = _changes_nothing(edit, store.graph())
        if nothing:
            raise GraphEditError(f"{args.graph}: {triple} {nothing}; nothing was changed.")
        entry = store.apply(edit, who=args.by)
        return _entry(store, entry)


def _changes_nothing(edit: Edit, graph: KnowledgeGraph) -> str:
    """Why an edit of a triple that is there would change nothing; "": it does."""
    if edit.triple not in graph:
        return ""
    if edit.action == "replace" and edit.triple == edit.new:
        return "is as you would have it already"
    if edit.action == "switch_off" and not graph.is_on(edit.triple):
        return "is switched off already"
    return "is on already" if edit.action == "switch_on" and graph.is_on(edit.triple) else ""


def run_undo(args: argparse.Namespace) -> dict[str, Any]:
    """`kbert kg undo`."""
    with _to_edit(args.graph) as store:
        return _entry(store, store.undo(args.entry, who=args.by))


def run_redo(args: argparse.Namespace) -> dict[str, Any]:
    """`kbert kg redo`."""
    with _to_edit(args.graph) as store:
        return _entry(store, store.redo(who=args.by))


def run_history(args: argparse.Namespace) -> dict[str, Any]:
    """`kbert kg history`."""
    _must_be_graph(args.graph)
    with GraphStore(args.graph) as store:
        if args.most < 0:
            raise OptionError(f"--most is {args.most}. Give a number of entries, or 0 for all.")
        entries = store.history(entity=args.entity, most=args.most or None)
        if not entries:
            raise OptionError(f"{args.graph}: no entry of its log edits '{args.entity}'.")
        return {
            "graph": str(args.graph),
            "entries": [_entry(store, entry, args.entity) for entry in entries],
            "of": store.revision + 1,
        }


def run_diff(args: argparse.Namespace) -> dict[str, Any]:
    """`kbert kg diff`."""
    before, after = opened(args.before, args), opened(args.after, args)
    return {
        "removed": [_fields(t) for t in before if t not in after],
        "added": [_fields(t) for t in after if t not in before],
        "switched_off": [_fields(t) for t in sorted(after.off - before.off) if t in before],
        "switched_on": [_fields(t) for t in sorted(before.off - after.off) if t in after],
    }


def run_check(args: argparse.Namespace) -> dict[str, Any]:
    """`kbert kg check`."""
    graph = opened(args.graph, args)
    aliases = graph.aliases.joined(AliasRelations.default_and(args.alias, args.alias_of))
    with _Told("triples") as told:
        findings = check(graph, alias_relations=aliases, examples=args.examples, progress=told)
    data = [asdict(finding) for finding in findings]
    if Path(args.graph).suffix == ENDING:
        with GraphStore(args.graph) as store:
            for example in (example for finding in data for example in finding["examples"]):
                for fields in example["triples"]:
                    fields.update(_origin(store, Triple(**fields)))
    return {"graph": args.graph, "findings": data}


def _origin(store: GraphStore, triple: Triple) -> dict[str, Any]:
    """Where a triple comes from; nothing if it was taken out meanwhile."""
    try:
        return asdict(store.origin(triple))
    except GraphEditError:
        return {}


def opened(name: str, args: argparse.Namespace | None = None) -> KnowledgeGraph:
    """Open a graph by the name given; ``NAME.kg@N`` is one as it was at entry N of its log."""
    path, at, revision = name.rpartition("@")
    if at and path.endswith(ENDING) and revision.isdecimal():
        with GraphStore(path) as store:
            return store.at(int(revision))
    if args is None:
        return load_graph(name)
    return load_graph(name, options=_options(args), skip_bad=args.skip_bad)


# What is printed for reading


def graph_text(data: Mapping[str, Any]) -> str:
    """The result of a command, for reading."""
    if "entries" in data:
        lines = [line for entry in data["entries"] for line in _entry_lines(entry)]
        more = data["of"] - len(data["entries"])
        return "\n".join(lines + ([f"… of {data['of']}; --most 0 shows all"] if more else []))
    if "entity" in data:
        lines = [_triple_line(row) for row in data["triples"]]
        history = [line for entry in data.get("history", ()) for line in _entry_lines(entry)]
        return "\n".join(lines + (["", "log:", *history] if history else []))
    if "findings" in data:
        if not data["findings"]:
            return f"{data['graph']}: nothing doubtful found."
        return "\n".join(line for finding in data["findings"] for line in _finding_lines(finding))
    if "switched_on" in data:
        marks = {"removed": "-", "added": "+", "switched_off": "off", "switched_on": "on"}
        lines = [f"{mark} {_plain(t)}" for kind, mark in marks.items() for t in data[kind]]
        return "\n".join(lines or ["no difference"])
    if "changes" in data:
        return "\n".join(_entry_lines(data))
    return "\n".join(f"{name.replace('_', ' ')}: {_number(v)}" for name, v in data.items())


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _plain(fields: Mapping[str, str]) -> str:
    return " · ".join(fields[name] for name in ("head", "relation", "tail"))


def _triple_line(row: Mapping[str, Any]) -> str:
    notes = [] if row["on"] else ["switched off"]
    if row.get("file"):
        place = f"{row['file']}, {unit_of(row['file'])} {row['line']}"
        notes.append(place if row["line"] else row["file"])
    elif "revision" in row:
        notes.append(f"entry {row['revision']} of the log")
    return _plain(row) + (f"   ({'; '.join(notes)})" if notes else "")


def _entry_lines(entry: Mapping[str, Any]) -> list[str]:
    who = f" by {entry['who']}" if entry["who"] else ""
    what = entry["action"].replace("_", " ")
    if entry["undoes"] is not None:
        what += f" of {entry['undoes']}"
    undone = "  (undone)" if entry["undone"] else ""
    lines = [f"{entry['revision']:>5}  {entry['at'][:19].replace('T', ' ')}  {what}{who}{undone}"]
    for change in entry["changes"]:
        before, after = change["before"], change["after"]
        if before == after:
            lines.append(f"       {'on' if change['is_on'] else 'off'} {_plain(after)}")
            continue
        lines += [f"       {m} {_plain(t)}" for m, t in (("-", before), ("+", after)) if t]
    left = entry["edits"] - len(entry["changes"])
    more = f"       … and {left:,} more" if entry["changes"] else f"       {left:,} triples"
    return lines + ([more] if left > 0 else [])


def _finding_lines(finding: Mapping[str, Any]) -> list[str]:
    more = finding["count"] - len(finding["examples"])
    return [
        f"{finding['title']}: {finding['count']:,}",
        *(f"  {example['text']}{_origins(example['triples'])}" for example in finding["examples"]),
        *([f"  … and {more:,} more"] if more else []),
        f"  → {finding['remedy']}",
    ]


def _origins(triples: Sequence[Mapping[str, Any]]) -> str:
    """Where the triples of an example come from, as far as that is known."""
    notes = [f"{t['file']}:{t['line']}" for t in triples if t.get("file") and t.get("line")]
    notes += [
        f"entry {t['revision']} of the log" for t in triples if "revision" in t and not t["file"]
    ]
    return f"   ({'; '.join(dict.fromkeys(notes))})" if notes else ""


# Parts


def _reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--skip-bad", action="store_true", help="leave bad lines out, and list them"
    )
    parser.add_argument("--encoding", metavar="NAME", help="such as gb18030; default: UTF-8")
    parser.add_argument(
        "--columns", metavar="H,R,T", help="columns of head, relation and tail, by name or number"
    )
    parser.add_argument(
        "--language", metavar="CODE", help="of labels in RDF, such as zh; default: any"
    )


def _who(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--by", default="", metavar="NAME", help="your name, for the log")


def _options(args: argparse.Namespace) -> ReadOptions:
    columns = tuple(args.columns.split(",")) if args.columns else None
    if columns is not None and len(columns) != 3:
        raise OptionError(
            f"--columns {args.columns} names {len(columns)} columns. Give three with commas "
            "between: those of head, relation and tail."
        )
    return ReadOptions(args.encoding, columns, args.language)


def _must_be_graph(path: Path) -> None:
    if path.suffix != ENDING:
        raise OptionError(
            f"{path}: edits and their log need a graph file, whose name ends with {ENDING}. Make "
            f"one: kbert kg import {path} --output {path.with_suffix(ENDING).name}"
        )


def _to_edit(path: Path, *, make: bool = False) -> GraphStore:
    _must_be_graph(path)
    return GraphStore.create(path) if make and not path.exists() else GraphStore(path, write=True)


def _rows(graph: KnowledgeGraph) -> Iterator[Row]:
    """The triples of a graph, for an import; their lines are not known."""
    return ((0, t.head, t.relation, t.tail) for t in graph)


def _fields(triple: Triple) -> dict[str, str]:
    return {"head": triple.head, "relation": triple.relation, "tail": triple.tail}


def _entry(store: GraphStore, entry: Entry, entity: str | None = None) -> dict[str, Any]:
    """An entry as plain data, with the first of its changes."""
    changes = store.changes(entry.revision, entity=entity, most=SHOWN)
    return {
        **asdict(entry),
        "changes": [
            {
                "id": change.id,
                "before": _fields(change.before) if change.before else None,
                "after": _fields(change.after) if change.after else None,
                "was_on": change.was_on,
                "is_on": change.is_on,
            }
            for change in changes
        ],
    }


class _Told:
    """Progress on a terminal: how many, how fast."""

    def __init__(self, what: str) -> None:
        self._what, self._begun, self._said = what, time.perf_counter(), False

    def __enter__(self) -> "_Told":
        return self

    def __exit__(self, *error: object) -> None:
        if self._said:
            print(file=sys.stderr)

    def __call__(self, count: int) -> None:
        if sys.stderr.isatty():
            self._said = True
            speed = count / max(time.perf_counter() - self._begun, 1e-9)
            print(f"\r{count:,} {self._what}, {speed:,.0f}/s", end="", file=sys.stderr)

    def counting(self, triples: Iterator[Triple]) -> Iterator[Triple]:
        """Pass triples on and tell of them."""
        for number, triple in enumerate(triples, start=1):
            if number % 20_000 == 0:
                self(number)
            yield triple
