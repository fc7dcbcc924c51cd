"""Roof-BERT: what it reads, as which string, what may change its output, and its training."""

import json
from dataclasses import astuple

import pytest
import torch
from conftest import save_checkpoint, tiny_tokenizer
from roof_taggers import GRAPH, TEXT, tagger
from safetensors.torch import load_file
from transformers import AutoModelForTokenClassification

from kbert_core import (
    Card,
    InjectionOptions,
    KBertError,
    KnowledgeGraph,
    Pipeline,
    Triple,
)
from kbert_core.errors import OptionError
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.selection import Rule
from kbert_core.layers import layers_of
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_core.reader import Fact
from kbert_core.roof.kb_text import kb_text
from kbert_core.roof.roof_bert import RoofConfig
from kbert_core.text import WordPieces
from kbert_lab.training.finetune import fit, save, train
from kbert_lab.training.options import Recipe, TrainOptions

TRIPLES = tuple(GRAPH)


@pytest.fixture(scope="module")
def roof(checkpoints):
    return tagger(checkpoints["encoder"], layers=2)


@pytest.fixture(scope="module")
def shared(checkpoints):
    return tagger(checkpoints["encoder"], kb_encoder="shared")


def logits(pipeline, text=TEXT, graph=GRAPH, **options):
    return pipeline(text, graph=graph, **options).logits_on_text()


def test_triples_stand_in_the_order_of_their_entities(roof):
    reading = roof(TEXT, graph=GRAPH).reading
    assert reading.used == (TRIPLES[1], TRIPLES[2], TRIPLES[0])
    assert [(m.entity, len(own)) for m, own in reading.by_mention] == [("糖尿病", 2), ("心电图", 1)]
    assert (
        reading.kb.text == "[CLS] 糖尿病的类别是疾病，它的症状是多饮 [SEP] 心电图的类别是检查 [SEP]"
    )
    assert "".join(
        roof.hugging_face_tokenizer.convert_ids_to_tokens(reading.rows[0].input_ids)
    ) == ("[CLS]" + TEXT.replace("史", "史") + "[SEP]")


@pytest.mark.parametrize("name", ["roof", "shared"])
def test_a_triple_whose_head_is_not_in_the_text_changes_nothing(name, request):
    pipeline = request.getfixturevalue(name)
    without = KnowledgeGraph([t for t in TRIPLES if t.head != "布洛芬"])
    assert torch.equal(logits(pipeline), logits(pipeline, graph=without))
    edited = GRAPH.replace(TRIPLES[1], Triple("糖尿病", "类别", "治疗"))
    assert not torch.allclose(logits(pipeline), logits(pipeline, graph=edited), atol=1e-4)


def test_every_token_sees_every_triple(roof):
    """Unlike in K-BERT: an edit of one entity moves the whole text."""
    edited = GRAPH.replace(TRIPLES[0], Triple("心电图", "类别", "治疗"))
    moved = (logits(roof) - logits(roof, graph=edited)).abs().amax(1)
    assert (moved > 1e-6).all()


def test_without_triples_the_roof_still_runs(roof):
    """No knowledge is not plain BERT: the roof's layers have read the text once more."""
    trace = roof(TEXT, graph=NO_KNOWLEDGE, hidden_states=True)
    assert trace.reading.kb.text == "[CLS] [SEP]"
    assert len(trace.hidden_states) == 4
    assert not torch.allclose(trace.hidden_states[-1], trace.text_states, atol=1e-3)


def test_a_roof_begins_as_the_last_layers_of_its_encoder(roof):
    """Run over both sides, they give what the roof gives before any training."""
    trace = roof(TEXT, graph=GRAPH, hidden_states=True)
    states = torch.cat([trace.text_states, trace.kb_states], 1)
    with torch.no_grad():
        for layer in layers_of(roof.reader.model.base_model)[-2:]:
            states = layer.forward(states)
    text = states[:, : trace.text_states.shape[1]]
    assert torch.allclose(text, trace.hidden_states[-1], atol=1e-6)


