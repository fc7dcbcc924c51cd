"""The gate over a dictionary: features by hand, the fit, and that none sees its own fold."""

from math import exp, log

import numpy as np
import pytest
from tagged_texts import tagged

from kbert_core.errors import DataError
from kbert_core.tasks.ner import LabelledToken, NerPrediction
from kbert_lab.study import gate
from kbert_lab.study.dictionary import TagScores, written_over
from kbert_lab.study.gate import (
    FEATURES,
    LOWEST,
    Record,
    Weights,
    cross_fitted,
    fit_gate,
    folds_of,
    gated_spans,
    judged,
    oracle,
)

NAMES = ("O", "B-x", "I-x", "B-y", "I-y")
SURE = (0.8, 0.05, 0.05, 0.05, 0.05)  # of O


def scores(*texts):
    """Of texts of one character a token: their tags' probabilities."""
    predictions = []
    for rows in texts:
        chances = [dict(zip(NAMES, row, strict=True)) for row in rows]
        tokens = [LabelledToken(i, i + 1, "O", chance) for i, chance in enumerate(chances)]
        predictions.append(NerPrediction((), tuple(tokens)))
    return TagScores.of(predictions)


def test_what_a_name_is_worth_is_counted_without_it_where_its_type_speaks():
    train = [tagged("糖尿病", ("糖尿病", "D"))] * 3 + [tagged("糖尿病"), tagged("感冒")]
    train += [tagged("肺炎", ("肺炎", "D"))]
    found = [[(0, len(e.sentences[0]), "D")] for e in train]
    record = Record.of(train, found)
    assert record.names == {"D": {"糖尿病": (3, 4), "感冒": (0, 1), "肺炎": (1, 1)}}
    # the type's other names: 感冒 0 of 1 and 肺炎 1 of 1, with one half more: 1.5 of 3 names
    assert record.of_name("糖尿病", "D") == (4, (3 + 2 * 0.5) / 6, 0.5)
    # of 肺炎 the others are worth 0.75 and 0
    assert record.of_name("肺炎", "D") == (1, pytest.approx((1 + 2 * 1.25 / 3) / 3), 1.25 / 3)
    # one that train hasn't: all three, and nothing of its own
    assert record.of_name("胃炎", "D") == (0, pytest.approx(2.25 / 4), pytest.approx(2.25 / 4))
    assert record.of_name("胃炎", "E") == (0, 0.5, 0.5)


