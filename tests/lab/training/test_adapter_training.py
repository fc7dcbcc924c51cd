"""Training low-rank adapters end to end, at toy size."""

import shutil

import pytest
import torch
from safetensors.torch import load_file
from small_data import cut_off, tuning, write_data
from transformers import BertConfig, BertForMaskedLM

from kbert_core.errors import OptionError
from kbert_core.knowledge import load_graph
from kbert_core.pipeline import Pipeline
from kbert_lab.data.labelled import read_examples
from kbert_lab.training.finetune import fit, save, train
from kbert_lab.training.vocabulary import character_tokenizer


@pytest.fixture
def encoder(data):
    """A random encoder with the data's characters, beside where adapters go."""
    return write_encoder(data)


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory):
    """Data, encoder and an adapter that has learnt the data; and what training reported."""
    data = write_data(tmp_path_factory.mktemp("trained"))
    before = (write_encoder(data) / "model.safetensors").read_bytes()
    report = train(options(data))
    assert (data / "encoder" / "model.safetensors").read_bytes() == before
    return data, report


@pytest.fixture
def trained(trained_once, tmp_path):
    """A copy of these files, and the report."""
    data, report = trained_once
    return shutil.copytree(data, tmp_path / "copy"), report


def write_encoder(data):
    texts = [(data / name).read_text() for name in ("train.tsv", "kg.spo")]
    tokenizer = character_tokenizer(["".join(text.split()) for text in texts])
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
    )
    BertForMaskedLM(config).save_pretrained(data / "encoder")
    tokenizer.save_pretrained(data / "encoder")
    return data / "encoder"


def options(data, output="adapter", **changes):
    how = {"encoder": str(data / "encoder"), "adapter": 8, "epochs": 15, "learning_rate": 1e-2}
    return tuning(data, output, **{**how, "float32": False, **changes})


def test_an_adapter_overfits_twenty_sentences(trained):
    data, report = trained
    assert report["scores"]["dev"]["f1"] == 1.0
    assert report["encoder"] == "encoder"
    size = (data / "adapter" / "adapter_model.safetensors").stat().st_size
    count = report["adapter"]["trained"]
    assert size < 2 * count + 8000  # half precision, and names
    assert not (data / "adapter" / "tokenizer.json").exists()
    assert not (data / "adapter" / "checkpoints").exists()
    card = (data / "adapter" / "README.md").read_text()
    assert f"- Encoder: encoder, {report['parameters']:,} parameters\n" in card
    assert f"- Adapter: rank 8, alpha 16; {count:,} parameters trained, " in card
    pipeline = Pipeline.from_pretrained(data / "adapter", device="cpu")
    assert sum(p.numel() for p in pipeline.encoder.model.parameters()) == report["parameters"]
    (gold,) = (example := read_examples(data / "dev.tsv", "ner")[0]).spans
    trace = pipeline(*example.sentences, graph=load_graph(data / "kg.spo"))
    assert [(s.start, s.end, s.label) for s in trace.prediction.spans] == [gold]
    assert pipeline.card.knowledge == ("kg",)


def test_an_adapters_run_that_was_cut_off_goes_on_to_the_same_weights(data, encoder):
    short = {"epochs": 4, "dropout": 0.1, "float32": True}
    train(options(data, "whole", **short))
    cut_off(options(data, "cut", **short), before=9)
    for rank, said in ((4, "4"), (None, "null")):
        with pytest.raises(OptionError, match=f"adapter 8, now {said}"):
            train(options(data, "cut", **{**short, "adapter": rank}))
    train(options(data, "cut", **short))
    whole = load_file(data / "whole" / "adapter_model.safetensors")
    resumed = load_file(data / "cut" / "adapter_model.safetensors")
    assert whole.keys() == resumed.keys()
    for name, tensor in whole.items():
        torch.testing.assert_close(resumed[name], tensor, rtol=1e-5, atol=1e-6)


