"""Fine-tuning end to end on a handful of sentences, at toy size."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_data import cut_off, tuning
from transformers import Trainer

from kbert_core.errors import CheckpointError, DataError, OptionError
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.pipeline import Pipeline
from kbert_lab.training.checkpoints import last_whole, replacing, step_of
from kbert_lab.training.finetune import fit, train
from kbert_lab.training.options import Recipe
from kbert_lab.training.recipe import warn_of_no_effect
from kbert_lab.training.trainer import OrderedTrainer


@pytest.fixture
def encoder(checkpoints, tmp_path):
    """A folder of an encoder that a test may change."""
    return str(shutil.copytree(checkpoints["encoder"], tmp_path / "encoder"))


def test_training_overfits_twenty_sentences_and_the_model_loads_again(data):
    report = train(tuning(data))
    assert report["scores"]["dev"]["f1"] == 1.0
    assert report["learning_curve"][-1]["f1"] >= report["learning_curve"][0]["f1"]
    pipeline = Pipeline.from_pretrained(data / "model", device="cpu")
    graph = load_graph(data / "kg.spo")
    trace = pipeline("患者有糖尿病病史", graph=graph)
    assert [(s.text, s.label) for s in trace.prediction.spans] == [("糖尿病", "D")]
    assert pipeline.card.knowledge == ("kg",)
    card = (data / "model" / "README.md").read_text()
    assert "100.0" in card
    assert not (data / "model" / "checkpoints").exists()


@pytest.mark.parametrize("knowledge", [True, False])
def test_a_number_of_steps_is_kept_whatever_the_rows_and_dev_is_scored_at_equal_distances(
    data, knowledge
):
    changes = {} if knowledge else {"kg": ()}
    report = train(tuning(data, epochs=3, steps=20, **changes))
    assert [scores["step"] for scores in report["learning_curve"]] == [7, 13, 20]
    assert report["steps"] == 20
    assert ("edit_response" in report) == knowledge
    assert "steps: 20, one run" in (data / "model" / "README.md").read_text()


def test_weights_of_a_model_in_other_files_do_not_stay_beside_a_new_one(tmp_path):
    checkpoints = tmp_path / "model" / "checkpoints"
    checkpoints.mkdir(parents=True)
    old = ("model-00001-of-00002.safetensors", "model.safetensors.index.json", "notes.txt")
    for name in old:
        (tmp_path / "model" / name).write_text("old")
    with replacing(tmp_path / "model") as new:
        assert new.name == "model"
        for name in ("config.json", "model.safetensors"):
            (new / name).write_text("new")
        assert not (tmp_path / "model" / "config.json").exists()
    found = {file.name for file in (tmp_path / "model").iterdir()}
    assert found == {"config.json", "model.safetensors", "notes.txt", "checkpoints"}
    assert list(checkpoints.iterdir()) == []


@pytest.mark.parametrize(
    ("before", "minutes", "last"),
    [(5, 1e-9, "checkpoint-4"), (9, 5.0, "checkpoint-6")],
    ids=["within the first epoch", "after an epoch"],
)
def test_a_run_that_was_cut_off_goes_on_to_the_same_bits(data, monkeypatch, before, minutes, last):
    recipe = Recipe(0.3, 0.3, 0.3, 0.1)
    short = {"epochs": 2, "dropout": 0.1, "recipe": recipe, "batch_tokens": 48, "log_every": 50}
    whole, cut = (tuning(data, name, **short) for name in ("whole", "cut"))
    report = train(whole)
    monkeypatch.setattr("kbert_lab.training.trainer.SAVE_MINUTES", minutes)
    cut_off(cut, before=before)
    monkeypatch.undo()
    assert last_whole(data / "cut" / "checkpoints").name == last
    curves = train(cut)["learning_curve"], report["learning_curve"]
    assert [len(curve) for curve in curves] == [2, 2]
    for one, other in zip(*curves, strict=True):
        assert one == pytest.approx(other, rel=1e-5)
    weights = (data / "whole" / "model.safetensors").read_bytes()
    assert (data / "cut" / "model.safetensors").read_bytes() == weights


@pytest.mark.parametrize("system", ["k-bert", "knowbert", "roof-bert"])
def test_layers_that_are_computed_again_give_the_same_weights(data, encoder, system):
    how = {"encoder": encoder, "system": system, "epochs": 1, "dropout": 0.1}
    whole, again = (
        fit(tuning(data, f"{asked}", gradient_checkpointing=asked, **how)).pipeline.reader.model
        for asked in (False, True)
    )
    assert again.is_activation_checkpointing and not whole.is_activation_checkpointing
    for name, tensor in whole.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


def test_the_model_of_the_same_run_is_not_trained_again_unless_asked(data, monkeypatch, caplog):
    once = tuning(data, epochs=1)
    first = train(once)
    trained = []
    plain = OrderedTrainer.train_on
    monkeypatch.setattr(
        OrderedTrainer, "train_on", lambda self, last: trained.append(1) or plain(self, last)
    )
    before = (data / "model" / "model.safetensors").stat().st_mtime_ns
    with caplog.at_level("INFO"):
        assert train(once) == json.loads(json.dumps(first))
    assert "holds the finished model of this very run" in caplog.text
    assert not trained
    assert (data / "model" / "model.safetensors").stat().st_mtime_ns == before
    assert not (data / "model" / "checkpoints").exists()
    train(once.changed(again=True))
    assert trained
    assert (data / "model" / "model.safetensors").stat().st_mtime_ns > before


def test_a_cut_off_run_is_gone_on_from_with_the_same_options_only(data):
    short = tuning(data, epochs=3)
    cut_off(short, before=6)
    for changes, message in (
        ({"seed": 3}, "seed 0, now 3"),
        ({"epochs": 4}, "epochs 3, now 4"),
        ({"recipe": Recipe(0.5)}, r"recipe .*0\.0.*, now .*0\.5"),
        ({"kg": ()}, "graph "),
        ({"batch_tokens": 64}, "tokens a step 128, now 64"),
    ):
        with pytest.raises(OptionError, match=f"a run with other options .*{message}"):
            train(short.changed(**changes))
    rows = (data / "train.tsv").read_text(encoding="utf-8")
    (data / "train.tsv").write_text(rows.replace("明 显", "不 明"), encoding="utf-8")
    with pytest.raises(OptionError, match="training and dev data"):
        train(short)
    (data / "train.tsv").write_text(rows, encoding="utf-8")
    assert len(train(short.changed(patience=5, float32=False))["learning_curve"]) == 3


@pytest.mark.parametrize("cut", [7, 10, 13])
def test_a_cut_off_run_stops_early_where_a_whole_one_does(data, monkeypatch, cut):
    scores = dict(enumerate([0.1, 0.5, 0.4, 0.3, 0.45, 0.9], start=1))

    def scored(pipeline, examples, graph, **how):
        return {"f1": scores[len(curve) + 1]}

    curve = []

    def watched(self, *args, **kwargs):
        curve[:] = self.curve
        return Trainer.training_step(self, *args, **kwargs)

    monkeypatch.setattr(OrderedTrainer, "training_step", watched)
    monkeypatch.setattr("kbert_lab.training.finetune.evaluate", scored)
    made = tuning(data, epochs=6, patience=3)
    cut_off(made, before=cut)
    assert [entry["f1"] for entry in fit(made).curve] == [0.1, 0.5, 0.4, 0.3, 0.45]


def test_a_run_that_lies_elsewhere_now_still_ends_with_its_best_epoch(data, monkeypatch):
    scores = iter([0.1, 0.9, 0.3])
    how = {"epochs": 3, "patience": 0}
    with monkeypatch.context() as patch:
        patch.setattr("kbert_lab.training.finetune.evaluate", lambda *_, **__: {"f1": next(scores)})
        best = fit(tuning(data, **how)).pipeline.encoder.model.state_dict()
    (data / "model").rename(data / "moved")
    moved = fit(tuning(data, "moved", **how)).pipeline.encoder.model.state_dict()
    assert all(torch.equal(moved[name], tensor) for name, tensor in best.items())
    first, _ = sorted((data / "moved" / "checkpoints").glob("checkpoint-*"), key=step_of)
    shutil.rmtree(first)
    with pytest.raises(CheckpointError, match="the best checkpoint so far is gone or broken"):
        fit(tuning(data, "moved", **how))


def test_classes_pairs_and_masks_train_too(data, tmp_path):
    for task, header, rows in (
        ("classify", "label\ttext_a", ["1\t很好很好", "0\t很差很差"]),
        ("pair", "label\ttext_a\ttext_b", ["1\t甲乙\t甲乙", "0\t甲乙\t丙丁"]),
        ("mask", "label\ttext_a", ["1\t患者有糖尿病史", "0\t今查心电图正常"]),
    ):
        folder = tmp_path / task
        folder.mkdir()
        for split in ("train", "dev", "test"):
            (folder / f"{split}.tsv").write_text("\n".join([header, *rows * 4]) + "\n")
        made = tuning(folder, task=task, epochs=25, batch_tokens=32, kg=(str(data / "kg.spo"),))
        report = train(made)
        assert report["scores"]["test"]["accuracy"] > 0.9
        assert Pipeline.from_pretrained(folder / "model", device="cpu").card.task == task


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_label_unseen_in_training_is_named_before_training(data, split):
    (data / f"{split}.tsv").write_text("text_a\tlabel\n甲 乙\tB-X O\n", encoding="utf-8")
    message = rf"{split}\.tsv, line 2: the label 'B-X' is not among"
    with pytest.raises(DataError, match=message):
        train(tuning(data, epochs=1))
    assert not (data / "model").exists()


def test_new_names_without_named_entities_have_no_effect_and_this_is_said(data, caplog):
    warn_of_no_effect(tuning(data, task="classify", recipe=Recipe(new_names=0.5)), {})
    assert "--new-names 0.5 has no effect: it needs named entities" in caplog.text
    caplog.clear()
    warn_of_no_effect(tuning(data, recipe=Recipe(new_names=0.5)), {})
    assert not caplog.text


def test_data_with_one_label_are_refused_before_training(data):
    for file in data.glob("*.tsv"):
        file.write_text("text_a\tlabel\n甲 乙\tO O\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"its only label is 'O'. Training needs at least two"):
        train(tuning(data))
    assert not (data / "model").exists()


def test_a_loss_that_is_not_a_number_stops_with_the_batch_named(data):
    with pytest.raises(
        DataError, match=r"The loss is (nan|inf) in step \d+, on '.*line \d+ of .*train.tsv"
    ):
        train(tuning(data, learning_rate=1e25, epochs=3))


def test_training_chooses_by_context_with_an_encoder_that_does_not_change(data, checkpoints):
    encoder = str(checkpoints["encoder"])
    chosen = InjectionOptions(1, strategy="context")
    report = train(tuning(data, encoder=encoder, injection=chosen, epochs=1))
    assert "dev" in report["scores"]
    pipeline = Pipeline.from_pretrained(data / "model", device="cpu")
    assert pipeline.card.reading.options == replace(chosen, scorer=encoder)
    assert pipeline.kbert.scorer(pipeline.card.reading.options) is not None
    with pytest.raises(OptionError, match="needs a pretrained encoder"):
        train(tuning(data, "other", injection=chosen))


def test_a_finished_model_of_another_run_is_not_replaced(data):
    once = tuning(data, epochs=1)
    train(once)
    before = (data / "model" / "model.safetensors").read_bytes()
    for changes, message in (
        ({"epochs": 2}, "another epochs, which"),
        ({"seed": 1, "kg": ()}, "another seed, another graph, which"),
        ({"patience": 1}, "another patience"),
    ):
        with pytest.raises(OptionError, match=f"model: holds .*{message}.* another --output"):
            train(once.changed(**changes))
    rows = (data / "train.tsv").read_text(encoding="utf-8")
    (data / "train.tsv").write_text(rows.replace("明 显", "不 明"), encoding="utf-8")
    with pytest.raises(OptionError, match="another training and dev data, which would be lost"):
        train(once)
    assert (data / "model" / "model.safetensors").read_bytes() == before
    assert not (data / "model" / "checkpoints").exists()
    (data / "train.tsv").write_text(rows, encoding="utf-8")
    train(once)  # the same run, made again


def test_a_finished_model_knows_its_encoder_by_its_weights(data, encoder):
    path = Path(encoder)
    once = tuning(data, encoder=f"{path.parent}/./{path.name}", epochs=1)
    train(once)
    train(once.changed(encoder=encoder))
    weights = path / "model.safetensors"
    parameters = load_file(weights)
    next(iter(parameters.values())).add_(0.1)
    save_file(parameters, weights, metadata={"format": "pt"})
    with pytest.raises(OptionError, match="with another encoder, which would be lost"):
        train(once)


def test_an_encoder_is_not_replaced_by_a_model_trained_on_it(data, encoder):
    with pytest.raises(OptionError, match=r"holds another model \(.* Name another --output\.$"):
        train(tuning(data, encoder=encoder, output=encoder))
