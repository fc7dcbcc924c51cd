"""Which triples of a mention are injected, and by which rule the others are not."""

from collections import Counter

import pytest
from conftest import FIGURE_2

from kbert_core import InjectionOptions, KnowledgeGraph, LeftOut, Rule, Triple, grow_trees
from kbert_core.errors import OptionError
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.selection import Strategy
from kbert_core.knowledge.strategies import select_triples
from kbert_core.knowledge.surface_forms import ALL_RULES, NameRules

A, B, C, D = (Triple("x", r, t) for r, t in (("r", "a"), ("s", "b"), ("r", "c"), ("s", "d")))


@pytest.fixture
def graph():
    return KnowledgeGraph([A, B, C, D])


def select(entity, graph, options):
    """What is used of an entity, and what is left out, where there is no text."""
    (selection,) = select_triples([("",)], [Mention(0, 0, entity)], graph, options)
    return selection.used, selection.left_out


def test_first_triples_in_graph_order_are_used_up_to_the_limit(graph):
    used, left_out = select("x", graph, InjectionOptions())
    assert used == (A, B)
    assert left_out == (LeftOut(C, Rule.LIMIT), LeftOut(D, Rule.LIMIT))


def test_next_triple_takes_the_place_of_one_switched_off(graph):
    used, left_out = select("x", graph.switch_off(A), InjectionOptions())
    assert used == (B, C)
    assert left_out == (LeftOut(A, Rule.OFF), LeftOut(D, Rule.LIMIT))


def test_relations_not_asked_for_are_left_out_before_counting(graph):
    used, left_out = select("x", graph, InjectionOptions(relations=("s",)))
    assert used == (B, D)
    assert left_out == (LeftOut(A, Rule.RELATION), LeftOut(C, Rule.RELATION))


def test_no_triple_is_used_where_none_may_be(graph):
    used, left_out = select("x", graph, InjectionOptions(max_triples=0))
    assert used == ()
    assert {item.rule for item in left_out} == {Rule.LIMIT}


def test_entity_without_triples_has_none(graph):
    assert select("nobody", graph, InjectionOptions()) == ((), ())


def test_left_out_triples_are_counted_by_rule(graph):
    _, left_out = select("x", graph.switch_off(B), InjectionOptions(max_triples=1))
    assert Counter(item.rule for item in left_out) == {Rule.OFF: 1, Rule.LIMIT: 2}


SHORT = Triple("Myocardial infarction", "synonym", "Heart attack")
LETTERS = Triple("Myocardial infarction", "synonym", "MI")
CHEST = Triple("Myocardial infarction", "symptom", "chest pain")


@pytest.mark.parametrize("strategy", [Strategy.FIRST, Strategy.RARE])
def test_triple_that_only_says_the_name_in_the_text_takes_no_place(strategy):
    graph = KnowledgeGraph([SHORT, LETTERS, CHEST])
    options = InjectionOptions(strategy=strategy)
    texts = ("a heart  attack", "had MI", "myocardial infarction")
    by_name, by_letters, by_head = (tree.nodes[0] for tree in grow_trees(texts, graph, options))
    assert {branch.triple for branch in by_name.branches} == {LETTERS, CHEST}
    assert by_name.left_out == (LeftOut(SHORT, Rule.OWN_NAME),)
    assert {branch.triple for branch in by_letters.branches} == {SHORT, CHEST}
    assert by_letters.left_out == (LeftOut(LETTERS, Rule.OWN_NAME),)
    assert SHORT in [branch.triple for branch in by_head.branches]


@pytest.mark.parametrize(
    ("tail", "text", "rules", "says"),
    [
        ("高血压", "有高血壓史", ALL_RULES, True),
        ("heart attack", "two heart-attacks", ALL_RULES, True),
        ("Heart attack (disease)", "a heart attack", ALL_RULES, True),
        ("heart attack", "a heart attack", NameRules.of(["alias"]), True),
        ("heart attack", "many heart attacks", NameRules.of(["alias", "plural"]), True),
        ("angina", "a heart attack", ALL_RULES, False),
    ],
)
def test_the_name_in_the_text_is_known_however_it_is_written(tail, text, rules, says):
    """By the rules by which it was found."""
    name = Triple("Myocardial infarction", "synonym", tail)
    found = Triple("Myocardial infarction", "synonym", "heart attack")
    graph = KnowledgeGraph([name, found, CHEST])
    (node,) = grow_trees([text], graph, InjectionOptions(names=rules))[0].nodes
    assert (LeftOut(name, Rule.OWN_NAME) in node.left_out) is says


def test_triple_whose_head_is_the_other_name_says_which_entity_it_is():
    triple = Triple("MI", "synonym_of", "Myocardial infarction")
    assert grow_trees(["had MI"], KnowledgeGraph([triple, CHEST]))[0].used == (triple, CHEST)


def test_name_in_the_text_may_be_said_where_other_names_are_not_looked_for():
    graph = KnowledgeGraph([Triple("MI", "synonym", "mi")])
    options = InjectionOptions(names=NameRules(alias=False))
    assert grow_trees(["had MI"], graph, options)[0].used == tuple(graph)


@pytest.mark.parametrize("count", [-1, 1001])
def test_limit_outside_its_range_is_refused(count):
    with pytest.raises(OptionError, match=f"max_triples is {count}, expected 0 to 1000"):
        InjectionOptions(max_triples=count)


def test_figure_2_uses_every_triple(figure_2):
    assert select("Tim  COOK", figure_2, InjectionOptions()) == (FIGURE_2[:1], ())
    assert select("beijing", figure_2, InjectionOptions()) == (FIGURE_2[1:], ())
