"""The index of a graph file's names: a trie in a file of its own.

It lies beside the graph as ``GRAPH.kg.names-XXXXXXXX`` and can be made anew
from it at any time. A new one gets a new name and counts from the moment the
graph's table of facts names it; whoever has the old one open keeps it.
"""

import json
import logging
import mmap
import secrets
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from contextlib import closing, suppress
from dataclasses import MISSING, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path

import marisa_trie
import numpy as np
from numpy.typing import NDArray

from kbert_core.errors import GraphFileError, KBertError
from kbert_core.files import replaced
from kbert_core.knowledge.aliases import ALIAS_RELATIONS, AliasRelations
from kbert_core.knowledge.names import loose_keys
from kbert_core.knowledge.openings import Openings
from kbert_core.knowledge.store.database import (
    THEN,
    GraphBusy,
    connect,
    database_errors,
    graph_lock,
    last_revision,
    remove_leftovers,
    transaction,
)
from kbert_core.knowledge.surface_forms import forms_of, has_more_forms
from kbert_core.knowledge.triple import Triple

log = logging.getLogger(__name__)

FORMAT = 4  # of the file
MAPPED = 4 << 20  # bytes from which on a file is mapped, and shared with other processes
PROJECT = Path(__file__).parents[3]  # whence another process imports this module
_AT_ONCE = 10_000  # names
_LEADS_TO = "\x01"  # in the trie, between a key, a rank and an entity that it may mean


class StoredNames:
    """Keys of names in a trie.

    A key that means anything but the entity of the same name is followed, in
    keys of their own, by all it may mean: ``key \\x01 rank \\x01 then \\x01
    entity``, in the order of two numbers: the first triple of the entity that
    says it, and the triple.

    Args:
        trie: of keys, and of what some of them mean.
        table: (S,) of the keys' openings.
        longest: characters of the longest key.
    """

    def __init__(self, trie: marisa_trie.Trie, table: NDArray[np.bool_], longest: int) -> None:
        self.trie, self.table, self.longest = trie, table, longest
        openings = Openings(table)
        self.places, self.may_begin = openings.places, openings.may_begin

    def at(self, text: str, start: int) -> list[str]:
        """Return the keys that stand in a text from a place on, the shortest first."""
        return self.trie.prefixes(text[start : start + self.longest])

    def meant_by(self, key: str) -> tuple[str, ...]:
        """Return the entities that a key may mean."""
        meanings = self.trie.keys(key + _LEADS_TO)
        if not meanings:
            return (key,) if key in self.trie else ()
        ranked = (item[len(key) + 1 :].split(_LEADS_TO, 2) for item in meanings)
        by_rank = sorted((int(rank, 16), int(then, 16), entity) for rank, then, entity in ranked)
        return tuple(dict.fromkeys(entity for *_, entity in by_rank))


@dataclass(frozen=True)
class NamesFile:
    """What a graph file says of its index of names.

    Attributes:
        token: the end of the file's name.
        size: of the file, in bytes.
        revision: of the graph whose names they are.
        longest: characters of the longest key.
        slots: of the table at the end of the file.
        format: of the file; one of another format is made anew.
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
        values = {}
        for field in fields(cls):
            value = facts.get(f"names_{field.name}", field.default)
            known = type(value) is (str if field.name == "token" else int)
            if value is MISSING or not (known or value is field.default):
                raise sqlite3.DatabaseError(f"its table of facts lacks 'names_{field.name}'")
            values[field.name] = value
        return cls(**values)

    def note(self, database: sqlite3.Connection) -> None:
        """Write it down; the caller commits."""
        facts = [(f"names_{name}", value) for name, value in vars(self).items()]
        database.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", facts)

    def path(self, graph: Path) -> Path:
        """Where the file is."""
        return graph.with_name(f"{graph.name}.names-{self.token}")

    def read(self, graph: Path) -> StoredNames:
        """Read the file where it is small, else map it.

        Raises:
            OSError, RuntimeError: it can't be read.
            ValueError: it isn't the file that the graph names.
        """
        path = self.path(graph)
        stat = path.stat()
        if self.format != FORMAT or stat.st_size != self.size:
            raise ValueError(f"{path}: of another format or size")
        trie = marisa_trie.Trie()
        content: bytes | mmap.mmap
        if self.size < MAPPED:
            content = path.read_bytes()
            trie.frombytes(content)
        else:
            with path.open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            trie.mmap(str(path))
        if self.checksum not in (None, _checksum(path, stat.st_ino, stat.st_mtime_ns)):
            raise ValueError(f"{path}: its checksum isn't {self.checksum}")
        table = np.frombuffer(content, np.bool_, self.slots, self.size - self.slots)
        return StoredNames(trie, table, self.longest)


@lru_cache(maxsize=256)
def _checksum(path: Path, *stat: int) -> int:
    """Return a file's CRC-32; it is read once in a process, as long as its stat stays."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return value


