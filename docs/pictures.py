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
SHOWN = (1100, 618)  # pixels of the picture
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
        page = browser.new_context(viewport=SIZE, locale="en-US").new_page()
        page.goto(args.address)
        expect(page.locator(".kb-line").last).to_contain_text("Disease")
        page.wait_for_timeout(4000)
        frames = moving(page)
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
    at, frames = (SIZE["width"] / 2, SIZE["height"] * 0.9), [(frame(page, None), HELD)]
    for button, said in (("Switch off", "is no longer Disease"), ("Switch on", "is now Disease")):
        switch = page.get_by_role("switch", name=f"{button} {TRIPLE}")
        box = switch.bounding_box()
        assert box is not None
        to = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        still = frame(page, None)
        for step in range(1, STEPS + 1):
            part = step / STEPS
            place = tuple(a + (b - a) * part for a, b in zip(at, to, strict=True))
            frames.append((pointed(still, place), STEP if step < STEPS else 500))
        switch.click()
        expect(page.get_by_text(said).first).to_be_visible()
        page.wait_for_timeout(3000)
        frames.append((frame(page, to), HELD))
        at = to
    return frames


def frame(page: Page, place: tuple[float, float] | None) -> Image.Image:
    """What the page shows, with the pointer at a place."""
    page.mouse.move(SIZE["width"] - 5, SIZE["height"] - 5)
    page.wait_for_timeout(200)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").resize(SHOWN)
    return picture if place is None else pointed(picture, place)


def pointed(picture: Image.Image, place: tuple[float, ...]) -> Image.Image:
    """A picture with an arrow that points to a place of the page."""
    x, y = place[0] * SHOWN[0] / SIZE["width"], place[1] * SHOWN[1] / SIZE["height"]
    arrow = [(0, 0), (0, 19), (5, 14), (9, 22), (12, 20), (8, 13), (14, 13)]
    made = picture.copy()
    ImageDraw.Draw(made).polygon([(x + a, y + b) for a, b in arrow], "black", "white", 2)
    return made


if __name__ == "__main__":
    main()
