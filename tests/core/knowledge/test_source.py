"""Several graphs as one: the same as all of their triples in memory."""

from hypothesis import given
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple, find_mentions, join_graphs

names = st.sampled_from(["a", "A", "ab", "阿司匹林", "阿司", "b c"])
triples = st.builds(Triple, names, st.sampled_from("rs"), st.sampled_from("xy"))
TEXTS = ("ab a 阿司匹林阿司 b c", "阿司", "")


@given(st.lists(st.lists(triples, max_size=6), min_size=1, max_size=3))
def test_joined_graphs_are_as_one_of_all_their_triples(parts):
    one = KnowledgeGraph(triple for part in parts for triple in part)
    joined = join_graphs(KnowledgeGraph(part) for part in parts)
    assert list(joined.entities()) == list(one.entities())
    assert list(joined) == list(one)
    assert len(joined) == len(one)
    assert list(find_mentions(TEXTS, joined)) == list(find_mentions(TEXTS, one))


def test_a_joined_graph_is_edited_like_any_and_keeps_what_is_off():
    first = KnowledgeGraph([Triple("a", "r", "x")])
    off = KnowledgeGraph([Triple("b", "r", "x")]).switch_off(Triple("b", "r", "x"))
    joined = join_graphs([first, off])
    assert joined.off == {Triple("b", "r", "x")}
    assert len(joined.remove(Triple("a", "r", "x")).add(Triple("c", "r", "x"))) == 2
    swapped = join_graphs([off, first])
    assert joined.fingerprint != swapped.fingerprint


def test_join_graphs_of_none_is_an_empty_graph():
    joined = join_graphs([])
    assert len(joined) == 0
    assert find_mentions(["a"], joined)[0] == ()
    assert len(joined.add(Triple("a", "r", "x"))) == 1
