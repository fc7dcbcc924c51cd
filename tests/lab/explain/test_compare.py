"""Readings of one text side by side, and why two of them are equal."""

import json
from dataclasses import replace
from importlib import import_module

import pytest
import torch
from explaining import DISEASE, GRAPH, TEXT

from kbert_core import Ablation, InjectionOptions, Pipeline, Triple
from kbert_core.errors import OptionError
from kbert_core.explain.case import NOTHING, Case, Target
from kbert_core.kbert.interventions import BRANCHES, TRUNK, Intervention, Tokens
from kbert_lab.explain.compare import ALL, BERT, HARD, K_BERT, Why, ablations_of, compare
from kbert_lab.explain.influence import states_of


@pytest.fixture
def made(case):
    """BERT, K-BERT and its ablations of the sentence."""
    return compare(ablations_of(case), of=case)


def test_ablations_of_a_text_with_knowledge_are_all_different(made):
    assert [side.name for side in made.sides] == [BERT, K_BERT, HARD, ALL]
    assert [side.triples for side in made.sides] == [0, 3, 3, 3]
    assert len(made.pairs) == 6
    assert made.equal == ()
    assert not any(pair.same_input for pair in made.pairs)
    assert all(pair.largest > 1e-3 for pair in made.pairs)


def test_ablations_are_the_papers_however_the_case_was_read(ner, made):
    link = Intervention("block", Tokens("specials"), TRUNK)
    read = {"ablation": Ablation("hard", "all"), "interventions": (link,)}
    case = Case.of(ner, TEXT, graph=GRAPH, target=DISEASE, **read)
    again = compare(ablations_of(case), of=case)
    assert [side.reading.config.interventions for side in again.sides] == [()] * 4
    assert [side.outcome for side in again.sides] == [side.outcome for side in made.sides]
    assert again.sides[0].reading.config.ablation == Ablation()


def test_scores_are_those_of_each_reading_run_alone(ner, made):
    ways = (Ablation(), Ablation("hard", "tree"), Ablation("soft", "all"))
    for side, ablation in zip(made.sides[1:], ways, strict=True):
        alone = Case.of(ner, TEXT, graph=GRAPH, target=DISEASE, ablation=ablation)
        assert side.outcome.score == pytest.approx(alone.base.score, abs=1e-5)
    _, kbert, hard, _ = (side.outcome.score for side in made.sides)
    assert pair_of(made, K_BERT, HARD).score == pytest.approx(hard - kbert, abs=1e-6)


def test_difference_joins_tokens_by_what_they_are(case, made):
    branches = sum(len(row) for row in case.trace.rows) - len(TEXT) - 2
    plain = pair_of(made, BERT, K_BERT)
    assert (plain.only_one, plain.only_other) == (0, branches)
    assert (plain.cells, plain.moved) == (0, 0)  # what both have is as it was
    hard = pair_of(made, K_BERT, HARD)
    row = case.trace.rows[0]
    moved = sum(soft != place for place, soft in enumerate(row.soft_positions))
    assert (hard.only_one, hard.only_other, hard.cells, hard.moved) == (0, 0, 0, moved)
    everything = pair_of(made, K_BERT, ALL)
    hidden = len(row) ** 2 - int(case.trace.visible.sum())
    assert (everything.cells, everything.moved) == (hidden, 0)


@pytest.mark.parametrize("text", ["好转", "患者心电图检查"])
def test_without_a_triple_all_ablations_are_bert_and_the_states_prove_it(ner, text):
    case = Case.of(ner, text, graph=GRAPH, target=Target("疾病", 0, 2))
    made = compare(ablations_of(case), of=case)
    assert len(made.equal) == 6
    assert {pair.why for pair in made.pairs} == {Why.NO_BRANCH}
    assert all(pair.largest == 0 for pair in made.pairs)


def pair_of(made, one, other):
    return next(pair for pair in made.pairs if (pair.one, pair.other) == (one, other))


def read_as(case, **changes):
    config = replace(case.config, **changes)
    return replace(case.reading, config=config)


def test_two_graphs_that_say_the_same_of_a_text_are_equal(classifier):
    graphs = {
        "loaded": GRAPH,
        "elsewhere": GRAPH.add(Triple("心电图", "类别", "检查")),
        "here": GRAPH.add(Triple("布洛芬", "症状", "好")),
    }
    made = compare({n: Case.of(classifier, TEXT, graph=graph) for n, graph in graphs.items()})
    assert pair_of(made, "loaded", "elsewhere").why is Why.SAME_TRIPLES
    other = pair_of(made, "loaded", "here")
    assert (other.why, other.same_input, other.only_other) == (None, False, 3)


