"""Two knowledge bases at two layers: what each reads, training, going on, loading, and linking."""

import json

import pytest
import torch
from conftest import save_checkpoint, tiny_config
from small_data import NAMES
from transformers import AutoModelForTokenClassification

from kbert_core import Card, KBertError, KnowledgeGraph, Pipeline, Triple, load_graph
from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.knowbert.candidates import Base
from kbert_core.knowbert.knowbert import KnowBertConfig
from kbert_core.labels import IGNORED
from kbert_lab.data.labelled import GoldLink
from kbert_lab.training.finetune import train
from kbert_lab.training.options import TrainOptions
from kbert_lab.training.rows import link_targets
from kbert_lab.training.trainer import OrderedTrainer

KAR = {"size": 12, "heads": 3, "inner": 16}
TYPES, PARTS = (json.dumps({"relations": [name], "kar": KAR}) for name in ("类别", "部位"))
TEXT = "患者有糖尿病史查心电图"


@pytest.fixture
def folder(data):
    """The sentences and graph of ``data``; diseases have a part of the body, too."""
    with (data / "kg.spo").open("a") as file:
        file.writelines(f"{name}\t部位\t{name[0]}部\n" for name in NAMES["疾病"])
    return data


def options(folder, checkpoints, output, **changes):
    how = {"task": "ner", "system": "knowbert", "device": "cpu", "data": str(folder)}
    how |= {"encoder": str(checkpoints["encoder"]), "kg": (str(folder / "kg.spo"),)}
    how |= {"base": (TYPES, PARTS), "epochs": 2, "batch_tokens": 96, **changes}
    return TrainOptions.of(**how, output=str(folder / output))


def test_two_bases_train_at_two_layers_and_each_is_edited_by_itself(folder, checkpoints):
    train(options(folder, checkpoints, "model", float32=True))
    model = Pipeline.from_pretrained(folder / "model", device="cpu")
    assert model.reader.after == [1, 2]
    start = Pipeline(
        load_model(folder / "model", AutoModelForTokenClassification, device="cpu"),
        load_tokenizer(folder / "model"),
        model.card,
    )  # its KARs are as they begin
    for trained, fresh in zip(model.reader.kars, start.reader.kars, strict=True):
        changed = {
            name
            for (name, one), other in zip(
                trained.named_parameters(), fresh.parameters(), strict=True
            )
            if not torch.allclose(one, other, atol=1e-6)
        }
        assert {"down.weight", "up.weight", "linker.project.weight"} <= changed
    graph = load_graph(folder / "kg.spo")
    trace = model(TEXT, graph=graph)
    assert [own.span.base for own in trace.links] == [0, 0, 1]
    assert [len(own.of_base(1)) for own in trace.reading.rows] == [1]
    edited = graph.replace(Triple("糖尿病", "部位", "糖部"), Triple("糖尿病", "部位", "口部"))
    lower, upper = (
        torch.equal(one.linked.entity, other.linked.entity)
        for one, other in zip(trace.kars, model(TEXT, graph=edited).kars, strict=True)
    )
    assert (lower, upper) == (True, False)


def test_a_training_of_two_bases_goes_on_to_equal_weights(folder, checkpoints, monkeypatch):
    train(options(folder, checkpoints, "whole"))
    step, calls = OrderedTrainer.training_step, []

    def dying(self, *args, **kwargs):
        calls.append(1)
        if len(calls) > 4:  # an epoch has three steps
            raise KeyboardInterrupt
        return step(self, *args, **kwargs)

    monkeypatch.setattr(OrderedTrainer, "training_step", dying)
    with pytest.raises(KeyboardInterrupt):
        train(options(folder, checkpoints, "cut"))
    monkeypatch.undo()
    train(options(folder, checkpoints, "cut"))
    one, other = (
        Pipeline.from_pretrained(folder / name, device="cpu").reader.model.state_dict()
        for name in ("whole", "cut")
    )
    assert all(torch.equal(one[name], other[name]) for name in one)


def pipeline_of(checkpoints, *layers):
    bases = tuple(
        Base.of({**json.loads(base), "layer": layer, "vectors": str(checkpoints["encoder"])})
        for base, layer in zip((TYPES, PARTS), layers, strict=True)
    )
    card = Card("ner", KnowBertConfig(bases=bases))
    model = load_model(checkpoints["ner"], AutoModelForTokenClassification, device="cpu")
    return Pipeline(model, load_tokenizer(checkpoints["ner"]), card)


@pytest.mark.parametrize("layers", [(2, 2), (3, 1)])
def test_bases_stand_from_bottom_to_top_each_after_a_layer_of_its_own(checkpoints, layers):
    with pytest.raises(KBertError, match="from bottom to top, each after a layer of its own"):
        pipeline_of(checkpoints, *layers)


def test_a_linker_of_two_bases_is_trained_by_the_names_of_the_last_alone(checkpoints):
    reader = pipeline_of(checkpoints, 1, 3).reader
    graph = KnowledgeGraph([Triple("糖尿病", "类别", "疾病"), Triple("心电图", "部位", "心")])
    (both,) = reader.read([[TEXT]], graph)
    (lower,) = reader.read([["患者有糖尿病史"]], graph)
    gold = [GoldLink(3, 6, ("糖尿病",)), GoldLink(8, 11, ("心电图",))]
    assert link_targets(both.rows[0], gold, 1).tolist() == [0]
    assert link_targets(both.rows[0], [], 1).tolist() == [IGNORED]
    assert link_targets(lower.rows[0], gold, 1).tolist() == []


def test_a_linker_of_two_bases_trains_its_topmost_part_alone(folder, checkpoints):
    (folder / "train.tsv").unlink()
    label = {"span": [3, 6], "entity_id": "糖尿病"}
    lines = [{"text": TEXT, "labels": [label]}, {"text": "查心电图", "labels": []}]
    for split in ("train", "dev", "test"):
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / f"{split}.jsonl").write_text(text)
    report = train(options(folder, checkpoints, "linker", task="link", epochs=1))
    assert report["scores"]["test"]["f1"] == 1  # one candidate: it can't be wrong
    model = Pipeline.from_pretrained(folder / "linker", device="cpu")
    (prediction,) = model.predict([[TEXT]], graph=load_graph(folder / "kg.spo"))
    assert [(own.start, own.end) for own in prediction.links] == [(3, 6)]


def test_one_layer_has_no_room_for_two_bases(checkpoints, tmp_path):
    save_checkpoint(tmp_path, AutoModelForTokenClassification, Card("ner"), num_hidden_layers=1)
    assert tiny_config().num_hidden_layers == 3
    with pytest.raises(KBertError, match="has 1 layers"):
        pipeline_of({**checkpoints, "ner": tmp_path}, None, None)
