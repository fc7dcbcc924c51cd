"""Workspaces: graphs that outlive a visit, each a graph file that its key alone leads to.

The folder holds files named by a hash of their keys; no list of them is ever
shown, and a key can't be had from a file's name. Whoever has the key may read
and edit.
"""

import hashlib
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from platformdirs import user_data_dir

from app.texts import N_, refusal, t
from kbert_core import KBertError, KnowledgeGraph, Triple
from kbert_core.errors import GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.io import Row
from kbert_core.knowledge.store import ENDING
from kbert_core.knowledge.store.importing import Source, import_triples
from kbert_core.knowledge.store.memory import Step
from kbert_core.knowledge.store.store import GraphStore

FOLDER = "KBERT_WORKSPACES"  # the environment's word for where they are kept
MEGABYTES = "KBERT_WORKSPACES_MB"  # and for how much they may take there together
DEFAULT_MEGABYTES = 4096
MOST_TRIPLES = 1_000_000  # of a graph that is saved here; larger ones belong on the command line
LONGEST_KEY = 200
_OPEN = 64  # stores kept open
_stores: "OrderedDict[Path, tuple[tuple[int, int], GraphStore]]" = OrderedDict()
_lock = threading.Lock()


class WorkspaceError(KBertError):
    """A workspace can't be opened or made."""


def folder() -> Path:
    """Where workspaces are kept: KBERT_WORKSPACES, else the user's data folder."""
    return Path(os.environ.get(FOLDER) or Path(user_data_dir("kbert-lab")) / "workspaces")


def check_room() -> None:
    """Refuse to write more where the folder is full.

    Raises:
        WorkspaceError: workspaces take as much as KBERT_WORKSPACES_MB says, else 4096 MB; or
            it says no number.
    """
    said = os.environ.get(MEGABYTES, "").strip() or str(DEFAULT_MEGABYTES)
    if not said.isascii() or not said.isdecimal():
        text = N_(
            "KBERT_WORKSPACES_MB is “{value}”, expected a number: megabytes for all workspaces "
            "together. Change it, or leave it away for 4096."
        )
        raise WorkspaceError(t(text, value=said))
    taken = 0
    if folder().is_dir():
        with os.scandir(folder()) as files:
            for file in files:
                with suppress(OSError):  # gone in the meantime
                    taken += file.stat(follow_symlinks=False).st_size
    if taken > int(said) << 20:
        text = N_(
            "Workspaces take {most} MB here, as much as they may. Ask whoever runs this app to "
            "delete old ones, or download the graph to keep it."
        )
        raise WorkspaceError(t(text, most=f"{int(said):,}"))


def path_of(key: str) -> Path:
    """The file that a key leads to, whether it is there or not."""
    digest = hashlib.sha256(f"kbert workspace {key}".encode("utf-8", "replace")).hexdigest()
    return folder() / f"{digest[:48]}{ENDING}"


def create(
    base: KnowledgeGraph,
    steps: Sequence[Step],
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
    key = secrets.token_urlsafe(24)
    path = path_of(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _fill(path, base, steps, title, source or base.name, lines or {}, who, progress)
    except (OSError, GraphFileError) as error:
        _remove(path)
        reason = error.strerror if isinstance(error, OSError) else without_path(error, path, "")
        raise WorkspaceError(
            t(
                "The workspace can't be saved ({reason}). Make room, or mend the rights of the "
                "folder that KBERT_WORKSPACES names.",
                reason=reason or error,
            )
        ) from error
    except BaseException:
        _remove(path)
        raise
    return key


def store(key: str) -> GraphStore:
    """Open a workspace, or find it open: one store for all visitors of this process.

    Raises:
        WorkspaceError: no workspace has this key, or it can't be read.
    """
    key = key.strip()
    path = path_of(key)
    try:
        if not key or len(key) > LONGEST_KEY:
            raise FileNotFoundError
        stat = path.stat()
    except OSError:
        raise WorkspaceError(
            t(
                "No workspace has this key. Check that you copied all of it. A deleted workspace "
                "can't be restored."
            )
        ) from None
    which = (stat.st_dev, stat.st_ino)
    with _lock:
        found = _stores.get(path)
        if found is None or found[0] != which:
            found = _stores[path] = (which, _opened(path))
            while len(_stores) > _OPEN:
                _stores.popitem(last=False)
        _stores.move_to_end(path)
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


def without_path(error: Exception, path: Path, title: str) -> str:
    """What an error says of a workspace, by its title and not by its place on this machine."""
    said = refusal(error)
    for colon in (": ", "："):
        said = said.replace(f"{path}{colon}", f"{title}{colon}" if title else "")
    return said.replace(str(path), title).replace(str(path.parent), "…").replace(path.stem, "…")


def _opened(path: Path) -> GraphStore:
    try:
        return GraphStore(path, write=os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
    except GraphFileError as error:
        raise WorkspaceError(without_path(error, path, t("The workspace"))) from error


def _fill(
    path: Path,
    base: KnowledgeGraph,
    steps: Sequence[Step],
    title: str,
    source: str,
    lines: Mapping[Triple, int],
    who: str,
    progress: Callable[[int], None],
) -> None:
    name = title or base.name
    if len(base):
        import_triples(
            path, [Source(source, _rows(base, lines))], name=name, who=who, progress=progress
        )
    else:
        GraphStore.create(path, name=name).close()
    with GraphStore(path, write=True) as made:
        if base.off:
            made.apply(*(Edit("switch_off", triple) for triple in sorted(base.off)), who=who)
    for step in steps:
        if step.source:
            import_triples(path, [step.source], who=who)
            continue
        with GraphStore(path, write=True) as made:
            made.apply(*step.edits, who=who)
    os.chmod(path, 0o600)


def _rows(graph: KnowledgeGraph, lines: Mapping[Triple, int]) -> Iterator[Row]:
    return ((lines.get(t, 0), t.head, t.relation, t.tail) for t in graph)


def _remove(path: Path) -> None:
    if path.parent.is_dir():
        for found in path.parent.glob(f"{path.name}*"):
            found.unlink(missing_ok=True)