def test_an_ablation_that_changes_nothing_in_this_tree_is_equal(ner):
    """One mention that is all of the text but [CLS]: but for [CLS] and [SEP] all sees all."""
    only = {"options": InjectionOptions(1, tail_only=True), "target": Target("治疗", 0, 3)}
    case = Case.of(ner, "布洛芬", graph=GRAPH, **only)
    bare = read_as(case, ablation=Ablation("hard", "tree"))
    made = compare({"soft": case, "hard": bare}, of=case)
    assert made.pairs[0].moved == 1  # [SEP] alone
    assert made.pairs[0].why is None
    again = compare({"one": case, "two": case.reading}, of=case)
    assert again.pairs[0].why is Why.SAME_TRIPLES


def test_equal_is_said_only_where_the_states_are(ner, monkeypatch):
    case = Case.of(ner, "好转", graph=GRAPH, target=Target("疾病", 0, 2))
    noise = iter([0.0, 0.5, 0.0, 0.0])

    def shaken(*given):
        return (states + next(noise) for states in states_of(*given))

    monkeypatch.setattr(import_module("kbert_lab.explain.compare"), "states_of", shaken)
    made = compare(ablations_of(case), of=case)
    assert pair_of(made, BERT, K_BERT).same_input
    assert pair_of(made, BERT, K_BERT).why is None
    assert pair_of(made, BERT, K_BERT).largest == pytest.approx(0.5, abs=1e-5)
    assert pair_of(made, BERT, HARD).why is Why.NO_BRANCH


def test_two_models_are_never_called_equal(classifier, checkpoints):
    twin = Pipeline.from_pretrained(checkpoints["classify"], device="cpu")
    with torch.no_grad():
        twin.encoder.model.classifier.bias[0] += 1
    case = Case.of(classifier, "好转", graph=GRAPH)
    made = compare({"one": case, "twin": Case.of(twin, "好转", graph=GRAPH)})
    pair = made.pairs[0]
    assert (pair.why, pair.same_input, pair.largest) == (None, False, None)
    assert pair.score is not None
    assert 0 < pair.variation < 1
    assert made.target == case.target


def test_an_encoder_without_a_head_is_compared_by_its_states(checkpoints):
    encoder = Pipeline.from_pretrained(checkpoints["encoder"], device="cpu")
    case = Case.of(encoder, TEXT, graph=GRAPH, target=NOTHING)
    made = compare(ablations_of(case), of=case)
    assert made.target is None
    assert all(side.outcome is None for side in made.sides)
    assert pair_of(made, K_BERT, HARD).largest > 0
    bare = Case.of(encoder, "好转", graph=GRAPH, target=NOTHING)
    assert len(compare(ablations_of(bare), of=bare).equal) == 6


def test_windows_of_a_long_text_are_compared_one_by_one(ner):
    case = Case.of(ner, TEXT * 6, graph=GRAPH, target=DISEASE)
    made = compare({BERT: case.without_knowledge(), K_BERT: case}, of=case)
    branches = [placed for row in case.trace.rows for placed in row.branches]
    assert made.pairs[0].only_other == sum(placed.end - placed.start for placed in branches)


def test_compare_refuses_what_it_cant_put_side_by_side(case, ner):
    other = Case.of(ner, "好转", graph=GRAPH, target=Target("疾病", 0, 2))
    with pytest.raises(OptionError, match="Got 1 readings"):
        compare({"one": case})
    with pytest.raises(OptionError, match="Name the case"):
        compare({"one": case.reading, "two": case.reading})
    with pytest.raises(OptionError, match="of 2 different texts"):
        compare({"one": case, "two": other})


def test_comparison_becomes_a_table_json_and_a_picture(made):
    table = made.to_frame()
    assert next(zip(table.one, table.other, strict=True)) == (BERT, K_BERT)
    data = json.loads(json.dumps(made.as_dict()))
    assert [reading["name"] for reading in data["readings"]] == [BERT, K_BERT, HARD, ALL]
    assert data["differences"][0]["why"] is None
    assert len(made.figure().axes[0].patches) == 4


def test_interventions_are_compared_by_the_cells_they_change(case):
    idle = Intervention("block", Tokens("mention", start=0), BRANCHES)  # no mention is there
    row = case.trace.rows[0]
    link = Intervention("block", TRUNK, BRANCHES, layers=(2,))
    others = {"idle": idle, "cut": link}
    read = {name: read_as(case, interventions=(one,)) for name, one in others.items()}
    made = compare({"as it is": case, **read}, of=case)
    assert pair_of(made, "as it is", "idle").why is Why.SAME_MATRIX
    cut = pair_of(made, "as it is", "cut")
    branches = [i for i, branch in enumerate(row.branch_ids) if branch]
    seen = case.trace.visible[0]
    trunk = [i for i, branch in enumerate(row.branch_ids) if not branch]
    links = int(seen[trunk][:, branches].sum())
    assert (cut.why, cut.cells) == (None, 2 * links)
