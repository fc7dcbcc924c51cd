"""The log of a graph file: its entries, and what each did."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a graph's log.

    Attributes:
        revision: its number; the graph's revision after it.
        at: when, UTC, ISO 8601.
        who: as the one who edited called themselves; may be empty.
        action: "add", "remove", "replace", "switch_off", "switch_on", "edits"
            for several together, "import", "undo".
        edits: how many triples it touched.
        undoes: the revision it took back; None: it is no undo.
        undone: whether a later entry took it back.
    """

    revision: int
    at: str
    who: str
    action: str
    edits: int
    undoes: int | None = None
    undone: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What an entry did to one triple; None: it was not there before, or after.

    Attributes:
        id: of the triple, which stays when its fields are edited.
        before, after: the triple.
        was_on, is_on: whether it was, and is, injected.
    """

    id: int
    before: Triple | None
    after: Triple | None
    was_on: bool = True
    is_on: bool = True


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a triple comes from.

    Attributes:
        file, line: of the file it was imported from; None: it was edited.
        revision: the entry of the log that made it what it is.
    """

    file: str | None
    line: int | None
    revision: int


def entries(
    database: sqlite3.Connection, *, entity: str | None = None, most: int | None = None
) -> list[Entry]:
    """Return the log, the latest entry first; see ``GraphStore.history``."""
    query = "SELECT revision, at, who, action, edits, undoes FROM entry "
    values: tuple[str, ...] = ()
    if entity is not None:
        values = (normalise_name(entity),) * 3
        query += (
            "WHERE revision IN (SELECT revision FROM touched WHERE entity = ? "
            "UNION SELECT added FROM triple WHERE entity = ? "
            "UNION SELECT removed FROM triple WHERE entity = ?) "
        )
    limit = -1 if most is None else most
    taken_back = undone(database)
    rows = database.execute(f"{query} ORDER BY revision DESC LIMIT ?", (*values, limit)).fetchall()
    return [
        Entry(revision, at, who, action, edits, undoes, revision in taken_back)
        for revision, at, who, action, edits, undoes in rows
    ]


def changes(
    database: sqlite3.Connection, revision: int, *, entity: str | None, most: int
) -> list[Change]:
    """Return what an entry did, triple by triple; see ``GraphStore.changes``."""
    where = "(added = :r OR removed = :r) AND added IS NOT removed"
    if entity is not None:
        where += " AND entity = :entity"
    elif not is_bulk(database, revision):
        where += " AND entity IN (SELECT entity FROM touched WHERE revision = :r)"
    values = {"r": revision, "most": 2 * most, "entity": normalise_name(entity or "")}
    rows = database.execute(
        f"SELECT id, head, relation, tail, off, removed IS :r AS gone FROM triple "
        f"WHERE {where} ORDER BY version LIMIT :most",
        values,
    ).fetchall()
    return changes_of([(*row, not row[5]) for row in rows])[:most]


def changes_of(rows: Iterable[Sequence[Any]]) -> list[Change]:
    """Join what stood before and what stands after, by triple.

    Args:
        rows: id, head, relation, tail, whether it is off, whether it stood
            before, whether it stands after.
    """
    rows = list(rows)
    before = {row[0]: row for row in rows if row[5]}
    after = {row[0]: row for row in rows if row[6]}
    found = []
    for id_ in dict.fromkeys(row[0] for row in rows):
        old, new = before.get(id_), after.get(id_)
        found.append(
            Change(
                id_,
                Triple(*old[1:4]) if old else None,
                Triple(*new[1:4]) if new else None,
                not (old and old[4]),
                not (new and new[4]),
            )
        )
    return found


def origin(database: sqlite3.Connection, triple: Triple) -> Origin | None:
    """Say where a triple comes from; None: it isn't there."""
    found = database.execute(
        "SELECT source.name, line, added FROM triple LEFT JOIN source "
        "ON source.id = source WHERE entity = ? AND head = ? AND relation = ? "
        "AND tail = ? AND removed IS NULL",
        (normalise_name(triple.head), triple.head, triple.relation, triple.tail),
    ).fetchone()
    return Origin(*found) if found else None


def origins(database: sqlite3.Connection, entity: str) -> dict[Triple, Origin]:
    """Say where every triple of an entity comes from."""
    found = database.execute(
        "SELECT head, relation, tail, source.name, line, added FROM triple LEFT JOIN source "
        "ON source.id = source WHERE entity = ? AND removed IS NULL",
        (normalise_name(entity),),
    )
    return {Triple(*row[:3]): Origin(*row[3:]) for row in found}


def undone(database: sqlite3.Connection) -> set[int]:
    """Every revision that an entry took back which is not taken back itself."""
    taken_back: set[int] = set()
    for revision, undoes in database.execute(
        "SELECT revision, undoes FROM entry WHERE undoes IS NOT NULL ORDER BY revision DESC"
    ):
        if revision not in taken_back:
            taken_back.add(undoes)
    return taken_back


def undos(database: sqlite3.Connection) -> set[int]:
    """Every revision that took another back."""
    rows = database.execute("SELECT revision FROM entry WHERE undoes IS NOT NULL")
    return {revision for (revision,) in rows}


def is_bulk(database: sqlite3.Connection, revision: int) -> bool:
    """Whether an entry is an import, or the undo of one: many triples at once."""
    action, undoes = "", revision
    while undoes is not None:
        row = database.execute(
            "SELECT action, undoes FROM entry WHERE revision = ?", (undoes,)
        ).fetchone()
        if row is None:
            return False
        action, undoes = row
    return action == "import"


def write_entry(
    database: sqlite3.Connection,
    revision: int,
    action: str,
    edits: int,
    who: str,
    *,
    undoes: int | None = None,
) -> Entry:
    """Write a new entry; the caller commits."""
    entry = Entry(revision, now_in_words(), who, action, edits, undoes)
    database.execute(
        "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)",
        (revision, entry.at, who, action, edits, undoes),
    )
    return entry


def touch(database: sqlite3.Connection, revision: int, entities: Iterable[str]) -> None:
    """Write down which entities an entry edits."""
    database.executemany(
        "INSERT INTO touched VALUES (?, ?)", [(revision, entity) for entity in entities]
    )


def touched(database: sqlite3.Connection, revision: int) -> list[str]:
    """Return the entities that an entry edited; none for an import."""
    rows = database.execute("SELECT entity FROM touched WHERE revision = ?", (revision,))
    return [entity for (entity,) in rows]


def now_in_words() -> str:
    """The time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
