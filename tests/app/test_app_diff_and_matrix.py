"""Differences join on identity; cells say why they are visible."""

import numpy as np
import pytest

from app.view_models import matrix
from app.view_models.diff import align, same_text
from app.view_models.why import is_visible, why
from kbert_core import Ablation, Triple

FULL = Ablation()
TOKENS = "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]".split()


def index(word):
    return TOKENS.index(word)


def test_a_scene_aligned_with_itself_has_no_difference(graph, run):
    row = run(graph).rows[0]
    assert all(token.status == "same" for token in align(row, row))
    view = matrix.visible_difference(row, row, (FULL, FULL))
    assert matrix.largest_change(view) == 0
    weights = np.random.default_rng(0).random((len(row), len(row)))
    view = matrix.attention_difference(row, row, (weights, weights), (FULL, FULL))
    assert matrix.largest_change(view) == 0


def test_alignment_joins_what_stands_behind_an_inserted_branch(graph, run):
    before = run(graph.switch_off(Triple("Tim Cook", "CEO", "Apple"))).rows[0]
    after = run(graph).rows[0]
    joined = {token.text: token for token in align(before, after)}
    assert joined["Apple"].status == joined["CEO"].status == "added"
    assert joined["now"].status == joined["China"].status == "same"
    assert joined["now"].before == joined["now"].after - 2


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
    view = matrix.visible_difference(before, after, (FULL, FULL))
    added = [token.status == "added" for token in view.tokens]
    touched = np.logical_or.outer(added, added)
    assert (view.codes[touched] == matrix.ONLY_AFTER).all()
    assert set(np.unique(view.codes[~touched])) <= {matrix.KEPT, matrix.HIDDEN}


def test_texts_that_differ_are_not_laid_over_each_other(graph, run):
    assert not same_text(run(graph).rows[0], run(graph, "Beijing now").rows[0])


def test_visible_view_agrees_with_the_visible_matrix(graph, run):
    for ablation in (FULL, Ablation(visible="all")):
        trace = run(graph, ablation=ablation)
        view = matrix.visible_view(trace.rows[0], ablation)
        assert ((view.codes != matrix.HIDDEN) == trace.visible[0].numpy()).all()
        for i in range(len(trace.rows[0])):
            for j in range(len(trace.rows[0])):
                seen = is_visible(trace.rows[0], i, j, ablation)
                assert seen == bool(trace.visible[0, i, j])


@pytest.mark.parametrize(
    ("row", "column", "said"),
    [
        ("Cook", "Apple", "“Cook” may attend to “Apple”: the branch “CEO Apple” hangs from"),
        ("Apple", "China", "“Apple” may not attend to “China”: the branch “CEO Apple” hangs from"),
        ("[CLS]", "Apple", "only through it, a layer later"),
        ("capital", "City", "branches of one mention don't see each other"),
        ("is", "now", "both stand on the trunk"),
        ("CEO", "Apple", "both stand on the branch “CEO Apple”"),
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


def test_attention_of_hidden_cells_is_drawn_apart_from_small_values(graph, run):
    flat = run(graph).rows[0]
    view = matrix.attention_view(flat, np.zeros((len(flat),) * 2), FULL)
    assert view.codes[index("Apple"), index("China")] == matrix.HIDDEN
    assert view.codes[index("Apple"), index("CEO")] == 0


def test_leaving_specials_out_keeps_rows_and_columns_together(graph, run):
    flat = run(graph).rows[0]
    view = matrix.without_specials(matrix.visible_view(flat, FULL))
    assert [token.text for token in view.tokens] == TOKENS[1:-1]
    assert view.codes.shape == (12, 12)
    assert len(view.groups) == len(view.roles) == 12


def test_a_chosen_cell_is_found_again_after_an_insertion(graph, run):
    small = run(graph.remove(Triple("Tim Cook", "CEO", "Apple"))).rows[0]
    now = small.identities[small.tokens.index("now")]
    data = matrix.visible_view(run(graph).rows[0], FULL).data((now, now))
    assert data["cell"] == [index("now"), index("now")]
