"""The index of a graph file's names: tries in a file of their own, then the filter of prefixes.

It lies beside the graph as ``GRAPH.kg.names-XXXXXXXX`` and can be made anew from it at any time.
A new one gets a new name and counts from the moment the graph's table of facts names it; whoever
has the old one open keeps it.
"""

import json
import logging
import mmap
import re
import secrets
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from heapq import merge
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

import marisa_trie
import numpy as np

from kbert_core.errors import GraphFileError
from kbert_core.files import are_texts, replaced
from kbert_core.knowledge.name_index import Names, PrefixFilter, sizes_of, with_meanings
from kbert_core.knowledge.names import DROPPED, SLOW, Filled, loose_code, loose_key
from kbert_core.knowledge.respelling import has_more_forms
from kbert_core.knowledge.surface_forms import forms_of
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations, Triple
from kbert_lab.files import or_refused
from kbert_lab.graphs import store
from kbert_lab.graphs.store import THEN, checked

log = logging.getLogger(__name__)

FORMATS = (7, 8)  # of a file with one trie, and with several; another one since keys changed
MAPPED = 4 << 20  # bytes from which on a file is mapped, and shared with other processes
PART = 3_000_000  # keys from which on another trie begins: making one takes memory for all its keys
_AT_ONCE = 10_000  # names
_LOOSE: Filled[int, str] = Filled(lambda code: "\n" if code == 10 else loose_code[code])
_IN_MEMORY = 1 << 24  # characters of keys kept there; more go to a temporary file

_Form = tuple[str, int, int, str]  # a key, and of what it means rank, then and entity


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
    parts: str = ""  # JSON: every trie's first key and size in bytes; "": there is one trie

    @classmethod
    def of(cls, database: sqlite3.Connection) -> "NamesFile":
        """Read what a graph file says; one that doesn't is damaged."""
        facts = dict(database.execute("SELECT name, value FROM fact WHERE name LIKE 'names_%'"))
        values = {}
        for field in fields(cls):
            value = facts.get(f"names_{field.name}", field.default)
            known = type(value) is (str if field.name in ("token", "parts") else int)
            if value is MISSING or not (known or value is field.default):
                raise sqlite3.DatabaseError(f"its table of facts lacks 'names_{field.name}'")
            values[field.name] = value
        if not re.fullmatch("[0-9a-f]{8}", values["token"]):  # it names a file
            raise sqlite3.DatabaseError(f"its names_token is {values['token']!r}")
        return cls(**values)

    def note(self, database: sqlite3.Connection) -> None:
        """Write it down; the caller commits."""
        facts = [(f"names_{name}", value) for name, value in vars(self).items()]
        database.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?)", facts)

    def path(self, graph: Path) -> Path:
        """Where the file is."""
        return graph.with_name(f"{graph.name}.names-{self.token}")

    def read(self, graph: Path) -> Names | None:
        """Read the file where it is small, else map it; None: it is gone, damaged or too old."""
        path, tries, at = self.path(graph), [], 0
        content: bytes | mmap.mmap
        try:
            stat = path.stat()
            if self.format not in FORMATS or stat.st_size != self.size:
                raise ValueError(f"{path.name} is of another format or size")
            if self.checksum != _checksum(path, stat.st_ino, stat.st_mtime_ns):
                raise ValueError(f"the checksum of {path.name} isn't {self.checksum}")
            if self.size < MAPPED:
                content = path.read_bytes()
            else:
                with path.open("rb") as file:
                    content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            for first, size in json.loads(self.parts or f'[["", {self.size - self.slots}]]'):
                tries.append((*checked((first,), str), marisa_trie.Trie()))
                tries[-1][1].map(memoryview(content)[at : at + size])  # it keeps no hold of it
                at += size
            table = np.frombuffer(content, np.uint8, self.slots, self.size - self.slots)
            return Names(tries, self.longest, PrefixFilter(table))
        except (OSError, RuntimeError, TypeError, ValueError, RecursionError) as error:
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
    write_names(database, graph).note(database)


