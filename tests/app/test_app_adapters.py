"""The app serves a low-rank adapter as it serves a whole model."""

import os

import pytest
import torch
from conftest import save_checkpoint
from transformers import AutoModelForMaskedLM, AutoModelForTokenClassification

from app import services
from kbert_core import Card, KnowledgeGraph, Triple
from kbert_core.checkpoints import adapters
from kbert_core.checkpoints.checkpoint import load_model_and_missing
from kbert_lab.lab.scene import GraphRef, Scene
from kbert_lab.training.adapting import attach, save_adapter

LABELS = {"id2label": {0: "O", 1: "B-D", 2: "I-D"}}
GRAPH = KnowledgeGraph([Triple("糖尿病", "类别", "疾病")], name="kg")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    encoder = save_checkpoint(tmp_path / "encoder", AutoModelForMaskedLM, Card("mask"))
    auto = AutoModelForTokenClassification
    model, missing = load_model_and_missing(encoder, auto, device="cpu", **LABELS)
    attached = attach(model, rank=2, missing=missing)
    Card("ner", knowledge=("kg",)).write_to(model.config)
    save_adapter(attached, tmp_path / "adapter", encoder="../encoder")
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    return tmp_path


def test_the_app_lists_and_runs_an_adapter(folder):
    first = services.offer().models[0]
    assert (first.name, first.card.task, first.problem) == ("adapter", "ner", None)
    assert (
        services.model_size(first.path)
        == (folder / "adapter" / adapters.WEIGHTS_FILE).stat().st_size
    )
    scene = Scene(("患者有糖尿病史",), first.path, GraphRef.of(GRAPH), device="cpu")
    trace = services.trace(scene, GRAPH)
    assert len(trace.prediction.tokens) == 7
    maps = services.attention(scene, GRAPH)
    assert maps.shape[:2] == (3, 4)
    assert torch.from_numpy(maps.astype("float32")).sum(-1).allclose(torch.ones(1), atol=1e-2)


def test_an_adapter_is_loaded_anew_when_its_encoder_changes(folder):
    adapter, weights = str(folder / "adapter"), folder / "encoder" / "model.safetensors"
    before = services.stamp(adapter)
    assert services.stamp(adapter) == before
    os.utime(weights, ns=(0, 0))
    assert services.stamp(adapter) == before  # no click looks at the files
    services.look_anew()
    after = services.stamp(adapter)
    assert after != before
    weights.parent.rename(folder / "gone")
    services.look_anew()
    assert services.stamp(adapter) not in (before, after)
