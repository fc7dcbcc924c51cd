"""The statistics, against hand-worked cases and an obvious slow implementation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from kbert_core.errors import ExperimentError
from kbert_core.experiments.statistics import (
    METRICS,
    Counts,
    Difference,
    Resampled,
    holm,
    weights,
)

F1, UNSEEN, COVERED, UNCOVERED = METRICS["ner"]
(ACCURACY,) = METRICS["classify"]


def ner(right, predicted, gold, ids=None, **columns):
    ids = ids or [f"s{i}" for i in range(len(right))]
    return Counts(ids, {"right": right, "predicted": predicted, "gold": gold, **columns})


def random_ner(count, skill, seed, ids=None):
    dice = np.random.default_rng(seed)
    gold = np.random.default_rng(99).integers(0, 6, count)
    right = dice.binomial(gold, skill)
    predicted = right + dice.integers(0, 3, count)
    return ner(right.tolist(), predicted.tolist(), gold.tolist(), ids)


def test_f1_and_recalls_are_worked_out_from_the_counts():
    counts = ner(
        [1, 2],
        [2, 2],
        [2, 3],
        unseen=[1, 2],
        unseen_right=[0, 1],
        covered=[1, 1],
        covered_right=[0, 1],
    )
    made = Resampled({"a": {1: counts}}, resamples=10)
    assert made.score("a", F1).mean == pytest.approx(2 * 3 / (4 + 5))
    assert made.score("a", UNSEEN).mean == pytest.approx(1 / 3)
    assert made.score("a", COVERED).mean == pytest.approx(1 / 2)
    assert made.score("a", UNCOVERED).mean == 0
    assert made.score("a", F1).deviation is None
    assert made.score("b", F1) is None


def test_the_mean_and_deviation_are_over_the_seeds():
    seeds = {1: ner([1], [2], [2]), 2: ner([2], [2], [2]), 3: ner([0], [2], [2])}
    score = Resampled({"a": seeds}, resamples=10).score("a", F1)
    assert score.seeds == {1: 0.5, 2: 1.0, 3: 0.0}
    assert score.mean == pytest.approx(0.5)
    assert score.deviation == pytest.approx(0.5)  # sqrt((0 + .25 + .25) / 2)


def slow_difference(one, two, resamples, seed):
    """Sentence by sentence: draw, add up, take F1, subtract, average over the seeds."""
    ids = sorted({i for of in (one, two) for counts in of.values() for i in counts.ids})

    def f1(counts, times):
        right = predicted = gold = 0
        for i, r, p, g in zip(
            counts.ids, *(counts.columns[n] for n in ("right", "predicted", "gold")), strict=True
        ):
            right += times[i] * r
            predicted += times[i] * p
            gold += times[i] * g
        return 2 * right / (predicted + gold)

    differences = []
    for chunk in weights(len(ids), resamples, seed):
        for row in chunk:
            times = dict(zip(ids, row.tolist(), strict=True))
            each = [f1(one[s], times) - f1(two[s], times) for s in one]
            differences.append(sum(each) / len(each))
    return differences


def test_differences_agree_with_the_obvious_slow_way():
    # the seeds' test sets share some sentences
    names = {s: [f"s{i}" for i in range(10 * s, 10 * s + 40)] for s in (1, 2, 3)}
    one = {s: random_ner(40, 0.8, s, names[s]) for s in names}
    two = {s: random_ner(40, 0.6, 10 + s, names[s]) for s in names}
    made = Resampled({"one": one, "two": two}, resamples=700, seed=5)
    found = made.difference("one", "two", F1)
    slow = slow_difference(one, two, 700, 5)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(slow, [2.5, 97.5])))
    opposite = sum(d <= 0 for d in slow)
    assert found.p == pytest.approx(min(1, 2 * (1 + min(opposite, 700 - opposite)) / 701))
    assert found.seeds == 3
    scores = [made.score(row, F1) for row in ("one", "two")]
    assert found.mean == pytest.approx(scores[0].mean - scores[1].mean)


def test_every_resample_draws_as_many_sentences_as_there_are():
    drawn = np.concatenate(list(weights(7, 1200, 3)))
    assert drawn.shape == (1200, 7)
    assert (drawn.sum(axis=1) == 7).all()
    assert drawn.mean(axis=0) == pytest.approx(np.ones(7), abs=0.1)
    assert drawn.var(axis=0) == pytest.approx(np.full(7, 6 / 7), abs=0.15)  # multinomial


def test_the_interval_is_that_of_a_proportion():
    right = [1] * 300 + [0] * 100
    counts = Counts([f"s{i}" for i in range(400)], {"right": right, "count": [1] * 400})
    score = Resampled({"a": {1: counts}}).score("a", ACCURACY)
    error = 1.96 * (0.75 * 0.25 / 400) ** 0.5
    assert (score.low, score.high) == pytest.approx((0.75 - error, 0.75 + error), abs=0.004)


def test_a_row_against_itself_differs_by_nothing_with_p_1():
    counts = {1: random_ner(50, 0.7, 1)}
    same = Resampled({"a": counts, "b": counts}, resamples=200).difference("a", "b", F1)
    assert (same.mean, same.low, same.high, same.p) == (0, 0, 0, 1)


def test_a_row_is_compared_with_itself_by_the_seeds_that_differ_most():
    of = {1: random_ner(50, 0.7, 1), 2: random_ner(50, 0.9, 2), 3: random_ner(50, 0.6, 3)}
    made = Resampled({"a": of, "b": {1: of[2]}, "c": {1: of[3]}}, resamples=200)
    none, two_rows = made.between_seeds("a", F1), made.difference("b", "c", F1)
    assert (none.mean, none.low, none.high) == (two_rows.mean, two_rows.low, two_rows.high)
    assert none.seeds == 1
    assert made.between_seeds("b", F1) is None
    other = {2: replace(of[2], data="another split"), 1: of[1]}
    assert Resampled({"a": other}, resamples=10).between_seeds("a", F1) is None


def test_p_is_uniform_where_there_is_no_difference_and_small_where_there_is():
    values = []
    for trial in range(60):
        a, b = random_ner(150, 0.7, 2 * trial), random_ner(150, 0.7, 2 * trial + 1)
        made = Resampled({"a": {1: a}, "b": {1: b}}, resamples=400, seed=trial)
        values.append(made.difference("a", "b", F1).p)
    assert stats.kstest(values, "uniform").pvalue > 0.01
    a, b = random_ner(400, 0.8, 1), random_ner(400, 0.6, 2)
    made = Resampled({"a": {1: a}, "b": {1: b}}, resamples=1000)
    found = made.difference("a", "b", F1)
    assert found.p == pytest.approx(2 / 1001)
    assert found.low > 0


def test_a_sentence_shared_by_the_seeds_counts_once():
    a, b = random_ner(100, 0.8, 1), random_ner(100, 0.6, 2)
    once = Resampled({"a": {1: a}, "b": {1: b}}, resamples=500).difference("a", "b", F1)
    thrice = Resampled(
        {"a": dict.fromkeys((1, 2, 3), a), "b": dict.fromkeys((1, 2, 3), b)}, resamples=500
    ).difference("a", "b", F1)
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))


def test_only_seeds_that_both_rows_have_are_compared():
    a = {1: ner([1], [2], [2]), 2: ner([2], [2], [2])}
    b = {2: ner([1], [2], [2]), 3: ner([2], [2], [2])}
    made = Resampled({"a": a, "b": b}, resamples=10)
    assert made.difference("a", "b", F1).mean == pytest.approx(0.5)
    assert made.difference("a", "b", F1).seeds == 1
    assert Resampled({"a": {1: a[1]}, "b": {3: b[3]}}).difference("a", "b", F1) is None


def test_rows_tested_on_different_data_are_not_compared():
    a, b = ner([1], [2], [2], ["x"]), ner([1], [2], [2], ["y"])
    with pytest.raises(ExperimentError, match="different data at seed 1"):
        Resampled({"a": {1: a}, "b": {1: b}}, resamples=10).difference("a", "b", F1)


def test_holm_steps_down():
    # 3 x .01, 2 x .02, 1 x .04, and never falling
    assert holm({"a": 0.04, "b": 0.01, "c": 0.02}) == pytest.approx(
        {"a": 0.04, "b": 0.03, "c": 0.04}
    )
    assert holm({"a": 0.5, "b": 0.6}) == pytest.approx({"a": 1.0, "b": 1.0})
    assert holm({}) == {}


def test_holm_counts_comparisons_that_are_planned_and_missing():
    assert holm({"a": 0.01, "b": 0.02}, family=5) == pytest.approx({"a": 0.05, "b": 0.08})


def test_fewer_than_three_seeds_or_outside_the_family_is_exploratory():
    assert Difference(0.1, None, 0, 0.2, 0.01, seeds=2, adjusted=0.02).exploratory
    assert Difference(0.1, 0.1, 0, 0.2, 0.01, seeds=3).exploratory
    assert not Difference(0.1, 0.1, 0, 0.2, 0.01, seeds=3, adjusted=0.02).exploratory
