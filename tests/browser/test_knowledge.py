"""What a visitor of the Knowledge page does, in headless Chromium."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


class Knowledge:
    """The Knowledge page as a person's hands and eyes find it."""

    def __init__(self, lab):
        self.lab, self.page = lab, lab.page

    def open(self):
        self.lab.go("Knowledge")
        self.page.wait_for_selector(".st-key-knowledge_bar")
        self.lab.settle()
        return self

    def figure_2(self):
        self.lab.choose("Knowledge graph", "figure2")
        return self

    def rows(self):
        """(head, relation, tail, on) of every row that is drawn."""
        texts = [row.locator("td").all_text_contents() for row in self._grid().locator("tr").all()]
        return [(*of_row[1:], of_row[0] == "true") for of_row in texts if len(of_row) == 4]

    def _grid(self):
        return self.page.locator('canvas[data-testid="data-grid-canvas"]').first

    def until(self, wanted):
        """Wait until the rows are as wanted; return them."""
        for _ in range(60):  # the grid draws a moment after the page
            rows = self.rows()
            if wanted(rows):
                break
            self.page.wait_for_timeout(500)
        return rows

    def tails(self, head, count):
        """The tails of a head, once there are so many."""
        rows = self.until(lambda rows: sum(row[0] == head for row in rows) == count)
        return {row[2] for row in rows if row[0] == head}

    def look_for(self, text):
        box = self.page.get_by_role("textbox", name="Search")
        box.fill(text)
        box.press("Enter")
        self.lab.settle()
        self.until(lambda rows: rows and all(text in "".join(row[:3]) for row in rows))

    def click(self, at, row):
        """Click a row, so far from the table's left border, or from its right one; -1: the last."""
        self.lab.settle()
        frame, height = self.lab._frame()
        place = row if row >= 0 else round(frame["height"] / height) - 2
        x = frame["x"] + at + (frame["width"] if at < 0 else 0)
        self.lab.click_grid(x, frame["y"] + height * (place + 1.5))

    def row_of(self, *fields):
        shown = [found[:3] for found in self.until(lambda rows: fields in [r[:3] for r in rows])]
        return shown.index(fields)

    def rewrite(self, *fields, tail):
        """Type another tail into the row of a triple."""
        row = self.row_of(*fields)
        self.click(-60, row)
        expect(self.page.locator(f"td#glide-cell-4-{row}")).to_be_focused()
        self.page.keyboard.press("Enter")
        self.lab.fill_cell(tail)
        self.page.keyboard.press("Enter")
        self.lab.settle()

    def add(self, *fields):
        """Type a triple into the last row."""
        self.click(330, -1)
        for number, text in enumerate(fields):
            if number:
                self.page.keyboard.press("Enter")
            self.lab.fill_cell(text)
            self.page.keyboard.press("Tab")
            expect(self.page.locator(".gdg-input")).to_have_count(0)
        self.lab.settle()

    def press(self, key):
        button = self.page.locator(f".st-key-knowledge-{key} button").first
        expect(button).to_be_enabled()
        button.click()
        self.lab.settle()

    def view(self, name):
        self.lab.show(name)

    def save_workspace(self, title, who):
        """Save to a workspace; return the link's last part."""
        self.page.locator(".st-key-knowledge-workspace button").first.click()
        for label, value in (("Your name, for the log", who), ("Name of the workspace", title)):
            box = self.page.get_by_role("textbox", name=label)
            box.fill(value)
            box.press("Enter")
            self.lab.settle()
        self.press("save_workspace")
        link = self.page.locator("[role=dialog] code").inner_text()
        assert link.startswith(self.lab.address)
        self.page.keyboard.press("Escape")
        expect(self.page.locator("[role=dialog]")).to_have_count(0)
        return link.rpartition("/")[2]


@pytest.fixture
def knowledge(lab):
    return Knowledge(lab).open()


def test_an_edit_and_a_sentence_it_changes_are_seen_in_the_lab(lab):
    before = lab.prediction("Now")
    knowledge = Knowledge(lab).open()
    knowledge.look_for("胃镜")
    assert re.search(r"From medical_zh.spo, line \d+", lab.text())
    knowledge.rewrite("胃镜", "类别", "检查", tail="疾病")
    knowledge.row_of("胃镜", "类别", "疾病")
    lab.go("Lab")
    lab.page.wait_for_selector(".kb-tree")
    lab.settle()
    after = lab.prediction("Now")
    assert ("胃镜", "Examine") in [(text[:2], label) for text, label in before]
    assert ("胃镜", "Disease") in [(text[:2], label) for text, label in after]
    lab.press("Undo")
    assert lab.prediction("Now") == before
    Knowledge(lab).open()
    knowledge.look_for("癫痫")
    lab.choose("A triple", "(癫痫, 类别, 疾病)")
    knowledge.press("see")
    lab.page.wait_for_selector(".kb-tree")
    lab.settle()
    assert "癫痫" in lab.page.get_by_role("textbox", name="Sentence").input_value()
    assert "类别疾病" in lab.branches()
    assert lab.prediction("Before") != lab.prediction("Now")


