"""Triples as plain text: K-BERT's knowledge after the text, and none of its mechanism."""

import dataclasses
import json

import pytest
import torch
from explaining import DISEASE, GRAPH, HAS_SYMPTOM, IS_CURE, IS_DISEASE, TEXT

from kbert_core import (
    Card,
    InjectionOptions,
    KnowledgeGraph,
    Piece,
    Pipeline,
    Rule,
    Triple,
)
from kbert_core.errors import CheckpointError, OptionError
from kbert_core.explain.case import Case
from kbert_core.explain.effects import effects
from kbert_core.plain_text import PlainTextConfig
from kbert_lab import cli
from kbert_lab.explain.compare import compare
from kbert_lab.suites.suite import read_suite, train_options


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


def test_a_triple_left_out_leaves_no_trace_and_those_after_it_move_up(plain):
    reading = plain(TEXT, graph=GRAPH).reading
    less = plain.reader.without(reading, [Piece(IS_DISEASE)])
    again = plain(TEXT, graph=GRAPH.remove(IS_DISEASE)).reading
    assert less.rows[0].input_ids == again.rows[0].input_ids
    assert less.rows[0].soft_positions == again.rows[0].soft_positions
    assert less.used == (HAS_SYMPTOM, IS_CURE)
    none = plain.reader.without(reading, reading.pieces)
    assert none.rows[0].input_ids == plain(TEXT).rows[0].input_ids
    assert plain.reader.cache_key(none) != plain.reader.cache_key(reading)


def test_a_triple_that_does_not_fit_is_left_out_and_the_text_stays_whole(ner):
    plain = plain_text(ner, max_triples=3)
    trace = plain(TEXT, graph=GRAPH, max_length=28)
    assert len(trace.rows[0]) <= 28
    assert len(trace.prediction.tokens) == len(TEXT)
    assert {item.rule for _, item in trace.left_out} == {Rule.LENGTH}
    assert len(trace.used) + len(trace.left_out) == 3


def test_a_long_text_is_read_in_windows_with_their_own_triples(plain):
    trace = plain(TEXT * 6, graph=GRAPH)
    assert len(trace.rows) > 2
    assert max(map(len, trace.rows)) <= plain.config.max_length
    assert len(trace.prediction.tokens) == 6 * len(TEXT)


def test_pairs_have_their_triples_after_the_second_text(checkpoints):
    pair = plain_text(Pipeline.from_pretrained(checkpoints["pair"], device="cpu"))
    graph = KnowledgeGraph([Triple("cat", "is", "apple")])
    (row,) = pair("a cat", "Beijing", graph=graph).rows
    first_sep, second_sep, *_ = [i for i, t in enumerate(row.tokens) if t == "[SEP]"]
    assert row.branches[0].start == second_sep + 1 > first_sep


def test_effects_and_comparisons_explain_it(plain):
    case = Case.of(plain, TEXT, graph=GRAPH, target=DISEASE)
    measured = effects(case)
    assert len(measured.each) == 3
    removed = Case.of(plain, TEXT, graph=GRAPH.remove(IS_CURE), target=DISEASE)
    effect = next(e for e in measured.each if e.piece.triple == IS_CURE)
    assert effect.without.score == pytest.approx(removed.base.score, abs=1e-5)
    both = compare({"knowledge": case, "none": case.without_knowledge()}, of=case)
    assert both.pairs[0].largest > 0


def test_a_model_of_the_system_is_saved_and_loaded_with_its_configuration(plain, tmp_path):
    plain.card.write_to(plain.reader.model.config)
    plain.reader.model.save_pretrained(tmp_path)
    plain.hugging_face_tokenizer.save_pretrained(tmp_path)
    again = Pipeline.from_pretrained(tmp_path, device="cpu")
    assert again.card.system == "plain-text"
    assert again.config == plain.config
    assert again(TEXT, graph=GRAPH).prediction.spans == plain(TEXT, graph=GRAPH).prediction.spans
    Card("ner").write_to(plain.reader.model.config)


def test_options_of_another_system_are_refused(plain):
    with pytest.raises(OptionError, match="'plain-text' has no option 'ablation', only options"):
        plain(TEXT, ablation="hard")
    with pytest.raises(CheckpointError, match="'roof-brick'"):
        Card.of(type("Config", (), {"kbert": {"system": "roof-brick"}}))


def test_the_command_line_trains_and_predicts_with_it(data, tmp_path, capsys):
    train = ["train", "--task", "ner", "--data", str(data), "--kg", str(data / "kg.spo")]
    small = ["--system", "plain-text", "--hidden-size", "32", "--layers", "2"]
    folder = str(tmp_path / "model")
    assert cli.main([*train, *small, "--epochs", "1", "--output", folder, "--device", "cpu"]) == 0
    assert Pipeline.from_pretrained(folder, device="cpu").card.system == "plain-text"
    predict = ["predict", "患者有糖尿病病史", "--model", folder, "--kg", str(data / "kg.spo")]
    assert cli.main([*predict, "--json"]) == 0
    assert '"糖尿病"' in capsys.readouterr().out


def test_a_suite_names_it_beside_its_runs_of_kbert(tmp_path):
    rows = [{"name": "plain", "train": {"system": "plain-text"}}, {"name": "K-BERT"}]
    suite = {"title": "t", "about": "a", "task": "ner", "encoder": "scratch", "seeds": [1]}
    suite |= {"data": {"folder": "data"}, "kg": "kg.spo", "runs": rows}
    (tmp_path / "s.yaml").write_text(json.dumps(suite), encoding="utf-8")
    read = read_suite(tmp_path / "s.yaml")
    systems = [train_options(read, run).knowledge.system for run in read.runs]
    assert systems == ["plain-text", None]
