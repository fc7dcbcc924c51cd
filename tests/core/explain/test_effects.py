"""Effects of triples, interactions of two, Shapley values: against runs of their own."""

import dataclasses
import json
from dataclasses import dataclass, field
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
import torch
from explaining import DISEASE, GRAPH, HAS_SYMPTOM, IS_CURE, IS_DISEASE, TEXT
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import InjectionOptions, KnowledgeGraph, Pipeline, Triple, load_graph
from kbert_core.errors import OptionError
from kbert_core.explain.case import Case, Fact, Outcome, Scored, Target
from kbert_core.explain.effects import (
    effects,
    interactions,
    shapley,
    stream_interactions,
    stream_shapley,
)

MODELS = Path(__file__).parents[3] / "models"
ALIAS = Triple("糖尿病", "别名", "多饮")


def of(found, triple):
    return next(effect for effect in found.each if effect.fact.triple == triple)


def test_deleting_a_triple_lets_the_next_one_move_up(ner, score):
    one = InjectionOptions(max_triples=1, tail_only=True)
    found = effects(Case.of(ner, TEXT, graph=GRAPH, target=DISEASE, options=one))
    first, cure = found.each
    assert (first.fact.triple, first.moved_up) == (IS_DISEASE, (HAS_SYMPTOM,))
    deleted = score(GRAPH.remove(IS_DISEASE), options=one)
    left_out = score(KnowledgeGraph([IS_CURE]), options=one)
    base = score(GRAPH, options=one)
    assert first.deleted_effect == pytest.approx(base - deleted, abs=1e-5)
    assert first.effect == pytest.approx(base - left_out, abs=1e-5)
    assert abs(first.effect - first.deleted_effect) > 1e-4
    assert (cure.moved_up, cure.deleted) == ((), cure.without)
    assert found.runs == 2 + 2 + 1  # nothing takes the cure's place, so that is one reading


def test_deleting_another_name_takes_its_mention_away(ner):
    graph = KnowledgeGraph([IS_DISEASE, ALIAS])
    found = effects(Case.of(ner, "糖尿病患者有多饮", graph=graph, target=Target("疾病", 6, 8)))
    assert of(found, ALIAS).moved_out == (IS_DISEASE,)
    assert of(found, ALIAS).moved_up == ()
    assert of(found, IS_DISEASE).moved_out == ()


def test_a_fact_of_one_mention_is_left_out_there_alone(ner):
    text = "糖尿病史糖尿病"
    case = Case.of(ner, text, graph=GRAPH, target=Target("疾病", 0, 3))
    both, apart = effects(case), effects(case, by_mention=True)
    assert [len(effect.mentions) for effect in both.each] == [2, 2]
    assert [(e.fact.node, e.mentions[0].start) for e in apart.each] == [
        (0, 0),
        (0, 0),
        (1, 4),
        (1, 4),
    ]
    assert all(effect.deleted is None and effect.deleted_effect is None for effect in apart.each)
    variant = case.without([Fact(IS_DISEASE, 1)])
    alone = next(case.run([variant])).score
    assert apart.each[2].without.score == pytest.approx(alone, abs=1e-5)
    assert abs(apart.each[2].effect - of(both, IS_DISEASE).effect) > 1e-4


def test_the_triple_that_says_what_epilepsy_is_flips_its_entity():
    model = Pipeline.from_pretrained(MODELS / "medical-ner-kbert", device="cpu")
    graph = load_graph(MODELS.parent / "demo_kgs" / "medical_zh.spo")
    found = effects(Case.of(model, "既往患癫痫多年", graph=graph))
    first = found.ranked[0]
    assert found.target == Target("Disease", 3, 5)
    assert first.fact.triple == Triple("癫痫", "类别", "疾病")
    assert first.flips and first.effect > 2
    assert found.flips and (found.base.answer, found.plain.answer) == ("Disease", "O")
    assert [effect.flips for effect in found.ranked[1:]] == [False]


def test_a_text_without_knowledge_has_no_effects(ner):
    found = effects(Case.of(ner, TEXT, graph=KnowledgeGraph(), target=DISEASE))
    assert (found.each, found.whole, found.flips) == ((), 0.0, False)
    assert found.to_frame().empty