def test_a_change_of_page_is_one_step_back_with_a_workspace_and_a_language(knowledge):
    lab, page = knowledge.lab, knowledge.page
    knowledge.figure_2()
    key = knowledge.save_workspace("mine", "ann").partition("=")[2]
    lab.show("中文")
    lab.show("English")
    lengths = []

    def address():
        place, _, query = page.url.partition("?")
        return place.removeprefix(lab.address), set(query.split("&"))

    for name, place in (("Lab", "/"), ("Explain", "/explain"), ("Lab", "/")):
        lab.go(name)
        wanted = place, {f"workspace={key}", "lang=en"}
        assert lab.until(address, wanted) == wanted
        lengths.append(page.evaluate("history.length"))
    assert [later - earlier for earlier, later in pairwise(lengths)] == [1, 1]
    for place in ("/explain", "/", "/knowledge"):
        page.go_back()
        lab.settle()
        assert page.url.partition("?")[0] == lab.address + place


def test_a_broken_upload_is_looked_at_and_changes_nothing(knowledge, tmp_path):
    page = knowledge.page
    knowledge.figure_2()
    before = knowledge.until(bool)
    bad = tmp_path / "bad.spo"
    bad.write_text(
        "Beijing\thosts\t<img src=x onerror=alert(1)>\nTim Cook\tCEO\tApple\n"
        + "only two\tfields\n" * 30,
        encoding="utf-8",
    )
    knowledge.view("Import")
    page.locator('.st-key-knowledge-upload input[type="file"]').set_input_files(bad)
    knowledge.lab.settle()
    assert "and will be left out: 30; the first 20:" in knowledge.lab.text()
    expect(page.get_by_text("bad.spo, line 3: found 2 fields")).to_be_visible()
    knowledge.view("Triples")
    assert knowledge.until(bool) == before
    knowledge.view("Import")
    page.locator('.st-key-knowledge-upload input[type="file"]').set_input_files(bad)
    knowledge.lab.settle()
    knowledge.press("import")
    assert "3 triples as opened, 4 now" in knowledge.lab.text()
    knowledge.press("undo")
    knowledge.view("Triples")
    assert knowledge.until(bool) == before
    knowledge.page.set_viewport_size({"width": 800, "height": 1000})
    for view in ("Import", "History", "Structure", "Triples"):
        knowledge.view(view)
        assert knowledge.lab.fits(), view


def test_a_visitor_of_a_workspace_is_told_of_anothers_edit_and_sees_it(knowledge, visit):
    """That nothing is overwritten: tests/app/test_app_knowledge.py, and the branches below."""
    knowledge.figure_2()
    link = knowledge.save_workspace("fruit", "ann")
    other = visit(path=link)
    other.write("Tim Cook is here")
    assert "CEOApple" in other.branches()
    second = Knowledge(other).open()
    assert "Workspace fruit: 3 triples" in other.text()
    second.row_of("Tim Cook", "CEO", "Apple")
    knowledge.rewrite("Tim Cook", "CEO", "Apple", tail="Pear")
    expect(other.page.get_by_text("Somebody has just edited this workspace.")).to_be_visible()
    other.page.get_by_role("button", name="Show it as it is now").click()
    second.row_of("Tim Cook", "CEO", "Pear")
    other.open(link[:-1])
    assert "Workspace fruit" not in Knowledge(other).open().lab.text()


def test_two_visitors_switch_branches_of_one_name_and_are_told_of_each_other(knowledge, visit):
    knowledge.figure_2()
    link, ann = knowledge.save_workspace("shared", "ann"), knowledge.lab
    bob = visit(path=link)
    ann.open(link)

    def switch(visitor, fact):
        visitor.page.locator(".kb-branch", has_text=fact).locator("[data-switch]").click()
        visitor.settle()

    for visitor in (ann, bob):
        visitor.write("Beijing is big")
    switch(ann, "City")
    switch(bob, "China")  # of the same name, another triple: made on top
    assert "was edited" not in bob.text()
    expect(bob.page.locator(".kb-removed [data-switch]")).to_have_count(2)
    expect(ann.page.get_by_text("Somebody has just edited this workspace.")).to_be_visible()
    switch(bob, "City")  # on again, which she doesn't see yet
    switch(ann, "City")
    said = ann.page.get_by_text("meanwhile (entry 4), so nothing was changed.")
    expect(said).to_have_count(1)
    expect(said).to_be_in_viewport()  # in the strip that stays in sight
