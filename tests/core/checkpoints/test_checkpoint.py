"""A checkpoint's folder: its card, its tokenizer, its model on a device."""

import json
import shutil
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
import transformers
from conftest import tiny_config, tiny_vocabulary
from core.kbert.test_mask_transformer import FIT, small
from mutated_models import read_or_refused
from tiny_knowbert import SENSES, knowbert_in
from transformers import BertModel

from kbert_core import Ablation, Card, InjectionOptions, Pipeline, ReadConfig, load_model
from kbert_core.checkpoints import unreadable
from kbert_core.checkpoints.checkpoint import card_of, device_named, load_config, load_tokenizer
from kbert_core.errors import CheckpointError, KBertError, OptionError
from kbert_core.knowledge.surface_forms import AS_WRITTEN

# Cards


def test_card_keeps_everything_it_is_given():
    options = InjectionOptions(
        3, True, ("r",), not_relations=("s",), strategy="context", threshold=0.2, scorer="x"
    )
    reading = ReadConfig(options, 40, Ablation("hard", "all"))
    card = Card("ner", reading, ("medical",), {"seed": 1, "scores": {"f1": 0.5}})
    card.write_to(holder := SimpleNamespace())
    assert Card.of(holder) == card


def test_foreign_config_has_an_empty_card(checkpoints):
    assert card_of(checkpoints["encoder"]) == Card()


def test_card_of_an_earlier_version_still_loads_and_one_without_a_system_is_k_berts():
    options = {"max_triples": 1, "tail_only": True, "relations": None}
    card = {"task": "ner", "injection": options, "max_length": 40, "knowledge": ["medical"]}
    card |= {"notes": {}, "ablation": {"positions": "hard", "visible": "tree"}}
    reading = ReadConfig(InjectionOptions(1, True, names=AS_WRITTEN), 40, Ablation("hard", "tree"))
    found = Card.of(SimpleNamespace(kbert=card))
    assert (found, found.system) == (Card("ner", reading, ("medical",), {}), "k-bert")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"system": "cellar-bert"}, "for the system 'cellar-bert', and only k-bert"),
        ({"system": ["k-bert"]}, "for the system"),
        ({"system": "plain-text"}, "doesn't fit the system 'plain-text' .*'ablation'"),
        ({"linker": {"top": 30}}, "doesn't fit the system 'k-bert' .*'linker'"),
        ({"max_length": 2.5}, "max_length is 2.5"),
        ({"max_length": True}, "max_length is True"),
        ({"knowledge": "medical"}, "knowledge is 'medical'"),
        ({"knowledge": [1]}, "knowledge"),
        ({"notes": ["seed"]}, "notes"),
        ({"task": 3}, "task is 3"),
        ({"task": ["ner"]}, r"task is \('ner',\)|task is \['ner'\]"),
        ({"injection": "text"}, "doesn't fit the system 'k-bert'"),
        ({"injection": {"max_triples": "many"}}, "max_triples is 'many'"),
        ({"injection": {"strategy": "best"}}, "doesn't fit the system 'k-bert'"),
        ({"injection": {"max_triples": -2}}, "max_triples is -2, expected 0 to 1000"),
        ({"injection": {"surprise": 1}}, "doesn't fit the system 'k-bert' .*'surprise'"),
    ],
)
def test_card_of_an_unknown_system_or_with_another_configuration_is_refused(change, message):
    holder = SimpleNamespace()
    Card("ner").write_to(holder)
    holder.kbert |= change
    with pytest.raises(CheckpointError, match=message):
        Card.of(holder)


@pytest.mark.parametrize("card", ["text", ["list"], 3])
def test_a_card_that_is_no_object_is_refused(card):
    with pytest.raises(CheckpointError, match="expected a JSON object with fields"):
        Card.of(SimpleNamespace(kbert=card))


def test_a_card_with_a_task_of_a_newer_version_is_refused_by_name(checkpoints):
    pipeline = Pipeline.from_pretrained(checkpoints["ner"], device="cpu")
    with pytest.raises(CheckpointError, match="for the task 'poetry', and only ner"):
        Pipeline(pipeline.reader.model, pipeline.hugging_face_tokenizer, Card("poetry"))


def change(file, **values):
    data = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**data, **values}), encoding="utf-8")


