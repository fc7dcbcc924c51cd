"""Interventions: which cells they change, in which layers, and what idles."""

import json

import pytest
import torch
from conftest import FIGURE_2, TIM_COOK
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import (
    Ablation,
    Intervention,
    KnowledgeGraph,
    Tokens,
    Triple,
    Words,
    collate,
    flatten,
    grow_trees,
    visible_matrix,
)
from kbert_core.errors import OptionError, ShapeError
from kbert_core.kbert.interventions import (
    ALL,
    BRANCHES,
    CLS,
    PRESETS,
    TRUNK,
    intervene,
)

WORDS = "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]".split()
CEO, CAPITAL, IS_A = FIGURE_2
BEIJING = TIM_COOK.index("Beijing")
KINDS = (
    ALL,
    TRUNK,
    BRANCHES,
    CLS,
    Tokens("specials"),
    Tokens("mention", 0, 0),
    Tokens("mention", 0, BEIJING),
    Tokens("hung", 0, BEIJING),
    Tokens("branch", 0, 0, CEO),
    Tokens("branch", 0, BEIJING, IS_A),
    Tokens("branch", 0, BEIJING, CEO),  # hangs elsewhere
    Tokens("token", identity=("trunk", 0, 3)),
    Tokens("token", identity=("branch", 0, BEIJING, CAPITAL, 1)),
    Tokens("token", identity=("trunk", 0, 99)),
)


def words_of(tokens, row):
    return [row.tokens[index] for index in tokens.among(row)]


@pytest.fixture
def visible(tim_cook):
    batch = collate([tim_cook])
    return visible_matrix(batch.branch_ids, batch.anchor_ids)


def cells(matrix):
    """The visible cells of one matrix, by words."""
    return {(WORDS[i], WORDS[j]) for i, j in matrix[0].nonzero().tolist()}


# Which tokens


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (ALL, WORDS),
        (TRUNK, "[CLS] Tim Cook is visiting Beijing now [SEP]".split()),
        (BRANCHES, "CEO Apple capital China is_a City".split()),
        (Tokens("specials"), ["[CLS]", "[SEP]"]),
        (CLS, ["[CLS]"]),
        (Tokens("mention", 0, 0), ["Tim", "Cook"]),
        (Tokens("hung", 0, BEIJING), "capital China is_a City".split()),
        (Tokens("branch", 0, BEIJING, IS_A), ["is_a", "City"]),
        (Tokens("branch", 0, 0, IS_A), []),
        (Tokens("mention", 0, 4), []),
        (Tokens("mention", 1, 0), []),
        (Tokens("token", identity=("trunk", 0, 2)), ["is"]),
        (Tokens("token", identity=("branch", 0, 0, CEO, 1)), ["Apple"]),
        (Tokens("token", identity=("branch", 0, 0, IS_A, 1)), []),
    ],
)
def test_tokens_are_found_by_what_they_are(tim_cook, tokens, expected):
    assert tim_cook.tokens == WORDS
    assert words_of(tokens, tim_cook) == expected


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Tokens("leaf"), "kind is 'leaf', expected one of all, trunk"),
        (lambda: Tokens("branch"), "kind 'branch' were given no triple"),
        (lambda: Tokens("token"), "kind 'token' were given no identity"),
        (lambda: Intervention("cut", ALL, ALL), "action is 'cut', expected one of block, open"),
        (lambda: Intervention("block", ALL, ALL, layers=(2, 0)), "for layer 0, and layers count"),
    ],
)
def test_what_is_no_intervention_is_refused(made, said):
    with pytest.raises(OptionError, match=said):
        made()


# Which cells


def slow_layers(visible, rows, interventions, layer_count):
    """Cell by cell, from the tokens' identities."""
    made = []
    for layer in range(1, layer_count + 1):
        matrix = visible.clone()
        for one in interventions:
            if one.layers and layer not in one.layers:
                continue
            for number, row in enumerate(rows):
                for i in range(len(row)):
                    for j in range(len(row)):
                        named = belongs(one.seer, row, i) and belongs(one.seen, row, j)
                        back = belongs(one.seer, row, j) and belongs(one.seen, row, i)
                        if i != j and (named or (one.both and back)):
                            matrix[number, i, j] = one.action == "open"
        made.append(matrix)
    return made


def belongs(tokens, row, index):
    name = row.identities[index]
    anchor = row.anchor_ids[index]
    mention = row.tree.nodes[anchor - 1].mention if anchor else None
    place = (mention.sentence, mention.start) if mention else None
    here = place == (tokens.sentence, tokens.start)
    return {
        "all": True,
        "trunk": name[0] != "branch",
        "branches": name[0] == "branch",
        "specials": name[0] == "special",
        "mention": name[0] == "trunk" and here,
        "hung": name[0] == "branch" and here,
        "branch": name[0] == "branch" and here and name[3] == tokens.triple,
        "token": name == tokens.identity,
    }[tokens.kind]


some = st.builds(
    Intervention,
    st.sampled_from(["block", "open"]),
    st.sampled_from(KINDS),
    st.sampled_from(KINDS),
    st.booleans(),
    st.sets(st.integers(1, 3)).map(tuple),
)


