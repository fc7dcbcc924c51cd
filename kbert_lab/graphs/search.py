"""Searching a graph of any size: one page at a time, each within a given time.

A small graph's entities come in order, but first those whose name is the text looked for. In a
large graph, results from an index come by name. Results that need a look at every row come in the
order of the file; if the time is over, the next page goes on from there.
"""

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import TYPE_RELATIONS, Triple
from kbert_lab.graphs import store
from kbert_lab.graphs.store import THEN

Where = Literal["anywhere", "head", "head_starts", "tail"]

SECONDS = 1.5  # after which a page ends, full or not
COUNTED = 50_000  # rows of a small graph: all that is found is put in order and counted
NAMES = 5000  # of a facet that are kept, the commonest
_CHUNK = 50_000  # rows between two looks at the clock
_FIRST_ROWS = 4 * _CHUNK  # of a large graph, where names are looked for to complete others
_NEAR = 1000  # heads, by name, of which the shortest are taken
_ROW = "head, relation, tail, off, version"
_STARTS = "entity >= :low_name AND entity < :high_name"
_folded = lru_cache(1 << 16)(normalise_name)


@dataclass(frozen=True)
class Query:
    """What is searched for; all conditions must hold, and an empty one always holds."""

    text: str = ""  # stands in the triple, in any case or width
    where: Where = "anywhere"  # in which field
    relations: tuple[str, ...] = ()  # one of these
    types: tuple[str, ...] = ()  # the entity has one of these
    off: bool = False  # only triples that are switched off

    @property
    def folded(self) -> str:
        """The text in the form in which names are compared."""
        return normalise_name(self.text)

    @property
    def everything(self) -> bool:
        """Whether every triple is found."""
        return not (self.folded or self.relations or self.types or self.off)


@dataclass(frozen=True)
class Found:
    """One page of results."""

    triples: tuple[Triple, ...] = ()  # in order
    on: tuple[bool, ...] = ()  # for each, whether it is switched on
    total: int | None = None  # how many are found on all pages; None: they were not counted
    next: int | None = None  # where the next page begins; None: this is the last
    complete: bool = True  # False: the time was over before the page was full


@dataclass(frozen=True)
class Facets:
    """How many triples each relation has, and each type; the largest number first."""

    relations: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    complete: bool = True  # False: the time was over before all were counted

    @classmethod
    def of(cls, relations: Counter[str], types: Counter[str], *, complete: bool = True) -> "Facets":
        """Sort counts; relations and types without a triple are left out."""
        known, kinds = (dict((+counts).most_common(NAMES)) for counts in (relations, types))
        return cls(known, kinds, complete)

    def changed(
        self, gone: Collection[Triple], come: Collection[Triple], types: Collection[str]
    ) -> "Facets":
        """Return the counts after some triples were removed and others added."""
        relations, kinds = Counter(self.relations), Counter(self.types)
        for triples, count in ((gone, Counter.subtract), (come, Counter.update)):
            count(relations, [triple.relation for triple in triples])
            count(kinds, [triple.tail for triple in triples if triple.relation in types])
        return Facets.of(relations, kinds, complete=self.complete)


