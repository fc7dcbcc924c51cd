"""Triples fetched from a SPARQL endpoint, pyoxigraph on loopback, and from a stub of Neo4j."""

import base64
import http.server
import json
import socketserver
import struct
import threading
from contextlib import contextmanager
from urllib.parse import parse_qs

import pyoxigraph as ox
import pytest

from kbert_core import Triple, load_graph
from kbert_core.errors import GraphFileError, MissingPackageError
from kbert_lab import cli
from kbert_lab.graphs import remote
from kbert_lab.graphs.store.store import GraphStore

LABEL = ox.NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
SECRET = "sw0rdfish"
JSON = "application/sparql-results+json"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    for name, value in {
        "no_proxy": "127.0.0.1",
        "KBERT_CACHE": str(tmp_path / "cache"),
        "NETRC": str(tmp_path / "netrc"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(remote, "PAGE", 7)
    return tmp_path


def named(name):
    return ox.NamedNode(f"http://x.org/{name}")


def drugs(count=20):
    """Nodes with labels in two languages, one literal of another kind, and one blank node."""
    store = ox.Store()
    for number in range(count):
        drug = named(f"drug_{number}")
        store.add(ox.Quad(drug, named("treats"), named("ill")))
        store.add(ox.Quad(drug, LABEL, ox.Literal(f"Drug {number}", language="en")))
        store.add(ox.Quad(drug, LABEL, ox.Literal(f"药 {number}", language="zh")))
    store.add(ox.Quad(drug, named("grams"), ox.Literal(5)))
    store.add(ox.Quad(ox.BlankNode(), named("treats"), named("ill")))
    return store


class Endpoint(http.server.ThreadingHTTPServer):
    """A SPARQL endpoint over a store; ``cut`` ends the third page once, after so many bytes."""

    store, cut, login, answer, most = None, None, None, None, 1000

    def respond(self, handler):
        query = handler.rfile.read(int(handler.headers["Content-Length"])).decode()
        self.queries.append(query := parse_qs(query)["query"][0])
        if self.login and handler.headers["Authorization"] != self.login:
            return 401, "text/plain", b"who are you?"
        if self.answer:
            return self.answer
        query = query.replace("LIMIT 7", f"LIMIT {min(7, self.most)}")
        try:
            found = self.store.query(query)
        except SyntaxError as error:
            return 400, "text/plain", str(error).encode()
        data = found.serialize(format=ox.QueryResultsFormat.JSON)
        return 200, JSON, data


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        status, kind, data = self.server.respond(self)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status in (301, 302):
            self.send_header("Location", "http://other.example/sparql")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.server.cut is not None and self.server.queries[-1].endswith("OFFSET 14"):
            data, self.server.cut = data[: self.server.cut], None
            self.close_connection = True
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextmanager
def served(store=None):
    with Endpoint(("127.0.0.1", 0), Handler) as server:
        server.store, server.queries = store or drugs(), []
        server.address = f"http://127.0.0.1:{server.server_port}/sparql"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


@pytest.fixture
def endpoint():
    with served() as server:
        yield server


def imported(capsys, *words, output="g.kg"):
    assert cli.main(["kg", "import", *words, "--output", output, "--json"]) == 0
    said = capsys.readouterr()
    return {**json.loads(said.out), "said": said.err}


def refused(capsys, *words):
    assert cli.main(["kg", "import", *words, "--output", "g.kg"]) == 2
    return capsys.readouterr().err


def offsets(server):
    return [int(q.rpartition(" ")[2]) for q in server.queries if "OFFSET" in q]


# SPARQL


def test_every_triple_of_an_endpoint_comes_by_pages_with_its_labels(endpoint, capsys, here):
    done = imported(capsys, endpoint.address, "--language", "zh")
    assert (done["triples"], done["passed_over"], done["repeated"]) == (21, 1, 0)
    assert done["fetched"][0]["from"] == endpoint.address
    assert done["fetched"][0]["rows"] == 61
    assert "1 with nodes without an address" in done["said"]
    assert offsets(endpoint) == [*range(0, 61, 7)]
    graph = load_graph("g.kg")
    assert graph.triples_of("药 3") == (Triple("药 3", "treats", "ill"),)
    assert Triple("药 19", "grams", "5") in graph
    with GraphStore("g.kg") as store:
        origin = store.origin(Triple("药 3", "treats", "ill"))
    assert (origin.file, origin.revision) == (endpoint.address, 1)
    assert not [*here.glob("cache/graphs/*")]  # what was kept is gone
    assert cli.main(["kg", "show", "g.kg", "药 3"]) == 0
    assert f"{endpoint.address}, row {origin.line}" in capsys.readouterr().out


def test_a_query_of_names_with_prefixes_and_a_limit_of_its_own(endpoint, capsys, here):
    (here / "q.rq").write_text(
        "# of Chinese names\nPREFIX x: <http://x.org/>\n"
        "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n"
        'SELECT ?head ("治疗" AS ?relation) ("病" AS ?tail) '
        'WHERE { ?d x:treats ?t ; rdfs:label ?head FILTER(LANG(?head) = "zh") } '
        "ORDER BY ?head LIMIT 9 # the first"
    )
    done = imported(capsys, endpoint.address, "--query", "q.rq")
    assert (done["triples"], done["fetched"][0]["rows"]) == (9, 9)
    assert Triple("药 10", "治疗", "病") in load_graph("g.kg")


@pytest.mark.parametrize("cut", [0, 300, 700])
def test_after_a_break_an_import_goes_on_and_has_every_row_once(endpoint, capsys, cut):
    whole = imported(capsys, endpoint.address, output="whole.kg")
    endpoint.queries.clear()
    endpoint.cut = cut
    said = refused(capsys, endpoint.address)
    assert ("cut off" in said or "broke off" in said) and "Do the same again" in said
    assert offsets(endpoint) == [0, 7, 14]
    endpoint.queries.clear()
    again = imported(capsys, endpoint.address)
    assert again["fetched"] == whole["fetched"]
    assert 13 <= offsets(endpoint)[0] <= 19 and len(offsets(endpoint)) <= 7
    assert [*load_graph("g.kg")] == [*load_graph("whole.kg")]


def test_a_damaged_file_of_what_came_is_named(endpoint, capsys, here):
    endpoint.cut = 0
    refused(capsys, endpoint.address)
    (kept,) = here.glob("cache/graphs/fetched-*.db")
    kept.write_bytes(b"x" * 5000)
    said = refused(capsys, endpoint.address)
    assert f"{kept}: what came can't be kept there" in said and "Delete the file" in said
    kept.unlink()
    assert imported(capsys, endpoint.address)["triples"] == 21
    assert not [*here.glob("cache/graphs/fetched-*")]


def test_an_endpoint_that_gives_fewer_rows_than_asked_for_is_read_to_its_end(endpoint, capsys):
    endpoint.most = 4
    assert imported(capsys, endpoint.address)["fetched"][0]["rows"] == 61
    assert offsets(endpoint) == [*range(0, 61, 4)]


def test_rows_that_were_changed_meanwhile_are_fetched_anew(endpoint, capsys, caplog):
    pages = endpoint.respond
    endpoint.respond = lambda handler: (
        (503, "text/html", b"<h1>too busy</h1>") if len(offsets(endpoint)) == 3 else pages(handler)
    )
    assert "503 Service Unavailable (too busy)" in refused(capsys, endpoint.address)
    endpoint.respond = pages
    endpoint.store.add(ox.Quad(named("a"), named("treats"), named("ill")))
    done = imported(capsys, endpoint.address)
    assert (done["fetched"][0]["rows"], done["triples"]) == (62, 22)
    assert "row 21 is another one" in caplog.text


def test_a_user_and_password_come_from_netrc_and_are_never_shown(endpoint, capsys, here):
    basic = base64.b64encode(f"ann:{SECRET}".encode()).decode()
    endpoint.login = f"Basic {basic}"
    for netrc in (None, "machine 127.0.0.1 login ann password wrong\n"):
        if netrc:
            (here / "netrc").write_text(netrc)
        said = refused(capsys, endpoint.address)
        assert "refuses the user or the password" in said and "netrc" in said
        assert "wrong" not in said
    (here / "netrc").write_text(f"machine 127.0.0.1 login ann password {SECRET}\n")
    assert imported(capsys, endpoint.address)["triples"] == 21
    for wrong in (endpoint.address, "neo4j://host/x"):
        said = refused(capsys, wrong.replace("://", f"://ann:{SECRET}@"))
        assert SECRET not in said and "***" in said and "NEO4J_PASSWORD" in said
    (here / "netrc").write_text(f"password {SECRET} {SECRET}")
    said = refused(capsys, endpoint.address)
    assert SECRET not in said and "refuses the user or the password" in said


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, "text/html", b"<html>"), "answers with text/html, and not with rows"),
        ((200, JSON, b"<html>"), "isn't written as SPARQL results"),
        ((200, JSON, b'{"head":{},"boolean":true}'), "not with rows"),
        ((200, JSON, b'{"head":{"vars":[]},"results":{"bindings":[]}}'), "doesn't count"),
        ((404, "text/html", b"<p>nothing here</p>"), "answers 404 Not Found (nothing here)"),
        ((302, "text/html", b""), "now at http://other.example/sparql"),
        ((400, "text/plain", b"Error 37000"), "can't run the query (Error 37000)"),
    ],
)  # fmt: skip
def test_what_is_no_endpoint_is_refused(endpoint, capsys, here, answer, message):
    endpoint.answer = answer
    assert message in refused(capsys, endpoint.address)
    assert not (here / "g.kg").exists()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT ?head ?tail WHERE { ?head ?r ?tail }", "row 1: has no ?relation"),
        ("SELECT ?head ?relation WHERE", "can't run the query (error at"),
        ("SELECT * WHERE { ?head <x:no> ?tail }", "gives no rows"),
    ],
)
def test_a_query_that_gives_no_triples_is_refused(endpoint, capsys, here, query, message):
    (here / "q.rq").write_text(query)
    assert message in refused(capsys, endpoint.address, "--query", "q.rq")
    assert not (here / "g.kg").exists()


