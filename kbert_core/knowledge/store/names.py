"""The index of a graph file's names: a trie in a file of its own, mapped into memory.

It lies beside the graph as ``GRAPH.kg.names-XXXXXXXX`` and can be made anew
from it at any time. A new one gets a new name and counts from the moment the
graph's table of facts names it; whoever has the old one open keeps it.
"""

import json
import logging
import re
import secrets
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path

import marisa_trie
import numpy as np
from numpy.typing import NDArray

from kbert_core.errors import GraphFileError, KBertError
from kbert_core.knowledge.aliases import ALIAS_RELATIONS, AliasRelations
from kbert_core.knowledge.names import loose_keys
from kbert_core.knowledge.openings import Openings
from kbert_core.knowledge.store.schema import (
    THEN,
    GraphBusy,
    connect,
    database_errors,
    graph_lock,
    last_revision,
    writing,
)
from kbert_core.knowledge.surface_forms import forms_of, has_more_forms
from kbert_core.knowledge.triple import Triple

log = logging.getLogger(__name__)

FORMAT = 4  # of the file
MAPPED = 4 << 20  # bytes from which on a file is mapped, and shared with other processes
PROJECT = Path(__file__).parents[3]  # whence another process imports this module
_LEFTOVER = re.compile(r"\.names-[0-9a-f]{8}(\.part)?|(\.[0-9a-f]{8})?\.part(-wal|-shm|-journal)?")
_AT_ONCE = 10_000  # names
_LEADS_TO = "\x01"  # in the trie, between a key, a rank and an entity that it may mean


class StoredNames:
    """Keys of names in a trie that is read from disk as it is needed.

    A key that means anything but the entity of the same name is followed, in
    keys of their own, by all it may mean: ``key \\x01 rank \\x01 then \\x01
    entity``, in the order of two numbers: the first triple of the entity that
    says it, and the triple.

    A small file is read into memory, a large one mapped: see :data:`MAPPED`.

    Args:
        path: of the trie, and behind it the table of openings.
        longest: characters of the longest key.
        slots: of the table.
        checksum: CRC-32 of the file; None: it isn't known.

    Raises:
        OSError, RuntimeError: it can't be read.
        ValueError: it is shorter than its table, or its checksum another.
    """

    def __init__(self, path: Path, longest: int, slots: int, checksum: int | None = None) -> None:
        stat = path.stat()
        if checksum is not None:
            _check_once(path, checksum, stat.st_ino, stat.st_size, stat.st_mtime_ns)
        self._trie = marisa_trie.Trie()
        if stat.st_size < MAPPED:
            content = path.read_bytes()
            self._trie.frombytes(content)
            table = np.frombuffer(content, np.bool_, slots, len(content) - slots)
            openings = Openings(table.copy())  # without the rest of the file
        else:
            self._trie.mmap(str(path))
            openings = Openings.at_end_of(path, slots)
        self._longest = longest
        self.places, self.may_begin = openings.places, openings.may_begin

    def at(self, text: str, start: int) -> list[str]:
        """Return the keys that stand in a text from a place on, the shortest first."""
        return self._trie.prefixes(text[start : start + self._longest])

    def meant_by(self, key: str) -> tuple[str, ...]:
        """Return the entities that a key may mean."""
        found = self._trie.keys(key + _LEADS_TO)
        if not found:
            return (key,) if key in self._trie else ()
        ranked = (item[len(key) + 1 :].split(_LEADS_TO, 2) for item in found)
        by_rank = sorted((int(rank, 16), int(then, 16), entity) for rank, then, entity in ranked)
        return tuple(dict.fromkeys(entity for *_, entity in by_rank))


@dataclass(frozen=True)
class NamesFile:
    """What a graph file says of its index of names.

    Attributes:
        token: the end of the file's name.
        size: of the file, in bytes.
        revision: of the graph whose names they are.
        longest, slots: see :class:`StoredNames`.
        format: of the trie; one of another format is made anew.
        checksum: CRC-32 of the file; None: written before there was one.
    """

    token: str
    size: int
    revision: int
    longest: int
    slots: int = 0
    format: int = 1
    checksum: int | None = None

    @classmethod
    def of(cls, database: sqlite3.Connection) -> "NamesFile":
        """Read what a graph file says.

        Raises:
            sqlite3.DatabaseError: it doesn't say it, so it is damaged.
        """
        facts = dict(database.execute("SELECT name, value FROM fact WHERE name LIKE 'names_%'"))
        found = {}
        for field in fields(cls):
            value = facts.get(f"names_{field.name}", field.default)
            if value is not field.default and type(value) is not (
                str if field.name == "token" else int
            ):
                value = MISSING
            if value is MISSING:
                raise sqlite3.DatabaseError(f"its table of facts lacks 'names_{field.name}'")
            found[field.name] = value
        return cls(**found)

    def note(self, database: sqlite3.Connection) -> None:
        """Write it down; the caller commits."""
        facts = [(f"names_{name}", value) for name, value in vars(self).items()]
        database.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", facts)

    def path(self, graph: Path) -> Path:
        """Where the trie lies."""
        return graph.with_name(f"{graph.name}.names-{self.token}")


