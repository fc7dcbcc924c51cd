"""Looking through a graph: a page of triples at a time, and what there is to choose from.

A graph file is searched in place, a graph in memory in an SQLite database of
its own. Texts are compared as names are. In a small graph, and where few
triples are found, the entity that is called so comes first. In a large one, a
text of three characters or more is looked up in an index of trigrams (see
``database.index_texts``); without it, and for shorter texts, rows are read one
after the other, each page within a given time, and the next page goes on there.
"""

import json
import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.search import Facets, Found, Query, Where
from kbert_core.knowledge.store.database import (
    LARGE,
    ODD,
    THEN,
    connect,
    create_indexes,
    create_tables,
    database_errors,
    last_version,
    texts_are_indexed,
)
from kbert_core.knowledge.store.log import Change, changes_between
from kbert_core.knowledge.tools.check import TYPE_RELATIONS
from kbert_core.knowledge.triple import Triple

Page = tuple[list[tuple], Any, bool]  # rows, where the next page begins, whether time sufficed

SECONDS = 1.5  # for one page
NAMES = 5000  # of a facet that are kept, the commonest
_CHUNK = 50_000  # rows between two looks at the clock
_ROW = "version, entity, place, head, relation, tail, off"
_STARTS = "entity >= :low_name AND entity < :high_name"
_ESCAPE = "ESCAPE '!'"
_OF_TYPE = (
    "EXISTS (SELECT 1 FROM triple AS typed WHERE typed.entity = triple.entity "
    "AND typed.relation IN (SELECT value FROM json_each(:of)) "
    "AND typed.tail IN (SELECT value FROM json_each(:types)) "
    "AND typed.added <= :then AND (typed.removed IS NULL OR typed.removed > :then))"
)
_EDITED = (  # rows that were edited, at the place of their entity's first row
    "WITH given AS (SELECT json_extract(value, '$[0]') AS entity, json_extract(value, '$[1]') "
    "AS place, json_extract(value, '$[2]') AS head, json_extract(value, '$[3]') AS relation, "
    "json_extract(value, '$[4]') AS tail, json_extract(value, '$[5]') AS off "
    "FROM json_each(:edited)), edited AS (SELECT ifnull((SELECT min(version) FROM triple "
    "WHERE triple.entity = given.entity), 0) AS version, * FROM given) "
)


