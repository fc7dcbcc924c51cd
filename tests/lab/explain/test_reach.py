"""Reachability: whose information can stand in whose state after how many layers."""

import random
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from slow_trees import random_scene, slowly_flattened

from kbert_core import collate, visible_matrix
from kbert_core.errors import ShapeError
from kbert_lab.explain.influence import NEVER, reach

CLS, TIM, COOK, CEO, APPLE, IS, VISITING, BEIJING, CAPITAL, CHINA, IS_A, CITY, NOW, SEP = range(14)


def seen_in(flat):
    batch = collate([flat])
    return visible_matrix(batch.branch_ids, batch.anchor_ids)[0]


def walked(visible, source):
    """A walk by hand: who has heard, layer by layer; a token tells those that see it."""
    heard = {source}
    layers = [set(heard)]
    for matrix in visible:
        told = set()
        for token in range(len(matrix)):
            for other in heard:
                if matrix[token][other]:
                    told.add(token)
        heard = heard | told
        layers.append(set(heard))
    return layers


def test_reach_in_figure_2_takes_a_branch_to_its_mention_and_then_to_the_trunk(tim_cook):
    first = reach([seen_in(tim_cook)] * 3).first
    assert [int(first[token, CITY]) for token in (CITY, IS_A, BEIJING)] == [0, 1, 1]
    assert [int(first[token, CITY]) for token in (CLS, TIM, COOK, IS, NOW, SEP)] == [2] * 6
    assert [int(first[token, CITY]) for token in (CAPITAL, CHINA)] == [2, 2]  # by their mention
    assert [int(first[token, CITY]) for token in (CEO, APPLE)] == [3, 3]  # by way of the trunk


def test_reach_before_the_first_layer_is_a_tokens_own(tim_cook):
    found = reach([seen_in(tim_cook)] * 2)
    assert torch.equal(found.by_layer[0], torch.eye(14, dtype=torch.bool))
    assert found.into(CLS)[1].tolist() == seen_in(tim_cook)[CLS].tolist()
    assert found.layers == 2


def test_way_names_the_stations_of_a_quickest_path(tim_cook):
    found = reach([seen_in(tim_cook)] * 3)
    assert found.way(CITY, CLS) == (CITY, BEIJING, CLS)
    assert found.way(CLS, CLS) == (CLS,)
    source, mention, other, there = found.way(CITY, APPLE)
    assert (source, mention, there) == (CITY, BEIJING, APPLE)
    assert other in (TIM, COOK)


def test_reach_with_a_blocked_link_in_one_layer_comes_a_layer_later(tim_cook):
    visible = seen_in(tim_cook)
    blocked = visible.clone()
    blocked[BEIJING, [IS_A, CITY]] = False
    found = reach([blocked, visible, visible])
    assert [int(found.first[token, CITY]) for token in (IS_A, BEIJING, CLS)] == [1, 2, 3]
    nowhere = reach([blocked] * 3)
    assert int(nowhere.first[CLS, CITY]) == NEVER
    assert nowhere.way(CITY, CLS) == ()


def test_reach_where_everything_is_visible_is_everywhere_after_one_layer():
    found = reach([torch.ones(5, 5, dtype=torch.bool)] * 4)
    assert found.by_layer[1:].all()


@given(st.integers(0, 10_000), st.integers(1, 2), st.integers(1, 4))
def test_reach_in_random_trees_equals_a_walk(seed, sentences, layers):
    visible = slowly_flattened(random_scene(random.Random(seed), sentences), special=True).visible
    if not visible:
        return
    found = reach([torch.tensor(visible)] * layers)
    for source in range(0, len(visible), 3):
        expected = walked([visible] * layers, source)
        for layer in range(layers + 1):
            got = set(found.by_layer[layer, :, source].nonzero()[:, 0].tolist())
            assert got == expected[layer]


@given(st.integers(0, 10_000))
def test_reach_of_layers_that_differ_equals_a_walk_and_ways_can_be_walked(seed):
    dice = random.Random(seed)
    size = dice.randint(1, 7)
    layers = [
        [[i == j or dice.random() < 0.25 for j in range(size)] for i in range(size)]
        for _ in range(dice.randint(1, 4))
    ]
    found = reach([torch.tensor(layer) for layer in layers])
    for source in range(size):
        expected = walked(layers, source)
        for layer, heard in enumerate(expected):
            assert set(found.by_layer[layer, :, source].nonzero()[:, 0].tolist()) == heard
        for token in range(size):
            way = found.way(source, token)
            first = next((n for n, heard in enumerate(expected) if token in heard), None)
            assert len(way) == (0 if first is None else first + 1)
            for number, (before, after) in enumerate(pairwise(way)):
                assert layers[number][after][before]
            assert not way or (way[0], way[-1]) == (source, token)


def test_reach_refuses_what_it_cant_multiply():
    with pytest.raises(ShapeError, match="expected one"):
        reach([torch.ones(2, 2, dtype=torch.bool), torch.ones(3, 3, dtype=torch.bool)])
