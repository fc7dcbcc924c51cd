"""Many triples at once into a graph file: all of them, or none."""

import hashlib
import logging
import os
import re
import sqlite3
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path

import numpy as np
from filelock import FileLock

from kbert_core.errors import GraphFileError
from kbert_core.files import cache_folder
from kbert_core.knowledge.io import ReadOptions, open_rows
from kbert_core.knowledge.io.rows import Row
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.store.database import (
    ENDING,
    VERSION,
    GraphBusy,
    connect,
    create_indexes,
    database_errors,
    graph_lock,
    last_revision,
    new_file,
    now,
    remove_leftovers,
    transaction,
)
from kbert_core.knowledge.store.log import Entry, write_entry
from kbert_core.knowledge.store.names import (
    NamesFile,
    aliases_of,
    build_names,
    note_aliases,
)
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations

Progress = Callable[[int], None]  # called now and then with the number of rows read
_STEP = 20_000  # rows between two calls of it
SETTLED = 2.0  # seconds since a file's last change after which its times tell of the next one

log = logging.getLogger(__name__)

_INSERT = (
    "INSERT INTO triple "
    "(version, id, entity, head, relation, tail, place, off, source, line, added) "
    "VALUES (?1, ?1, ?2, ?3, ?4, ?5, ?1, 0, ?6, ?7, ?8)"
)


@dataclass(frozen=True)
class Source:
    """Triples to import, with where they come from.

    Attributes:
        name: of the file.
        rows: read once, in order; each is checked already.
    """

    name: str
    rows: Iterable[Row]


@dataclass(frozen=True)
class Imported:
    """What an import did.

    Attributes:
        triples: how many came in.
        repeated: how many were there already, or twice in the files.
        revision: the entry of the log.
    """

    triples: int
    repeated: int
    revision: int


def import_triples(
    path: str | Path,
    sources: Iterable[Source],
    *,
    name: str = "",
    identity: str = "",
    who: str = "",
    aliases: AliasRelations | None = None,
    progress: Progress = lambda rows: None,
) -> Imported:
    """Add triples to a graph file, which is made where there is none.

    A process killed on the way leaves the graph as it was.

    Args:
        path: of the graph.
        sources: an earlier one's triples come first.
        name: of a new graph, shown to people.
        identity: of a new graph: two of the same one hold the same at the
            same revision; "": it is like no other.
        who: who imports.
        aliases: relations by which the graph shall say other names, beside
            those by which it does; None: no further ones, and in a new graph
            those known by default.
        progress: called now and then.

    Raises:
        GraphFileError: a source can't be read, the sources hold no triple,
            or the graph can't be written.
    """
    path = Path(path)
    reading = _Reading(sources, progress)
    if not path.exists():
        with graph_lock(path):
            if not path.exists():  # else another process made it while this one waited
                with new_file(path, name=name or path.stem, identity=identity) as database:
                    if aliases is not None:
                        note_aliases(database, aliases)
                    done = _fill(database, reading, who)
                    build_names(database, path)
                return done
    with database_errors(path), closing(connect(path, write=True)) as database:
        with transaction(database):
            done = _add(database, reading, who)
            if aliases is not None:
                note_aliases(database, aliases_of(database).joined(aliases))
            build_names(database, path)
        with suppress(GraphBusy), graph_lock(path, wait=0), transaction(database):
            remove_leftovers(path, NamesFile.of(database).path(path))
    return done


@dataclass
class _Reading:
    """Rows as they are read, counted."""

    sources: Iterable[Source]
    progress: Progress
    rows: int = 0
    names: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[int, str, Row]]:
        """Yield the number of the source, the entity, and the row."""
        head, entity = "", ""
        for number, source in enumerate(self.sources):
            self.names.append(source.name)
            for row in source.rows:
                if row[1] != head:
                    head = row[1]
                    entity = normalise_name(head)
                self.rows += 1
                if self.rows % _STEP == 0:
                    self.progress(self.rows)
                if entity:  # else a head of nothing but invisible characters
                    yield number, entity, row

    def note(
        self, database: sqlite3.Connection, first: int, revision: int, who: str, count: int
    ) -> None:
        """Write the entry of the log, and its sources."""
        database.executemany(
            "INSERT INTO source VALUES (?, ?, ?)",
            [(first + i, name, revision) for i, name in enumerate(self.names)],
        )
        if not count and not self.rows:
            raise GraphFileError(f"{', '.join(self.names)}: no triples in it, nothing to import.")
        write_entry(database, Entry(revision, now(), who, "import", count))
        self.progress(self.rows)


