"""A graph to NetworkX and back, and other people's NetworkX graphs."""

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple
from kbert_core.errors import GraphFileError
from kbert_lab.graphs.networkx_graph import from_networkx, to_networkx

COOK = Triple("Tim Cook", "CEO", "Apple")
COMPANY = Triple("Apple", "is_a", "company")
WORKS = Triple("Tim Cook", "works at", "Apple")
LIVES = Triple("Tim Cook", "lives in", "Cupertino")


def said(graph):
    return [(triple, graph.is_on(triple)) for triple in graph], graph.name


def test_every_triple_is_an_edge_that_says_its_relation_and_whether_it_is_on():
    made = to_networkx(KnowledgeGraph([COOK, LIVES], name="mine").switch_off(LIVES))
    assert made.edges["Tim Cook", "Apple", "CEO"] == {"relation": "CEO", "on": True, "order": 0}
    assert not made.edges["Tim Cook", "Cupertino", "lives in"]["on"]
    assert list(made) == ["Tim Cook", "Apple", "Cupertino"]
    assert made.name == "mine"


def test_edges_between_the_same_nodes_keep_their_places():
    graph = KnowledgeGraph([COOK, LIVES, WORKS, COMPANY], name="mine").switch_off(WORKS)
    assert said(from_networkx(to_networkx(graph))) == said(graph)


names = st.sampled_from(["a", "A", "b", "ａ", "糖尿病", "<b>", "x y"])


@given(st.lists(st.tuples(names, names, names), max_size=12), st.integers(0, 11))
def test_a_round_trip_changes_nothing(fields, number):
    graph = KnowledgeGraph((Triple(*f) for f in fields), name="g")
    if number < len(graph):
        graph = graph.switch_off(list(graph)[number])
    assert said(from_networkx(to_networkx(graph))) == said(graph)


def test_a_round_trip_goes_through_a_file_of_another_program(tmp_path):
    graph = KnowledgeGraph([COOK, LIVES, WORKS, COMPANY]).switch_off(COOK)
    nx.write_graphml(to_networkx(graph), tmp_path / "g.graphml")
    assert said(from_networkx(nx.read_graphml(tmp_path / "g.graphml")))[0] == said(graph)[0]


def test_attributes_of_edges_and_nodes_can_be_chosen():
    other = nx.DiGraph(name="other")
    other.add_node(1, title=" Tim Cook ")
    other.add_node(2, title="Apple")
    other.add_node(3)
    other.add_edge(1, 2, kind="CEO")
    assert list(from_networkx(other, relation="kind", label="title")) == [COOK]


def test_a_key_is_the_relation_where_no_attribute_is():
    other = nx.MultiDiGraph([("Tim Cook", "Apple", "CEO"), ("Apple", "company", "is_a")])
    assert list(from_networkx(other)) == [COOK, COMPANY]
    assert len(from_networkx(nx.MultiDiGraph())) == 0


def test_an_edge_that_is_twice_the_same_triple_counts_once():
    other = nx.MultiDiGraph()
    for _ in range(2):
        other.add_edge("Tim Cook", "Apple", relation="CEO")
    assert list(from_networkx(other)) == [COOK]


@pytest.mark.parametrize(
    ("edge", "options", "message"),
    [
        (("a", "b", {}), {}, r"edge 'a' → 'b': found the relation None, expected a text"),
        (("a", "b", {"relation": 3}), {}, r"found the relation 3, .*in the attribute 'relation'"),
        (("a", "b", {"relation": "r"}), {"relation": "kind"}, "in the attribute 'kind'"),
        ((1, "b", {"relation": "r"}), {}, "the node 1 is no text and names nothing. Say which"),
        (("a", "b", {"relation": "r"}), {"label": "name"}, "found None as the attribute 'name'"),
        (("a", " ", {"relation": "r"}), {}, "its tail is empty"),
        (("a", "b\n", {"relation": "r\0"}), {}, r"its relation holds .* \(U\+0000\)"),
    ],
)
@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_an_edge_that_is_no_triple_is_named(kind, edge, options, message):
    other = kind(name="theirs")
    other.add_edge(edge[0], edge[1], **edge[2])
    with pytest.raises(GraphFileError, match=message) as caught:
        from_networkx(other, **options)
    assert str(caught.value).startswith("graph 'theirs', edge")


def test_a_graph_without_directions_is_refused():
    with pytest.raises(GraphFileError, match="no direction, so head and tail can't be told"):
        from_networkx(nx.Graph([("a", "b")]))
