"""What an audit expects of a graph: the fit, what it is fitted to, and the linear tagger."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from tagged_texts import tagged

from benchmarks import expected as benchmark
from kbert_lab.data.labelled import Example
from kbert_lab.study import expected
from kbert_lab.study.audit_values import Share
from kbert_lab.study.expected import WAYS, Fit, Point, found_by_bert, linear_recall


def drawn(random, count):
    return [Point(*random.uniform(0, 1, 2)) for _ in range(count)]


def fitted(points, gains, *uses):
    """Every point is a group of its own."""
    return benchmark.fit_to(points, gains, [*map(str, range(len(points)))], *uses)


def test_a_fit_finds_the_weights_that_made_the_gains_of_the_features_that_it_names():
    points = drawn(np.random.default_rng(1), 9)
    fit = fitted(points, [0.9 * point.new - 0.7 * point.wrong for point in points])
    assert fit.weights == pytest.approx([0.9, -0.7])
    at = fit.at(Point(0.1, 0.3))
    assert at.mean == pytest.approx(0.09 - 0.21) == pytest.approx(at.low)
    fit = fitted(points, [0.4 * point.new for point in points], ("new",))
    assert fit.weights == pytest.approx([0.4]) and fit.freedom == 8
    assert fit.at(Point(0.1, 0.9)).mean == pytest.approx(0.04)
    off = fitted(points, [0.3 * point.new - 0.1 for point in points])
    assert off.at(Point(0, 0)).mean == 0  # a graph that names nothing changes nothing


def test_a_point_beyond_all_others_is_told():
    points = [Point(0.1, 0.4), Point(0.3, 0.6), Point(0.2, 0.8), Point(0.1, 0.7)]
    fit = fitted(points, [0] * 4)
    assert not fit.at(Point(0.3, 0.5)).outside
    assert fit.at(Point(0.31, 0.5)).outside and fit.at(Point(0.3, 0.81)).outside
    assert not fit.at(Point(0, 0.01)).outside


def test_what_bert_finds_is_not_gained_and_where_it_is_guessed_the_interval_holds_every_case():
    fit = fitted(drawn(np.random.default_rng(7), 9), [*np.linspace(-0.1, 0.3, 9)])
    assert fit.among(0.4, 0.2, (0.75,) * 3) == fit.at(Point(0.4 * 0.25, 0.2))
    guessed = found_by_bert(Share(30, 100), [0.9, 1.2, 1.6])
    unknown = fit.among(0.4, 0.2, guessed)
    for found in np.linspace(guessed[0], guessed[2], 7):
        known = fit.among(0.4, 0.2, (found,) * 3)
        assert unknown.low <= known.low + 1e-9 and known.high <= unknown.high + 1e-9
    assert unknown.mean == fit.among(0.4, 0.2, (guessed[1],) * 3).mean


@pytest.mark.parametrize("linear", [Share(0, 0), Share(0, 5), Share(5, 5)])
def test_a_share_of_all_or_none_is_no_certainty(linear):
    least, middle, most = found_by_bert(linear)
    assert 0 < least < middle < most < 1


def test_points_that_share_what_disturbs_them_count_as_one():
    """Eight conditions of a group err together: taken as eight points they promise too much."""
    random = np.random.default_rng(8)
    weights, inside = np.array([0.9, -0.7]), {"groups": 0, "points": 0}
    groups = ["map"] * 8 + ["a", "b", "c", "d"]
    for _ in range(1000):
        *points, new = drawn(random, 13)
        shared = dict(zip(["new", "map", *"abcd"], random.normal(0, 0.05, 6), strict=True))
        gains = [
            weights @ point + shared[group] + random.normal(0, 0.01)
            for point, group in zip([*points, new], [*groups, "new"], strict=True)
        ]
        for how, at in (
            ("groups", benchmark.fit_to(points, gains[:-1], groups).at(new)),
            ("points", fitted(points, gains[:-1]).at(new)),
        ):
            inside[how] += at.low <= gains[-1] <= at.high
    assert inside["groups"] >= 930 and inside["points"] < inside["groups"] - 50, inside


def test_the_shipped_fit_is_that_of_the_points_kept():
    points = json.loads((benchmark.KEPT / "points.json").read_text("utf-8"))
    shipped = json.loads(Path(expected.__file__).with_name("expected.json").read_text())
    fitted = [point for point in points if point["fitted"]]
    for way in WAYS:
        fit = benchmark.fit_of(fitted, way)
        assert benchmark.as_dict(fit) == shipped["ways"][way]
        where = Point(0.2, 0.7)
        assert Fit(**shipped["ways"][way]).at(where).low == pytest.approx(
            fit.at(where).low, abs=1e-4
        )
    assert benchmark.ahead(points) == shipped["ahead"]


# The linear tagger


FILLER = "天地玄黄宇宙洪荒日月盈昃辰宿列张"
OF_NAMES = "寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨露结为霜"


def sentence(name, before, label, *, filler="".join(FILLER)):
    """A text of single characters in which a name of two follows a word."""
    text = f"{filler}{before}{name}{filler[:2]}"
    return tagged(text, (name, label))


def named(count, seed, given_away):
    """Sentences with a name each; the word before it says its label, or nothing does."""
    made, rng = [], random.Random(seed)
    for number in range(count):
        label = ("Symptom", "Cure")[number % 2]
        name = "".join(rng.sample(OF_NAMES, 2))
        before = (
            {"Symptom": "患有", "Cure": "服用"}[label] if given_away else rng.choice("甲乙丙丁")
        )
        rest = "".join(rng.sample(FILLER, 6))
        made.append(sentence(name, before, label, filler=rest))
    return made


@pytest.mark.parametrize(("given_away", "least", "most"), [(True, 0.9, 1), (False, 0, 0.7)])
def test_new_names_that_their_neighbours_give_away_are_found(given_away, least, most):
    recall = linear_recall(named(200, 1, given_away), named(60, 2, given_away))
    assert recall.total > 20
    assert least <= recall.share <= most  # else one label or the other, where the borders are found


def test_only_names_new_to_train_count():
    train = [sentence("寒来", "患有", "Symptom"), sentence("暑往", "服用", "Cure")] * 5
    held_out = [sentence("寒来", "患有", "Symptom"), sentence("秋收", "患有", "Symptom")]
    assert linear_recall(train, held_out).total == 1
    none = linear_recall(train, held_out[:1])
    assert (none.count, none.total, none.odds) == (0, 0, 1)


@pytest.mark.parametrize(
    ("train", "held_out"),
    [
        ([Example(("天地",), words=((0, 1), (1, 2)), tags=("O", "O"))], named(3, 1, True)),
        (named(3, 1, True), [Example(("",))]),
    ],
)
def test_where_there_is_nothing_to_learn_or_read_nothing_is_found(train, held_out):
    assert linear_recall(train, held_out).count == 0
