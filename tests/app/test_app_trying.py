"""Sentences that a graph changes, made of its own names."""

import re
from pathlib import Path

import pytest
from explaining_pages import opened
from explaining_pages import said as page_says
from sessions import session

from app import services
from kbert_core import KnowledgeGraph, Triple
from kbert_core.tasks import ClassPrediction, NerPrediction, Span
from kbert_lab.lab import examples
from kbert_lab.lab.scene import WORDS, GraphRef, Scene
from kbert_lab.lab.views.trying import LEAST, Tried, best, candidates, effect, said

GRAPH = KnowledgeGraph(
    [
        Triple("哮喘", "类别", "疾病"),
        Triple("胃镜", "类别", "检查"),
        Triple("aspirin", "is_a", "drug"),
        Triple("x", "is_a", "drug"),
    ]
)


def test_each_kind_of_entity_gets_sentences_that_name_it_in_its_language():
    made = candidates(GRAPH, "ner")
    assert [(one.name, one.kind) for one in made] == [
        ("哮喘", "disease"),
        ("胃镜", "test"),
        ("aspirin", "cure"),
    ]
    assert all(one.name in one.sentences[0] for one in made)
    assert made[2].sentences[0].isascii() and not made[0].sentences[0].isascii()


def test_english_proposals_are_sentences_whatever_the_noun():
    pancreas = KnowledgeGraph([Triple("pancreas", "located_in", "abdomen")])
    said = [one.sentences for one in candidates(pancreas, "ner", "pancreas")]
    assert said == [("The report mentions pancreas.",), ("Nothing was known about pancreas.",)]
    (rank,) = candidates(pancreas, "rank", "pancreas")
    assert rank.sentences[1] == "pancreas: located in abdomen."


def test_a_triple_that_is_off_makes_no_sentence():
    off = GRAPH.switch_off(Triple("哮喘", "类别", "疾病"))
    assert "哮喘" not in {one.name for one in candidates(off, "ner")}


def test_there_are_never_more_than_asked_for():
    many = KnowledgeGraph([Triple(f"病症{i}", "类别", "疾病") for i in range(500)])
    made = candidates(many, "ner")
    assert len(made) == 24
    assert len({one.name for one in made}) == 24


def test_one_head_is_named_by_every_template_of_its_kind():
    made = candidates(GRAPH, "ner", "哮喘")
    assert len(made) > 1
    assert {one.name for one in made} == {"哮喘"}


def test_another_label_weighs_more_than_a_surer_one():
    (asthma, *_) = candidates(GRAPH, "ner")
    start = asthma.sentences[0].index("哮喘")
    found = [NerPrediction((Span(start, start + 2, label, "哮喘", p),), ()) for label, p in SPANS]
    flip, surer = effect(asthma, found[0], found[2]), effect(asthma, found[1], found[2])
    assert flip.weight > surer.weight
    assert said(flip, None) == "Symptom → Disease"
    assert said(surer, None) == "Disease: 60.0 % → 90.0 %"
    label = [ClassPrediction(name, {"0": p, "1": 1 - p}) for name, p in (("0", 0.7), ("1", 0.2))]
    assert effect(asthma, *label).weight == pytest.approx(3.1)


SPANS = (("Symptom", 0.7), ("Disease", 0.6), ("Disease", 0.9))


def test_what_the_graph_does_not_change_is_not_offered():
    made = candidates(GRAPH, "ner")
    tried = [Tried(one, weight) for one, weight in zip(made, (LEAST / 2, 0.5, 3), strict=True)]
    assert [one.candidate.name for one in best(tried)] == ["aspirin", "胃镜"]


def test_the_shipped_model_reads_each_sentence_differently_with_the_graph():
    graph = services.demo_graph("medical_zh")
    folder = services.ROOT / "models" / "medical-ner-kbert"
    options = services.model_info(str(folder)).card.reading.options
    scene = Scene(("",), str(folder), GraphRef.of(graph), options=options)
    tried = services.tried(scene, graph)
    assert len(tried) == 3
    assert all((one.before or ("",))[0] != (one.after or ("",))[0] for one in tried)
    reader = services.pipeline(str(folder), "cpu")
    first = tried[0].candidate.sentences
    assert reader(*first, graph=graph).prediction.spans != reader(*first).prediction.spans


def test_without_a_model_the_sentences_tell_a_triple():
    scene = Scene(("",), WORDS, GraphRef.of(GRAPH))
    assert "类别 疾病" in {said(one, None) for one in services.tried(scene, GRAPH)}


def test_a_graph_in_another_script_is_read_by_a_model_that_knows_it_and_there_is_a_way_back(
    monkeypatch, tmp_path
):
    monkeypatch.setitem(examples.FIRST, "en", "copd")
    file = tmp_path / "mine.spo"
    file.write_text("四氯化碳中毒\t类别\t疾病\n小儿狂犬病\t类别\t疾病\n", encoding="utf-8")
    at = opened("lab.py")

    def model():
        return Path(session(at).model).name

    at.button(key="lab.open_graph").click().run()
    at.text_input(key="lab.path").set_value(str(file))
    at.button(key="lab.open_path").click().run()
    assert not at.exception
    assert model() == "medical-ner-kbert"
    assert "mostly Chinese, so medical" in page_says(at) and "Do not rely" not in page_says(at)
    assert re.search("四氯化碳中毒|小儿狂犬病", at.text_area(key="lab.text").value)
    at.button(key="lab.reader_back").click().run()
    assert (model(), session(at).base.name) == ("ner-en", "medical_en")
    assert at.text_area(key="lab.text").value == "The patient with COPD recovered"
    at.text_area(key="lab.text").set_value("患者行胃镜检查未见异常").run()
    assert model() == "medical-ner-kbert" and "This text is mostly Chinese" in page_says(at)
    at.button(key="lab.reader_back").click().run()
    assert "Do not rely" in page_says(at)
    at.button(key="lab.read_with").click().run()
    assert model() == "medical-ner-kbert" and "Do not rely" not in page_says(at)
