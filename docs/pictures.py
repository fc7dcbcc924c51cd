"""Take the README's two pictures from the running app: `make app`, then `python docs/pictures.py`.

`lab.webp` moves: a triple is switched off on its branch, and on again. `explain.webp` is what
every triple and every token does to the prediction.
"""

import argparse
import io
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Page, ViewportSize, expect, sync_playwright

SIZE: ViewportSize = {"width": 1366, "height": 768}
NARROW: ViewportSize = {"width": 620, "height": 1100}  # one column: legible on a phone
PLAYED = 'localStorage.setItem("kbert-play", "seen")'  # no guided play over the page
SHOWN = (".st-key-lab_strip", ".kb-tree")  # the picture begins at the one, and ends below the other
TRIPLE = "(COPD, is_a, disease)"
HELD, STEP = 1800, 60  # milliseconds of a state, and of a step of the pointer
STEPS = 14


def main() -> None:
    """Take the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--address", default="http://localhost:8501", help="of the running app")
    parser.add_argument("--browser", default="/usr/bin/chromium", help="Chromium's program")
    args = parser.parse_args()
    folder = Path(__file__).parent
    expect.set_options(timeout=180_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=args.browser, args=["--no-sandbox"])
        page = browser.new_context(viewport=NARROW, locale="en-US").new_page()
        page.add_init_script(PLAYED)
        page.goto(args.address)
        expect(page.locator(".kb-line").last).to_contain_text("Disease")
        page.wait_for_timeout(4000)
        frames = moving(page)
        page.set_viewport_size(SIZE)
        page.get_by_role("link", name="Explain").click()
        expect(page.get_by_text("What every token adds")).to_be_visible()
        page.wait_for_timeout(4000)
        page.set_viewport_size({**SIZE, "height": 940})
        page.wait_for_timeout(1000)
        still = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        still.save(folder / "explain.webp", quality=80, method=6)
        browser.close()
    pictures, times = zip(*frames, strict=True)
    pictures[0].save(
        folder / "lab.webp",
        save_all=True,
        append_images=pictures[1:],
        duration=list(times),
        loop=0,
        quality=60,
        method=6,
    )


def moving(page: Page) -> list[tuple[Image.Image, int]]:
    """Frames with how long each is shown: the pointer switches a branch off, then on."""
    at, frames = (NARROW["width"] / 2, NARROW["height"] * 0.6), [(frame(page)[0], HELD)]
    for button, said in (("Switch off", "is no longer Disease"), ("Switch on", "is now Disease")):
        switch = page.get_by_role("switch", name=f"{button} {TRIPLE}")
        box = switch.bounding_box()
        assert box is not None
        to = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        parts = [step / STEPS for step in range(1, STEPS + 1)]
        way = [tuple(a + (b - a) * part for a, b in zip(at, to, strict=True)) for part in parts]
        times = [STEP] * (STEPS - 1) + [500]
        frames += zip(frame(page, *way), times, strict=True)
        switch.click()
        expect(page.get_by_text(said).first).to_be_visible()
        page.wait_for_timeout(3000)
        frames += zip(frame(page, to), [HELD], strict=True)
        at = to
    return frames


def frame(page: Page, *places: tuple[float, ...]) -> list[Image.Image]:
    """What the page shows from the result to the tree, with the pointer at each place; or none."""
    page.mouse.move(NARROW["width"] - 5, NARROW["height"] - 5)
    page.wait_for_timeout(200)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    top, tree = (page.locator(part).first.bounding_box() for part in SHOWN)
    assert top and tree
    shown = (0, int(top["y"]) - 8, NARROW["width"], int(tree["y"] + 110))
    return [made.crop(shown) for made in ([pointed(picture, at) for at in places] or [picture])]


def pointed(picture: Image.Image, place: tuple[float, ...]) -> Image.Image:
    """A picture with an arrow that points to a place of the page."""
    x, y = place
    arrow = [(0, 0), (0, 19), (5, 14), (9, 22), (12, 20), (8, 13), (14, 13)]
    made = picture.copy()
    ImageDraw.Draw(made).polygon([(x + a, y + b) for a, b in arrow], "black", "white", 2)
    return made


if __name__ == "__main__":
    main()
