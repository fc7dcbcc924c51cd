"""The dictionary tagger, against cases worked by hand."""

import pytest
from tagged_texts import tagged, worded

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple
from kbert_lab.study.dictionary import (
    dictionary_spans,
    learn_tail_labels,
    written_over,
)
from kbert_lab.training.scores import span_scores, unseen_recall

TYPES = KnowledgeGraph(
    [
        Triple("糖尿病", "类别", "疾病"),
        Triple("糖尿病肾病", "类别", "疾病"),
        Triple("心电图", "类别", "检查"),
        Triple("头痛", "来源", "书"),
        Triple("头痛", "类别", "疾病"),
        Triple("头痛", "类别", "检查"),
    ]
)
LABELS = {"疾病": "D", "检查": "E"}


def test_the_longest_head_is_tagged_with_the_label_of_its_first_tail_that_has_one():
    texts = [tagged("糖尿病肾病及糖尿病"), tagged("头痛行心电图"), tagged("无")]
    assert dictionary_spans(texts, TYPES, LABELS) == [
        [(0, 5, "D"), (6, 9, "D")],
        [(0, 2, "D"), (3, 6, "E")],
        [],
    ]


def test_a_head_without_a_labelled_tail_and_a_triple_that_is_off_tag_nothing():
    off = TYPES.switch_off(Triple("糖尿病", "类别", "疾病"))
    assert dictionary_spans([tagged("有糖尿病")], off, LABELS) == [[]]
    assert dictionary_spans([tagged("有糖尿病")], TYPES, {"检查": "E"}) == [[]]


def test_a_match_that_cuts_a_word_is_no_span():
    graph = KnowledgeGraph([Triple("beta", "is_a", "drug")])
    texts = [worded("beta alpha", "O O"), worded("beta-blocker", "O")]
    assert dictionary_spans(texts, graph, {"drug": "C"}) == [[(0, 4, "C")], []]


def test_matches_that_are_gold_mentions_say_what_a_tail_means():
    train = [tagged("有糖尿病", ("糖尿病", "D"))] * 3 + [tagged("有糖尿病", ("糖尿病", "S"))] * 2
    train += [tagged("行心电图", ("心电图", "E"))] * 2
    # 疾病: 3 D, 2 S. 检查: 2 matches are too few, and its relation 类别 has 3 D, 2 S, 2 E.
    assert learn_tail_labels(train, TYPES) == {"疾病": "D", "检查": "D"}
    train += [tagged("有心电图")]
    assert learn_tail_labels(train, TYPES) == {"疾病": "D", "检查": "E"}


def test_a_tail_whose_matches_are_hardly_ever_mentions_means_nothing():
    train = [tagged("行心电图", ("心电图", "E"))] + [tagged("有心电图")] * 9
    assert learn_tail_labels(train, TYPES) == {"疾病": "E", "检查": "E"}  # 1 in 10
    train += [tagged("有心电图")]
    assert learn_tail_labels(train, TYPES) == {}  # 1 in 11, of the tail and of its relation


def test_a_gold_mention_that_is_only_part_of_a_match_does_not_vote():
    train = [tagged("糖尿病肾病", ("糖尿病", "D"))] * 9
    assert learn_tail_labels(train, TYPES) == {}


def test_a_rare_tail_means_what_its_relation_does():
    graph = KnowledgeGraph(
        [Triple(f"病{n}", "症状", tail) for n, tail in enumerate(["热", "咳", "痛", "晕"])]
        + [Triple("药", "治", "热")]
    )
    train = [tagged(f"有病{n}。", (f"病{n}", "D")) for n in range(3)]
    assert learn_tail_labels(train, graph) == {"热": "D", "咳": "D", "痛": "D", "晕": "D"}
    assert dictionary_spans([tagged("病3")], graph, learn_tail_labels(train, graph)) == [
        [(0, 2, "D")]
    ]


def test_a_predicted_span_that_overlaps_a_dictionary_span_gives_way():
    predicted = [[(0, 3, "D"), (3, 5, "E"), (9, 10, "S")], [(0, 1, "D")], []]
    dictionary = [[(2, 3, "E"), (6, 7, "D")], [], [(4, 5, "D")]]
    assert written_over(predicted, dictionary) == [
        [(2, 3, "E"), (3, 5, "E"), (6, 7, "D"), (9, 10, "S")],
        [(0, 1, "D")],
        [(4, 5, "D")],
    ]


def test_the_dictionary_is_scored_like_a_model():
    gold = [
        tagged("糖尿病行心电图", ("糖尿病", "D"), ("心电图", "E")),
        tagged("头痛", ("头痛", "E")),
    ]
    found = dictionary_spans(gold, TYPES, LABELS)
    scores = span_scores([e.spans for e in gold], found)
    assert (scores["right"], scores["predicted"], scores["gold"]) == (2, 3, 3)
    texts = [e.sentences[0] for e in gold]
    unseen = unseen_recall(texts, [e.spans for e in gold], found, {"糖尿病"})
    assert unseen["recall"] == pytest.approx(1 / 2)