class GraphSearch:
    """A stored graph at one revision, ready to be looked through; later edits are not seen.

    Args:
        path: of its file.
    """

    def __init__(self, path: Path, revision: int) -> None:
        self.path, self.revision = path, revision
        self._memory: sqlite3.Connection | None = None
        self._lock = Lock()
        self._order = "entity, place, version"

    @classmethod
    def of(cls, graph: KnowledgeGraph, *, first: Collection[str] = ()) -> "GraphSearch":
        """Copy a graph into memory; its triples are found in its order, some entities first."""
        search = cls(Path(), 0)
        search._order = "version"
        memory = search._memory = sqlite3.connect(":memory:", check_same_thread=False)
        memory.executescript(store.TABLES)
        early = ((entity, graph.triples_of(entity)) for entity in sorted(first))
        later = (item for item in graph.items() if item[0] not in first)
        rows = (
            (entity, t.head, t.relation, t.tail, not graph.is_on(t))
            for entity, triples in chain(early, later)
            for t in triples
        )
        memory.executemany(
            "INSERT INTO triple (id, entity, head, relation, tail, place, off, added) "
            "VALUES (0, ?, ?, ?, ?, 0, ?, 0)",
            rows,
        )
        store.create_indexes(memory)
        return search

    @property
    def in_memory(self) -> bool:
        """Whether it is a graph in memory."""
        return self._memory is not None

    def find(
        self,
        query: Query,
        *,
        start: int | None = None,
        most: int = 200,
        without: Collection[str] = (),
    ) -> Found:
        """Find a page of triples; the triples of the given entities are left out.

        Args:
            query: texts are compared as names are; but in tails and relations of a large graph
                only the case of Latin letters is ignored.
            start: where the page begins: ``Found.next`` of the page before.
        """
        end = time.monotonic() + SECONDS
        begin, total, order = start or 0, None, self._order
        conditions, values = self._conditions(query, without)
        by_index = query.everything or query.off or (query.folded and query.where == "head_starts")
        with self._reading() as (run, last, small):
            select = f"SELECT {_ROW} FROM triple WHERE {conditions}"
            if small or by_index:
                if small:
                    ((total,),) = run(f"SELECT count(*) FROM triple WHERE {conditions}", values)
                    order = f"entity <> :folded, NOT ({_STARTS}), {order}"
                page = f"ORDER BY {order} LIMIT :most OFFSET :begin"
                found = run(f"{select} {page}", values | {"most": most + 1, "begin": begin})
                following = begin + most if len(found) > most else None
                return _page(found[:most], following, total=total)
            found = []
            for low, high in _chunks(begin, last):
                part = "AND version > :low AND version <= :high ORDER BY version LIMIT :most"
                more = {"low": low, "high": high, "most": most + 1 - len(found)}
                found += run(f"{select} {part}", values | more)
                if len(found) > most:
                    return _page(found[:most], found[most - 1][-1])
                if time.monotonic() > end and high < last:
                    return _page(found, high, complete=False)
            return _page(found)

    def facets(self) -> Facets:
        """Count triples by relation and by type; in a large graph only in the first rows."""
        counts: dict[str, Counter[str]] = {"relation": Counter(), "tail": Counter()}
        of_type = "relation IN (SELECT value FROM json_each(:types))"
        values = {"types": json.dumps(TYPE_RELATIONS)}
        end = time.monotonic() + 3 * SECONDS
        with self._reading() as (run, last, _):
            for low, high in _chunks(0, last):
                if time.monotonic() > end:
                    return Facets.of(*counts.values(), complete=False)
                for column, which in (("relation", "true"), ("tail", of_type)):
                    rows = run(
                        f"SELECT {column}, count(*) FROM triple WHERE version > {low} "
                        f"AND version <= {high} AND {THEN} AND {which} GROUP BY {column}",
                        values,
                    )
                    counts[column].update(dict(rows))
        return Facets.of(*counts.values())

    def heads(self, start: str, most: int = 8) -> list[str]:
        """Return heads that begin with a text: of the first ones by name the shortest."""
        near = (
            f"SELECT entity, min(head) AS head FROM triple WHERE {_STARTS} AND {THEN} "
            f"GROUP BY entity ORDER BY entity LIMIT {_NEAR}"
        )
        query = f"SELECT head FROM ({near}) AS near ORDER BY length(entity), entity LIMIT :most"
        return [head for (head,) in self._rows(query, most=most, **_range(normalise_name(start)))]

    def tails(self, relation: str, start: str, most: int = 8) -> list[str]:
        """Return the most common tails of a relation ("": any) that begin with a text."""
        rows = self._rows(
            f"SELECT tail FROM triple WHERE version <= {_FIRST_ROWS} AND {THEN} "
            "AND (:relation = '' OR relation = :relation) "
            "AND instr(folded(tail), :start) = 1 "
            "GROUP BY tail ORDER BY count(*) DESC, min(version) LIMIT :most",
            relation=relation,
            start=normalise_name(start),
            most=most,
        )
        return [tail for (tail,) in rows]

    def leading_to(self, name: str, most: int = 20) -> list[Triple]:
        """Return triples whose tail is a name; in a large graph only from the first rows."""
        rows = self._rows(
            f"SELECT head, relation, tail FROM triple WHERE version <= {_FIRST_ROWS} AND {THEN} "
            "AND folded(tail) = :name LIMIT :most",
            name=normalise_name(name),
            most=most,
        )
        return [Triple(*row) for row in rows]

    @contextmanager
    def _reading(self) -> Iterator[tuple[Callable[[str, dict[str, Any]], list[tuple]], int, bool]]:
        """Yield what runs a query; the last version; and whether the graph is small.

        In a small one, every row is looked at, and compared as names are.
        """
        with ExitStack() as until_read:
            if self._memory is not None:
                until_read.enter_context(self._lock)
                database = self._memory
            else:
                until_read.enter_context(store.database_errors(self.path))
                database = until_read.enter_context(closing(store.connect(self.path)))
            database.create_function("folded", 1, _folded, deterministic=True)
            query = "SELECT coalesce(max(version), 0) FROM triple"
            last = database.execute(query).fetchone()[0]
            small = self.in_memory or last <= COUNTED

            def run(query: str, values: dict[str, Any]) -> list[tuple]:
                if not small:
                    query = query.replace("folded(", "lower(")  # only Latin letters, but fast
                return database.execute(query, values | {"then": self.revision}).fetchall()

            yield run, last, small

    def _rows(self, query: str, **values: Any) -> list[tuple]:
        with self._reading() as (run, _, _):
            return run(query, values)

    def _conditions(self, query: Query, without: Collection[str]) -> tuple[str, dict[str, Any]]:
        parts, wanted = [THEN], query.folded
        values: dict[str, Any] = {"folded": wanted, **_range(wanted)}
        if wanted:
            values["text"] = query.text.strip()
            in_head = "instr(entity, :folded) > 0"
            in_tail = "(instr(folded(tail), :folded) > 0 OR instr(tail, :text) > 0)"
            in_any = f"({in_head} OR {in_tail} OR {in_tail.replace('tail', 'relation')})"
            where = {"head": in_head, "head_starts": _STARTS, "tail": in_tail, "anywhere": in_any}
            parts.append(where[query.where])
        if query.off:
            parts.append("off")
        if query.relations:
            values["relations"] = json.dumps(query.relations)
            parts.append("relation IN (SELECT value FROM json_each(:relations))")
        if query.types:
            values |= {"types": json.dumps(query.types), "of": json.dumps(TYPE_RELATIONS)}
            parts.append(
                "EXISTS (SELECT 1 FROM triple AS own WHERE own.entity = triple.entity "
                "AND own.relation IN (SELECT value FROM json_each(:of)) "
                "AND own.tail IN (SELECT value FROM json_each(:types)) "
                "AND own.added <= :then AND (own.removed IS NULL OR own.removed > :then))"
            )
        if without:
            values["without"] = json.dumps(list(without))
            parts.append("entity NOT IN (SELECT value FROM json_each(:without))")
        return " AND ".join(parts), values


def _page(
    rows: list[tuple],
    following: int | None = None,
    *,
    total: int | None = None,
    complete: bool = True,
) -> Found:
    triples = tuple(Triple(*row[:3]) for row in rows)
    return Found(triples, tuple(not row[3] for row in rows), total, following, complete)


def _range(start: str) -> dict[str, str]:
    """Return the range of names that begin with a text."""
    return {"low_name": start, "high_name": start + "\U0010ffff"}


def _chunks(start: int, last: int) -> Iterator[tuple[int, int]]:
    while start < last:
        yield start, min(start + _CHUNK, last)
        start += _CHUNK
