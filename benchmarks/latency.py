"""What a person waits for in the app: milliseconds from the hand to the screen.

A real server with the default model, headless Chromium, a Chinese clinical sentence. The
time runs from the event in the browser (a key, a click, a movement) to the first
frame that shows what came of it. No edit is made twice, so nothing is found in a
cache. Processor time is that of server and browser together, until the page rests. It
refuses to measure on a machine that does something else.

To measure another action, add an ``Action`` to ``ACTIONS``.
"""

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import psutil
from playwright.sync_api import Browser, sync_playwright

from benchmarks.common import machine, print_table, write

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the same hands and the same server as in the tests

from browser.conftest import ARGUMENTS, PLAYED, chromium  # noqa: E402
from browser.lab import LINKS, Lab  # noqa: E402
from load.visitor import Visitor  # noqa: E402
from served import Server, served  # noqa: E402

ILLNESSES = ("肺结核", "糖尿病", "肺癌", "肝癌", "甲亢", "冠心病", "高血压", "骨折")
MOST_LOAD = 0.5  # of a core, of other work
SIGNS = {  # what is looked at on the page, by name
    "tree": "deep('.kb-tree')?.innerText",
    "matrix": "deep('.root[data-sum]')?.dataset.tokens",
    "prediction": "deep('.kb-ner')?.innerText",
    "framed": "deep('.root[data-sum] .said')?.innerText",
    "cell": "deep('.root[data-sum] .why')?.innerText",
    "tip": "deep('.tip')?.innerText",
    "read": "deep('.stMainBlockContainer')?.innerText.trim() || undefined",
    "effects": "deep('.st-key-explain-triples [aria-rowcount=\"17\"]')?.tagName",  # 16 and heads
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
        aim: median that is wanted, ms.
        do: does it once, given the page and the number of the repeat; returns ms.
        repeats: how often, as a share of what is asked for.
    """

    name: str
    aim: int
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


def select(lab: Lab, turn: int, sign: str) -> float:
    """Click a cell of the matrix."""
    x, y = cell_at(lab, 2 + turn % 9, 1 + turn % 7)
    lab.page.mouse.move(x, y)
    (took,) = timed(lab, "click", (sign,), lambda: lab.page.mouse.click(x, y))
    lab.settle()
    return took


def switch_off(lab: Lab, turn: int, signs: tuple[str, ...]) -> float:
    """Switch the first branch of a new sentence off."""
    lab.write(f"第{turn}次{os.urandom(3).hex()}行胃镜检查未见异常")
    switch = lab.page.locator(".kb-branch [data-switch]").first
    switch.hover()
    took = timed(lab, "click", signs, switch.click)
    lab.settle()
    return max(took)


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
    return max(opened(lab.page.context.browser, lab.address, "tree", "matrix", "prediction"))


def opened(browser: Browser, address: str, *signs: str) -> list[float]:
    """Milliseconds from a new visitor's navigation to each sign."""
    context = browser.new_context(viewport={"width": 1400, "height": 1100}, locale="zh-CN")
    try:
        page = context.new_page()
        page.set_default_timeout(180_000)
        page.goto(address, wait_until="commit")
        page.evaluate(ARM, ["navigation", [SIGNS[sign] for sign in signs]])
        return page.evaluate("() => window.kbertDone")
    finally:
        context.close()


def cold(browser: Browser, repeats: int, started: str, rested: float) -> list[dict[str, object]]:
    """What the first visitor of a server waits for.

    Args:
        started: when the server was, in words.
        rested: seconds from its start to the visit.
    """
    signs = {"something to read": "read", "tree": "tree", "matrix": "matrix"}
    signs |= {"the first prediction": "prediction"}
    aims = {"something to read": 1000, "the first prediction": 5000}
    found = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as server:
            time.sleep(rested)
            found.append(opened(browser, server.url, *signs.values()))
    return [
        row(f"{started}: {name}", sorted(times), aims.get(name))
        for name, times in zip(signs, zip(*found, strict=True), strict=True)
    ]


def cell_at(lab: Lab, row: int, column: int) -> tuple[float, float]:
    """Where the middle of a cell of the matrix is."""
    canvas = lab.page.locator("canvas.over")
    canvas.scroll_into_view_if_needed()
    frame = canvas.bounding_box()
    place = lab.page.locator(".root[data-sum]")
    cell, left, top = (float(place.get_attribute(f"data-{k}")) for k in ("cell", "left", "top"))
    return frame["x"] + left + (column + 0.5) * cell, frame["y"] + top + (row + 0.5) * cell


ACTIONS = (
    Action("move over the matrix", 16, hover),
    Action("choose a cell, see it framed", 50, partial(select, sign="framed")),
    Action("choose a cell, read why it is visible", 50, partial(select, sign="cell")),
    Action(
        "switch a branch off, see tree and matrix",
        100,
        partial(switch_off, signs=("tree", "matrix")),
    ),
    Action(
        "switch a branch off, see the new prediction",
        250,
        partial(switch_off, signs=("prediction",)),
    ),
    Action("effects of 16 triples", 700, leave_one_out, 0.5),
    Action("open the app, models warm", 1500, first_paint, 0.4),
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
        context.add_init_script(PLAYED)
        lab = Lab(context.new_page(), server.url)
        lab.open("?lang=en")
        lab.example("胃镜: examination, says a triple")
        count = max(5, round(repeats * action.repeats))
        action.do(lab, 0)  # the first is not counted
        begun = processor_seconds(server)
        times = sorted(action.do(lab, turn) for turn in range(1, count + 1))
        spent = (processor_seconds(server) - begun) / count
        context.close()
        rows.append(row(action.name, times, action.aim) | {"processor_ms": round(1000 * spent)})
        print(f"{action.name}: {rows[-1]['median_ms']} ms", flush=True)
    return rows


def row(name: str, times: Sequence[float], aim: int | None) -> dict[str, object]:
    """What is told of an action; ``times`` from the shortest to the longest."""
    return {
        "action": name,
        "repeats": len(times),
        "median_ms": round(median(times), 1),
        "p95_ms": round(times[math.ceil(0.95 * len(times)) - 1], 1),
        "aim_median_ms": aim,
    }


def processor_seconds(server: Server) -> float:
    """What the server and the browser have taken until now."""
    processes = [server.process, *psutil.Process().children(recursive=True)]
    return sum(p.cpu_times().user + p.cpu_times().system for p in set(processes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--others", type=int, default=0, help="visitors with a page open besides")
    args = parser.parse_args()
    load, began = os.getloadavg()[0], time.monotonic()
    if load > MOST_LOAD * (os.cpu_count() or 1):
        raise SystemExit(
            f"The load is {load:.2f} on {os.cpu_count()} cores, and milliseconds say something up "
            f"to {MOST_LOAD} a core. Wait until the machine rests."
        )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = chromium() or playwright.chromium.executable_path
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        with served(Path(folder)) as server, others(server, args.others):
            rows = measured(browser, server, args.repeats)
        rows += cold(browser, 3, "server just started", 0)
        rows += cold(browser, 3, "server started 12 seconds ago", 12)
        browser.close()
    columns = ("action", "median_ms", "p95_ms", "aim_median_ms", "processor_ms")
    print_table([columns, *([str(own.get(name) or "") for name in columns] for own in rows)])
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
