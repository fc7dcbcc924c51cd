"""Paths of knowledge: which tokens a triple can reach by which layer, and what it changed there."""

import random

import pytest
import torch
from conftest import TIM_COOK, tiny_config, tiny_tokenizer
from explaining import GRAPH, IS_CURE, TEXT
from hypothesis import given
from hypothesis import strategies as st
from slow_trees import random_scene
from transformers import (
    BertForSequenceClassification,
    ModernBertConfig,
    ModernBertForSequenceClassification,
)

from kbert_core import (
    Ablation,
    Card,
    InjectionOptions,
    KnowledgeGraph,
    Pipeline,
    Triple,
    collate,
    visible_matrix,
)
from kbert_core.errors import OptionError
from kbert_core.explain.case import NOTHING, Case
from kbert_core.kbert.interventions import BRANCHES, PRESETS, TRUNK, Intervention
from kbert_lab.explain.influence import (
    NEVER,
    ROUNDING,
    first_layer,
    influence,
    reach,
    stream_influence,
)

LAYERS = 3
CURE = 2  # of the facts
CLS, TIM, COOK, CEO, APPLE, IS, VISITING, BEIJING, CAPITAL, CHINA, IS_A, CITY, NOW, SEP = range(14)


# What it can reach


@pytest.fixture
def figure_2_visible(tim_cook):
    batch = collate([tim_cook])
    return visible_matrix(batch.branch_ids, batch.anchor_ids)[0]


def test_reach_in_figure_2_takes_a_branch_to_its_mention_and_then_to_the_trunk(figure_2_visible):
    found = reach([figure_2_visible] * 3)
    first = first_layer(found)[:, CITY].tolist()
    assert [first[token] for token in (CITY, IS_A, BEIJING)] == [0, 1, 1]
    assert [first[token] for token in (CLS, TIM, COOK, IS, NOW, SEP)] == [2] * 6
    assert [first[token] for token in (CAPITAL, CHINA)] == [2, 2]  # by the mention
    assert [first[token] for token in (CEO, APPLE)] == [3, 3]  # by the trunk
    assert torch.equal(found[0], torch.eye(14, dtype=torch.bool))  # before: its own
    assert torch.equal(found[1], figure_2_visible)


def test_reach_with_a_blocked_link_in_one_layer_comes_a_layer_later(figure_2_visible):
    blocked = figure_2_visible.clone()
    blocked[BEIJING, [IS_A, CITY]] = False
    first = first_layer(reach([blocked, figure_2_visible, figure_2_visible]))
    assert first[[IS_A, BEIJING, CLS], CITY].tolist() == [1, 2, 3]
    assert int(first_layer(reach([blocked] * 3))[CLS, CITY]) == NEVER


# What it changed


@pytest.fixture(scope="module")
def classifier():
    torch.manual_seed(0)
    model = BertForSequenceClassification(tiny_config(max_position_embeddings=512)).eval()
    tokenizer = tiny_tokenizer()
    tokenizer.model_max_length = 512
    return Pipeline(model, tokenizer, Card("classify"))


def case_of(pipeline, *texts, graph=GRAPH, **given):
    given.setdefault("options", InjectionOptions(max_triples=4))
    return Case.of(pipeline, *texts, graph=graph, **given)


def indices(flat, test):
    return [index for index, name in enumerate(flat.identities) if test(name)]


def test_influence_arrives_at_the_mention_after_one_layer_and_at_cls_after_two(
    classifier, figure_2
):
    case = case_of(classifier, TIM_COOK, graph=figure_2)
    found = influence(case)
    assert [str(fact.triple) for fact in found.facts] == [
        "(Tim Cook, CEO, Apple)",
        "(Beijing, capital, China)",
        "(Beijing, is_a, City)",
    ]
    assert [arrival.layer for arrival in found.arrivals()] == [2, 2, 2]
    mention = case.mentions_of(found.facts[2])[0]
    tokens = found.flat.trunk_tokens[0]
    at_beijing = indices(
        found.flat, lambda n: n[0] == "trunk" and mention.start <= tokens.starts[n[2]] < mention.end
    )
    assert {int(found.first[2, i]) for i in at_beijing} == {1}
    assert {int(found.first[0, i]) for i in at_beijing} == {2}  # of Tim Cook's, by the trunk
    apple = indices(found.flat, lambda n: n[0] == "branch" and n[3].head == "Tim Cook")
    assert {int(found.first[2, i]) for i in apple} == {3}
    siblings = indices(found.flat, lambda n: n[0] == "branch" and n[3].tail == "China")
    assert {int(found.first[2, i]) for i in siblings} == {2}


def test_influence_equals_two_runs_compared_by_hand(classifier):
    case = case_of(classifier, TEXT)
    found = influence(case)
    given = {"options": case.config.options, "hidden_states": True}
    whole = classifier(TEXT, graph=GRAPH, **given)
    less = classifier(TEXT, graph=GRAPH.switch_off(IS_CURE), **given)
    places = {name: index for index, name in enumerate(less.rows[0].identities)}
    for layer in range(LAYERS + 1):
        for index, name in enumerate(whole.rows[0].identities):
            if name not in places:
                assert found.measured[CURE, layer, index].isnan()
                continue
            one = whole.hidden_states[layer][0, index]
            other = less.hidden_states[layer][0, places[name]]
            expected = float((one - other).norm() / one.norm())
            assert float(found.measured[CURE, layer, index]) == pytest.approx(expected, abs=1e-5)