class TripleSearch:
    """Triples in an SQLite database, at one revision; see the two kinds below."""

    revision: int
    in_memory = False

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """The database; overridden by each kind."""
        raise NotImplementedError
        yield

    def find(
        self,
        query: Query,
        *,
        graph: KnowledgeGraph | None = None,
        changed: Collection[str] = (),
        start: Any = None,
        most: int = 200,
        seconds: float = SECONDS,
    ) -> Found:
        """Find a page of triples.

        Args:
            query: what is looked for.
            graph: as edited from what is searched; None: it wasn't.
            changed: the entities that were edited. In a large graph they come first.
            start: where the page begins, a ``Found.next``.
            most: of the page.
            seconds: after which the page of a large graph ends, full or not.
        """
        rows_of = _Select(query, self.revision, graph, changed)
        with self._reading() as database:
            if self.in_memory or _few(database, rows_of):
                order = "version, entity, place" if self.in_memory else "entity, place, version"
                rows, following, total = _ranked(database, rows_of, order, start or 0, most)
                return _found(rows, following, total)
            if query.everything or query.off or query.where == "head_starts":
                rows, following, complete = _by_name(database, rows_of, start, most)
            else:
                end = time.monotonic() + seconds
                rows, following, complete = _by_row(database, rows_of, start or 0, most, end)
            if start is None:
                edited = f"{_EDITED}{rows_of.edited} ORDER BY entity, place"
                rows = database.execute(edited, rows_of.values).fetchall() + rows
            whole = complete and start is following is None
            return _found(rows, following, len(rows) if whole else None, complete)

    def facets(self, *, seconds: float = 3 * SECONDS) -> Facets:
        """Count triples by relation and by type, in a large graph only of its first rows."""
        relations: Counter[str] = Counter()
        types: Counter[str] = Counter()
        values = {"then": self.revision, "types": json.dumps(list(TYPE_RELATIONS))}
        complete = True
        with self._reading() as database:
            end = time.monotonic() + seconds
            for low, high in _chunks(0, last_version(database)):
                if time.monotonic() > end:
                    complete = False
                    break
                where = f"version > {low} AND version <= {high} AND {THEN}"
                query = f"SELECT relation, count(*) FROM triple WHERE {where} GROUP BY relation"
                relations.update(dict(database.execute(query, values).fetchall()))
                query = (
                    f"SELECT tail, count(*) FROM triple WHERE {where} AND relation IN "
                    "(SELECT value FROM json_each(:types)) GROUP BY tail"
                )
                types.update(dict(database.execute(query, values).fetchall()))
        kept = (Counter(dict(counts.most_common(NAMES))) for counts in (relations, types))
        return Facets.of(*kept, complete=complete)

    def heads(self, start: str, most: int = 8) -> list[str]:
        """Return heads that begin with a text, the shortest first; of a large graph, by name."""
        with self._reading() as database:
            small = self.in_memory or last_version(database) <= LARGE
            rows = database.execute(
                f"SELECT min(head) FROM triple WHERE {_STARTS} AND {THEN} GROUP BY entity "
                f"ORDER BY {'length(entity), ' if small else ''}entity LIMIT :most",
                {"then": self.revision, "most": most, **_range(normalise_name(start))},
            ).fetchall()
        return [head for (head,) in rows]

    def tails(self, relation: str, start: str, most: int = 8) -> list[str]:
        """Return the commonest tails of a relation, "": of any, that begin with a text.

        In a large graph only the first rows are looked at.
        """
        folded = normalise_name(start)
        with self._reading() as database:
            rows = database.execute(
                f"SELECT tail FROM triple WHERE version <= {4 * _CHUNK} AND {THEN} "
                "AND (:relation = '' OR relation = :relation) "
                f"AND (tail LIKE :like {_ESCAPE} OR {ODD.format('tail')} "
                "AND substr(folded(tail), 1, :length) = :start) "
                "GROUP BY tail ORDER BY count(*) DESC, min(version) LIMIT :most",
                {
                    "then": self.revision,
                    "relation": relation,
                    "like": f"{_escaped(folded)}%",
                    "start": folded,
                    "length": len(folded),
                    "most": most,
                },
            ).fetchall()
        return [tail for (tail,) in rows]

    def tailed(self, name: str, most: int = 20) -> list[Triple]:
        """Return triples whose tail is a name, in a large graph those that are found at once."""
        return list(self.find(Query(name, "tail_is"), most=most, seconds=0).triples)


@dataclass(frozen=True)
class GraphSearch(TripleSearch):
    """A graph file at one revision.

    Attributes:
        path: of the file.
        revision: of which the triples are; later edits are not seen.
    """

    path: Path
    revision: int

    def changes_since(self, revision: int) -> list[Change]:
        """Return how each triple differs from an earlier revision; what came back doesn't."""
        with self._reading() as database:
            return changes_between(database, revision, self.revision)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with database_errors(self.path), closing(connect(self.path)) as database:
            yield database


