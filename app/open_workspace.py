"""The workspace a visitor has open: what they have seen of it, and their own edits in it."""

from app import workspaces
from app.edit_log import EditLog
from kbert_core import KnowledgeGraph
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.search import GraphSearch
from kbert_core.knowledge.store.anywhere import import_into
from kbert_core.knowledge.store.importing import Imported, Source
from kbert_core.knowledge.store.log import Change, Entry
from kbert_core.knowledge.store.store import GraphStore


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
    def title(self) -> str:
        """What it is called."""
        return self.graph.name

    @property
    def store(self) -> GraphStore:
        """Its file, or its graph on a server; may raise ``WorkspaceError`` where that is gone."""
        return workspaces.store(self.key)

    @property
    def searched(self) -> GraphSearch:
        """Its file at the revision last seen."""
        return GraphSearch(workspaces.place_of(self.key), self.revision)

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
        return workspaces.without_path(error, workspaces.place_of(self.key), self.title)

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
