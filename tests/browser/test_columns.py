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


def side_by_side(lab, name):
    lab.choose("Compare with", f"Side by side: {name}")


def test_an_edit_is_seen_in_every_system_on_one_screen(lab):
    lab.page.set_viewport_size({"width": 1440, "height": 900})
    side_by_side(lab, "the systems")
    heads = lab.page.locator(".kb-column b")
    expect(heads).to_have_text(["K-BERT", "KnowBert", "Roof-BERT", "Plain text"])
    lab.page.locator("[data-switch]").first.click()
    lab.settle()
    expect(lab.page.locator(".kb-flow .kb-removed")).to_have_count(4)  # struck out by each
    strip = lab.page.locator(".st-key-lab_strip")
    expect(strip).to_contain_text("KnowBert: no entity")
    expect(lab.page.get_by_text("token × entity: share of the vector")).to_be_visible()
    expect(lab.page.get_by_text("token × triple token: attention")).to_be_visible()
    lab.page.mouse.move(300, 600)
    lab.page.mouse.wheel(0, 600)
    lab.page.wait_for_timeout(200)
    box = strip.bounding_box()  # stays in sight
    assert 30 < box["y"] < 90 and box["height"] < 60
    assert lab.fits()


def test_a_visitor_puts_k_berts_parts_side_by_side_and_follows_a_token(lab):
    side_by_side(lab, "K-BERT's parts")
    text = lab.text()
    assert all(name in text for name in PANELS)
    sums = [root.get_attribute("data-sum") for root in matrices(lab).all()]
    assert len(set(sums)) == 3  # BERT's, the tree's twice, and everything visible
    assert sums[1] == sums[2]
    assert "are equal" not in text
    lab.click_matrix(4, 5, panel=1)
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
