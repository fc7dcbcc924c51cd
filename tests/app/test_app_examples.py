"""The examples do with the shipped models what their names say."""

import pytest

from app.examples import EXAMPLES
from app.services import ROOT
from kbert_core import NO_KNOWLEDGE, KnowledgeGraph, Pipeline, Triple

RESTING = [e for e in EXAMPLES if e.rests_on_triple]
TYPES = {
    "疾病": "Disease",
    "症状": "Symptom",
    "部位": "BodyPart",
    "治疗": "Cure",
    "检查": "Examine",
}


@pytest.fixture(scope="module")
def pipeline():
    return Pipeline.load(ROOT / "models" / "medical-ner-kbert", device="cpu")


@pytest.mark.parametrize("example", RESTING, ids=lambda e: e.sentences[0])
def test_an_example_rests_on_its_first_triple(pipeline, example):
    graph = KnowledgeGraph.from_files(ROOT / "demo_kgs" / f"{example.graph}.spo")

    def spans(knowledge):
        found = pipeline(*example.sentences, graph=knowledge).prediction.spans
        return [(span.text, span.label) for span in found]

    triple = pipeline(*example.sentences, graph=graph).tree.used[0]
    right = (triple.head, TYPES[triple.tail])
    assert spans(graph) == [right]
    assert right not in spans(NO_KNOWLEDGE)
    assert right not in spans(graph.switch_off(triple))
    for tail, label in TYPES.items():
        if tail != triple.tail:
            edited = graph.replace(triple, Triple(triple.head, triple.relation, tail))
            assert spans(edited) == [(triple.head, label)]


def test_the_first_example_is_one_that_rests_on_a_triple():
    assert EXAMPLES[0].rests_on_triple
    assert len(RESTING) >= 2
