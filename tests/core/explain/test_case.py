"""Cases and their variants, and what of a prediction is explained: labels, spans, tokens, links."""

import dataclasses
import json
import math
from functools import partial

import pytest
from explaining import DISEASE, GRAPH, TEXT
from hypothesis import given
from hypothesis import strategies as st
from tiny_knowbert import PICTURE, PLACE, SENSES, TEST, knowbert_in
from tiny_knowbert import TEXT as LINKED

from kbert_core import (
    InjectionOptions,
    KnowledgeGraph,
    Pipeline,
    Triple,
    Words,
    flatten,
    grow_trees,
)
from kbert_core.errors import CheckpointError, TextError
from kbert_core.explain import case as case_module
from kbert_core.explain.case import Case, Target, target_of
from kbert_core.explain.effects import (
    effects,
    stream_effects,
    stream_interactions,
    stream_shapley,
)
from kbert_core.explain.targets import LEAST, LinkTarget, NothingPredicted
from kbert_core.kbert.interventions import PRESETS
from kbert_core.kbert.kbert import KBertReader
from kbert_core.reader import Fact
from kbert_core.tasks import ClassPrediction, MaskPrediction, NerPrediction, Span
from kbert_core.tasks.mask import Filling
from kbert_lab.explain.attention import attention_effect
from kbert_lab.explain.compare import ablations_of, compare
from kbert_lab.explain.counterfactuals import Search, counterfactuals, stream_counterfactuals
from kbert_lab.explain.influence import influence
from kbert_lab.explain.noise import noise_curve, stream_noise

FACTS = tuple(map(Fact, GRAPH))
NAMES = ["Tim Cook", "Beijing", "visiting", "now"]


def without_branches(flat, facts):
    return flat.keeping(lambda *place: not any(p.covers(*place) for p in facts))


def with_only_branches(flat, facts):
    return flat.keeping(lambda *place: any(p.covers(*place) for p in facts))


def equal(one, other):
    return one == dataclasses.replace(other, tree=one.tree, left_out=one.left_out)


@given(
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from("abc"), st.sampled_from("xyz"))),
    st.data(),
)
def test_leaving_branches_out_equals_flattening_without_them(rows, data):
    triples = [Triple(*row) for row in dict.fromkeys(rows)]
    text, options = "Tim Cook is visiting Beijing now", InjectionOptions(max_triples=9)
    flat = flatten(grow_trees([text], KnowledgeGraph(triples), options), Words(special=True))[0]
    gone = data.draw(st.lists(st.sampled_from(triples), unique=True)) if triples else []
    kept = [triple for triple in triples if triple not in gone]
    names = KnowledgeGraph(triples)
    for triple in gone:
        names = names.switch_off(triple)
    again = flatten(grow_trees([text], names, options), Words(special=True))[0]
    assert equal(without_branches(flat, list(map(Fact, gone))), again)
    assert equal(with_only_branches(flat, list(map(Fact, kept))), again)


def test_a_branch_left_out_of_windows_is_gone_from_all_of_them(ner):
    text = TEXT * 6
    case = Case.of(ner, text, graph=GRAPH, target=DISEASE)
    assert len(case.trace.rows) > 2
    one = Fact(FACTS[0].triple, node=0)
    less = case.without([one])
    assert [len(row.branches) for row in less.rows] != [
        len(row.branches) for row in case.trace.rows
    ]
    assert all(not one.covers(h.node, h.branch.triple) for row in less.rows for h in row.branches)
    assert sum(len(row) for row in case.trace.rows) - sum(map(len, less.rows)) == 2 * sum(
        one.covers(h.node, h.branch.triple) for row in case.trace.rows for h in row.branches
    )


def test_a_case_without_branches_equals_the_run_without_a_graph(ner, case):
    plain = ner(TEXT)
    assert case.plain.prediction.spans == plain.prediction.spans
    score = case.target.score(plain.reading, plain.logits_on_text(), ner.labels)
    assert case.plain.score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize(
    "stream",
    [
        stream_effects,
        stream_interactions,
        partial(stream_shapley, exact=False, orders=4),
        stream_counterfactuals,
        stream_noise,
    ],
)
def test_a_long_text_is_explained_in_short_steps(ner, monkeypatch, stream):
    case = Case.of(ner, TEXT * 6, graph=GRAPH, target=DISEASE)
    assert len(case.trace.rows) > 2
    tokens = sum(map(len, case.trace.rows))
    monkeypatch.setattr(case_module, "TOKENS_A_STEP", 2 * tokens)
    assert case.at_once() == 2
    run, logits = [0], KBertReader.logits

    def counted(self, some, **given):
        run[-1] += len(some)
        return logits(self, some, **given)

    monkeypatch.setattr(KBertReader, "logits", counted)
    for number, _ in enumerate(stream(case)):
        assert run[-1] <= (5 if number == 0 else 2)  # what all are measured against comes first
        run.append(0)
        if number == 8:
            break
    assert len(run) > 3


