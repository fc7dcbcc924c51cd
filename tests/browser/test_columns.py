"""What a visitor does with readings side by side, in headless Chromium."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
PANELS = ["BERT", "K-BERT", "Hard positions", "Everything visible"]


def matrices(lab, count=4):
    roots = lab.page.locator(".root[data-sum]")
    expect(roots).to_have_count(count)
    return roots


def click_cell(lab, panel, row, column):
    root = matrices(lab).nth(panel)
    cell, left, top = (float(root.get_attribute(f"data-{k}")) for k in ("cell", "left", "top"))
    canvas = root.locator("canvas.over")
    canvas.scroll_into_view_if_needed()
    canvas.click(position={"x": left + (column + 0.5) * cell, "y": top + (row + 0.5) * cell})
    lab.settle()


def side_by_side(lab, name):
    lab.choose("Compare with", f"Side by side: {name}")


def test_an_edit_is_seen_in_every_system_on_one_screen(lab):
    lab.page.set_viewport_size({"width": 1440, "height": 900})
    side_by_side(lab, "the systems")
    heads = lab.page.locator(".kb-column b")
    expect(heads).to_have_text(["K-BERT", "KnowBert", "Roof-BERT", "Plain text"])
    structure = lab.page.locator(".kb-tree, .kb-ner").all()
    assert all(box.bounding_box()["y"] + box.bounding_box()["height"] < 900 for box in structure)
    lab.page.locator("[data-switch]").first.click()
    lab.settle()
    lines = lab.page.locator(".kb-ner")
    expect(lines).to_have_count(4)
    assert all("Before" in text and "Now" in text for text in lines.all_inner_texts())
    assert lab.fits()


def test_a_visitor_puts_k_berts_parts_side_by_side_and_follows_a_token(lab):
    side_by_side(lab, "K-BERT's parts")
    text = lab.text()
    assert all(name in text for name in PANELS)
    sums = [root.get_attribute("data-sum") for root in matrices(lab).all()]
    assert len(set(sums)) == 3  # BERT's, the tree's twice, and everything visible
    assert sums[1] == sums[2]
    assert "No two of them are equal." in text
    click_cell(lab, 1, 4, 5)
    said = lab.page.get_by_text(re.compile("“胃” may attend to “镜”"))
    expect(said).to_have_count(4)

    lab.page.get_by_role("radio", name="Attention").click()
    lab.settle()
    scales = lab.page.locator(".root .scale .high")
    expect(scales).to_have_count(4)
    assert len(set(scales.all_inner_texts())) == 1
    assert len({root.get_attribute("data-sum") for root in matrices(lab).all()}) == 4

    lab.page.set_viewport_size({"width": 390, "height": 900})
    lab.settle()
    boxes = [root.bounding_box() for root in matrices(lab).all()]
    assert len({round(box["x"]) for box in boxes}) == 1
    tops = [box["y"] for box in boxes]
    assert tops == sorted(tops) and len(set(tops)) == 4
    assert lab.fits()
