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


def test_another_task_and_another_model_are_chosen(lab):
    lab.choose("Task", "Fill-mask")
    expect(lab.page.get_by_text("[MASK] 1")).to_be_visible()
    assert "Reads Chinese · trained on" in lab.text()
    assert "held out: perplexity" in lab.text()
    assert any("高" in token for token, _, _ in lab.tokens())
    lab.choose("Task", "Named entities")
    lab.choose("Model", "medical-ner-bert")
    assert "trained on medical_ner_dedup without knowledge" in lab.text()
    lab.choose("Model", "medical-ner-kbert")
    assert "trusts the graph, wrong triples too" in lab.text()
    assert ("胃镜", "Examine") in lab.prediction("Now")


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
    lab.write("今天天气很好")
    assert "All three find no entity" in lab.text()
    assert "No triple is injected into this text" in lab.text()
    lab.switch("Beside its twin without knowledge")
    assert "Twin" not in sides(lab)


def test_from_the_twins_side_the_model_with_knowledge_stands_beside(lab):
    lab.choose("Model", "medical-ner-bert")
    lab.switch("Beside its twin with knowledge")
    assert sides(lab) == SIDES
    assert ("胃镜", "Examine") in lab.prediction("Twin")
    lab.go("About")
    lab.settle()
    lab.go("Lab")
    lab.settle()
    assert sides(lab) == SIDES, "the switch is kept like the other choices"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_twins_fit_a_narrow_window(visit, scheme):
    lab = visit(width=800, height=1000, scheme=scheme)
    lab.switch("Beside its twin without knowledge")
    assert lab.fits()
    table = lab.page.locator(".kb-twins")
    expect(table).to_be_visible()
    assert table.bounding_box()["width"] <= 800


def test_a_folder_of_ones_own_with_another_task_is_opened(lab, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(MODELS / "zh-mini", own)
    config = json.loads((own / "config.json").read_text(encoding="utf-8"))
    config["kbert"]["notes"] = {"title": "My model", "data": "my texts"}
    (own / "config.json").write_text(json.dumps(config), encoding="utf-8")
    lab.open_model_path(own)
    assert "Opened My model: Fill-mask. Reads Chinese · trained on my texts" in lab.text()
    expect(lab.page.get_by_text("[MASK] 1")).to_be_visible()


def test_a_bad_folder_of_ones_own_is_refused_and_changes_nothing(lab, tmp_path):
    before = lab.prediction("Now")
    lab.open_model_path(tmp_path / "<b>nowhere</b>")
    assert "The model was not opened, and nothing was changed" in lab.text()
    assert "<b>nowhere</b>: there is no such folder" in lab.text()
    (tmp_path / "empty").mkdir()
    lab.open_model_path(tmp_path / "empty")
    assert "empty: no config.json" in lab.text()
    broken = tmp_path / "broken"
    shutil.copytree(MODELS / "medical-ner-bert", broken)
    (broken / "model.safetensors").write_bytes(b"broken")
    lab.open_model_path(broken)
    assert "broken: the checkpoint can't be read" in lab.text()
    assert lab.prediction("Now") == before
