"""The workspace a visitor has open: what they have seen of it, and their own edits in it."""

from dataclasses import dataclass, field

from app import workspaces
from app.edit_log import EditLog
from kbert_core import KnowledgeGraph
from kbert_core.errors import GraphEditError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.io import Row
from kbert_core.knowledge.search import GraphSearch
from kbert_core.knowledge.store.importing import Imported, Source, import_triples
from kbert_core.knowledge.store.log import Change, Entry
from kbert_core.knowledge.store.store import GraphStore


@dataclass
class OpenWorkspace:
    """A workspace as one visitor sees it; it changes as they and others edit.

    Attributes:
        key: that leads to it.
        graph: as last seen.
        revision: of that graph.
        first: the graph as it was when this visitor opened it.
        before: the graph before this visitor's last edit; None: there is none.
        opened_at: the revision of that.
        base: the revision it began with.
        log: this visitor's own entries, as steps.
        entries: the revision of each step.
        news: what others did since this visitor's last edit, the latest first.
        who: what this visitor calls themselves.
    """

    key: str
    graph: KnowledgeGraph
    revision: int
    first: KnowledgeGraph
    opened_at: int
    base: int
    before: KnowledgeGraph | None = None
    log: EditLog = field(default_factory=EditLog)
    entries: list[int] = field(default_factory=list)
    own: set[int] = field(default_factory=set)
    news: list[Entry] = field(default_factory=list)
    who: str = ""

    @classmethod
    def open(cls, key: str, *, who: str = "") -> "OpenWorkspace":
        """Open a workspace by its key.

        Raises:
            WorkspaceError: none has this key.
        """
        key = key.strip()
        store = workspaces.store(key)
        graph, revision = workspaces.seen(store)
        base = workspaces.base_of(store)
        return cls(key, graph, revision, graph, revision, base, who=who)

    @property
    def title(self) -> str:
        """What it is called."""
        return self.graph.name

    @property
    def store(self) -> GraphStore:
        """Its file; may raise ``WorkspaceError`` where that is gone."""
        return workspaces.store(self.key)

    @property
    def searched(self) -> GraphSearch:
        """Its file at the revision last seen."""
        return GraphSearch(workspaces.path_of(self.key), self.revision)

    def changes(self) -> list[Change]:
        """How it differs from what it began with."""
        return self.store.changes_between(self.base, self.revision)

    def refresh(self) -> None:
        """See it as it is now; what others did is put among the news.

        Raises:
            WorkspaceError: it is gone.
        """
        store = self.store
        graph, revision = workspaces.seen(store)
        if revision == self.revision:
            return
        history = store.history()
        fresh = [e for e in history if self.revision < e.revision <= revision]
        self.news = [e for e in fresh if e.revision not in self.own] + self.news
        self.graph, self.revision = graph, revision
        undone = {entry.revision for entry in history if entry.undone}
        for number, entry in enumerate(self.entries, start=1):
            if entry in undone and number not in self.log.back:
                self.log = self.log.undo(number)
            elif entry not in undone and number in self.log.back:
                self.log = self.log.redo(number)

    def commit(self, *edits: Edit) -> Entry:
        """Make edits, unless what they are about was edited since it was seen.

        Raises:
            GraphConflict: it was.
            GraphEditError: an edit doesn't fit.
            GraphFileError: the file can't be written.
        """
        entry = self.store.apply(*edits, who=self.who, seen=self.revision)
        return self._done(entry, EditLog().append(*edits))

    def add(self, source: str, rows: list[Row]) -> Imported:
        """Add triples of a file, as one entry; those that are there stay as they are.

        Raises:
            WorkspaceError: workspaces take all the room they may.
            GraphFileError: the file can't be written.
        """
        workspaces.check_room()
        done = import_triples(self.store.path, [Source(source, rows)], who=self.who)
        self.own.add(done.revision)
        self._seen_after_own()
        return done

    def undo(self, revision: int | None = None) -> Entry:
        """Take back an entry: a given one, or this visitor's last.

        Raises:
            GraphEditError: a later entry changed the same triples, or it is undone already.
        """
        if revision is None:
            revision = self.entries[self.log.standing[-1].number - 1]
        return self._done(self.store.undo(revision, who=self.who))

    def redo(self, revision: int | None = None) -> Entry:
        """Make an entry again that was taken back: a given one, or this visitor's last such."""
        if revision is None:
            revision = self.entries[self.log.back[0] - 1]
        store = self.store
        for entry in store.history():
            if entry.undoes == revision and not entry.undone:
                return self._done(store.undo(entry.revision, who=self.who))
        raise GraphEditError(f"{store.path}: entry {revision} isn't undone.")

    def _done(self, entry: Entry, log: EditLog | None = None) -> Entry:
        self.own.add(entry.revision)
        if log is not None:
            self.log = self.log.append(*log.done)
            self.entries.append(entry.revision)
        self._seen_after_own()
        return entry

    def _seen_after_own(self) -> None:
        self.before = self.graph
        self.news = []
        self.refresh()