def rebuild_names(path: str | Path) -> bool:
    """Index a graph's names as they are now, unless another process is at it; say which."""
    path = Path(path)
    try:
        with (
            store.graph_lock(path, wait=0),
            store.database_errors(path),
            closing(store.connect(path, write=True)) as database,
        ):
            database.execute("BEGIN")  # a reader: others write meanwhile
            file = write_names(database, path)
            database.execute("COMMIT")
            with store.transaction(database):
                newest = NamesFile.of(database)
                if newest.revision <= file.revision or newest.format not in FORMATS:
                    newest = file
                    file.note(database)
                store.remove_leftovers(path, newest.path(path))
    except store.GraphBusy:
        return False
    return True


class _Index:
    """Every key of the names that count at a revision, in tries, with little in memory at a time.

    The names come in their order, and most are keys as they are; the other keys are sorted. Both
    wait in temporary files, and go into one trie after the other.
    """

    def __init__(self, database: sqlite3.Connection, revision: int) -> None:
        self._database, self._then = database, {"then": revision}
        self._sizes = np.zeros(4, np.int64)
        self.longest = 0
        self.prefixes = PrefixFilter.sized(self._sizes)

    def tries(self) -> Iterator[tuple[str, marisa_trie.Trie]]:
        """Yield every trie with its first key, as ``Names`` has them."""
        by_key = itemgetter(0)
        with (
            closing(sqlite3.connect("", isolation_level=None)) as others,
            SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", newline="\n") as same,
        ):
            others.execute(f"PRAGMA cache_size = -{store.SORTING}")
            others.execute(
                "CREATE TABLE form (key TEXT, rank INTEGER, version INTEGER, entity TEXT)"
            )
            with store.transaction(others):
                insert = "INSERT INTO form VALUES (?, ?, ?, ?)"
                others.executemany(insert, self._counted(self._aliases()))
                for forms in self._names(same):
                    others.executemany(insert, self._counted(forms))
            same.seek(0)
            self.prefixes = PrefixFilter.sized(self._sizes)
            names = ((line[:-1], None) for line in same)
            rows = others.execute("SELECT key, rank, version, entity FROM form ORDER BY key")
            in_order = merge(names, ((key, meaning) for key, *meaning in rows), key=by_key)
            first, keys, meanings = "", list[str](), list[str]()
            for key, of_key in groupby(in_order, key=by_key):
                if len(keys) + len(meanings) >= PART:
                    yield first, (trie := self._trie(keys, meanings))
                    keys = [start for end in range(1, len(key)) if (start := key[:end]) in trie]
                    first, meanings = key, []
                keys.append(key)
                name, *meant = (meaning for _, meaning in of_key)
                if meant or name:
                    meant.append(name or (*self._first_version(key), 0, key))
                    meanings += with_meanings(key, meant)
            yield first, self._trie(keys, meanings)

    def _counted(self, forms: Iterable[_Form]) -> list[_Form]:
        forms = list(forms)
        self._sizes += sizes_of([key for key, *_ in forms])
        return forms

    def _aliases(self) -> Iterator[_Form]:
        """Yield the keys that triples say."""
        aliases = aliases_of(self._database)
        rows = self._database.execute("SELECT DISTINCT relation FROM triple")
        relations = [checked(row, str)[0] for row in rows]
        said = [r for r in relations if aliases.aliases_in(Triple("head", r, "tail"))]
        if not said:
            return
        of_entity = f"SELECT min(version) FROM triple AS own WHERE own.entity = t.entity AND {THEN}"
        rows = self._database.execute(
            f"SELECT ({of_entity}), version, head, relation, tail FROM triple AS t "
            f"WHERE relation IN (SELECT value FROM json_each(:relations)) AND {THEN}",
            self._then | {"relations": json.dumps(said)},
        )
        for row in rows:
            rank, version, *triple = checked(row, int, int, str, str, str)
            for key, named in forms_of("", (Triple(*triple),), aliases):
                yield key, rank, version, named

    def _names(self, same: IO[str]) -> Iterator[list[_Form]]:
        """Write the names that are keys of their own, and yield the other keys of names."""
        rows = self._database.execute(
            "SELECT entity, min(version) FROM triple INDEXED BY triple_entity "
            f"WHERE {THEN} GROUP BY entity ORDER BY entity",
            self._then,
        )
        while some := rows.fetchmany(_AT_ONCE):
            names = [entity for entity, _ in some]
            if {*map(type, names)} != {str} or "" in names:
                raise sqlite3.DatabaseError("an entity has no name")
            forms = []
            keys = "\n".join(names).translate(_LOOSE).replace(DROPPED, "").split("\n")
            for number, key in enumerate(keys):
                if SLOW in key:
                    key = loose_key(names[number])
                if key != (entity := names[number]) or has_more_forms(entity):
                    own = dict.fromkeys(form for form, _ in forms_of(entity, (), ALIAS_RELATIONS))
                    forms += [(k, some[number][1], 0, entity) for k in own if k != entity]
                    names[number] = entity if entity in own else ""
            names = [*filter(None, names)]
            self._sizes += sizes_of(names)
            same.write("".join(f"{name}\n" for name in names))
            yield forms

    def _first_version(self, entity: str) -> Sequence[int]:
        query = f"SELECT min(version) FROM triple WHERE entity = :entity AND {THEN}"
        row = self._database.execute(query, self._then | {"entity": entity}).fetchone()
        return checked(row, int)

    def _trie(self, keys: list[str], meanings: list[str]) -> marisa_trie.Trie:
        self.longest = max(self.longest, max(map(len, keys), default=0))
        self.prefixes.add(keys)
        return marisa_trie.Trie(chain(keys, meanings))


