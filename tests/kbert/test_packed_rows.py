"""Several trees a row: none sees another, and each reads as if it were alone."""

import copy
from dataclasses import replace

import pytest
import torch
from conftest import FIGURE_2, TIM_COOK, tiny_config, tiny_tokenizer
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from transformers import BertForTokenClassification, BertModel

from kbert_core import (
    Ablation,
    KnowledgeGraph,
    MaskTransformer,
    WordPieces,
    collate,
    flatten,
    grow_trees,
    pack_trees,
)
from kbert_core.kbert.visible import mask_mod

GRAPH = KnowledgeGraph(FIGURE_2)
TOKENIZER = WordPieces(tiny_tokenizer())
PAD = TOKENIZER.pad_id
TEXTS = (TIM_COOK, "Beijing now", "Tim Cook is now", "now", "Beijing saw Tim Cook now")
ABLATIONS = [Ablation(p, v) for p in ("soft", "hard") for v in ("tree", "all")]
texts = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8)


def flat(text):
    return flatten(grow_trees([text], GRAPH), TOKENIZER)[0]


@pytest.fixture(scope="module")
def runner():
    torch.manual_seed(0)
    return MaskTransformer(BertModel(tiny_config(max_position_embeddings=128)).eval())


@given(texts, st.integers(1, 150))
def test_every_tree_has_its_own_place_and_rows_keep_the_limit(chosen, limit):
    flats = [flat(text) for text in chosen]
    packed = pack_trees(flats, max_length=limit, pad_id=PAD)
    filled = torch.zeros_like(packed.batch.input_ids)
    for tree, (row, start, end) in zip(flats, packed.places, strict=True):
        assert packed.batch.input_ids[row, start:end].tolist() == list(tree.input_ids)
        assert packed.batch.soft_positions[row, start:end].tolist() == list(tree.soft_positions)
        filled[row, start:end] += 1
    assert torch.equal(filled == 1, packed.batch.real)
    assert torch.equal(packed.batch.tree_ids >= 0, packed.batch.real)
    assert packed.batch.input_ids.shape[1] <= max(limit, *map(len, flats))


@pytest.mark.parametrize("ablation", ABLATIONS, ids=str)
def test_a_packed_tree_reads_as_if_it_were_alone(runner, ablation):
    flats = [flat(text) for text in TEXTS]
    packed = pack_trees(flats, max_length=120, pad_id=PAD)
    assert len(packed.batch.input_ids) < len(flats)  # something shares a row
    states = packed.apart(runner(packed.batch, ablation=ablation)[0])
    for tree, state in zip(flats, states, strict=True):
        alone = runner(collate([tree], pad_id=PAD), ablation=ablation)[0][0]
        assert torch.allclose(state, alone, atol=1e-5)


@pytest.mark.parametrize("ablation", ABLATIONS, ids=str)
def test_packed_trees_train_as_the_same_trees_do_in_rows_of_their_own(ablation):
    torch.manual_seed(0)
    config = tiny_config(max_position_embeddings=128, num_labels=3)
    runner = MaskTransformer(BertForTokenClassification(config).train())
    for module in runner.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    flats = [flat(text) for text in TEXTS]
    labels = [
        torch.where(torch.tensor(tree.branch_ids) == 0, torch.randint(3, (len(tree),)), -100)
        for tree in flats
    ]

    def trained(batch, places):
        wanted = torch.full_like(batch.input_ids, -100)
        for (row, start, end), of_tree in zip(places, labels, strict=True):
            wanted[row, start:end] = of_tree
        runner.model.zero_grad()
        loss = runner.model(**runner.inputs(batch, ablation=ablation), labels=wanted).loss
        loss.backward()
        grads = {
            n: p.grad.clone() for n, p in runner.model.named_parameters() if p.grad is not None
        }
        return loss.item(), grads

    packed = pack_trees(flats, max_length=120, pad_id=PAD)
    assert len(packed.batch.input_ids) < len(flats)
    alone = [(row, 0, len(tree)) for row, tree in enumerate(flats)]
    loss, grads = trained(collate(flats, pad_id=PAD), alone)
    packed_loss, packed_grads = trained(packed.batch, packed.places)
    assert packed_loss == pytest.approx(loss, rel=1e-4)
    assert packed_grads.keys() == grads.keys()
    near_zero = 1e-6 * max(grad.abs().max().item() for grad in grads.values())
    for name, grad in grads.items():
        torch.testing.assert_close(packed_grads[name], grad, rtol=1e-4, atol=near_zero)


