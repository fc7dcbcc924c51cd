"""Many triples at once into a graph on a server: all of them, or none."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import AliasRelations
from kbert_lab.graphs.store import last_revision, now, transaction
from kbert_lab.graphs.store.importing import Imported, Progress, Source
from kbert_lab.graphs.store.log import Entry, write_entry
from kbert_lab.graphs.store.names import aliases_of, note_aliases
from kbert_lab.graphs.store.server import Session, new_graph, server_at

_STEP = 20_000  # rows between two calls of a progress
_COMING = """
CREATE TEMPORARY TABLE coming (
    number BIGINT, entity TEXT COLLATE "C", head TEXT COLLATE "C", relation TEXT COLLATE "C",
    tail TEXT COLLATE "C", source BIGINT, line BIGINT
) ON COMMIT DROP
"""
_FIELDS = "entity, head, relation, tail"
_ADD = f"""
INSERT INTO triple (version, id, {_FIELDS}, place, off, source, line, added)
SELECT version, version, {_FIELDS}, version, false, source, line, :new FROM (
    SELECT :last + row_number() OVER (ORDER BY number) AS version, * FROM (
        SELECT DISTINCT ON ({_FIELDS}) * FROM coming ORDER BY {_FIELDS}, number
    ) AS once
    WHERE NOT EXISTS (
        SELECT 1 FROM triple AS there WHERE there.entity = once.entity AND removed IS NULL
        AND ({", ".join(f"there.{f}" for f in _FIELDS.split(", ")[1:])})
            = ({", ".join(f"once.{f}" for f in _FIELDS.split(", ")[1:])})
    )
) AS numbered ORDER BY version
"""


def is_there(address: str) -> bool:
    """Whether there is a graph at an address.

    Raises:
        GraphFileError: the server can't be reached.
    """
    server = server_at(address)
    query = "SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = 'entry'"
    with server.errors():
        return bool(server.execute(query, (server.schema,)))


def import_triples(
    address: str,
    sources: Iterable[Source],
    *,
    name: str = "",
    who: str = "",
    aliases: AliasRelations | None = None,
    progress: Progress = lambda rows: None,
) -> Imported:
    """Add triples to a graph on a server, which is made where there is none.

    Arguments and errors are as of ``importing.import_triples``.
    """
    if not is_there(address):
        with new_graph(address, name=name) as session:
            session.execute("INSERT INTO entry VALUES (0, ?, '', 'create', 0, NULL)", (now(),))
            if aliases is not None:
                note_aliases(session, aliases)
            return _add(session, sources, progress, who)
    server = server_at(address)
    with server.errors(), closing(Session(server)) as session, transaction(session):
        if aliases is not None:
            note_aliases(session, aliases_of(session).joined(aliases))
        return _add(session, sources, progress, who)


def _add(session: Session, sources: Iterable[Source], progress: Progress, who: str) -> Imported:
    revision = last_revision(session) + 1
    last, first = session.execute(
        "SELECT (SELECT coalesce(max(version), 0) FROM triple), "
        "(SELECT coalesce(max(id) + 1, 0) FROM source)"
    ).fetchone()
    names: list[str] = []

    def rows() -> Iterator[tuple[Any, ...]]:
        for number, source in enumerate(sources, start=first):
            names.append(source.name)
            for line, head, relation, tail in source.rows:
                yield normalise_name(head), head, relation, tail, number, line

    count = 0
    session.execute(_COMING)
    copy = "COPY coming FROM STDIN"
    with session.connect().cursor() as cursor, cursor.copy(copy) as coming:
        for count, row in enumerate(rows(), start=1):
            if count % _STEP == 0:
                progress(count)
            if row[0]:  # else a head of nothing but invisible characters
                coming.write_row((count, *row))
    if not count:
        raise GraphFileError(f"{', '.join(names)}: no triples in it, nothing to import.")
    added = session.execute(_ADD, {"new": revision, "last": last}).rowcount
    of_sources = [(first + i, name, revision) for i, name in enumerate(names)]
    session.executemany("INSERT INTO source VALUES (?, ?, ?)", of_sources)
    write_entry(session, Entry(revision, now(), who, "import", added))
    progress(count)
    return Imported(added, count - added, revision)
