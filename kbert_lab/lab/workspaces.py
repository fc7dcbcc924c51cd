"""Workspaces: graphs that outlive a visit, each a graph file that its key alone leads to.

The folder holds files named by a hash of their keys; no list of them is ever
shown, and a key can't be had from a file's name. Whoever has the key may read
and edit. Where KBERT_WORKSPACES names a PostgreSQL database, each is a graph in that.
"""

import hashlib
import logging
import os
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar
from urllib.parse import urlsplit

from platformdirs import user_data_dir

from kbert_core.errors import GraphEditError, GraphFileError, KBertError, MissingPackageError
from kbert_core.files import cache_folder
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.sources import SERVER, STORED
from kbert_core.knowledge.triple import Triple
from kbert_lab.graphs.search import GraphSearch
from kbert_lab.graphs.store import ServerError
from kbert_lab.graphs.store.anywhere import copy_graph, import_into, is_there, open_store
from kbert_lab.graphs.store.importing import Imported, Source, import_triples
from kbert_lab.graphs.store.log import Change, Entry, Origin
from kbert_lab.graphs.store.store import GraphStore
from kbert_lab.lab.history import Edited
from kbert_lab.lab.texts import N_, refusal, t

FOLDER = "KBERT_WORKSPACES"  # the environment's word for where they are kept
MEGABYTES = "KBERT_WORKSPACES_MB"  # and for how much they may take there together
MOST_TRIPLES = 1_000_000  # of a graph that is saved here; larger ones belong on the command line
LONGEST_KEY = 200
WORKSPACE = "workspace"  # the id of the open one's graph in a session
T = TypeVar("T", Entry, Imported)
UNREADABLE = (GraphFileError, MissingPackageError)
_OPEN, _OPEN_FAR = 64, 16  # stores kept open; on a server each has three connections or more
log = logging.getLogger(__name__)
_stores: "OrderedDict[Path | str, tuple[tuple[int, int], GraphStore]]" = OrderedDict()
_lock = threading.Lock()


class WorkspaceError(KBertError):
    """A workspace can't be opened or made."""


def server() -> str:
    """The address of the database that they are kept in; "": it is a folder."""
    address = os.environ.get(FOLDER, "")
    return address if address.startswith(SERVER) else ""


def folder() -> Path:
    """Where workspaces are kept: KBERT_WORKSPACES, else the user's data folder."""
    return Path(os.environ.get(FOLDER) or Path(user_data_dir("kbert-lab")) / "workspaces")


def check_room() -> None:
    """Refuse to write more where the folder is full; a database says so itself.

    Raises:
        WorkspaceError: workspaces take as much as KBERT_WORKSPACES_MB says, else 4096 MB; or
            it says no number.
    """
    said = os.environ.get(MEGABYTES, "").strip() or "4096"
    if not said.isdecimal():
        text = N_(
            "KBERT_WORKSPACES_MB is “{value}”, expected a number: megabytes for all workspaces "
            "together. Change it, or leave it away for 4096."
        )
        raise WorkspaceError(t(text, value=said))
    files = () if server() else folder().glob("*")
    if sum(file.stat().st_size for file in files if file.is_file()) > int(said) << 20:
        text = N_(
            "Workspaces take {most} MB here, as much as they may. Ask whoever runs this app to "
            "delete old ones, or download the graph to keep it."
        )
        raise WorkspaceError(t(text, most=f"{int(said):,}"))


def key_in(typed: str) -> str:
    """The key in what somebody typed: the key itself, a link, or an address with other fields."""
    found = re.search(r"workspace=([^&#\s]*)", typed)
    return found[1] if found else typed.strip()


def place_of(key: str) -> Path | str:
    """The file that a key leads to, or the address, whether it is there or not."""
    digest = hashlib.sha256(f"kbert workspace {key}".encode("utf-8", "replace")).hexdigest()
    if address := server():
        return f"{address}{'&' if '?' in address else '?'}graph=w{digest[:47]}"
    return folder() / f"{digest[:48]}{STORED}"


def create(
    base: KnowledgeGraph,
    steps: Sequence[Edited],
    *,
    title: str,
    source: str = "",
    lines: Mapping[Triple, int] | None = None,
    who: str = "",
    progress: Callable[[int], None] = lambda rows: None,
) -> str:
    """Save a graph with a visitor's edits, each step as an entry of its log.

    Args:
        base: the graph before the edits.
        steps: the edits, oldest first.
        source: the file the base came from.
        lines: of that file, by triple, as far as they are known.
        progress: called now and then with the number of triples.

    Returns:
        The key, which is kept nowhere.

    Raises:
        WorkspaceError: the graph is too large, or there is no place for it.
    """
    check_room()
    if len(base) > MOST_TRIPLES:
        text = N_(
            "The graph has {count} triples; at most {most} can be saved to a workspace here. Make "
            "a graph file of it with kbert kg import and edit that."
        )
        raise WorkspaceError(t(text, count=f"{len(base):,}", most=f"{MOST_TRIPLES:,}"))
    key, name = secrets.token_urlsafe(24), title or base.name
    place = place_of(key)
    rows = ((lines.get(t, 0) if lines else 0, t.head, t.relation, t.tail) for t in base)
    off = Edited("", tuple(Edit("switch_off", triple) for triple in sorted(base.off)))
    try:
        with TemporaryDirectory() as temporary:
            path = Path(temporary) / f"graph{STORED}"
            if len(base):
                read = Source(source or base.name, rows)
                import_triples(path, [read], name=name, who=who, progress=progress)
            else:
                GraphStore.create(path, name=name).close()
            for step in (off, *steps):
                if step.source:
                    import_triples(path, [step.source], who=who)
                elif step.edits:
                    with GraphStore(path, write=True) as made:
                        made.apply(*step.edits, who=who)
            if isinstance(place, Path):
                place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            copy_graph(path, place)  # it is there whole in the end, or not at all
            if isinstance(place, Path):
                os.chmod(place, 0o600)
    except (OSError, *UNREADABLE) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise WorkspaceError(
            t(
                "The workspace can't be saved ({reason}). Make room, or mend the rights of the "
                "folder that KBERT_WORKSPACES names.",
                reason=reason or without_path(error, place, ""),
            )
        ) from error
    return key