def test_results_are_rows_plain_data_and_a_figure(case):
    found = effects(case)
    frame = found.to_frame()
    assert list(frame["tail"]) == ["疾病", "多饮", "治疗"]
    assert list(frame["effect"]) == [effect.effect for effect in found.each]
    data = json.loads(json.dumps(found.as_dict()))
    assert data["target"] == {"label": "疾病", "start": 3, "end": 6}
    assert data["effects"][2]["mentions"] == [
        {"text": "布洛芬", "sentence": 0, "start": 9, "end": 12}
    ]
    assert data["effects"][0]["without"]["answer"] == found.each[0].without.answer
    (panel,) = found.figure().axes
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert names == [
        f"{t.head} · {t.relation} · {t.tail}" for t in (e.fact.triple for e in found.ranked)
    ]


def test_a_figure_takes_any_name(case, tmp_path):
    hostile = Triple("$\\frac{", "_^<b>", "x" * 500)
    found = effects(case)
    odd = dataclasses.replace(
        found, each=(dataclasses.replace(found.each[0], fact=Fact(hostile)), *found.each[1:])
    )
    odd.figure().savefig(tmp_path / "odd.svg")
    drawn = (tmp_path / "odd.svg").read_text(encoding="utf-8")
    assert "x" * 100 not in drawn
    assert "<b>" not in drawn


def scored(score):
    return Scored(Outcome(score, ""), None, torch.zeros(0, 0))


@dataclass
class Game:
    """Scores of sets of facts, as a case would give them.

    Attributes:
        values: set of fact numbers → score.
        count: how many facts there are.
        asked: every set that was run, in order.
    """

    values: dict
    count: int
    asked: list = field(default_factory=list)
    sentences: tuple = ("a text",)
    target: Target = Target("good")

    @property
    def facts(self):
        return tuple(Fact(Triple("h", "r", str(n))) for n in range(self.count))

    def at_once(self):
        return 32

    def with_only(self, facts):
        return frozenset(int(fact.triple.tail) for fact in facts)

    def run(self, variants):
        for members in variants:
            self.asked.append(members)
            yield scored(self.values[members])


def test_interaction_is_what_two_triples_do_beyond_the_sum(case, score):
    found = interactions(case)
    assert [pair.facts for pair in found.each] == [
        (case.facts[0], case.facts[1]),
        (case.facts[0], case.facts[2]),
        (case.facts[1], case.facts[2]),
    ]
    for pair in found.each:
        a, b = (fact.triple for fact in pair.facts)
        neither = score(KnowledgeGraph(triple for triple in GRAPH if triple not in (a, b)))
        expected = score(GRAPH) - score(GRAPH.remove(a)) - score(GRAPH.remove(b)) + neither
        assert pair.value == pytest.approx(expected, abs=1e-5)
        assert abs(pair.value) > 1e-4
    assert found.runs == 1 + 3 + 3


@dataclass
class Pair(Game):
    """A game of two facts that are left out of a whole."""

    def without(self, facts):
        return frozenset(range(self.count)) - self.with_only(facts)


@pytest.mark.parametrize(("sign", "value"), [(1, -1), (-1, 1)])
def test_two_that_do_the_same_interact_against_their_own_sign(sign, value):
    """Each does by itself all that the two do: above zero where they lower the score."""
    scores = {frozenset(): 0, **{frozenset(s): sign for s in ([0], [1], [0, 1])}}
    *_, found = stream_interactions(Pair(scores, 2))
    assert [pair.value for pair in found.each] == [value]
    legend = [text.get_text() for text in found.figure().legends[0].get_texts()]
    assert legend == ["together above the sum", "together below the sum"]


def test_interactions_of_some_facts_leave_the_others_where_they_are(case):
    chosen = interactions(case, facts=case.facts[:2])
    assert [pair.value for pair in chosen.each] == pytest.approx(
        [interactions(case).each[0].value], abs=1e-5
    )
    assert interactions(case, facts=[Fact(IS_CURE)]).each == ()


def sets_of(count):
    members = range(count)
    return [frozenset(s) for size in range(count + 1) for s in combinations(members, size)]


def random_game(count, seed=0):
    numbers = np.random.default_rng(seed).normal(size=2**count)
    return Game(dict(zip(sets_of(count), numbers.tolist(), strict=True)), count)


def by_hand(game):
    """What each fact changes when it comes in, over all orders."""
    orders = list(permutations(range(game.count)))
    means = [0.0] * game.count
    for order in orders:
        there = frozenset()
        for fact in order:
            means[fact] += (game.values[there | {fact}] - game.values[there]) / len(orders)
            there |= {fact}
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


def test_few_facts_are_done_exactly_and_too_many_are_not():
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
