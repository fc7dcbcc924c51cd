"""A graph on a PostgreSQL server, and a graph file here that follows it.

The server has the tables of a graph file, in a schema of their own. On every machine a graph file
in the cache folder, the mirror, holds the same rows: it is read, searched and matched like any
graph file, after what is new on the server was fetched. An edit is made in the mirror while the
server's log is locked, and is sent there before both are confirmed; so edits take turns, and one
that the server doesn't confirm is in neither. Every entry is told to whoever listens.
"""

import re
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from kbert_core.errors import GraphFileError, MissingPackageError
from kbert_lab.graphs import store
from kbert_lab.graphs.remote import masked
from kbert_lab.graphs.store import WAIT, importing
from kbert_lab.graphs.store.importing import Imported, Source
from kbert_lab.graphs.store.log import COLUMNS, Tables, has_bulk, rows_since, take_in
from kbert_lab.graphs.store.names import NamesFile, build_names
from kbert_lab.graphs.store.store import GraphStore

try:
    import psycopg
except ImportError as error:
    raise MissingPackageError(
        "A graph on a server needs psycopg, which isn't installed here. Install it: pip install "
        "'kbert-lab[server]'"
    ) from error

SCHEMA = "kbert"  # where a graph is, unless its address ends with ?graph=NAME
_IN_POSTGRES = (  # of ``TABLES``
    ("value)", "value TEXT)"),
    (",\n    PRIMARY KEY (revision, entity)", ""),  # an index of a tree holds no long names
    (" WITHOUT ROWID", ""),
    ("REAL", "DOUBLE PRECISION"),
    ("off INTEGER", "off BOOLEAN"),
    ("INTEGER", "BIGINT"),
    ("TEXT", 'TEXT COLLATE "C"'),  # in SQLite's order
)
_INDEXES = """
CREATE INDEX triple_entity ON triple USING hash (entity);
CREATE INDEX triple_added ON triple USING brin (added);
CREATE INDEX touched_revision ON touched (revision);
CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_notify(TG_TABLE_SCHEMA, NEW.revision::text); RETURN NULL; END';
CREATE TRIGGER told AFTER INSERT ON entry FOR EACH ROW EXECUTE FUNCTION tell();
ANALYZE triple
"""
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"  # at one moment
_EDIT = (
    f"BEGIN; SET LOCAL lock_timeout = '{WAIT:.0f}s'; "
    "SET LOCAL idle_in_transaction_session_timeout = '60s'; "  # an editor that is cut off
    "LOCK TABLE entry IN SHARE ROW EXCLUSIVE MODE"
)
_WRITE = {  # rows that came, or were changed
    table: f"INSERT INTO {table} ({columns}) VALUES "
    f"({', '.join('%s::int::boolean' if c == 'off' else '%s' for c in columns.split(', '))})"
    for table, columns in COLUMNS.items()
}
_WRITE["fact"] += " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_CHANGED = " ON CONFLICT (version) DO UPDATE SET place = excluded.place, removed = excluded.removed"
_WRITE["triple"] += _CHANGED