def test_the_roofs_attention_is_a_share_of_both_sides(roof):
    trace = roof(TEXT, graph=GRAPH, attentions=True)
    size = trace.text_states.shape[1] + trace.kb_states.shape[1]
    assert [own.shape for own in trace.roof_attentions] == [(1, 4, size, size)] * 2
    assert torch.allclose(trace.roof_attentions[0].sum(-1), torch.ones(1, 4, size))
    states = torch.cat([trace.text_states, trace.kb_states], 1)
    layer = roof.reader.roof.layers[0].attention.self
    query, key = (
        own(states).view(1, size, 4, 8).transpose(1, 2) for own in (layer.query, layer.key)
    )
    by_hand = (query @ key.transpose(2, 3) / 8**0.5).softmax(-1)
    assert torch.allclose(trace.roof_attentions[0], by_hand, atol=1e-6)


def test_a_triple_left_out_moves_the_others_up(roof):
    reading = roof(TEXT, graph=GRAPH).reading
    left = roof.reader.without(reading, [Fact(TRIPLES[1], 0)])
    assert left.kb.text == "[CLS] 糖尿病的症状是多饮 [SEP] 心电图的类别是检查 [SEP]"
    fewer = GRAPH.remove(TRIPLES[1])
    assert torch.equal(roof.reader.trace(left).logits, roof(TEXT, graph=fewer).logits)


def test_an_entity_named_twice_has_its_triples_once(roof):
    reading = roof("糖尿病，糖尿病史", graph=GRAPH).reading
    assert reading.used == (TRIPLES[1], TRIPLES[2])
    assert [fact.node for fact in reading.facts] == [0, 0]
    left = roof.reader.without(reading, reading.facts[:1])
    assert left.used == (TRIPLES[2],)


def test_the_tail_condition_wants_the_tail_in_the_text_too(roof):
    options = InjectionOptions(max_triples=100, strategy="tail_in_text")
    reading = roof(TEXT, graph=GRAPH, options=options).reading
    assert reading.used == (TRIPLES[0],)  # 检查 stands in the text
    assert {own.rule for _, own in reading.left_out} == {Rule.TAIL}


@pytest.mark.parametrize(("segments", "text"), [(1, 0), (2, 1)])
def test_token_types_tell_the_sides_apart(checkpoints, segments, text):
    pipeline = tagger(checkpoints["encoder"], segments=segments)
    (row,) = pipeline(TEXT, graph=GRAPH).reading.rows
    assert set(row.token_type_ids) == {text}


def test_only_the_last_of_two_sentences_is_searched(checkpoints):
    pair = Pipeline.from_pretrained(checkpoints["pair"], device="cpu")
    for searched, count in (("last", 1), ("all", 2)):
        card = Card("pair", RoofConfig(searched=searched))
        pipeline = Pipeline(pair.reader.model, pair.hugging_face_tokenizer, card)
        trace = pipeline("有糖尿病", "行心电图检查", graph=GRAPH)
        assert len(trace.reading.mentions) == count
        assert trace.reading.mentions[-1].sentence == 1


def test_what_the_limit_cuts_off_names_nothing(checkpoints):
    pair = Pipeline.from_pretrained(checkpoints["classify"], device="cpu")
    pipeline = Pipeline(
        pair.reader.model, pair.hugging_face_tokenizer, Card("classify", RoofConfig(max_length=10))
    )
    reading = pipeline("患者有糖尿病史行心电图", graph=GRAPH).reading
    assert reading.used == (TRIPLES[1], TRIPLES[2])
    assert [own.rule for _, own in reading.left_out] == [Rule.TRUNK_CUT]


def test_an_accent_of_its_own_at_the_end_of_a_text_cuts_no_name(roof):
    graph = KnowledgeGraph([Triple("cafe\u0301", "类别", "疾病")])
    assert roof("有cafe\u0301", graph=graph).reading.used == tuple(graph)


def test_an_encoder_of_another_width_is_refused(checkpoints, tmp_path):
    wide = save_checkpoint(
        tmp_path / "wide", AutoModelForTokenClassification, Card(), hidden_size=64
    )
    with pytest.raises(KBertError, match="64 wide, and the text's 32"):
        tagger(checkpoints["encoder"], kb_encoder=str(wide))


def test_more_layers_than_the_encoder_has_are_refused(checkpoints):
    with pytest.raises(KBertError, match=r"of 4 layers, but .* has 3 layers to copy. Give 1 to 3"):
        tagger(checkpoints["encoder"], layers=4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"expand": 3}, "expand is 3, expected one of 0, 1, 2"),
        ({"kb_encoder": ""}, "own, shared, or an encoder"),
    ],
)
def test_options_that_cannot_be_are_said(given, words):
    with pytest.raises(KBertError, match=words):
        RoofConfig(**given)