def build_names(database: sqlite3.Connection, graph: Path, revision: int) -> NamesFile:
    """Write the trie of all names that a graph has now.

    Args:
        database: the graph, in a transaction.
        graph: its path.
        revision: of the graph as the transaction sees it.

    Raises:
        GraphFileError: the trie can't be written.
    """
    index = _indexed(database, revision)
    token = secrets.token_hex(4)
    path = graph.with_name(f"{graph.name}.names-{token}")
    try:
        size, checksum = index.save(path)
    except OSError as error:
        raise GraphFileError(
            f"{path}: can't be written ({error.strerror or error}). Make room, or mend the "
            "folder's rights, and do it again."
        ) from error
    return NamesFile(token, size, revision, index.longest, len(index.table), FORMAT, checksum)


def open_names(
    database: sqlite3.Connection, graph: Path, said: NamesFile, *, write: bool
) -> StoredNames:
    """Open the trie that a graph file names; where it is gone or cut, make another.

    Args:
        database: the graph.
        graph: its path.
        said: what it says.
        write: whether another may be put beside the graph; else it is made
            for this process alone.
    """
    path = said.path(graph)
    with suppress(OSError, RuntimeError, ValueError):
        if path.stat().st_size == said.size and said.format == FORMAT:
            return StoredNames(path, said.longest, said.slots, said.checksum)
    log.warning(
        "%s: its index of names is missing, damaged or of an earlier version; making another", graph
    )
    index = _indexed(database, said.revision)
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "names"
        size, checksum = index.save(own)
        names = StoredNames(own, index.longest, len(index.table))  # mapped when it is gone too
    made = NamesFile(
        said.token, size, said.revision, index.longest, len(index.table), FORMAT, checksum
    )
    if write and made == replace(said, checksum=checksum):
        with suppress(OSError):
            index.save(path)
    return names


def rebuild_names(path: str | Path) -> bool:
    """Index a graph's names as they are now, unless another process is at it.

    Returns:
        Whether this call did it.
    """
    path = Path(path)
    try:
        with graph_lock(path, wait=0), database_errors(path):
            database = connect(path, write=True)
            try:
                _rebuild(database, path)
            finally:
                database.close()
    except GraphBusy:
        return False
    return True


class Rebuilding:
    """:func:`rebuild_names` in a process of its own, so that no edit waits for it."""

    def __init__(self, path: Path) -> None:
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115 - read when the process has ended
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kbert_core.knowledge.store.names", str(path.resolve())],
            cwd=PROJECT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._messages,
        )

    @property
    def running(self) -> bool:
        """Whether it is still at work."""
        return self.process.poll() is None

    def failure(self) -> str | None:
        """Say why it failed; None: it didn't, or is still at work."""
        if not self.process.poll():
            return None
        self._messages.seek(0)
        lines = self._messages.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with status {self.process.returncode}"


def remove_leftovers(graph: Path, kept: NamesFile | None = None) -> None:
    """Delete what killed processes left beside a graph, and tries that it names no more.

    The caller holds the ``graph_lock``, and writes to the graph where there is one.

    Args:
        graph: its path.
        kept: the trie that it names.
    """
    for path in graph.parent.iterdir():
        ending = path.name.removeprefix(graph.name)
        if _LEFTOVER.fullmatch(ending) and (kept is None or path != kept.path(graph)):
            with suppress(OSError):
                path.unlink()


def _rebuild(database: sqlite3.Connection, path: Path) -> None:
    database.execute("BEGIN")  # a reader: others write meanwhile
    revision = last_revision(database)
    made = build_names(database, path, revision)
    database.execute("COMMIT")
    with writing(database):
        newest = NamesFile.of(database)
        if newest.revision < made.revision or newest.format != made.format:
            newest = made
            made.note(database)
        remove_leftovers(path, newest)


