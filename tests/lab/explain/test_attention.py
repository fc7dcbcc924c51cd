"""Attention on triples, where it and the effect disagree, and the arithmetic of one weight."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from conftest import TIM_COOK, tiny_config, tiny_tokenizer
from explaining import DISEASE, GRAPH, IS_DISEASE, TEXT
from transformers import AutoConfig, AutoModel, BertModel

from kbert_core import Ablation, Card, InjectionOptions, KnowledgeGraph, Pipeline, Triple
from kbert_core.errors import EncoderError, OptionError
from kbert_core.explain.case import Case, Fact, Outcome, Target
from kbert_core.explain.effects import Effect, Effects
from kbert_core.kbert.interventions import Intervention, Tokens
from kbert_lab.explain.attention import (
    Attended,
    AttentionEffect,
    Kind,
    attention_arithmetic,
    attention_effect,
    without_link,
)

BASE = Outcome(0.0, "疾病")


def made(*pairs):
    """A text whose triples have these masses and effects."""
    each = [
        Effect(Fact(Triple("h", "r", str(n))), (), BASE, Outcome(-effect, "疾病"))
        for n, (_, effect) in enumerate(pairs)
    ]
    found = Effects(("text",), DISEASE, BASE, BASE, tuple(each), len(each), len(each))
    masses = [mass for mass, _ in pairs]
    attended = [Attended(e, (0.0,), (mass,)) for e, mass in zip(each, masses, strict=True)]
    return AttentionEffect(found, tuple(attended))


def slow_mass(trace, triple, looks):
    """By loops: per layer the mean over lookers and heads of the sum over a triple's branches."""
    sums, lookers = [0.0] * len(trace.attentions), 0
    for number, row in enumerate(trace.rows):
        branch = [
            i for h in row.branches if h.branch.triple == triple for i in range(h.start, h.end)
        ]
        looking = [i for i in range(len(row)) if looks(row, i)]
        lookers += len(looking)
        for layer, maps in enumerate(trace.attentions):
            heads = maps[number]
            cells = (head[i, j] for head in heads for i in looking for j in branch)
            sums[layer] += float(sum(cells)) / len(heads)
    return pytest.approx([total / lookers for total in sums], rel=1e-4)


@pytest.mark.parametrize("text", [TEXT, TEXT * 3], ids=["a row", "windows count together"])
def test_mass_is_the_mean_over_heads_and_lookers_of_the_sum_over_the_branch(ner, text):
    case = Case.of(ner, text, graph=GRAPH, target=DISEASE)
    trace = ner(text, graph=GRAPH, attentions=True)
    assert (len(trace.rows) > 1) == (text != TEXT)
    found = attention_effect(case)
    for one in found.each:
        triple = one.fact.triple
        assert one.by_trunk == slow_mass(trace, triple, lambda row, i: row.branch_ids[i] == 0)
        looks = {(0, at) for at in range(3, 6)}
        assert one.by_target == slow_mass(
            trace, triple, lambda row, i, looks=looks: row.trunk_places[i] in looks
        )
        assert one.mass() == pytest.approx(sum(one.by_trunk) / 3)
    assert [one.mass("target") > 0 for one in found.each] == [True, True, False]  # IS_CURE: unseen


def test_cls_gives_a_branch_no_attention_unless_everything_is_visible(classifier):
    tree = Case.of(classifier, TEXT, graph=GRAPH)
    flat = Case.of(classifier, TEXT, graph=GRAPH, ablation=Ablation("soft", "all"))
    hidden, seen = attention_effect(tree), attention_effect(flat)
    assert [one.mass("target") for one in hidden.each] == [0, 0, 0]
    assert min(one.mass("target") for one in seen.each) > 0
    assert hidden.rank_correlation("target") is None
    assert hidden.disagreements("target") == ()
    assert all(abs(one.effect.effect) > 1e-4 for one in hidden.each)


def test_a_branch_blocked_from_its_mention_gets_no_attention(ner):
    blocked = Intervention("block", Tokens("trunk"), Tokens("branch", 0, 3, IS_DISEASE))
    case = Case.of(ner, TEXT, graph=GRAPH, target=DISEASE, interventions=(blocked,))
    masses = [one.mass() for one in attention_effect(case).each]
    assert masses[0] == 0 and min(masses[1:]) > 0


@pytest.mark.parametrize(
    ("pairs", "rho"),
    [
        ([(0.1, 1), (0.2, -2), (0.3, 3)], 1.0),  # the sign doesn't count
        ([(0.3, 1), (0.2, 2), (0.1, 3)], -1.0),
        ([(0.1, 2), (0.2, 1), (0.3, 3)], 0.5),
        ([(0.1, 1), (0.2, 2)], None),
        ([(0.0, 1), (0.0, 2), (0.0, 3)], None),
    ],
)
def test_rank_correlation_is_spearmans(pairs, rho):
    assert made(*pairs).rank_correlation() == (None if rho is None else pytest.approx(rho))


