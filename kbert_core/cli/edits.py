"""`kbert kg add`, `show`, `undo`, `history` and their like: edits of a graph file and its log."""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from kbert_core.cli.commands import Argument, argument, command, several
from kbert_core.cli.graphs import READ, WHO, Report, must_be_graph, opened, origin_text
from kbert_core.cli.output import SHOWN, TRIPLE, table, triple_line
from kbert_core.errors import GraphEditError, OptionError
from kbert_core.knowledge.edit import Action, Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.store import ENDING
from kbert_core.knowledge.store.log import Entry
from kbert_core.knowledge.store.store import GraphStore
from kbert_core.knowledge.triple import Triple

GRAPH_KG = argument("graph", type=Path, metavar="GRAPH.kg")
OLD = several(*map(argument, TRIPLE))
NEW = several(*(argument(f"new_{name}") for name in TRIPLE))


def entry_text(entry: Mapping[str, Any]) -> str:
    """An entry of the log: when, what, who, and its first changes."""
    who = f" by {entry['who']}" if entry["who"] else ""
    what = entry["action"].replace("_", " ")
    if entry["undoes"] is not None:
        what += f" of {entry['undoes']}"
    undone = "  (undone)" if entry["undone"] else ""
    lines = [f"{entry['revision']:>5}  {entry['at'][:19].replace('T', ' ')}  {what}{who}{undone}"]
    for change in entry["changes"]:
        before, after = change["before"], change["after"]
        marks = [("-", before), ("+", after)]
        if before == after:
            marks = [("on" if change["is_on"] else "off", after)]
        lines += [f"       {mark} {triple_line(t)}" for mark, t in marks if t]
    left = entry["edits"] - len(entry["changes"])
    more = f"       … and {left:,} more" if entry["changes"] else f"       {left:,} triples"
    return "\n".join(lines + ([more] if left > 0 else []))


def history_text(data: Mapping[str, Any]) -> str:
    """Entries of the log, and how many there are."""
    lines = [entry_text(entry) for entry in data["entries"]]
    more = data["of"] > len(lines)
    return "\n".join(lines + ([f"… of {data['of']}; --most 0 shows all"] if more else []))


def entity_text(data: Mapping[str, Any]) -> str:
    """The triples of an entity, each with where it comes from, and the log of them."""
    rows = (
        {
            "triple": triple_line(row),
            "": None if row["on"] else "switched off",
            "from": origin_text(row),
        }
        for row in data["triples"]
    )
    log = [entry_text(entry) for entry in data.get("history", ())]
    return "\n".join([*table(rows, shown=0), *(["", "log:", *log] if log else [])])


# Edits


def _edit(action: Action, args: Namespace) -> Report:
    """Make an edit; the graph file is made by its first triple."""
    must_be_graph(args.graph)
    new = _triple(args, "new_") if action == "replace" else None
    edit = Edit(action, _triple(args), new, index=0 if getattr(args, "first", False) else None)
    made = action == "add" and not args.graph.exists()
    with GraphStore.create(args.graph) if made else GraphStore(args.graph, write=True) as store:
        nothing = _changes_nothing(edit, store.graph())
        if nothing:
            raise GraphEditError(f"{args.graph}: {edit.triple} {nothing}; nothing was changed.")
        return _entry(store, store.apply(edit, who=args.by))


def _changes_nothing(edit: Edit, graph: KnowledgeGraph) -> str:
    """Why an edit of a triple that is there would change nothing; "": it does."""
    if edit.triple not in graph:
        return ""
    if edit.action == "replace" and edit.triple == edit.new:
        return "is as you would have it already"
    if edit.action == "switch_off" and not graph.is_on(edit.triple):
        return "is switched off already"
    return "is on already" if edit.action == "switch_on" and graph.is_on(edit.triple) else ""


def _triple(args: Namespace, prefix: str = "") -> Triple:
    return Triple.checked(*(getattr(args, prefix + name) for name in TRIPLE))


FIRST = argument("--first", "before the entity's others", False)
EDITS: dict[str, tuple[Action, str, tuple[Argument, ...]]] = {
    "add": ("add", "Add a triple to a graph file.", (FIRST,)),
    "replace": ("replace", "Put one triple in the place of another.", (NEW,)),
    "remove": ("remove", "Take a triple out of a graph file.", ()),
    "off": ("switch_off", "Keep a triple, but don't inject it.", ()),
    "on": ("switch_on", "Inject a triple again.", ()),
}
for _name, (_action, _help, _more) in EDITS.items():
    _arguments = (GRAPH_KG, OLD, *_more, WHO)
    command(f"kg {_name}", *_arguments, text=entry_text, help=_help)(partial(_edit, _action))


# The log


ENTRY = argument("entry", "its number in the log; default: the last", nargs="?", type=int)


@command("kg undo", GRAPH_KG, ENTRY, WHO, text=entry_text)
def undo(args: Namespace) -> Report:
    """Take back the last edit of a graph file, or any one."""
    must_be_graph(args.graph)
    with GraphStore(args.graph, write=True) as store:
        return _entry(store, store.undo(args.entry, who=args.by))


@command("kg redo", GRAPH_KG, WHO, text=entry_text)
def redo(args: Namespace) -> Report:
    """Make again what was undone last."""
    must_be_graph(args.graph)
    with GraphStore(args.graph, write=True) as store:
        return _entry(store, store.redo(who=args.by))


@command(
    "kg history",
    GRAPH_KG,
    argument("--entity", "only edits of its triples"),
    argument("--most", f"default: {SHOWN}; 0: all", SHOWN),
    text=history_text,
)
def history(args: Namespace) -> Report:
    """The log of a graph file: every edit, the latest first."""
    must_be_graph(args.graph)
    if args.most < 0:
        raise OptionError(f"--most is {args.most}. Give a number of entries, or 0 for all.")
    with GraphStore(args.graph) as store:
        entries = store.history(entity=args.entity, most=args.most or None)
        if not entries:
            raise OptionError(f"{args.graph}: no entry of its log edits '{args.entity}'.")
        shown = [_entry(store, entry, args.entity) for entry in entries]
        return {"graph": str(args.graph), "entries": shown, "of": store.revision + 1}


@command(
    "kg show", *(argument("graph", metavar="GRAPH"), argument("entity"), READ), text=entity_text
)
def show_entity(args: Namespace) -> Report:
    """The triples of an entity, where they come from and who edited them."""
    graph = opened(args.graph, args)
    triples = graph.triples_of(args.entity)
    if not triples:
        near = [e for e in islice(graph.entities(), 200_000) if normalise_name(args.entity) in e]
        hint = f" Names that hold it: {', '.join(near[:8])}." if near else ""
        raise OptionError(f"{args.graph}: no entity is called '{args.entity}'.{hint}")
    rows = [{**asdict(t), "on": graph.is_on(t)} for t in triples]
    data: Report = {"entity": normalise_name(args.entity), "triples": rows}
    if Path(args.graph).suffix == ENDING:
        with GraphStore(args.graph) as store:
            origins = store.origins(args.entity)
            for row, triple in zip(rows, triples, strict=True):
                row.update(asdict(origins[triple]) if triple in origins else {})
            entries = store.history(entity=args.entity, most=SHOWN)
            data["history"] = [_entry(store, entry, args.entity) for entry in entries]
    return data


def _entry(store: GraphStore, entry: Entry, entity: str | None = None) -> Report:
    """An entry as plain data, with the first of its changes."""
    changes = store.changes(entry.revision, entity=entity, most=SHOWN)
    return {**asdict(entry), "changes": [asdict(change) for change in changes]}
