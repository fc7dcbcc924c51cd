"""Many triples at once into a graph file: all of them, or none."""

import hashlib
import logging
import os
import re
import sqlite3
import time
from array import array
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import astuple, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

import numpy as np
from filelock import FileLock

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io import ReadOptions, open_rows
from kbert_core.knowledge.io.encodings import VARIABLE
from kbert_core.knowledge.io.rows import Row
from kbert_core.knowledge.io.sources import STORED
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations
from kbert_lab.graphs.store import (
    VERSION,
    GraphBusy,
    connect,
    create_indexes,
    database_errors,
    graph_cache,
    graph_lock,
    last_revision,
    new_file,
    now,
    remove_leftovers,
    transaction,
)
from kbert_lab.graphs.store.log import Entry, write_entry
from kbert_lab.graphs.store.names import NamesFile, aliases_of, build_names, note_aliases
from kbert_lab.graphs.store.transfer import STEP, Progress

_HASHES = 1 << 22  # compared at once
SETTLED = 2.0  # seconds since a file's last change after which its times tell of the next one

log = logging.getLogger(__name__)

_INSERT = (
    "INSERT INTO triple "
    "(version, id, entity, head, relation, tail, place, off, source, line, added) "
    "VALUES (?1, ?1, ?2, ?3, ?4, ?5, ?1, 0, ?6, ?7, ?8)"
)
_THERE = (
    "SELECT 1 FROM triple WHERE entity = ? AND head = ? AND relation = ? AND tail = ? "
    "AND removed IS NULL"
)


@dataclass(frozen=True)
class Source:
    """Triples to import, each checked already, with the name of their file."""

    name: str
    rows: Iterable[Row]