def test_variants_run_together_score_as_each_run_alone(case):
    variants = [case.reading, *(case.without([p]) for p in case.facts)]
    together = [s.score for s in case.run(variants, at_once=2)]
    alone = [next(case.run([variant])).score for variant in variants]
    assert together == pytest.approx(alone, abs=1e-5)
    assert together[0] == pytest.approx(case.base.score, abs=1e-5)


def test_score_of_a_class_is_its_log_odds(classifier):
    case = Case.of(classifier, TEXT, graph=GRAPH)
    probability = case.base.prediction.probabilities[case.target.label]
    assert case.base.score == pytest.approx(math.log(probability / (1 - probability)), abs=1e-4)


def test_score_of_a_span_is_the_mean_log_probability_of_its_tags(ner):
    case = Case.of(ner, TEXT, graph=GRAPH, target=Target("治疗", 9, 12))
    tokens = case.base.prediction.tokens[9:12]
    tags = ("B-治疗", "I-治疗", "I-治疗")
    logs = [math.log(token.probabilities[tag]) for token, tag in zip(tokens, tags, strict=True)]
    assert case.base.score == pytest.approx(sum(logs) / 3, abs=1e-4)


def test_score_of_a_token_is_its_log_odds_at_the_mask(checkpoints):
    filler = Pipeline.from_pretrained(checkpoints["mask"], device="cpu")
    case = Case.of(filler, "患者有[MASK]尿病史", graph=GRAPH)
    token, probability = case.base.prediction.fillings[0].candidates[0]
    assert case.target == Target(token, 3, 9)
    assert case.base.score == pytest.approx(math.log(probability / (1 - probability)), abs=1e-4)


def test_target_of_a_text_is_the_entity_with_knowledge_on_it(ner):
    read = ner(TEXT, graph=GRAPH).reading
    outside, known = Span(0, 2, "疾病", "患者", 0.9), Span(8, 12, "治疗", "予布洛芬", 0.4)
    assert target_of(NerPrediction((outside, known), ()), read) == Target("治疗", 8, 12)
    assert target_of(NerPrediction((outside, known), ())) == Target("疾病", 0, 2)
    assert target_of(ClassPrediction("good", {"good": 1.0})) == Target("good")
    with pytest.raises(TextError, match="No entity is predicted"):
        target_of(NerPrediction((), ()), read)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (Target("Q", 3, 6), "has no label 'B-Q'"),
        (Target("疾病", 300, 303), r"No token of the text stands at \[300, 303\)"),
    ],
)
def test_target_that_is_not_there_is_refused(ner, target, said):
    case = Case.of(ner, TEXT, graph=GRAPH, target=target)
    with pytest.raises(TextError, match=said):
        _ = case.base


def test_facts_are_the_triples_that_hang_each_once(ner):
    case = Case.of(ner, TEXT + TEXT, graph=GRAPH, target=DISEASE)
    assert case.facts == FACTS
    assert [(p.node, p.triple) for p in case.facts_by_mention] == [
        (n, fact.triple) for n, fact in zip((0, 0, 1, 2, 2, 3), FACTS * 2, strict=True)
    ]
    assert [m.start for m in case.mentions_of(FACTS[2])] == [9, 25]


def test_interventions_of_a_reading_are_made_to_its_variants_too(ner):
    interventions = PRESETS["no_link"]
    case = Case.of(ner, TEXT, graph=GRAPH, target=DISEASE, interventions=interventions)
    without = next(case.run([case.without(case.facts)]))
    assert case.base.score == pytest.approx(without.score, abs=1e-5)  # no knowledge gets in
    assert case.base.score == pytest.approx(case.plain.score, abs=1e-5)
    open_again = Case.of(ner, TEXT, graph=GRAPH, target=DISEASE)
    both = [case.reading, open_again.reading]
    assert case.key(both[0]) != case.key(both[1])
    together = [scored.score for scored in case.run(both)]
    assert together == pytest.approx([case.base.score, open_again.base.score], abs=1e-5)


def test_target_of_another_task_is_refused(ner, classifier):
    with pytest.raises(TextError, match="labels whole texts"):
        _ = Case.of(classifier, TEXT, graph=GRAPH, target=DISEASE).base
    with pytest.raises(TextError, match="labels tokens"):
        _ = Case.of(ner, TEXT, graph=GRAPH, target=Target("疾病")).base


# Choosing what to explain by its name, its place, or both; what is said at its place

CLASS = ClassPrediction("good", {"good": 0.7, "bad": 0.3})
MASKS = MaskPrediction((Filling(3, 9, (("糖", 0.6), ("病", 0.1))), Filling(12, 18, (("药", 0.5),))))
SPANS = NerPrediction((Span(0, 2, "疾病", "患者", 0.9), Span(8, 12, "治疗", "予布洛芬", 0.4)), ())