class MemorySearch(TripleSearch):
    """The triples of a graph in memory, made ready for searching; in its order.

    Args:
        graph: read through once.
    """

    revision = 1
    in_memory = True

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._lock = threading.Lock()
        self._facets: Facets | None = None
        self._database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        create_tables(self._database)
        rows = (
            (entity, t.head, t.relation, t.tail, place, not graph.is_on(t))
            for entity, triples in graph.items()
            for place, t in enumerate(triples)
        )
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT INTO triple (id, entity, head, relation, tail, place, off, added) "
            "VALUES (0, ?, ?, ?, ?, ?, ?, 1)",
            rows,
        )
        self._database.execute("COMMIT")
        create_indexes(self._database)
        self._count = last_version(self._database)

    def __len__(self) -> int:
        return self._count

    def facets(self, *, seconds: float = float("inf")) -> Facets:
        """Count triples by relation and by type, once."""
        if self._facets is None:
            self._facets = super().facets(seconds=seconds)
        return self._facets

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            yield self._database


class _Select:
    """The parts of the statements that find a query's rows, and their values.

    Attributes:
        stored: finds them among what is stored.
        edited: finds them among what was edited; goes after :data:`_EDITED`.
        has_edits: whether there are any rows of the latter.
        trigrams: of the text, for the index of them; "": it has none.
    """

    def __init__(
        self,
        query: Query,
        revision: int,
        graph: KnowledgeGraph | None,
        changed: Collection[str],
    ) -> None:
        folded = query.folded
        conditions = []
        self.values: dict[str, Any] = {"then": revision, "folded": folded, **_range(folded)}
        if folded:
            self.values |= {"like": f"%{_escaped(folded)}%", "exact": _escaped(folded)}
            conditions.append(_standing(folded)[query.where])
        if query.off:
            conditions.append("off")
        if query.relations:
            self.values["relations"] = json.dumps(query.relations)
            conditions.append("relation IN (SELECT value FROM json_each(:relations))")
        rows = list(_edited_rows(query, graph, changed)) if graph is not None else []
        self.has_edits = bool(rows)
        self.values |= {"edited": json.dumps(rows), "changed": json.dumps(list(changed))}
        self.edited = f"SELECT {_ROW} FROM edited WHERE {' AND '.join(conditions or ['true'])}"
        if query.types:
            self.values |= {"types": json.dumps(query.types), "of": json.dumps([*TYPE_RELATIONS])}
            conditions.append(_OF_TYPE)
        if changed:
            conditions.append("entity NOT IN (SELECT value FROM json_each(:changed))")
        self.key = "version"
        self._source = "triple"
        self._where = " AND ".join([THEN, *conditions])
        trigrams = dict.fromkeys(folded[i : i + 3] for i in range(len(folded) - 2))
        quoted = ('"' + trigram.replace('"', '""') + '"' for trigram in trigrams)
        self.trigrams = "" if query.where == "head_starts" else " AND ".join(quoted)

    @property
    def stored(self) -> str:
        return f"SELECT {_ROW} FROM {self._source} WHERE {self._where}"

    def use_trigrams(self) -> None:
        """Look the text up in the index of trigrams first."""
        self.values["trigrams"] = self.trigrams
        self.key = "triple_text.rowid"
        self._source = "triple_text CROSS JOIN triple ON version = triple_text.rowid"
        self._where = f"triple_text MATCH :trigrams AND {self._where}"


def _standing(folded: str) -> dict[Where, str]:
    """The condition that a text stands in a field, by field."""
    if re.fullmatch("[一-龥]+", folded):  # nothing folds to it but itself
        like, exact = "instr({0}, :folded)", "tail = :folded"
    else:
        like = f"({{0}} LIKE :like {_ESCAPE} OR {ODD} AND instr(folded({{0}}), :folded))"
        exact = f"(tail LIKE :exact {_ESCAPE} OR {ODD.format('tail')} AND folded(tail) = :folded)"
    head, tail = "instr(entity, :folded)", like.format("tail")
    return {
        "head": head,
        "head_starts": _STARTS,
        "tail": tail,
        "tail_is": exact,
        "anywhere": f"({head} OR {tail} OR {like.format('relation')})",
    }


