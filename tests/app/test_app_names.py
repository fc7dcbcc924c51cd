"""What the Lab says of names written otherwise than in the graph."""

from kbert_core import KnowledgeGraph, Triple
from kbert_core.kbert.sentence_tree import grow_trees, passed_over
from kbert_lab.lab.views.names import SHOWN, name_lines

GRAPH = KnowledgeGraph(
    [
        Triple("阿司匹林", "别名", "乙酰水杨酸"),
        Triple("苹果（水果）", "类别", "水果"),
        Triple("苹果（公司）", "类别", "公司"),
        Triple("2型糖尿病", "类别", "疾病"),
        Triple("糖尿病", "类别", "疾病"),
        Triple("病足", "类别", "疾病"),
    ]
)


def lines(text, graph=GRAPH):
    tree = grow_trees([text], graph)[0]
    return name_lines(tree, passed_over(tree, graph))


def test_a_name_written_as_in_the_graph_needs_no_words():
    assert lines("服阿司匹林，有糖尿病") == ()


def test_another_name_is_said_with_its_entity_and_rule():
    assert lines("服乙酰水杨酸") == (
        "“乙酰水杨酸” is read as “阿司匹林” (another name in the graph)",
    )


def test_several_meanings_and_names_passed_over_are_said():
    assert lines("2型糖尿病足，苹果")[1:] == (
        "“苹果” may mean 苹果(水果), 苹果(公司)",
        "“糖尿病” is not a mention: it is part of “2型糖尿病”",
        "“病足” is not a mention: it overlaps “2型糖尿病”",
    )


def test_many_lines_are_counted():
    graph = KnowledgeGraph(Triple(f"甲{n}（乙）", "r", "t") for n in range(10))
    said = lines("，".join(f"甲{n}" for n in range(10)), graph)
    assert len(said) == SHOWN + 1
    assert said[-1] == "and 4 more"