class Server:
    """One graph's place on a server, with a connection that is made again where it was lost.

    Args:
        address: ``postgresql://USER@HOST/DATABASE``, and ``?graph=NAME`` for another than the
            database's first one. The password comes from ``~/.pgpass`` or PGPASSWORD.

    Attributes:
        news: whether there may be entries that weren't fetched.

    Raises:
        GraphFileError: the address is none, or holds a password.
    """

    def __init__(self, address: str) -> None:
        self.address = masked(address)
        if self.address != address:
            raise GraphFileError(
                f"{self.address}: a password doesn't belong in an address, which logs and lists of "
                "processes show. Keep it in ~/.pgpass or PGPASSWORD, and leave it away here."
            )
        try:
            url = urlsplit(address)
            named = dict(parse_qsl(url.query, strict_parsing=bool(url.query)))
            self.schema = named.pop("graph", SCHEMA)
            self._url = url._replace(scheme="postgresql", query=urlencode(named)).geturl()
            psycopg.conninfo.conninfo_to_dict(self._url)
            _ = url.port  # a ValueError where it is no number
        except (ValueError, psycopg.Error) as error:
            raise GraphFileError(
                f"{address}: no address of a graph. Write postgresql://USER@HOST/DATABASE."
            ) from error
        if not re.fullmatch("[a-z][a-z0-9_]{0,47}", self.schema):
            raise GraphFileError(
                f"{address}: a graph on a server can't be called '{self.schema}'. Take small "
                "letters, digits and _, a letter first, 48 at most."
            )
        self._connection: psycopg.Connection | None = None
        self.news = True

    def connect(self) -> psycopg.Connection:
        """Return the connection; made where there is none."""
        if self._connection is None or self._connection.closed:
            self._connection = None  # where there is none, it isn't lost
            self._connection = psycopg.connect(
                self._url,
                autocommit=True,  # we say ourselves where a transaction begins
                connect_timeout=10,
                keepalives_idle=30,
                options=f"-c search_path={self.schema}",
            )
            self._connection.execute(f'LISTEN "{self.schema}"')
            self.news = True
        return self._connection

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()

    def listen(self) -> bool:
        """Return ``news``, after a look at what others told; the server isn't asked."""
        try:
            connection = self.connect()
            own = connection.info.backend_pid
            self.news |= any([told.pid != own for told in connection.notifies(timeout=0)])
        except psycopg.OperationalError:  # lost; what came meanwhile wasn't heard
            self.close()
            self.connect()
        return self.news

    @contextmanager
    def transaction(self, begin: str) -> Iterator[psycopg.Connection]:
        """Do all of a block, or nothing of it; begun again where the connection was lost before."""
        connection = self.connect()
        try:
            connection.execute(begin)
        except psycopg.Error:
            if not connection.closed:
                connection.execute("ROLLBACK")
                raise
            connection = self.connect()
            connection.execute(begin)
        try:
            yield connection
        except BaseException:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise
        try:
            connection.execute("COMMIT")
        except psycopg.OperationalError as error:
            raise GraphFileError(
                f"{self.address}: the connection was lost while the edit was being confirmed. Look "
                "in the log (kbert kg history) whether it is there, and repeat it if it isn't."
            ) from error

    def has_later(self, mirror: sqlite3.Connection) -> bool:
        """Whether the server has later entries than a mirror, which must know the earlier ones."""
        log = "SELECT revision, at FROM entry "
        last = mirror.execute(f"{log} ORDER BY revision DESC").fetchone()
        later = f"{log} WHERE revision >= {last[0]:d} ORDER BY revision LIMIT 2"
        first, *new = self.connect().execute(later).fetchall() or [()]
        if first != last:
            raise GraphFileError(
                f"{self.address}: the server was set back to an earlier state. Open the graph "
                "again."
            )
        return bool(new)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Say in our words what the server says."""
        try:
            yield
        except psycopg.Error as error:
            raise self._refusal(error) from error

    def _refusal(self, error: psycopg.Error) -> GraphFileError:
        state = error.sqlstate or ""
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        for states, words in {
            "3F000 42P01": "there is no graph. Make one: kbert kg import FILE --output ADDRESS",
            "42P06 42P07 23505": "is there already. Give another name: ?graph=NAME",
            "55P03": f"another process has been writing to it for {WAIT:.0f} s. Try again later",
            "53100": "the server's disk is full, so nothing was changed. Free some space and try "
            "again",
            "25006 42501": f"you may only read it ({first}). Ask for the right to edit it",
        }.items():
            if state in states.split():
                return GraphFileError(f"{self.address}: {words}.")
        if isinstance(error, psycopg.OperationalError):
            if self._connection is not None and self._connection.closed:
                return store.ServerError(
                    f"{self.address}: the connection to the server was lost ({first}), so nothing "
                    "was changed. Try again when the server is back."
                )
            return store.ServerError(
                f"{self.address}: no connection to the server ({first}). Check that it runs, the "
                "address, and the user and password (in ~/.pgpass or PGPASSWORD)."
            )
        return store.ServerError(f"{self.address}: the server refuses ({first}).")


class ServerStore(GraphStore):
    """A graph on a server, as ``GraphStore`` is one in a file; see ``Server`` for its address.

    Raises:
        GraphFileError: the server can't be reached, or has no such graph.
    """

    def __init__(self, address: str) -> None:
        self._server, self._inside = Server(address), True
        try:
            with self._server.errors():
                super().__init__(self._mirror(), write=True)
            self._database.execute("PRAGMA synchronous = NORMAL")  # what it loses, the server has
            self.path, self._inside = self._server.address, False
            self.graph()  # as it is there now
        except BaseException:
            self._server.close()
            raise

    def close(self) -> None:
        """Let go of the server. Graphs got from it can still be read."""
        self._inside = True  # nothing is fetched any more
        super().close()
        self._server.close()

    def add(self, sources: Iterable[Source], **how: Any) -> Imported:
        """Add many triples at once; see ``importing.import_triples``."""
        with self._using(), self._writing():
            done = importing.add_triples(self._database, self.file, sources, **how)
        self._data_version = -1
        return done

    def _mirror(self) -> Path:
        """The graph file that follows; made anew where it doesn't fit what is on the server."""
        with self._server.transaction(_READ) as connection:
            facts = dict(connection.execute("SELECT name, value FROM fact").fetchall())
            if facts.get("version") != str(store.VERSION):
                raise GraphFileError(
                    f"{self._server.address}: written by another version of this program (format "
                    f"{facts.get('version')}; this one reads {store.VERSION}). Update kbert-lab, "
                    "or copy the graph into a file there (kbert kg copy)."
                )
            path = _mirror_of(self._server.address, str(facts.get("id")))
            with store.graph_lock(path, wait=-1):
                if not self._fits(path):
                    store.remove_graph(path)
                    rows = rows_since(connection.cursor().stream, -1)
                    about = {"name": facts["title"], "identity": facts["id"]}
                    importing.make_graph(path, rows, self._server.address, **about)
                    path.chmod(0o600)
                    self._server.news = False
        return path

    def _fits(self, path: Path) -> bool:
        """Whether a mirror is whole, and the server wasn't set back to an earlier state since."""
        with suppress(GraphFileError, sqlite3.Error), closing(store.connect(path)) as database:
            self._server.news = self._server.has_later(database)
            return True
        return False

    @contextmanager
    def _using(self) -> Iterator[None]:
        with super()._using(), self._server.errors():
            if not self._inside and self._server.listen():
                with (
                    self._alone(),
                    store.transaction(self._database),
                    self._server.transaction(_READ) as connection,
                ):
                    self._fetch(connection)
                self._server.news = False
            yield

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Change the mirror in a block, one process at a time; the graph is read anew after it."""
        self._inside = True
        try:
            with store.graph_lock(self.file, wait=-1):
                yield
                names = NamesFile.of(self._database)
                if names != self._names:  # indexed anew
                    store.remove_leftovers(self.file, names.path(self.file))
        finally:
            self._inside, self._data_version = False, -1

    @contextmanager
    def _writing(self) -> Iterator[None]:
        read = self._database.execute
        with (
            self._alone(),
            store.transaction(self._database),
            self._server.transaction(_EDIT) as connection,
        ):
            self._fetch(connection)
            since = store.last_revision(self._database)
            yield
            bulk = has_bulk(read, since)
            _send(rows_since(read, since, bulk=bulk), connection, bulk=bulk)

    def _fetch(self, connection: psycopg.Connection) -> None:
        """Write what is new on the server into the mirror; the caller commits."""
        since = store.last_revision(self._database)
        if self._server.has_later(self._database):
            bulk = has_bulk(connection.execute, since)
            take_in(
                self._database, rows_since(connection.cursor().stream, since, bulk=bulk), self.path
            )
            if bulk:
                build_names(self._database, self.file)


def _send(tables: Tables, connection: psycopg.Connection, *, bulk: bool, new: bool = False) -> None:
    """Write rows into the server's tables, few of them without waiting; the caller commits."""
    target = "triple" if new else "coming"
    with connection.cursor() as cursor, nullcontext() if bulk else connection.pipeline():
        for table, rows in tables:
            if table != "triple" or not bulk:
                cursor.executemany(_WRITE[table], rows)  # type: ignore[arg-type]
                continue
            if not new:
                cursor.execute("CREATE TEMPORARY TABLE coming (LIKE triple) ON COMMIT DROP")
            with cursor.copy(f"COPY {target} ({COLUMNS[table]}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            if not new:
                cursor.execute(f"INSERT INTO triple SELECT * FROM coming{_CHANGED}")


def _mirror_of(address: str, identity: str) -> Path:
    if not re.fullmatch("[0-9a-f]{32}", identity):  # it names a file here
        raise GraphFileError(
            f"{address}: it is damaged (its table of facts has the id {identity!r}). Take a copy "
            "of it that is whole."
        )
    with store.graph_cache(address) as folder:
        return folder / f"server-{identity}.kg"


def is_there(address: str) -> bool:
    """Whether there is a graph at an address.

    Raises:
        GraphFileError: the server can't be reached.
    """
    server = Server(address)
    with server.errors(), closing(server):
        table = server.connect().execute(f"SELECT to_regclass('{server.schema}.entry')").fetchone()
        return table != (None,)


def import_into(address: str, sources: Iterable[Source], *, name: str = "", **how: Any) -> Imported:
    """Add triples to a graph on a server, which is made where there is none.

    Arguments and errors are as of ``importing.import_triples``.
    """
    if is_there(address):
        with ServerStore(address) as there:
            return there.add(sources, **how)
    identity = secrets.token_hex(16)
    mirror, name = _mirror_of(address, identity), name or Server(address).schema
    try:
        done = importing.import_triples(mirror, sources, name=name, identity=identity, **how)
        with closing(store.connect(mirror)) as database:
            upload(rows_since(database.execute, -1), address, name=name, identity=identity)
    except BaseException:
        store.remove_graph(mirror)
        raise
    return done


def upload(tables: Tables, address: str, *, name: str, identity: str = "") -> None:
    """Make a graph on a server of the rows of another: it is there whole, or not at all.

    Raises:
        GraphFileError: there is one already, or it can't be made.
    """
    server = Server(address)
    with server.errors(), closing(server), server.transaction("BEGIN READ WRITE") as connection:
        schema = f"SELECT 1 FROM pg_namespace WHERE nspname = '{server.schema}'"
        if connection.execute(schema).fetchone() is None:
            connection.execute(f"CREATE SCHEMA {server.schema}")
        statements = re.sub("--.*", "", store.TABLES)
        for ours, theirs in _IN_POSTGRES:
            statements = statements.replace(ours, theirs)
        connection.execute(statements)
        facts = {"id": identity or secrets.token_hex(16), "title": name, "version": store.VERSION}
        connection.cursor().executemany(_WRITE["fact"], facts.items())
        _send(tables, connection, bulk=True, new=True)
        connection.execute(_INDEXES)
