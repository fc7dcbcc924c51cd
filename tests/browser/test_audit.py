"""What a visitor of the Audit page does, in headless Chromium."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

NAMES = "".join(f"名{n}号\t类别\t疾病\n" for n in range(60))


def rows(numbers):
    return "text_a\tlabel\n" + "".join(f"有 名 {n} 号\tO B-D I-D I-D\n" for n in numbers)


def one_token_a_line(numbers):
    lines = rows(numbers).splitlines()[1:]
    pairs = [
        zip(*(column.split(" ") for column in line.split("\t")), strict=True) for line in lines
    ]
    return "\n\n".join("\n".join(map(" ".join, sentence)) for sentence in pairs)


@pytest.fixture
def audit(lab):
    lab.go("Audit")
    lab.page.wait_for_selector(".kb-headline")
    lab.settle()
    return lab


def test_a_visitor_audits_the_example_then_data_and_a_graph_of_their_own(audit, tmp_path):
    page = audit.page
    assert "Scores on this split are too good: the splits leak." in audit.text()
    charts = page.locator('[data-testid="stPlotlyChart"]')
    expect(charts).to_have_count(2)
    expect(charts.nth(1)).to_contain_text("症状")

    graph = tmp_path / "names.spo"
    graph.write_text(NAMES, encoding="utf-8")
    page.locator(".st-key-audit-open button").first.click()
    page.locator('input[type="file"]').first.set_input_files(graph)
    audit.settle()
    page.keyboard.press("Escape")
    audit.settle()
    expect(page.get_by_text("names, 60 triples").first).to_be_visible()

    (tmp_path / "train.tsv").write_text(rows(range(6)), encoding="utf-8")
    (tmp_path / "test.conll").write_text(one_token_a_line(range(4, 10)), encoding="utf-8")
    page.get_by_role("radio", name="Upload", exact=True).click()
    audit.settle()
    assert "Below is the audit of what was chosen before" in audit.text()
    for file in ("train.tsv", "test.conll"):
        split = file.partition(".")[0]
        box = page.locator(f'.st-key-audit-upload_{split} input[type="file"]')
        box.set_input_files(tmp_path / file)
        audit.settle()
    page.get_by_role("button", name="Audit", exact=True).click()
    audit.settle()
    said = audit.text()
    assert "33.3 % of test stand in train" in said
    assert "There is no dev set here" in said
    assert "chosen before" not in said
    with page.expect_download() as download:
        page.get_by_role("button", name="Download JSON").click()
    found = Path(download.value.path()).read_text(encoding="utf-8")
    assert '"headline": "Scores on this split are too good' in found
