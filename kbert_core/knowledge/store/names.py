"""The index of a graph file's names: a trie in a file of its own.

It lies beside the graph as ``GRAPH.kg.names-XXXXXXXX`` and can be made anew from it at any time.
A new one gets a new name and counts from the moment the graph's table of facts names it; whoever
has the old one open keeps it.
"""

import json
import logging
import mmap
import secrets
import sqlite3
import zlib
from contextlib import closing
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from pathlib import Path

import marisa_trie
import numpy as np

from kbert_core.errors import GraphFileError
from kbert_core.files import replaced
from kbert_core.knowledge.name_index import Names, PrefixFilter
from kbert_core.knowledge.names import loose_keys
from kbert_core.knowledge.store import (
    THEN,
    Database,
    GraphBusy,
    connect,
    database_errors,
    graph_lock,
    last_revision,
    remove_leftovers,
    transaction,
)
from kbert_core.knowledge.surface_forms import forms_of, has_more_forms
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations, Triple

log = logging.getLogger(__name__)

FORMAT = 5  # of the file
MAPPED = 4 << 20  # bytes from which on a file is mapped, and shared with other processes
_AT_ONCE = 10_000  # names


@dataclass(frozen=True)
class NamesFile:
    """What a graph file says of its index of names."""

    token: str  # the end of the file's name
    size: int  # of the file, in bytes
    revision: int  # of the graph whose names they are
    longest: int  # characters of the longest key
    slots: int = 0  # of the prefix filter at the end of the file
    format: int = 1  # of the file; one of another format is made anew
    checksum: int | None = None  # CRC-32 of the file; None: written before there was one

    @classmethod
    def of(cls, database: sqlite3.Connection) -> "NamesFile":
        """Read what a graph file says; one that doesn't is damaged."""
        facts = dict(database.execute("SELECT name, value FROM fact WHERE name LIKE 'names_%'"))
        values = {}
        for field in fields(cls):
            value = facts.get(f"names_{field.name}", field.default)
            known = type(value) is (str if field.name == "token" else int)
            if value is MISSING or not (known or value is field.default):
                raise sqlite3.DatabaseError(f"its table of facts lacks 'names_{field.name}'")
            values[field.name] = value
        return cls(**values)

    def note(self, database: Database) -> None:
        """Write it down; the caller commits."""
        facts = [(f"names_{name}", value) for name, value in vars(self).items()]
        database.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", facts)

    def path(self, graph: Path) -> Path:
        """Where the file is."""
        return graph.with_name(f"{graph.name}.names-{self.token}")

    def read(self, graph: Path) -> Names | None:
        """Read the file where it is small, else map it; None: it is gone, damaged or too old."""
        path, trie = self.path(graph), marisa_trie.Trie()
        content: bytes | mmap.mmap
        try:
            stat = path.stat()
            if self.format != FORMAT or stat.st_size != self.size:
                raise ValueError(f"{path.name} is of another format or size")
            if self.size < MAPPED:
                content = path.read_bytes()
                trie.frombytes(content)
            else:
                with path.open("rb") as file:
                    content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                trie.mmap(str(path))
            if self.checksum not in (None, _checksum(path, stat.st_ino, stat.st_mtime_ns)):
                raise ValueError(f"the checksum of {path.name} isn't {self.checksum}")
            table = np.frombuffer(content, np.uint8, self.slots, self.size - self.slots)
            return Names(trie, self.longest, PrefixFilter(table))
        except (OSError, RuntimeError, ValueError) as error:
            log.warning("%s: its index of names can't be used: %s", graph, error)
        return None


@lru_cache(maxsize=256)
def _checksum(path: Path, *stat: int) -> int:
    """A file's CRC-32; it is read once in a process, as long as its stat stays."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            value = zlib.crc32(block, value)
    return value


def build_names(database: sqlite3.Connection, graph: Path) -> None:
    """Write an index of all names that a graph has now, and note it; the caller commits."""
    write_names(database, graph, last_revision(database)).note(database)


def rebuild_names(path: str | Path) -> bool:
    """Index a graph's names as they are now, unless another process is at it; say which."""
    path = Path(path)
    try:
        with (
            graph_lock(path, wait=0),
            database_errors(path),
            closing(connect(path, write=True)) as database,
        ):
            database.execute("BEGIN")  # a reader: others write meanwhile
            file = write_names(database, path, last_revision(database))
            database.execute("COMMIT")
            with transaction(database):
                newest = NamesFile.of(database)
                if newest.revision <= file.revision or newest.format != file.format:
                    newest = file
                    file.note(database)
                remove_leftovers(path, newest.path(path))
    except GraphBusy:
        return False
    return True


def index_names(database: Database, revision: int) -> Names:
    """Index every key of the names that count at a revision."""
    aliases = aliases_of(database)
    alias_triples = _alias_triples(database, revision, aliases)
    ranks: dict[str, int] = {entity: 0 for _, entity, _ in alias_triples}
    keys: list[str] = []
    firsts: list[int] = []
    more: dict[str, list[tuple[int, int, str]]] = {}  # keys that mean something else, or more
    rows = getattr(database, "stream", database.execute)(
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
    for key, first in zip(keys, firsts, strict=True) if more else ():
        if key in more:
            more[key].append((first, 0, key))
    return Names.build((key for key in keys if key not in more), more)


def write_names(database: Database, graph: Path, revision: int) -> NamesFile:
    """Write an index of all names that a graph has at a revision, beside ``graph``."""
    names = index_names(database, revision)
    table = names.prefixes.table
    content = names.trie.tobytes() + table.tobytes()
    token, checksum = secrets.token_hex(4), zlib.crc32(content)
    file = NamesFile(token, len(content), revision, names.longest, len(table), FORMAT, checksum)
    try:
        with replaced(file.path(graph)) as target:
            target.write(content)
    except OSError as error:
        raise GraphFileError(
            f"{file.path(graph)}: can't be written ({error.strerror or error}). Make room, or mend "
            "the folder's rights, and do it again."
        ) from error
    return file


def aliases_of(database: Database) -> AliasRelations:
    """The relations by which a graph says other names."""
    row = database.execute("SELECT value FROM fact WHERE name = 'aliases'").fetchone()
    if row is None:
        return ALIAS_RELATIONS
    try:
        of_head, of_tail = map(frozenset, json.loads(row[0]))
    except (TypeError, ValueError) as error:
        raise sqlite3.DatabaseError("its relations of other names can't be read") from error
    return AliasRelations(of_head, of_tail)


def note_aliases(database: Database, aliases: AliasRelations) -> None:
    """Write them down; the caller commits, and has the names indexed anew."""
    relations = json.dumps([sorted(aliases.names_of_head), sorted(aliases.names_of_tail)])
    database.execute("INSERT OR REPLACE INTO fact VALUES ('aliases', ?)", (relations,))


def _alias_triples(
    database: Database, revision: int, aliases: AliasRelations
) -> list[tuple[int, str, Triple]]:
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