def store(key: str) -> GraphStore:
    """Open a workspace, or find it open: one store for all visitors of this process.

    Raises:
        WorkspaceError: no workspace has this key, or it can't be read.
    """
    key = key.strip()
    place, which = place_of(key), None
    try:
        if 0 < len(key) <= LONGEST_KEY:
            which = _which(place)
        if which is None:
            raise WorkspaceError(
                t(
                    "No workspace has this key. Check that you copied all of it. A deleted "
                    "workspace can't be restored."
                )
            )
        with _lock:
            found = _stores.get(place)
            if found is None or found[0] != which:
                far = not isinstance(place, Path)
                write = far or all(os.access(own, os.W_OK) for own in (place, folder()))
                found = _stores[place] = (which, open_store(place, write=write))
                while len(_stores) > (_OPEN_FAR if far else _OPEN):
                    _, (_, oldest) = _stores.popitem(last=False)
                    if far:
                        oldest.close()
            _stores.move_to_end(place)
    except UNREADABLE as error:
        raise WorkspaceError(without_path(error, place, t("The workspace"))) from error
    return found[1]


def seen(of: GraphStore) -> tuple[KnowledgeGraph, int]:
    """A workspace's graph as it is now, with its revision."""
    while True:
        graph, revision = of.graph(), of.revision
        if of.graph() is graph and of.revision == revision:
            return graph, revision


def base_of(of: GraphStore) -> int:
    """The revision that a workspace began with: the graph it was made from."""
    first = [entry for entry in of.history() if entry.revision == 1]
    return 1 if first and first[0].action == "import" else 0


def without_path(error: Exception, place: Path | str, title: str) -> str:
    """What an error says of a workspace, by its title and not by its place on this machine.

    What a database says of itself, its users and its address goes to the log.
    """
    if isinstance(error, ServerError):
        log.warning("workspaces: %s", error)
        text = N_(
            "{title}: no connection to the server of workspaces, so nothing was changed. Try again "
            "later; the app's log says why."
        )
        return t(text, title=title or t("The workspace"))
    said = refusal(error)
    for colon in (": ", "："):
        said = said.replace(f"{place}{colon}", f"{title}{colon}" if title else "")
    said = said.replace(str(place), title)
    if isinstance(place, Path):
        return said.replace(str(place.parent), "…").replace(place.stem, "…")
    mirror = rf"{re.escape(str(cache_folder()))}[^\s:：]*"
    said = re.sub(mirror, lambda _: title, said)
    host = urlsplit(place).hostname
    return said.replace(host, "…") if host else said


def is_away(error: Exception) -> bool:
    """Whether a workspace couldn't be read because its server is away, and may be later."""
    return isinstance(error, ServerError) or isinstance(error.__cause__, ServerError)


def _which(place: Path | str) -> tuple[int, int] | None:
    """By what a workspace is told from another that got its place; None: there is none."""
    with suppress(OSError):
        if not isinstance(place, Path):
            return (0, 0) if is_there(place) else None
        stat = place.stat()
        return stat.st_dev, stat.st_ino
    return None


def origin_in(store: GraphStore, triple: Triple) -> tuple[Origin, Entry | None]:
    """Say where a triple of a stored graph comes from, and which entry of its log made it."""
    origin = store.origin(triple)
    entries = (entry for entry in store.history() if entry.revision == origin.revision)
    return origin, next(entries, None)


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
        self.graph, self.revision = seen(self.store)
        self.base = base_of(self.store)
        self.first, self.opened_at = self.graph, self.revision
        self.overtaken = False

    @property
    def store(self) -> GraphStore:
        """Its file, or its graph on a server; may raise ``WorkspaceError`` where that is gone."""
        return store(self.key)

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
        return origin_in(self.store, triple)

    def is_behind(self) -> bool:
        """Whether others edited it since it was last seen, or it is gone."""
        try:
            return seen(self.store)[1] > self.revision
        except KBertError:
            return True  # the page will say so

    def refresh(self) -> None:
        """See it as it is now; whether others edited it is kept.

        Raises:
            WorkspaceError: it is gone.
        """
        graph, revision = seen(self.store)
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
        check_room()
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
