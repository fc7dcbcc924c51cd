"""Irrelevant triples put among the right ones."""

import pytest

from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge.aliases import AliasRelations
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.tools.unrelated import said_by, with_noise

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
    assert said_by(quiet, 2) == GRAPH.triples_of("b")[:2]
