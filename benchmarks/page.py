"""The pages without a server: bytes to load, and milliseconds from a click to what it gives.

The pages are served to headless Chromium on this machine. The slower processor is Chromium's own
throttle, which slows a page's first thread alone, so the page runs the model there.
"""

import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.common import machine, print_table, write
from kbert_lab.lab.page.build import PAGES, build

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # the same browser as in the tests

from browser.conftest import ARGUMENTS, PLAYED, chromium

SLOWER = 4
LINE = 1.6  # megabits per second, of a slow line
CLICK = """async (number) => {
    const place = document.querySelector('#prediction'), begun = performance.now();
    const drawn = new Promise((made) =>
        new MutationObserver(made).observe(place, {childList: true}));
    document.querySelectorAll('[data-switch]')[number]
        .dispatchEvent(new MouseEvent('click', {bubbles: true}));
    await drawn;
    return performance.now() - begun;
}"""
SIZE = """() => performance.getEntriesByType('resource').filter((one) => !one.name.endsWith('.bin'))
    .reduce((sum, one) => sum + one.decodedBodySize, 0)"""
LOADED = "() => performance.getEntriesByName('kbert-model').length > 0"
ALONE = f"{PLAYED}; delete window.Worker"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: Any) -> None:
        """Keep still."""


def opened(browser: Browser, address: str, script: str, slower: int) -> Page:
    """A page that is ready."""
    page = browser.new_page()
    page.add_init_script(script)
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    return page


def measured(browser: Browser, address: str, folder: Path) -> dict[str, Any]:
    """The figures of a language."""
    layers = folder / "layers.bin"
    words = sum(path.stat().st_size for path in folder.glob("words-*.bin"))
    figures: dict[str, Any] = {"layers": layers.stat().st_size, "words": words}
    for slower, script in ((1, PLAYED), (SLOWER, ALONE)):
        page = opened(browser, address, script, slower)
        figures.setdefault("first sight", page.evaluate(SIZE))
        stored = page.evaluate(CLICK, 0)
        page.wait_for_function(LOADED, timeout=120_000)
        page.locator("#examples button").last.click()
        page.wait_for_function("() => document.querySelectorAll('#tree [data-switch]').length > 4")
        page.wait_for_timeout(8_000)  # what is shown is read by now, and the words have come
        tokens = page.evaluate("document.querySelector('#matrix').dataset.n")
        flips = [page.evaluate(CLICK, number) for number in range(5)]
        figures[f"{slower}"] = {
            "stored": stored,
            "flip": median(flips),
            "tokens": int(tokens),
        }
        page.close()
    return figures


def main() -> None:
    """Measure both pages, and keep the result."""
    rows, result = [["", "first sight", "model", "stored", "flip", "slower"]], {}
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        build(folder)
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=name))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        for language, page in PAGES.items():
            address = f"http://127.0.0.1:{server.server_port}/{page}"
            result[language] = own = measured(browser, address, folder / language)
            numbers = own["first sight"], own["layers"], own["1"]["stored"], own["1"]["flip"]
            rows.append([language, *(f"{x:,.0f}" for x in (*numbers, own[str(SLOWER)]["flip"]))])
        browser.close()
        server.shutdown()
    print_table(rows)
    write("page.json", {"machine": machine(), "slower": SLOWER, "line": LINE, "pages": result})


if __name__ == "__main__":
    main()
