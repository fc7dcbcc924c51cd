"""What a name is taken to mean, explained; and what needs trees, refused."""

import json
import math

import pytest
import torch
from tiny_knowbert import PICTURE, PLACE, SENSES, TEST, TEXT, knowbert_in

from kbert_core.errors import CheckpointError, TextError
from kbert_core.explain.case import Case
from kbert_core.explain.effects import effects, shapley
from kbert_core.explain.targets import LEAST, LinkTarget, NothingPredicted, Target, target_of
from kbert_lab.explain.attention import attention_effect
from kbert_lab.explain.compare import ablations_of, compare
from kbert_lab.explain.counterfactuals import Search, counterfactuals
from kbert_lab.explain.influence import influence
from kbert_lab.explain.noise import noise_curve


@pytest.fixture(scope="module")
def linker(tmp_path_factory, checkpoints):
    return knowbert_in(tmp_path_factory.mktemp("linker"), checkpoints, head=False)


@pytest.fixture(scope="module")
def case(linker):
    return Case.of(linker, TEXT, graph=SENSES)


def test_the_default_target_is_the_link_and_its_score_the_log_odds_of_its_weight(linker, case):
    (link,) = case.trace.prediction.links
    assert case.target == LinkTarget(link.entity, *PLACE)
    assert case.base.score == pytest.approx(math.log(link.weight / (1 - link.weight)), abs=1e-5)
    assert case.base.outcome.answer == link.entity
    assert case.target.probability(case.base.score, linker.labels) == pytest.approx(link.weight)


def test_the_default_target_is_the_name_whose_best_candidate_is_least_sure(linker):
    graph = SENSES.add(*[type(TEST)("患者", "gloss", "病人")])
    trace = linker(TEXT, graph=graph)
    assert len(trace.prediction.links) == 2
    assert (target_of(trace.prediction, trace.reading).start) == PLACE[0]


def test_a_target_is_named_by_entity_or_place_and_refused_where_it_fits_nothing(case):
    prediction, reading = case.trace.prediction, case.reading
    other = target_of(prediction, reading, label="心电图.n.02")
    assert other == LinkTarget("心电图.n.02", *PLACE)
    assert target_of(prediction, reading, label="心电图.n.02", span=PLACE) == other
    with pytest.raises(TextError, match=r"name of the graph at \[0, 2\), only \[3, 6\)"):
        target_of(prediction, reading, span=(0, 2))
    with pytest.raises(TextError, match=r"'胃' is no candidate .* may mean 心电图.n.01, 心电图"):
        target_of(prediction, reading, label="胃")


def test_a_text_without_names_has_no_link_to_explain(linker):
    with pytest.raises(NothingPredicted, match="nothing is linked"):
        Case.of(linker, "今天天气好", graph=SENSES)


def test_without_its_gloss_an_entity_is_no_candidate_and_the_other_is_named(case):
    best = case.target.label
    gloss, other = (TEST, PICTURE) if best == TEST.head else (PICTURE, TEST)
    found = {effect.piece.triple: effect for effect in effects(case).each}
    assert set(found) == {TEST, PICTURE}
    assert found[gloss].without.answer == other.head
    assert found[gloss].flips and found[gloss].deleted_flips
    assert found[gloss].without.score == pytest.approx(math.log(LEAST / (1 - LEAST)))
    assert not found[other].flips
    assert found[other].without.score == pytest.approx(math.log((1 - LEAST) / LEAST))


def test_without_any_gloss_nothing_is_linked(case):
    assert case.plain.outcome.answer == "NULL"
    assert case.plain.prediction.links == ()


def test_a_search_finds_the_gloss_that_the_link_rests_on(case):
    found = counterfactuals(case, Search(budget=20))
    assert any(edit.action == "remove" for one in found.found for edit in one.edits)
    assert json.loads(json.dumps(found.as_dict()))


def test_shapley_values_of_glosses_sum_to_the_whole(case):
    found = shapley(case)
    assert sum(value.value for value in found.each) == pytest.approx(found.whole, abs=1e-6)


@pytest.mark.parametrize("head", [True, False])
def test_what_needs_trees_is_refused_with_one_sentence(tmp_path, checkpoints, head):
    pipeline = knowbert_in(tmp_path, checkpoints, head=head)
    target = Target("疾病", *PLACE) if head else None
    case = Case.of(pipeline, TEXT, graph=SENSES, target=target)
    refused = (attention_effect, influence, noise_curve, lambda c: compare(ablations_of(c), of=c))
    for explain in refused:
        with pytest.raises(CheckpointError, match=r"needs sentence trees, and .* 'knowbert'"):
            explain(case)


def test_a_reading_without_some_triples_keeps_its_spans_in_step_with_its_rows(linker):
    (reading,) = linker.readings([[TEXT]], graph=SENSES)
    less = linker.reader.without(reading, [p for p in reading.pieces if p.triple == TEST])
    (span,) = less.linked_spans
    assert [own.entity for own in span.candidates] == [PICTURE.head]
    (again,) = linker.readings([[TEXT]], graph=SENSES.remove(TEST))
    one, other = linker.reader.logits([less, again])
    torch.testing.assert_close(one, other)