def test_training_on_an_adapters_folder_begins_with_the_merged_model(trained):
    data, _ = trained
    more = {"encoder": str(data / "adapter"), "adapter": None, "epochs": 1, "learning_rate": 1e-9}
    report = train(options(data, "further", **more))
    assert (data / "further" / "model.safetensors").is_file()
    assert report["scores"]["dev"]["f1"] == 1.0  # a rate that changes nothing: as it was


def test_an_adapter_is_trained_further_on_its_own_encoder(trained):
    data, _ = trained
    more = {"encoder": str(data / "adapter"), "epochs": 1}
    report = train(options(data, "same", **more, learning_rate=1e-9))
    assert report["scores"]["dev"]["f1"] == 1.0  # a rate that changes nothing: as it was
    first = load_file(data / "adapter" / "adapter_model.safetensors")
    same = load_file(data / "same" / "adapter_model.safetensors")
    assert first.keys() == same.keys()
    assert all(torch.allclose(same[name], tensor, atol=1e-3) for name, tensor in first.items())
    assert report["encoder"] == "encoder" and report["adapter"]["alpha"] == 16
    assert "- The adapter adapter, trained further\n" in (data / "same" / "README.md").read_text()
    train(options(data, "further", **more))
    further = load_file(data / "further" / "adapter_model.safetensors")
    assert not all(
        torch.allclose(further[name], tensor, atol=1e-3) for name, tensor in first.items()
    )
    shutil.rmtree(data / "adapter")
    assert Pipeline.from_pretrained(data / "further", device="cpu").task.name == "ner"


def test_an_adapter_is_trained_further_with_its_rank_and_its_labels_only(data, encoder):
    train(options(data, epochs=1))
    more = {"encoder": str(data / "adapter"), "output": "further"}
    with pytest.raises(OptionError, match=r"rank 8, .* Give --adapter 8;"):
        options(data, adapter=4, **more)
    with pytest.raises(OptionError, match="the encoder's own folder"):
        options(data, **{**more, "output": "encoder"})
    for split in ("train", "dev", "test"):
        file = data / f"{split}.tsv"
        file.write_text(file.read_text().replace("-E", "-D"))
    with pytest.raises(OptionError, match=r"task head .*, B-E, I-E\), but .*O, B-D, I-D\).* leave"):
        train(options(data, **more))


def test_an_adapter_takes_a_model_with_a_head_for_other_labels_as_its_encoder(data, encoder):
    train(options(data, "whole", adapter=None, epochs=1))
    for split in ("train", "dev", "test"):
        file = data / f"{split}.tsv"
        file.write_text(file.read_text().replace("-E", "-D"))
    train(options(data, epochs=1, encoder=str(data / "whole")))
    pipeline = Pipeline.from_pretrained(data / "adapter", device="cpu")
    assert list(pipeline.labels.values()) == ["O", "B-D", "I-D"]


def test_a_whole_model_takes_an_adapters_place_and_the_other_way_round(data, encoder):
    def made(**changes):
        short = options(data, epochs=1, **changes)
        save(short, fit(short), notes={})

    made()
    made(adapter=None)
    assert not (data / "adapter" / "adapter_config.json").exists()
    assert Pipeline.from_pretrained(data / "adapter", device="cpu").task.name == "ner"
    made()
    assert not (data / "adapter" / "model.safetensors").exists()
    assert Pipeline.from_pretrained(data / "adapter", device="cpu").task.name == "ner"


def test_an_adapter_trains_and_predicts_from_the_command_line(data, encoder, kbert):
    adapter, kg = data / "adapter", ("--kg", data / "kg.spo")
    how = "--adapter 8 --epochs 2 --learning-rate 1e-2 --batch-tokens 128 --device cpu --json"
    command = ("train", "--task", "ner", "--data", data, "--encoder", encoder, "--output", adapter)
    report = kbert(*command, *kg, *how.split())
    assert report["adapter"]["alpha"] == 2 * report["adapter"]["rank"] == 16
    predict = ("predict", "患者有糖尿病病史", "--model", adapter, *kg)
    assert "spans" in kbert(*predict, "--json")["prediction"]
    shutil.rmtree(encoder)
    assert "its encoder '../encoder' was" in kbert(*predict, code=2).err