def build_names(database: sqlite3.Connection, graph: Path) -> NamesFile:
    """Write an index of all names that a graph has now, and note it; the caller commits.

    Raises:
        GraphFileError: it can't be written.
    """
    file = _write_names(database, graph, last_revision(database))
    file.note(database)
    return file


def open_names(
    database: sqlite3.Connection, graph: Path, file: NamesFile, *, write: bool
) -> StoredNames:
    """Open the index that a graph names; where it is gone or damaged, make another.

    Args:
        database: the graph.
        graph: its path.
        file: what it says of the index.
        write: whether another may be put beside the graph; else it is made
            for this process alone.
    """
    with suppress(OSError, RuntimeError, ValueError):
        return file.read(graph)
    log.warning(
        "%s: its index of names is missing, damaged or of an earlier version; making another", graph
    )
    names = index_names(database, file.revision)
    content = _content(names)
    same = _described(names, content, file.token, file.revision)
    if write and file in (same, replace(same, checksum=None)):
        with suppress(OSError), replaced(file.path(graph)) as target:
            target.write(content)
    return names


def remove_old_names(database: sqlite3.Connection, graph: Path) -> None:
    """Delete indexes that a graph names no more, unless another process writes one."""
    with suppress(GraphBusy), graph_lock(graph, wait=0), transaction(database):
        remove_leftovers(graph, NamesFile.of(database).path(graph))


def rebuild_names(path: str | Path) -> bool:
    """Index a graph's names as they are now, unless another process is at it.

    Returns:
        Whether this call did it.
    """
    path = Path(path)
    try:
        with (
            graph_lock(path, wait=0),
            database_errors(path),
            closing(connect(path, write=True)) as database,
        ):
            database.execute("BEGIN")  # a reader: others write meanwhile
            file = _write_names(database, path, last_revision(database))
            database.execute("COMMIT")
            with transaction(database):
                newest = NamesFile.of(database)
                if newest.revision < file.revision or newest.format != file.format:
                    newest = file
                    file.note(database)
                remove_leftovers(path, newest.path(path))
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


def index_names(database: sqlite3.Connection, revision: int) -> StoredNames:
    """Index every key of the names that count at a revision."""
    aliases = aliases_of(database)
    alias_triples = _alias_triples(database, revision, aliases)
    ranks: dict[str, int] = {entity: 0 for _, entity, _ in alias_triples}
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
    for version, entity, triple in alias_triples:
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
        for key, meanings in more.items()
        for rank, then, entity in meanings
    )
    return StoredNames(marisa_trie.Trie(keys), openings.table, longest)


def _write_names(database: sqlite3.Connection, graph: Path, revision: int) -> NamesFile:
    names = index_names(database, revision)
    content = _content(names)
    file = _described(names, content, secrets.token_hex(4), revision)
    try:
        with replaced(file.path(graph)) as target:
            target.write(content)
    except OSError as error:
        raise GraphFileError(
            f"{file.path(graph)}: can't be written ({error.strerror or error}). Make room, or mend "
            "the folder's rights, and do it again."
        ) from error
    return file


def _content(names: StoredNames) -> bytes:
    return names.trie.tobytes() + names.table.tobytes()


def _described(names: StoredNames, content: bytes, token: str, revision: int) -> NamesFile:
    return NamesFile(
        token,
        len(content),
        revision,
        names.longest,
        len(names.table),
        FORMAT,
        zlib.crc32(content),
    )


def aliases_of(database: sqlite3.Connection) -> AliasRelations:
    """The relations by which a graph says other names."""
    row = database.execute("SELECT value FROM fact WHERE name = 'aliases'").fetchone()
    if row is None:
        return ALIAS_RELATIONS
    try:
        of_head, of_tail = map(frozenset, json.loads(row[0]))
    except (TypeError, ValueError) as error:
        raise sqlite3.DatabaseError("its relations of other names can't be read") from error
    return AliasRelations(of_head, of_tail)


def note_aliases(database: sqlite3.Connection, aliases: AliasRelations) -> None:
    """Write them down; the caller commits, and has the names indexed anew."""
    relations = json.dumps([sorted(aliases.names_of_head), sorted(aliases.names_of_tail)])
    database.execute("INSERT OR REPLACE INTO fact VALUES ('aliases', ?)", (relations,))


def _alias_triples(
    database: sqlite3.Connection, revision: int, aliases: AliasRelations
) -> list[tuple[int, str, Triple]]:
    """The triples that say another name: version, entity and triple, in order."""
    relations = [
        relation
        for (relation,) in database.execute("SELECT DISTINCT relation FROM triple")
        if aliases.aliases_in(Triple("head", relation, "tail"))
    ]
    rows = database.execute(
        "SELECT version, entity, head, relation, tail FROM triple "
        f"WHERE relation IN (SELECT value FROM json_each(:relations)) AND {THEN} ORDER BY version",
        {"then": revision, "relations": json.dumps(relations)},
    )
    return [(version, entity, Triple(*row)) for version, entity, *row in rows]


if __name__ == "__main__":
    try:
        rebuild_names(sys.argv[1])
    except KBertError as error:
        sys.exit(str(error))
