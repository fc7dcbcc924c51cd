"""What a person waits for in the app: milliseconds from the hand to the screen.

A real server with the default model, headless Chromium, the first example. The
time runs from the event in the browser (a key, a click, a movement) to the first
frame that shows what came of it. No edit is made twice, so nothing is found in a
cache. Aims are those of the design.

To measure another action, add an ``Action`` to ``ACTIONS``.
"""

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright

from benchmarks.common import machine, print_table, write

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the same hands and the same server as in the tests

from browser.conftest import ARGUMENTS, chromium  # noqa: E402
from browser.lab import LINKS, TRIES, Lab  # noqa: E402
from load.visitor import Visitor  # noqa: E402
from served import Server, served  # noqa: E402

ILLNESSES = ("肺结核", "糖尿病", "肺癌", "肝癌", "甲亢", "冠心病", "高血压", "骨折")
TAIL = 3  # column of the table of triples
SIGNS = {  # what is looked at on the page, by name
    "tree": "deep('.kb-tree')?.innerText",
    "matrix": "deep('.root[data-sum]')?.dataset.tokens",
    "prediction": "deep('.kb-ner')?.innerText",
    "cell": "deep('.st-key-lab_cell')?.innerText",
    "tip": "deep('.tip')?.innerText",
    "effects": "deep('.st-key-explain-tokens')?.innerText",  # below them, once all are measured
}
ARM = """([event, signs]) => {
    const known = {};  // looking through all shadow roots in every frame would slow what is timed
    const deep = (selector) => {
        if (known[selector]?.isConnected) return known[selector];
        const roots = [document];
        for (const root of roots) {
            const found = root.querySelector(selector);
            if (found) return known[selector] = found;
            for (const element of root.querySelectorAll('*')) {
                if (element.shadowRoot) roots.push(element.shadowRoot);
            }
        }
    };
    const looks = signs.map((sign) => new Function('deep', `return ${sign}`));
    const before = looks.map((look) => look(deep));
    const changed = looks.map(() => null);
    let begun = event === 'navigation' ? 0 : null;
    if (begun === null) {
        const begin = (input) => { begun = input.timeStamp; };
        window.addEventListener(event, begin, {capture: true, once: true});
    }
    window.kbertDone = new Promise((resolve, reject) => {
        setTimeout(() => reject(`nothing came of ${event}: ${changed}`), 60000);
        const look = () => {
            looks.forEach((value, i) => {
                const now = value(deep);
                if (changed[i] === null && now !== undefined && now !== before[i]) {
                    changed[i] = performance.now();
                }
            });
            if (begun !== null && changed.every((time) => time !== null)) {
                resolve(changed.map((time) => time - begun));
            } else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    });
}"""


@dataclass(frozen=True)
class Action:
    """Something a person does.

    Attributes:
        name: in words.
        aims: median and 95th percentile that the design wants, ms.
        do: does it once, given the page and the number of the repeat; returns ms.
        repeats: how often, as a share of what is asked for.
    """

    name: str
    aims: tuple[int, int]
    do: Callable[[Lab, int], float]
    repeats: float = 1.0


def timed(lab: Lab, event: str, signs: tuple[str, ...], act: Callable[[], object]) -> list[float]:
    """Milliseconds from an event to the change of each sign, once ``act`` has made it."""
    lab.page.evaluate(ARM, [event, [SIGNS[sign] for sign in signs]])
    act()
    return lab.page.evaluate("() => window.kbertDone")


# What is done


def hover(lab: Lab, turn: int) -> float:
    """Move over another cell of the matrix."""
    x, y = cell_at(lab, 2 + turn % 9, 3 + turn % 7)
    lab.page.mouse.move(5, 5)
    lab.page.wait_for_timeout(100)
    (took,) = timed(lab, "mousemove", ("tip",), lambda: lab.page.mouse.move(x, y))
    return took


def select(lab: Lab, turn: int) -> float:
    """Click a cell of the matrix."""
    x, y = cell_at(lab, 2 + turn % 9, 1 + turn % 7)
    lab.page.mouse.move(x, y)
    (took,) = timed(lab, "click", ("cell",), lambda: lab.page.mouse.click(x, y))
    lab.settle()
    return took


def rewrite(lab: Lab, turn: int, *signs: str) -> float:
    """Type another tail into the first triple of the table."""
    page = lab.page
    for _ in range(TRIES):  # the grid may need a moment before it takes the keys
        lab._go_to(TAIL, 0)
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        if page.locator(".gdg-input").count():
            break
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(f"{'疾病' if turn % 2 else '治疗'}{os.urandom(3).hex()}")
    page.wait_for_timeout(100)
    took = timed(lab, "keydown", signs, lambda: page.keyboard.press("Enter"))
    lab.settle()
    return max(took)


