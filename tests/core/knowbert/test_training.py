"""Training a KnowBert: its linker, two knowledge bases, and what keeps a linker from cheating."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import save_checkpoint, tiny_config
from safetensors.torch import load_file
from small_data import NAMES, cut_off
from transformers import AutoModel, AutoModelForTokenClassification

from kbert_core import Card, KBertError, KnowledgeGraph, Pipeline, Triple, load_graph
from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.knowbert.candidates import MASKED, Base
from kbert_core.knowbert.knowbert import KnowBertConfig
from kbert_core.knowledge.io.write import write_triples
from kbert_core.labels import IGNORED
from kbert_core.tasks import TASKS
from kbert_lab.data.labelled import GoldLink, read_links
from kbert_lab.suites.grid import Experiment
from kbert_lab.suites.runner import run_all
from kbert_lab.suites.suite import read_suite
from kbert_lab.training.batches import mixed
from kbert_lab.training.evaluate import evaluate
from kbert_lab.training.finetune import train
from kbert_lab.training.options import TrainOptions
from kbert_lab.training.rows import link_targets

SENSES = {"心电图.n.01": "一种检查", "心电图.n.02": "一张图", "胃镜.n.01": "一种器械"}
TEXTS = [
    ("入院后行心电图检查", [(4, 7, "心电图.n.01")]),
    ("墙上挂着心电图", [(4, 7, "心电图.n.02")]),
    ("患者行胃镜检查", [(3, 5, "胃镜.n.01")]),
    ("做了心电图和胃镜", [(2, 5, "心电图.n.01"), (6, 8, "胃镜.n.01")]),
]
BASE = '{"like": "wordnet", "inflected": false, "kar": {"size": 12, "heads": 3, "inner": 16}}'
GRAPH = KnowledgeGraph(
    triple
    for entity, gloss in SENSES.items()
    for triple in (
        Triple(entity, "gloss", gloss),
        Triple(entity, "synonym", entity.split(".")[0]),
    )
)


def write_links(folder):
    """Write train, dev and test, and a graph of senses."""
    lines = []
    for text, links in TEXTS:
        labels = [
            {
                **{"span": [start, end], "entity_id": entity},
                "candidates": [own for own in SENSES if own[:2] == entity[:2]],
            }
            for start, end, entity in links
        ]
        lines.append(json.dumps({"text": text, "labels": labels}, ensure_ascii=False))
    for split in ("train", "dev", "test"):
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    write_triples(GRAPH, folder / "senses.spo")
    return folder


@pytest.fixture
def linked(tmp_path, monkeypatch):
    monkeypatch.setenv("KBERT_CACHE", str(tmp_path / "cache"))
    return write_links(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, checkpoints):
    """A folder with a trained linker in it, and what its training said."""
    folder = write_links(tmp_path_factory.mktemp("trained"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KBERT_CACHE", str(folder / "cache"))
        return folder, train(options(folder, checkpoints))


@pytest.fixture
def linker(trained):
    return Pipeline.from_pretrained(trained[0] / "linker", device="cpu")


def options(folder, checkpoints, output="linker", **changes):
    return TrainOptions.of(
        **{
            "task": "link",
            "system": "knowbert",
            "data": str(folder),
            "device": "cpu",
            "kg": (str(folder / "senses.spo"),),
            "encoder": str(checkpoints["encoder"]),
            "base": (BASE,),
            "output": str(folder / output),
            "epochs": 2,
            "batch_tokens": 24,
            "learning_rate": 2e-3,
            **changes,
        }
    )


def test_the_linker_trains_alone_and_is_scored_and_loaded(trained, linker, checkpoints):
    folder, report = trained
    assert set(report["scores"]) == {"dev", "test"}
    scores = report["scores"]["test"]
    assert (scores["gold"], scores["predicted"]) == (5, 5)
    assert scores["f1"] == scores["right"] / 5
    assert scores["first"] == 4 / 5  # one of the five means its second sense
    assert set(scores["slices"]) == {"not_first", "noun"}
    start = Pipeline.from_pretrained(checkpoints["encoder"], device="cpu").reader.model.state_dict()
    now = linker.reader.model.state_dict()
    for name, value in start.items():
        torch.testing.assert_close(now[name], value, atol=1e-3, rtol=1e-3)
    examples = read_links(folder / "test.jsonl")
    assert evaluate(linker, examples, GRAPH)["f1"] == pytest.approx(scores["f1"])
    (prediction,) = linker.predict([["做了心电图"]], graph=GRAPH)
    (link,) = prediction.links
    assert (link.start, link.end) == (2, 5)
    assert link.entity in SENSES
    (prediction,) = linker.predict([["做了心电图"]], graph=GRAPH, threshold=link.score + 1)
    assert [own.entity for own in prediction.links] == [None]


def test_a_linkers_folder_holds_its_kar_alone_and_knows_its_encoder(linked, checkpoints):
    encoder = linked / "encoder"
    shutil.copytree(checkpoints["encoder"], encoder)
    train(options(linked, checkpoints, encoder=str(encoder)))
    files = {file.name for file in (linked / "linker").iterdir()}
    assert files == {"inserted.safetensors", "config.json", "README.md"}
    config = json.loads((linked / "linker" / "config.json").read_text())
    assert config["kbert_frozen_encoder"] == "../encoder"
    moved = linked / "moved"
    moved.mkdir()
    shutil.move(linked / "linker", moved)
    with pytest.raises(KBertError, match=r"encoder .*encoder. was not found"):
        Pipeline.from_pretrained(moved / "linker", device="cpu")
    shutil.copytree(encoder, moved / "encoder")
    assert Pipeline.from_pretrained(moved / "linker", device="cpu").task is not None
    save_checkpoint(moved / "encoder", AutoModel, Card(), hidden_size=64)
    with pytest.raises(KBertError, match="was trained on other weights"):
        Pipeline.from_pretrained(moved / "linker", device="cpu")
    (moved / "linker" / "inserted.safetensors").write_bytes(b"no weights")
    shutil.rmtree(moved / "encoder")
    shutil.copytree(encoder, moved / "encoder")
    with pytest.raises(KBertError, match="can't be read"):
        Pipeline.from_pretrained(moved / "linker", device="cpu")


def test_a_linkers_training_goes_on_to_equal_weights(linked, checkpoints):
    train(options(linked, checkpoints, "whole", epochs=3))
    cut = options(linked, checkpoints, "cut", epochs=3)
    cut_off(cut, before=6)
    train(cut)
    one, other = (load_file(linked / name / "inserted.safetensors") for name in ("whole", "cut"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_kept_states_are_those_of_the_encoder(linker, tmp_path, monkeypatch):
    monkeypatch.setenv("KBERT_CACHE", str(tmp_path))
    readings = linker.readings([[text] for text, _ in TEXTS], graph=GRAPH)
    plain = linker.reader.logits(readings)
    linker.reader.begin_training("link", None)
    for _ in range(2):  # made, then read from disk
        for one, other in zip(linker.reader.logits(readings), plain, strict=True):
            torch.testing.assert_close(one, other, atol=2e-2, rtol=1e-2)


def test_a_task_begins_with_the_linker_that_was_trained(trained, linker, data):
    how = {"task": "ner", "data": str(data), "device": "cpu", "epochs": 1, "learning_rate": 1e-9}
    files = {"kg": (str(data / "kg.spo"),), "encoder": str(trained[0] / "linker")}
    train(TrainOptions.of(**how, **files, output=str(data / "ner")))
    kar = Pipeline.from_pretrained(data / "ner", device="cpu").reader.kars[0]
    score, begun = (own.linker.score.weight for own in (kar, linker.reader.kars[0]))
    torch.testing.assert_close(score, begun, atol=1e-3, rtol=1e-2)
    both = kar.down.weight @ kar.up.weight
    torch.testing.assert_close(both, torch.eye(len(both)), atol=2e-2, rtol=0)


def test_links_are_trained_in_steps_between_those_of_a_task(linked, checkpoints, data):
    """The multitask stage of Algorithm 1."""
    how = {"task": "ner", "data": str(data), "epochs": 1}
    train(options(linked, checkpoints, "alone", **how))
    report = train(options(linked, checkpoints, "both", links=str(linked), link_share=0.9, **how))
    assert report["links"] == {"data": linked.name, "share": 0.9}

    def loss(name):
        reader, total = Pipeline.from_pretrained(linked / name, device="cpu").reader, 0.0
        for example in read_links(linked / "train.jsonl"):
            (reading,) = reader.read([example.sentences], GRAPH)
            scores = reader.encode(reading.rows, reading.config)["links"]
            gold = torch.from_numpy(link_targets(reading.rows[0], example.links))
            total += float(TASKS["link"].loss(scores, gold))
        return total

    assert loss("both") < 0.8 * loss("alone")


def test_groups_of_two_kinds_are_mixed_by_their_share():
    groups, more = [[n] for n in range(80)], [[100], [101], [102]]
    made = mixed(groups, more, 0.2, np.random.default_rng(0))
    assert [own for own in made if own[0] < 100] == groups
    assert [own for own in made if own[0] >= 100] == (more * 7)[:20]
    assert made != groups + (more * 7)[:20]


def test_links_for_a_system_without_a_linker_or_beside_no_task_are_refused(
    linked, checkpoints, data
):
    given = options(linked, checkpoints, "x", task="ner", data=str(data), links=str(linked))
    plain = replace(given, knowledge=replace(given.knowledge, system="k-bert", base=()))
    with pytest.raises(KBertError, match="the system 'k-bert' has none"):
        train(plain)
    with pytest.raises(KBertError, match="beside another task"):
        options(linked, checkpoints, "x", links=str(linked))


def test_rows_of_a_suite_begin_with_a_linker_and_with_its_encoder_alone(
    trained, linked, checkpoints
):
    rows = "".join(f"{'好坏'[n % 2]}\t做了{('心电图', '胃镜')[n % 2]} {n}\n" for n in range(20))
    for split in ("train", "test"):
        (linked / f"{split}.tsv").write_text(f"label\ttext_a\n{rows}")
    suite = {
        "task": "classify",
        "encoder": str(trained[0] / "linker"),
        "seeds": [1],
        "data": {
            "folder": str(linked),
            "files": {"train": "train.tsv", "test": "test.tsv"},
            "dev_share": 0.2,
        },
        "kg": str(linked / "senses.spo"),
        "train": {"epochs": 1, "batch_tokens": 64},
        "runs": [
            {"name": "Encoder", "knowledge": "none", "encoder": str(checkpoints["encoder"])},
            {"name": "KnowBert"},
            {"name": "permuted", "knowledge": "shuffled"},
        ],
    }
    (linked / "suite.yaml").write_text(json.dumps(suite))
    experiment = Experiment(read_suite(linked / "suite.yaml"), linked / "results", linked / "work")
    assert run_all(experiment, experiment.cells(), device="cpu") == []
    plain, linker, permuted = (experiment.result(cell) for cell in experiment.cells())
    assert plain["without_knowledge"] == {}
    assert linker["without_knowledge"]["test"]["count"] == 20
    assert linker["parameters"] == permuted["parameters"] > plain["parameters"]
    assert permuted["shuffled_unchanged"] == 0
    assert plain["inputs"]["encoder"] != linker["inputs"]["encoder"]


def targets_of(linker, graph, *labels, text="做了心电图"):
    (reading,) = linker.readings([[text]], graph=graph)
    return link_targets(reading.rows[0], labels).tolist()


def test_a_span_trains_by_its_gold_sense_whatever_its_capitals(linker, tmp_path):
    gold = GoldLink(2, 5, ("心电图.n.01",))
    assert targets_of(linker, GRAPH, gold) == [0]
    less = GRAPH.remove(Triple("心电图.n.01", "gloss", "一种检查"))
    assert targets_of(linker, less, gold) == [IGNORED]
    graph = KnowledgeGraph([Triple("Q918", "gloss", "检查"), Triple("Q918", "synonym", "心电图")])
    row = {"text": "做了心电图", "labels": [{"span": [2, 5], "entity_id": "Q918"}]}
    (tmp_path / "wikidata.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (example,) = read_links(tmp_path / "wikidata.jsonl")
    assert targets_of(linker, graph, *example.links) == [0]
    assert evaluate(linker, [example], graph)["f1"] == 1


def test_what_is_hidden_is_told_by_no_candidate(linker):
    reader = linker.reader
    (reading,) = reader.read([["做了心电图和胃镜"]], GRAPH)
    (row,) = reading.rows
    hidden = np.zeros(len(row), bool)
    hidden[4] = True  # 电
    first, second = reader.hide_knowledge(row, hidden).spans
    assert first.span.candidates == (MASKED,)
    assert second == row.spans[1]
    random = np.random.default_rng(0)
    drawn = [
        reader.hide_knowledge(row, hidden, random).spans[0].span.candidates for _ in range(2000)
    ]
    masked = sum(own == (MASKED,) for own in drawn) / len(drawn)
    other = sum(own == row.spans[1].span.candidates for own in drawn) / len(drawn)
    assert masked == pytest.approx(0.8, abs=0.03)
    assert other == pytest.approx(0.05, abs=0.02)  # a tenth, half of which draws its own


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 1: found no labelled text"),
        ('{"text": "a", "labels": [{"span": [0, 9], "entity_id": "x"}]}', r"\[0, 9\) isn't in"),
        ('{"text": " ", "labels": []}', "the text is blank"),
        ('{"text": "a", "labels": [{"entity_id": "x"}]}', "expected 'text' and 'labels'"),
        ("", "no labelled text"),
    ],
)
def test_bad_lines_are_said(tmp_path, line, words):
    file = tmp_path / "bad.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(KBertError, match=words):
        read_links(file)


def test_a_base_without_knowbert_and_a_folder_without_train_are_said(linked, checkpoints):
    with pytest.raises(KBertError, match="Leave --base out"):
        train(options(linked, checkpoints, system="k-bert"))
    (linked / "train.jsonl").unlink()
    with pytest.raises(KBertError, match=r"no train\.jsonl"):
        train(options(linked, checkpoints))


SMALL = {"size": 12, "heads": 3, "inner": 16}
TYPES, PARTS = (json.dumps({"relations": [name], "kar": SMALL}) for name in ("类别", "部位"))
TWO_NAMES = "患者有糖尿病史查心电图"


@pytest.fixture
def folder(data):
    """The sentences and graph of ``data``; diseases have a part of the body, too."""
    with (data / "kg.spo").open("a") as file:
        file.writelines(f"{name}\t部位\t{name[0]}部\n" for name in NAMES["疾病"])
    return data


def two_bases(folder, checkpoints, output, **changes):
    how = {"task": "ner", "system": "knowbert", "device": "cpu", "data": str(folder)}
    how |= {"encoder": str(checkpoints["encoder"]), "kg": (str(folder / "kg.spo"),)}
    how |= {"base": (TYPES, PARTS), "epochs": 2, "batch_tokens": 96, **changes}
    return TrainOptions.of(**how, output=str(folder / output))


def test_two_bases_train_at_two_layers_and_each_is_edited_by_itself(folder, checkpoints):
    train(two_bases(folder, checkpoints, "model", float32=True))
    model = Pipeline.from_pretrained(folder / "model", device="cpu")
    assert model.reader.after == [1, 2]
    start = Pipeline(
        load_model(folder / "model", AutoModelForTokenClassification, device="cpu"),
        load_tokenizer(folder / "model"),
        model.card,
    )  # its SMALLs are as they begin
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
    trace = model(TWO_NAMES, graph=graph)
    assert [own.span.base for own in trace.links] == [0, 0, 1]
    assert [len(own.of_base(1)) for own in trace.reading.rows] == [1]
    edited = graph.replace(Triple("糖尿病", "部位", "糖部"), Triple("糖尿病", "部位", "口部"))
    lower, upper = (
        torch.equal(one.linked.entity, other.linked.entity)
        for one, other in zip(trace.kars, model(TWO_NAMES, graph=edited).kars, strict=True)
    )
    assert (lower, upper) == (True, False)


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
    (both,) = reader.read([[TWO_NAMES]], graph)
    (lower,) = reader.read([["患者有糖尿病史"]], graph)
    gold = [GoldLink(3, 6, ("糖尿病",)), GoldLink(8, 11, ("心电图",))]
    assert link_targets(both.rows[0], gold, 1).tolist() == [0]
    assert link_targets(both.rows[0], [], 1).tolist() == [IGNORED]
    assert link_targets(lower.rows[0], gold, 1).tolist() == []


def test_one_layer_has_no_room_for_two_bases(checkpoints, tmp_path):
    save_checkpoint(tmp_path, AutoModelForTokenClassification, Card("ner"), num_hidden_layers=1)
    assert tiny_config().num_hidden_layers == 3
    with pytest.raises(KBertError, match="has 1 layers"):
        pipeline_of({**checkpoints, "ner": tmp_path}, None, None)
