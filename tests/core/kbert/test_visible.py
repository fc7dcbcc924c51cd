"""The visible matrix (Eq. 3): Figure 2 by hand, padding, reasons, FlexAttention."""

import copy
import random

import pytest
import torch
from conftest import FIGURE_2, tiny_config, tiny_tokenizer
from slow_trees import random_scene
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from transformers import BertModel

from kbert_core import (
    Ablation,
    InjectionOptions,
    KnowledgeGraph,
    MaskTransformer,
    Visibility,
    WordPieces,
    Words,
    collate,
    flatten,
    grow_trees,
    visible_matrix,
    why_visible,
)
from kbert_core.errors import OptionError, ShapeError
from kbert_core.kbert.visible import mask_mod
from kbert_core.layers import additive_mask

ABLATIONS = [Ablation(p, v) for p in ("soft", "hard") for v in ("tree", "all")]

CLS, TIM, COOK, CEO, APPLE, IS, VISITING, BEIJING, CAPITAL, CHINA, IS_A, CITY, NOW, SEP = range(14)

# Rows and columns: [CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]
FIGURE_2_MATRIX = """
    1 1 1 0 0 1 1 1 0 0 0 0 1 1
    1 1 1 1 1 1 1 1 0 0 0 0 1 1
    1 1 1 1 1 1 1 1 0 0 0 0 1 1
    0 1 1 1 1 0 0 0 0 0 0 0 0 0
    0 1 1 1 1 0 0 0 0 0 0 0 0 0
    1 1 1 0 0 1 1 1 0 0 0 0 1 1
    1 1 1 0 0 1 1 1 0 0 0 0 1 1
    1 1 1 0 0 1 1 1 1 1 1 1 1 1
    0 0 0 0 0 0 0 1 1 1 0 0 0 0
    0 0 0 0 0 0 0 1 1 1 0 0 0 0
    0 0 0 0 0 0 0 1 0 0 1 1 0 0
    0 0 0 0 0 0 0 1 0 0 1 1 0 0
    1 1 1 0 0 1 1 1 0 0 0 0 1 1
    1 1 1 0 0 1 1 1 0 0 0 0 1 1
"""
BY_HAND = [[cell == "1" for cell in row.split()] for row in FIGURE_2_MATRIX.strip().split("\n")]


def matrix_of(*flats):
    batch = collate(flats)
    return visible_matrix(batch.branch_ids, batch.anchor_ids)


def test_visible_matrix_of_figure_2_is_the_one_by_hand(tim_cook):
    assert matrix_of(tim_cook)[0].tolist() == BY_HAND


def test_visible_matrix_keeps_two_mentions_of_one_entity_apart(figure_2):
    flat = flatten(grow_trees(["Beijing Beijing"], figure_2), Words())[0]
    visible = matrix_of(flat)[0]
    first, second = 0, 5
    assert visible[first, second]
    assert visible[first, 1:5].all()
    assert not visible[first, 6:].any()
    assert not visible[second, 1:5].any()


def test_codes_of_different_shape_are_refused():
    with pytest.raises(ShapeError, match=r"branch_ids has shape \(1, 3\) .* \(1, 2\)"):
        visible_matrix(torch.zeros(1, 3), torch.zeros(1, 2))
    with pytest.raises(ShapeError, match=r"expected the same \(B, N\)"):
        visible_matrix(torch.zeros(1, 3), torch.zeros(1, 3), torch.zeros(2, 3))


def test_additive_mask_is_zero_where_visible_and_least_where_not():
    visible = torch.tensor([[[True, False], [False, True]]])
    for dtype in (torch.float32, torch.bfloat16):
        mask = additive_mask(visible, dtype)
        least = torch.finfo(dtype).min
        assert mask.shape == (1, 1, 2, 2)
        assert mask.dtype == dtype
        assert mask[0, 0].tolist() == [[0, least], [least, 0]]


def random_flats(dice, count):
    for _ in range(count):
        scene = random_scene(dice, dice.randint(1, 2))
        tree = grow_trees([scene.texts], scene.graph, InjectionOptions(max_triples=9))[0]
        yield flatten([tree], Words(special=True))[0]


def test_reason_for_a_cell_agrees_with_the_matrix_on_random_trees():
    flats = list(random_flats(random.Random(2), 40))
    batch = collate(flats)
    visible = visible_matrix(batch.branch_ids, batch.anchor_ids)
    met = set()
    for number in range(len(flats)):
        codes = list(
            zip(batch.branch_ids[number].tolist(), batch.anchor_ids[number].tolist(), strict=True)
        )
        for i, one in enumerate(codes):
            for j, other in enumerate(codes):
                reason = why_visible(*one, *other)
                met.add(reason)
                if reason is not Visibility.PADDING:
                    assert reason.visible == visible[number, i, j]
    assert met == set(Visibility)


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (CLS, NOW, Visibility.TRUNK),
        (CEO, APPLE, Visibility.SAME_BRANCH),
        (COOK, APPLE, Visibility.MENTION_AND_BRANCH),
        (CHINA, BEIJING, Visibility.MENTION_AND_BRANCH),
        (CHINA, CITY, Visibility.SIBLINGS),
        (APPLE, CHINA, Visibility.OTHER_MENTION),
        (APPLE, BEIJING, Visibility.OFF_MENTION),
        (IS, APPLE, Visibility.OFF_MENTION),
    ],
)
def test_reason_for_a_cell_of_figure_2(tim_cook, one, other, reason):
    codes = list(zip(tim_cook.branch_ids, tim_cook.anchor_ids, strict=True))
    assert why_visible(*codes[one], *codes[other]) is reason
    assert why_visible(*codes[other], *codes[one]) is reason
    assert reason.visible == BY_HAND[one][other]


