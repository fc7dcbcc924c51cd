"""The statistics, against hand-worked cases and on simulated data."""

from dataclasses import replace

import numpy as np
import pytest

from kbert_core.errors import ExperimentError
from kbert_lab.study.statistics import METRICS, Counts, Resampled, interval, weights

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


def test_every_resample_draws_as_many_sentences_as_there_are():
    drawn = np.concatenate(list(weights(7, 1200, 3)))
    assert drawn.shape == (1200, 7)
    assert (drawn.sum(axis=1) == 7).all()
    assert drawn.mean(axis=0) == pytest.approx(np.ones(7), abs=0.1)
    assert drawn.var(axis=0) == pytest.approx(np.full(7, 6 / 7), abs=0.15)  # multinomial


def test_an_interval_over_three_seeds_is_that_worked_out_by_hand():
    # no spread of the sentences: 2 ± t(2) x s / sqrt(3), s = 1
    values = np.array([[1.0, 1, 1], [2.0, 2, 2], [3.0, 3, 3]])
    assert interval(values) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))
    # no spread of the seeds: what their sentences share has a variance of 1
    values = np.array([[2.0, 1, 2, 3]] * 3)
    assert interval(values) == pytest.approx((2 - 1.959964, 2 + 1.959964))
    # both at once
    values = np.array([[n, n - 1, n, n + 1] for n in (1.0, 2.0, 3.0)])
    half = (4.302653**2 / 3 + 1.959964**2) ** 0.5
    assert interval(values) == pytest.approx((2 - half, 2 + half))


def test_each_two_seeds_of_a_row_with_the_same_test_are_compared():
    of = {1: random_ner(50, 0.7, 1), 2: random_ner(50, 0.9, 2), 3: random_ner(50, 0.6, 3)}
    made = Resampled({"a": of, "b": {1: of[2]}, "c": {1: of[3]}}, resamples=200)
    pairs, two_rows = made.between_seeds("a", F1), made.difference("b", "c", F1)
    assert len(pairs) == 3
    assert (pairs[2].mean, pairs[2].low, pairs[2].high) == (
        *(two_rows.mean, two_rows.low, two_rows.high),
    )
    assert made.between_seeds("b", F1) == []
    other = {2: replace(of[2], ids=[f"other {i}" for i in of[2].ids]), 1: of[1]}
    assert Resampled({"a": other}, resamples=10).between_seeds("a", F1) == []


SENTENCES = 150


def trained(dice, difficulty, skill, seeds, of_seeds, ids):
    """Counts of a row by seed: seeds differ in skill, a sentence is as hard for each of them."""
    rows = {}
    for seed in range(seeds):
        chance = np.clip(skill + difficulty[seed] + dice.normal(0, of_seeds), 0, 1)
        right = dice.random(SENTENCES) < chance
        columns = {"right": right.astype(int).tolist(), "count": [1] * SENTENCES}
        rows[seed] = Counts([str(i) for i in ids[seed]], columns)
    return rows


def coverage(seeds, of_seeds, *, gain=0.08, own_test=False, trials=1000):
    """The share of trials whose interval holds the true gain, on new sentences and seeds."""
    dice, held = np.random.default_rng(7), 0
    for trial in range(trials):
        # a sentence is harder for one row than for the other: what all seeds share
        ids = [np.arange(SENTENCES) + SENTENCES * seed * own_test for seed in range(seeds)]
        hard = dice.uniform(-0.3, 0.3, (2, seeds * SENTENCES))
        one, two = (
            trained(dice, [of[i] for i in ids], 0.5 + plus, seeds, of_seeds, ids)
            for of, plus in zip(hard, (gain, 0), strict=True)
        )
        made = Resampled({"one": one, "two": two}, resamples=150, seed=trial)
        found = made.difference("one", "two", ACCURACY)
        held += found.low <= gain <= found.high
    return held / trials


@pytest.mark.parametrize(
    ("seeds", "of_seeds", "own_test"),
    [
        pytest.param(10, 0.06, False, marks=pytest.mark.soak),
        pytest.param(5, 0.06, False, marks=pytest.mark.soak),
        pytest.param(5, 0.0, False, marks=pytest.mark.soak),
        pytest.param(5, 0.03, True, marks=pytest.mark.soak),  # each seed has its own split
        (3, 0.06, False),
        (3, 0.06, True),
    ],
)
def test_95_per_cent_intervals_hold_the_gain_on_new_seeds_and_sentences(seeds, of_seeds, own_test):
    assert 0.93 <= coverage(seeds, of_seeds, own_test=own_test) <= 0.97


@pytest.mark.parametrize("seeds", [3, pytest.param(5, marks=pytest.mark.soak)])
def test_methods_that_do_not_differ_seldom_seem_to(seeds):
    assert 1 - coverage(seeds, 0.06, gain=0.0) <= 0.07


def test_a_sentence_shared_by_the_seeds_counts_once():
    a, b = random_ner(100, 0.8, 1), random_ner(100, 0.6, 2)
    once = Resampled({"a": {1: a}, "b": {1: b}}, resamples=500).difference("a", "b", F1)
    thrice = Resampled(
        {"a": dict.fromkeys((1, 2, 3), a), "b": dict.fromkeys((1, 2, 3), b)}, resamples=500
    ).difference("a", "b", F1)
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high), abs=0.01)


def test_only_seeds_that_both_rows_have_are_compared_and_few_of_them_only_suggest():
    a = {seed: ner([seed % 2 + 1], [2], [2]) for seed in (1, 2, 3, 4)}
    b = {2: ner([1], [2], [2]), 3: ner([2], [2], [2])}
    made = Resampled({"a": a, "b": b, "c": {5: b[2]}}, resamples=10)
    both, same = made.difference("a", "b", F1), made.difference("a", "a", F1)
    assert (both.mean, both.seeds, both.exploratory) == (0, 2, True)
    assert (same.mean, same.low, same.high, same.seeds, same.exploratory) == (0, 0, 0, 4, False)
    assert made.difference("a", "c", F1) is None
    other = {2: ner([1], [2], [2], ["x"])}
    with pytest.raises(ExperimentError, match="different data at seed 2"):
        Resampled({"a": a, "b": other}, resamples=10).difference("a", "b", F1)