@pytest.mark.parametrize("given", ["{", "[]", '{"depth": 2}', '{"max_length": 3}'])
def test_options_as_json_are_checked(given):
    with pytest.raises(KBertError, match=r"The roof's options are"):
        RoofConfig.changes(given)


def test_the_command_line_shows_what_is_read_and_what_is_not(checkpoints, tmp_path, kbert):
    made = tagger(checkpoints["encoder"], options=InjectionOptions(max_triples=1))
    made.reader.model.save_pretrained(tmp_path / "model")
    made.hugging_face_tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "kg.spo").write_text("\n".join("\t".join(astuple(t)) for t in TRIPLES) + "\n")
    how = ["link", TEXT, "--model", str(tmp_path / "model"), "--kg", str(tmp_path / "kg.spo")]
    shown = kbert(*how).out
    assert "糖尿病 [3, 6)" in shown and "over the limit of triples per mention" in shown
    assert "[CLS] 糖尿病的类别是疾病 [SEP] 心电图的类别是检查 [SEP]" in shown
    data = kbert(*how, "--json")
    assert (data["text_tokens"], data["kb_tokens"]) == (len(TEXT), 21)
    assert data["names"][0]["triples"] == [list(astuple(TRIPLES[1]))]
    assert data["names"][0]["left_out"][0]["triple"] == list(astuple(TRIPLES[2]))


TOKENIZER = WordPieces(tiny_tokenizer())
DIABETES = (Triple("糖尿病", "类别", "疾病"), Triple("糖尿病", "症状", "多饮"))
TEST = Triple("心电图", "类别", "检查")
COOK = (Triple("tim cook", "job", "boss"), Triple("tim cook", "city", "x"))


@pytest.mark.parametrize(
    ("expand", "text"),
    [
        (0, "[CLS] 糖尿病 类别 疾病 [SEP] 糖尿病 症状 多饮 [SEP] 心电图 类别 检查 [SEP]"),
        (1, "[CLS] 糖尿病的类别是疾病 [SEP] 糖尿病的症状是多饮 [SEP] 心电图的类别是检查 [SEP]"),
        (2, "[CLS] 糖尿病的类别是疾病，它的症状是多饮 [SEP] 心电图的类别是检查 [SEP]"),
    ],
)
def test_triples_are_worded_in_three_ways(expand, text):
    assert kb_text((*DIABETES, TEST), TOKENIZER, expand=expand).text == text


def test_english_triples_are_worded_in_english():
    assert kb_text(COOK, TOKENIZER, expand=1).text == (
        "[CLS] the job of tim cook is boss [SEP] the city of tim cook is x [SEP]"
    )
    assert kb_text(COOK, TOKENIZER).text == (
        "[CLS] the job of tim cook is boss, its city is x [SEP]"
    )


def test_only_triples_that_stand_together_share_a_sentence():
    mixed = kb_text((DIABETES[0], TEST, DIABETES[1]), TOKENIZER)
    assert mixed.text.count("[SEP]") == 3
    assert "它" not in mixed.text


def test_a_triple_counts_once_and_its_tokens_are_known():
    kb = kb_text((*DIABETES, DIABETES[0], TEST), TOKENIZER)
    assert kb.triples == (*DIABETES, TEST)
    words = TOKENIZER.hugging_face.convert_ids_to_tokens(kb.ids)
    (first, end), _, (begin, last) = kb.places
    assert "".join(words[first:end]) == "糖尿病[UNK]类别[UNK]疾病"  # 的 and 是 are unknown here
    assert "".join(words[begin:last]) == "心电图[UNK]类别[UNK]检查"
    assert words[0] == "[CLS]" and words[last:] == ["[SEP]"]


def test_the_limit_leaves_whole_triples_out():
    every = kb_text((*DIABETES, TEST), TOKENIZER)
    for limit in range(2, len(every) + 1):
        kb = kb_text((*DIABETES, TEST), TOKENIZER, max_length=limit)
        assert len(kb) <= limit
        assert kb.triples + kb.left_out == every.triples
        assert kb.ids[:-1] == every.ids[: len(kb) - 1]
    assert not kb.left_out


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