IDLE = (
    "h · r · 0 gets the most attention, and leaving it out changes the score by +0.020 nats only; "
    "h · r · 1 changes it by −4.0."
)
OVERLOOKED = "h · r · 2 has the largest effect (+4.0 nats) and is only number 3 of 3 by attention."


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([(0.5, 0.02), (0.3, -4.0), (0.1, 1.0)], (Kind.IDLE, IDLE)),
        ([(0.5, 1.0), (0.3, -1.5), (0.1, 4.0)], (Kind.OVERLOOKED, OVERLOOKED)),
        ([(0.3, 1.0), (0.3, 2.0), (0.1, 4.0)], (Kind.OVERLOOKED, OVERLOOKED)),
        ([(0.5, 4.0), (0.3, -1.5), (0.1, 1.0)], None),
        ([(0.5, 4.0)], None),
        ([(0.0, 1.0), (0.0, 4.0)], None),  # nothing is attended
        ([(0.5, 1e-8), (0.3, 2e-8), (0.1, 3e-7)], None),  # nothing acts
        ([(0.2, 1.0), (0.2, 2.0), (0.2, 4.0)], None),  # they share the first rank
        ([(0.2, 0.01), (0.2, 4.0)], None),
    ],
)
def test_where_attention_and_effect_disagree_is_said(pairs, said):
    found = made(*pairs).disagreements()
    assert [(one.kind, str(one)) for one in found] == [said] * (said is not None)


def test_names_in_the_figure_cover_neither_each_other_nor_the_edge():
    close = made(*((0.02 + n / 2000, 0.01 * (n % 3)) for n in range(8)), (0.08, 2.0))
    (panel,) = close.figure().axes
    boxes = [text.get_window_extent() for text in panel.texts if text.get_text()]
    assert len(boxes) == 9
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    (left, bottom), (right, top) = panel.bbox.get_points()
    assert all(left <= b.x0 and b.x1 <= right and bottom <= b.y0 and b.y1 <= top for b in boxes)


def test_a_text_without_knowledge_has_no_attention(ner):
    found = attention_effect(Case.of(ner, TEXT, graph=KnowledgeGraph(), target=Target("O", 0, 2)))
    assert (found.each, found.rank_correlation(), found.disagreements()) == ((), None, ())
    found.figure()


# The arithmetic of a cell


def pipeline_of(model):
    return Pipeline(model.eval(), tiny_tokenizer(), Card())


@pytest.fixture(scope="module")
def bert():
    torch.manual_seed(0)
    return pipeline_of(BertModel(tiny_config()))


@pytest.fixture(scope="module")
def trace(bert, figure_2):
    return read(bert, figure_2)


def read(pipeline, graph, **more):
    asked = {"attentions": True, "hidden_states": True, "options": InjectionOptions(9)}
    return pipeline(TIM_COOK, graph=graph, **asked, **more)


def token(trace, text):
    """Where a word of the trunk stands."""
    return trace.rows[0].tokens.index(text)


def branch(trace, tail):
    """Where the branch with this tail begins."""
    placed = trace.rows[0].branches
    return next(one.start for one in placed if one.branch.triple.tail == tail)


def test_cell_arithmetic_equals_numpy_by_hand(bert, trace):
    layer, head, query, key = 2, 3, token(trace, "Cook"), branch(trace, "Apple")
    found = attention_arithmetic(bert.reader, trace, 0, layer, head, query, key)
    weights = {n: p.detach().numpy() for n, p in bert.encoder.model.named_parameters()}
    inside = f"encoder.layer.{layer - 1}.attention.self."
    below = trace.hidden_states[layer - 1][0].numpy()
    part = slice(2 * 8, 3 * 8)  # the third of four heads of 32 / 4
    q, k = (
        below @ weights[f"{inside}{name}.weight"].T[:, part] + weights[f"{inside}{name}.bias"][part]
        for name in ("query", "key")
    )
    scores = np.full(len(below), -np.inf)
    for j in range(len(below)):
        if trace.visible[0, query, j]:
            scores[j] = sum(q[query][d] * k[j][d] for d in range(8)) / math.sqrt(8)
    total = sum(math.exp(score) for score in scores)
    assert (found.size, found.mask) == (8, 0)
    assert found.dot == pytest.approx(float(q[query] @ k[key]), rel=1e-4)
    assert found.scale == pytest.approx(1 / math.sqrt(8))
    assert found.score == pytest.approx(scores[key], rel=1e-4)
    assert found.log_sum_exp == pytest.approx(math.log(total), rel=1e-4)
    assert found.weight == pytest.approx(math.exp(scores[key]) / total, rel=1e-4)
    codes = zip(trace.rows[0].branch_ids, trace.rows[0].anchor_ids, strict=True)
    assert found.seen == sum(branch == 0 or anchor == 1 for branch, anchor in codes)


