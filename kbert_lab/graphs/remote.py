"""Triples from where they are: SPARQL endpoints, and Neo4j through its driver.

A query gives rows of head, relation and tail, in an order that stays. They are kept as they come,
in a database in the cache folder. After a break the same import goes on with the next row. When all
are there, they are read as a file is, and the database is deleted after the import.
"""

import hashlib
import logging
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from urllib.parse import unquote

from kbert_core.errors import GraphFileError
from kbert_core.files import cache_folder
from kbert_core.knowledge.io import Reading
from kbert_core.knowledge.io.rows import ReadOptions
from kbert_lab.graphs.endpoints import AGAIN, PAGE, Neo4j, SparqlEndpoint

SPARQL = ("http://", "https://")
NEO4J = ("neo4j://", "neo4j+s://", "neo4j+ssc://", "bolt://", "bolt+s://", "bolt+ssc://")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Fetched:
    """Everything that came.

    Attributes:
        rows: how many.
        sha256: of their lines, the same however often they were broken off: of a SPARQL endpoint
            the terms as RDF writes them, with tabs between; of Neo4j a JSON list each.
        reading: of their triples.
    """

    rows: int
    sha256: str
    reading: Reading


def is_remote(name: str) -> bool:
    """Whether a name is an address of triples, and not of a file."""
    return name.startswith(SPARQL + NEO4J)


def masked(address: str) -> str:
    """An address without the password that somebody wrote in it."""
    address = re.sub(r"^([^:]+://[^:@/]*):.*@", r"\1:***@", address)

    def hidden(field: re.Match[str]) -> str:
        secret = "password" in unquote(field[1]).lower()  # drivers unquote names, too
        return f"{field[1]}=***" if secret else field[0]

    return re.sub(r"([?&;][^=&]*)=[^&]*", hidden, address)


@contextmanager
def fetched(
    address: str,
    options: ReadOptions = ReadOptions(),
    *,
    query: str = "",
    skip_bad: bool = False,
    progress: Callable[[int], None] = lambda rows: None,
) -> Iterator[Fetched]:
    """Fetch rows of triples; what came is kept until the block ends well.

    Args:
        address: of a SPARQL endpoint, ``https://USER@HOST/PATH``, with the password in
            ``~/.netrc``; or ``neo4j://USER@HOST/DATABASE``, with it in NEO4J_PASSWORD.
        query: SPARQL that selects ``?head ?relation ?tail``, or Cypher that returns ``head``,
            ``relation`` and ``tail``; "": every triple, every relationship.
        progress: called now and then with the number of rows that are there.

    Raises:
        GraphFileError: the server is away or refuses, the answer breaks off, or isn't rows of
            triples; or another process fetches the same.
        MissingPackageError: Neo4j's driver isn't installed.
    """
    if masked(address) != address:
        raise GraphFileError(
            f"{masked(address)}: a password doesn't belong in an address, which logs and lists of "
            "processes show. Keep it in ~/.netrc, for Neo4j in NEO4J_PASSWORD, and leave it away "
            "here."
        )
    key = hashlib.sha256("\n".join((address, query)).encode()).hexdigest()[:32]
    path = cache_folder() / "graphs" / f"fetched-{key}.db"
    source = (SparqlEndpoint if address.startswith(SPARQL) else Neo4j)(address, query)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as kept:
            kept.execute("PRAGMA locking_mode = EXCLUSIVE")
            kept.execute("CREATE TABLE IF NOT EXISTS line (number INTEGER PRIMARY KEY, text TEXT)")

            def lines() -> Iterator[str]:
                return (line for (line,) in kept.execute("SELECT text FROM line ORDER BY number"))

            rows = _fetch(source, kept, progress)
            digest = hashlib.sha256()
            for line in lines():
                digest.update(f"{line}\n".encode())
            passed = source.passed.copy()
            found = source.read(lines, options, passed)
            reading = Reading(address, found, skip_bad, passed=passed, unit="row")
            yield Fetched(rows, digest.hexdigest(), reading)
        path.unlink()
    except (OSError, sqlite3.Error) as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_BUSY":
            raise GraphFileError(
                f"{address}: another process is fetching the same. Wait until it is done."
            ) from None
        raise GraphFileError(
            f"{path}: what came can't be kept there ({error}). Delete the file, make room, or "
            f"set KBERT_CACHE to another folder. {AGAIN}."
        ) from error


def _fetch(
    source: SparqlEndpoint | Neo4j, kept: sqlite3.Connection, progress: Callable[[int], None]
) -> int:
    """Keep every row; return how many there are."""
    kept.execute("BEGIN EXCLUSIVE")
    (there,) = kept.execute("SELECT count(*) FROM line").fetchone()
    try:
        with closing(source.after(max(0, there - 1))) as rows:
            last = kept.execute("SELECT text FROM line WHERE number = ?", (there,)).fetchone()
            if last and next(rows, "") != last[0]:
                log.warning(
                    "%s: row %d is another one than when it came, so the data were changed "
                    "meanwhile. All rows are fetched anew.",
                    *(source.name, there),
                )
                kept.execute("DELETE FROM line")
                rows, there = source.after(0), 0
            for line in rows:
                there += 1
                kept.execute("INSERT INTO line VALUES (?, ?)", (there, line))
                if there % PAGE == 0:
                    kept.execute("COMMIT")
                    progress(there)
                    kept.execute("BEGIN EXCLUSIVE")
    finally:  # what came is kept
        kept.execute("COMMIT")
    if not there:
        raise GraphFileError(f"{source.name}: gives no rows, so there is nothing to import.")
    progress(there)
    return there
