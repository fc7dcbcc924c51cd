"""The log of a graph file: edits written as new versions of triples, what each entry did, undo.

An edit ends versions of triples and begins others; what a version holds never changes. Every row
of a graph belongs to an entry: an edit names the entities that it touched, and all their rows are
its own; an import, and what undoes one, names none, and has the rows that it began or ended. So a
copy, or a server, gets what it doesn't have yet.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any

from kbert_core.errors import GraphConflict, GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_lab.graphs.store import checked, triple_of

ALL = 1 << 62  # rows or revisions: no database has as many
STEP = 20_000  # triples between two calls of a ``Progress``
COLUMNS = {
    "fact": "name, value",
    "source": "id, name, revision",
    "entry": "revision, at, who, action, edits, undoes",
    "touched": "revision, entity",
    "triple": "version, id, entity, head, relation, tail, place, off, source, line, added, removed",
}
Progress = Callable[[int], None]  # called now and then with the number of triples
Read = Callable[[str], Iterable[Any]]  # runs a query
Tables = Iterable[tuple[str, Iterable[Any]]]  # each with rows of ``COLUMNS``
_KEPT = ("id", "place", "off", "source", "line")  # of a version, by the one after it
_COPIED = "id, entity, head, relation, tail, place, off, source, line"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a graph's log."""

    revision: int  # its number; the graph's revision after it
    at: str  # UTC, ISO 8601
    who: str  # as the one who edited called themselves; may be empty
    action: str  # of an edit, or "edits" for several together, "import", "undo"
    edits: int  # how many triples it touched
    undoes: int | None = None  # the revision it took back
    undone: bool = False  # whether a later entry took it back


