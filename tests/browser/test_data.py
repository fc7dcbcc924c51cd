"""What a visitor of the page Data does, in headless Chromium."""

import re

import pytest
from playwright.sync_api import expect

from .lab import PATIENCE

pytestmark = pytest.mark.browser

LINE = "患 者 有 糖 尿 病\tO O O B-Disease I-Disease I-Disease\n"
OTHER = "给 予 布 洛 芬\tO O B-Cure I-Cure I-Cure\n"
HEADER = "text_a\tlabel\n"


def read(lab):
    """Wait until what was chosen is counted and read."""
    expect(lab.page.get_by_text("The counts, as")).to_be_visible(timeout=3 * PATIENCE)
    expect(lab.page.get_by_role("button", name="Stop")).to_have_count(0, timeout=3 * PATIENCE)
    lab.settle()


def numbers(lab):
    return lab.page.get_by_test_id("stMetricValue").all_inner_texts()


def upload(lab, file):
    """Choose a file by the button, as a visitor does, also beside those that are there."""
    box = lab.page.locator(".st-key-data-files")
    with lab.page.expect_file_chooser() as chooser:
        box.get_by_role("button", name=re.compile("^(Upload|Add files)$")).click()
    chooser.value.set_files(file)
    expect(box.get_by_text(file.name)).to_be_visible()
    lab.settle()


def tick_first_row(lab):
    frame = lab.page.get_by_test_id("stDataFrame").first
    frame.scroll_into_view_if_needed()
    place = frame.bounding_box()
    lab.page.mouse.click(place["x"] + 17, place["y"] + 52)


def sentence(lab):
    lab.page.wait_for_selector(".kb-tree", timeout=3 * PATIENCE)
    lab.settle()
    return lab.page.get_by_role("textbox", name="Sentence", exact=True).input_value()


def test_a_row_of_the_example_opens_in_the_lab_with_model_and_graph(lab):
    lab.go("Data")
    read(lab)
    assert "Scores on this split are too good: the splits leak." in lab.text()
    assert numbers(lab) == ["6", "6", "2", "2", "0"]
    tick_first_row(lab)
    assert sentence(lab) == "因胸痛、心悸入院。"
    assert lab.prediction() != []


def test_files_are_read_taken_back_and_read_anew(lab, tmp_path):
    page, go = lab.page, lab.page.get_by_role("button", name="Count and read")
    bad, good, other = (tmp_path / f"{name}.tsv" for name in ("bad", "train", "test"))
    bad.write_text(f"{HEADER}{LINE}糖 尿 病\n", encoding="utf-8")
    good.write_text(f"{HEADER}{LINE * 200}{OTHER * 200}", encoding="utf-8")
    other.write_text(f"{HEADER}{LINE}{OTHER}", encoding="utf-8")
    lab.go("Data")
    read(lab)
    upload(lab, bad)
    expect(page.get_by_text("bad.tsv, line 3: found 1 fields")).to_be_visible()
    expect(go).to_be_disabled()
    page.get_by_role("button", name="Remove bad.tsv").click()
    lab.settle()
    expect(page.get_by_text("bad.tsv, line 3")).to_have_count(0)

    upload(lab, good)
    go.click()
    expect(page.get_by_text(re.compile("of 400 done"))).to_be_visible(timeout=3 * PATIENCE)
    page.get_by_role("button", name="Stop").click(timeout=PATIENCE)
    read(lab)
    expect(page.get_by_text("Stopped; what was found by then is shown.")).to_be_visible()
    assert 0 < int(numbers(lab)[0]) < 400
    upload(lab, other)
    assert numbers(lab) == []  # of the files before
    go.click()
    read(lab)
    assert "100.0 % of test stand in train" in lab.text()
    assert numbers(lab)[0] == "2"
    lab.go("Lab")
    lab.page.wait_for_selector(".kb-tree")
    lab.go("Data")
    read(lab)  # still there
    assert numbers(lab)[0] == "2"
