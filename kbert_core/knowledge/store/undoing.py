"""Undo: an entry's versions are ended, and those it ended begin again."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from kbert_core.errors import GraphConflict
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.store.edits import COPY, FIELDS, Version, end, live
from kbert_core.knowledge.store.log import undone, undos


def last_done(database: sqlite3.Connection) -> int | None:
    """The last entry that is no undo and not undone; None: there is none."""
    taken_back = undone(database)
    for (revision,) in database.execute(
        "SELECT revision FROM entry WHERE undoes IS NULL AND revision > 0 ORDER BY revision DESC"
    ):
        if revision not in taken_back:
            return revision
    return None


def last_undone(database: sqlite3.Connection) -> int | None:
    """The last undo that isn't undone, if nothing else was edited since; None: there is none."""
    taken_back, undo_entries = undone(database), undos(database)
    for revision, undoes in database.execute(
        "SELECT revision, undoes FROM entry ORDER BY revision DESC"
    ):
        if undoes is None:
            return None
        if revision not in taken_back and undoes not in undo_entries:
            return revision
    return None


def swap(
    database: sqlite3.Connection, path: Path, old: int, new: int, entities: Iterable[str]
) -> None:
    """End what an entry began, and begin again what it ended.

    Args:
        path: of the graph, for messages.
        old: the entry's revision.
        new: the undo's.
        entities: that the entry edited.

    Raises:
        GraphConflict: a later entry changed one of the triples.
    """
    begun: dict[int, Version] = {}
    ended: dict[int, Version] = {}
    for entity in entities:
        for row in database.execute(
            f"SELECT {FIELDS}, added FROM triple WHERE entity = ?1 "
            "AND (added = ?2 OR removed = ?2) AND removed IS NOT added",
            (entity, old),
        ):
            (begun if row[-1] == old else ended)[row[1]] = Version(*row[:-1])
    for id_ in {*begun, *ended}:
        now = _now(database, id_)
        left = begun.get(id_)
        if (now and now.content) != (left and left.content):
            _refuse_undo(database, path, old, left or ended[id_])
        if now is not None:
            end(database, now.version, new)
    for version in ended.values():
        if live(database, version.triple):
            _refuse_undo(database, path, old, version)
        database.execute(f"{COPY} WHERE version = ?", (new, version.version))


def swap_all(database: sqlite3.Connection, path: Path, old: int, new: int) -> None:
    """Do the same for an import, or the undo of one."""
    edited = database.execute(
        f"SELECT {FIELDS} FROM triple AS was WHERE added = ? AND removed IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM triple AS now WHERE now.removed IS NULL "
        "AND now.id = was.id AND now.version <> now.id AND now.head = was.head "
        "AND now.relation = was.relation AND now.tail = was.tail "
        "AND now.off = was.off) LIMIT 1",
        (old,),
    ).fetchone()
    again = database.execute(
        f"SELECT {FIELDS} FROM triple AS was WHERE removed = ? AND added < removed "
        "AND EXISTS (SELECT 1 FROM triple AS now WHERE now.removed IS NULL "
        "AND now.entity = was.entity AND now.head = was.head "
        "AND now.relation = was.relation AND now.tail = was.tail) LIMIT 1",
        (old,),
    ).fetchone()
    for row in (edited, again):
        if row is not None:
            _refuse_undo(database, path, old, Version(*row))
    database.execute(
        "UPDATE triple SET removed = ? WHERE removed IS NULL "
        "AND id IN (SELECT id FROM triple WHERE added = ?)",
        (new, old),
    )
    database.execute(f"{COPY} WHERE removed = ? AND added < removed", (new, old))


def _now(database: sqlite3.Connection, id_: int) -> Version | None:
    """The version of a triple that counts now."""
    row = database.execute(
        f"SELECT {FIELDS} FROM triple WHERE removed IS NULL "
        "AND (version = ?1 AND id = ?1 OR id = ?1 AND version <> id)",
        (id_,),
    ).fetchone()
    return Version(*row) if row else None


def _refuse_undo(
    database: sqlite3.Connection, path: Path, revision: int, version: Version
) -> NoReturn:
    later = database.execute(
        "SELECT max(max(added, ifnull(removed, 0))) FROM triple WHERE entity = ? AND id = ?",
        (normalise_name(version.head), version.id),
    ).fetchone()[0]
    remedy = f"Undo entry {later} first" if later > revision else "Undo what came later first"
    raise GraphConflict(
        f"{path}: entry {revision} can't be undone, the triple {version.triple} was "
        f"edited after it. {remedy}, or edit the triple itself."
    )
