"""The lexicon adapter: the triples of a name change the states of its tokens, and nothing else."""

import dataclasses

import pytest
import torch
from explaining import DISEASE, GRAPH, IS_CURE, IS_DISEASE, TEXT
from small_data import tuning
from torch.nn.functional import layer_norm
from transformers import AutoModelForTokenClassification

from kbert_core import Fact, InjectionOptions, Pipeline, Triple
from kbert_core.checkpoints.checkpoint import load_model
from kbert_core.errors import CheckpointError
from kbert_core.explain.attributions import attributions
from kbert_core.explain.case import Case
from kbert_core.explain.effects import effects
from kbert_core.layers import INSERTED, layers_of
from kbert_lab.explain.attention import attention_effect
from kbert_lab.explain.influence import influence
from kbert_lab.lab.models import read_model
from kbert_lab.lexicon import LAYER, RATE, LexiconConfig
from kbert_lab.training.finetune import train


@pytest.fixture
def lexicon(ner, checkpoints):
    config = LexiconConfig(InjectionOptions(max_triples=3), ner.config.max_length)
    card = dataclasses.replace(ner.card, reading=config)
    model = load_model(checkpoints["ner"], AutoModelForTokenClassification, device="cpu")
    return Pipeline(model, ner.hugging_face_tokenizer, card)


def adapter_of(pipeline):
    return getattr(layers_of(pipeline.reader.model.base_model)[LAYER - 1], INSERTED)


def text_states(trace, layer):
    return trace.reading.on_text(list(trace.hidden_states[layer]))


def test_without_a_graph_it_is_bert(ner, lexicon):
    assert torch.equal(lexicon(TEXT).logits, ner(TEXT).logits)


def test_after_the_first_layer_names_have_what_the_equations_give_and_others_what_bert_has(lexicon):
    plain = text_states(lexicon(TEXT, hidden_states=True), LAYER)
    trace = lexicon(TEXT, graph=GRAPH, hidden_states=True)
    (row,), adapter = trace.rows, adapter_of(lexicon)
    words = lexicon.reader.model.get_input_embeddings().weight
    expected = plain.clone()
    for number, node in enumerate(row.tree.nodes):
        vectors = [
            adapter.second(torch.tanh(adapter.first(words[row.input_ids[start:end]].mean(0))))
            for of, _, start, end in row.branches
            if of == number
        ]
        assert len(vectors) == len(node.used) > 0
        for place in range(node.mention.start, node.mention.end):  # a character is a token
            state = plain[place]
            scores = torch.stack([adapter.attention(state) @ vector for vector in vectors])
            added = sum(a * v for a, v in zip(scores.softmax(0), vectors, strict=True))
            norm = adapter.norm
            expected[place] = layer_norm(state + added, state.shape, norm.weight, norm.bias)
    assert not torch.allclose(expected, plain)
    assert torch.allclose(text_states(trace, LAYER), expected, atol=1e-5)


def test_the_text_sees_no_triple_and_a_batch_gives_what_single_texts_give(lexicon):
    trace = lexicon(TEXT, graph=GRAPH)
    row = trace.rows[0]
    trunk = torch.tensor(row.branch_ids) == 0
    assert not trace.visible[0][trunk][:, ~trunk].any()
    assert trace.visible[0][trunk][:, trunk].all()
    texts = [(TEXT,), ("有糖尿病史",), ("无",)]
    readings = lexicon.readings(texts, graph=GRAPH)
    together = lexicon.reader.logits(readings)
    for (text,), own in zip(texts, together, strict=True):
        assert torch.allclose(lexicon(text, graph=GRAPH).logits_on_text(), own, atol=1e-5)


def test_a_triple_left_out_or_edited_counts_as_in_the_changed_graph(lexicon):
    reading = lexicon(TEXT, graph=GRAPH).reading
    less = lexicon.reader.without(reading, [Fact(IS_DISEASE)])
    again = lexicon(TEXT, graph=GRAPH.remove(IS_DISEASE))
    assert torch.allclose(
        lexicon.reader.trace(less).logits_on_text(), again.logits_on_text(), atol=1e-5
    )
    edited = lexicon(TEXT, graph=GRAPH.replace(IS_CURE, Triple("布洛芬", "类别", "疾病")))
    assert not torch.allclose(edited.logits_on_text(), again.logits_on_text(), atol=1e-6)


def test_a_saved_model_is_read_back_with_its_adapter(lexicon, tmp_path):
    with torch.no_grad():
        adapter_of(lexicon).second.weight.mul_(3)
    lexicon.card.write_to(lexicon.reader.model.config)
    lexicon.reader.model.save_pretrained(tmp_path)
    lexicon.hugging_face_tokenizer.save_pretrained(tmp_path)
    again = Pipeline.from_pretrained(tmp_path, device="cpu")
    assert again.card.system == "lexicon"
    one, other = (pipeline(TEXT, graph=GRAPH).logits for pipeline in (lexicon, again))
    assert torch.equal(one, other)
    assert "for the system 'lexicon', which the Lab can't draw" in read_model(str(tmp_path)).problem


def test_a_model_without_an_adapter_cant_be_read_so(ner):
    with pytest.raises(CheckpointError, match="The system 'lexicon' has layers of its own"):
        ner.read_as("lexicon")


def test_it_is_trained_with_a_higher_rate_and_trained_further_with_its_adapter(data, checkpoints):
    how = {"epochs": 1, "max_length": 48, "float32": False}
    encoder = str(checkpoints["encoder"])
    report = train(tuning(data, "one", system="lexicon", encoder=encoder, **how))
    assert report["edit_response"].keys() == {"dev", "test"}
    one = Pipeline.from_pretrained(data / "one", device="cpu")
    rates = {one.reader.rate_of(name) for name, _ in one.reader.model.named_parameters()}
    assert rates == {1.0, RATE}
    train(tuning(data, "two", encoder=str(data / "one"), learning_rate=1e-12, **how))
    two = Pipeline.from_pretrained(data / "two", device="cpu")
    assert two.card.system == "lexicon"
    pairs = zip(adapter_of(one).parameters(), adapter_of(two).parameters(), strict=True)
    assert all(torch.allclose(own, other, atol=1e-3) for own, other in pairs)


def test_explanations_that_follow_branches_are_refused_and_others_count_triples(lexicon):
    case = Case.of(lexicon, TEXT, graph=GRAPH, target=DISEASE)
    for follow in (influence, attention_effect):
        with pytest.raises(CheckpointError, match="in the system 'lexicon' triples enter between"):
            follow(case)
    found = attributions(case, steps=8)
    assert not [own for own in found.each if own.fact]
    total = sum(own.share for own in found.each)
    assert total == pytest.approx(found.score - found.masked, abs=0.05)
    assert {own.fact.triple for own in effects(case).each} == {*GRAPH}