def index_names(database: sqlite3.Connection, revision: int) -> Names:
    """Index every key of the names that count at a revision, in memory."""
    index = _Index(database, revision)
    tries = list(index.tries())
    return Names(tries, index.longest, index.prefixes)


def write_names(database: sqlite3.Connection, graph: Path) -> NamesFile:
    """Write an index of all names that a graph has now, beside ``graph``."""
    token, checksum, parts = secrets.token_hex(4), 0, list[tuple[str, int]]()
    revision = store.last_revision(database)
    index = _Index(database, revision)
    path = graph.with_name(f"{graph.name}.names-{token}")
    remedy = "Make room, or mend the folder's rights, and do it again."
    with or_refused(path, GraphFileError, remedy), replaced(path) as target:
        for first, trie in index.tries():
            content = trie.tobytes()
            parts.append((first, target.write(content)))
            checksum = zlib.crc32(content, checksum)
        table = index.prefixes.table
        size = target.tell() + target.write(table.data)
        checksum = zlib.crc32(table.data, checksum)
    several = len(parts) > 1
    said = json.dumps(parts, ensure_ascii=False) if several else ""
    about = index.longest, len(table), FORMATS[several], checksum, said
    return NamesFile(token, size, revision, *about)


def aliases_of(database: sqlite3.Connection) -> AliasRelations:
    """The relations by which a graph says other names."""
    row = database.execute("SELECT value FROM fact WHERE name = 'aliases'").fetchone()
    if row is None:
        return ALIAS_RELATIONS
    try:
        of_head, of_tail = json.loads(row[0])
    except (TypeError, ValueError, RecursionError):
        of_head = of_tail = None
    if not (are_texts(of_head) and are_texts(of_tail)):
        raise sqlite3.DatabaseError("its relations of other names can't be read")
    return AliasRelations(frozenset(of_head), frozenset(of_tail))


def note_aliases(database: sqlite3.Connection, aliases: AliasRelations) -> None:
    """Write them down; the caller commits, and has the names indexed anew."""
    relations = json.dumps([sorted(aliases.names_of_head), sorted(aliases.names_of_tail)])
    database.execute("INSERT OR REPLACE INTO fact VALUES ('aliases', ?)", (relations,))
