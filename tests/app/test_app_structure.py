"""Hubs, parts, names of several types and ways between names."""

from app.view_models import structure as shapes
from app.view_models.structure import structure
from kbert_core import KnowledgeGraph, Triple

TRIPLES = [
    Triple("糖尿病", "类别", "疾病"),
    Triple("糖尿病", "症状", "多尿"),
    Triple("尿崩症", "类别", "疾病"),
    Triple("尿崩症", "症状", "多尿"),
    Triple("Bass", "is_a", "fish"),
    Triple("bass", "is_a", "instrument"),
    Triple("fish", "lives in", "water"),
]
GRAPH = KnowledgeGraph(TRIPLES)


def test_hubs_are_counted_as_heads_and_as_tails():
    hubs = structure(GRAPH).hubs
    assert hubs[0] == ("糖尿病", 2, 0)
    assert ("多尿", 0, 2) in hubs and ("Bass", 2, 0) in hubs


def test_parts_are_what_no_triple_joins():
    found = structure(GRAPH)
    assert found.parts == 2
    assert [size for size, _ in found.largest] == [4, 4]


def test_a_name_of_two_types_is_found_however_it_is_written():
    assert structure(GRAPH).several == (("Bass", ("fish", "instrument")),)


def test_a_way_goes_along_triples_in_either_direction_and_not_over_types():
    found = structure(GRAPH)
    assert found.way("糖尿病", "尿崩症", types=False) == (TRIPLES[1], TRIPLES[3])
    assert found.way("糖尿病", "疾病", types=True) == (TRIPLES[0],)
    assert found.way("糖尿病", "疾病", types=False) is None
    assert found.way("糖尿病", "water", types=True) is None
    assert found.name("BASS") == "Bass" and found.name("trout") is None


def test_a_triple_that_is_off_joins_nothing():
    found = structure(GRAPH.switch_off(TRIPLES[1]))
    assert found.looked_at == 6
    assert found.name("糖尿病") and found.way("糖尿病", "尿崩症", types=False) is None


def test_of_a_large_graph_the_first_triples_are_looked_at(monkeypatch):
    monkeypatch.setattr(shapes, "MOST", 2)
    assert structure(GRAPH).looked_at == 2
