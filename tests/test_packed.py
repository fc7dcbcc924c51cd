"""Several trees a row: none sees another, and each reads as if it were alone."""

from dataclasses import replace

import pytest
import torch
from conftest import FIGURE_2, TIM_COOK, tiny_config, tiny_tokenizer
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertModel

from kbert_core import (
    Ablation,
    KnowledgeGraph,
    MaskTransformer,
    WordPieces,
    collate,
    flatten,
    grow_tree,
    pack_trees,
)

GRAPH = KnowledgeGraph(FIGURE_2)
TOKENIZER = WordPieces(tiny_tokenizer())
PAD = TOKENIZER.pad_id
TEXTS = (TIM_COOK, "Beijing now", "Tim Cook is now", "now", "Beijing saw Tim Cook now")
ABLATIONS = [Ablation(p, v) for p in ("soft", "hard") for v in ("tree", "all")]
texts = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8)


def flat(text):
    return flatten(grow_tree([text], GRAPH), TOKENIZER)


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


def test_packing_leaves_hardly_a_position_empty():
    flats = [flat(TEXTS[i % len(TEXTS)]) for i in range(60)]
    packed = pack_trees(flats, max_length=120, pad_id=PAD)
    padded = collate(flats, pad_id=PAD)
    assert packed.batch.real.float().mean() > 0.9 > padded.real.float().mean()


def test_a_packed_batch_moves_whole():
    moved = pack_trees([flat("now")], max_length=20).batch.to("cpu")
    assert moved.tree_ids.tolist() == [[0] * len(flat("now"))]
