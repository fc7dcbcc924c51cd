"""What SECURITY.md says is so: its examples run, its numbers are the code's, its promises hold."""

import base64
import re
import shutil
import socket
import ssl
import subprocess
import time
import tomllib
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import datasets
import pytest
from load.visitor import Visitor
from served import HOST
from websockets.exceptions import InvalidStatus

from app import audits, background, export, services
from app.app_pages import long_run
from kbert_lab.lab import commands, share, workspaces

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
CONFIG = tomllib.loads((ROOT / "app" / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
EXAMPLES = dict(re.findall(r"```(nginx|caddy)\n(.*?)```", PAGE, flags=re.DOTALL))
ELSEWHERE = {  # what the page says → the test that shows it
    "it is text everywhere": "tests/browser/test_lab.py::markup_stays_text",
    "with an apostrophe before it": "tests/core/knowledge/io/test_writers.py::no_cell_of_a_csv",
    "any bytes give a scene": "tests/app/test_app_share.py::bytes",
    "read from safetensors only": "tests/core/checkpoints/test_checkpoint.py::not_whole",
    "never run, nor offered at a prompt": "tests/core/checkpoints/test_checkpoint.py::never_run",
    "looked up, never imported": "tests/core/checkpoints/test_adapters.py::none_of_its_code_runs",
    "refused in one plain sentence": "tests/core/checkpoints/test_checkpoint.py::at_random",
    "only a browser on this machine": "tests/app/test_app_local.py::from_here",
    "steps of long runs share": "tests/app/test_app_background.py::no_more_steps",
    "A visitor's sentence is not logged": "tests/app/test_app_logs.py::nothing",
    "Nothing of a sentence is ever written to disk": "tests/app/test_app_logs.py::nothing",
    "readable by the app's user": "tests/app/test_app_knowledge.py::no_name_or_list",
    "Twenty visitors": "tests/load/test_crowd.py::twenty_visitors",
    "Nothing is sent anywhere": "tests/browser/test_every_page.py::calm",
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def page_says(text):
    return re.sub(r"\s+", " ", text) in re.sub(r"\s+", " ", PAGE)


# Its promises


@pytest.mark.parametrize("said", ELSEWHERE)
def test_a_promise_is_on_the_page_and_its_test_is_there(said):
    file, name = ELSEWHERE[said].split("::")
    assert page_says(said)
    source = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf"^def test_\w*{name}", source, flags=re.MULTILINE), ELSEWHERE[said]


def test_the_app_is_for_this_machine_alone_unless_told_otherwise():
    assert CONFIG["server"]["address"] == "127.0.0.1"
    assert CONFIG["server"]["enableXsrfProtection"] is True
    assert CONFIG["browser"]["gatherUsageStats"] is False
    assert CONFIG["client"]["showErrorDetails"] == "none"
    assert "enableCORS" not in CONFIG["server"]  # on, as it comes
    assert "enableAgentApi" not in CONFIG["server"]  # off, as it comes
    assert "enableStaticServing" not in CONFIG["server"]


def test_the_numbers_are_those_of_the_code(monkeypatch):
    monkeypatch.setenv(workspaces.MEGABYTES, "much")
    with pytest.raises(workspaces.WorkspaceError, match=r"leave it away for 4096\."):
        workspaces.check_room()
    mb = 1 << 20
    each = services.MOST_OF_VISIT // services.TRIPLE_BYTES
    kept = {name: getattr(services, f"_{name}").most // mb for name in ("traces", "maps", "states")}
    loaded = {name: getattr(services, f"_{name}").most // mb for name in ("graphs", "searches")}
    for said in (
        f"{CONFIG['server']['maxUploadSize']} MB as uploaded",
        f"{services.MOST_BYTES // mb} MB unpacked",
        f"one visit may hold {each // 1000},000 triples",
        f"at most {share.MOST_CHARACTERS:,} characters, {share.MOST_UNPACKED // 1024} kB unpacked",
        f"| a sentence | {services.LONGEST_TEXT:,} characters",
        f"| graphs that a visit uploads | {services.MOST_OF_VISIT // mb} MB of memory "
        f"(about {services.TRIPLE_BYTES / 1000} kB a triple)",
        f"| edits of a visit | {commands.MOST_EDITS:,} |",
        f"| {background.MOST_EACH}, {background.MOST_RUNS}; a run that nobody looks at for "
        f"{background.PATIENCE / 60:.0f} minutes ends |",
        f"traces, attention maps, hidden states | {kept['traces']} MB, {kept['maps']} MB, "
        f"{kept['states']} MB |",
        f"their indexes | {loaded['graphs']} MB, {loaded['searches']} MB |",
        f"(`server.maxCacheDataSize`) | {CONFIG['server']['maxCacheDataSize'][:-2]} MB |",
        f"| one message to or from a page | {CONFIG['server']['maxMessageSize']} MB |",
        "| what workspaces may take on disk together | 4096 |",
    ):
        assert page_says(said), said
    assert 60 + long_run.PAUSE < background.PATIENCE  # a hidden tab looks once a minute


def test_every_variable_of_the_app_is_on_the_page_and_no_other():
    parts = (ROOT / "app", ROOT / "kbert_lab" / "lab")
    files = [path for part in parts for path in part.rglob("*.py")]
    source = "".join(path.read_text(encoding="utf-8") for path in files)
    known = set(re.findall(r'"(KBERT_[A-Z_]+)"', source))
    elsewhere = {"KBERT_LANGUAGE"}  # of the interface: no matter of security
    assert set(re.findall(r"`(KBERT_[A-Z_]+)`", PAGE)) == known - elsewhere


def test_an_uploaded_data_set_is_read_without_a_cache_on_disk(monkeypatch):
    monkeypatch.setattr(datasets, "load_dataset", lambda *_: pytest.fail("it went to disk"))
    rows = b"label\ttext_a\n1\tgood\n0\tbad\n1\tfine\n"
    read = audits.uploaded([("train.tsv", rows)], "classify")
    assert len(read.splits["train"]) == 3


def test_an_uploaded_data_set_is_written_nowhere_but_into_its_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(audits.tempfile, "tempdir", str(tmp_path / "deep"))
    (tmp_path / "deep").mkdir()
    audits.uploaded([("../../train.tsv", b"label\ttext_a\n1\tgood\n0\tbad\n")], "classify")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_downloads_of_graphs_are_made_in_memory_or_removed(tmp_path, monkeypatch):
    from kbert_core import KnowledgeGraph, Triple

    monkeypatch.setattr(export.tempfile, "tempdir", str(tmp_path))
    assert b"geheim" in export.graph_as(KnowledgeGraph([Triple("geheim", "is", "it")]), ".spo")
    assert list(tmp_path.rglob("*")) == []


# The server, as a page or a program finds it


@pytest.fixture
def server(app_for_many):
    return replace(app_for_many, url=app_for_many.url.replace("localhost", "127.0.0.1"))


def refused(stream, origin):
    """Whether a connection is refused."""
    try:
        with Visitor(stream, origin=origin):
            return False
    except InvalidStatus as error:
        return error.response.status_code == 403


def test_a_page_from_elsewhere_cannot_speak_with_the_app(server):
    named = server.stream.replace("127.0.0.1", "localhost")
    its_own = named.replace("ws", "http", 1).removesuffix("/lab/_stcore/stream")
    assert not refused(named, its_own)
    assert refused(named, "https://evil.example")
    other_name = server.stream  # 127.0.0.1: as good as a foreign name that leads here
    assert refused(other_name, its_own.replace("localhost", "127.0.0.1"))


def asked(url, method="GET", data=None, context=None, **headers):
    """(status, headers) of an answer."""
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            return answer.status, dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers)


def test_an_upload_needs_a_token(server):
    status, _ = asked(f"{server.url}/_stcore/upload_file/session/file", "PUT", b"data")
    assert status == 403


def test_no_other_program_drives_the_app(server):
    for place in ("mcp", "interact"):
        status, _ = asked(f"{server.url}/_stcore/agent/{place}", "POST", b"{}")
        assert status >= 400, place


# The proxies


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("no openssl")
    folder = tmp_path_factory.mktemp("certificate")
    pem, key = folder / "lab.pem", folder / "lab.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-out", str(pem), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    return pem, key


def nginx(folder, port, server, certificate):
    """Write the page's example, with this machine's places in it, and return how to start it."""
    password = subprocess.run(
        ["openssl", "passwd", "-apr1", "secret"], check=True, capture_output=True, text=True
    ).stdout.strip()
    (folder / "htpasswd").write_text(f"anna:{password}\n", encoding="utf-8")
    example = EXAMPLES["nginx"]
    for was, now in {
        f"server_name {HOST}": "server_name localhost",
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/ssl/lab.example.org.pem": str(certificate[0]),
        "/etc/ssl/lab.example.org.key": str(certificate[1]),
        "/etc/nginx/lab.htpasswd": str(folder / "htpasswd"),
        "/var/log/nginx/": f"{folder}/",
        "http://127.0.0.1:8501": server.url.removesuffix("/lab"),
    }.items():
        assert was in example, was
        example = example.replace(was, now)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/start.log; events {{}}\n"
        f"{'user root;' if shutil.os.getuid() == 0 else ''}\nhttp {{ {places}\n{example} }}\n",
        encoding="utf-8",
    )
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]


def caddy(folder, port, server, certificate):
    """The same for the other example."""
    hashed = subprocess.run(
        ["caddy", "hash-password", "--plaintext", "secret"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    example = EXAMPLES["caddy"]
    for was, now in {
        f"{HOST} {{": f"https://localhost:{port} {{\n    bind 127.0.0.1\n"
        f"    tls {certificate[0]} {certificate[1]}",
        "$2a$14$the.hash.that.caddy.hash-password.gives": hashed,
        "127.0.0.1:8501": server.url.removeprefix("http://").removesuffix("/lab"),
        "/var/log/caddy/": f"{folder}/",
    }.items():
        assert was in example, was
        example = example.replace(was, now, 1)
    start = "{\n    admin off\n    auto_https disable_redirects\n}\n"
    (folder / "Caddyfile").write_text(start + example, encoding="utf-8")
    return ["caddy", "run", "--config", str(folder / "Caddyfile")]


@pytest.fixture(params=[nginx, caddy], ids=["nginx", "caddy"])
def proxy(request, tmp_path, server, certificate):
    """The app behind a proxy: its port and its log."""
    if not shutil.which(request.param.__name__):
        pytest.skip(f"no {request.param.__name__}")
    port = free_port()
    command = request.param(tmp_path, port, server, certificate)
    with (tmp_path / "out").open("wb") as out:
        running = subprocess.Popen(command, stdout=out, stderr=out, cwd=tmp_path)
    try:
        for _ in range(100):
            assert running.poll() is None, (tmp_path / "out").read_text()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield port, tmp_path / "lab.log"
    finally:
        running.terminate()
        running.wait(10)


def too_large_is_refused(ask, login):
    """Whether an upload above the limit gets nowhere.

    nginx answers. Caddy hangs up in the middle, if the app hasn't refused a stranger's
    upload before (403).
    """
    try:
        return ask("_stcore/upload_file/s/f", "PUT", b"x" * (22 << 20), **login)[0] in (413, 403)
    except urllib.error.URLError:
        return True


def test_behind_a_proxy_the_app_works_for_those_who_may_and_keeps_to_itself(proxy):
    port, log = proxy
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    login = {"Authorization": "Basic " + base64.b64encode(b"anna:secret").decode()}

    def ask(path, method="GET", data=None, **headers):
        return asked(f"https://localhost:{port}/lab/{path}", method, data, context, **headers)

    assert ask("")[0] == 401
    status, headers = ask("?scene=geheim&workspace=geheim", **login)
    assert status == 200
    given = {name.lower(): value for name, value in headers.items()}
    assert given["x-frame-options"] == "SAMEORIGIN"
    assert given["referrer-policy"] == "same-origin"
    assert given["x-content-type-options"] == "nosniff"
    assert ask("_stcore/metrics", **login)[0] == 403
    assert too_large_is_refused(ask, login)

    with Visitor(
        f"wss://localhost:{port}/lab/_stcore/stream",
        headers=login,
        ssl=context,
        origin=f"https://localhost:{port}",
    ) as page:
        page.open()
        assert page.tree()
        page.press("lab.open_graph")
        assert page.has("lab.encoding")
        assert not page.has("lab.path")
        assert not page.has("lab.open_model")
    time.sleep(0.5)
    written = log.read_text(encoding="utf-8")
    assert "/lab/" in written
    assert "geheim" not in written