@pytest.mark.parametrize("ablation", ABLATIONS, ids=str)
def test_no_tree_of_a_row_has_any_influence_on_another(runner, ablation):
    flats = [flat(TIM_COOK), flat("Beijing now"), flat("now")]
    packed = pack_trees(flats, max_length=200, pad_id=PAD)
    before = packed.apart(runner(packed.batch, ablation=ablation)[0])
    for changed, (row, start, end) in enumerate(packed.places):
        ids = packed.batch.input_ids.clone()
        ids[row, start:end] = (ids[row, start:end] + 7) % 40
        after = packed.apart(runner(replace(packed.batch, input_ids=ids), ablation=ablation)[0])
        for other in range(len(flats)):
            equal = torch.equal(before[other], after[other])
            assert equal == (other != changed)


@pytest.mark.parametrize("ablation", ABLATIONS, ids=str)
def test_flex_attention_is_asked_for_the_cells_of_the_visible_matrix(ablation):
    packed = pack_trees([flat(text) for text in TEXTS], max_length=40, pad_id=PAD).batch
    for batch in (packed, collate([flat(text) for text in TEXTS], pad_id=PAD)):
        rows, length = batch.input_ids.shape
        sees = mask_mod(*ablation.seen_by(batch))
        cells = [torch.arange(n) for n in (rows, length, length)]
        b, q, k = torch.meshgrid(*cells, indexing="ij")
        assert torch.equal(sees(b, torch.tensor(0), q, k), ablation.visible_in(batch))


@pytest.mark.parametrize("ablation", ABLATIONS, ids=str)
def test_flex_attention_gives_the_same_states_as_the_dense_matrix(runner, ablation, monkeypatch):
    """On the CPU it isn't compiled: that takes minutes, and a compiler."""
    wrapped = "transformers.integrations.flex_attention.WrappedFlexAttention.__call__"
    monkeypatch.setattr(wrapped, lambda _: flex_attention)
    debug = "torch.nn.attention.flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"
    monkeypatch.setattr(debug, True)
    flats = [flat(text) for text in TEXTS]
    flex = MaskTransformer(copy.deepcopy(runner.model))
    flex.model.set_attn_implementation("flex_attention")
    assert flex.attention == "flex_attention"
    for batch in (collate(flats, pad_id=PAD), pack_trees(flats, max_length=40, pad_id=PAD).batch):
        assert isinstance(flex.inputs(batch, ablation=ablation)["attention_mask"], BlockMask)
        by_blocks = flex(batch, ablation=ablation)[0]
        dense = runner(batch, ablation=ablation)[0]
        torch.testing.assert_close(by_blocks[batch.real], dense[batch.real], atol=1e-5, rtol=1e-4)
    one = collate(flats[:1], pad_id=PAD)
    assert len(flex(one, attentions=True).attentions) == flex.layer_count


def test_one_long_tree_makes_all_rows_as_long_and_they_are_filled():
    flats = [flat(" ".join(["now"] * 60)), *(flat(TEXTS[i % len(TEXTS)]) for i in range(40))]
    packed = pack_trees(flats, max_length=20, pad_id=PAD)
    assert packed.batch.input_ids.shape[1] == len(flats[0])
    assert packed.batch.real.float().mean() > 0.9


def test_packing_leaves_hardly_a_position_empty():
    flats = [flat(TEXTS[i % len(TEXTS)]) for i in range(60)]
    packed = pack_trees(flats, max_length=120, pad_id=PAD)
    padded = collate(flats, pad_id=PAD)
    assert packed.batch.real.float().mean() > 0.9 > padded.real.float().mean()


def test_a_packed_batch_moves_whole():
    moved = pack_trees([flat("now")], max_length=20).batch.to("cpu")
    assert moved.tree_ids.tolist() == [[0] * len(flat("now"))]
