"""K-Query and K-Inject: which triples hang where."""

import pytest
from conftest import FIGURE_2, TIM_COOK

from kbert_core import (
    InjectionOptions,
    KnowledgeGraph,
    LeftOut,
    Rule,
    Triple,
    grow_trees,
    k_inject,
    k_query,
)
from kbert_core.errors import TextError

CEO, CAPITAL, IS_A = FIGURE_2


def test_k_query_finds_figure_2(figure_2):
    ((first, second),) = k_query([TIM_COOK], figure_2)
    assert (first.mention.start, first.mention.end, first.used) == (0, 8, (CEO,))
    assert (second.mention.start, second.mention.end) == (21, 28)
    assert second.used == (CAPITAL, IS_A)


def test_k_query_takes_the_first_triples_in_graph_order(figure_2):
    ((_, beijing),) = k_query([TIM_COOK], figure_2, InjectionOptions(max_triples=1))
    assert beijing.used == (CAPITAL,)
    assert beijing.left_out == (LeftOut(IS_A, Rule.LIMIT),)


def test_k_query_numbers_the_sentences(figure_2):
    (nodes,) = k_query([("Beijing is big", "Tim Cook knows")], figure_2)
    assert [node.mention.sentence for node in nodes] == [0, 1]


def test_k_inject_hangs_relation_and_tail_or_tail_alone(figure_2):
    options = InjectionOptions(tail_only=True)
    both = grow_trees([TIM_COOK], figure_2)[0]
    assert [b.texts for b in both.nodes[1].branches] == [("capital", "China"), ("is_a", "City")]
    alone = grow_trees([TIM_COOK], figure_2, options)[0]
    assert [b.texts for b in alone.nodes[1].branches] == [("China",), ("City",)]
    assert both.used == alone.used == FIGURE_2


def test_k_inject_is_the_second_half_of_growing_a_tree(figure_2):
    texts = [TIM_COOK, ("Beijing", "Paris")]
    nodes = k_query(texts, figure_2)
    assert list(map(k_inject, texts, nodes)) == grow_trees(texts, figure_2)


def test_tree_grows_one_level_deep_only(figure_2):
    graph = figure_2.add(Triple("China", "continent", "Asia"))
    tree = grow_trees(["Beijing"], graph)[0]
    assert tree.used == (CAPITAL, IS_A)


def test_tree_keeps_the_texts_as_given(figure_2):
    text = "  Ｔｉｍ　Cook\tin Beijing \n"
    assert grow_trees([text], figure_2)[0].sentences == (text,)


def test_triple_whose_tail_is_its_head_hangs_once():
    graph = KnowledgeGraph([Triple("Beijing", "is", "Beijing")])
    tree = grow_trees(["Beijing"], graph)[0]
    assert [branch.texts for branch in tree.nodes[0].branches] == [("is", "Beijing")]


def test_same_text_and_graph_always_grow_the_same_tree(figure_2):
    again = KnowledgeGraph(list(figure_2), name="again")
    assert grow_trees([TIM_COOK], figure_2)[0] == grow_trees([TIM_COOK], again)[0]


@pytest.mark.parametrize("sentences", [[], ["a", "b", "c"]])
def test_neither_no_sentence_nor_three_make_a_tree(figure_2, sentences):
    with pytest.raises(TextError, match=f"Got {len(sentences)} sentences, expected one or two"):
        grow_trees([sentences], figure_2)[0]


def test_half_a_character_is_refused(figure_2):
    with pytest.raises(TextError, match=r"Character 3 of the text is half .*U\+D83D"):
        grow_trees(["ok", "abc\ud83d"], figure_2)


def test_empty_text_makes_an_empty_tree(figure_2):
    assert grow_trees([""], figure_2)[0].nodes == ()


def test_text_split_into_words_has_whole_words_for_mentions(figure_2):
    text = "TimCook Tim Cook"
    tree = grow_trees([text], figure_2, words=[[[(0, 7), (8, 11), (12, 16)]]])[0]
    assert [(n.mention.start, n.mention.end) for n in tree.nodes] == [(8, 16)]
    assert tree.words == (((0, 7), (8, 11), (12, 16)),)