def edit_to_tree(lab: Lab, turn: int) -> float:
    return rewrite(lab, turn, "tree", "matrix")


def edit_to_prediction(lab: Lab, turn: int) -> float:
    return rewrite(lab, turn, "prediction")


def leave_one_out(lab: Lab, turn: int) -> float:
    """Go to Explain with a text of sixteen triples that was never read before."""
    lab.go("Lab")
    lab.write(f"第{turn}次{os.urandom(3).hex()}：{'、'.join(ILLNESSES)}")
    assert len(lab.branches()) == 2 * len(ILLNESSES)
    link = lab.page.locator(LINKS).get_by_text("Explain", exact=True).first
    link.hover()
    (took,) = timed(lab, "click", ("effects",), link.click)
    lab.settle()
    return took


def first_paint(lab: Lab, turn: int) -> float:
    """Open the app as a new visitor, whose browser has nothing of it."""
    del turn
    context = lab.page.context.browser.new_context(viewport={"width": 1400, "height": 1100})
    try:
        page = context.new_page()
        page.set_default_timeout(180_000)
        page.goto(lab.address, wait_until="commit")
        signs = [SIGNS[sign] for sign in ("tree", "matrix", "prediction")]
        page.evaluate(ARM, ["navigation", signs])
        return max(page.evaluate("() => window.kbertDone"))
    finally:
        context.close()


def cell_at(lab: Lab, row: int, column: int) -> tuple[float, float]:
    """Where the middle of a cell of the matrix is."""
    canvas = lab.page.locator("canvas.over")
    canvas.scroll_into_view_if_needed()
    frame = canvas.bounding_box()
    place = lab.page.locator(".root[data-sum]")
    cell, left, top = (float(place.get_attribute(f"data-{k}")) for k in ("cell", "left", "top"))
    return frame["x"] + left + (column + 0.5) * cell, frame["y"] + top + (row + 0.5) * cell


ACTIONS = (
    Action("move over the matrix", (16, 50), hover),
    Action("choose a cell, all panels follow", (150, 300), select),
    Action("edit a triple, see tree and matrix", (250, 400), edit_to_tree),
    Action("edit a triple, see the new prediction", (400, 800), edit_to_prediction),
    Action("effects of 16 triples, left out and deleted", (1000, 2000), leave_one_out, 0.5),
    Action("open the app, models warm", (2000, 4000), first_paint, 0.4),
)


# Measuring


@contextmanager
def others(server: Server, count: int) -> Iterator[None]:
    """Other visitors, with the app open and doing nothing, as most are most of the time."""
    visitors = [Visitor(server.stream) for _ in range(count)]
    try:
        for visitor in visitors:
            visitor.open()
        yield
    finally:
        for visitor in visitors:
            visitor.__exit__()


def measured(browser: Browser, server: Server, repeats: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for action in ACTIONS:
        context = browser.new_context(viewport={"width": 1400, "height": 1100})
        context.set_default_timeout(120_000)
        lab = Lab(context.new_page(), server.url)
        lab.open("?lang=en")
        count = max(5, round(repeats * action.repeats))
        action.do(lab, 0)  # the first is not counted
        times = sorted(action.do(lab, turn) for turn in range(1, count + 1))
        context.close()
        rows.append(
            {
                "action": action.name,
                "repeats": count,
                "median_ms": round(median(times), 1),
                "p95_ms": round(times[math.ceil(0.95 * count) - 1], 1),
                "aim_median_ms": action.aims[0],
                "aim_p95_ms": action.aims[1],
            }
        )
        print(f"{action.name}: {rows[-1]['median_ms']} ms", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--others", type=int, default=0, help="visitors with a page open besides")
    args = parser.parse_args()
    load, began = os.getloadavg()[0], time.monotonic()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = chromium() or playwright.chromium.executable_path
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        with served(Path(folder)) as server, others(server, args.others):
            rows = measured(browser, server, args.repeats)
        browser.close()
    columns = ("action", "median_ms", "p95_ms", "aim_median_ms", "aim_p95_ms")
    print_table([columns, *([str(row[name]) for name in columns] for row in rows)])
    write(
        "latency.json",
        {
            "what": "from an event in the browser to the frame that shows its result",
            "machine": machine("streamlit", "torch", "transformers", "playwright"),
            "model": "medical-ner-kbert",
            "other visitors": args.others,
            "load before, 1 minute": round(load, 2),
            "seconds": round(time.monotonic() - began),
            "rows": rows,
        },
    )


if __name__ == "__main__":
    main()