@dataclass(frozen=True)
class _Index:
    """An index of names, to be written.

    Attributes:
        trie: of keys, and of what some of them mean.
        table: (S,) of the keys' openings.
        longest: characters of the longest key.
    """

    trie: marisa_trie.Trie
    table: NDArray[np.bool_]
    longest: int

    def save(self, path: Path) -> tuple[int, int]:
        """Write the trie, and the table behind it; return the file's size and checksum.

        The file appears whole or not at all: others may have an earlier one mapped.
        """
        part = path.with_name(f"{path.name}.part")
        try:
            self.trie.save(str(part))
            with part.open("ab") as file:
                file.write(self.table.tobytes())
            size, checksum = part.stat().st_size, _checksum(part)
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return size, checksum


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return value


@lru_cache(maxsize=256)
def _check_once(path: Path, checksum: int, *stat: int) -> None:
    """Compare a file's checksum, once in a process as long as the file's stat stays.

    Raises:
        ValueError: it is another.
    """
    if _checksum(path) != checksum:
        raise ValueError(f"{path}: its checksum is not {checksum}")


def _indexed(database: sqlite3.Connection, revision: int) -> _Index:
    """Index every key of the names that count at a revision."""
    aliases = aliases_of(database)
    said = _alias_triples(database, revision, aliases)
    ranks: dict[str, int] = {entity: 0 for _, entity, _ in said}
    keys: list[str] = []
    firsts: list[int] = []
    more: dict[str, list[tuple[int, int, str]]] = {}  # keys that mean something else, or more
    rows = database.execute(
        "SELECT entity, min(version) FROM triple INDEXED BY triple_entity "
        f"WHERE {THEN} GROUP BY entity",
        {"then": revision},
    )
    while some := rows.fetchmany(_AT_ONCE):
        names = [entity for entity, _ in some]
        for (entity, first), key in zip(some, loose_keys(names), strict=True):
            if key == entity and not has_more_forms(entity):
                keys.append(key)
                firsts.append(first)
                continue
            for form, _ in forms_of(entity, (), aliases):
                if form == entity:
                    keys.append(form)
                    firsts.append(first)
                else:
                    more.setdefault(form, []).append((first, 0, entity))
        if ranks:
            ranks |= {entity: first for entity, first in some if entity in ranks}
    for version, entity, triple in said:
        for form, named in forms_of("", (triple,), aliases):
            more.setdefault(form, []).append((ranks[entity], version, named))
    if more:
        for key, first in zip(keys, firsts, strict=True):
            if key in more:
                more[key].append((first, 0, key))
    keys += more
    longest, openings = max(map(len, keys), default=0), Openings.of(keys)
    keys += (
        f"{key}{_LEADS_TO}{rank:x}{_LEADS_TO}{then:x}{_LEADS_TO}{entity}"
        for key, meant in more.items()
        for rank, then, entity in meant
    )
    return _Index(marisa_trie.Trie(keys), openings.table, longest)


def aliases_of(database: sqlite3.Connection) -> AliasRelations:
    """The relations by which a graph says other names."""
    found = database.execute("SELECT value FROM fact WHERE name = 'aliases'").fetchone()
    if found is None:
        return ALIAS_RELATIONS
    try:
        of_head, of_tail = map(frozenset, json.loads(found[0]))
    except (TypeError, ValueError) as error:
        raise sqlite3.DatabaseError("its relations of other names can't be read") from error
    return AliasRelations(of_head, of_tail)


def note_aliases(database: sqlite3.Connection, aliases: AliasRelations) -> None:
    """Write them down; the caller commits, and has the names indexed anew."""
    said = json.dumps([sorted(aliases.names_of_head), sorted(aliases.names_of_tail)])
    database.execute("INSERT OR REPLACE INTO fact VALUES ('aliases', ?)", (said,))


def _alias_triples(
    database: sqlite3.Connection, revision: int, aliases: AliasRelations
) -> list[tuple[int, str, Triple]]:
    """The triples that say another name: version, entity and triple, in order."""
    relations = [
        relation
        for (relation,) in database.execute("SELECT DISTINCT relation FROM triple")
        if aliases.aliases_in(Triple("head", relation, "tail"))
    ]
    marks = ",".join(f":r{number}" for number in range(len(relations)))
    rows = database.execute(
        "SELECT version, entity, head, relation, tail FROM triple "
        f"WHERE relation IN ({marks}) AND {THEN} ORDER BY version",
        {"then": revision} | {f"r{number}": name for number, name in enumerate(relations)},
    )
    return [(version, entity, Triple(*row)) for version, entity, *row in rows]


if __name__ == "__main__":
    try:
        rebuild_names(sys.argv[1])
    except KBertError as error:
        sys.exit(str(error))
