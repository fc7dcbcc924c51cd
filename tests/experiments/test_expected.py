"""What an audit expects of a graph: the fit, what it is fitted to, and what is said of it."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from test_audit import GRAPH, audited

from kbert_core.experiments.expected import WAYS, Fit, Point, expected_gains, point_of
from kbert_core.experiments.verdict import verdict_of
from kbert_core.knowledge.graph import KnowledgeGraph

ROOT = Path(__file__).resolve().parents[2]


def drawn(random, count):
    return [Point(*random.uniform(0, 1, 3)) for _ in range(count)]


def test_a_fit_finds_the_weights_that_made_the_gains():
    weights = np.array([-0.02, 0.2, -0.1, 0.03])
    points = drawn(np.random.default_rng(1), 9)
    fit = Fit.of_points(points, [float(weights @ (1, *point)) for point in points])
    assert fit.weights == pytest.approx(weights)
    at = fit.at(Point(0.1, 0.2, 0.3))
    assert at.mean == pytest.approx(weights @ (1, 0.1, 0.2, 0.3)) == pytest.approx(at.low)


def test_95_of_100_new_gains_lie_in_the_interval():
    random = np.random.default_rng(2)
    weights, inside = np.array([-0.02, 0.2, -0.1, 0.03]), 0
    for _ in range(1000):
        *points, new = drawn(random, 13)
        gains = [weights @ (1, *point) + random.normal(0, 0.01) for point in [*points, new]]
        at = Fit.of_points(points, gains[:-1]).at(new)
        inside += at.low <= gains[-1] <= at.high
    assert 930 <= inside <= 970


def test_a_fit_comes_back_from_its_json():
    points = drawn(np.random.default_rng(3), 9)
    fit = Fit.of_points(points, [0.1 * sum(point) ** 2 for point in points])
    back = Fit.of(json.loads(json.dumps(fit.as_dict())))
    where = Point(0.2, 0.1, 0.7)
    assert back.at(where).low == pytest.approx(fit.at(where).low, abs=1e-4)


def test_a_point_is_what_stands_in_the_held_out_split():
    # of three mentions two are new, 胃炎 and 头痛: the graph has both; of three matches, two are mentions
    split = audited().splits["test"]
    assert point_of(split) == Point(2 / 3, 0.0, 2 / 3)
    assert point_of(audited().splits["train"]) is None  # says nothing of training
    assert expected_gains(audited(graph=KnowledgeGraph()).splits["test"]) == {}


def test_the_audit_says_what_to_expect():
    made = audited()
    assert set(made.expected) == set(WAYS)
    (said,) = (f for f in verdict_of(made).findings if f.kind == "expected")
    gain = made.expected["K-BERT"]
    assert f"{100 * gain.mean:+.0f} [{100 * gain.low:+.0f}, {100 * gain.high:+.0f}]" in said.text


def test_the_shipped_fit_is_that_of_the_points_kept():
    spec = importlib.util.spec_from_file_location("expected", ROOT / "benchmarks" / "expected.py")
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    points = json.loads((benchmark.KEPT / "points.json").read_text("utf-8"))
    shipped = json.loads(Path(benchmark.expected.__file__).with_name("expected.json").read_text())
    for way in WAYS:
        fit = benchmark._fit([point for point in points if point["fitted"]], way)
        assert fit.as_dict() == shipped[way]
