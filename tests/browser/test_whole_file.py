"""What a visitor of the page A whole file does, in headless Chromium."""

import csv
from pathlib import Path

import pytest
from playwright.sync_api import expect

from .lab import PATIENCE

pytestmark = pytest.mark.browser

LINE = "患 者 有 糖 尿 病\tO O O B-Disease I-Disease I-Disease\n"
OTHER = "给 予 布 洛 芬\tO O B-Cure I-Cure I-Cure\n"


@pytest.fixture
def file(lab):
    lab.go("A whole file")
    read(lab)
    return lab


def read(lab):
    """Wait until the file was read."""
    expect(lab.page.get_by_text("Texts that changed")).to_be_visible(timeout=3 * PATIENCE)
    expect(lab.page.get_by_role("button", name="Stop")).to_have_count(0)
    lab.settle()


def numbers(lab):
    return lab.page.get_by_test_id("stMetricValue").all_inner_texts()[-5:]


def test_a_visitor_reads_a_file_of_their_own_and_opens_a_row_in_the_lab(file, tmp_path):
    page = file.page
    assert numbers(file) == ["6", "6", "2", "2", "0"]
    assert "Data and graph, before any model: Scores on this split are too good" in file.text()
    bad, good = tmp_path / "bad.tsv", tmp_path / "mine.tsv"
    bad.write_text(f"text_a\tlabel\n{LINE}糖 尿 病\n", encoding="utf-8")
    good.write_text(f"text_a\tlabel\n{LINE * 200}{OTHER * 200}", encoding="utf-8")
    file.show("Upload")
    box = page.locator('.st-key-whole_file-train input[type="file"]')
    box.set_input_files(bad)
    expect(page.get_by_text("bad.tsv, line 3: found 1 fields")).to_be_visible()
    expect(page.get_by_role("button", name="Read the file")).to_be_disabled()
    box.set_input_files(good)
    file.settle()
    file.press("Read the file")
    page.get_by_role("button", name="Stop").click(timeout=PATIENCE)
    expect(page.get_by_text("The reading was stopped")).to_be_visible()
    read(file)
    assert 0 < int(numbers(file)[0]) < 400
    with page.expect_download() as download:
        page.get_by_role("button", name="All texts as CSV").click()
    rows = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert next(csv.DictReader(rows))["text"] == "患者有糖尿病"

    frame = page.get_by_test_id("stDataFrame").first
    text = file.cell(2, 0)  # after the box that chooses the row, and what became of it
    frame.scroll_into_view_if_needed()
    place = frame.bounding_box()
    page.mouse.click(place["x"] + 17, place["y"] + 52)
    page.get_by_role("button", name="Open in the Lab").click()
    page.wait_for_selector(".kb-tree", timeout=3 * PATIENCE)
    file.settle()
    expect(page.get_by_role("textbox", name="Sentence", exact=True)).to_have_value(text)
    assert file.prediction() != []
