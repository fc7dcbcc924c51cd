"""Logs: what was done to a graph, in one visit or in a workspace that others edit too.

Both are read alike, as the log of a graph file is: ``entries``, what one of them did
(``of_entry``), how the graph differs from what it began with (``changes``), and where a triple
comes from (``origin``). Edits are made by commands, see ``kbert_lab.lab.commands``.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from kbert_core.errors import GraphEditError, KBertError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_lab.graphs.search import GraphSearch
from kbert_lab.graphs.store.anywhere import import_into, open_store
from kbert_lab.graphs.store.importing import Imported, Source
from kbert_lab.graphs.store.log import Change, Entry, Origin, effective
from kbert_lab.graphs.store.store import GraphStore
from kbert_lab.lab import workspaces
from kbert_lab.lab.history import Changed, Edited, Step, edits_of
from kbert_lab.lab.session import Session
from kbert_lab.lab.texts import t

PUT, INTERVENED = "put", "interventions"  # what entries did that are no edits
WORKSPACE = "workspace"  # its graph's id in a session
MAKING = ("add", "replace")  # edits that make a triple
T = TypeVar("T", Entry, Imported)


@dataclass(frozen=True)
class Log:
    """The log of a graph of a session; an entry's revision is the number of its step."""

    session: Session
    id: str  # of the graph
    base = 0  # the entry that the log begins with, which stays

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph before the edits."""
        return self.session.graphs[self.id].graph

    first = graph  # as this visitor opened it

    @property
    def done(self) -> tuple[Edit, ...]:
        """The edits that stand, one after the other."""
        return self.session.history.edits(self.id)

    @property
    def edited(self) -> Set[str]:
        """The entities that they are about."""
        return heads_of(self.done)

    @property
    def before(self) -> tuple[KnowledgeGraph, tuple[Edit, ...]] | None:
        """The graph and its edits before the last one; None: there was none."""
        steps = self.session.history.of(self.id)
        edits = (edit for step in steps[:-1] for edit in edits_of(step))
        return (self.graph, tuple(edits)) if steps else None

    def entries(self) -> list[Entry]:
        """Return what was done to the graph, the latest first."""
        steps = reversed(self.session.history.steps)
        return [entry_of(step) for step in steps if step.what.graph == self.id]

    def of_entry(self, revision: int, *, most: int = 1000) -> list[Change]:
        """Return what an entry did, triple by triple."""
        edits = edits_of(self.session.history[revision])
        return changes_of(islice(edits, most))

    def source(self, revision: int) -> str | None:
        """Name the file that an entry imported; None: it is no import."""
        what = self.session.history[revision].what
        return what.source.name if isinstance(what, Edited) and what.source else None

    def changes(self) -> list[Change]:
        """How the graph differs from what it began with."""
        return effective(changes_of(self.done))

    def origin(self, triple: Triple) -> tuple[Origin, Entry | None]:
        """Say where a triple comes from, and which entry of a log made it, if one did.

        Raises:
            GraphFileError: the graph's file is gone.
        """
        for step in reversed(self.session.history.of(self.id)):
            if any(triple == (e.new or e.triple) and e.action in MAKING for e in edits_of(step)):
                source = step.what.source if isinstance(step.what, Edited) else None
                lines = {Triple(*row): line for line, *row in source.rows} if source else {}
                entry = replace(entry_of(step), who=t("you"))
                return Origin(
                    source.name if source else None, lines.get(triple), step.number
                ), entry
        opened = self.session.graphs[self.id]
        if opened.stored is not None:
            with open_store(opened.stored.path) as file:
                return _origin(file, triple)
        return Origin(opened.source or self.graph.name, opened.lines.get(triple), 0), None


def _origin(store: GraphStore, triple: Triple) -> tuple[Origin, Entry | None]:
    origin = store.origin(triple)
    entries = (entry for entry in store.history() if entry.revision == origin.revision)
    return origin, next(entries, None)


def heads_of(edits: Iterable[Edit]) -> set[str]:
    """The entities whose triples edits are about."""
    triples = (t for edit in edits for t in (edit.triple, edit.new) if t is not None)
    return {normalise_name(triple.head) for triple in triples}


def entry_of(step: Step) -> Entry:
    """A step of a session as an entry of a log."""
    if isinstance(step.what, Changed):
        action, count = (PUT if step.what.aside else INTERVENED), len(step.what.aside)
    else:
        action, count = "import" if step.what.source else "edits", len(step.what.edits)
    return Entry(step.number, step.at, "", action, count, undone=step.undone)


def changes_of(edits: Iterable[Edit]) -> list[Change]:
    """What edits do to triples, each followed through all of them."""
    changes: list[Change] = []
    place: dict[Triple, int] = {}  # of the change that ends with a triple
    for edit in edits:
        number = place.pop(edit.triple, None)
        if number is None:
            number = len(changes)
            was = None if edit.action == "add" else edit.triple
            changes.append(Change(number, was, was, was_on=edit.action != "switch_on"))
        change = changes[number]
        match edit.action:
            case "remove":
                change = replace(change, after=None)
            case "replace":
                change = replace(change, after=edit.new)
            case "add":
                change = replace(change, after=edit.triple, is_on=True)
            case "switch_on" | "switch_off":
                change = replace(change, is_on=edit.action == "switch_on")
        changes[number] = change
        if change.after is not None:
            place[change.after] = number
    return changes


class OpenWorkspace:
    """An open workspace as one visitor sees it; it changes as this visitor and others edit.

    Attributes:
        key: that leads to it.
        who: what this visitor calls themselves.
        graph: as last seen; edits are in it, so none stand over it (``done``).
        first: the graph as this visitor opened it.
        revision: of the graph as last seen.
        opened_at: the revision when this visitor opened it.
        base: the entry that the log begins with, which stays.
        overtaken: whether others edited it since this visitor's last edit.
    """

    id = WORKSPACE
    done: tuple[Edit, ...] = ()
    edited: Set[str] = frozenset()
    before: tuple[KnowledgeGraph, tuple[Edit, ...]] | None = None

    def __init__(self, key: str, *, who: str = "") -> None:
        """Open a workspace by its key.

        Raises:
            WorkspaceError: none has this key.
        """
        self.key, self.who = key.strip(), who
        self.graph, self.revision = workspaces.seen(self.store)
        self.base = workspaces.base_of(self.store)
        self.first, self.opened_at = self.graph, self.revision
        self.overtaken = False

    @property
    def store(self) -> GraphStore:
        """Its file, or its graph on a server; may raise ``WorkspaceError`` where that is gone."""
        return workspaces.store(self.key)

    @property
    def searched(self) -> GraphSearch:
        """Its file at the revision last seen."""
        return GraphSearch(self.store.file, self.revision)

    def entries(self) -> list[Entry]:
        """Return its log, the latest entry first."""
        return self.store.history()

    def of_entry(self, revision: int, *, most: int = 1000) -> list[Change]:
        """Return what an entry did, triple by triple."""
        return self.store.changes(revision, most=most)

    def source(self, revision: int) -> str | None:
        """Name the file that an entry imported; None: it is no import."""
        return self.store.source(revision)

    def changes(self) -> list[Change]:
        """How it differs from what it began with."""
        return self.store.changes_between(self.base, self.revision)

    def origin(self, triple: Triple) -> tuple[Origin, Entry | None]:
        """Say where a triple comes from, and which entry of the log made it."""
        return _origin(self.store, triple)

    def is_behind(self) -> bool:
        """Whether others edited it since it was last seen, or it is gone."""
        try:
            return workspaces.seen(self.store)[1] > self.revision
        except KBertError:
            return True  # the page will say so

    def refresh(self) -> None:
        """See it as it is now; whether others edited it is kept.

        Raises:
            WorkspaceError: it is gone.
        """
        graph, revision = workspaces.seen(self.store)
        if revision != self.revision:
            self.graph, self.revision, self.overtaken = graph, revision, True

    def commit(self, *edits: Edit) -> Entry:
        """Make edits, unless what they are about was edited since it was seen.

        Raises:
            GraphConflict: it was.
            GraphEditError: an edit doesn't fit.
            GraphFileError: the file can't be written.
        """
        return self._done(self.store.apply(*edits, who=self.who, seen=self.revision))

    def add(self, source: Source) -> Imported:
        """Add triples of a file, as one entry; those that are there stay as they are.

        Raises:
            WorkspaceError: workspaces take all the room they may.
            GraphFileError: the file can't be written.
        """
        workspaces.check_room()
        return self._done(import_into(self.store.path, [source], who=self.who))

    def undo(self, revision: int) -> Entry:
        """Take an entry back.

        Raises:
            GraphEditError: there is none, a later entry changed the same triples, or it is
                undone already.
        """
        return self._done(self.store.undo(revision, who=self.who))

    def redo(self, revision: int) -> Entry:
        """Make an entry again that was taken back.

        Raises:
            GraphEditError: it isn't undone, or it no longer fits.
        """
        undoes = (e.revision for e in self.entries() if e.undoes == revision and not e.undone)
        undo = next(undoes, None)
        if undo is None:
            raise GraphEditError(t("Entry {revision} of the log isn't undone.", revision=revision))
        return self.undo(undo)

    def _done(self, entry: T) -> T:
        """See it after an entry of this visitor."""
        self.before, seen = (self.graph, ()), self.revision
        self.refresh()
        self.overtaken = self.revision > seen + 1
        return entry


AnyLog = Log | OpenWorkspace