def test_a_hidden_cell_weighs_nothing_until_an_ablation_opens_it(bert, trace, figure_2):
    cell = 0, 1, 1, branch(trace, "Apple"), branch(trace, "China")
    hidden = attention_arithmetic(bert.reader, trace, *cell)
    assert not hidden.visible and hidden.dot != 0
    assert (hidden.mask, hidden.score, hidden.weight) == (-math.inf, -math.inf, 0)
    everything = read(bert, figure_2, ablation=Ablation(visible="all"))
    found = attention_arithmetic(bert.reader, everything, *cell)
    assert found.visible and found.weight > 0
    assert found.seen == len(trace.rows[0])


FAMILIES = {
    "bert": {},
    "roberta": {"pad_token_id": 1, "type_vocab_size": 1},
    "electra": {"embedding_size": 16},
    "distilbert": {"dim": 32, "n_layers": 4, "n_heads": 4, "hidden_dim": 48},
    "albert": {"embedding_size": 16, "num_hidden_groups": 2},
}
REFUSED = {
    "modernbert": (
        {"local_attention": 8, "global_attn_every_n_layers": 2},
        "no separate query and key projections named query/key",
    ),
    "roberta-prelayernorm": (
        {"pad_token_id": 1, "type_vocab_size": 1},
        "doesn't compute its attention as softmax",
    ),
}


def family(kind, **more):
    torch.manual_seed(0)
    tiny = tiny_config(num_hidden_layers=4, max_position_embeddings=80, pad_token_id=0).to_dict()
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    names += ("intermediate_size", "max_position_embeddings", "initializer_range", "pad_token_id")
    sizes = {name: tiny[name] for name in names}
    return pipeline_of(AutoModel.from_config(AutoConfig.for_model(kind, **{**sizes, **more})))


@pytest.mark.parametrize("kind", FAMILIES)
def test_other_families_projections_are_found(kind, figure_2):
    pipeline = family(kind, **FAMILIES[kind])
    trace = read(pipeline, figure_2)
    query, key = token(trace, "Cook"), branch(trace, "Apple")
    for layer in (1, 2, 4):
        found = attention_arithmetic(pipeline.reader, trace, 0, layer, 2, query, key)
        given = float(trace.attentions[layer - 1][0, 1, query, key])
        assert 0 < found.weight < 1 and found.weight == pytest.approx(given, abs=1e-5)


@pytest.mark.parametrize("kind", REFUSED)
def test_an_encoder_that_computes_attention_otherwise_is_refused_with_the_reason(kind, figure_2):
    sizes, reason = REFUSED[kind]
    pipeline = family(kind, **sizes)
    with pytest.raises(EncoderError, match=reason):
        attention_arithmetic(pipeline.reader, read(pipeline, figure_2), 0, 2, 1, 0, 1)


def test_a_trace_without_states_says_how_to_make_one(bert, figure_2):
    trace = bert(TIM_COOK, graph=figure_2)
    with pytest.raises(OptionError, match="attentions=True, hidden_states=True"):
        attention_arithmetic(bert.reader, trace, 0, 1, 1, 0, 0)


@pytest.mark.parametrize(
    ("name", "place"), [("row", 0), ("layer", 1), ("head", 2), ("query", 3), ("key", 4)]
)
def test_a_number_out_of_range_is_named(bert, trace, name, place):
    for value in (-1, 99):
        numbers = [0, 1, 1, 0, 0]
        numbers[place] = value
        with pytest.raises(OptionError, match=f"{name} is {value}, expected"):
            attention_arithmetic(bert.reader, trace, *numbers)


@pytest.mark.parametrize("text", [TEXT, TEXT * 3], ids=["a row", "windows"])
def test_without_its_link_one_head_predicts_neither_as_read_nor_as_if_all_had_none(ner, text):
    reading = ner(text, graph=GRAPH).reading
    (placed, *_) = reading.rows[0].branches
    seers, branch = (Tokens(kind, 0, 3, IS_DISEASE) for kind in ("mention", "branch"))
    both = [tokens.among(reading.rows[0]) for tokens in (seers, branch)]
    assert both[1] == [*range(placed.start, placed.end)]
    whole = Intervention("block", seers, branch, both=False, layers=(1,))
    predictions = [
        ner(text, graph=GRAPH).prediction,
        ner(text, graph=GRAPH, interventions=(whole,)).prediction,
        without_link(ner, reading, 0, 1, 2, *both),
        without_link(ner, reading, 0, 1, 2, [], both[1]),
    ]
    found = [[*own.tokens[3].probabilities.values()] for own in predictions]
    assert found[3] == pytest.approx(found[0], abs=1e-6)
    for one, other in combinations(found[:3], 2):
        assert one != pytest.approx(other, abs=1e-6)
