"""Scores against cases worked by hand, and against seqeval."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import classification_report, f1_score, precision_score, recall_score
from seqeval.scheme import IOB2

from kbert_core.labels import bio_spans
from kbert_lab.training.scores import (
    class_scores,
    pair_scores,
    ranking_scores,
    shared_characters,
    span_scores,
    unseen_recall,
)


def test_a_span_counts_only_with_its_borders_and_its_type():
    gold = [[(0, 3, "D"), (5, 6, "S")], [(0, 2, "D")]]
    found = [[(0, 3, "D"), (5, 7, "S")], [(0, 2, "S")]]
    scores = span_scores(gold, found)
    assert (scores["right"], scores["predicted"], scores["gold"]) == (1, 3, 3)
    assert scores["precision"] == scores["recall"] == scores["f1"] == pytest.approx(1 / 3)
    assert scores["by_label"]["D"]["precision"] == 1.0
    assert scores["by_label"]["D"]["recall"] == 0.5
    assert scores["by_label"]["S"]["f1"] == 0.0


TAGS = ("O", "B-A", "I-A", "B-B", "I-B")
SENTENCES = st.lists(
    st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), min_size=1, max_size=12),
    min_size=1,
    max_size=4,
)


@given(SENTENCES)
def test_span_scores_agree_with_seqeval_strict(sentences):
    gold = [[tag for tag, _ in row] for row in sentences]
    found = [[tag for _, tag in row] for row in sentences]
    ours = span_scores([bio_spans(r) for r in gold], [bio_spans(r) for r in found])
    theirs = {"mode": "strict", "scheme": IOB2, "zero_division": 0}
    assert ours["f1"] == pytest.approx(f1_score(gold, found, **theirs))
    assert ours["precision"] == pytest.approx(precision_score(gold, found, **theirs))
    assert ours["recall"] == pytest.approx(recall_score(gold, found, **theirs))
    if not ours["by_label"]:  # seqeval can't report on no label
        return
    report = classification_report(gold, found, output_dict=True, **theirs)
    for label, own in ours["by_label"].items():
        assert own["f1"] == pytest.approx(report[label]["f1-score"])
        assert own["precision"] == pytest.approx(report[label]["precision"])
        assert own["recall"] == pytest.approx(report[label]["recall"])
        assert own["gold"] == report[label]["support"]


def test_class_scores_by_hand():
    scores = class_scores(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    assert scores["accuracy"] == 0.75
    assert scores["by_label"]["a"]["f1"] == pytest.approx(2 / 3)
    assert scores["by_label"]["b"]["f1"] == pytest.approx(0.8)
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 0.8) / 2)


def test_relations_count_with_both_directions_and_other_left_out():
    there, back, hold = "Cause-Effect(e1,e2)", "Cause-Effect(e2,e1)", "Content-Container(e1,e2)"
    gold = [there, there, back, hold, "Other", "Other"]
    found = [there, back, back, "Other", "Other", there]
    # Cause-Effect: 2 right of 4 predicted and 3 gold; Content-Container: none of 0 and 1
    assert class_scores(gold, found)["relation_f1"] == pytest.approx((4 / 7 + 0) / 2)
    assert "relation_f1" not in class_scores(["Other", "a(b)"], ["Other", "Other"])


def test_unseen_recall_counts_only_forms_absent_from_training():
    gold = [[(0, 1, "D"), (1, 2, "D")]]
    scores = unseen_recall(["甲乙"], gold, [[(1, 2, "D")]], {"甲"})
    assert scores == {"recall": 1.0, "gold": 1, "right": 1}


def test_pairs_of_two_labels_have_the_f1_of_the_positive_one():
    gold, found = ["1", "1", "0", "0"], ["1", "0", "0", "0"]
    scores = pair_scores(gold, found, ["0", "1"])
    assert (scores["accuracy"], scores["positive"]) == (0.75, "1")
    assert scores["f1"] == pytest.approx(2 / 3)
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 0.8) / 2)
    assert pair_scores(["no"], ["no"], ["no", "yes"])["f1"] == 0.0
    assert pair_scores(["yes"], ["yes"], ["no", "yes"])["positive"] == "yes"


def test_pairs_of_three_labels_have_the_macro_f1():
    scores = pair_scores(["a", "b", "c"], ["a", "b", "b"], ["a", "b", "c"])
    assert scores["f1"] == scores["macro_f1"] == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert "positive" not in scores


def test_ranking_by_hand():
    questions = ["q", "q", "q", "r", "r", "s", "t", "t", "t"]
    right = [False, False, True, True, False, False, True, False, True]
    scores = [0.9, 0.1, 0.8, 0.7, 0.2, 0.9, 0.1, 0.6, 0.5]
    found = ranking_scores(questions, right, scores)
    assert found["mrr"] == pytest.approx((1 / 2 + 1 + 1 / 2) / 3)  # q second, r first, t second
    assert found["p_at_1"] == pytest.approx(1 / 3)
    assert (found["questions"], found["without_answer"], found["candidates"]) == (3, 1, 8)
    by_chance = (1 + 1 / 2 + 1 / 3) / 3, (1 + 1 / 2) / 2, (2 + 1 / 2) / 3
    assert found["chance_mrr"] == pytest.approx(sum(by_chance) / 3)
    assert found["order_mrr"] == pytest.approx((1 / 3 + 1 + 1) / 3)


def test_characters_are_shared_by_pairs_of_neighbours_without_space_and_case():
    assert shared_characters("甲乙丙", "丙乙甲") == 0.0
    assert shared_characters("甲乙丙", "有甲乙") == 0.5
    assert shared_characters("Who is it", "It is who") == pytest.approx(4 / 6)  # not oi, si
    assert shared_characters("甲", "甲") == shared_characters("", "甲") == 0.0


def test_equal_scores_rank_in_their_order_and_rows_may_be_mixed():
    assert ranking_scores(["q"] * 3, [False, True, True], [0.5] * 3)["mrr"] == 0.5
    mixed = ranking_scores(["q", "r", "q", "r"], [False, True, True, False], [0.1, 0.2, 0.3, 0.4])
    assert mixed["mrr"] == pytest.approx((1 + 1 / 2) / 2)
    assert mixed["p_at_1"] == 0.5
