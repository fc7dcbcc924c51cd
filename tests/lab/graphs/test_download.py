"""Fetching public graphs, from a server on this machine only."""

import hashlib
import http.server
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest

from kbert_core.errors import FetchError
from kbert_core.files import cache_folder
from kbert_lab.graphs import download as public
from kbert_lab.graphs.download import PUBLIC, fetch

DATA = "糖尿病\t类别\t疾病\n".encode() * 20_000


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@contextmanager
def served(answer):
    """A server on 127.0.0.1 that answers every request so; yields its address and what it got."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            answer(self)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()


def sending(data, announced=None):
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(announced or len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def published(monkeypatch, address, data=DATA):
    graph = replace(
        PUBLIC["medical"], url=f"{address}/Medical.spo", sha256=hashlib.sha256(data).hexdigest()
    )
    monkeypatch.setitem(public.PUBLIC, "medical", graph)
    return graph


def test_a_graph_is_fetched_checked_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_CACHE", str(tmp_path / "cache"))
    with served(sending(DATA)) as (address, requests):
        published(monkeypatch, address)
        target = tmp_path / "new folder" / "kg.spo"
        assert fetch("medical", target) == target
        assert target.read_bytes() == DATA
        assert fetch("medical", target) == target
        assert requests == ["/Medical.spo"]  # the second time it was there already
        assert fetch("medical", tmp_path) == tmp_path / "Medical.spo"
        assert fetch("medical") == tmp_path / "cache" / "Medical.spo"
    monkeypatch.delenv("KBERT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "kbert-lab"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (sending(DATA[:-1]), "not MedicalKG as published"),
        (sending(DATA + b"x"), "not MedicalKG as published"),
        (sending(b"<html>"), "not MedicalKG as published"),
        (sending(DATA[:1000], announced=len(DATA)), "IncompleteRead"),
        (lambda handler: handler.send_error(404), "the server answered 404 Not Found"),
        (lambda handler: time.sleep(2), "timed out"),
    ],
)
@pytest.mark.parametrize("there", [False, True])
def test_another_file_than_published_is_refused_and_what_was_there_stays(
    monkeypatch, tmp_path, answer, message, there
):
    monkeypatch.setattr(public, "TIMEOUT", 0.5)
    target = tmp_path / "kg.spo"
    if there:
        target.write_text("mine\tis\tmine\n", encoding="utf-8")
    with served(answer) as (address, _):
        graph = published(monkeypatch, address)
        with pytest.raises(FetchError, match=message) as caught:
            fetch("medical", target)
    assert graph.url in str(caught.value) and f"--kg {target}" in str(caught.value)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"mine\tis\tmine\n"] * there


def test_without_network_the_message_says_so(monkeypatch, tmp_path):
    with served(sending(DATA)) as (address, _):
        published(monkeypatch, address)
    with pytest.raises(FetchError, match="no network"):  # nobody listens there any more
        fetch("medical", tmp_path / "kg.spo")


def test_a_place_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with served(sending(DATA)) as (address, _):
        published(monkeypatch, address)
        with pytest.raises(FetchError, match="can't be written"):
            fetch("medical", tmp_path / "file" / "kg.spo")


def test_an_unknown_graph_is_refused_and_the_known_ones_are_the_releases_own():
    with pytest.raises(FetchError, match=r"No public graph 'wiki'; there are medical, hownet"):
        fetch("wiki")
    for graph in PUBLIC.values():
        assert graph.url.startswith("https://raw.githubusercontent.com/autoliuweijie/K-BERT/")
        assert len(graph.sha256) == 64
