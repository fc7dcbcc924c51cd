"""Looking through a graph file of any size: a page at a time, each within a given time.

What an index answers comes in the order of the names: everything, and heads
that begin with a text. What has to be looked for row by row comes in the
order of the file, and goes on where the time was over; in a small graph the
entity that is called so comes first.
"""

import json
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.search import Facets, Found, Query
from kbert_core.knowledge.store.database import THEN, connect, database_errors
from kbert_core.knowledge.store.log import Change, changes_between
from kbert_core.knowledge.tools.check import TYPE_RELATIONS
from kbert_core.knowledge.triple import Triple

SECONDS = 1.5  # for one page
COUNTED = 50_000  # rows of a graph in which all that is found is counted
NAMES = 5000  # of a facet that are kept, the commonest
_CHUNK = 50_000  # rows between two looks at the clock
_ROW = "version, entity, place, head, relation, tail, off"


@dataclass(frozen=True)
class GraphSearch:
    """A graph file at one revision.

    Attributes:
        path: of the file.
        revision: of which the triples are; later edits are not seen.
    """

    path: Path
    revision: int

    def find(
        self,
        query: Query,
        *,
        start: Any = None,
        most: int = 200,
        without: Collection[str] = (),
        seconds: float = SECONDS,
    ) -> Found:
        """Find a page of triples.

        Args:
            query: what is looked for; its text in tails and relations in any
                case of Latin letters, in heads as names are compared.
            start: where the page begins, a ``Found.next``.
            most: of the page.
            without: entities to leave out.
            seconds: after which the page ends, full or not.
        """
        with self._reading() as database:
            end = time.monotonic() + seconds
            conditions, values = self._conditions(query, without)
            small = _last_version(database) <= COUNTED
            if query.everything or query.off or (query.folded and query.where == "head_starts"):
                found = self._by_name(database, conditions, values, start, most)
            elif small:
                found = self._by_likeness(database, conditions, values, start, most)
            else:
                found = self._by_row(database, conditions, values, start, most, end)
            total = None
            if small:
                total = database.execute(
                    f"SELECT count(*) FROM triple WHERE {conditions}", values
                ).fetchone()[0]
        rows, following, complete = found
        return Found(
            tuple(Triple(*row[3:6]) for row in rows),
            tuple(not row[6] for row in rows),
            total,
            following,
            complete,
        )

    def facets(
        self, *, type_relations: Collection[str] = TYPE_RELATIONS, seconds: float = 3 * SECONDS
    ) -> Facets:
        """Count triples by relation and by type, in a large graph only of its first rows."""
        relations: Counter[str] = Counter()
        types: Counter[str] = Counter()
        values = {"then": self.revision, "types": json.dumps(list(type_relations))}
        complete = True
        with self._reading() as database:
            end = time.monotonic() + seconds
            for low, high in _chunks(0, _last_version(database)):
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
        """Return heads that begin with a text, by name."""
        folded = normalise_name(start)
        with self._reading() as database:
            rows = database.execute(
                f"SELECT min(head) FROM triple WHERE {_STARTS} AND {THEN} "
                "GROUP BY entity ORDER BY entity LIMIT :most",
                {"then": self.revision, "most": most, **_range(folded)},
            ).fetchall()
        return [head for (head,) in rows]

    def tails(self, relation: str, start: str, most: int = 8) -> list[str]:
        """Return the commonest tails of a relation that begin with a text, in the first rows."""
        with self._reading() as database:
            rows = database.execute(
                f"SELECT tail FROM triple WHERE version <= {4 * _CHUNK} AND {THEN} "
                "AND (:relation = '' OR relation = :relation) "
                "AND lower(substr(tail, 1, :length)) = lower(:start) "
                "GROUP BY tail ORDER BY count(*) DESC LIMIT :most",
                {
                    "then": self.revision,
                    "relation": relation,
                    "start": start,
                    "length": len(start),
                    "most": most,
                },
            ).fetchall()
        return [tail for (tail,) in rows]

    def changes_since(self, revision: int) -> list[Change]:
        """Return how each triple differs from an earlier revision; what came back doesn't."""
        with self._reading() as database:
            return changes_between(database, revision, self.revision)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with database_errors(self.path), closing(connect(self.path)) as database:
            yield database

    def _conditions(self, query: Query, without: Collection[str]) -> tuple[str, dict[str, Any]]:
        parts = [THEN]
        values: dict[str, Any] = {"then": self.revision}
        folded = query.folded
        if folded:
            values |= {"folded": folded, "text": _pattern(query.text.strip()), **_range(folded)}
            in_tail = f"(tail LIKE :text {_ESCAPE} OR instr(tail, :folded))"
            in_head = "instr(entity, :folded)"
            in_any = f"({in_head} OR {in_tail} OR relation LIKE :text {_ESCAPE})"
            parts.append(
                {"head": in_head, "head_starts": _STARTS, "tail": in_tail, "anywhere": in_any}[
                    query.where
                ]
            )
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

    def _by_name(
        self,
        database: Connection,
        conditions: str,
        values: dict[str, Any],
        start: Any,
        most: int,
    ) -> tuple[list[tuple], Any, bool]:
        if start is not None:
            conditions += " AND (entity, place, version) > (:entity, :place, :version)"
            values |= dict(zip(("entity", "place", "version"), start, strict=True))
        rows = database.execute(
            f"SELECT {_ROW} FROM triple WHERE {conditions} "
            "ORDER BY entity, place, version LIMIT :most",
            values | {"most": most + 1},
        ).fetchall()
        last = rows[most - 1] if len(rows) > most else None
        return rows[:most], (last[1], last[2], last[0]) if last else None, True

    def _by_likeness(
        self,
        database: Connection,
        conditions: str,
        values: dict[str, Any],
        start: Any,
        most: int,
    ) -> tuple[list[tuple], Any, bool]:
        """In a small graph: first the entity of that name, then those that begin so."""
        begin = start or 0
        given = {"folded": "", **_range("")} | values
        rows = database.execute(
            f"SELECT {_ROW} FROM triple WHERE {conditions} ORDER BY entity <> :folded, "
            f"NOT ({_STARTS}), entity, place, version LIMIT :most OFFSET :begin",
            given | {"most": most + 1, "begin": begin},
        ).fetchall()
        return rows[:most], begin + most if len(rows) > most else None, True

    def _by_row(
        self,
        database: Connection,
        conditions: str,
        values: dict[str, Any],
        start: Any,
        most: int,
        end: float,
    ) -> tuple[list[tuple], Any, bool]:
        rows: list[tuple] = []
        for low, high in _chunks(start or 0, _last_version(database)):
            rows += database.execute(
                f"SELECT {_ROW} FROM triple WHERE version > :low AND version <= :high "
                f"AND {conditions} ORDER BY version LIMIT :most",
                values | {"low": low, "high": high, "most": most + 1 - len(rows)},
            ).fetchall()
            if len(rows) > most:
                return rows[:most], rows[most - 1][0], True
            if time.monotonic() > end and high < _last_version(database):
                return rows, high, False
        return rows, None, True


_STARTS = "entity >= :low_name AND entity < :high_name"


_ESCAPE = "ESCAPE '!'"


def _pattern(text: str) -> str:
    """What LIKE finds wherever a text stands."""
    return "%" + "".join(f"!{c}" if c in "!%_" else c for c in text) + "%"


def _range(start: str) -> dict[str, str]:
    """The names that begin with a text."""
    return {"low_name": start, "high_name": start + "\U0010ffff"}


def _last_version(database: Connection) -> int:
    return database.execute("SELECT ifnull(max(version), 0) FROM triple").fetchone()[0]


def _chunks(start: int, last: int) -> Iterator[tuple[int, int]]:
    while start < last:
        yield start, min(start + _CHUNK, last)
        start += _CHUNK
