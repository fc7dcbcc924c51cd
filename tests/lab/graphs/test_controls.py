"""Control graphs: wrongly paired names and tails, and irrelevant triples among the right ones."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import AliasRelations, Triple
from kbert_lab.graphs.controls import shuffled, with_constant_tail, with_noise

TYPES = ["疾病", "症状", "部位", "检查"]


def graph_of(types):
    return KnowledgeGraph([Triple(f"n{i}", "类别", t) for i, t in enumerate(types)], name="G")


def test_every_head_gets_a_tail_of_another_type():
    graph = graph_of([TYPES[i % 4] for i in range(40)])
    result = shuffled(graph, seed=1)
    assert result.unchanged == 0
    for triple in result.graph:
        assert triple not in graph


@given(st.lists(st.sampled_from(TYPES), max_size=60), st.integers(0, 99))
def test_shuffling_keeps_heads_relations_and_how_often_tails_occur(types, seed):
    graph = graph_of(types)
    result = shuffled(graph, seed=seed)
    assert [t.head for t in result.graph] == [t.head for t in graph]
    assert Counter(t.tail for t in result.graph) == Counter(types)
    most = max(Counter(types).values(), default=0)
    assert result.unchanged == max(0, 2 * most - len(types)) / max(1, len(types))


def test_tails_stay_within_their_relation_and_seeds_differ():
    triples = [Triple(f"n{i}", r, f"{r}{i % 5}") for i in range(30) for r in ("甲", "乙")]
    graph = KnowledgeGraph(triples)
    one, two = shuffled(graph, seed=1).graph, shuffled(graph, seed=2).graph
    assert all(t.tail.startswith(t.relation) for t in one)
    assert list(one) != list(two)
    assert list(one) == list(shuffled(graph, seed=1).graph)


def test_what_is_switched_off_is_left_out():
    graph = graph_of(["疾病", "症状", "部位"])
    off = graph.triples_of("n0")[0]
    result = shuffled(graph.switch_off(off))
    assert sorted(t.tail for t in result.graph) == ["症状", "部位"]
    assert not result.graph.triples_of("n0")


GRAPH = KnowledgeGraph([Triple(head, "is", f"t{head}{i}") for head in "abcdef" for i in range(3)])


@pytest.mark.parametrize("place", ["before", "among"])
def test_noise_is_what_others_say_and_the_right_triples_stay_in_order(place):
    noisy = with_noise(GRAPH, ["a"], 4, seed=1, place=place)
    found = noisy.triples_of("a")
    noise = [t for t in found if t not in GRAPH]
    assert len(found) == 7 and len(noise) == 4
    assert [t for t in found if t in GRAPH] == list(GRAPH.triples_of("a"))
    assert all(t.head == "a" and not t.tail.startswith("ta") for t in noise)
    assert noisy.triples_of("b") == GRAPH.triples_of("b")
    if place == "before":
        assert list(found[:4]) == noise


def test_same_seed_draws_the_same_and_more_of_a_larger_count():
    two = with_noise(GRAPH, ["a"], 2, seed=1, place="before")
    five = with_noise(GRAPH, ["a"], 5, seed=1, place="before")
    other = with_noise(GRAPH, ["a"], 5, seed=2, place="before")
    assert two.triples_of("a")[:2] == five.triples_of("a")[:2]
    assert five.triples_of("a") != other.triples_of("a")
    assert five.fingerprint == with_noise(GRAPH, ["a"], 5, seed=1, place="before").fingerprint


def test_no_noise_is_the_graph_itself_and_unknown_names_get_none():
    assert with_noise(GRAPH, ["a"], 0, seed=1) is GRAPH
    assert list(with_noise(GRAPH, ["z"], 2, seed=1)) == list(GRAPH)


def test_noise_can_be_of_another_graph():
    source = [Triple("x", "likes", "y")]
    assert Triple("a", "likes", "y") in with_noise(GRAPH, ["a"], 1, seed=1, source=source)


def test_another_name_is_not_drawn_from_the_graph_or_another():
    names = [Triple("b", "synonym", f"name{i}") for i in range(20)]
    graph = KnowledgeGraph([*names, Triple("b", "is", "tb"), Triple("a", "is", "ta")])
    for source in (None, (*names, Triple("b", "is", "tb"))):
        noisy = with_noise(graph, ["a"], 3, seed=1, source=source, place="before")
        assert noisy.triples_of("a") == (Triple("a", "is", "tb"), Triple("a", "is", "ta"))
    own = KnowledgeGraph(graph, aliases=AliasRelations(frozenset({"is"})))
    drawn = with_noise(own, ["a"], 3, seed=1).triples_of("a")
    assert {triple.relation for triple in drawn if triple not in own} == {"synonym"}


def test_what_is_switched_off_is_not_drawn():
    off = [triple for triple in GRAPH if triple.head != "b"]
    quiet = GRAPH.apply(*(Edit("switch_off", triple) for triple in off))
    drawn = [t for t in with_noise(quiet, ["a"], 3, seed=1) if t.head == "a" and t not in GRAPH]
    assert sorted(triple.tail for triple in drawn) == ["tb0", "tb1", "tb2"]
    assert tuple(quiet.active_triples()) == GRAPH.triples_of("b")


def test_a_constant_tail_leaves_the_names_and_says_the_same_of_each():
    triples = [
        Triple("胃镜", "类别", "检查"),
        Triple("血尿", "类别", "症状"),
        Triple("发热", "类别", "症状"),
    ]
    other_name = Triple("胃镜", "别名", "胃镜检查")
    off = Triple("咳嗽", "类别", "症状")
    graph = KnowledgeGraph(
        [*triples, Triple("血尿", "程度", "轻"), other_name, off], aliases=AliasRelations(("别名",))
    ).switch_off(off)
    made = with_constant_tail(graph)
    assert [*made] == [
        other_name,
        *(Triple(name, "类别", "症状") for name in ("胃镜", "血尿", "发热")),
    ]
    assert made.aliases == graph.aliases
    rough = with_constant_tail(graph, InjectionOptions(relations=("程度",)))
    assert [*rough] == [other_name, Triple("血尿", "程度", "轻")]
    assert [*with_constant_tail(KnowledgeGraph())] == []
