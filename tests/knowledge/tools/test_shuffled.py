"""The shuffled graph: same names, same tails, wrongly paired."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.tools.shuffled import shuffled
from kbert_core.knowledge.triple import Triple

TYPES = ["疾病", "症状", "部位", "检查"]


def graph_of(types):
    return KnowledgeGraph([Triple(f"n{i}", "类别", t) for i, t in enumerate(types)], name="G")


def test_every_head_gets_a_tail_of_another_type():
    graph = graph_of([TYPES[i % 4] for i in range(40)])
    result = shuffled(graph, seed=1)
    assert result.unchanged == 0
    for triple in result.graph:
        assert triple not in graph


def test_what_a_majority_leaves_unchanged_is_reported():
    graph = graph_of(["疾病"] * 6 + ["症状"] * 4)  # at best 2 of 10 stay
    result = shuffled(graph, seed=1)
    assert result.unchanged == 0.2
    assert sum(t in graph for t in result.graph) == 2


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=60), st.integers(0, 99))
def test_shuffling_keeps_heads_relations_and_how_often_tails_occur(types, seed):
    graph = graph_of(types)
    result = shuffled(graph, seed=seed)
    assert [t.head for t in result.graph] == [t.head for t in graph]
    assert Counter(t.tail for t in result.graph) == Counter(types)
    most = max(Counter(types).values())
    assert result.unchanged == max(0, 2 * most - len(types)) / len(types)


def test_tails_stay_within_their_relation_and_seeds_differ():
    triples = [Triple(f"n{i}", r, f"{r}{i % 5}") for i in range(30) for r in ("甲", "乙")]
    graph = KnowledgeGraph(triples)
    one, two = shuffled(graph, seed=1).graph, shuffled(graph, seed=2).graph
    assert all(t.tail.startswith(t.relation) for t in one)
    assert list(one) != list(two)
    assert list(one) == list(shuffled(graph, seed=1).graph)


def test_an_empty_graph_stays_empty():
    assert len(shuffled(KnowledgeGraph()).graph) == 0


def test_what_is_switched_off_is_left_out():
    graph = graph_of(["疾病", "症状", "部位"])
    off = graph.triples_of("n0")[0]
    result = shuffled(graph.switch_off(off))
    assert sorted(t.tail for t in result.graph) == ["症状", "部位"]
    assert not result.graph.triples_of("n0")
