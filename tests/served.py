"""The app as a real server on a free port of this machine, for tests that visit it."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[1]
HOST = "lab.example.org"  # in the examples of SECURITY.md; here it is localhost


@dataclass(frozen=True)
class Server:
    """A running app.

    Attributes:
        url: where it answers, with its base path, without a slash at its end.
        process: to be asked how much memory it takes.
        log: the file that has all it wrote.
    """

    url: str
    process: psutil.Process
    log: Path

    @property
    def stream(self) -> str:
        """Where its pages connect to."""
        return self.url.replace("http", "ws", 1) + "/_stcore/stream"

    def written(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def megabytes(self) -> float:
        """Memory that is this process's own or shared, as the system counts it."""
        return self.process.memory_info().rss / 2**20


@contextmanager
def served(
    folder: Path,
    *options: str,
    script: str = "app/main.py",
    command: Sequence[str] = (),
    cwd: Path = ROOT,
    **environment: str,
) -> Iterator[Server]:
    """Start the app, wait until it answers, and end it afterwards.

    Args:
        folder: for its workspaces and its log.
        options: of `streamlit run`.
        script: another one than the app's.
        command: another one than `streamlit run`, options included.
        cwd: the folder it is started in.
        environment: further variables.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*(command or (sys.executable, "-m", "streamlit", "run", script)), *options]
    variables = {
        **os.environ,
        "STREAMLIT_SERVER_PORT": str(port),
        "STREAMLIT_SERVER_HEADLESS": "true",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "KBERT_WORKSPACES": str(folder / "workspaces"),
        **environment,
    }
    base = next((o.split("=", 1)[1] for o in options if o.startswith("--server.baseUrlPath=")), "")
    url = f"http://127.0.0.1:{port}/{base}".rstrip("/")
    log = folder / "server.log"
    with (
        log.open("wb") as written,
        subprocess.Popen(
            command, cwd=cwd, env=variables, stdout=written, stderr=subprocess.STDOUT
        ) as running,
    ):
        server = Server(url, psutil.Process(running.pid), log)
        try:
            _wait_for(server, running)
            yield server
        finally:
            running.terminate()
            try:
                running.wait(20)
            except subprocess.TimeoutExpired:
                running.kill()


def _wait_for(server: Server, running: subprocess.Popen) -> None:
    for _ in range(240):
        try:
            with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.5)
        if running.poll() is not None:
            raise AssertionError(
                f"the app did not start: exit status {running.returncode}\n{server.written()}"
            )
    raise AssertionError("the app did not answer within two minutes")


@pytest.fixture(scope="session")
def app_here(tmp_path_factory):
    """The app as who sits at this machine starts it; all tests that visit it share it.

    It logs all that it can.
    """
    folder = tmp_path_factory.mktemp("app")
    environment = {"OMP_NUM_THREADS": "1", "KBERT_OPEN_PATHS": "", **_home(folder)}
    with served(folder, "--logger.level=debug", **environment) as server:
        yield server


def _home(folder: Path) -> dict[str, str]:
    """A home in a folder, with caches and temporary files."""
    home = folder / "home"
    home.mkdir()
    return dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME"), str(home))


@pytest.fixture(scope="session")
def app_for_many(tmp_path_factory):
    """The app as SECURITY.md starts it for visitors from elsewhere; it logs all that it can."""
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"```console\n(.*?)```", page, flags=re.DOTALL)
    options = re.findall(r"--server\.\S+", command.replace(HOST, "localhost"))
    environment = dict(re.findall(r"(KBERT_\w+)=(\S+)", command))
    folder = tmp_path_factory.mktemp("many")
    environment |= {"KBERT_WORKSPACES": str(folder / "workspaces"), "KBERT_LANGUAGE": "en"}
    environment |= {"OMP_NUM_THREADS": "1", **_home(folder)}
    with served(folder, *options, "--logger.level=debug", **environment) as server:
        yield replace(server, url=server.url.replace("127.0.0.1", "localhost"))
