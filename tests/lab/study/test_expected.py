"""What an audit expects of a graph: the fit, and what it is fitted to."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from kbert_lab.study.audit_values import Share
from kbert_lab.study.expected import WAYS, Fit, Point, found_by_bert

ROOT = Path(__file__).resolve().parents[3]


def drawn(random, count):
    return [Point(*random.uniform(0, 1, 2)) for _ in range(count)]


def fitted(points, gains, *uses):
    """Every point is a group of its own."""
    return Fit.of_points(points, gains, [*map(str, range(len(points)))], *uses)


def test_a_fit_finds_the_weights_that_made_the_gains():
    weights = np.array([0.9, -0.7])
    points = drawn(np.random.default_rng(1), 9)
    fit = fitted(points, [float(weights @ point) for point in points])
    assert fit.weights == pytest.approx(weights)
    at = fit.at(Point(0.1, 0.3))
    assert at.mean == pytest.approx(weights @ (0.1, 0.3)) == pytest.approx(at.low)


def test_a_graph_that_names_nothing_is_expected_to_change_nothing():
    points = drawn(np.random.default_rng(4), 9)
    fit = fitted(points, [0.3 * point.new - 0.1 for point in points])
    assert fit.at(Point(0, 0)).mean == 0


def test_a_fit_uses_the_features_that_it_names():
    points = drawn(np.random.default_rng(5), 9)
    fit = fitted(points, [0.4 * point.new for point in points], ("new",))
    assert fit.weights == pytest.approx([0.4]) and fit.freedom == 8
    assert fit.at(Point(0.1, 0.9)).mean == pytest.approx(0.04)


def test_a_point_beyond_all_others_is_told():
    points = [Point(0.1, 0.4), Point(0.3, 0.6), Point(0.2, 0.8), Point(0.1, 0.7)]
    fit = fitted(points, [0] * 4)
    assert not fit.at(Point(0.3, 0.5)).outside
    assert fit.at(Point(0.31, 0.5)).outside and fit.at(Point(0.3, 0.81)).outside
    assert not fit.at(Point(0, 0.01)).outside  # a graph that names nothing changes nothing


def test_what_bert_finds_by_itself_is_not_gained():
    fit = fitted(drawn(np.random.default_rng(6), 9), [0.1] * 9)
    found, exact = fit.among(0.4, 0.2, (0.75,) * 3), fit.at(Point(0.1, 0.2))
    assert (found.mean, found.low, found.high) == pytest.approx((exact.mean, exact.low, exact.high))


def test_where_it_is_not_known_what_bert_finds_the_interval_holds_every_case():
    fit = fitted(drawn(np.random.default_rng(7), 9), [*np.linspace(-0.1, 0.3, 9)])
    guessed = found_by_bert(Share(30, 100), [0.9, 1.2, 1.6])
    unknown = fit.among(0.4, 0.2, guessed)
    for found in (guessed[0], *np.linspace(guessed[0], guessed[2], 5), guessed[2]):
        known = fit.among(0.4, 0.2, (found,) * 3)
        assert unknown.low <= known.low + 1e-9 and known.high <= unknown.high + 1e-9
    assert unknown.mean == fit.among(0.4, 0.2, (guessed[1],) * 3).mean


def test_bert_is_as_far_ahead_of_a_linear_tagger_as_elsewhere():
    def logit(share):
        return np.log(share / (1 - share))

    ahead, linear = [0.9, 1.2, 1.6], Share(30, 100)
    least, middle, most = found_by_bert(linear, ahead)
    assert logit(middle) == pytest.approx(np.log(30.5 / 70.5) + np.mean(ahead))
    of_names = 1 / 30.5 + 1 / 70.5
    unsure = np.sqrt(np.var(ahead, ddof=1) * (1 + 1 / 3) + of_names)
    away = 4.3027 * unsure  # t of two degrees of freedom
    assert [logit(least), logit(most)] == pytest.approx(
        [logit(middle) - away, logit(middle) + away], abs=1e-3
    )
    assert found_by_bert(Share(50, 100), ahead)[1] > middle
    few = found_by_bert(Share(3, 10), ahead)
    assert few[0] < least and few[2] > most  # ten names say less than a hundred


@pytest.mark.parametrize("linear", [Share(0, 0), Share(0, 5), Share(5, 5)])
def test_a_share_of_all_or_none_is_no_certainty(linear):
    least, middle, most = found_by_bert(linear)
    assert 0 < least < middle < most < 1


@pytest.mark.parametrize("names", [20, 1000])
def test_95_of_100_berts_lie_between_the_least_and_the_most(names):
    """Data sets differ by as much; of each the linear tagger is asked for some names."""
    random, inside = np.random.default_rng(9), 0
    for _ in range(1000):
        ahead = random.normal(1.3, 0.4, 6)
        linear = random.normal(-0.5, 0.7)  # as logit, what it finds of all names there are
        asked = Share(int(random.binomial(names, 1 / (1 + np.exp(-linear)))), names)
        least, _, most = found_by_bert(asked, ahead[:-1])
        inside += least <= 1 / (1 + np.exp(-linear - ahead[-1])) <= most
    assert inside >= 930


def test_95_of_100_new_gains_lie_in_the_interval():
    random = np.random.default_rng(2)
    weights, inside = np.array([0.9, -0.7]), 0
    for _ in range(1000):
        *points, new = drawn(random, 13)
        gains = [weights @ point + random.normal(0, 0.01) for point in [*points, new]]
        at = fitted(points, gains[:-1]).at(new)
        inside += at.low <= gains[-1] <= at.high
    assert 930 <= inside <= 970


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
            ("groups", Fit.of_points(points, gains[:-1], groups).at(new)),
            ("points", fitted(points, gains[:-1]).at(new)),
        ):
            inside[how] += at.low <= gains[-1] <= at.high
    assert inside["groups"] >= 930 and inside["points"] < inside["groups"] - 50, inside


def test_a_fit_comes_back_from_its_json():
    points = drawn(np.random.default_rng(3), 9)
    fit = fitted(points, [0.1 * sum(point) ** 2 for point in points])
    back = Fit.of(json.loads(json.dumps(fit.as_dict())))
    where = Point(0.2, 0.7)
    assert back.at(where).low == pytest.approx(fit.at(where).low, abs=1e-4)


def test_the_shipped_fit_is_that_of_the_points_kept():
    spec = importlib.util.spec_from_file_location("expected", ROOT / "benchmarks" / "expected.py")
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    points = json.loads((benchmark.KEPT / "points.json").read_text("utf-8"))
    shipped = json.loads(Path(benchmark.expected.__file__).with_name("expected.json").read_text())
    fitted = [point for point in points if point["fitted"]]
    for way in WAYS:
        assert benchmark.fit_of(fitted, way).as_dict() == shipped["ways"][way]
    assert benchmark.ahead(points) == shipped["ahead"]