SIZES = ("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size")
SIZES += ("vocab_size", "num_labels", "max_position_embeddings", "type_vocab_size")


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("task", ["ner", "knowbert"])
def test_a_size_that_the_weights_can_not_have_is_refused_at_once(task, name, checkpoints, tmp_path):
    folder = tmp_path / "model"
    if task == "knowbert":
        knowbert_in(folder, checkpoints)
    else:
        shutil.copytree(checkpoints[task], folder)
    change(folder / "config.json", **{name: 10**9})
    with pytest.raises(CheckpointError, match=rf"config\.json: {name} is 1000000000, and with"):
        Pipeline.from_pretrained(folder, device="cpu")


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ({"vectors_layer": 99}, "The states of layer 99 are asked for, and the encoder has 3"),
        ({"layer": 2.5}, r"layer is 2\.5, expected a whole number or None"),
        ({"kar": 3}, "'int' object is not a mapping"),
    ],
)
def test_a_card_with_an_odd_knowledge_base_is_refused(base, message, checkpoints, tmp_path):
    knowbert_in(tmp_path, checkpoints)
    file = tmp_path / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["kbert"]["bases"][0] |= base
    file.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(KBertError, match=message):
        Pipeline.from_pretrained(tmp_path, device="cpu")("患者行心电图检查", graph=SENSES)


# Devices