def _edited_rows(
    query: Query, graph: KnowledgeGraph, changed: Collection[str]
) -> Iterator[tuple[str, int, str, str, str, bool]]:
    """The triples of edited entities that are of the types looked for."""
    for entity in changed:
        triples = graph.triples_of(entity)
        types = {t.tail for t in triples if t.relation in TYPE_RELATIONS}
        if not query.types or types & set(query.types):
            for place, t in enumerate(triples):
                yield entity, place, t.head, t.relation, t.tail, not graph.is_on(t)


def _few(database: sqlite3.Connection, select: _Select) -> bool:
    """Whether a graph is small, or the index of trigrams leaves few rows of it."""
    if last_version(database) <= LARGE:
        return True
    if not select.trigrams or not texts_are_indexed(database):
        return False
    select.use_trigrams()
    query = "SELECT rowid FROM triple_text WHERE triple_text MATCH :trigrams LIMIT :large"
    query = f"SELECT count(*) FROM ({query})"
    return database.execute(query, select.values | {"large": LARGE}).fetchone()[0] < LARGE


def _ranked(
    database: sqlite3.Connection, select: _Select, order: str, begin: int, most: int
) -> tuple[list[tuple], Any, int]:
    """All rows, the entity of that name first, then those that begin so; and how many there are."""
    rows_of, values = select.stored, select.values | {"most": most + 1, "begin": begin}
    if select.has_edits:
        rows_of = f"SELECT * FROM ({rows_of} UNION ALL {select.edited})"
    if values["folded"]:
        order = f"entity <> :folded, NOT ({_STARTS}), {order}"
    rows = database.execute(
        f"{_EDITED}{rows_of} ORDER BY {order} LIMIT :most OFFSET :begin", values
    ).fetchall()
    if len(rows) <= most:
        return rows, None, begin + len(rows)
    total = database.execute(f"{_EDITED}SELECT count(*) FROM ({rows_of})", values).fetchone()[0]
    return rows[:most], begin + most, total


def _by_name(database: sqlite3.Connection, select: _Select, start: Any, most: int) -> Page:
    """In the order of an index: nothing has to be passed over."""
    values = select.values | {"most": most + 1}
    after = ""
    if start is not None:
        after = "AND (entity, place, version) > (:entity, :place, :version)"
        values |= dict(zip(("entity", "place", "version"), start, strict=True))
    rows = database.execute(
        f"{select.stored} {after} ORDER BY entity, place, version LIMIT :most", values
    ).fetchall()
    last = rows[most - 1] if len(rows) > most else None
    return rows[:most], (last[1], last[2], last[0]) if last else None, True


def _by_row(
    database: sqlite3.Connection, select: _Select, start: int, most: int, end: float
) -> Page:
    """In the order of the file, until the time is over."""
    rows: list[tuple] = []
    last = last_version(database)
    for low, high in _chunks(start, last):
        rows += database.execute(
            f"{select.stored} AND {select.key} > :low AND {select.key} <= :high "
            f"ORDER BY {select.key} LIMIT :most",
            select.values | {"low": low, "high": high, "most": most + 1 - len(rows)},
        ).fetchall()
        if len(rows) > most:
            return rows[:most], rows[most - 1][0], True
        if time.monotonic() > end and high < last:
            return rows, high, False
    return rows, None, True


def _found(rows: list[tuple], following: Any, total: int | None, complete: bool = True) -> Found:
    triples = tuple(Triple(*row[3:6]) for row in rows)
    return Found(triples, tuple(not row[6] for row in rows), total, following, complete)


def _escaped(text: str) -> str:
    """A text as a pattern of LIKE."""
    return "".join(f"!{c}" if c in "!%_" else c for c in text)


def _range(start: str) -> dict[str, str]:
    """The names that begin with a text."""
    return {"low_name": start, "high_name": start + "\U0010ffff"}


def _chunks(start: int, last: int) -> Iterator[tuple[int, int]]:
    while start < last:
        yield start, min(start + _CHUNK, last)
        start += _CHUNK