def test_influence_comes_batch_by_batch_and_ends_with_the_whole(classifier, monkeypatch):
    graph = KnowledgeGraph([Triple("糖尿病", "r", c) for c in "甲乙丙丁戊"])
    case = case_of(classifier, TEXT, graph=graph, options=InjectionOptions(5))
    monkeypatch.setattr(Case, "at_once", lambda _: 2)
    parts = list(stream_influence(case))
    assert [(len(part.facts), part.total) for part in parts] == [(2, 5), (4, 5), (5, 5)]
    whole = influence(case)
    assert parts[-1].facts == whole.facts
    torch.testing.assert_close(parts[-1].measured, whole.measured, equal_nan=True)
    torch.testing.assert_close(parts[0].measured, whole.measured[:2], equal_nan=True)
    assert torch.equal(parts[-1].reached, whole.reached)


def test_influence_is_none_where_reach_says_it_cant_be(classifier):
    found = influence(case_of(classifier, TEXT))
    assert found.largest_beyond_reach < ROUNDING
    reached = found.reached & ~found.measured.isnan()
    reached[:, 0] = False
    assert found.measured[reached].min() > 100 * ROUNDING  # a random encoder: all of it matters


@given(st.integers(0, 10_000), st.sampled_from(["soft", "hard"]), st.sampled_from(["tree", "all"]))
def test_influence_in_random_trees_is_none_out_of_reach(classifier, seed, positions, visible):
    scene = random_scene(random.Random(seed), 1)
    case = case_of(
        classifier, *scene.texts, graph=scene.graph, ablation=Ablation(positions, visible)
    )
    found = influence(case)
    assert found.largest_beyond_reach < ROUNDING
    assert bool(found.moved.any()) <= (positions == "hard")
    if found.facts:
        assert (found.first >= 0).all()  # three layers bring it everywhere
        assert positions == "hard" or float(found.measured[:, 0].nan_to_num().max()) < ROUNDING


def test_influence_with_hard_positions_comes_by_position_before_the_first_layer(classifier):
    found = influence(case_of(classifier, TEXT, ablation=Ablation("hard", "tree")))
    last = len(found.flat) - 1
    assert bool(found.moved[0, last])
    assert int(found.first[0, last]) == 0
    assert float(found.measured[0, 0, last]) > ROUNDING
    assert not bool(found.moved[0, 0])


def test_influence_of_a_triple_said_twice_starts_at_both_mentions(classifier):
    once, twice = (influence(case_of(classifier, text)) for text in (TEXT, TEXT + TEXT))
    assert len(twice.own(CURE)) == 2 * len(once.own(CURE))
    assert int((twice.first[CURE] == 1).sum()) == 2 * int((once.first[CURE] == 1).sum())


def test_influence_of_a_window_follows_the_triples_that_hang_there(ner):
    case = Case.of(ner, TEXT * 6, graph=GRAPH, target=NOTHING)
    assert len(case.trace.rows) > 2
    last = influence(case, window=len(case.trace.rows) - 1)
    assert last.flat is case.trace.rows[-1]
    assert last.largest_beyond_reach < ROUNDING
    with pytest.raises(OptionError, match="there is none of number 99"):
        influence(case, window=99)


def test_influence_within_local_layers_stays_near():
    torch.manual_seed(0)
    names = "vocab_size hidden_size intermediate_size num_attention_heads initializer_range"
    sizes = {name: getattr(tiny_config(), name) for name in names.split()}
    layers = {"num_hidden_layers": 2, "layer_types": ["sliding_attention"] * 2}
    config = ModernBertConfig(local_attention=4, pad_token_id=0, **layers, **sizes)
    model = ModernBertForSequenceClassification(config).eval()
    case = case_of(Pipeline(model, tiny_tokenizer(), Card("classify")), TEXT)
    found = influence(case)
    assert int(found.first[CURE, 0]) == -1  # [CLS] is farther than two windows
    assert float(found.measured[CURE, :, 0].max()) < ROUNDING
    assert int((found.first[CURE] >= 1).sum()) > 0
    assert found.largest_beyond_reach < ROUNDING


def test_influence_without_knowledge_is_empty(classifier):
    found = influence(case_of(classifier, "好转"))
    assert found.facts == ()
    assert found.arrivals() == ()
    assert found.largest_beyond_reach == 0
    assert found.to_frame().empty
    assert found.as_dict()["triples"] == []


def test_influence_as_a_table_has_a_row_for_every_triple_layer_and_token(classifier):
    found = influence(case_of(classifier, TEXT))
    frame = found.to_frame()
    assert len(frame) == 3 * (LAYERS + 1) * len(found.flat)
    cls = frame[(frame.token == 0) & (frame["tail"] == "疾病")]
    assert cls.reached.tolist() == [False, False, True, True]
    assert cls.influence.tolist() == pytest.approx(found.measured[0, :, 0].tolist())
    data = found.as_dict()
    assert data["triples"][0]["first_layer"][0] == 2
    assert data["triples"][0]["influence"][0][found.own(0)[0]] is None


def test_influence_under_interventions_goes_where_they_let_it(classifier):
    blocked = case_of(classifier, TEXT, interventions=PRESETS["no_link"])
    found = influence(blocked)
    trunk = [i for i, branch in enumerate(found.flat.branch_ids) if not branch]
    assert (found.first[:, trunk] == -1).all()
    assert float(found.measured[:, :, trunk].max()) < ROUNDING
    late = Intervention("block", TRUNK, BRANCHES, layers=(1,))
    found = influence(case_of(classifier, TEXT, interventions=[late]))
    assert [arrival.layer for arrival in found.arrivals()] == [3, 3, 3]
    assert found.largest_beyond_reach < ROUNDING
    assert float(found.measured[:, 3, 0].min()) > ROUNDING