def test_addresses_and_queries_that_lead_nowhere_are_told(capsys, here):
    assert "no connection to the endpoint" in refused(capsys, "http://127.0.0.1:9/sparql")
    assert "no address" in refused(capsys, "http://[x/sparql")
    assert "q.rq: can't be read" in refused(capsys, "http://h/", "--query", "q.rq")
    (here / "a.spo").write_text("a\tb\tc\n")
    assert "only files are given" in refused(capsys, "a.spo", "--query", "q.rq")


def test_of_two_imports_of_the_same_one_is_told(endpoint):
    with (
        remote.fetched(endpoint.address) as fetched,
        pytest.raises(GraphFileError, match="another process is fetching"),
        remote.fetched(endpoint.address),
    ):
        pass
    assert fetched.rows == 61


# Neo4j: a stub of a server that speaks as much Bolt 5.0 as a query needs, and sends given records.
# The real driver talks to it over loopback. The messages are those that a server sends for the same
# query; there is no Neo4j here, so nothing of Cypher is run.

HELLO, GOODBYE, RESET, RUN, PULL = 0x01, 0x02, 0x0F, 0x10, 0x3F
SUCCESS, RECORD, FAILURE = 0x70, 0x71, 0x7F


def packed(value):
    """A value as the driver packs it."""
    from neo4j._codec.packstream.v1 import PackableBuffer, Packer

    Packer(buffer := PackableBuffer()).pack(value)
    return bytes(buffer.data)


