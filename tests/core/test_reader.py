"""The seam: a system in 45 lines reads, predicts, is saved, and is explained like any other."""

import dataclasses
from pathlib import Path

import pytest
import torch
from core.kbert.test_mask_transformer import small
from explaining import DISEASE, GRAPH, IS_CURE, TEXT
from toy_reader import ToyConfig
from transformers import AutoModelForTokenClassification

from kbert_core import Card, KnowledgeGraph, Pipeline, ReadConfig, Triple, load_graph
from kbert_core.checkpoints.checkpoint import load_model
from kbert_core.errors import CheckpointError, OptionError, TextError
from kbert_core.explain.case import Case
from kbert_core.explain.effects import effects, shapley
from kbert_core.systems import SYSTEMS, reading_of
from kbert_lab.data.labelled import Example
from kbert_lab.training.evaluate import evaluate
from kbert_lab.training.finetune import train
from kbert_lab.training.options import TrainOptions
from kbert_lab.training.recipe import Recipe
from kbert_lab.training.rows import RowMaker


@pytest.fixture
def toy(ner, monkeypatch):
    monkeypatch.setitem(SYSTEMS, "toy", "toy_reader:ToyReader")
    card = dataclasses.replace(ner.card, reading=ToyConfig(max_length=48))
    return Pipeline(ner.reader.model, ner.hugging_face_tokenizer, card)


def test_a_system_takes_at_most_45_lines():
    lines = (Path(__file__).parents[1] / "toy_reader.py").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) <= 45


def test_states_and_logits_stand_on_the_tokens_of_the_text(toy):
    readings = toy.readings([[TEXT], ["心电图"]], graph=GRAPH)
    assert len(readings[0].rows[0]) == len(TEXT) + 3 + 6  # [CLS], [SEP] twice, three tails
    states, logits = toy.reader.states(readings), toy.reader.logits(readings)
    for reading, state, own in zip(readings, states, logits, strict=True):
        assert state.shape == (len(reading.sentences[0]), 32)
        assert own.shape == (len(reading.sentences[0]), 5)
        with torch.no_grad():
            alone = toy.reader.model(torch.tensor([reading.rows[0].input_ids])).logits[0]
        assert torch.allclose(own, alone[1 : len(own) + 1], atol=1e-5)


def test_it_predicts_alone_and_many_at_once(toy):
    trace = toy(TEXT, graph=GRAPH)
    assert len(trace.prediction.tokens) == len(TEXT)
    assert trace.used == tuple(GRAPH)
    texts = [TEXT, TEXT * 2]
    for many, text in zip(toy.predict([[t] for t in texts], graph=GRAPH), texts, strict=True):
        alone = toy(text, graph=GRAPH).prediction
        assert [(s.start, s.label) for s in many.spans] == [(s.start, s.label) for s in alone.spans]


def test_its_predictions_are_explained(toy):
    case = Case.of(toy, TEXT, graph=GRAPH, target=DISEASE)
    removed = Case.of(toy, TEXT, graph=GRAPH.remove(IS_CURE), target=DISEASE)
    effect = next(e for e in effects(case).each if e.piece.triple == IS_CURE)
    assert effect.without.score == pytest.approx(removed.base.score, abs=1e-5)
    values = shapley(case)
    assert sum(v.value for v in values.each) == pytest.approx(
        case.base.score - case.plain.score, abs=1e-4
    )


def test_it_is_scored_on_labelled_texts(toy):
    tags = ("O",) * 3 + ("B-疾病", "I-疾病", "I-疾病") + ("O",) * 10
    words = tuple((i, i + 1) for i in range(16))
    scores = evaluate(toy, [Example((TEXT,), None, words, tags)], GRAPH)
    assert 0 <= scores["f1"] <= 1


def test_it_is_trained_saved_and_loaded_again(data, checkpoints, monkeypatch):
    monkeypatch.setitem(SYSTEMS, "toy", "toy_reader:ToyReader")
    how = {"task": "ner", "system": "toy", "encoder": str(checkpoints["encoder"]), "epochs": 1}
    where = {"data": str(data), "kg": (str(data / "kg.spo"),), "output": str(data / "model")}
    report = train(TrainOptions.of(**how, **where, device="cpu"))
    assert report["type_labels"] == {"疾病": "D", "检查": "E"}
    assert report["edit_response"].keys() == {"dev", "test"}
    model = Pipeline.from_pretrained(data / "model", device="cpu")
    assert isinstance(model.config, ToyConfig)
    graph = load_graph(data / "kg.spo")
    assert model("患者有肺炎", graph=graph).used == (Triple("肺炎", "类别", "疾病"),)
    with pytest.raises(OptionError, match="'toy' can't be trained with a recipe"):
        RowMaker([], model.task, model.reader, {}, graph, recipe=Recipe(branch_dropout=0.1))


def test_what_needs_sentence_trees_says_so(toy):
    with pytest.raises(CheckpointError, match=r"needs sentence trees, and .* 'toy'"):
        toy.flatten([])
    with pytest.raises(OptionError, match="'toy' has no option 'interventions', only options, max"):
        toy(TEXT, interventions=())


def test_a_length_limit_is_at_most_the_positions_that_the_encoder_uses(toy):
    roberta = small("roberta", pad_token_id=1)  # 80 positions, counted from 2
    reader = type(toy.reader)(roberta, toy.tokenizer, ToyConfig(max_length=48))
    assert reader.configured(max_length=78).max_length == 78
    with pytest.raises(OptionError, match="max_length is 79, and the encoder has 78 positions"):
        reader.configured(max_length=79)


def test_a_configuration_of_another_system_is_refused(ner, toy):
    with pytest.raises(
        OptionError, match="'toy' needs a ToyConfig as its configuration, got a ReadConfig"
    ):
        type(toy.reader)(ner.reader.model, ner.tokenizer, ner.config)
    with pytest.raises(OptionError, match="as its configuration, got a int"):
        toy(TEXT, config=1)
    with pytest.raises(CheckpointError, match="'brick', and only k-bert"):
        Card.of(type("Config", (), {"kbert": {"system": "brick"}}))


def test_an_empty_graph_gives_the_plain_encoder_with_one_more_separator(toy):
    (row,) = toy(TEXT, graph=KnowledgeGraph()).rows
    assert len(row) == len(TEXT) + 3


@pytest.mark.parametrize("system", [name for name in SYSTEMS if name != "toy"])
def test_a_text_without_a_token_is_read_and_half_a_character_is_named(ner, checkpoints, system):
    reading = reading_of(system, ReadConfig(max_length=48)).trained_from(
        str(checkpoints["encoder"])
    )
    model = load_model(checkpoints["ner"], AutoModelForTokenClassification, device="cpu")
    pipeline = Pipeline(
        model, ner.hugging_face_tokenizer, dataclasses.replace(ner.card, reading=reading)
    )
    for text in ("", "  "):
        assert pipeline(text, graph=GRAPH).prediction.spans == ()
    with pytest.raises(TextError, match="Character 1 of the text is half a character"):
        pipeline("a\ud83d", graph=GRAPH)
