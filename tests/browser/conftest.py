"""One server and one Chromium for all journeys."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60_000  # ms; about ten times what a quiet machine needs
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
]


def chromium() -> str | None:
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        found = shutil.which(name)
        if found:
            return found
    return None


def pytest_collection_modifyitems(items):
    """A journey gets a second try: a busy machine may starve the browser. The report says so."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """The app, on a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app/main.py"]
    command += ["--server.port", str(port), "--server.headless", "true"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    environment["KBERT_WORKSPACES"] = str(tmp_path_factory.mktemp("workspaces"))
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        url = f"http://127.0.0.1:{port}"
        try:
            for _ in range(240):
                try:
                    with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as answer:
                        if answer.status == 200:
                            break
                except OSError:
                    time.sleep(0.5)
                if server.poll() is not None:
                    pytest.fail(f"the app did not start: exit status {server.returncode}")
            else:
                pytest.fail("the app did not answer within two minutes")
            yield url
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = chromium()
    with sync_api.sync_playwright() as playwright:
        if path is None:
            built_in = Path(playwright.chromium.executable_path)
            if not built_in.is_file():
                pytest.skip("no Chromium: install it with `apt-get install chromium`")
            path = str(built_in)
        opened = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, address):
    """Open the app as a new visitor; afterwards nothing may have gone wrong."""
    opened = []

    def open_lab(width=1400, height=1100, scheme="light", path=""):
        from .lab import Lab

        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            accept_downloads=True,
        )
        context.set_default_timeout(PATIENCE)
        lab = Lab(context.new_page(), address)
        opened.append((context, lab))
        lab.open(path)
        return lab

    yield open_lab
    for context, lab in opened:
        context.close()
        assert lab.errors == []
        assert lab.outside == []


@pytest.fixture
def lab(visit):
    return visit()
