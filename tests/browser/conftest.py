"""One server and one Chromium for all journeys."""

import shutil
from pathlib import Path

import pytest
from served import served

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
    with served(tmp_path_factory.mktemp("app")) as server:
        yield server.url


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

    def open_lab(
        width=1400, height=1100, scheme="light", path="", shows=".kb-tree", locale="en-US"
    ):
        from .lab import Lab

        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            locale=locale,
            accept_downloads=True,
        )
        context.set_default_timeout(PATIENCE)
        lab = Lab(context.new_page(), address)
        opened.append((context, lab))
        lab.open(path, shows)
        return lab

    yield open_lab
    for context, lab in opened:
        context.close()
        assert lab.errors == []
        assert lab.outside == []


@pytest.fixture
def lab(visit):
    return visit()