def test_trees_packed_in_one_row_see_nothing_of_each_other():
    flats = list(random_flats(random.Random(3), 12))
    branch = torch.tensor([[code for flat in flats for code in flat.branch_ids]])
    anchor = torch.tensor([[code for flat in flats for code in flat.anchor_ids]])
    trees = torch.tensor([[number for number, flat in enumerate(flats) for _ in flat.branch_ids]])
    own = [matrix_of(flat)[0] for flat in flats]
    assert visible_matrix(branch, anchor, trees)[0].equal(torch.block_diag(*own).bool())
    trunk = torch.zeros_like(branch)
    assert visible_matrix(trunk, trunk, trees)[0].equal(trees[0][:, None] == trees[0][None, :])


def test_ablation_reads_hard_positions_and_everything_visible(tim_cook, figure_2):
    short = flatten(grow_trees(["Beijing"], figure_2), Words(special=True))[0]
    batch = collate([tim_cook, short])
    hard = Ablation(positions="hard").position_ids(batch)
    assert hard[0].tolist() == list(range(14))
    assert hard[1, : len(short)].tolist() == list(range(len(short)))
    assert Ablation().position_ids(batch).equal(batch.soft_positions)
    everywhere = Ablation(visible="all").visible_in(batch)
    assert everywhere.equal(batch.real[:, :, None] == batch.real[:, None, :])
    assert Ablation().visible_in(batch)[0].tolist() == BY_HAND


def test_ablation_reads_a_pair_as_one_segment(figure_2):
    (pair,) = flatten(grow_trees([["Tim Cook", "in Beijing"]], figure_2), Words(special=True))
    batch = collate([pair])
    assert Ablation().segment_ids(batch)[0].tolist() == [0] * 6 + [1] * 7
    assert not Ablation(segments="none").segment_ids(batch).any()


@pytest.mark.parametrize(
    ("part", "choices"),
    [("positions", "soft, hard"), ("visible", "tree, all"), ("segments", "sentences, none")],
)
def test_ablation_that_does_not_exist_is_refused(part, choices):
    with pytest.raises(OptionError, match=f"{part} is 'odd', expected one of {choices}"):
        Ablation(**{part: "odd"})


# FlexAttention


@pytest.fixture(scope="module")
def flats():
    texts = ("Tim Cook is visiting Beijing now", "Beijing now", "now", "Beijing saw Tim Cook now")
    return flatten(grow_trees(texts, KnowledgeGraph(FIGURE_2)), WordPieces(tiny_tokenizer()))


@pytest.mark.parametrize("ablation", ABLATIONS, ids=str)
def test_flex_attention_is_asked_for_the_cells_of_the_visible_matrix(flats, ablation):
    batch = collate(flats)
    rows, length = batch.input_ids.shape
    sees = mask_mod(*ablation.seen_by(batch))
    cells = [torch.arange(n) for n in (rows, length, length)]
    b, q, k = torch.meshgrid(*cells, indexing="ij")
    assert torch.equal(sees(b, torch.tensor(0), q, k), ablation.visible_in(batch))


@pytest.mark.parametrize("ablation", ABLATIONS, ids=str)
def test_flex_attention_gives_the_same_states_as_the_dense_matrix(flats, ablation, monkeypatch):
    """On the CPU it isn't compiled: that takes minutes, and a compiler."""
    wrapped = "transformers.integrations.flex_attention.WrappedFlexAttention.__call__"
    monkeypatch.setattr(wrapped, lambda _: flex_attention)
    debug = "torch.nn.attention.flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"
    monkeypatch.setattr(debug, True)
    refusing = "kbert_core.kbert.mask_transformer.check_flex_attention"
    monkeypatch.setattr(refusing, lambda _: None)  # it is refused as it is compiled
    torch.manual_seed(0)
    runner = MaskTransformer(BertModel(tiny_config(max_position_embeddings=128)).eval())
    flex = MaskTransformer(copy.deepcopy(runner.model))
    flex.model.set_attn_implementation("flex_attention")
    assert flex.attention == "flex_attention"
    batch = collate(flats)
    assert isinstance(flex.inputs(batch, ablation=ablation)["attention_mask"], BlockMask)
    by_blocks, dense = flex(batch, ablation=ablation)[0], runner(batch, ablation=ablation)[0]
    torch.testing.assert_close(by_blocks[batch.real], dense[batch.real], atol=1e-5, rtol=1e-4)
    one = collate(flats[:1])
    assert len(flex(one, attentions=True).attentions) == flex.layer_count
