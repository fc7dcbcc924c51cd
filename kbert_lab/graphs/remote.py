"""Triples from where they are: SPARQL endpoints, and Neo4j through its driver.

A query gives rows of head, relation and tail, in an order that stays. They are kept as they come,
in a database in the cache folder. After a break the same import goes on with the next row. When all
are there, they are read as a file is, and the database is deleted after the import.
"""

import hashlib
import json
import logging
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import SplitResult, unquote, urlsplit

import pyoxigraph as ox
import requests

from kbert_core.errors import GraphFileError, MissingPackageError
from kbert_core.files import cache_folder
from kbert_core.knowledge.io import Reading
from kbert_core.knowledge.io.rows import ReadOptions, checked
from kbert_core.knowledge.io.text_lines import Bad, printable, shown
from kbert_lab.graphs.neo4j import NODE_NAMES
from kbert_lab.graphs.rdf import Terms, read_statements

SPARQL = ("http://", "https://")
NEO4J = ("neo4j://", "neo4j+s://", "neo4j+ssc://", "bolt://", "bolt+s://", "bolt+ssc://")
PAGE = 10_000  # rows asked for at once, and kept together; many endpoints give no more
TIMEOUT = 300.0  # seconds without a byte; an endpoint may sort for long before the first
COLUMNS = ("head", "relation", "tail")
AGAIN = "Do the same again: it goes on with the row after the last one that came"
Lines = Callable[[], Iterator[str]]  # from the first, each time

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
    try:
        where = urlsplit(address)
    except ValueError as error:
        raise GraphFileError(f"{address}: no address ({error}). Correct it.") from error
    source = (SparqlEndpoint if address.startswith(SPARQL) else Neo4j)(address, where, query)
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
            found = source.read(lines, options)
            reading = Reading(address, found, skip_bad, passed=source.passed, unit="row")
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
    source: "SparqlEndpoint | Neo4j", kept: sqlite3.Connection, progress: Callable[[int], None]
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


_ALL = "SELECT ?head ?relation ?tail WHERE { ?head ?relation ?tail }"
_PROLOGUE = re.compile(r"(?:\s|#[^\n]*\n|PREFIX\s+\S*:\s*<[^>]*>|BASE\s+<[^>]*>)*", re.IGNORECASE)
_BLANK = 'isBlank(COALESCE(?head, "")) || isBlank(COALESCE(?tail, ""))'
_COUNT = f"SELECT (COUNT(*) AS ?rows) (SUM(IF({_BLANK}, 1, 0)) AS ?blank)"
_ORDER = "STR(?head) STR(?relation) STR(?tail) LANG(?tail) DATATYPE(?tail) LANG(?head)"


class SparqlEndpoint:
    """Rows of a SPARQL endpoint, asked for by page.

    Attributes:
        name: for messages.
        passed: what is no row, by what it is.
    """

    def __init__(self, address: str, where: SplitResult, query: str) -> None:
        self.name, self.passed = address, Counter[str]()
        self._url = where._replace(netloc=where.netloc.rpartition("@")[2]).geturl()
        user = (where.username, "") if where.username else None
        self._login = requests.utils.get_netrc_auth(self._url) or user
        query = query or _ALL
        self._prologue = _PROLOGUE.match(query)[0]  # type: ignore[index]  # it may be empty
        self._query = query[len(self._prologue) :]

    def after(self, first: int) -> Generator[str, None, None]:
        """Yield the rows after so many, in the order that stays, each as a line to keep.

        Raises:
            GraphFileError: they can't be had, or no longer.
        """
        counted = [*self._ask(f"{_COUNT} WHERE {{ {{ {self._query}\n}} }}")]
        try:
            total, blank = (int(counted[0][name].value or 0) for name in ("rows", "blank"))
        except (IndexError, AttributeError, KeyError, ValueError) as error:
            raise GraphFileError(
                f"{self.name}: doesn't count its rows, so it is no SPARQL 1.1 endpoint. Check the "
                "address."
            ) from error
        if blank:
            self.passed["nodes without an address"] = blank
        while first < total - blank:
            before = first
            for row in self._ask(
                f"SELECT ?head ?relation ?tail WHERE {{ {{ {self._query}\n}} FILTER(!({_BLANK})) }}"
                f" ORDER BY {_ORDER} LIMIT {PAGE} OFFSET {first}"
            ):
                first += 1
                terms = [row[name] for name in COLUMNS]
                if None in terms:
                    raise GraphFileError(
                        f"{self.name}, row {first}: has no ?{COLUMNS[terms.index(None)]}. Let the "
                        "query select ?head ?relation ?tail, each in every row."
                    )
                yield "\t".join(map(str, terms))
            if first == before or first > total - blank:
                raise GraphFileError(
                    f"{self.name}: {total - blank:,} rows were counted, and {first:,} came, so the "
                    f"data were changed meanwhile. {AGAIN}."
                )

    def read(self, lines: Lines, options: ReadOptions) -> Any:
        """Yield the triples of lines that were kept: a ``Row`` or a ``Bad`` each."""

        def statements() -> Iterator[tuple[int, Terms]]:
            for number, line in enumerate(lines(), start=1):
                text = f"?head\t?relation\t?tail\n{line}\n"
                rows: Any = ox.parse_query_results(text, ox.QueryResultsFormat.TSV)
                (row,) = rows
                yield number, cast(Terms, tuple(row))

        return read_statements(statements, options, self.passed)

    def _ask(self, query: str) -> Iterator[Any]:
        """Ask a query, and return its rows."""
        kinds = "application/sparql-results+json, application/sparql-results+xml;q=0.9"
        try:
            response = requests.post(
                self._url,
                {"query": self._prologue + query},
                headers={"Accept": kinds, "User-Agent": "kbert-lab"},  # some endpoints want one
                auth=self._login,
                allow_redirects=False,  # the query would be lost, and the password told
                timeout=TIMEOUT,
            )
        except (requests.RequestException, ValueError) as error:
            raise GraphFileError(
                f"{self.name}: no connection to the endpoint, or the answer broke off "
                f"({printable(str(error))}). Check the address and the network. {AGAIN}."
            ) from error
        if response.status_code != 200:
            raise self._refused(response)
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        known = ox.QueryResultsFormat.from_media_type(kind)
        rows: Any = None
        try:
            if known is not None:
                rows = ox.parse_query_results(response.content, known)
            if not isinstance(rows, ox.QuerySolutions):
                raise GraphFileError(
                    f"{self.name}: answers with {kind}, and not with rows of a SPARQL query. Give "
                    "the address of a SPARQL endpoint; a file of triples has to be downloaded "
                    "first."
                )
            yield from rows
        except (SyntaxError, ValueError) as error:
            raise GraphFileError(
                f"{self.name}: the answer is cut off, or isn't written as SPARQL results "
                f"({printable(str(error))}). Check the address. {AGAIN}."
            ) from error

    def _refused(self, response: requests.Response) -> GraphFileError:
        text, place = response.text[:1000], response.headers.get("Location")
        said = f"{response.status_code} {response.reason}" + (f", now at {place}" if place else "")
        if response.status_code in (401, 403):
            problem = f"refuses the user or the password ({said})"
            remedy = (
                "Write `machine HOST login USER password PASSWORD` into ~/.netrc, with the "
                "endpoint's host"
            )
        elif response.status_code == 400:
            problem = f"can't run the query ({shown(' '.join(text.split()))})"
            remedy = "Give a SPARQL query that selects ?head ?relation ?tail (--query FILE)"
        else:
            text = re.sub("<[^>]*>", " ", text)
            problem = f"answers {said} ({shown(' '.join(text.split()))})"
            remedy = (
                "Check the address; if it is overloaded, wait or ask for less (--query FILE). "
                f"{AGAIN}"
            )
        return GraphFileError(f"{self.name}: the endpoint {problem}. {remedy}.")


