"""Differences join on identity; cells say why they are visible."""

import base64

import numpy as np
import pytest

from kbert_core import Ablation, Triple
from kbert_lab.lab.selection import Selection, marks_of
from kbert_lab.lab.views import matrix
from kbert_lab.lab.views.matrix import align, same_text
from kbert_lab.lab.views.why import why

FULL = Ablation()
TOKENS = "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]".split()


def index(word):
    return TOKENS.index(word)


def seen(*flats):
    """Who sees whom by the tree, of each."""
    return tuple(matrix.visible_view(flat, FULL).codes != matrix.HIDDEN for flat in flats)


def test_a_scene_aligned_with_itself_has_no_difference(graph, run):
    row = run(graph).rows[0]
    assert all(token.status == "same" for token in align(row, row))
    view = matrix.difference(row, row, seen(row, row))
    assert matrix.say_change(view) == "No difference: the two matrices are equal."
    weights = np.random.default_rng(0).random((len(row), len(row)))
    view = matrix.difference(row, row, seen(row, row), (weights, weights))
    assert matrix.say_change(view) == "No difference: the two matrices are equal."


def test_alignment_keeps_a_removed_branch_where_it_stood(graph, run):
    before = run(graph).rows[0]
    after = run(graph.remove(Triple("Tim Cook", "CEO", "Apple"))).rows[0]
    texts = [(token.text, token.status) for token in align(before, after)]
    assert texts[2:6] == [
        ("Cook", "same"),
        ("CEO", "removed"),
        ("Apple", "removed"),
        ("is", "same"),
    ]


def test_difference_marks_one_sided_tokens_and_nothing_else(graph, run):
    before = run(graph.remove(Triple("Tim Cook", "CEO", "Apple"))).rows[0]
    after = run(graph).rows[0]
    view = matrix.difference(before, after, seen(before, after))
    added = [token.status == "added" for token in view.tokens]
    touched = np.logical_or.outer(added, added)
    links = seen(before, after)[1] > 0  # the two new tokens see each other and their mention
    assert ((view.codes == matrix.ONLY_AFTER) == (touched & links)).all()
    assert set(np.unique(view.codes[touched & ~links])) == {matrix.HIDDEN}
    assert set(np.unique(view.codes[~touched])) <= {matrix.KEPT, matrix.HIDDEN}
    assert matrix.say_change(view) == f"{2 * 2 + 2 * 2 * 2} links more, 0 fewer."
    back = matrix.difference(after, before, seen(after, before))
    assert matrix.say_change(back) == "0 links more, 12 fewer."


def test_texts_that_differ_are_not_laid_over_each_other(graph, run):
    assert not same_text(run(graph).rows[0], run(graph, "Beijing now").rows[0])


def test_visible_view_agrees_with_the_visible_matrix(graph, run):
    for ablation in (FULL, Ablation(visible="all")):
        trace = run(graph, ablation=ablation)
        view = matrix.visible_view(trace.rows[0], ablation)
        assert ((view.codes != matrix.HIDDEN) == trace.visible[0].numpy()).all()
        for i in range(len(trace.rows[0])):
            for j in range(len(trace.rows[0])):
                said = why(trace.rows[0], i, j, ablation)
                assert ("may not attend" in said) != bool(trace.visible[0, i, j])


@pytest.mark.parametrize(
    ("row", "column", "said"),
    [
        ("Cook", "Apple", "“Cook” may attend to “Apple”: the branch “CEO Apple” hangs from"),
        ("Apple", "China", "“Apple” may not attend to “China”: the branch “CEO Apple” hangs from"),
        ("[CLS]", "Apple", "only through it, one layer later"),
        ("capital", "City", "branches of one mention don't see each other"),
        ("is", "now", "both are on the trunk"),
        ("CEO", "Apple", "both are on the branch “CEO Apple”"),
        ("now", "now", "it is the same token"),
    ],
)
def test_why_says_the_clause_that_decides(graph, run, row, column, said):
    flat = run(graph).rows[0]
    assert flat.tokens == TOKENS
    assert said in why(flat, index(row), index(column), FULL)


def test_why_names_the_ablation_where_only_it_opens_a_cell(graph, run):
    flat = run(graph).rows[0]
    said = why(flat, index("Apple"), index("China"), Ablation(visible="all"))
    assert "only because everything is visible in this ablation" in said


def test_leaving_specials_out_keeps_rows_and_columns_together(graph, run):
    flat = run(graph).rows[0]
    view = matrix.without_specials(matrix.visible_view(flat, FULL))
    assert [token.text for token in view.tokens] == TOKENS[1:-1]
    assert view.codes.shape == (12, 12)
    assert len(view.groups) == len(view.roles) == 12


def test_a_chosen_cell_is_found_again_after_an_insertion(graph, run):
    small = run(graph.remove(Triple("Tim Cook", "CEO", "Apple"))).rows[0]
    now = small.identities[small.tokens.index("now")]
    row = run(graph).rows[0]
    chosen = marks_of(row.identities, Selection().with_cell(now, now))
    data = matrix.visible_view(row, FULL).data(chosen)
    assert data["cell"] == [index("now"), index("now")]


def unpacked(view):
    """What the canvas makes of the cells: codes, and values where there are any."""
    raw = base64.b64decode(view.data()["cells"])
    size = (len(view.tokens),) * 2
    if view.categorical:
        return np.frombuffer(raw, np.uint8).reshape(size), None
    fine = np.frombuffer(raw, "<u2").reshape(size).astype(int)
    values = view.low + fine / matrix.FINE * (view.high - view.low)
    return np.where(fine > matrix.FINE, fine - matrix.FINE, 0), values


def test_the_canvas_gets_values_to_a_thousandth_of_a_per_cent_and_what_is_hidden(graph, run):
    flat = run(graph).rows[0]
    weights = np.random.default_rng(0).random((len(flat),) * 2).astype(np.float32)
    weights[matrix.visible_view(flat, FULL).codes == matrix.HIDDEN] = 0
    weights /= weights.sum(1, keepdims=True)
    kinds, values = unpacked(matrix.attention_view(flat, weights, *seen(flat)))
    (visible,) = seen(flat)
    assert ((kinds == matrix.HIDDEN) == ~visible).all()
    assert np.abs(values - weights)[visible].max() < 1e-5
    kinds, values = unpacked(matrix.visible_view(flat, FULL))
    assert values is None
    assert (kinds == matrix.visible_view(flat, FULL).codes).all()


def test_a_map_or_a_mean_of_maps_is_picked():
    maps = np.random.default_rng(0).random((2, 3, 5, 5)).astype(np.float16)
    exact = maps.astype(np.float32)
    assert np.allclose(matrix.picked(maps, 2, 3), exact[1, 2])
    assert np.allclose(matrix.picked(maps, 2, 0), exact[1].mean(0), atol=1e-6)
    assert np.allclose(matrix.picked(maps, 0, 3), exact[:, 2].mean(0), atol=1e-6)
    assert np.allclose(matrix.picked(maps, 0, 0), exact.mean((0, 1)), atol=1e-6)
    assert (matrix.picked(maps, 50, 70) == matrix.picked(maps, *maps.shape[:2])).all()
