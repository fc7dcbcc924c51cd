"""A graph without what hurts: what goes and what stays."""

import json

import pytest
from explaining import GRAPH, HAS_SYMPTOM, IS_CURE, IS_DISEASE, TEXT
from hypothesis import given
from hypothesis import strategies as st
from lab.explain.labelled import classed, triple
from tagged_texts import tagged

from kbert_core import KnowledgeGraph, Triple
from kbert_core.errors import OptionError
from kbert_lab.study.file_rows import LeftOut, each_left_out, each_row
from kbert_lab.study.whole_file import WholeFile, prune, without_triples

A, B, C = triple("cat eats fish"), triple("cat is animal"), triple("dog is animal")
OFF = triple("dog is off")
ANIMALS = KnowledgeGraph([A, B, C, OFF, triple("cow is animal")], name="animals").switch_off(OFF)
FILE = WholeFile(
    "classify",
    "animals",
    (
        classed(0, "good", "good", "bad", [A, B]),
        classed(1, "good", "bad", "good", [C, B]),
        classed(2, "good", "bad", "good", [C]),
        classed(3, "good", "good", "good", [A]),
    ),
    4,
)
GOLD = tagged(TEXT, ("糖尿病", "疾病"), ("布洛芬", "治疗"))


def test_what_hurt_more_texts_than_it_helped_goes():
    pruned = prune(ANIMALS, FILE.rows)
    (gone,) = pruned.removed
    assert (gone.name, gone.texts, gone.helped, gone.hurt, gone.triples) == (
        "dog · is · animal",
        2,
        0,
        2,
        1,
    )
    assert list(pruned.graph) == [A, B, OFF, triple("cow is animal")]
    assert not pruned.graph.is_on(OFF)
    assert (pruned.graph.name, pruned.texts) == ("animals pruned", 4)
    assert "may not help on others" in str(pruned)
    assert len(ANIMALS) == 5


def test_more_may_be_asked_for_before_something_goes():
    assert prune(ANIMALS, FILE.rows, least=2).removed == prune(ANIMALS, FILE.rows).removed
    assert prune(ANIMALS, FILE.rows, least=3).removed == ()
    with pytest.raises(OptionError, match="least is 0"):
        prune(ANIMALS, FILE.rows, least=0)


def test_a_relation_goes_as_a_whole_also_where_it_never_stood_in_a_text():
    pruned = prune(ANIMALS, FILE.rows, what="relation")
    (gone,) = pruned.removed
    assert (gone.name, gone.texts, gone.helped, gone.hurt, gone.triples) == ("is", 3, 1, 2, 4)
    assert list(pruned.graph) == [A]


def test_leaving_one_out_tells_triples_of_one_text_apart():
    left_out = [
        LeftOut(0, A, 1.0, 1),
        LeftOut(0, B, -0.1, 0),
        LeftOut(1, C, 0.2, 0),
        LeftOut(1, B, -2.0, -1),
        LeftOut(2, C, 0.1, 0),
        LeftOut(3, A, 0.0, 0),
    ]
    pruned = prune(ANIMALS, FILE.rows, left_out, rule="leave one out")
    assert [gone.name for gone in pruned.removed] == ["cat · is · animal"]
    assert (pruned.removed[0].texts, pruned.removed[0].hurt) == (2, 1)
    whole = prune(ANIMALS, FILE.rows, left_out, rule="leave one out", what="relation")
    assert [(gone.name, gone.texts, gone.hurt) for gone in whole.removed] == [("is", 3, 1)]
    json.dumps(whole.as_dict())


@given(st.lists(st.tuples(st.sampled_from("abA"), st.sampled_from("xy"), st.sampled_from("tuv"))))
def test_taking_triples_out_in_one_go_equals_one_by_one(rows):
    triples = list(dict.fromkeys(Triple(*row) for row in rows))
    graph = KnowledgeGraph(triples)
    if triples:
        graph = graph.switch_off(triples[-1])
    slow = graph
    for one in triples[::2]:
        slow = slow.remove(one)
    fast = without_triples(graph, triples[::2])
    assert list(fast) == list(slow)
    assert fast.fingerprint == slow.fingerprint
    assert without_triples(graph, []).fingerprint == graph.fingerprint


def test_every_triple_is_left_out_of_every_text_it_stood_in(ner, score):
    rows = list(each_row(ner, [GOLD, tagged("患者"), GOLD], GRAPH))
    found = list(each_left_out(ner, rows, GRAPH))
    assert [(one.number, one.triple) for one in found] == [
        (number, t) for number in (0, 2) for t in (IS_DISEASE, HAS_SYMPTOM, IS_CURE)
    ]
    for one in found[:3]:
        (less,) = each_row(ner, [GOLD], GRAPH.switch_off(one.triple))
        assert one.effect == pytest.approx(rows[0].known.score - less.known.score, abs=1e-5)
        assert one.wrong == less.known.wrong - rows[0].known.wrong
        assert abs(one.effect) > 1e-5


def test_texts_are_left_out_several_to_a_batch_and_none_is_lost(ner):
    examples = [GOLD] * 25
    rows = list(each_row(ner, examples, GRAPH))
    found = list(each_left_out(ner, rows, GRAPH))
    assert [one.number for one in found] == [n for n in range(25) for _ in range(3)]
