"""A workspace as one visitor sees it; its log is read as a session's own, see kbert_lab.lab.log."""

from kbert_core.errors import GraphEditError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple
from kbert_lab.graphs.search import GraphSearch
from kbert_lab.graphs.store.anywhere import import_into
from kbert_lab.graphs.store.importing import Imported, Source
from kbert_lab.graphs.store.log import Change, Entry, Origin, last_undo
from kbert_lab.graphs.store.store import GraphStore
from kbert_lab.lab import workspaces
from kbert_lab.lab.texts import t

WORKSPACE = "workspace"  # its graph's id in a session


class OpenWorkspace:
    """An open workspace; it changes as this visitor and others edit.

    Attributes:
        key: that leads to it.
        who: what this visitor calls themselves.
        graph: as last seen; edits are in it, so none stand over it (``done``).
        first: the graph as this visitor opened it.
        revision: of the graph as last seen.
        opened_at: the revision when this visitor opened it.
        base: the entry that the log begins with, which stays.
        own: the entries of this visitor.
        overtaken: whether others edited it since this visitor's last edit.
    """

    id = WORKSPACE
    done: tuple[Edit, ...] = ()
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
        self._entries: tuple[int, list[Entry]] = (-1, [])

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
        store = self.store
        if self._entries[0] != store.revision:
            self._entries = (store.revision, store.history())
        return self._entries[1]

    def last(self) -> Entry | None:
        """This visitor's last edit that counts."""
        ours = (e for e in self.entries() if e.revision in self.own)
        return next((e for e in ours if e.undoes is None and not e.undone), None)

    def next(self) -> Entry | None:
        """The edit that would be made again next."""
        undo = last_undo(self.entries(), self.own)
        undoes = next((e.undoes for e in self.entries() if e.revision == undo), None)
        return next((e for e in self.entries() if e.revision == undoes), None)

    def of_entry(
        self, revision: int, *, entity: str | None = None, most: int = 1000
    ) -> list[Change]:
        """Return what an entry did, triple by triple; to an entity, or to all of them."""
        return self.store.changes(revision, entity=entity, most=most)

    def changes(self) -> list[Change]:
        """How it differs from what it began with."""
        return self.store.changes_between(self.base, self.revision)

    def origin(self, triple: Triple) -> Origin | None:
        """Say where a triple comes from."""
        return self.store.origins(triple.head).get(triple)

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

    def undo(self, revision: int) -> Entry:
        """Take an entry back.

        Raises:
            GraphEditError: there is none, a later entry changed the same triples, or it is
                undone already.
        """
        entry = self.store.undo(revision, who=self.who)
        self._done(entry.revision)
        return entry

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

    def _done(self, revision: int) -> None:
        self.own.add(revision)
        self.before = (self.graph, ())
        self.overtaken = False
        self.refresh()
