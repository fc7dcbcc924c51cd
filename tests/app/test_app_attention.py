"""Attention looked at closely: all heads, a row, a triple's share, the arithmetic of a cell."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from kbert_core import Ablation, Triple
from kbert_lab.explain.attention import CellArithmetic
from kbert_lab.lab.selection import Selection
from kbert_lab.lab.views import heads, matrix, why

FULL = Ablation()
TOKENS = "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]".split()
CHINA = Triple("Beijing", "capital", "China")


def index(word):
    return TOKENS.index(word)


def seen(flat, ablation=FULL):
    """Who sees whom by the tree."""
    return matrix.visible_view(flat, ablation).codes != matrix.HIDDEN


def weights_of(flat, seed=0, ablation=FULL, maps=()):
    """Random attention that keeps to a visible matrix; rows sum to 1."""
    made = np.random.default_rng(seed).random((*maps, len(flat), len(flat)))
    made = np.where(seen(flat, ablation), made, 0)
    return made / made.sum(-1, keepdims=True)


# All heads


@given(count=some.integers(1, 120), seed=some.integers(0, 5))
def test_a_small_map_holds_the_largest_weight_of_each_square(count, seed):
    random = np.random.default_rng(seed)
    maps = random.random((2, 1, count, count)).astype(np.float16)
    open_cells = random.random((count, count)) < 0.7
    view = heads.heads_view(maps * open_cells, open_cells, range(count))
    side = -(-count // heads.MOST)
    size = -(-count // side)
    assert view.merged == side
    assert view.codes.shape == (2, 1, size, size)
    exact = (maps * open_cells).astype(np.float32)
    assert view.high == pytest.approx(float(exact.max()), abs=1e-6)
    for layer in range(2):
        for i in range(size):
            for j in range(size):
                square = np.s_[i * side : (i + 1) * side, j * side : (j + 1) * side]
                code = view.codes[layer, 0, i, j]
                assert (code == matrix.HIDDEN) == (not open_cells[square].any())
                if code != matrix.HIDDEN:
                    share = (code / (matrix.LEVELS - 1)) ** 2 * view.high
                    assert share == pytest.approx(float(exact[layer, 0][square].max()), abs=0.01)


def test_small_maps_leave_special_tokens_out_where_they_are_hidden(graph, run):
    flat = run(graph).rows[0]
    maps = weights_of(flat, maps=(3, 4))
    keep = matrix.places_drawn(flat.identities, specials=False)
    view = heads.heads_view(maps, seen(flat), keep)
    assert view.codes.shape == (3, 4, 12, 12)
    assert view.high == pytest.approx(maps[:, :, 1:-1, 1:-1].max())


# A row


def test_a_row_says_whom_it_sees_and_what_is_hidden(graph, run):
    flat = run(graph).rows[0]
    assert why.say_row(flat, index("Cook"), seen(flat)) == (
        "“Cook” sees 10 of 14 tokens: 8 of the trunk, the branch “CEO Apple”. "
        "Hidden from it: the branch “capital China”, the branch “is_a City”."
    )
    said = why.say_row(flat, index("China"), seen(flat))
    assert said.startswith("“China” sees 3 of 14 tokens: 1 of the trunk, the branch")
    assert "Hidden from it: 7 of the trunk, the branch “CEO Apple”" in said
    assert "Hidden" not in why.say_row(flat, index("China"), np.ones((14, 14), dtype=bool))


def test_a_row_with_attention_says_where_it_looks_most(graph, run):
    flat = run(graph).rows[0]
    weights, at = weights_of(flat), index("Beijing")
    first = int(weights[at].argmax())
    said = why.say_row(flat, at, seen(flat), weights)
    assert f"most to: “{flat.tokens[first]}” {100 * weights[at, first]:.1f} %, " in said


# A triple


# A cell


def cell(**changes):
    made = {"layer": 2, "head": 3, "query": 4, "key": 5, "size": 64, "dot": 8.0}
    made |= {"visible": True, "log_sum_exp": 2.0, "seen": 9, **changes}
    return CellArithmetic(**made)


def test_the_table_has_a_line_a_step():
    drawn = heads.table_html(cell())
    values = re.findall(r'<td class="kb-num">([^<]*)</td>', drawn)
    assert values == ["8.000", "1.000", "0", "2.000", "36.8 %"]
    assert "−∞" in heads.table_html(cell(visible=False))


def test_the_heads_that_read_a_branch_come_in_the_order_of_the_mentions_weight(run, graph):
    flat = run(graph).rows[0]
    branch = heads.branch_read(flat, CHINA)
    assert branch.branch.triple == CHINA
    assert heads.branch_read(flat, Triple("no", "such", "one")) is flat.branches[0]
    mention = [i for i, name in enumerate(flat.tokens) if name == "Beijing"]
    maps = np.zeros((2, 3, len(flat), len(flat)), dtype=np.float16)
    for (layer, head), weight in {(1, 2): 0.5, (2, 3): 0.25, (2, 1): 0.125}.items():
        maps[layer - 1, head - 1, mention, branch.start : branch.end] = weight
    visible = seen(flat)
    found = heads.ranked(heads.shares_of(maps, visible, branch))
    size = branch.end - branch.start
    assert found[:3] == [(1, 2, 0.5 * size), (2, 3, 0.25 * size), (2, 1, 0.125 * size)]
    assert heads.map_shown(Selection(), maps, visible, flat)[0] in (1, 2)
    assert heads.map_shown(Selection(layer=2, head=0), maps, visible, flat) == (2, 0)
