"""What training starts from: its options, heads that are new, encoders that can't be used."""

import json
import shutil

import pytest
import torch
from conftest import tiny_tokenizer
from small_data import tuning
from transformers import GPT2Config, GPT2Model, ViTConfig, ViTModel

from kbert_core.checkpoints.checkpoint import load_model_and_missing
from kbert_core.errors import CheckpointError, KBertError, OptionError
from kbert_core.tasks import TASKS
from kbert_lab.training.finetune import fit, train
from kbert_lab.training.options import PretrainOptions, TrainOptions


def options(data, encoder, **changes):
    how = {"epochs": 1, "learning_rate": None, "dropout": 0.1, "float32": False, **changes}
    return tuning(data, **{"encoder": str(encoder), "kg": (), **how})


@pytest.mark.parametrize("name", ["encoder", "mask"])
def test_an_encoder_without_a_head_warns_of_none_of_other_labels(data, checkpoints, caplog, name):
    fit(options(data, checkpoints[name]))
    assert "head for the labels" not in caplog.text


def test_a_head_for_other_labels_is_made_new_and_the_body_kept(data, checkpoints, caplog):
    fitted = fit(options(data, checkpoints["ner"], learning_rate=1e-12))
    assert "has a head for the labels O, B-疾病, I-疾病, B-治疗, I-治疗; the one for O, B-D" in (
        caplog.text
    )
    model = fitted.pipeline.encoder.model
    assert model.num_labels == 5
    before, _ = load_model_and_missing(
        checkpoints["ner"], TASKS["ner"].auto_class, device="cpu", dtype=torch.float32
    )
    after = model.state_dict()
    for name, tensor in before.state_dict().items():
        kept = torch.allclose(tensor, after[name], atol=1e-6)
        assert kept == (name != "classifier.weight"), name


def test_a_head_of_another_task_is_new_even_where_its_size_fits(data, checkpoints, caplog):
    rows = ["label\ttext_a", *(f"{n % 2}\t{'好坏'[n % 2] * 3}" for n in range(20))]
    for split in ("train", "dev"):
        (data / f"{split}.tsv").write_text("\n".join(rows) + "\n")
    (data / "test.tsv").unlink()
    fitted = fit(options(data, checkpoints["pair"], task="classify", learning_rate=1e-12, seed=5))
    before, _ = load_model_and_missing(
        checkpoints["pair"], TASKS["pair"].auto_class, device="cpu", dtype=torch.float32
    )
    head = fitted.pipeline.encoder.model.classifier.weight
    assert not torch.allclose(head, before.classifier.weight, atol=1e-3)
    assert "was trained for the task 'pair'; its head for 'classify' is new" in caplog.text


def test_a_head_for_the_same_labels_goes_on(data, checkpoints, caplog):
    first = train(
        options(data, checkpoints["encoder"], epochs=10, learning_rate=3e-3, float32=True)
    )
    shutil.copytree(data / "model", data / "first")
    again = options(data, data / "first", learning_rate=1e-12, output=str(data / "b"))
    assert fit(again).curve[0]["f1"] == pytest.approx(first["scores"]["dev"]["f1"])
    assert "is new" not in caplog.text


def saved(folder, model):
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def test_a_model_that_is_no_such_encoder_is_refused_with_the_reason(data, tmp_path):
    size = len(tiny_tokenizer())
    gpt = GPT2Config(vocab_size=size, n_positions=64, n_embd=32, n_layer=1, n_head=2)
    vit = ViTConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    for name, model in (("gpt2", GPT2Model(gpt)), ("vit", ViTModel(vit))):
        with pytest.raises(KBertError) as caught:
            fit(options(data, saved(tmp_path / name, model)))
        assert "can't be" in str(caught.value)
        assert not (data / "model" / "checkpoints").exists()


def test_a_folder_that_is_no_model_and_a_broken_one_are_refused(data, checkpoints, tmp_path):
    with pytest.raises(CheckpointError, match="found no tokenizer"):
        fit(options(data, data))
    shutil.copytree(checkpoints["encoder"], tmp_path / "broken")
    config = json.loads((tmp_path / "broken" / "config.json").read_text())
    config["hidden_size"] = 64
    (tmp_path / "broken" / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="other sizes than its"):
        fit(options(data, tmp_path / "broken"))


# Options that don't fit; limits of a single one are those of tests/core/test_options.py


PRETRAINING = [
    ({"steps": 0}, "steps is 0, expected at least 1"),
    ({"learning_rate": float("nan")}, "learning_rate is nan"),
    ({"seed": 2**32}, "seed is 4294967296"),
    ({"batch_tokens": 64}, "batch_tokens is 64, less than a row of 128"),
    ({"max_positions": 64}, "max_positions is 64, less than a row"),
    ({"num_attention_heads": 3}, "which 3 attention heads don't divide"),
    ({"word_pieces": 10, "vocabulary": "x"}, "Both vocabulary and word_pieces"),
    ({"word_pieces": 500, "vocabulary_size": 20}, "word_pieces is 500, more than a voc.* of 20"),
]
TRAINING = [
    ({"task": "nre"}, "task is 'nre', expected one of ner"),
    ({"adapter": 8}, "needs a pretrained encoder"),
    ({"task": "pair", "negatives": 3}, r"for answer selection \(task rank\) alone; .*'pair'"),
    ({"epochs": 3, "steps": 2}, "steps is 2, fewer than the 3 times"),
    ({"hidden_size": 200}, "Give a multiple of 64"),
    ({"num_hidden_layers": 2, "encoder": "e"}, "is only for a BERT trained from scratch"),
    ({"seed": -3}, "seed is -3, expected a whole number from 0"),
]


@pytest.mark.parametrize(("changes", "message"), PRETRAINING)
def test_pretraining_refuses_options_that_do_not_fit(changes, message):
    with pytest.raises(OptionError, match=message):
        PretrainOptions.of(text=("a.txt",), output="model", **changes)


@pytest.mark.parametrize(("changes", "message"), TRAINING)
def test_training_refuses_options_that_do_not_fit(changes, message):
    with pytest.raises(OptionError, match=message):
        TrainOptions.of(**{"task": "ner", "data": "data", "output": "model", **changes})


def test_a_file_in_the_way_of_the_output_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    for output in ("taken", "taken/model"):
        with pytest.raises(OptionError, match=r"taken is a file\. Name a folder"):
            TrainOptions.of(task="ner", data="data", output=str(tmp_path / output))