class Neo4j:
    """Rows of a Neo4j server, in one stream; as a ``SparqlEndpoint``."""

    def __init__(self, address: str, where: SplitResult, query: str) -> None:
        try:
            import neo4j
        except ImportError as error:
            raise MissingPackageError(
                "Neo4j is read through its driver, which isn't installed here. Install it: pip "
                "install 'kbert-lab[neo4j]'"
            ) from error
        self._neo4j = neo4j
        self.name, self.passed = address, Counter[str]()
        self._uri = where._replace(netloc=where.netloc.rpartition("@")[2], path="").geturl()
        self._database = where.path.strip("/") or None
        password = os.environ.get("NEO4J_PASSWORD", "")
        self._login = (where.username or "neo4j", password) if where.username or password else None
        head, tail = (
            "coalesce({})".format(", ".join(f"{node}.`{name}`" for name in NODE_NAMES))
            for node in "ht"
        )
        every = f"MATCH (h)-[r]->(t) RETURN {head} AS head, type(r) AS relation, {tail} AS tail"
        self._query = query.strip().rstrip(";") or every

    def after(self, first: int) -> Generator[str, None, None]:
        """See ``SparqlEndpoint.after``."""
        problems = self._neo4j.exceptions
        try:
            with (
                self._neo4j.GraphDatabase.driver(self._uri, auth=self._login) as driver,
                driver.session(
                    database=self._database, default_access_mode=self._neo4j.READ_ACCESS
                ) as session,
            ):
                query = f"{self._query}\nORDER BY head, relation, tail SKIP $first"
                rows = session.run(query, first=first)
                row_names = rows.keys()
                if missing := [name for name in COLUMNS if name not in row_names]:
                    raise GraphFileError(
                        f"{self.name}: the query returns no {' and no '.join(missing)}. End it "
                        "with RETURN … AS head, … AS relation, … AS tail."
                    )
                for row in rows:
                    values = [row[name] for name in COLUMNS]
                    texts = [str(v) if isinstance(v, int | float) else v for v in values]
                    yield json.dumps(texts, ensure_ascii=False, default=str)
        except problems.AuthError as error:
            raise GraphFileError(
                f"{self.name}: the server refuses the user or the password. Write the user into "
                "the address (neo4j://USER@HOST), and the password into NEO4J_PASSWORD."
            ) from error
        except problems.Neo4jError as error:
            raise GraphFileError(
                f"{self.name}: the server refuses the query ({shown(error.message or '')}). Give "
                "a Cypher query that ends with RETURN … AS head, … AS relation, … AS tail (--query "
                "FILE)."
            ) from error
        except (problems.DriverError, OSError, ValueError) as error:
            reason = shown(str(error).partition("\n")[0])
            raise GraphFileError(
                f"{self.name}: no connection to the server, or it was lost ({reason}). Check that "
                f"it runs, and the address. {AGAIN}."
            ) from error

    def read(self, lines: Lines, options: ReadOptions) -> Any:
        """See ``SparqlEndpoint.read``."""
        for number, line in enumerate(lines(), start=1):
            fields = json.loads(line)
            wrong = [n for n, f in zip(COLUMNS, fields, strict=True) if not isinstance(f, str)]
            if wrong:
                yield Bad(
                    number,
                    f"its {wrong[0]} in '{shown(line)}' is no text. Give the node a property "
                    f"{', '.join(NODE_NAMES[:3])}, or say in the query (--query FILE) what its "
                    "name is.",
                )
            else:
                yield checked(number, *fields)
