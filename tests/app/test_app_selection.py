"""What is chosen: a value that outlives an edit, and what it marks in every panel."""

import re
from html import unescape

import pytest

from kbert_core import KnowledgeGraph, Triple
from kbert_lab.lab.selection import (
    MEAN,
    Marks,
    Selection,
    chosen_characters,
    identity_of,
    marks_of,
    say_selection,
    triple_of,
)
from kbert_lab.lab.views import tree

TOKENS = "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]".split()
APPLE = Triple("Tim Cook", "CEO", "Apple")
CHINA = Triple("Beijing", "capital", "China")


def identity(flat, word):
    return flat.identities[TOKENS.index(word)]


def words(places):
    return [TOKENS[i] for i in sorted(places)]


def marks(trace, selection):
    flat = trace.rows[0]
    assert flat.tokens == TOKENS
    return marks_of(flat.identities, selection, trace.visible[0].numpy())


def test_a_cell_brings_the_token_that_looks_and_a_token_lets_the_cell_go(graph, run):
    flat = run(graph).rows[0]
    cook, apple, now = (identity(flat, word) for word in ("Cook", "Apple", "now"))
    cell = Selection().with_cell(cook, apple)
    assert (cell.token, cell.cell) == (cook, (cook, apple))
    assert cell.with_token(now) == Selection(token=now)
    assert cell.with_token(None).empty


def test_a_token_of_a_branch_brings_its_triple_and_one_of_the_trunk_leaves_it(graph, run):
    flat = run(graph).rows[0]
    chosen = Selection().with_token(identity(flat, "CEO"))
    assert chosen.triple == APPLE == triple_of(identity(flat, "Apple"))
    assert chosen.with_token(identity(flat, "now")).triple == APPLE
    assert Selection().with_token(identity(flat, "now")).triple is None


@pytest.mark.parametrize(
    ("layer", "head", "shown"),
    [
        (None, MEAN, (4, MEAN)),
        (2, 3, (2, 3)),
        (MEAN, 12, (MEAN, 12)),
        (12, 13, (4, MEAN)),
    ],
)
def test_a_map_that_a_model_lacks_gives_way_to_its_last_layer_and_the_mean(layer, head, shown):
    assert Selection().with_map(layer, head).map_of(4, 12) == shown


def test_a_token_marks_whom_it_sees(graph, run):
    trace = run(graph)
    flat = trace.rows[0]
    trunk = "[CLS] Tim Cook is visiting Beijing now [SEP]".split()
    for word, seen in {
        "[CLS]": trunk,
        "Cook": "[CLS] Tim Cook CEO Apple is visiting Beijing now [SEP]".split(),
        "Apple": "Tim Cook CEO Apple".split(),
        "China": "Beijing capital China".split(),
    }.items():
        found = marks(trace, Selection().with_token(identity(flat, word)))
        assert TOKENS[found.token] == word
        assert words(found.seen) == seen


def test_a_triple_marks_its_branch_at_every_mention(graph, run):
    trace = run(graph, "Beijing and Beijing")
    found = marks_of(trace.rows[0].identities, Selection(triple=CHINA))
    assert [trace.rows[0].tokens[i] for i in found.branch] == ["capital", "China"] * 2
    assert (found.token, found.cell, found.seen) == (None, None, None)


def test_a_cell_is_marked_by_its_two_tokens_after_an_edit_too(graph, run):
    small = run(graph.remove(APPLE)).rows[0]
    names = [small.identities[small.tokens.index(word)] for word in ("Beijing", "now")]
    found = marks(run(graph), Selection().with_cell(*names))
    assert found.cell == (TOKENS.index("Beijing"), TOKENS.index("now"))
    gone = Selection().with_cell(names[0], identity(run(graph).rows[0], "Apple"))
    assert marks_of(small.identities, gone).cell is None
    assert marks_of(small.identities, gone).token == small.tokens.index("Beijing")


def test_the_tree_sets_off_what_is_chosen_and_what_is_hidden_from_it(graph, run):
    trace = run(graph)
    flat = trace.rows[0]
    chosen = Selection(triple=APPLE).with_cell(identity(flat, "Cook"), identity(flat, "Apple"))
    drawn = tree.tree_html(tree.tree_view(trace), marks(trace, chosen))
    classes = {
        flat.tokens[flat.identities.index(identity_of(unescape(name)))]: kinds.split()
        for kinds, name in re.findall(r'class="(kb-tok[^"]*)"[^>]*data-name="([^"]*)"', drawn)
    }
    assert list(classes) and set(classes) == set(TOKENS)
    with_class = {
        kind: [word for word in TOKENS if kind in classes[word]]
        for kind in ("kb-chosen", "kb-target", "kb-unseen")
    }
    assert with_class == {
        "kb-chosen": ["Cook"],
        "kb-target": ["Apple"],
        "kb-unseen": ["capital", "China", "is_a", "City"],
    }
    assert drawn.count("kb-picked") == 1
    assert drawn.count('aria-pressed="true"') == 1


def test_a_tree_with_nothing_chosen_sets_nothing_off(graph, run):
    drawn = tree.tree_html(tree.tree_view(run(graph)), Marks())
    for kind in ("kb-chosen", "kb-target", "kb-unseen", "kb-picked", 'aria-pressed="true"'):
        assert kind not in drawn
    assert drawn.count("data-name=") == len(TOKENS)
    assert drawn.count("data-switch=") == 3
    picture = tree.tree_html(tree.tree_view(run(graph)))
    assert 'role="img"' in picture
    assert "button" not in picture


def test_what_is_chosen_is_named(graph, run):
    flat = run(graph).rows[0]
    cook, apple = identity(flat, "Cook"), identity(flat, "Apple")
    assert say_selection(flat, Selection(triple=CHINA)) == "Chosen: (Beijing, capital, China)"
    assert say_selection(flat, Selection().with_cell(cook, apple)) == "Chosen: Cook → Apple"
    assert say_selection(flat, Selection().with_token(cook)).startswith("Chosen: Cook; faint")
    without = run(graph.remove(APPLE)).rows[0]
    said = say_selection(without, Selection().with_cell(cook, apple))
    assert said == "Chosen: Cook → not in this tree"


def test_the_text_below_the_prediction_is_marked_by_its_characters(graph, run):
    rows = run(graph).rows
    chosen = Selection(triple=APPLE).with_token(identity(rows[0], "now"))
    text = rows[0].tree.sentences[0]
    assert chosen_characters(rows, chosen) == {
        text.index("Tim"): "mention",
        text.index("Cook"): "mention",
        text.index("now"): "token",
    }
    assert chosen_characters(rows, Selection()) == {}
    assert chosen_characters(rows, Selection().with_token(identity(rows[0], "[CLS]"))) == {}


def test_tokens_and_triples_reach_the_tree_escaped(run):
    evil = "<img src=x onerror=alert(1)>\"'"
    trace = run(KnowledgeGraph([Triple("Beijing", evil, evil)]), f"Beijing {evil}")
    flat = trace.rows[0]
    chosen = marks_of(flat.identities, Selection(triple=Triple("Beijing", evil, evil)))
    drawn = tree.tree_html(tree.tree_view(trace), chosen)
    assert "<img" not in drawn
    assert "kb-picked" in drawn