@pytest.mark.parametrize("name", ["tpu-of-sorts", "cuda:99x", "gpu", "mps", "meta", "cpu:3"])
def test_device_that_does_not_exist_is_refused(name):
    with pytest.raises(OptionError, match=f"There is no device '{name}'. Use auto, cpu or cuda"):
        device_named(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is here")
def test_cuda_asked_for_where_there_is_none_is_refused():
    with pytest.raises(OptionError, match=r"this machine has no CUDA device. Use cpu"):
        device_named("cuda")
    assert device_named("auto") == torch.device("cpu")


# Models


def test_loading_draws_no_progress_bar_and_leaves_the_librarys_switch(checkpoints, capsys):
    transformers.logging.enable_progress_bar()
    try:
        load_model(checkpoints["encoder"], device="cpu")
        assert transformers.logging.is_progress_bar_enabled()
    finally:
        transformers.logging.disable_progress_bar()
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def folder(checkpoints, tmp_path):
    """A copy of the encoder's checkpoint, to break."""
    for file in checkpoints["encoder"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def error_of(path):
    with pytest.raises(CheckpointError) as caught:
        load_model(path, device="cpu")
    return str(caught.value)


def test_missing_folder_says_what_to_check(tmp_path):
    message = error_of(tmp_path / "none")
    assert f"Found no model '{tmp_path / 'none'}'" in message
    assert "Check the name, or download the model to a folder first" in message
    assert "Found no model 'nobody/nothing-here'" in error_of("nobody/nothing-here")


def test_a_hub_that_does_not_answer_is_asked_once(monkeypatch):
    asked = []

    def head(address, timeout):
        asked.append((address, timeout))
        raise OSError("no network")

    monkeypatch.setattr(unreadable.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(unreadable, "get_session", lambda: Mock(head=head))
    with pytest.raises(CheckpointError, match=r"huggingface\.co can't be reached"):
        load_config("nobody/nothing-here")
    assert asked == [(unreadable.constants.ENDPOINT, unreadable.LONGEST_WAIT)]


def test_a_misspelt_folder_names_the_model_that_may_be_meant(tmp_path):
    for name in ("medical-ner-kbert", "sentiment"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    said = error_of(tmp_path / "medical-ner-kbrt")
    assert f"Did you mean '{tmp_path / 'medical-ner-kbert'}'?" in said
    assert "mean" not in error_of(tmp_path / "zzz")


def weights_of(model):
    """The bytes of another model's weights."""

    def put(folder):
        model().save_pretrained(folder / "other")
        (folder / "other" / "model.safetensors").replace(folder / "model.safetensors")

    return put


def distilbert():
    sizes = {"vocab_size": len(tiny_vocabulary()), "max_position_embeddings": 64}
    return small("distilbert", **FIT["distilbert"], **sizes)


def cut_at(length):
    def cut(folder):
        file = folder / "model.safetensors"
        file.write_bytes(file.read_bytes()[:length])

    return cut


@pytest.mark.parametrize(
    ("alter", "messages"),
    [
        (
            lambda folder: (folder / "config.json").unlink(),
            ["found no config.json, so this isn't a Hugging Face model"],
        ),
        (
            lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
            ["found pytorch_model.bin, expected model.safetensors", "`kbert convert`"],
        ),
        (
            lambda folder: (folder / "model.safetensors").unlink(),
            ["found no weights, expected model.safetensors"],
        ),
        (
            lambda folder: (folder / "model.safetensors").write_bytes(b"<html>no</html>" * 50),
            ["the checkpoint can't be read", "Copy or download it again"],
        ),
        *((cut_at(n), ["can't be read", "download it again"]) for n in (0, 4, 100, 20_000)),
        (weights_of(distilbert), ["weights of another model", "missing"]),
        (
            weights_of(lambda: BertModel(tiny_config(hidden_size=16))),
            ["its weights have other sizes than its config.json states"],
        ),
    ],
)
def test_a_folder_that_is_not_whole_is_refused_with_what_to_do(folder, alter, messages):
    alter(folder)
    said = error_of(folder)
    assert all(message in said for message in messages)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"model_type": "frobnicator"}', "\x00"])
def test_broken_config_is_refused(folder, text):
    (folder / "config.json").write_text(text)
    assert str(folder) in error_of(folder)


# Odd folders


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_model_folder_changed_at_random_is_read_or_refused(checkpoints, tmp_path, file):
    seeds = [*range(12), 5209]  # the last: a tokenizer without the token for what it doesn't know
    assert read_or_refused(checkpoints["ner"], file, tmp_path / "room", seeds=seeds)[False]


def test_code_of_a_model_folder_is_never_run_nor_asked_for(folder, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked at the prompt"))
    (folder / "evil.py").write_text("raise SystemExit('evil ran')")
    classes = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model", "AutoTokenizer": "evil.T"}
    for file, extra in (
        ("config.json", {"model_type": "evil", "auto_map": classes}),
        ("tokenizer_config.json", {"tokenizer_class": "Evil", "auto_map": classes}),
    ):
        change(folder / file, **extra)
    assert "can't be read" in error_of(folder)
    with pytest.raises(CheckpointError, match="can't be read"):
        load_tokenizer(folder)
    with pytest.raises(CheckpointError, match="can't be read"):
        Pipeline.from_pretrained(folder, device="cpu")


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
def test_code_of_the_hub_that_a_config_names_is_never_fetched(folder, key):
    change(folder / "config.json", **{key: "evil/kernel"})
    assert load_model(folder, device="cpu").config._attn_implementation == "sdpa"


@pytest.mark.parametrize(
    "labels", [{"0": "O", "2": "B-D"}, {"0": "O", "1": 3}, {"0": "O", "x": "B-D"}, ["O", "B-D"]]
)
def test_labels_that_are_no_numbered_texts_are_refused(folder, labels):
    change(folder / "config.json", id2label=labels)
    assert "labels" in error_of(folder) or "id2label" in error_of(folder)


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ([{"SpecialToken": {"id": "[NO]", "type_id": 0}}], "can't be read (no entry"),
        ([{"Sequence": {"id": "A", "type_id": 0}}], "leaves out or swaps sentences"),
    ],
)
def test_a_tokenizer_that_fails_only_when_used_is_refused(folder, pair, said):
    single = [{"Sequence": {"id": "A", "type_id": 0}}]
    template = {"type": "TemplateProcessing", "special_tokens": {}}
    change(folder / "tokenizer.json", post_processor={**template, "single": single, "pair": pair})
    generic = {"tokenizer_class": "TokenizersBackend", "model_max_length": 64}  # keeps its template
    (folder / "tokenizer_config.json").write_text(json.dumps(generic), encoding="utf-8")
    with pytest.raises(CheckpointError) as caught:
        Pipeline.from_pretrained(folder, device="cpu")
    assert said in str(caught.value)


def test_a_vocabulary_smaller_than_the_models_gives_numbers_where_it_has_no_tokens(checkpoints):
    whole = Pipeline.from_pretrained(checkpoints["mask"], device="cpu")
    vocabulary = whole.hugging_face_tokenizer.get_vocab()
    model = whole.reader.model
    model.resize_token_embeddings(len(vocabulary) + 8)
    torch.nn.init.constant_(model.get_output_embeddings().bias[-1:], 99.0)
    (filling,) = Pipeline(model, whole.hugging_face_tokenizer)("患者[MASK]").prediction.fillings
    assert filling.candidates[0][0] == f"[{len(vocabulary) + 7}]"
