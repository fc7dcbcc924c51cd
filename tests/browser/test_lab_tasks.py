"""Choosing tasks and models, and twins side by side, in headless Chromium."""

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

MODELS = Path(__file__).resolve().parents[2] / "models"


def test_the_twin_stands_beside_and_an_edit_leaves_it_as_it_is(lab):
    lab.choose("Compare with", "Side by side: the model and its twin")
    expect(lab.page.locator(".kb-column b")).to_have_text(["Now", "Graph off", "Twin"])
    twin = lab.page.locator(".kb-ner").nth(2).inner_text()
    lab.page.locator("[data-switch]").first.click()
    lab.settle()
    now, off, after = lab.page.locator(".kb-ner").all_inner_texts()
    assert "BodyPart" in now and "BodyPart" not in off
    assert twin.split("Examine")[-1].strip() in after
    lab.page.set_viewport_size({"width": 800, "height": 1000})
    lab.settle()
    assert lab.fits()


def test_a_folder_of_ones_own_is_opened_or_refused_with_its_reason(lab, tmp_path):
    before = lab.prediction("Now")
    lab.open_model_path(tmp_path / "<b>nowhere</b>")
    dialog = lab.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Not opened, and nothing was changed")
    expect(dialog).to_contain_text("<b>nowhere</b>: there is no such folder")
    assert lab.prediction("Now") == before
    own = tmp_path / "own"
    shutil.copytree(MODELS / "zh-mini", own)
    config = json.loads((own / "config.json").read_text(encoding="utf-8"))
    config["kbert"]["notes"] = {"title": "My model", "data": "my texts"}
    (own / "config.json").write_text(json.dumps(config), encoding="utf-8")
    lab.open_model_path(own)
    assert "Opened My model: Fill-mask. Reads Chinese · trained on my texts" in lab.text()
    expect(lab.page.get_by_text("[MASK] 1")).to_be_visible()
