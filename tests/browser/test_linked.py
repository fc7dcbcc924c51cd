"""A KnowBert in the Lab: open it, see its links, edit, see the change; in headless Chromium."""

import pytest
from playwright.sync_api import expect
from tiny_knowbert import PICTURE, SENSES, TEST, TEXT, knowbert_in

pytestmark = pytest.mark.browser


def test_a_knowbert_is_opened_shows_its_links_and_follows_an_edited_gloss(
    lab, tmp_path, checkpoints
):
    knowbert_in(tmp_path / "links-zh", checkpoints, head=False)
    senses = tmp_path / "senses.spo"
    lines = (f"{x.head}\t{x.relation}\t{x.tail}\n" for x in SENSES)
    senses.write_text("".join(lines), encoding="utf-8")
    lab.open_model_path(tmp_path / "links-zh")
    assert "Opened links-zh: Entity linking" in lab.text()
    lab.open_graph_path(senses)
    lab.write(TEXT)
    expect(lab.page.get_by_role("heading", name="Linked entities")).to_be_visible()
    assert "has no sentence tree, no visible matrix and no interventions" in lab.text()
    before = weights(lab)
    assert set(before) == {TEST.head, PICTURE.head}
    assert lab.cell(4, 0) == "in a vector"
    lab.rewrite(3, 0, "墙上的一张画")
    after = weights(lab)
    assert after != before
    assert "墙上的一张画" in lab.text()
    assert "Before" in lab.text()
    lab.toggle(0)
    assert set(weights(lab)) == {PICTURE.head}
    assert "switched off" in (lab.cell(4, 0), lab.cell(4, 1))
    lab.go("Explain")
    expect(lab.page.get_by_text("All triples together")).to_be_visible()
    lab.page.set_viewport_size({"width": 420, "height": 900})
    expect(lab.page.get_by_test_id("stExpandSidebarButton")).to_be_visible()
    lab.go("Lab")
    assert lab.fits()


def weights(lab):
    """The weight of every candidate in the table of linked entities."""
    rows = lab.page.locator("table:has(colgroup) tbody tr").all()
    cells = [row.locator("td").all_inner_texts() for row in rows]
    return {texts[0]: texts[4].strip() for texts in cells if len(texts) == 6}
