"""Fetching public graphs, from a server on this machine only."""

import hashlib
import http.server
import threading
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
        PUBLIC["medical"],
        url=f"{address}/Medical.spo",
        sha256=hashlib.sha256(data).hexdigest(),
    )
    monkeypatch.setitem(public.PUBLIC, "medical", graph)
    return graph


def test_a_graph_is_fetched_checked_and_kept(monkeypatch, tmp_path):
    with served(sending(DATA)) as (address, requests):
        published(monkeypatch, address)
        target = tmp_path / "new folder" / "kg.spo"
        assert fetch("medical", target) == target
        assert target.read_bytes() == DATA
        assert fetch("medical", target) == target
        assert requests == ["/Medical.spo"]  # the second time it was there already


def test_a_folder_gets_the_file_under_its_own_name(monkeypatch, tmp_path):
    with served(sending(DATA)) as (address, _):
        published(monkeypatch, address)
        assert fetch("medical", tmp_path) == tmp_path / "Medical.spo"


def test_without_a_place_a_graph_goes_to_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_CACHE", str(tmp_path))
    with served(sending(DATA)) as (address, _):
        published(monkeypatch, address)
        assert fetch("medical") == tmp_path / "Medical.spo"
    monkeypatch.delenv("KBERT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "kbert-lab"


@pytest.mark.parametrize("sent", [DATA[:-1], DATA + b"x", b"<html>", DATA * 3])
def test_another_file_than_published_is_refused_and_nothing_is_left(monkeypatch, tmp_path, sent):
    with served(sending(sent)) as (address, _):
        graph = published(monkeypatch, address)
        with pytest.raises(FetchError, match="not MedicalKG as published") as caught:
            fetch("medical", tmp_path / "kg.spo")
    assert graph.url in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_breaks_off_is_refused(monkeypatch, tmp_path):
    with served(sending(DATA[:1000], announced=len(DATA))) as (address, _):
        published(monkeypatch, address)
        with pytest.raises(FetchError):
            fetch("medical", tmp_path / "kg.spo")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_there_stays_when_fetching_fails(monkeypatch, tmp_path):
    target = tmp_path / "kg.spo"
    target.write_text("mine\tis\tmine\n", encoding="utf-8")
    with served(sending(b"other")) as (address, _):
        published(monkeypatch, address)
        with pytest.raises(FetchError):
            fetch("medical", target)
    assert target.read_text(encoding="utf-8") == "mine\tis\tmine\n"


def test_without_network_the_message_says_what_to_do(monkeypatch, tmp_path):
    with served(sending(DATA)) as (address, _):
        graph = published(monkeypatch, address)
    target = tmp_path / "kg.spo"
    with pytest.raises(FetchError) as caught:  # nobody listens at that address any more
        fetch("medical", target)
    text = str(caught.value)
    assert "no network" in text
    assert graph.url in text
    assert f"--kg {target}" in text


def test_an_answer_of_the_server_is_named(monkeypatch, tmp_path):
    with served(lambda handler: handler.send_error(404)) as (address, _):
        published(monkeypatch, address)
        with pytest.raises(FetchError, match="the server answered 404 Not Found"):
            fetch("medical", tmp_path / "kg.spo")


def test_a_silent_server_is_given_up(monkeypatch, tmp_path):
    hold = threading.Event()
    monkeypatch.setattr(public, "TIMEOUT", 0.2)
    with served(lambda handler: hold.wait(20)) as (address, _):
        published(monkeypatch, address)
        with pytest.raises(FetchError, match="timed out"):
            fetch("medical", tmp_path / "kg.spo")
        hold.set()


def test_a_place_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with served(sending(DATA)) as (address, _):
        published(monkeypatch, address)
        with pytest.raises(FetchError, match="can't be written"):
            fetch("medical", tmp_path / "file" / "kg.spo")


def test_an_unknown_graph_is_refused():
    with pytest.raises(FetchError, match=r"No public graph 'wiki'; there are medical, hownet"):
        fetch("wiki")


def test_the_published_addresses_are_the_releases_own():
    for graph in PUBLIC.values():
        assert graph.url.startswith("https://raw.githubusercontent.com/autoliuweijie/K-BERT/")
        assert len(graph.sha256) == 64
