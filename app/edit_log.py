"""A visitor's edits to a graph, each of which can be taken back: in memory, or in a workspace."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from app import workspaces
from app.texts import refusal, t
from kbert_core import KnowledgeGraph
from kbert_core.errors import GraphEditError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.names import normalise_name
from kbert_lab.graphs.search import GraphSearch
from kbert_lab.graphs.store.anywhere import import_into
from kbert_lab.graphs.store.importing import Imported, Source
from kbert_lab.graphs.store.log import Change, Entry, last_undo
from kbert_lab.graphs.store.memory import MemoryStore, Step
from kbert_lab.graphs.store.store import GraphStore


class EditLog:
    """The edits to a graph that are kept for this visit alone.

    Attributes:
        graph: that a scene names, before ``done``; of a workspace as last seen.
        first: the graph as this visitor opened it.
        base: the entry that the log begins with, which stays.
        who: what this visitor calls themselves.
        own: the entries of this visitor; None: all.
    """

    base = 0
    who = ""
    own: AbstractSet[int] | None = None
    _put_back: AbstractSet[int] = frozenset()

    def __init__(self, graph: KnowledgeGraph, *edits: Edit) -> None:
        """Begin a log, with each of some edits as a step."""
        self.graph = self.first = graph
        self._memory = MemoryStore(graph)
        self._entries: tuple[int, list[Entry]] = (0, [])
        for edit in edits:
            self.commit(edit)

    @property
    def store(self) -> GraphStore:
        """What keeps the log."""
        return self._memory

    @property
    def size(self) -> int:
        """How many edits it keeps in memory, those taken back among them."""
        return sum(len(step.edits) for step in self._memory.steps.values())

    @property
    def steps(self) -> tuple[Step, ...]:
        """What stands over the graph that a scene names, oldest first."""
        of, found = self._memory.steps, []
        for entry in self.entries():
            if entry.revision in of and not entry.undone:
                if self.puts_back(entry):
                    break
                found.append(of[entry.revision])
        return tuple(reversed(found))

    @property
    def done(self) -> tuple[Edit, ...]:
        """The edits of the steps, one after the other."""
        return tuple(edit for step in self.steps for edit in step.edits)

    @property
    def before(self) -> tuple[KnowledgeGraph, tuple[Edit, ...]] | None:
        """The graph and its edits before the last one; None: there was none."""
        edits = tuple(edit for step in self.steps[:-1] for edit in step.edits)
        return (self.graph, edits) if self.steps else None

    def entries(self) -> list[Entry]:
        """The log for reading, the latest entry first."""
        store = self.store
        if self._entries[0] != store.revision:
            self._entries = (store.revision, self._read(store))
        return self._entries[1]

    def last(self) -> Entry | None:
        """This visitor's last edit that counts."""
        return next((e for e in self._edits() if not e.undone), None)

    def next(self) -> Entry | None:
        """The edit that would be made again next."""
        undo = self._to_redo(None)
        undoes = next((e.undoes for e in self.entries() if e.revision == undo), None)
        return next((e for e in self.entries() if e.revision == undoes), None)

    def changes(self) -> list[Change]:
        """How the graph differs from what it began with."""
        store = self.store
        return store.changes_between(self.base, store.revision)

    def commit(self, *edits: Edit) -> Entry:
        """Make edits as one step.

        Raises:
            GraphEditError: one doesn't fit.
        """
        return self.store.apply(*edits)

    def put_back(self) -> None:
        """Make the graph what it was at first, as one step, which an undo takes back."""
        last = self.last()
        if self.steps and last is not None:
            triples = (x for e in self.done for x in (e.triple, e.new) if x is not None)
            entities = dict.fromkeys(normalise_name(triple.head) for triple in triples)
            edits = edits_between(self.store.graph(), self.graph, entities)
            entry = self.store.apply(*edits) if edits else last
            self._put_back |= {entry.revision}

    def puts_back(self, entry: Entry) -> bool:
        """Whether an entry made the graph what it was at first."""
        return entry.revision in self._put_back

    def add(self, source: Source) -> object:
        """Add the triples of a file as one step."""
        return self._memory.add(source)

    def undo(self, revision: int | None = None) -> Entry:
        """Take back an entry: a given one, or this visitor's last.

        Raises:
            GraphEditError: there is none, a later entry changed the same triples, or it is
                undone already.
        """
        last = self.last()
        return self._undo((last.revision if last else 0) if revision is None else revision)

    def redo(self, revision: int | None = None) -> Entry:
        """Make an entry again that was taken back: a given one, or this visitor's last such.

        Raises:
            GraphEditError: there is none, or it no longer fits.
        """
        undo = self._to_redo(revision)
        if undo is None:
            raise GraphEditError(
                t("Entry {revision} of the log isn't undone.", revision=revision)
                if revision is not None
                else t("There is nothing to redo.")
            )
        return self._undo(undo)

    def said(self, error: Exception) -> str:
        """What an error says to this visitor."""
        return refusal(error)

    def _undo(self, revision: int) -> Entry:
        return self.store.undo(revision, who=self.who)

    def _read(self, store: GraphStore) -> list[Entry]:
        return store.history()[:-1]  # without the entry that made the empty log

    def _edits(self) -> list[Entry]:
        own = self.own
        ours = (e for e in self.entries() if own is None or e.revision in own)
        return [e for e in ours if e.undoes is None and e.revision > self.base]

    def _to_redo(self, revision: int | None) -> int | None:
        entries = self.entries()
        if revision is None:
            return last_undo(entries, self.own)
        undoes = (e.revision for e in entries if e.undoes == revision and not e.undone)
        return next(undoes, None)


