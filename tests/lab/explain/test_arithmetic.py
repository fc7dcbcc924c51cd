"""The arithmetic of a cell: by hand in NumPy, and equal to the encoder's own map."""

import math

import numpy as np
import pytest
import torch
from conftest import TIM_COOK, tiny_config, tiny_tokenizer
from transformers import AutoConfig, AutoModel, BertModel

from kbert_core import Ablation, Card, InjectionOptions, Pipeline
from kbert_core.errors import EncoderError, OptionError
from kbert_lab.explain.attention import attention_arithmetic

OPTIONS = InjectionOptions(max_triples=9)


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
    asked = {"attentions": True, "hidden_states": True, "options": OPTIONS}
    return pipeline(TIM_COOK, graph=graph, **asked, **more)


def token(trace, text):
    """Where a word of the trunk stands."""
    return trace.rows[0].tokens.index(text)


def branch(trace, tail):
    """Where the branch with this tail begins."""
    return next(
        placed.start for placed in trace.rows[0].branches if placed.branch.triple.tail == tail
    )


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
    assert found.size == 8
    assert found.dot == pytest.approx(float(q[query] @ k[key]), rel=1e-4)
    assert found.scale == pytest.approx(1 / math.sqrt(8))
    assert found.mask == 0
    assert found.score == pytest.approx(scores[key], rel=1e-4)
    assert found.log_sum_exp == pytest.approx(math.log(total), rel=1e-4)
    assert found.weight == pytest.approx(math.exp(scores[key]) / total, rel=1e-4)
    assert found.weight == pytest.approx(float(trace.attentions[1][0, 2, query, key]), abs=1e-6)
    codes = zip(trace.rows[0].branch_ids, trace.rows[0].anchor_ids, strict=True)
    assert found.seen == sum(branch == 0 or anchor == 1 for branch, anchor in codes)


def test_every_cell_gives_the_encoders_weight_and_rows_sum_to_one(bert, trace):
    count = len(trace.rows[0])
    for layer, head in ((1, 1), (3, 4)):
        for query in (0, token(trace, "Cook"), branch(trace, "City")):
            cells = [
                attention_arithmetic(bert.reader, trace, 0, layer, head, query, key)
                for key in range(count)
            ]
            given = trace.attentions[layer - 1][0, head - 1, query].numpy()
            assert [cell.weight for cell in cells] == pytest.approx(given, abs=1e-5)
            assert sum(cell.weight for cell in cells) == pytest.approx(1)


def test_a_hidden_cell_weighs_nothing_whatever_its_dot_product(bert, trace):
    apple, china = branch(trace, "Apple"), branch(trace, "China")
    found = attention_arithmetic(bert.reader, trace, 0, 1, 1, apple, china)
    assert not found.visible
    assert (found.mask, found.score, found.weight) == (-math.inf, -math.inf, 0)
    assert found.dot != 0


def test_an_ablation_opens_the_cell(bert, figure_2):
    trace = read(bert, figure_2, ablation=Ablation(visible="all"))
    found = attention_arithmetic(
        bert.reader, trace, 0, 1, 1, branch(trace, "Apple"), branch(trace, "China")
    )
    assert found.visible
    assert found.weight > 0
    assert found.seen == len(trace.rows[0])


FAMILIES = {
    "roberta": {"pad_token_id": 1, "type_vocab_size": 1},
    "electra": {"embedding_size": 16},
    "distilbert": {"dim": 32, "n_layers": 4, "n_heads": 4, "hidden_dim": 48},
    "albert": {"embedding_size": 16, "num_hidden_groups": 2},
}


def family(kind, **more):
    torch.manual_seed(0)
    tiny = tiny_config(num_hidden_layers=4, max_position_embeddings=80, pad_token_id=0).to_dict()
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    names += ("intermediate_size", "max_position_embeddings", "initializer_range", "pad_token_id")
    sizes = {name: tiny[name] for name in names}
    return pipeline_of(AutoModel.from_config(AutoConfig.for_model(kind, **{**sizes, **more})))


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("layer", [1, 2, 4])
def test_other_families_projections_are_found(kind, layer, figure_2):
    pipeline = family(kind, **FAMILIES[kind])
    trace = read(pipeline, figure_2)
    query, key = token(trace, "Cook"), branch(trace, "Apple")
    found = attention_arithmetic(pipeline.reader, trace, 0, layer, 2, query, key)
    assert found.weight == pytest.approx(
        float(trace.attentions[layer - 1][0, 1, query, key]), abs=1e-5
    )
    assert 0 < found.weight < 1


def test_an_encoder_without_such_projections_is_refused_with_the_reason(figure_2):
    pipeline = family("modernbert", local_attention=8, global_attn_every_n_layers=2)
    trace = read(pipeline, figure_2)
    with pytest.raises(EncoderError, match="no separate query and key projections named query/key"):
        attention_arithmetic(pipeline.reader, trace, 0, 1, 1, 0, 0)


def test_an_encoder_that_computes_otherwise_is_refused_and_not_explained_wrongly(figure_2):
    pipeline = family("roberta-prelayernorm", pad_token_id=1, type_vocab_size=1)
    trace = read(pipeline, figure_2)
    with pytest.raises(EncoderError, match="doesn't compute its attention as softmax"):
        attention_arithmetic(pipeline.reader, trace, 0, 2, 1, 0, 1)


def test_a_trace_without_states_says_how_to_make_one(bert, figure_2):
    trace = bert(TIM_COOK, graph=figure_2)
    with pytest.raises(OptionError, match="attentions=True, hidden_states=True"):
        attention_arithmetic(bert.reader, trace, 0, 1, 1, 0, 0)


@pytest.mark.parametrize(
    ("name", "place"), [("row", 0), ("layer", 1), ("head", 2), ("query", 3), ("key", 4)]
)
@pytest.mark.parametrize("value", [-1, 99])
def test_a_number_out_of_range_is_named(bert, trace, name, place, value):
    numbers = [0, 1, 1, 0, 0]
    numbers[place] = value
    with pytest.raises(OptionError, match=f"{name} is {value}, expected"):
        attention_arithmetic(bert.reader, trace, *numbers)
