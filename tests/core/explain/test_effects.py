"""Effects: a triple left out, a triple deleted, what moves up, what flips."""

import dataclasses
import json
from pathlib import Path

import pytest
from explaining import DISEASE, GRAPH, HAS_SYMPTOM, IS_CURE, IS_DISEASE, TEXT

from kbert_core import InjectionOptions, KnowledgeGraph, Pipeline, Triple, load_graph
from kbert_core.explain.case import Case, Outcome, Piece, Target
from kbert_core.explain.effects import Effect, effects, stream_effects

MODELS = Path(__file__).parents[3] / "models"
ALIAS = Triple("糖尿病", "别名", "多饮")


def of(found, triple):
    return next(effect for effect in found.each if effect.piece.triple == triple)


def test_effect_of_a_triple_is_that_of_a_run_without_it(case, score):
    found = effects(case)
    assert [effect.piece.triple for effect in found.each] == list(GRAPH)
    for effect in found.each:
        alone = score(GRAPH.switch_off(effect.piece.triple))
        assert effect.effect == pytest.approx(score(GRAPH) - alone, abs=1e-5)
        assert abs(effect.effect) > 1e-4


def test_whole_effect_is_that_of_a_run_without_any_graph(case, score):
    found = effects(case)
    assert found.whole == pytest.approx(score(GRAPH) - score(KnowledgeGraph()), abs=1e-5)


def test_deleting_a_triple_lets_the_next_one_move_up(ner, score):
    one = InjectionOptions(max_triples=1, tail_only=True)
    found = effects(Case.of(ner, TEXT, graph=GRAPH, target=DISEASE, options=one))
    first, cure = found.each
    assert (first.piece.triple, first.moved_up) == (IS_DISEASE, (HAS_SYMPTOM,))
    deleted = score(GRAPH.remove(IS_DISEASE), options=one)
    left_out = score(KnowledgeGraph([IS_CURE]), options=one)
    base = score(GRAPH, options=one)
    assert first.deleted_effect == pytest.approx(base - deleted, abs=1e-5)
    assert first.effect == pytest.approx(base - left_out, abs=1e-5)
    assert abs(first.effect - first.deleted_effect) > 1e-4
    assert (cure.moved_up, cure.deleted) == ((), cure.without)
    assert found.runs == 2 + 2 + 1  # nothing takes the cure's place, so that is one reading


def test_deleting_another_name_takes_its_mention_away(ner):
    graph = KnowledgeGraph([IS_DISEASE, ALIAS])
    found = effects(Case.of(ner, "糖尿病患者有多饮", graph=graph, target=Target("疾病", 6, 8)))
    assert of(found, ALIAS).moved_out == (IS_DISEASE,)
    assert of(found, ALIAS).moved_up == ()
    assert of(found, IS_DISEASE).moved_out == ()


def test_a_piece_of_one_mention_is_left_out_there_alone(ner):
    text = "糖尿病史糖尿病"
    case = Case.of(ner, text, graph=GRAPH, target=Target("疾病", 0, 3))
    both, apart = effects(case), effects(case, by_mention=True)
    assert [len(effect.mentions) for effect in both.each] == [2, 2]
    assert [(e.piece.node, e.mentions[0].start) for e in apart.each] == [
        (0, 0),
        (0, 0),
        (1, 4),
        (1, 4),
    ]
    assert all(effect.deleted is None and effect.deleted_effect is None for effect in apart.each)
    variant = case.without([Piece(IS_DISEASE, 1)])
    alone = next(case.run([variant])).score
    assert apart.each[2].without.score == pytest.approx(alone, abs=1e-5)
    assert abs(apart.each[2].effect - of(both, IS_DISEASE).effect) > 1e-4


def test_an_effect_flips_where_the_answer_is_another():
    base, other = Outcome(1.0, "疾病"), Outcome(1.5, "O")
    effect = Effect(Piece(IS_DISEASE), (), base, other, base)
    assert (effect.effect, effect.flips) == (-0.5, True)
    assert (effect.deleted_effect, effect.deleted_flips) == (0.0, False)


def test_the_triple_that_says_what_epilepsy_is_flips_its_entity():
    model = Pipeline.from_pretrained(MODELS / "medical-ner-kbert", device="cpu")
    graph = load_graph(MODELS.parent / "demo_kgs" / "medical_zh.spo")
    found = effects(Case.of(model, "既往患癫痫多年", graph=graph))
    first = found.ranked[0]
    assert found.target == Target("Disease", 3, 5)
    assert first.piece.triple == Triple("癫痫", "类别", "疾病")
    assert first.flips and first.effect > 2
    assert found.flips and (found.base.answer, found.plain.answer) == ("Disease", "O")
    assert [effect.flips for effect in found.ranked[1:]] == [False]


def test_effects_come_batch_by_batch(ner):
    graph = KnowledgeGraph([Triple("糖尿病", "r", c) for c in "abcdefghijklmnopqrstuv"])
    case = Case.of(
        ner, TEXT, graph=graph, target=DISEASE, options=InjectionOptions(22, tail_only=True)
    )
    grown = list(stream_effects(case))
    assert [(len(found.each), found.total) for found in grown] == [(16, 22), (22, 22)]
    assert grown[-1].each[:16] == grown[0].each


def test_a_text_without_knowledge_has_no_effects(ner):
    found = effects(Case.of(ner, TEXT, graph=KnowledgeGraph(), target=DISEASE))
    assert (found.each, found.whole, found.flips) == ((), 0.0, False)
    assert found.to_frame().empty


def test_results_are_rows_plain_data_and_a_figure(case):
    found = effects(case)
    frame = found.to_frame()
    assert list(frame["tail"]) == ["疾病", "多饮", "治疗"]
    assert list(frame["effect"]) == [effect.effect for effect in found.each]
    data = json.loads(json.dumps(found.as_dict()))
    assert data["target"] == {"label": "疾病", "start": 3, "end": 6}
    assert data["effects"][2]["mentions"] == [
        {"text": "布洛芬", "sentence": 0, "start": 9, "end": 12}
    ]
    assert data["effects"][0]["without"]["answer"] == found.each[0].without.answer
    (panel,) = found.figure().axes
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert names == [
        f"{t.head} · {t.relation} · {t.tail}" for t in (e.piece.triple for e in found.ranked)
    ]


def test_a_figure_takes_any_name(case, tmp_path):
    hostile = Triple("$\\frac{", "_^<b>", "x" * 500)
    found = effects(case)
    odd = dataclasses.replace(
        found, each=(dataclasses.replace(found.each[0], piece=Piece(hostile)), *found.each[1:])
    )
    odd.figure().savefig(tmp_path / "odd.svg")
    drawn = (tmp_path / "odd.svg").read_text(encoding="utf-8")
    assert "x" * 100 not in drawn
    assert "<b>" not in drawn