def _fill(database: sqlite3.Connection, reading: _Reading, who: str) -> Imported:
    """Import into an empty graph: repeated triples are taken out at the end."""
    hashes = array("q")

    def values() -> Iterator[tuple]:
        for version, (source, entity, row) in enumerate(reading, start=1):
            line, head, relation, tail = row
            hashes.append(hash((head, relation, tail)))
            yield version, entity, head, relation, tail, source, line, 1

    database.executemany(_INSERT, values())
    repeated = _repeated(database, np.frombuffer(hashes, np.int64))
    database.executemany("DELETE FROM triple WHERE version = ?", repeated)
    create_indexes(database)
    count = len(hashes) - len(repeated)
    reading.note(database, 0, 1, who, count)
    return Imported(count, reading.rows - count, 1)


def _repeated(database: sqlite3.Connection, hashes: np.ndarray) -> list[tuple[int]]:
    """The versions of triples that came before; hashes tell where to look."""
    if not len(hashes):
        return []
    order = np.argsort(hashes, kind="stable")
    same = hashes[order[1:]] == hashes[order[:-1]]
    suspects = np.zeros(len(hashes), bool)
    suspects[order[1:][same]] = suspects[order[:-1][same]] = True
    seen: set[tuple[str, str, str]] = set()
    repeated = []
    for version in (np.flatnonzero(suspects) + 1).tolist():
        triple = database.execute(
            "SELECT head, relation, tail FROM triple WHERE version = ?", (version,)
        ).fetchone()
        if triple in seen:
            repeated.append((version,))
        seen.add(triple)
    return repeated


def _add(database: sqlite3.Connection, reading: _Reading, who: str) -> Imported:
    """Import into a graph that holds triples: each is looked up first."""
    revision = last_revision(database) + 1
    version = database.execute("SELECT ifnull(max(version), 0) FROM triple").fetchone()[0]
    first = database.execute("SELECT ifnull(max(id) + 1, 0) FROM source").fetchone()[0]
    count = 0
    for source, entity, (line, head, relation, tail) in reading:
        there = database.execute(
            "SELECT 1 FROM triple WHERE entity = ? AND head = ? AND relation = ? AND tail = ? "
            "AND removed IS NULL",
            (entity, head, relation, tail),
        ).fetchone()
        if there is None:
            version += 1
            row = (entity, head, relation, tail, first + source, line, revision)
            database.execute(_INSERT, (version, *row))  # its place is behind every one so far
            count += 1
    reading.note(database, first, revision, who, count)
    return Imported(count, reading.rows - count, revision)


def _digest(path: Path, how: str, folder: Path) -> str:
    """Hash a file's content, and how it is read.

    The hash is kept under the file's path and stat, so that a file that stays
    is read for it only once. A file that was changed just before isn't relied
    on: another change could leave the same times.
    """
    stat = os.stat(path)
    identity = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    stamp = hashlib.sha256(repr((path.resolve(), identity, how)).encode()).hexdigest()
    remembered = folder / f"{stamp[:32]}.hash"
    with suppress(OSError, UnicodeDecodeError):
        digest = remembered.read_text("ascii")
        if re.fullmatch("[0-9a-f]{32}", digest):
            return digest
    begun = time.time()
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256")
        changed = os.fstat(file.fileno())
    content.update(how.encode())
    digest = content.hexdigest()[:32]
    if begun - max(changed.st_mtime, changed.st_ctime) > SETTLED:
        with suppress(OSError):
            remembered.write_text(digest, "ascii")
    return digest


def indexed(
    path: str | Path,
    options: ReadOptions = ReadOptions(),
    *,
    skip_bad: bool = False,
    aliases: AliasRelations = ALIAS_RELATIONS,
    progress: Progress = lambda rows: None,
) -> Path:
    """Return the graph file of a text file's content; made where it is not there yet.

    Raises:
        GraphFileError: the file can't be read, or the cache not written.
    """
    path = Path(path)
    reading = open_rows(path, options, skip_bad=skip_bad)
    said = (sorted(aliases.names_of_head), sorted(aliases.names_of_tail))
    how = (VERSION, "".join(path.suffixes[-2:]), *astuple(options), skip_bad, *said)
    folder = cache_folder() / "graphs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{_digest(path, repr(how), folder)}{ENDING}"
    except OSError as error:
        raise GraphFileError(
            f"{path}: large, so it is indexed in {folder}, which can't be written to "
            f"({error.strerror or error}). Set KBERT_CACHE to a folder of your own."
        ) from error
    if target.exists():
        return target
    with FileLock(target.with_suffix(".lock")):
        if not target.exists():
            log.info("%s: large; indexing it once, in %s", path, target.parent)
            source = Source(str(path), reading)
            import_triples(
                target,
                [source],
                name=path.name,
                identity=target.stem,
                aliases=aliases,
                progress=progress,
            )
            for problem in reading.problems:
                log.warning("left out: %s", problem)
    return target
