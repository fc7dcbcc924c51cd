"""Shapley values, against the mean over all orders; their sum, their interval, their seeds."""

import json
import tracemalloc
from itertools import combinations, permutations

import numpy as np
import pytest
from core.explain.games import Game, scored
from explaining import GRAPH
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph
from kbert_core.errors import OptionError
from kbert_core.explain.case import Case, Target
from kbert_core.explain.effects import effects, shapley, stream_shapley


def sets_of(count):
    members = range(count)
    return [frozenset(s) for size in range(count + 1) for s in combinations(members, size)]


def random_game(count, seed=0):
    numbers = np.random.default_rng(seed).normal(size=2**count)
    return Game(dict(zip(sets_of(count), numbers.tolist(), strict=True)), count)


def by_hand(game):
    """What each piece changes when it comes in, over all orders."""
    orders = list(permutations(range(game.count)))
    means = [0.0] * game.count
    for order in orders:
        there = frozenset()
        for piece in order:
            means[piece] += (game.values[there | {piece}] - game.values[there]) / len(orders)
            there |= {piece}
    return means


def values(found):
    return [share.value for share in found.each]


@given(st.integers(0, 5), st.integers(0, 100))
def test_exact_values_are_the_mean_over_all_orders(count, seed):
    game = random_game(count, seed)
    found = shapley(game, exact=True)
    assert values(found) == pytest.approx(by_hand(game))
    assert found.runs == len(game.asked) == 2**count
    assert all((share.low, share.high) == (share.value, share.value) for share in found.each)


@given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 100))
def test_values_sum_to_the_whole_effect_however_few_orders_are_drawn(count, orders, seed):
    game = random_game(count, seed)
    found = shapley(game, exact=False, orders=orders, seed=seed)
    whole = game.values[frozenset(range(count))] - game.values[frozenset()]
    assert found.whole == pytest.approx(whole)
    assert sum(values(found)) == pytest.approx(whole)
    assert found.orders == found.total == orders + orders % 2


def test_values_of_a_text_sum_to_its_whole_effect(case):
    found = shapley(case)
    assert found.exact
    assert sum(values(found)) == pytest.approx(effects(case).whole, abs=1e-5)
    assert len(found.each) == len(GRAPH)


def test_pieces_that_do_the_same_share_alike_and_one_that_does_nothing_gets_nothing():
    together = Game({s: 6.0 * ({0, 1} <= s) + (2 in s) for s in sets_of(4)}, 4)
    assert values(shapley(together, exact=True)) == pytest.approx([3, 3, 1, 0])
    drawn = shapley(together, exact=False, orders=40)
    assert values(drawn)[2:] == pytest.approx([1, 0])


def test_drawn_values_come_near_the_exact_ones_and_their_interval_holds_them():
    game = random_game(7, seed=3)
    exact = by_hand(game)
    held = 0
    for seed in range(20):
        found = shapley(game, exact=False, orders=200, seed=seed)
        assert values(found) == pytest.approx(exact, abs=0.35)
        held += sum(
            share.low <= true <= share.high for share, true in zip(found.each, exact, strict=True)
        )
    assert 0.9 <= held / (20 * 7) <= 0.99  # 95 %


def test_an_order_and_its_reverse_are_exact_for_two_pieces():
    game = random_game(2)
    found = shapley(game, exact=False, orders=2)
    assert values(found) == pytest.approx(by_hand(game))
    assert found.each[0].low is None
    assert shapley(game, exact=False, orders=4).each[0].low == pytest.approx(found.each[0].value)


def test_the_seed_makes_the_draw():
    game = random_game(8)
    first = shapley(game, exact=False, orders=10, seed=1)
    assert shapley(game, exact=False, orders=10, seed=1) == first
    assert values(shapley(game, exact=False, orders=10, seed=2)) != values(first)


def test_no_set_is_run_twice():
    game = random_game(8)
    found = shapley(game, exact=False, orders=60)
    assert len(set(game.asked)) == len(game.asked) == found.runs


class Large(Game):
    """A game of many pieces that keeps nothing of what was run."""

    def with_only(self, pieces):
        return len(list(pieces))

    def run(self, variants):
        yield from (scored(float(size)) for size in variants)


def test_many_sets_of_many_pieces_take_little_memory():
    shapley(Large({}, 7), exact=False, orders=4)  # what is imported once isn't counted
    tracemalloc.start()
    try:
        found = shapley(Large({}, 60), exact=False, orders=64)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.runs > 3600
    assert values(found) == pytest.approx([1.0] * 60)
    assert most < 1.5e6  # as sets they take 10 MB


def test_few_pieces_are_done_exactly_and_too_many_are_not():
    assert shapley(random_game(6)).exact
    assert not shapley(random_game(7), orders=2).exact
    with pytest.raises(OptionError, match=r"13 triples have 8,192 subsets"):
        shapley(Game({}, 13), exact=True)
    with pytest.raises(OptionError, match="0 orders"):
        shapley(random_game(7), orders=0)


def test_results_grow_and_their_first_say_the_whole():
    grown = list(stream_shapley(random_game(10), exact=False, orders=20))
    done = [found.orders for found in grown]
    assert done == sorted(done) and done[-1] == 20 and len(set(done)) > 3
    assert len({found.whole for found in grown}) == 1
    *before, last = stream_shapley(random_game(7), exact=True)
    assert len(before) == 4 and not any(found.each for found in before)
    assert len(last.each) == 7


def test_shapley_values_are_rows_plain_data_and_a_figure(ner, case):
    found = shapley(case, exact=False, orders=6)
    assert list(found.to_frame().columns) == [
        *("head", "relation", "tail", "mention", "value", "low", "high")
    ]
    data = json.loads(json.dumps(found.as_dict()))
    assert data["values"][0]["low"] == found.each[0].low
    (panel,) = found.figure().axes
    assert len(panel.patches) == 3
    nowhere = Case.of(ner, "患者", graph=KnowledgeGraph(), target=Target("O", 0, 2))
    nothing = shapley(nowhere)
    assert (nothing.each, nothing.whole) == ((), 0)
    nothing.figure()
