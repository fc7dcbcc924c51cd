"""What a visitor of the page Data does, in headless Chromium."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from .lab import PATIENCE

pytestmark = pytest.mark.browser

LINE = "患 者 有 糖 尿 病\tO O O B-Disease I-Disease I-Disease\n"
OTHER = "给 予 布 洛 芬\tO O B-Cure I-Cure I-Cure\n"
NAMES = "".join(f"名{n}号\t类别\t疾病\n" for n in range(60))


def rows(numbers):
    return "text_a\tlabel\n" + "".join(f"有 名 {n} 号\tO B-D I-D I-D\n" for n in numbers)


def one_token_a_line(numbers):
    lines = rows(numbers).splitlines()[1:]
    pairs = [
        zip(*(column.split(" ") for column in line.split("\t")), strict=True) for line in lines
    ]
    return "\n\n".join("\n".join(map(" ".join, sentence)) for sentence in pairs)


def read(lab):
    """Wait until what was chosen is counted and read."""
    expect(lab.page.get_by_text("Texts that changed")).to_be_visible(timeout=3 * PATIENCE)
    expect(lab.page.get_by_role("button", name="Stop")).to_have_count(0)
    lab.settle()


@pytest.fixture
def data(lab):
    lab.go("Data")
    read(lab)
    return lab


def numbers(lab):
    return lab.page.get_by_test_id("stMetricValue").all_inner_texts()[-5:]


def upload(lab, file, split="train"):
    """Choose a file by the button, which also empties the field, so the same file counts again."""
    box = lab.page.locator(f".st-key-data-upload_{split}")
    with lab.page.expect_file_chooser() as chooser:
        box.get_by_role("button", name=re.compile("^(Upload|Add files)$")).click()
    chooser.value.set_files(file)
    expect(box.get_by_test_id("stFileChipName")).to_have_text(file.name)
    lab.settle()


def test_a_visitor_counts_the_example_then_data_and_a_graph_of_their_own(data, tmp_path):
    page = data.page
    assert "Scores on this split are too good: the splits leak." in data.text()
    assert numbers(data) == ["6", "6", "2", "2", "0"]
    data.show("Data and graph")
    assert "Was the graph made from the answers?" in data.text()

    graph = tmp_path / "names.spo"
    graph.write_text(NAMES, encoding="utf-8")
    data.press("Open a graph…")
    page.get_by_role("dialog").locator('input[type="file"]').set_input_files(graph)
    data.settle()
    expect(page.get_by_role("dialog")).to_have_count(0)

    (tmp_path / "train.tsv").write_text(rows(range(6)), encoding="utf-8")
    (tmp_path / "test.conll").write_text(one_token_a_line(range(4, 10)), encoding="utf-8")
    page.get_by_role("radio", name="Upload", exact=True).click()
    data.settle()
    for file in ("train.tsv", "test.conll"):
        upload(data, tmp_path / file, file.partition(".")[0])
    page.get_by_role("button", name="Count and read").click()
    data.settle()
    assert "33.3 % of test stand in train" in data.text()
    assert "with names: 60 triples" in data.text()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download JSON").click()
    found = Path(download.value.path()).read_text(encoding="utf-8")
    assert '"headline": "Scores on this split are too good' in found


def taken_back(data, tmp_path):
    """Files, by their own button, and by the page's where one comes back to it."""
    file = tmp_path / "train.tsv"
    file.write_text(rows(range(20)), encoding="utf-8")
    data.show("Upload")
    upload(data, file)
    expect(data.page.get_by_text("Upload a train.tsv above")).to_have_count(0)
    data.page.get_by_role("button", name="Remove train.tsv").click()
    expect(data.page.get_by_text("Upload a train.tsv above")).to_be_visible()
    upload(data, file, "test")
    expect(data.page.get_by_text("Upload a train.tsv above")).to_be_visible()
    upload(data, file)
    data.go("Lab")
    data.page.wait_for_selector(".kb-tree")
    data.go("Data")
    expect(data.page.get_by_text("Read: train.tsv")).to_be_visible()
    data.press("Let go of it")
    expect(data.page.get_by_text("Upload a train.tsv above")).to_be_visible()


def test_files_are_taken_back_then_one_is_read_and_a_row_opened_in_the_lab(data, tmp_path):
    page = data.page
    taken_back(data, tmp_path)
    bad, good = tmp_path / "bad.tsv", tmp_path / "mine.tsv"
    bad.write_text(f"text_a\tlabel\n{LINE}糖 尿 病\n", encoding="utf-8")
    good.write_text(f"text_a\tlabel\n{LINE * 200}{OTHER * 200}", encoding="utf-8")
    upload(data, bad)
    expect(page.get_by_text("bad.tsv, line 3: found 1 fields")).to_be_visible()
    expect(page.get_by_role("button", name="Count and read")).to_be_disabled()
    upload(data, good)
    data.press("Count and read")
    page.get_by_role("button", name="Stop").click(timeout=PATIENCE)
    expect(page.get_by_text("The reading was stopped")).to_be_visible()
    read(data)
    assert 0 < int(numbers(data)[0]) < 400

    frame = page.get_by_test_id("stDataFrame").last
    frame.scroll_into_view_if_needed()
    place = frame.bounding_box()
    page.mouse.click(place["x"] + 17, place["y"] + 52)
    page.get_by_role("button", name="Open in the Lab").click()
    page.wait_for_selector(".kb-tree", timeout=3 * PATIENCE)
    data.settle()
    text = page.get_by_role("textbox", name="Sentence", exact=True).input_value()
    assert text in ("患者有糖尿病", "给予布洛芬")
    assert data.prediction() != []