@pytest.mark.parametrize(
    ("prediction", "asked", "chosen"),
    [
        (CLASS, {}, Target("good")),
        (CLASS, {"label": "bad"}, Target("bad")),
        (MASKS, {"label": "病"}, Target("病", 3, 9)),
        (MASKS, {"span": (12, 18)}, Target("药", 12, 18)),
        (MASKS, {"label": "糖", "span": (12, 18)}, Target("糖", 12, 18)),
        (SPANS, {"label": "治疗"}, Target("治疗", 8, 12)),
        (SPANS, {"span": (0, 2)}, Target("疾病", 0, 2)),
        (SPANS, {"span": (0, 3)}, Target("O", 0, 3)),
        (SPANS, {"label": "治疗", "span": (0, 3)}, Target("治疗", 0, 3)),
    ],
)
def test_target_is_found_by_what_is_said_of_it(prediction, asked, chosen):
    assert target_of(prediction, **asked) == chosen


@pytest.mark.parametrize(
    ("prediction", "asked", "said"),
    [
        (CLASS, {"span": (0, 2)}, "no span"),
        (MASKS, {"span": (0, 2)}, r"No \[MASK\] of the text stands at \[0, 2\)"),
        (SPANS, {"label": "检查"}, r"No 检查 is predicted, only 患者 疾病 \[0, 2\)"),
        (NerPrediction((), ()), {"label": "检查"}, "only nothing"),
        (None, {"label": "检查"}, "no prediction"),
    ],
)
def test_target_that_is_not_there_is_said(prediction, asked, said):
    with pytest.raises(TextError, match=said):
        target_of(prediction, **asked)


@pytest.mark.parametrize(
    ("target", "prediction", "answer"),
    [
        (Target("bad"), CLASS, "good"),
        (Target("糖", 12, 18), MASKS, "药"),
        (Target("治疗", 0, 2), SPANS, "疾病"),
        (Target("治疗", 2, 8), SPANS, "O"),
        (Target("治疗", 1, 9), SPANS, "疾病 [0, 2), 治疗 [8, 12)"),
        (Target("治疗", 9, 12), SPANS, "治疗 [8, 12)"),
    ],
)
def test_answer_is_what_is_predicted_at_the_place(target, prediction, answer):
    assert target.answer(prediction) == answer


@pytest.fixture(scope="module")
def linker(tmp_path_factory, checkpoints):
    return knowbert_in(tmp_path_factory.mktemp("linker"), checkpoints, head=False)


@pytest.fixture(scope="module")
def linked(linker):
    return Case.of(linker, LINKED, graph=SENSES)


def test_the_default_target_is_the_link_and_its_score_the_log_odds_of_its_weight(linker, linked):
    (link,) = linked.trace.prediction.links
    assert linked.target == LinkTarget(link.entity, *PLACE)
    assert linked.base.score == pytest.approx(math.log(link.weight / (1 - link.weight)), abs=1e-5)
    assert linked.base.outcome.answer == link.entity
    assert linked.target.probability(linked.base.score, linker.labels) == pytest.approx(link.weight)


def test_the_default_target_is_the_name_whose_best_candidate_is_least_sure(linker):
    graph = SENSES.add(*[type(TEST)("患者", "gloss", "病人")])
    trace = linker(LINKED, graph=graph)
    assert len(trace.prediction.links) == 2
    assert (target_of(trace.prediction, trace.reading).start) == PLACE[0]


def test_a_target_is_named_by_entity_or_place_and_refused_where_it_fits_nothing(linked):
    prediction, reading = linked.trace.prediction, linked.reading
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


def test_without_its_gloss_an_entity_is_no_candidate_and_the_other_is_named(linked):
    best = linked.target.label
    gloss, other = (TEST, PICTURE) if best == TEST.head else (PICTURE, TEST)
    found = {effect.fact.triple: effect for effect in effects(linked).each}
    assert set(found) == {TEST, PICTURE}
    assert found[gloss].without.answer == other.head
    assert found[gloss].flips and found[gloss].deleted_flips
    assert found[gloss].without.score == pytest.approx(math.log(LEAST / (1 - LEAST)))
    assert not found[other].flips
    assert found[other].without.score == pytest.approx(math.log((1 - LEAST) / LEAST))


def test_a_search_finds_the_gloss_that_the_link_rests_on(linked):
    found = counterfactuals(linked, Search(budget=20))
    assert any(edit.action == "remove" for one in found.found for edit in one.edits)
    assert json.loads(json.dumps(found.as_dict()))


@pytest.mark.parametrize("head", [True, False])
def test_what_needs_trees_is_refused_with_one_sentence(tmp_path, checkpoints, head):
    pipeline = knowbert_in(tmp_path, checkpoints, head=head)
    target = Target("疾病", *PLACE) if head else None
    case = Case.of(pipeline, LINKED, graph=SENSES, target=target)
    refused = (attention_effect, influence, noise_curve, lambda c: compare(ablations_of(c), of=c))
    for explain in refused:
        with pytest.raises(CheckpointError, match=r"needs sentence trees, and .* 'knowbert'"):
            explain(case)
