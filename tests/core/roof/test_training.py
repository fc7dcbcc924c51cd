"""Roof-BERT through the trainer: it learns, goes on where it was cut off, and loads."""

import json

import pytest
import torch
from safetensors.torch import load_file
from small_data import cut_off

from kbert_core.errors import OptionError
from kbert_core.knowledge import load_graph
from kbert_core.pipeline import Pipeline
from kbert_lab.training.finetune import fit, save, train
from kbert_lab.training.options import Recipe, TrainOptions


@pytest.fixture
def options(data, checkpoints):
    return TrainOptions.of(
        task="ner",
        data=str(data),
        output=str(data / "model"),
        kg=(str(data / "kg.spo"),),
        encoder=str(checkpoints["encoder"]),
        system="roof-bert",
        roof=json.dumps({"kb_encoder": "shared", "expand": 1}),
        recipe=Recipe(counterfactual=0.3, mention_dropout=0.3),
        epochs=2,
        batch_tokens=128,
        learning_rate=3e-4,
        device="cpu",
        float32=True,
    )


def test_a_roof_learns_and_reads_its_graph_when_loaded(options, data):
    size = {"hidden_size": 64, "num_hidden_layers": 2}
    learnt = options.changed(
        encoder="scratch",
        epochs=24,
        learning_rate=1e-3,
        batch_tokens=384,
        dropout=0.0,
        recipe=Recipe(),
        **size,
    )
    report = train(learnt)
    assert report["scores"]["dev"]["f1"] > 0.9
    assert report["edit_response"]["dev"]["seen"]["n"] > 0
    pipeline = Pipeline.from_pretrained(data / "model", device="cpu")
    assert pipeline.card.system == "roof-bert"
    assert (pipeline.config.kb_encoder, pipeline.config.expand) == ("shared", 1)
    trace = pipeline("患者有糖尿病病史", graph=load_graph(data / "kg.spo"))
    assert trace.used
    assert [(s.text, s.label) for s in trace.prediction.spans] == [("糖尿病", "D")]


def test_a_run_that_was_cut_off_ends_with_the_same_weights(options, data):
    train(options.changed(output=str(data / "whole"), roof=""))
    cut = options.changed(roof="")
    cut_off(cut, before=4)
    train(cut)
    whole, gone_on = (load_file(data / name / "model.safetensors") for name in ("whole", "model"))
    assert whole.keys() == gone_on.keys()
    assert any(".inserted.knowledge." in name for name in whole)
    assert all(torch.equal(own, gone_on[name]) for name, own in whole.items())


def test_a_roof_is_trained_further_from_a_saved_one(options, data):
    train(options.changed(epochs=1))
    again = options.changed(
        encoder=str(data / "model"),
        output=str(data / "further"),
        learning_rate=1e-9,
        system=None,
        roof="",
        epochs=1,
    )
    train(again)
    before, after = (load_file(data / name / "model.safetensors") for name in ("model", "further"))
    assert all(torch.allclose(own, after[name], atol=1e-5) for name, own in before.items())


def test_options_of_a_roof_are_for_a_roof(options):
    with pytest.raises(
        OptionError, match=r"The system 'k-bert' has no .*Leave --roof out, or name --system roof-b"
    ):
        train(options.changed(system="k-bert"))


@pytest.mark.parametrize("system", ["roof-bert", "knowbert"])
def test_an_adapter_is_saved_with_what_is_inserted(options, data, system):
    roof = {"roof": options.knowledge.roof} if system == "roof-bert" else {"roof": ""}
    adapted = options.changed(adapter=2, epochs=1, learning_rate=1e-2, system=system, **roof)
    fitted, graph = fit(adapted), load_graph(data / "kg.spo")
    before = fitted.pipeline("患者有糖尿病", graph=graph)
    save(adapted, fitted, notes={})
    folder = data / "model"
    assert {"adapter_model.safetensors", "inserted.safetensors"} <= {
        file.name for file in folder.iterdir()
    }
    assert not any("inserted" in name for name in load_file(folder / "adapter_model.safetensors"))
    assert not any("lora" in name for name in load_file(folder / "inserted.safetensors"))
    loaded = Pipeline.from_pretrained(folder, device="cpu")
    assert loaded.card.system == system
    after = loaded("患者有糖尿病", graph=graph)
    assert torch.allclose(before.logits, after.logits, atol=1e-4)
    bare = loaded("患者有糖尿病")
    assert not torch.allclose(bare.logits, after.logits, atol=1e-3)
