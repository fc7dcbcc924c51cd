"""One server and one Chromium for all journeys."""

import shutil
from pathlib import Path

import pytest

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
# Streamlit's waiting signs move, and every frame of them is drawn by the processor.
STILL = """const still = new CSSStyleSheet();
const all = "*, ::before, ::after";
still.replaceSync(`${all} { animation: none !important; transition: none !important }`);
document.adoptedStyleSheets.push(still);"""
PLAYED = 'localStorage.getItem("kbert-play") ?? localStorage.setItem("kbert-play", "seen")'


def chromium() -> str | None:
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        found = shutil.which(name)
        if found:
            return found
    return None


@pytest.fixture(scope="session")
def address(app_here):
    return app_here.url


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


class Visitors:
    """Open pages, kept from test to test: a new one has to load and compile all that is Streamlit.

    Going to the address again begins a new visit: another session, nothing typed or chosen.
    """

    def __init__(self, browser, address):
        self._browser, self._address = browser, address
        self._kept = {}

    def lab(self, number, width, height, scheme, locale):
        """The page of the first, second, ... visitor who reads a language."""
        from .lab import Lab

        if (number, locale) not in self._kept:
            context = self._browser.new_context(locale=locale, accept_downloads=True)
            context.set_default_timeout(PATIENCE)
            context.add_init_script(f"{{ {STILL} }}")
            context.add_init_script(PLAYED)
            self._kept[number, locale] = Lab(context.new_page(), self._address)
        lab = self._kept[number, locale]
        lab.page.set_viewport_size({"width": width, "height": height})
        lab.page.emulate_media(color_scheme=scheme)
        lab.errors.clear()
        lab.outside.clear()
        return lab


@pytest.fixture(scope="session")
def visitors(browser, address):
    return Visitors(browser, address)


@pytest.fixture
def visit(visitors):
    """Open the app as a new visitor; afterwards nothing may have gone wrong."""
    opened = []

    def open_lab(
        width=1400, height=1100, scheme="light", path="", shows=".kb-tree", locale="en-US"
    ):
        lab = visitors.lab(len(opened), width, height, scheme, locale)
        opened.append(lab)
        place, _, query = path.partition("?")
        known = any(name in query for name in ("example=", "scene=", "s=", "workspace="))
        if locale == "en-US" and not known:  # most journeys edit its triples
            query = "&".join(filter(None, (query, "example=gastroscopy")))
        lab.open(f"{place}?{query}", shows)
        return lab

    yield open_lab
    assert [wrong for lab in opened for wrong in (*lab.errors, *lab.outside)] == []


@pytest.fixture
def lab(visit):
    return visit()
