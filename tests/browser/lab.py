"""The Lab as a person's hands and eyes find it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from playwright.sync_api import Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

T = TypeVar("T")
PATIENCE = 60_000
CARD = ".st-key-lab_card"
AT_REST = """() =>
    document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === "notRunning"
    && !document.querySelector(
        '[data-testid="stStatusWidget"], [data-stale="true"], .st-key-lab_waits')
"""
FITS = """() => [document.scrollingElement, document.querySelector('[data-testid="stMain"]')]
    .every(place => place.scrollWidth <= place.clientWidth + 1)"""
FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
LINKS = ", ".join(
    f'[data-testid="{name}"]:not([inert] *)'  # inert: laid out to be measured only
    for name in ("stTopNavLink", "stTopNavDropdownLink", "stSidebarNavLink")
)


class Lab:
    """One visitor's page.

    Attributes:
        errors: what the browser's console reported as an error, and dialogs: no page of ours has
            any, so a script of a visitor's text opened it.
        outside: requests that went to another machine than the app's.
    """

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.errors: list[str] = []
        self.outside: list[str] = []
        expect.set_options(timeout=PATIENCE)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", self._dialog)
        page.context.on("request", self._request)
        page.on("websocket", self._socket)

    def _socket(self, socket) -> None:
        self._asked = False  # of a run that hasn't begun yet
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, frame) -> None:
        self._asked |= isinstance(frame, bytes) and BackMsg.FromString(frame).HasField(
            "rerun_script"
        )

    def _received(self, frame) -> None:
        if isinstance(frame, bytes):
            message = ForwardMsg.FromString(frame)
            if message.HasField("new_session"):
                self._asked = False
            elif message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                self._asked = True  # another begins by itself

    def _console(self, message) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} {message.location.get('url', '')}".strip())

    def _dialog(self, dialog) -> None:
        self.errors.append(f"a script ran: {dialog.message}")
        dialog.dismiss()

    def _request(self, request) -> None:
        local = (self.address, self.address.replace("http", "ws"), "data:", "blob:", "about:")
        if not request.url.startswith(local):
            self.outside.append(request.url)

    def open(self, path: str = "", shows: str = ".kb-tree") -> None:
        if self.page.url.startswith(self.address):
            self.page.evaluate("sessionStorage.clear()")  # a new tab remembers nothing
        self.page.goto(f"{self.address}/{path}")
        if "scene=" in path and shows == ".kb-tree":
            self.page.wait_for_selector(f"{shows}, {CARD}", timeout=3 * PATIENCE)
            if self.page.locator(CARD).count():  # what a link shows first
                self.settle()
                self.press("Open in the Lab")
        self.page.wait_for_selector(shows, timeout=3 * PATIENCE)
        self.settle(3 * PATIENCE)  # the first visitor waits for PyTorch, too

    def settle(self, patience: int = PATIENCE) -> None:
        """Wait until the app has nothing more to do."""
        self.page.wait_for_timeout(250)  # the table tells of a change after 150 ms
        calm, end = 0, time.monotonic() + patience / 1000
        while calm < 3:
            assert time.monotonic() < end, "the app did not come to rest"
            calm = calm + 1 if self.page.evaluate(AT_REST) and not self._asked else 0
            self.page.wait_for_timeout(75)

    def until(self, look: Callable[[], T], wanted: T) -> T:
        """What is seen once it is what is wanted: on a busy machine the table may tell later."""
        end = time.monotonic() + PATIENCE / 1000
        while (seen := look()) != wanted and time.monotonic() < end:
            self.settle()
        return seen

    # What is seen

    def tokens(self) -> list[tuple[str, str, str]]:
        """(text, soft, hard) of every token, by hard position."""
        found = []
        for token in self.page.locator(".kb-tree .kb-tok").all():
            soft = token.locator(".kb-pos .kb-soft")
            if soft.count():
                hard = token.locator(".kb-pos .kb-hard").text_content()
                found.append((token.locator(".kb-text").text_content(), soft.text_content(), hard))
        return sorted(found, key=lambda item: int(item[2]))

    def branches(self) -> list[str]:
        """What the branches in the tree read; those gone are not among them."""
        shown = self.page.locator(".kb-branch:not(.kb-removed)")
        return ["".join(b.locator(".kb-text").all_text_contents()) for b in shown.all()]

    def matrix(self) -> dict[str, str]:
        """Size, kind, tokens and checksum of the matrix drawn."""
        root = self.page.locator(".root[data-sum]")
        expect(root).to_have_count(1)
        return {name: root.get_attribute(f"data-{name}") for name in ("n", "kind", "sum", "tokens")}

    def prediction(self, side: str = "Now") -> list[tuple[str, str]]:
        """(text, type) of every entity on one side."""
        names = self.page.locator(".kb-side", has=self.page.locator(f'b:text-is("{side}")'))
        row = names.locator("xpath=following-sibling::*[1]")
        found = []
        for span in row.locator(".kb-span").all():
            text = "".join(span.locator(".kb-text").all_inner_texts())
            found.append((text, span.locator(".kb-tag b").inner_text()))
        return found

    def probabilities(self) -> str:
        return self.page.locator(".kb-ner").inner_text()

    def cell(self, column: int, row: int) -> str:
        """A field of the table of triples; row from 0."""
        where = self.page.locator(f'[data-testid="stDataFrame"] td#glide-cell-{column}-{row}')
        return where.first.text_content() or ""

    def text(self) -> str:
        return self.page.locator('[data-testid="stMain"]').inner_text()

    def fits(self) -> bool:
        """Whether nothing has to be scrolled sideways, of the document and of the page in it."""
        return self.page.evaluate(FITS)

    # What is done

    def example(self, name: str) -> None:
        self.choose("Examples", name)

    def go(self, name: str) -> None:
        """Go to a page by its name in the navigation, which may keep it in a section's list."""
        page = self.page
        narrow = page.get_by_test_id("stExpandSidebarButton")
        if narrow.count() and narrow.first.is_visible():
            narrow.first.click()
            page.wait_for_timeout(600)  # it slides in
        link = page.locator(LINKS).get_by_text(name, exact=True).first
        for section in page.get_by_test_id("stTopNavSection").all():
            if link.is_visible():
                break
            section.click()
            page.wait_for_timeout(200)
        link.click()
        self.settle()

    def choose(self, label: str, option: str) -> None:
        box = self.page.get_by_role("combobox", name=label)
        self.open_drawer(box)
        self.bring(box.first)
        box.first.click()
        self.page.get_by_role("option", name=option).first.click()
        self.settle()

    def bring(self, wanted) -> None:
        """Scroll to something, and wait until the page knows: a list closes when it scrolls."""
        wanted.scroll_into_view_if_needed()
        self.page.evaluate(FRAME)

    def open_drawer(self, wanted) -> None:
        """Open the drawer of task, model, graph and options, where what is wanted isn't seen."""
        closed = self.page.locator(".st-key-lab-drawer details:not([open]) > summary")
        if not (wanted.count() and wanted.first.is_visible()) and closed.count():
            closed.click()
            wanted.first.wait_for(state="visible")

    def switch(self, label: str) -> None:
        """Turn a switch on or off."""
        self.page.get_by_text(label, exact=True).first.click()
        self.settle()

    def open_model_path(self, path: Path) -> None:
        self._open_path("model", "A folder with config.json", "Open the model", path)

    def open_graph_path(self, path: Path) -> None:
        self._open_path("graph", "Or a file on this machine", "Open the file", path)

    def _open_path(self, what: str, field: str, button: str, path: Path) -> None:
        page = self.page
        if not page.get_by_role("dialog").count():
            self.open_drawer(page.locator(f".st-key-lab-open_{what} button"))
            page.locator(f".st-key-lab-open_{what} button").first.click()
        box = page.get_by_role("textbox", name=field)
        box.fill(str(path))
        box.press("Enter")
        self.settle()
        self.press(button)

    def write(self, sentence: str, field: str = "Sentence") -> None:
        box = self.page.get_by_role("textbox", name=field, exact=True)
        box.fill(sentence)
        box.press("Control+Enter")
        self.settle()

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name).first.click()
        self.settle()

    def show(self, name: str) -> None:
        """Choose a segment: Table, Graph, Visible, Attention, Difference."""
        self.page.get_by_role("radio", name=name, exact=True).first.click()
        self.settle()

    def _field(self, column: int, row: int):
        """A field of the table, as screen readers find it: the grid itself is a canvas."""
        return self.page.locator(f'[data-testid="stDataFrame"] td#glide-cell-{column}-{row}')

    def click_grid(self, x: float, y: float) -> None:
        """Click once, after the grid has seen the mouse there, as it always sees a person's."""
        for step in (8, 0):
            self.page.mouse.move(x - step, y)
            self.page.evaluate(FRAME)
        self.page.mouse.click(x, y)

    def _go_to(self, column: int, row: int) -> None:
        """Put the grid's cursor on a field.

        Only its last columns' places are known from outside, whatever the widths; from there the
        arrow keys lead on.
        """
        self.settle()  # a table that is drawn anew while it is typed in keeps what it had
        self.page.locator('[data-testid="stDataFrame"]').first.scroll_into_view_if_needed()
        frame, height = self._frame()
        x, y = frame["x"] + frame["width"] - IN_STATE, frame["y"] + height * (row + 1.5)
        self.click_grid(x, y)
        for at in range(STATE_COLUMN, column, -1):
            expect(self._field(at, row).first).to_be_focused()
            self.page.keyboard.press("ArrowLeft")
        expect(self._field(column, row).first).to_be_focused()

    def toggle(self, row: int) -> None:
        """Switch a triple of the table on or off, by one key."""
        state = self.cell(STATE_COLUMN, row)
        self._go_to(0, row)
        self.page.keyboard.press("Enter")
        expect(self._field(STATE_COLUMN, row).first).not_to_have_text(state)
        self.settle()

    def rewrite(self, column: int, row: int, value: str) -> None:
        """Type another text into a field of the table."""
        self._go_to(column, row)
        self.page.keyboard.press("Enter")
        self.fill_cell(value)
        self.page.keyboard.press("Enter")
        expect(self._field(column, row).first).to_have_text(value)
        self.settle()

    def fill_cell(self, value: str) -> None:
        """Write into the cell of a grid that is open; the grid takes it over some frames later."""
        field = self.page.locator(".gdg-input")
        expect(field).to_be_focused()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(value)
        expect(field).to_have_value(value)
        self.page.wait_for_timeout(300)

    def _frame(self) -> tuple[dict[str, float], float]:
        """Where the grid's canvas is, and the height of its rows."""
        canvas = self.page.locator('canvas[data-testid="data-grid-canvas"]').first
        frame = canvas.bounding_box()
        rows = int(canvas.locator("table").get_attribute("aria-rowcount") or 0)
        assert frame and rows
        return frame, (frame["height"] - 2) / rows

    def ticks(self) -> list[tuple[float, float]]:
        """Where the ticks are: looked for by switching the first triple off, which is undone."""
        self.page.locator('[data-testid="stDataFrame"]').first.scroll_into_view_if_needed()
        for x in range(12, 76, 8):
            frame, height = self._frame()
            rows = range(round(frame["height"] / height) - 1)
            places = [(frame["x"] + x, frame["y"] + height * (row + 1.5)) for row in rows]
            self.click_grid(*places[0])
            self.settle()
            if self.cell(STATE_COLUMN, 0) == "switched off":
                self.press("Undo")
                return places
        raise AssertionError("no tick found")

    def delete(self, row: int) -> None:
        """Press the bin at a row's end."""
        rows = self._rows()
        frame, height = self._frame()
        x = frame["x"] + frame["width"] - IN_BIN
        self.click_grid(x, frame["y"] + height * (row + 1.5))
        self.settle()
        assert self.until(self._rows, str(int(rows or 0) - 1)) != rows

    def _rows(self) -> str | None:
        grid = self.page.locator('canvas[data-testid="data-grid-canvas"] table').first
        return grid.get_attribute("aria-rowcount")

    def add(self, head: str, relation: str, tail: str) -> None:
        page = self.page
        page.get_by_role("textbox", name="Add a triple: head").fill(head)
        page.get_by_role("textbox", name="relation", exact=True).fill(relation)
        page.get_by_role("textbox", name="tail", exact=True).fill(tail)
        self.press("Add")

    def click_matrix(self, row: int, column: int, panel: int = 0) -> None:
        """Click the middle of a cell."""
        place = self.page.locator(".root[data-sum]").nth(panel)
        canvas = place.locator("canvas.over")
        canvas.scroll_into_view_if_needed()
        cell, left, top = (float(place.get_attribute(f"data-{k}")) for k in ("cell", "left", "top"))
        canvas.click(position={"x": left + (column + 0.5) * cell, "y": top + (row + 0.5) * cell})
        self.settle()


STATE_COLUMN = 4  # on, head, relation, tail, state, and the bin
IN_BIN, IN_STATE = 34, 130  # pixels from the grid's right edge: a bin, and the column before it
