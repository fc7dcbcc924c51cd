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
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io import ReadOptions, open_rows
from kbert_core.knowledge.io.rows import Row
from kbert_core.knowledge.io.sources import STORED
from kbert_core.knowledge.io.text_lines import VARIABLE
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations
from kbert_lab.graphs import store
from kbert_lab.graphs.store.log import STEP, Entry, Progress, Tables, take_in, write_entry
from kbert_lab.graphs.store.names import NamesFile, aliases_of, build_names, note_aliases

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
    how: Any = {"who": who, "aliases": aliases, "progress": progress}
    if not path.exists():
        with store.graph_lock(path):
            if not path.exists():  # else another process made it while this one waited
                name = name or path.stem
                with store.new_file(path, name=name, identity=identity) as database:
                    return add_triples(database, path, sources, new=True, **how)
    with store.database_errors(path), closing(store.connect(path, write=True)) as database:
        with store.transaction(database):
            done = add_triples(database, path, sources, **how)
        with suppress(store.GraphBusy), store.graph_lock(path, wait=0), store.transaction(database):
            store.remove_leftovers(path, NamesFile.of(database).path(path))
    return done


def make_graph(path: Path, tables: Tables = (), source: object = "", **about: str) -> None:
    """Make a graph file of the rows of another, or an empty one; see ``store.new_file``."""
    with store.new_file(path, **about) as database:
        take_in(database, tables, source)
        store.create_indexes(database)
        build_names(database, path)


def add_triples(
    database: sqlite3.Connection,
    path: Path,
    sources: Iterable[Source],
    *,
    who: str = "",
    aliases: AliasRelations | None = None,
    progress: Progress = lambda rows: None,
    new: bool = False,
) -> Imported:
    """Add triples to a graph file that is there; the caller commits.

    Those of a new one, which has no indexes yet, are compared at the end, by their hashes.
    """
    revision = store.last_revision(database) + 1
    version = database.execute("SELECT ifnull(max(version), 0) FROM triple").fetchone()[0]
    first = database.execute("SELECT ifnull(max(id) + 1, 0) FROM source").fetchone()[0]
    names: list[str] = []
    hashes = array("I")
    count = 0

    def rows() -> Iterator[tuple]:
        nonlocal count, version
        last = entity = ""
        for number, source in enumerate(sources, start=first):
            names.append(source.name)
            for line, head, relation, tail in source.rows:
                if head != last:
                    last, entity = head, normalise_name(head)
                count += 1
                if count % STEP == 0:
                    progress(count)
                if not entity:  # a head of nothing but invisible characters
                    continue
                if new:
                    hashes.append(hash((head, relation, tail)) & 0xFFFFFFFF)
                elif database.execute(_THERE, (entity, head, relation, tail)).fetchone():
                    continue
                version += 1  # its place too: after every one so far
                yield version, entity, head, relation, tail, number, line, revision

    added = max(0, database.executemany(_INSERT, rows()).rowcount)
    if new:
        repeated = ((version,) for version in _repeated(database, hashes))
        delete = "DELETE FROM triple WHERE version = ?"
        added -= max(0, database.executemany(delete, repeated).rowcount)
        store.create_indexes(database)
    if not count:
        raise GraphFileError(f"{', '.join(names)}: no triples in it, nothing to import.")
    rows_of_sources = [(first + i, name, revision) for i, name in enumerate(names)]
    database.executemany("INSERT INTO source VALUES (?, ?, ?)", rows_of_sources)
    write_entry(database, Entry(revision, store.now(), who, "import", added))
    progress(count)
    if aliases is not None:
        note_aliases(database, aliases if new else aliases_of(database).joined(aliases))
    build_names(database, path)
    return Imported(added, count - added, revision)


def _repeated(database: sqlite3.Connection, hashes: array) -> Iterator[int]:
    """Yield the versions of a new graph's triples that came before; the first hash is of 1."""
    values = np.frombuffer(hashes, np.uint32)
    parts = len(values) // _HASHES + 1  # those of one remainder at a time, for the memory
    for part in range(parts):
        places = (values % parts == part).nonzero()[0]
        places = places[values[places].argsort(kind="stable")]
        same = np.zeros(len(places) + 1, bool)  # as the one before
        same[1:-1] = values[places[1:]] == values[places[:-1]]
        places = places[same[1:] | same[:-1]]
        for _, of_hash in groupby(places.tolist(), key=hashes.__getitem__):
            seen: set[tuple[str, str, str]] = set()
            for place in of_hash:
                query = "SELECT head, relation, tail FROM triple WHERE version = ?"
                triple = database.execute(query, (place + 1,)).fetchone()
                if triple in seen:
                    yield place + 1
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
    how = (store.VERSION, "".join(path.suffixes[-2:]), *given, skip_bad, *said)
    with store.graph_cache(path) as folder:
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