def edits_between(now: KnowledgeGraph, then: KnowledgeGraph, entities: Iterable[str]) -> list[Edit]:
    """Edits that make of one graph another, which differs from it in some entities only."""
    edits = []
    for entity in entities:
        wanted, order = then.triples_of(entity), list(now.triples_of(entity))
        edits += [Edit("remove", triple) for triple in order if triple not in then]
        order = [triple for triple in order if triple in then]
        for place, triple in enumerate(wanted):
            on = triple in now and now.is_on(triple)
            if order[place : place + 1] != [triple]:
                if triple in order:
                    edits.append(Edit("remove", triple))
                    order.remove(triple)
                edits.append(Edit("add", triple, index=place))
                order.insert(place, triple)
                on = True
            if on != then.is_on(triple):
                edits.append(Edit("switch_off" if on else "switch_on", triple))
    return edits


class OpenWorkspace(EditLog):
    """A workspace as one visitor sees it; it changes as they and others edit.

    Its edits are in its graph, so none stand over that.

    Attributes:
        key: that leads to it.
        revision: of the graph as last seen.
        opened_at: the revision when this visitor opened it.
        overtaken: whether others edited it since this visitor's last edit.
    """

    steps = ()
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
        self.own: set[int] = set()
        self.overtaken = False
        self._entries = (-1, [])

    @property
    def store(self) -> GraphStore:
        """Its file, or its graph on a server; may raise ``WorkspaceError`` where that is gone."""
        return workspaces.store(self.key)

    @property
    def searched(self) -> GraphSearch:
        """Its file at the revision last seen."""
        return GraphSearch(self.store.file, self.revision)

    def changes(self) -> list[Change]:
        """How it differs from what it began with."""
        return self.store.changes_between(self.base, self.revision)

    def refresh(self) -> None:
        """See it as it is now; whether others edited it is kept.

        Raises:
            WorkspaceError: it is gone.
        """
        graph, revision = workspaces.seen(self.store)
        if revision != self.revision:
            fresh = [e for e in self.entries() if self.revision < e.revision <= revision]
            self.overtaken |= any(e.revision not in self.own for e in fresh)
            self.graph, self.revision = graph, revision

    def commit(self, *edits: Edit) -> Entry:
        """Make edits, unless what they are about was edited since it was seen.

        Raises:
            GraphConflict: it was.
            GraphEditError: an edit doesn't fit.
            GraphFileError: the file can't be written.
        """
        entry = self.store.apply(*edits, who=self.who, seen=self.revision)
        self._done(entry.revision)
        return entry

    def add(self, source: Source) -> Imported:
        """Add triples of a file, as one entry; those that are there stay as they are.

        Raises:
            WorkspaceError: workspaces take all the room they may.
            GraphFileError: the file can't be written.
        """
        workspaces.check_room()
        done = import_into(self.store.path, [source], who=self.who)
        self._done(done.revision)
        return done

    def said(self, error: Exception) -> str:
        """What an error says, without the workspace's place on this machine."""
        return workspaces.without_path(error, workspaces.place_of(self.key), self.graph.name)

    def _undo(self, revision: int) -> Entry:
        entry = super()._undo(revision)
        self._done(entry.revision)
        return entry

    def _read(self, store: GraphStore) -> list[Entry]:
        return store.history()

    def _done(self, revision: int) -> None:
        self.own.add(revision)
        self.before = (self.graph, ())
        self.overtaken = False
        self.refresh()