@dataclass(frozen=True)
class Imported:
    """How many triples came in, how many were there already, and the entry of the log."""

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
        sources: an earlier one's triples come first.
        name: of a new graph, shown to people.
        identity: of a new graph: two of the same one hold the same at the same revision;
            "": it is like no other.
        aliases: relations that say other names, beside those of the graph; None: no
            further ones, and in a new graph those known by default.
        progress: called now and then with the number of rows read.

    Raises:
        GraphFileError: a source can't be read, the sources hold no triple,
            or the graph can't be written.
    """
    path = Path(path)
    if not path.exists():
        with graph_lock(path):
            if not path.exists():  # else another process made it while this one waited
                with new_file(path, name=name or path.stem, identity=identity) as database:
                    if aliases is not None:
                        note_aliases(database, aliases)
                    done, relations = _add(database, sources, progress, who, new=True)
                    build_names(database, path, relations)
                return done
    with database_errors(path), closing(connect(path, write=True)) as database:
        with transaction(database):
            done = add_triples(database, path, sources, who=who, aliases=aliases, progress=progress)
        with suppress(GraphBusy), graph_lock(path, wait=0), transaction(database):
            remove_leftovers(path, NamesFile.of(database).path(path))
    return done


def add_triples(
    database: sqlite3.Connection,
    path: Path,
    sources: Iterable[Source],
    *,
    who: str = "",
    aliases: AliasRelations | None = None,
    progress: Progress = lambda rows: None,
) -> Imported:
    """Add triples to a graph file that is there; the caller commits."""
    done, _ = _add(database, sources, progress, who, new=False)
    if aliases is not None:
        note_aliases(database, aliases_of(database).joined(aliases))
    build_names(database, path)
    return done


def _add(
    database: sqlite3.Connection,
    sources: Iterable[Source],
    progress: Progress,
    who: str,
    *,
    new: bool,
) -> tuple[Imported, set[str]]:
    """Import, and say which relations came; triples of a new graph are compared at the end."""
    revision = last_revision(database) + 1
    version = database.execute("SELECT ifnull(max(version), 0) FROM triple").fetchone()[0]
    first = database.execute("SELECT ifnull(max(id) + 1, 0) FROM source").fetchone()[0]
    names: list[str] = []
    relations: set[str] = set()
    count = 0

    def rows(hashes: IO[bytes]) -> Iterator[tuple]:
        nonlocal count, version
        last, entity, some = "", "", array("q")
        for number, source in enumerate(sources, start=first):
            names.append(source.name)
            for line, head, relation, tail in source.rows:
                if head != last:
                    last = head
                    entity = normalise_name(last)
                count += 1
                if count % STEP == 0:
                    progress(count)
                    hashes.write(some)
                    some = array("q")
                if not entity:  # a head of nothing but invisible characters
                    continue
                if new:
                    some.append(hash((head, relation, tail)))
                    relations.add(relation)
                elif database.execute(_THERE, (entity, head, relation, tail)).fetchone():
                    continue
                version += 1  # its place too: after every one so far
                yield version, entity, head, relation, tail, number, line, revision
        hashes.write(some)

    with SpooledTemporaryFile(8 * _HASHES) as hashes:
        added = max(0, database.executemany(_INSERT, rows(hashes)).rowcount)
        if new:
            repeated = ((version,) for version in _repeated(database, hashes))
            delete = "DELETE FROM triple WHERE version = ?"
            added -= max(0, database.executemany(delete, repeated).rowcount)
            create_indexes(database)
    if not count:
        raise GraphFileError(f"{', '.join(names)}: no triples in it, nothing to import.")
    rows_of_sources = [(first + i, name, revision) for i, name in enumerate(names)]
    database.executemany("INSERT INTO source VALUES (?, ?, ?)", rows_of_sources)
    write_entry(database, Entry(revision, now(), who, "import", added))
    progress(count)
    return Imported(added, count - added, revision), relations


def _repeated(database: sqlite3.Connection, hashes: IO[bytes]) -> Iterator[int]:
    """Yield the versions of triples that came before; of a new graph by their hashes, in order."""
    parts = hashes.tell() // (8 * _HASHES) + 1  # those of one remainder at a time
    for part in range(parts):
        hashes.seek(0)
        found, first = [np.zeros((2, 0), np.int64)], 1
        while content := hashes.read(8 * _HASHES):
            some = np.frombuffer(content, np.int64)
            which = (some % parts == part).nonzero()[0]
            found.append(np.array([some[which], first + which]))
            first += len(some)
        both = np.concatenate(found, axis=1)
        both = both[:, both[0].argsort(kind="stable")]
        same = np.zeros(both.shape[1] + 1, bool)  # as the one before
        same[1:-1] = both[0, 1:] == both[0, :-1]
        both = both[:, same[1:] | same[:-1]]
        for _, of_hash in groupby(zip(*both.tolist(), strict=True), key=itemgetter(0)):
            seen: set[tuple[str, str, str]] = set()
            for _, version in of_hash:
                query = "SELECT head, relation, tail FROM triple WHERE version = ?"
                triple = database.execute(query, (version,)).fetchone()
                if triple in seen:
                    yield version
                seen.add(triple)


def _digest(path: Path, how: str, folder: Path) -> str:
    """Hash a file's content, and how it is read; the hash is kept under the file's stat.

    A file that was changed just before isn't relied on: another change could leave the same times.
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
) -> Path:
    """Return the graph file of a text file's content; made where it is not there yet.

    Raises:
        GraphFileError: the file can't be read, or the cache not written.
    """
    path = Path(path)
    reading = open_rows(path, options, skip_bad=skip_bad)
    beside = [file.stat().st_mtime_ns for file in map(Path, options.nodes) if file.exists()]
    said = (sorted(aliases.names_of_head), sorted(aliases.names_of_tail), beside)
    given = (*astuple(options), os.environ.get(VARIABLE))
    how = (VERSION, "".join(path.suffixes[-2:]), *given, skip_bad, *said)
    with graph_cache(path) as folder:
        target = folder / f"{_digest(path, repr(how), folder)}{STORED}"
    if target.exists():
        return target
    with FileLock(target.with_suffix(".lock")):
        if not target.exists():
            log.info("%s: large; indexing it once, in %s", path, target.parent)
            source = Source(str(path), reading)
            name, identity = path.name, target.stem
            import_triples(target, [source], name=name, identity=identity, aliases=aliases)
            for problem in reading.problems:
                log.warning("left out: %s", problem)
    return target