def unpacked(data):
    """The values in some bytes, one after the other."""
    from neo4j._codec.packstream.v1 import UnpackableBuffer, Unpacker

    buffer = UnpackableBuffer(data)
    while buffer.p < buffer.used:
        yield Unpacker(buffer).unpack()


class Stub(socketserver.ThreadingTCPServer):
    """A server on 127.0.0.1; ``queries`` are those that were run, with their parameters."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, records, password, fields):
        super().__init__(("127.0.0.1", 0), Talk)
        self.records, self.password, self.fields = records, password, fields
        self.queries, self.cut_after = [], None
        self.address = f"bolt://neo4j@127.0.0.1:{self.server_address[1]}"


class Talk(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(20, 0x100)  # MSG_WAITALL: what the driver offers
        self.request.sendall(b"\x00\x00\x00\x05")
        stream, left = self.request.makefile("rb"), iter(())
        while data := self.message(stream):
            kind, rest = data[1], data[2:]
            if kind == HELLO:
                (login,) = unpacked(rest)
                if login.get("credentials") != self.server.password:
                    code = "Neo.ClientError.Security.Unauthorized"
                    self.say(FAILURE, {"code": code, "message": "unauthorized"})
                    return
                self.say(SUCCESS, {"server": "Neo4j/5.0.0", "connection_id": "bolt-1"})
            elif kind == RUN:
                query, values, *_ = unpacked(rest)
                self.server.queries.append((query, values))
                if "RETURN" not in query:
                    code = "Neo.ClientError.Statement.SyntaxError"
                    self.say(FAILURE, {"code": code, "message": f"Invalid input '{query[:5]}'"})
                    continue
                left = iter(self.server.records[values["first"] :])
                self.say(SUCCESS, {"fields": self.server.fields, "t_first": 0})
            elif kind == PULL:
                size, more = next(unpacked(rest))["n"], False
                for number, record in enumerate(left, start=1):
                    if self.server.cut_after == 0:
                        self.server.cut_after = None
                        return
                    if self.server.cut_after is not None:
                        self.server.cut_after -= 1
                    self.say(RECORD, record)
                    if more := number == size:
                        break
                self.say(SUCCESS, {"has_more": True} if more else {"type": "r", "db": "neo4j"})
            elif kind == RESET:
                self.say(SUCCESS, {})
            elif kind == GOODBYE:
                return

    def message(self, stream):
        data = b""
        while size := int.from_bytes(stream.read(2)):
            data += stream.read(size)
        return data

    def say(self, kind, value):
        data = bytes([0xB1, kind]) + packed(value)
        self.request.sendall(struct.pack(">H", len(data)) + data + b"\0\0")


@contextmanager
def neo4j_stub(records, *, password="secret", fields=("head", "relation", "tail")):
    """Run one; ``cut_after`` lets it end a stream once, after so many records."""
    with Stub(records, password, list(fields)) as stub:
        threading.Thread(target=stub.serve_forever, daemon=True).start()
        try:
            yield stub
        finally:
            stub.shutdown()


RECORDS = [[f"药 {number:02}", "TREATS", number] for number in range(25)]


@pytest.fixture
def stub(monkeypatch):
    pytest.importorskip("neo4j", reason="no neo4j: pip install 'kbert-lab[neo4j]'")
    monkeypatch.setenv("NEO4J_PASSWORD", SECRET)
    with neo4j_stub(RECORDS, password=SECRET) as stub:
        yield stub


def test_every_relationship_of_neo4j_comes_in_one_stream(stub, capsys):
    done = imported(capsys, stub.address)
    assert (done["triples"], done["fetched"][0]["rows"]) == (25, 25)
    assert Triple("药 03", "TREATS", "3") in load_graph("g.kg")
    [(query, values)] = stub.queries
    assert "coalesce(h.`name`" in query and query.endswith(
        "ORDER BY head, relation, tail SKIP $first"
    )
    assert values == {"first": 0}


def test_after_a_break_neo4j_is_asked_for_the_next_rows(stub, capsys):
    whole = imported(capsys, stub.address, output="whole.kg")
    stub.cut_after = 12
    assert "it was lost" in refused(capsys, stub.address)
    done = imported(capsys, stub.address)
    assert stub.queries[-1][1] == {"first": 11}  # the last one again, to compare it
    assert done["fetched"] == whole["fetched"]
    assert [*load_graph("g.kg")] == [*load_graph("whole.kg")]


def test_what_neo4j_refuses_is_told_without_the_password(stub, capsys, here, monkeypatch):
    (here / "q.cypher").write_text("MATCH (a)")
    assert "Invalid input 'MATCH'" in refused(capsys, stub.address, "--query", "q.cypher")
    stub.fields[2] = "end"
    assert "returns no tail" in refused(capsys, stub.address)
    stub.fields[2] = "tail"
    stub.records = [["a", "R", None], ["b", "R", "c"]]
    said = refused(capsys, stub.address)
    assert "row 1: its tail" in said and "property name, title, label" in said
    assert imported(capsys, stub.address, "--skip-bad")["left_out"] == 1
    monkeypatch.setenv("NEO4J_PASSWORD", f"not {SECRET}")
    said = refused(capsys, stub.address)
    assert "refuses the user or the password" in said and SECRET not in said
    assert "no connection to the server" in refused(capsys, "bolt://127.0.0.1:9")


def test_without_the_driver_its_package_is_named(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "neo4j", None)
    with pytest.raises(MissingPackageError, match="neo4j"), remote.fetched("bolt://h"):
        pass
