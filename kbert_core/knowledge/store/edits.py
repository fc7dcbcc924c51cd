"""Edits into the table of triples: versions are ended and begun, and none is changed."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from kbert_core.errors import GraphConflict
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple

FIELDS = "version, id, head, relation, tail, off"  # of a Version
COPY = (
    "INSERT INTO triple (id, entity, head, relation, tail, place, off, source, line, added) "
    "SELECT id, entity, head, relation, tail, place, off, source, line, ? FROM triple"
)


@dataclass(frozen=True, slots=True)
class Version:
    """A row of the table of triples."""

    version: int
    id: int
    head: str
    relation: str
    tail: str
    off: int

    @property
    def triple(self) -> Triple:
        """Its fields."""
        return Triple(self.head, self.relation, self.tail)

    @property
    def content(self) -> tuple[str, str, str, int]:
        """What an edit changes."""
        return self.head, self.relation, self.tail, self.off


def refuse_changed_since(database: sqlite3.Connection, seen: int, entities: Iterable[str]) -> None:
    """Refuse edits of entities that were edited after a revision.

    Raises:
        GraphConflict: one was; with who did it and when.
    """
    for entity in entities:
        found = database.execute(
            "SELECT revision, who, at FROM touched JOIN entry USING (revision) "
            "WHERE revision > ? AND entity = ? ORDER BY revision DESC",
            (seen, entity),
        ).fetchone()
        if found:
            who = f" by {found[1]}" if found[1] else ""
            raise GraphConflict(
                f"'{entity}' was edited{who} meanwhile (entry {found[0]}, {found[2]}), so "
                "nothing was changed. Look at its triples as they are now, and edit again."
            )


def make(database: sqlite3.Connection, edit: Edit, revision: int) -> None:
    """Write one edit that is known to fit."""
    if edit.action == "add":
        entity = normalise_name(edit.triple.head)
        _begin(database, edit.triple, _place(database, entity, edit.index), revision)
        return
    found = live(database, edit.triple)
    assert found is not None
    version, id_, place, off = found
    if edit.action in ("switch_off", "switch_on"):
        database.execute(f"{COPY} WHERE version = ?", (revision, version))
        database.execute(
            "UPDATE triple SET off = ? WHERE version = last_insert_rowid()",
            (edit.action == "switch_off",),
        )
    end(database, version, revision)
    if edit.action == "replace" and edit.new is not None:
        entity = normalise_name(edit.new.head)
        if entity != normalise_name(edit.triple.head):
            place = _place(database, entity, None)
        _begin(database, edit.new, place, revision, id_=id_, off=off)


def live(database: sqlite3.Connection, triple: Triple) -> tuple[int, int, float, bool] | None:
    """Version, id, place and whether it is off, of a triple; None: it isn't there."""
    return database.execute(
        "SELECT version, id, place, off FROM triple WHERE entity = ? AND head = ? "
        "AND relation = ? AND tail = ? AND removed IS NULL",
        (normalise_name(triple.head), triple.head, triple.relation, triple.tail),
    ).fetchone()


def end(database: sqlite3.Connection, version: int, revision: int) -> None:
    """Let a version of a triple count no longer."""
    database.execute("UPDATE triple SET removed = ? WHERE version = ?", (revision, version))


def _begin(
    database: sqlite3.Connection,
    triple: Triple,
    place: float,
    revision: int,
    *,
    id_: int | None = None,
    off: bool = False,
) -> None:
    database.execute(
        "INSERT INTO triple (id, entity, head, relation, tail, place, off, added) VALUES ("
        "coalesce(?, (SELECT coalesce(max(version), 0) + 1 FROM triple)), ?, ?, ?, ?, ?, ?, ?)",
        (
            id_,
            normalise_name(triple.head),
            triple.head,
            triple.relation,
            triple.tail,
            place,
            off,
            revision,
        ),
    )


def _place(database: sqlite3.Connection, entity: str, index: int | None) -> float:
    """A place among the triples of an entity: before that of an index, or last."""
    places = [
        place
        for (place,) in database.execute(
            "SELECT place FROM triple WHERE entity = ? AND removed IS NULL ORDER BY place, version",
            (entity,),
        )
    ]
    if not places:
        return 0.0
    if index is None or index == len(places):
        return places[-1] + 1.0
    if index == 0:
        return places[0] - 1.0
    low, high = places[index - 1], places[index]
    middle = (low + high) / 2
    if low < middle < high:
        return middle
    _spread(database, entity)
    return _place(database, entity, index)


def _spread(database: sqlite3.Connection, entity: str) -> None:
    """Number the places of an entity's triples anew, in the same order."""
    rows = database.execute(
        "SELECT version FROM triple WHERE entity = ? ORDER BY place, version", (entity,)
    ).fetchall()
    database.executemany(
        "UPDATE triple SET place = ? WHERE version = ?",
        [(float(number), version) for number, (version,) in enumerate(rows)],
    )
