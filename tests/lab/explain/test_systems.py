"""Other systems than K-BERT: triples as plain text explained, and KnowBert's links drawn."""

import json
import math

import pytest
from explaining import DISEASE, GRAPH, TEXT
from tiny_knowbert import SENSES, knowbert_in
from tiny_knowbert import TEXT as LINKED

from kbert_core import Card, InjectionOptions, KnowledgeGraph, Pipeline, Triple
from kbert_core.explain.case import Case
from kbert_core.explain.effects import effects, interactions, shapley
from kbert_core.plain_text import PlainTextConfig
from kbert_lab.explain.attention import attention_effect
from kbert_lab.explain.compare import BERT, ablations_of, compare
from kbert_lab.explain.counterfactuals import Search, counterfactuals
from kbert_lab.explain.drawing import linked_html
from kbert_lab.explain.influence import ROUNDING, influence
from kbert_lab.explain.noise import noise_curve


@pytest.fixture(scope="module")
def case(checkpoints):
    read = Pipeline.from_pretrained(checkpoints["ner"], device="cpu")
    config = PlainTextConfig(InjectionOptions(max_triples=2))
    pipeline = Pipeline(read.reader.model, read.hugging_face_tokenizer, Card("ner", config))
    return Case.of(pipeline, TEXT, graph=GRAPH, target=DISEASE)


@pytest.mark.parametrize(
    "explain",
    [effects, interactions, shapley, attention_effect, counterfactuals, influence, noise_curve],
)
def test_triples_as_plain_text_are_explained_too(case, explain):
    options = {"search": Search(budget=20)} if explain is counterfactuals else {}
    found = explain(case, **options)
    assert json.loads(json.dumps(found.as_dict()))
    assert len(found.to_frame())
    assert found.figure().axes


def test_the_effect_of_a_triple_as_plain_text_is_that_of_a_run_without_it(case):
    for effect in effects(case, deleted=False).each:
        less = case.pipeline(TEXT, graph=GRAPH.remove(effect.fact.triple), config=case.config)
        logits = less.logits_on_text()
        score = DISEASE.score(less.reading, logits, case.pipeline.labels)
        assert effect.without.score == pytest.approx(score, abs=1e-5)
        assert math.isfinite(effect.effect) and abs(effect.effect) > 1e-6


def test_triples_as_plain_text_reach_every_token_after_one_layer(case):
    found = influence(case)
    assert found.reached[:, 1].all()
    assert found.largest_beyond_reach < ROUNDING


def test_a_system_without_ablations_is_compared_with_bert_and_has_one_curve(case):
    made = compare(ablations_of(case), of=case)
    assert [side.name for side in made.sides] == [BERT, "plain-text"]
    assert noise_curve(case, counts=(0, 1), seeds=(1,)).ablations == ("plain-text",)


# The picture of a trace: spans, candidates, what was chosen


def test_a_trace_is_drawn_with_its_candidates_the_best_first(tmp_path, checkpoints):
    trace = knowbert_in(tmp_path, checkpoints, head=False)(LINKED, graph=SENSES)
    drawn = trace._repr_html_()
    (linked,) = trace.links
    order = sorted(linked.candidates, key=lambda own: -own.score)
    places = [drawn.index(f"{own.candidate.entity}<") for own in order]
    assert f"<b>{order[0].candidate.entity}</b>" in drawn
    assert drawn.rindex(order[0].candidate.entity) < drawn.rindex(order[1].candidate.entity)
    assert len(places) == 2
    assert f"{order[0].weight:.3f}" in drawn and f"{order[0].candidate.prior:.3f}" in drawn
    assert f"width:{100 * order[0].weight:.1f}%" in drawn
    assert "一种检查" in drawn and "一张图" in drawn
    assert "[3, 6)" in drawn


def test_what_a_graph_says_is_escaped(tmp_path, checkpoints):
    graph = KnowledgeGraph([Triple("心电图", "gloss", "<script>alert(1)</script>")])
    drawn = knowbert_in(tmp_path, checkpoints)(LINKED, graph=graph)._repr_html_()
    assert "<script>" not in drawn and "&lt;script&gt;" in drawn


def test_a_text_without_names_and_a_name_that_means_nothing_say_so(tmp_path, checkpoints):
    pipeline = knowbert_in(tmp_path, checkpoints, null=True)
    assert "No name of the graph" in pipeline("今天天气好", graph=SENSES)._repr_html_()
    assert ">NULL<" in pipeline(LINKED, graph=SENSES)._repr_html_()


def test_more_candidates_than_are_shown_are_counted(tmp_path, checkpoints):
    graph = KnowledgeGraph(
        triple
        for n in range(9)
        for triple in (Triple(f"图{n}", "gloss", f"义{n}"), Triple(f"图{n}", "synonym", "心电图"))
    )
    trace = knowbert_in(tmp_path, checkpoints)(LINKED, graph=graph)
    assert "and 4 more" in trace._repr_html_()
    assert "more" not in linked_html(trace.links, (LINKED,), most=None)
