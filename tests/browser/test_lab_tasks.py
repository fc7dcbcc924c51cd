"""Choosing tasks and models, and twins side by side, in headless Chromium."""

import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

MODELS = Path(__file__).resolve().parents[2] / "models"
SIDES = ["With the graph", "Graph off", "Twin"]


def sides(lab):
    return lab.page.locator(".kb-side b").all_inner_texts()


def test_the_twin_stands_beside_until_it_is_switched_off(lab):
    lab.switch("Beside its twin without knowledge")
    assert sides(lab) == SIDES
    assert ("胃镜", "Examine") in lab.prediction("With the graph")
    assert lab.prediction("With the graph") != lab.prediction("Graph off")
    said = lab.page.get_by_text("“胃镜” Examine with the graph")
    expect(said.first).to_be_visible()
    assert lab.page.locator(".kb-twins .kb-badge").count() >= 1
    twin = lab.prediction("Twin")
    lab.rewrite(3, 0, "疾病")
    assert ("胃镜", "Disease") in lab.prediction("With the graph as edited")
    assert lab.prediction("Twin") == twin
    assert "Since the last edit: “胃镜” was Examine, is Disease" in lab.text()
    lab.show("Difference")
    assert "Difference: now − its twin" in lab.text()
    lab.page.set_viewport_size({"width": 800, "height": 1000})
    lab.settle()
    assert lab.fits()
    assert lab.page.locator(".kb-twins").bounding_box()["width"] <= 800
    lab.write("今天天气很好")
    assert "All three find no entity" in lab.text()
    assert "No triple is injected into this text" in lab.text()
    lab.switch("Beside its twin without knowledge")
    assert "Twin" not in sides(lab)


def test_a_folder_of_ones_own_is_opened_or_refused_with_its_reason(lab, tmp_path):
    before = lab.prediction("Now")
    lab.open_model_path(tmp_path / "<b>nowhere</b>")
    dialog = lab.page.get_by_role("dialog")
    expect(dialog).to_contain_text("The model was not opened, and nothing was changed")
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
