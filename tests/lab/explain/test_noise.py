"""Knowledge noise: a prediction as unrelated triples are added."""

from dataclasses import replace

import pytest
from explaining import GRAPH, TEXT

from kbert_core import InjectionOptions, KnowledgeGraph, Triple
from kbert_core.errors import OptionError
from kbert_core.explain.case import Case
from kbert_lab.explain.noise import ABLATIONS, noise_curve, noisy_tree, stream_noise, variation

PARTS = ("心", "口", "检查", "入院", "异常", "史")
GRAPH = KnowledgeGraph([*GRAPH, *(Triple("心电图", "部位", part) for part in PARTS)])


@pytest.fixture
def case(classifier):
    return Case.of(classifier, TEXT, graph=GRAPH)


def test_noise_stands_behind_a_mentions_own_triples_which_stay(case):
    tree = noisy_tree(case, 3, seed=1, source=tuple(GRAPH))
    for node, before in zip(tree.nodes, case.trace.tree.nodes, strict=True):
        assert node.branches[: len(before.branches)] == before.branches
        noise = [branch.triple for branch in node.branches[len(before.branches) :]]
        assert len(noise) == len(set(noise)) == 3
        assert not set(noise) & set(GRAPH)
        said = {(t.relation, t.tail) for t in GRAPH}
        assert all((t.relation, t.tail) in said for t in noise)
    assert noisy_tree(case, 0, seed=1, source=tuple(GRAPH)) == case.trace.tree


def test_noise_is_injected_whatever_the_limit_and_the_strategy(classifier):
    for options in (
        InjectionOptions(max_triples=1),
        InjectionOptions(strategy="tail_in_text"),
        InjectionOptions(relations=("类别",)),
    ):
        case = Case.of(classifier, TEXT, graph=GRAPH, options=options)
        curve = noise_curve(case, counts=(0, 4), seeds=(1,))
        assert [point.injected for point in curve.points] == [0] * 3 + [8] * 3


def test_first_point_is_the_reading_itself(case):
    curve = noise_curve(case, counts=(0,))
    assert [point.ablation for point in curve.points] == list(ABLATIONS)
    first = curve.at("K-BERT", 0)[0]
    assert first.outcome.score == pytest.approx(case.base.score, abs=1e-5)
    assert first.from_plain == pytest.approx(case.base.score - case.plain.score, abs=1e-5)
    assert first.moved == 0
    assert first.probability == pytest.approx(
        case.base.prediction.probabilities[case.target.label], abs=1e-5
    )


def test_a_larger_count_has_the_triples_of_a_smaller_one_and_a_seed_draws_the_same(case):
    source = tuple(GRAPH)

    def noise(count, seed):
        tree = noisy_tree(case, count, seed=seed, source=source)
        return [[b.triple for b in node.branches if b.triple not in GRAPH] for node in tree.nodes]

    assert all(few == many[: len(few)] for few, many in zip(noise(2, 1), noise(4, 1), strict=True))
    assert noise(3, 1) == noise(3, 1) != noise(3, 2)


def test_every_ablation_reads_the_same_tree_and_a_spread_is_over_the_seeds(case):
    curve = noise_curve(case, counts=(0, 2), seeds=(1, 2))
    assert len(curve.points) == curve.total == 3 * (1 + 2)
    for seed in (1, 2):
        at = [point for point in curve.points if (point.count, point.seed) == (2, seed)]
        assert len({point.injected for point in at}) == 1
        assert len({point.outcome.score for point in at}) == 3
    low, high = sorted(point.from_plain for point in curve.at("hard positions", 2))
    spread = curve.spread("hard positions", 2, "from_plain")
    assert spread == pytest.approx(((low + high) / 2, low, high)) and low < high


def test_noise_without_any_knowledge_leaves_plain_bert(classifier):
    curve = noise_curve(Case.of(classifier, "好转", graph=GRAPH), counts=(0, 4), seeds=(1,))
    assert curve.mentions == 0
    for point in curve.points:
        assert point.injected == 0
        assert point.from_plain == pytest.approx(0, abs=1e-5)
        assert point.variation == pytest.approx(0, abs=1e-6)


def test_noise_is_drawn_from_another_source_where_one_is_given(case):
    other = (Triple("x", "好", "史"), Triple("y", "好", "转"))
    tree = noisy_tree(case, 5, seed=1, source=other)
    triples = {branch.triple for node in tree.nodes for branch in node.branches} - {*GRAPH}
    assert {(t.relation, t.tail) for t in triples} == {("好", "史"), ("好", "转")}


def test_points_stream_in_by_count(case):
    steps = list(stream_noise(case, counts=(8, 0, 4), seeds=(1, 2, 3, 4, 5, 6)))
    assert [point.count for point in steps[0].points] == [0] * 3
    assert steps[0].counts == (0, 4, 8)
    assert len(steps[-1].points) == steps[-1].total == 3 * 13
    counts = [point.count for point in steps[-1].points]
    assert counts == sorted(counts)
    assert steps[1].points == steps[-1].points[: len(steps[1].points)]
    assert steps[0].spread("K-BERT", 8, "variation") is None


def test_what_noise_moves_is_the_distance_from_the_same_reading_without_it(case):
    curve = noise_curve(case, counts=(2,), seeds=(1,))
    assert [point.count for point in curve.points] == [2] * 3
    for name, way in ABLATIONS.items():
        config = replace(case.config, ablation=way)
        tree = noisy_tree(case, 2, seed=1, source=tuple(GRAPH))
        (noise,) = case.pipeline.flatten([tree], config)
        quiet, noisy = case.run([replace(case.reading, config=config), noise])
        (point,) = curve.at(name, 2)
        assert point.moved == pytest.approx(variation(quiet.likely, noisy.likely), abs=1e-6)
        assert point.moved > 0


def test_a_negative_count_and_no_seed_at_all_are_refused(case):
    with pytest.raises(OptionError, match="A count is -1"):
        noise_curve(case, counts=(0, -1))
    with pytest.raises(OptionError, match="No seed is given"):
        noise_curve(case, seeds=())
