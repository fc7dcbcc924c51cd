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


def test_a_visitor_looks_into_a_row_and_opens_it_in_the_lab(file):
    page = file.page
    assert numbers(file) == ["6", "6", "2", "2", "0"]
    assert "Data and graph, before any model: Scores on this split are too good" in file.text()
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


def test_a_visitor_groups_prunes_and_measures(file):
    page = file.page
    file.show("Helped and hurt")
    assert "Counted are the texts in which such a triple stands" in file.text()
    file.show("label")
    assert "helped is found only with the graph" in file.text()
    file.show("Prune the graph")
    file.press("Prune")
    said = page.get_by_text("On 7 texts of the test set, which had no part in the choice")
    expect(said).to_be_visible(timeout=3 * PATIENCE)
    expect(page.get_by_text("Triples taken out: 1 of the graph's 1,737")).to_be_visible()
    file.settle()
    file.press("Use it in this session")
    file.choose("Knowledge graph", "medical_zh pruned")
    assert "chosen before" in file.text()
    file.show("Attention")
    file.press("Measure")
    expect(page.get_by_text("Rank correlation of attention")).to_be_visible(timeout=3 * PATIENCE)


def test_a_visitor_reads_a_file_of_their_own(file, tmp_path):
    page = file.page
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


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_page_fits_a_narrow_window(visit, locale):
    lab = visit(width=390, height=900, locale=locale)
    lab.go("A whole file" if locale == "en-US" else "整个文件")
    lab.page.get_by_test_id("stDataFrame").first.wait_for(timeout=3 * PATIENCE)
    lab.settle()
    assert lab.fits()
