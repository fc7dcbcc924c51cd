"""Scores against cases worked by hand, and against seqeval."""

import random

import pytest
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.scheme import IOB2

from kbert_core.tasks.ner import bio_spans
from kbert_core.training.scores import class_scores, span_scores, unseen_recall


def test_a_span_counts_only_with_its_borders_and_its_type():
    gold = [[(0, 3, "D"), (5, 6, "S")], [(0, 2, "D")]]
    found = [[(0, 3, "D"), (5, 7, "S")], [(0, 2, "S")]]
    scores = span_scores(gold, found)
    assert (scores["right"], scores["predicted"], scores["gold"]) == (1, 3, 3)
    assert scores["precision"] == scores["recall"] == scores["f1"] == pytest.approx(1 / 3)
    assert scores["by_label"]["D"]["precision"] == 1.0
    assert scores["by_label"]["D"]["recall"] == 0.5
    assert scores["by_label"]["S"]["f1"] == 0.0


def test_nothing_predicted_scores_zero_and_does_not_divide_by_it():
    assert span_scores([[(0, 1, "D")]], [[]])["f1"] == 0.0
    assert span_scores([[]], [[]])["f1"] == 0.0


def test_span_scores_agree_with_seqeval_strict():
    dice = random.Random(5)
    tags = ["O", "B-A", "I-A", "B-B", "I-B"]
    for _ in range(200):
        rows = dice.randint(1, 4)
        gold = [[dice.choice(tags) for _ in range(dice.randint(1, 12))] for _ in range(rows)]
        found = [[dice.choice(tags) for _ in row] for row in gold]
        ours = span_scores([bio_spans(r) for r in gold], [bio_spans(r) for r in found])
        theirs = {"mode": "strict", "scheme": IOB2, "zero_division": 0}
        assert ours["f1"] == pytest.approx(f1_score(gold, found, **theirs))
        assert ours["precision"] == pytest.approx(precision_score(gold, found, **theirs))
        assert ours["recall"] == pytest.approx(recall_score(gold, found, **theirs))


def test_class_scores_by_hand():
    scores = class_scores(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    assert scores["accuracy"] == 0.75
    assert scores["by_label"]["a"]["f1"] == pytest.approx(2 / 3)
    assert scores["by_label"]["b"]["f1"] == pytest.approx(0.8)
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 0.8) / 2)


def test_unseen_recall_counts_only_forms_absent_from_training():
    gold = [[(0, 1, "D"), (1, 2, "D")]]
    scores = unseen_recall(["甲乙"], gold, [[(1, 2, "D")]], {"甲"})
    assert scores == {"recall": 1.0, "gold": 1, "right": 1}