@dataclass(frozen=True, slots=True)
class Change:
    """What an entry did to one triple; None: it was not there before, or after."""

    id: int  # of the triple, which stays when its fields are edited
    before: Triple | None
    after: Triple | None
    was_on: bool = True  # whether it was, and is, injected
    is_on: bool = True


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a triple comes from."""

    file: str | None  # that it was imported from; None: it was edited
    line: int | None
    revision: int  # the entry of the log that made it what it is


# What is in the log


def entries(
    database: sqlite3.Connection, *, entity: str | None = None, most: int | None = None
) -> list[Entry]:
    """See ``GraphStore.history``."""
    query = "SELECT revision, at, who, action, edits, undoes FROM entry "
    values: tuple[str, ...] = ()
    if entity is not None:
        values = (normalise_name(entity),) * 3
        query += (
            "WHERE revision IN (SELECT revision FROM touched WHERE entity = ? "
            "UNION SELECT added FROM triple WHERE entity = ? "
            "UNION SELECT removed FROM triple WHERE entity = ?) "
        )
    query += "ORDER BY revision DESC LIMIT ?"
    rows = database.execute(query, (*values, ALL if most is None else most)).fetchall()
    for row in rows:
        checked(row, int, str, str, str, int, int | None)
    undone: set[int] = set()  # what an entry took back which is not taken back itself
    for revision, undoes in database.execute(
        "SELECT revision, undoes FROM entry WHERE undoes IS NOT NULL ORDER BY revision DESC"
    ):
        if revision not in undone:
            undone.add(undoes)
    return [replace(Entry(*row), undone=row[0] in undone) for row in rows]


def changes(
    database: sqlite3.Connection,
    since: int,
    then: int,
    *,
    entity: str | None = None,
    most: int = ALL // 2,
) -> list[Change]:
    """Say what the entries after one revision and up to another did; see ``GraphStore.changes``."""
    values = {
        "since": since,
        "then": then,
        "entity": normalise_name(entity or ""),
        "most": 2 * most,
    }
    scope = ""
    if entity is not None:
        scope = "AND entity = :entity"
    elif not has_bulk(database.execute, since, then):
        between = "revision > :since AND revision <= :then"
        scope = f"AND entity IN (SELECT entity FROM touched WHERE {between})"
    order = "version" if then == since + 1 else "entity, place, version"
    changes: dict[int, Change] = {}
    for id_, head, relation, tail, off, before, after in database.execute(
        "SELECT id, head, relation, tail, off, added <= :since, "
        "removed IS NULL OR removed > :then FROM triple WHERE added <> coalesce(removed, -1) "
        "AND added <= :then AND (removed IS NULL OR removed > :since) "
        f"AND (added > :since OR removed <= :then) {scope} ORDER BY {order} LIMIT :most",
        values,
    ):
        triple = triple_of((head, relation, tail))
        change = changes.get(id_, Change(id_, None, None))
        change = replace(change, before=triple, was_on=not off) if before else change
        changes[id_] = replace(change, after=triple, is_on=not off) if after else change
    return list(changes.values())[:most]


def effective(changes: Iterable[Change]) -> list[Change]:
    """Leave out what was taken out and put in again, whatever its number."""
    kept = [c for c in changes if (c.before, c.was_on) != (c.after, c.is_on)]
    removed = {c.before: c for c in kept if c.before is not None and c.after is None}
    added = {c.after: c for c in kept if c.after is not None and c.before is None}
    again = removed.keys() & added.keys()
    left = [c for c in kept if not {c.before, c.after} & again]
    for triple in again:
        was_on, is_on = removed[triple].was_on, added[triple].is_on
        if was_on != is_on:
            left.append(Change(added[triple].id, triple, triple, was_on, is_on))
    return left


def last_undo(log: Sequence[Entry]) -> int | None:
    """The last undo that isn't undone, if nothing else was edited since; None: there is none.

    Args:
        log: the latest entry first.
    """
    undoes = {entry.revision: entry.undoes for entry in log}
    for entry in log:
        if entry.undoes is None:
            return None
        if not entry.undone and undoes.get(entry.undoes) is None:
            return entry.revision
    return None


# Writing


def write_entry(database: sqlite3.Connection, entry: Entry, entities: Iterable[str] = ()) -> None:
    """Write a new entry, and which entities it edits; the caller commits."""
    database.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)", astuple(entry)[:6])
    rows = [(entry.revision, entity) for entity in entities]
    database.executemany("INSERT INTO touched VALUES (?, ?)", rows)


_IT = "entity = :entity AND head = :head AND relation = :relation AND tail = :tail"


def refuse_conflict(database: sqlite3.Connection, seen: int, triples: Iterable[Triple]) -> None:
    """Raise a ``GraphConflict`` where a triple was changed after a revision."""
    for triple in triples:
        row = database.execute(
            "SELECT revision, who FROM entry WHERE revision = ("
            "SELECT max(CASE WHEN removed > added THEN removed ELSE added END) "
            f"FROM triple WHERE {_IT} AND (added > :seen OR removed > :seen))",
            {"seen": seen, **_fields(triple)},
        ).fetchone()
        if row:
            who = f" by {row[1]}" if row[1] else ""
            raise GraphConflict(
                f"The triple {triple} was edited{who} meanwhile (entry {row[0]}), so nothing was "
                "changed. Look at it as it is now, and edit again."
            )


def write_edit(database: sqlite3.Connection, edit: Edit, revision: int) -> None:
    """Write one edit that is known to fit: a version ends, or another begins, or both."""
    values: dict[str, Any] = dict.fromkeys(_KEPT, None) | {"off": False, "new": revision}
    values |= _fields(edit.triple)
    if edit.action != "add":
        database.execute(
            f"UPDATE triple SET removed = :new WHERE {_IT} AND removed IS NULL", values
        )
        ended = f"SELECT {', '.join(_KEPT)} FROM triple WHERE {_IT} AND removed = :new"
        row = database.execute(f"{ended} ORDER BY version DESC LIMIT 1", values).fetchone()
        values |= zip(_KEPT, row, strict=True)
    if edit.action == "remove":
        return
    if edit.action == "add" and edit.index is not None:
        values["place"] = _place(database, values["entity"], edit.index)
    elif edit.new is not None:
        if normalise_name(edit.new.head) != values["entity"]:
            values["place"] = None
        values |= _fields(edit.new) | {"source": None, "line": None}
    else:
        values["off"] = edit.action == "switch_off"
    database.execute(
        f"INSERT INTO triple ({_COPIED}, added) SELECT "
        "coalesce(:id, (SELECT coalesce(max(version), 0) + 1 FROM triple)), :entity, :head, "
        ":relation, :tail, coalesce(:place, (SELECT max(place) + 1.0 FROM triple "
        "WHERE entity = :entity AND removed IS NULL), 0.0), :off, :source, :line, :new",
        values,
    )


def _fields(triple: Triple) -> dict[str, str]:
    return {"entity": normalise_name(triple.head), **asdict(triple)}


def _place(database: sqlite3.Connection, entity: str, index: int) -> float:
    """A place before what stands at an index now, or after all."""
    rows = database.execute(
        "SELECT place FROM triple WHERE entity = ? AND removed IS NULL ORDER BY place, version",
        (entity,),
    )
    places = [checked(row, float)[0] for row in rows] or [0.0]
    low, high = [places[0] - 2.0, *places, places[-1] + 2.0][index : index + 2]
    if low < (middle := (low + high) / 2) < high:
        return middle
    rows = database.execute(  # no number between the two: number all anew
        "SELECT version FROM triple WHERE entity = ? ORDER BY place, version", (entity,)
    )
    places_anew = [(float(number), version) for number, (version,) in enumerate(rows)]
    database.executemany("UPDATE triple SET place = ? WHERE version = ?", places_anew)
    return _place(database, entity, index)


_OF_TOUCHED = "AND entity IN (SELECT entity FROM touched WHERE revision = :old)"
_IDS = "(SELECT id FROM triple WHERE {versions})"
_SAME = "live.head = was.head AND live.relation = was.relation AND live.tail = was.tail"
_LIVE = "SELECT 1 FROM triple AS live WHERE removed IS NULL AND id = was.id AND version <> id"
_EDITED_LATER = f"""
    SELECT head, relation, tail,
        (SELECT max(CASE WHEN removed > added THEN removed ELSE added END) FROM triple AS other
         WHERE entity = was.entity AND id = was.id)
    FROM triple AS was WHERE {{versions}} AND (
        added = :old AND removed IS NOT NULL
            AND NOT EXISTS ({_LIVE} AND {_SAME} AND live.off = was.off)
        OR removed = :old AND EXISTS ({_LIVE})
            AND NOT EXISTS (SELECT 1 FROM triple WHERE id = was.id AND version <> id
                            AND added = :old AND added <> coalesce(removed, -1))
    ) LIMIT 1"""
_THERE_AGAIN = f"""
    SELECT was.head, was.relation, was.tail, live.added
    FROM (SELECT * FROM triple WHERE {{versions}} AND removed = :old) AS was
    JOIN triple AS live ON live.entity = was.entity AND {_SAME}
    WHERE live.removed IS NULL AND live.id NOT IN {_IDS} LIMIT 1"""


def undo_entry(database: sqlite3.Connection, path: Path, old: int, new: int) -> None:
    """End the versions of triples that an entry began, and begin those again that it ended.

    The caller commits; ``old`` is the entry's revision, ``new`` the undo's.

    Raises:
        GraphConflict: a later entry changed one of the triples.
    """
    values = {"old": old, "new": new}
    # Of an import, or the undo of one, the log doesn't name the entities.
    touched = database.execute("SELECT 1 FROM touched WHERE revision = ?", (old,)).fetchone()
    scope = _OF_TOUCHED if touched else ""
    versions = f"added <> coalesce(removed, -1) AND (added = :old OR removed = :old) {scope}"
    for later in (_EDITED_LATER, _THERE_AGAIN):
        row = database.execute(later.format(versions=versions), values).fetchone()
        if row is not None:
            checked(row, str, str, str, int)
            remedy = f"Undo entry {row[3]} first" if row[3] > old else "Undo what came later first"
            raise GraphConflict(
                f"{path}: entry {old} can't be undone, the triple {Triple(*row[:3])} was "
                f"edited after it. {remedy}, or edit the triple itself."
            )
    ids = _IDS.format(versions=versions)
    database.execute(
        "UPDATE triple SET removed = :new WHERE removed IS NULL "
        f"AND (version IN {ids} OR version <> id AND id IN {ids})",
        values,
    )
    database.execute(
        f"INSERT INTO triple ({_COPIED}, added) SELECT {_COPIED}, :new FROM triple "
        f"WHERE removed = :old AND added < removed {scope}",
        values,
    )


# What one database has and another doesn't have yet


def has_bulk(read: Read, since: int, then: int = ALL) -> bool:
    """Whether an entry after one revision, and up to another, names no entities."""
    bulk = read(
        f"SELECT 1 FROM entry WHERE revision > {since} AND revision <= {then} AND NOT EXISTS "
        "(SELECT 1 FROM touched WHERE touched.revision = entry.revision) LIMIT 1"
    )
    return bool([*bulk])


def rows_since(
    read: Read, since: int, *, bulk: bool = True, progress: Progress = lambda rows: None
) -> Tables:
    """Yield every table with its rows that came, or were changed, after a revision; -1: all.

    Args:
        bulk: see :func:`has_bulk`.
    """
    of_triple = f"entity IN (SELECT entity FROM touched WHERE revision > {since})"
    where = dict.fromkeys(COLUMNS, f"revision > {since}") | {
        "fact": "name = 'aliases'",
        "triple": f"added > {since} OR removed > {since}" if bulk else of_triple,
    }
    for table, columns in COLUMNS.items():
        rows = read(f"SELECT {columns} FROM {table} WHERE {where[table]}")
        yield table, _counted(rows, progress) if table == "triple" else rows


def _counted(rows: Iterable[Any], progress: Progress) -> Iterator[Any]:
    for number, row in enumerate(rows):
        if number % STEP == 0:
            progress(number)
        yield row


def take_in(database: sqlite3.Connection, tables: Tables, source: object) -> None:
    """Write rows into a graph file; the caller commits.

    Raises:
        GraphFileError: a row fits no table of ours, so the ``source`` is damaged.
    """
    for table, rows in tables:
        marks = ", ".join("?" * len(COLUMNS[table].split(",")))
        insert = f"INSERT OR REPLACE INTO {table} ({COLUMNS[table]}) VALUES ({marks})"
        try:
            database.executemany(insert, map(tuple, rows))
        except sqlite3.IntegrityError as error:
            raise GraphFileError(
                f"{source}: it is damaged ({error}). Take another copy of it."
            ) from error
