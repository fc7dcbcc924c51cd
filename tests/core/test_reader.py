"""The seam: a system in 45 lines is used as any other; the control, triples as plain text."""

import dataclasses
from pathlib import Path

import pytest
import torch
from core.kbert.test_mask_transformer import small
from explaining import DISEASE, GRAPH, HAS_SYMPTOM, IS_CURE, IS_DISEASE, TEXT
from toy_reader import ToyConfig
from transformers import AutoModelForTokenClassification

from kbert_core import (
    Card,
    InjectionOptions,
    KnowledgeGraph,
    Pipeline,
    ReadConfig,
    Rule,
    Triple,
    load_graph,
)
from kbert_core.checkpoints.checkpoint import load_model
from kbert_core.errors import CheckpointError, OptionError, TextError
from kbert_core.explain.case import Case
from kbert_core.explain.effects import effects, shapley
from kbert_core.layers import INSERTED
from kbert_core.plain_text import PlainTextConfig
from kbert_core.systems import SYSTEMS, reading_of
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


def pipeline_of(system, ner, checkpoints, **changes):
    """A tagger of any system; what it inserts has weights of its own."""
    encoder = str(checkpoints["encoder"])
    reading = reading_of(system, ReadConfig(max_length=48)).trained_from(encoder)
    card = dataclasses.replace(ner.card, reading=dataclasses.replace(reading, **changes))
    model = load_model(checkpoints["ner"], AutoModelForTokenClassification, device="cpu")
    pipeline = Pipeline(model, ner.hugging_face_tokenizer, card)
    torch.manual_seed(3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if INSERTED in name:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return pipeline


ALL = [name for name in SYSTEMS if name != "toy"]
ROOFS = [{"kb_encoder": "shared", "start": "random"}, {"kb_encoder": "another", "expand": 1}]


@pytest.mark.parametrize(
    ("system", "changes"), [*((name, {}) for name in ALL), *(("roof-bert", roof) for roof in ROOFS)]
)
def test_a_model_of_any_system_is_saved_and_reads_as_before(
    ner, checkpoints, tmp_path, system, changes
):
    if changes.get("kb_encoder") == "another":
        changes = {**changes, "kb_encoder": str(checkpoints["encoder"])}
    made = pipeline_of(system, ner, checkpoints, **changes)
    made.save_pretrained(tmp_path / "model")
    again = Pipeline.from_pretrained(tmp_path / "model", device="cpu")
    assert (again.card.system, again.config) == (system, made.config)
    assert torch.equal(again(TEXT, graph=GRAPH).logits, made(TEXT, graph=GRAPH).logits)


@pytest.fixture(params=[*ALL, "toy"])
def system(request, ner, checkpoints):
    """A tagger of each system."""
    if request.param == "toy":
        return request.getfixturevalue("toy")
    return pipeline_of(request.param, ner, checkpoints, options=InjectionOptions(max_triples=8))


def test_a_text_without_a_token_is_read_and_half_a_character_is_named(system):
    for text in ("", "  "):
        assert system(text, graph=GRAPH).prediction.spans == ()
    with pytest.raises(TextError, match="Character 1 of the text is half a character"):
        system("a\ud83d", graph=GRAPH)


def test_many_texts_are_read_as_each_alone(system):
    readings = system.readings([[TEXT], ["心电图"], ["入院"], [TEXT * 6]], graph=GRAPH)
    assert len(readings[-1].rows) > 1 or system.card.system == "toy"  # which reads no windows
    assert max(len(row) for reading in readings for row in reading.rows) <= 48
    for reading, logits in zip(readings, system.reader.logits(readings), strict=True):
        (alone,) = system.reader.logits([reading])
        assert len(logits) == sum(map(len, reading.tokens))
        torch.testing.assert_close(logits, alone, atol=1e-5, rtol=1e-5)


def test_the_effect_of_a_triple_is_that_of_a_graph_without_it(system):
    case = Case.of(system, TEXT, graph=GRAPH, target=DISEASE)
    assert {effect.fact.triple for effect in effects(case).each} == {*GRAPH}
    for effect in effects(case).each:
        removed = system.reader.read([[TEXT]], GRAPH.remove(effect.fact.triple))[0]
        less = system.reader.without(case.reading, [effect.fact])
        assert less.used == removed.used
        alone = next(case.run([removed])).score
        assert effect.without.score == pytest.approx(alone, abs=1e-5, rel=1e-5)
    whole = case.base.score - case.plain.score
    assert sum(share.value for share in shapley(case).each) == pytest.approx(whole, abs=1e-4)


def plain_text(pipeline, **options):
    config = PlainTextConfig(InjectionOptions(**options), pipeline.config.max_length)
    card = dataclasses.replace(pipeline.card, reading=config)
    return Pipeline(pipeline.reader.model, pipeline.hugging_face_tokenizer, card)


@pytest.fixture
def plain(ner):
    return plain_text(ner, max_triples=3)


def test_triples_stand_after_the_text_each_closed_by_sep(plain):
    (row,) = plain("有糖尿病史", graph=GRAPH).rows
    assert row.tokens == [
        *("[CLS]", "有", *"糖尿病", "史", "[SEP]"),
        *("糖尿病类别疾病", "[SEP]", "糖尿病症状多饮", "[SEP]")[0],
        "[SEP]",
        *"糖尿病症状多饮",
        "[SEP]",
    ]
    assert row.soft_positions == list(range(len(row)))
    assert row.token_type_ids == [0] * 7 + [1] * (len(row) - 7)


def test_every_token_sees_every_other(plain):
    trace = plain(TEXT, graph=GRAPH)
    assert trace.visible.all()
    assert trace.used == (IS_DISEASE, HAS_SYMPTOM, IS_CURE)


def test_states_are_those_of_the_plain_encoder_on_the_written_out_text(plain):
    trace = plain(TEXT, graph=GRAPH)
    (row,) = trace.rows
    with torch.no_grad():
        logits = plain.reader.model(
            torch.tensor([row.input_ids]), token_type_ids=torch.tensor([row.token_type_ids])
        ).logits
    assert torch.allclose(trace.logits, logits, atol=1e-5)
    assert torch.equal(trace.logits_on_text(), trace.logits[0, 1 : len(TEXT) + 1])
    assert len(trace.prediction.tokens) == len(TEXT)


def test_an_empty_graph_is_plain_bert(ner, plain):
    assert torch.equal(plain(TEXT).logits, ner(TEXT).logits)


def test_a_triple_that_does_not_fit_is_left_out_and_the_text_stays_whole(ner):
    plain = plain_text(ner, max_triples=3)
    trace = plain(TEXT, graph=GRAPH, max_length=28)
    assert len(trace.rows[0]) <= 28
    assert len(trace.prediction.tokens) == len(TEXT)
    assert {item.rule for _, item in trace.left_out} == {Rule.LENGTH}
    assert len(trace.used) + len(trace.left_out) == 3


def test_pairs_have_their_triples_after_the_second_text(checkpoints):
    pair = plain_text(Pipeline.from_pretrained(checkpoints["pair"], device="cpu"))
    graph = KnowledgeGraph([Triple("cat", "is", "apple")])
    (row,) = pair("a cat", "Beijing", graph=graph).rows
    first_sep, second_sep, *_ = [i for i, t in enumerate(row.tokens) if t == "[SEP]"]
    assert row.branches[0].start == second_sep + 1 > first_sep


def test_options_of_another_system_are_refused(plain):
    with pytest.raises(OptionError, match="'plain-text' has no option 'ablation', only options"):
        plain(TEXT, ablation="hard")
    with pytest.raises(CheckpointError, match="'roof-brick'"):
        Card.of(type("Config", (), {"kbert": {"system": "roof-brick"}}))