@given(interventions=st.lists(some, max_size=4), everything=st.booleans())
def test_layers_are_those_of_a_slow_second_implementation(figure_2, interventions, everything):
    graphs = (figure_2, figure_2.remove(CAPITAL), KnowledgeGraph())
    rows = [flatten(grow_trees([TIM_COOK], graph), Words(special=True))[0] for graph in graphs]
    batch = collate(rows)
    visible = Ablation(visible="all" if everything else "tree").visible_in(batch)
    given = visible.clone()
    made = intervene(visible, rows, interventions, 3)
    assert visible.equal(given)
    slow = slow_layers(visible, rows, interventions, 3)
    for layer, other in zip(made.layers, slow, strict=True):
        assert layer.equal(other)
        assert layer.diagonal(dim1=1, dim2=2).all()  # a token always sees itself
        padding = ~batch.real
        touches = padding[:, :, None] | padding[:, None, :]
        assert layer[touches].equal(visible[touches])
    same = [i for i, a in enumerate(made.layers) for b in made.layers[:i] if a.equal(b)]
    assert all(any(made.layers[i] is b for b in made.layers[:i]) for i in same)


@given(interventions=st.lists(some, max_size=4))
def test_leaving_the_idle_ones_out_changes_nothing(figure_2, interventions):
    row = flatten(grow_trees([TIM_COOK], figure_2), Words(special=True))[0]
    batch = collate([row])
    visible = visible_matrix(batch.branch_ids, batch.anchor_ids)
    made = intervene(visible, [row], interventions, 3)
    working = [one for one, cells in zip(interventions, made.changed, strict=True) if cells]
    if len(set(interventions)) == len(interventions):
        again = intervene(visible, [row], working, 3)
        assert all(a.equal(b) for a, b in zip(made.layers, again.layers, strict=True))
        assert all(again.changed)


def test_a_layer_that_is_not_there_is_refused(tim_cook, visible):
    with pytest.raises(OptionError, match=r"for layer 4, and the encoder has 3. Name layers from"):
        intervene(visible, [tim_cook], [Intervention("block", ALL, ALL, layers=(4,))], 3)


def test_a_matrix_of_other_trees_is_refused(tim_cook, visible):
    for rows in ([], [tim_cook, tim_cook]):
        with pytest.raises(ShapeError, match=f"there are {len(rows)} flat trees"):
            intervene(visible, rows, (), 1)
    with pytest.raises(ShapeError, match="of up to 14 tokens"):
        intervene(visible[:, :9, :9], [tim_cook], (), 1)


# Presets


def test_presets_do_what_their_names_say(tim_cook, visible):
    def after(name):
        return cells(intervene(visible, [tim_cook], PRESETS[name], 1).layers[0])

    trunk, branches = words_of(TRUNK, tim_cook), words_of(BRANCHES, tim_cook)
    across = {(a, b) for a in trunk for b in branches}
    back = {(b, a) for a, b in across}
    assert not after("no_link") & (across | back)
    assert after("no_link") == cells(visible) - across - back
    assert after("everything") == cells(Ablation(visible="all").visible_in(collate([tim_cook])))
    assert after("whole_link") == cells(visible) | across | back
    assert after("branches_alone") == cells(visible) - back
    blind = intervene(
        visible, [tim_cook], [*PRESETS["everything"], *PRESETS["cls_blind"]], 1
    ).layers
    assert cells(torch.ones_like(visible)) - cells(blind[0]) == {("[CLS]", b) for b in branches}


# As plain data


@given(interventions=st.lists(some, max_size=3))
def test_plain_data_is_read_back(interventions):
    data = json.loads(json.dumps([one.as_dict() for one in interventions]))
    assert [Intervention.from_dict(item) for item in data] == interventions


EVERY = {"kind": "all"}


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"action": "block"},
        {"action": ["open"], "seer": EVERY, "seen": EVERY},
        {"action": "block", "seer": EVERY, "seen": "all"},
        {"action": "block", "seer": EVERY, "seen": {"kind": "branch", "triple": "abc"}},
        {"action": "block", "seer": EVERY, "seen": {"kind": "branch", "triple": [1, 2, 3]}},
        {"action": "block", "seer": EVERY, "seen": {"kind": "mention", "start": "0"}},
        {"action": "block", "seer": EVERY, "seen": {"kind": "token", "identity": [None]}},
        {"action": "open", "seer": EVERY, "seen": EVERY, "layers": ["1"]},
        {"action": "open", "seer": EVERY, "seen": EVERY, "layers": 3},
        {"action": "open", "seer": EVERY, "seen": EVERY, "both": "no"},
    ],
)
def test_plain_data_that_is_no_intervention_is_refused(data):
    with pytest.raises(OptionError):
        Intervention.from_dict(data)


def test_what_is_tied_to_a_text_says_so():
    apple = Tokens("token", identity=("branch", 0, 0, Triple("a", "b", "c"), 1))
    assert Intervention("block", TRUNK, apple).tied_to_text
    assert Intervention("block", Tokens("mention", 0, 0), BRANCHES).tied_to_text
    assert not any(one.tied_to_text for made in PRESETS.values() for one in made)