def test_a_span_is_described_by_what_the_model_thinks_and_found_and_by_its_name():
    rows = [SURE, (0.5, 0.3, 0.1, 0.05, 0.05), (0.2, 0.1, 0.6, 0.05, 0.05), SURE]
    record = Record({"x": {"乙丙": (1, 2), "丁": (0, 1)}})
    dictionary = [[(1, 3, "x"), (3, 4, "y"), (0, 9, "x"), (1, 2, "z")]]
    found = [[(1, 3, "y")]]
    made = judged(["甲乙丙丁"], dictionary, scores(rows), found, record)
    assert made.spans == ((0, (1, 3, "x")), (0, (3, 4, "y")))  # the others can't be judged
    first, second = (dict(zip(FEATURES, row, strict=True)) for row in made.features)
    wanted = {
        "spelled": (log(0.3) + log(0.6)) / 2,
        "outside": (log(0.5) + log(0.2)) / 2,
        "begun before": log(0.1 + 0.05),
        "goes on": log(0.05 + 0.05),
        "found": 0,
        "found as another type": 1,
        "inside a longer one": 0,
        "overlaps": 0,
        "length": log(2),
        "seen": log(3),
        "name": log((1 + 2 * 0.25) / 4 / (1 - 1.5 / 4)),
        "type": log(0.25 / 0.75),  # 丁 was wrong: 0.5 of 2 names
    }
    assert first == pytest.approx(wanted, abs=2e-3)  # scores are in half precision
    assert second["goes on"] == LOWEST  # the text ends there
    assert (second["seen"], second["name"], second["found"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("found", "way"),
    [
        ((1, 3, "x"), "found"),
        ((1, 3, "y"), "found as another type"),
        ((0, 3, "x"), "inside a longer one"),
        ((2, 3, "x"), "overlaps"),
        ((2, 4, "x"), "overlaps"),
        ((3, 4, "x"), None),
    ],
)
def test_what_the_model_found_there_is_one_way_or_none(found, way):
    made = judged(["甲乙丙丁"], [[(1, 3, "x")]], scores([SURE] * 4), [[found]], Record({}))
    ways = dict(zip(FEATURES, made.features[0], strict=True))
    four = ("found", "found as another type", "inside a longer one", "overlaps")
    assert [name for name in four if ways[name]] == ([way] if way else [])


def test_the_fit_is_the_least_penalised_loss_whatever_the_units():
    dice = np.random.default_rng(0)
    features = dice.normal(size=(200, 3)) * (1, 100, 0) + (0, 7, 4)  # the last is always 4
    right = dice.random(200) < 1 / (1 + np.exp(-features[:, 0]))
    fitted = Weights.fitted(features, right)

    def loss(weights, bias):
        chance = 1 / (1 + np.exp(-(features @ weights + bias)))
        off = -np.log(np.where(right, chance, 1 - chance)).sum()
        return off + gate.PENALTY / 2 * ((weights * features.std(0)) ** 2).sum()

    least = loss(fitted.features, fitted.bias)
    for number in range(4):
        for step in (-0.02, 0.02):
            change = np.eye(4)[number] * step / (1, 100, 1, 1)
            assert loss(fitted.features + change[:3], fitted.bias + change[3]) > least
    assert fitted.features[2] == 0
    # the gradient of the loss without a penalty on the bias: as many right as expected
    assert fitted.probabilities(features).sum() == pytest.approx(right.sum())


def test_equal_texts_are_in_one_fold_and_all_folds_are_used():
    folds = folds_of(["a", "b", "a", "c", "d", "e", "f", "a"])
    assert folds.tolist() == [0, 1, 0, 2, 3, 4, 0, 0]


def test_no_span_is_judged_by_a_classifier_that_saw_its_fold(monkeypatch):
    features, right = np.arange(12.0)[:, None], np.arange(12) % 3 == 0
    folds, fitted = np.arange(12) % 4, []
    plain = Weights.fitted.__func__

    def noted(cls, features, right):
        fitted.append(set(features[:, 0].tolist()))
        return plain(cls, features, right)

    monkeypatch.setattr(Weights, "fitted", classmethod(noted))
    before = cross_fitted(features, right, folds)
    assert [{n % 4 for n in seen} for seen in fitted] == [{0, 1, 2, 3} - {f} for f in range(4)]
    assert all(len(seen) == 9 for seen in fitted)
    own = folds == 2
    after = cross_fitted(features, np.where(own, ~right, right), folds)
    assert np.array_equal(before[own], after[own])  # its own labels change nothing of it
    assert not np.array_equal(before[~own], after[~own])


def dev(count):
    """Texts with two names: of 甲 the model thinks little and it is right, of 乙 it is wrong."""
    examples = [tagged(f"甲乙{i}", ("甲", "x")) for i in range(count)]
    rows = [(0.6, 0.3, 0.04, 0.03, 0.03), (0.95, 0.02, 0.01, 0.01, 0.01), SURE]
    texts = [rows + [SURE] * (len(e.sentences[0]) - 3) for e in examples]
    return examples, [[(0, 1, "x"), (1, 2, "x")]] * count, scores(*texts)


def test_a_gate_writes_what_it_has_learnt_to_be_right():
    examples, dictionary, of_model = dev(12)
    fitted = fit_gate(examples, dictionary, of_model, Record({}))
    assert (fitted.matches, fitted.right) == (24, 12)
    assert fitted.dev_f1 == {"model": 0.0, "dictionary": 0.6667, "gate": 1.0, "oracle": 1.0}
    assert fitted.threshold < 1
    written = gated_spans(fitted, examples, dictionary, of_model, Record({}))
    assert written == [[(0, 1, "x")]] * 12
    assert written == written_over([[]] * 12, oracle(examples, dictionary))


def test_the_score_on_dev_is_by_thresholds_that_have_not_seen_their_fold(monkeypatch):
    missed, longer = (tagged(f"甲乙{i}", (name, "x")) for i, name in enumerate(("甲", "甲乙")))
    examples = [missed, tagged("甲乙丙", ("甲", "x")), longer, tagged("甲乙丁", ("甲乙", "x"))]
    begins, inside = (0.01, 0.96, 0.01, 0.01, 0.01), (0.01, 0.01, 0.96, 0.01, 0.01)
    of_model = scores(*[[SURE] * 3] * 2, *[[begins, inside, SURE]] * 2)
    alike = np.full(4, 0.9)
    monkeypatch.setattr(gate, "cross_fitted", lambda *arguments: alike)
    fitted = fit_gate(examples, [[(0, 1, "x")]] * 4, of_model, Record({}))
    # without one of the first two, most names are wrong; without one of the others, most are right
    assert (fitted.dev_f1["model"], fitted.dev_f1["gate"]) == (0.6667, 0.0)
    assert fitted.threshold == 1  # of all: two gained, two lost


def test_of_equal_thresholds_the_one_that_writes_least_is_taken():
    examples, dictionary, of_model = dev(12)
    sure = (0.01, 0.96, 0.01, 0.01, 0.01)  # of 甲, which is right
    gold_is_found = scores(*[[sure] + [SURE] * (len(e.words) - 1) for e in examples])
    fitted = fit_gate(examples, dictionary, gold_is_found, Record({}))
    assert fitted.dev_f1["model"] == 1.0
    assert fitted.threshold == 1.0  # nothing that is written could make it better
    assert gated_spans(fitted, examples, dictionary, of_model, Record({})) == [[]] * 12


def test_a_gate_needs_names_some_right_and_some_wrong_in_several_texts():
    examples, dictionary, of_model = dev(6)
    with pytest.raises(DataError, match="gives no label to any name in dev"):
        fit_gate(examples, [[]] * 6, of_model, Record({}))
    with pytest.raises(DataError, match=r"All 6 names .* are right\. A gate needs both"):
        fit_gate(examples, [[(0, 1, "x")]] * 6, of_model, Record({}))
    with pytest.raises(DataError, match=r"All 6 names .* are wrong"):
        fit_gate(examples, [[(1, 2, "x")]] * 6, of_model, Record({}))
    with pytest.raises(DataError, match=r"Of the 2 names .* 1 are right. They are in too few"):
        fit_gate(examples, [*dictionary[:1], *[[]] * 5], of_model, Record({}))


def test_very_sure_scores_are_no_trouble():
    weights = Weights(np.array([1000.0]), 0.0)
    assert weights.probabilities(np.array([[-5.0], [5.0]])) == pytest.approx([0, 1], abs=1e-9)
    assert exp(LOWEST) == pytest.approx(1e-7)
