"""The Lab beside a model's gate: what it writes, and why it can't."""

import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import services
from kbert_core.pipeline import Pipeline
from kbert_lab.lab.views import prediction
from kbert_lab.study.gate import FEATURES
from kbert_lab.study.gated import FILE, Gate, Gated, _digest

LAB = Path(__file__).parents[2] / "app" / "app_pages" / "lab.py"
PATIENCE = 60


@pytest.fixture
def model(checkpoints, tmp_path, monkeypatch):
    """The only model of the app, with a gate for a demo graph that lets every name through."""
    folder = tmp_path / "tiny-ner"
    shutil.copytree(checkpoints["ner"], folder)
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    graph = services.demo_graph("medical_zh")
    fit = {"features": dict.fromkeys(FEATURES, 0), "bias": 2, "threshold": 0.5, "dev_f1": {}}
    learnt = {"labels": {"疾病": "疾病", "检查": "治疗"}, "names": {}, "injected": False}
    of = {"fingerprint": graph.fingerprint, "about": "medical_zh"}
    gate = Gate(**fit, matches=9, right=6, **learnt, model=_digest(folder), graph=of)
    gate.save(folder / FILE)
    return folder


def test_what_the_gate_writes_is_ringed_named_and_escaped(model):
    graph = services.demo_graph("medical_zh")
    text = "<b>患者有糖尿病"
    own = Pipeline.from_pretrained(model)(text).prediction
    gated = Gated.from_pretrained(model)(text, graph=graph).prediction
    drawn = prediction.gate_html(text, gated, own)
    assert "<b>患" not in drawn and "kb-ring" in drawn
    assert "糖尿病" in drawn and "88.1 %" in drawn and "written" in drawn
    same = prediction.gate_html(text, gated, gated)
    assert "kb-ring" not in same


def test_the_lab_shows_it_when_asked_and_says_when_the_graph_is_another(model):
    at = AppTest.from_file(LAB, default_timeout=PATIENCE).run()
    assert not at.exception
    at.text_area(key="lab.text").set_value("患者有糖尿病，行心电图检查").run()
    html = [block.body for block in at.get("html")]
    assert not any("Chance to be right" in block for block in html)
    at.toggle(key="lab.gate").set_value(True).run()
    assert any("Chance to be right" in block for block in [b.body for b in at.get("html")])
    assert not at.exception and not at.warning
    at.selectbox(key="lab.graph").select_index(1).run()
    assert "another graph" in at.warning[0].value
    (model / FILE).unlink()
    at = AppTest.from_file(LAB, default_timeout=PATIENCE).run()  # a visit sees files as they are
    assert not at.exception
    assert not [toggle for toggle in at.toggle if toggle.key == "lab.gate"]
