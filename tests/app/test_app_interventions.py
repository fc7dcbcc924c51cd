"""Interventions in the app: undone and redone, in words, and where they leave all as it was."""

from dataclasses import replace

import numpy as np
import pytest
from explaining_pages import opened
from explaining_pages import said as everything
from sessions import add_triple, do, drawn_tokens, session, write

from kbert_core import (
    Intervention,
    KnowledgeGraph,
    Tokens,
    Triple,
)
from kbert_core.kbert.interventions import BRANCHES, CLS, PRESETS, TRUNK, intervene
from kbert_lab.lab.commands import Intervene, Show
from kbert_lab.lab.scene import MOST_INTERVENTIONS as MOST
from kbert_lab.lab.selection import Selection
from kbert_lab.lab.views import interventions, matrix
from kbert_lab.lab.views.interventions import with_one_more
from kbert_lab.lab.views.why import share_of_layers

SENTENCE = "Tim Cook is visiting Beijing now"
BEIJING = SENTENCE.index("Beijing")
CEO, CAPITAL = Triple("Tim Cook", "CEO", "Apple"), Triple("Beijing", "capital", "China")
BLOCK = Intervention("block", TRUNK, BRANCHES)
OPEN = Intervention("open", TRUNK, BRANCHES)
HUNG = Intervention("block", Tokens("mention", 0, 0), Tokens("hung", 0, 0))


def identity(row, text):
    return row.identities[row.tokens.index(text)]


# The log


def test_what_an_intervention_takes_back_goes_instead_of_standing_beside_it(graph, run):
    trace = run(graph)

    def after(some):
        return interventions.of_trace(trace, some, 2)

    assert with_one_more((), BLOCK, after) == (BLOCK,)
    assert with_one_more((HUNG, BLOCK), OPEN, after) == (HUNG, OPEN)
    assert with_one_more((OPEN,), BLOCK, after) == (
        BLOCK,
    )  # the mention's own link was open before
    cell = [Intervention(action, CLS, BRANCHES) for action in ("open", "block")]
    assert with_one_more((HUNG, cell[0]), cell[1], after) == (HUNG,)
    layer = replace(cell[1], layers=(2,))
    assert with_one_more((cell[0],), layer, after) == (cell[0], layer)


# Scenes


# In words


def test_scopes_of_a_cell_go_from_it_to_the_whole_link(graph, run):
    row = run(graph).rows[0]
    found = interventions.scopes(row, (identity(row, "Cook"), identity(row, "Apple")))
    assert [interventions.scope_name(scope, row) for scope in found.values()] == [
        "“Cook” and “Apple”",
        "the trunk and the branch (Tim Cook, CEO, Apple)",
        "“Tim Cook” and the branches of “Tim Cook”",
        "the trunk and the branches",
    ]
    back = interventions.scopes(row, (identity(row, "Apple"), identity(row, "Cook")))
    assert [seer.kind for seer, _ in back.values()] == ["token", "branch", "hung", "branches"]
    for scopes, (i, j) in ((found, (2, 4)), (back, (4, 2))):
        for seer, seen in scopes.values():
            assert i in seer.among(row)
            assert j in seen.among(row)


def test_scopes_of_two_branches_name_both_and_of_the_diagonal_none(graph, run):
    row = run(graph).rows[0]
    apple, china, now = (identity(row, text) for text in ("Apple", "China", "now"))
    found = interventions.scopes(row, (apple, china))
    assert list(found) == ["cell", "branch 1", "branch 2", "mention 1", "mention 2", "link"]
    assert not interventions.scopes(row, (now, now))
    assert not interventions.scopes(row, (now, ("trunk", 0, 99)))
    bare = run(KnowledgeGraph()).rows[0]
    assert len(interventions.scopes(bare, (now, identity(bare, "Tim")))) == 1  # no branch at all


CALLED = {
    "The trunk and the branches may not see each other": BLOCK,
    "The trunk may not see the branches, in layer 2 only": replace(BLOCK, both=False, layers=(2,)),
    "“Tim Cook” and the branches of “Tim Cook” may not see each other, in layers 1, 3 only": (
        replace(HUNG, layers=(1, 3))
    ),
    "All tokens may see all tokens": PRESETS["everything"][0],
    "“[CLS]” and the branch (Tim Cook, CEO, Apple) may see each other": Intervention(
        "open", CLS, Tokens("branch", 0, 0, CEO)
    ),
    "The special tokens and a token that isn't here may not see each other": (
        Intervention("block", Tokens("specials"), Tokens("token", identity=("trunk", 0, 77)))
    ),
    "What is named at character 5 and the trunk may not see each other": (
        Intervention("block", Tokens("mention", 0, 4), TRUNK)
    ),
}


@pytest.mark.parametrize("said", CALLED)
def test_interventions_are_said_in_words(graph, run, said):
    assert interventions.describe(CALLED[said], run(graph).rows[0]) == said


def test_a_token_among_several_that_read_the_same_is_numbered(graph, run):
    row = run(graph, "now Beijing now").rows[0]
    assert interventions.token_name(row, row.tokens.index("now")) == "now (1)"
    assert interventions.token_name(row, len(row) - 2) == "now (2)"
    assert interventions.token_name(row, 2) == "Beijing"


def intervened(trace, made, layers=2):
    changed = intervene(trace.visible, trace.rows, made, layers)
    config = replace(trace.reading.config, interventions=tuple(made))
    return replace(
        trace,
        reading=replace(trace.reading, config=config),
        visible=changed.layers[-1],
        visible_layers=changed.layers,
    )


def test_share_of_layers_counts_those_in_which_a_cell_is_open(graph, run):
    trace = run(graph)
    assert (share_of_layers(trace, 0) == trace.visible[0].numpy()).all()
    made = intervened(trace, [replace(HUNG, layers=(2,)), OPEN, replace(HUNG, layers=(2,))])
    share = share_of_layers(made, 0)
    assert share.shape == (14, 14)
    assert share[2, 4] == 0.5  # Cook, Apple
    assert share[0, 4] == 1  # [CLS], Apple
    assert share[4, 9] == 0  # Apple, China
    layers = [layer[0].numpy() for layer in made.visible_layers]
    assert (share == np.mean(layers, axis=0)).all()


def test_cells_that_interventions_changed_are_marked(graph, run):
    trace = run(graph)
    row = trace.rows[0]
    plain = matrix.visible_view(row, trace.ablation)
    same = matrix.visible_view(row, trace.ablation, share_of_layers(trace, 0))
    assert (same.codes == plain.codes).all()
    made = intervened(
        trace,
        [
            Intervention("block", Tokens("mention", 0, 0), Tokens("hung", 0, 0), both=False),
            Intervention("open", CLS, BRANCHES, layers=(1,)),
            Intervention("open", Tokens("specials"), Tokens("branch", 0, BEIJING, CAPITAL)),
            Intervention("block", Tokens("mention", 0, BEIJING), BRANCHES, layers=(2,)),
        ],
    )
    codes = matrix.visible_view(row, made.ablation, share_of_layers(made, 0)).codes
    word = row.tokens.index
    assert codes[word("Cook"), word("Apple")] == matrix.BLOCKED
    assert codes[word("Apple"), word("Cook")] == matrix.LINK
    assert codes[0, word("Apple")] == matrix.PART_OPENED
    assert codes[0, word("China")] == matrix.OPENED
    assert codes[word("City"), word("Beijing")] == matrix.PART_BLOCKED
    untouched = share_of_layers(made, 0) == share_of_layers(trace, 0)
    assert (codes[untouched] == plain.codes[untouched]).all()
    assert set(np.unique(codes[~untouched])) <= {7, 8, 9, 10}


def test_a_difference_shows_what_is_blocked_in_one_layer_only(graph, run):
    trace = run(graph)
    row, made = trace.rows[0], intervened(trace, [replace(BLOCK, layers=(2,))])
    shares = (share_of_layers(trace, 0), share_of_layers(made, 0))
    view = matrix.difference(row, row, shares)
    cook, apple = row.tokens.index("Cook"), row.tokens.index("Apple")
    assert view.codes[cook, apple] == view.codes[apple, cook] == matrix.UNSEEN
    assert "fewer" in matrix.say_change(view)
    assert "No difference" in matrix.say_change(matrix.difference(row, row, shares[:1] * 2))
    back = matrix.difference(row, row, shares[::-1])
    assert back.codes[cook, apple] == matrix.SEEN


def test_a_cell_says_which_intervention_decides_it(graph, run):
    row = run(graph).rows[0]
    cook, apple, cls = (identity(row, text) for text in ("Cook", "Apple", "[CLS]"))
    some = intervened(run(graph), [replace(HUNG, layers=(2,)), Intervention("open", CLS, BRANCHES)])
    said = interventions.why_now(some, 0, (cook, apple), "It was.")
    assert said == (
        "Blocked in layer 2 by an intervention: “Tim Cook” and the branches of “Tim Cook” may not "
        "see each other, in layer 2 only. Without it: It was."
    )
    opened = interventions.why_now(some, 0, (cls, apple), "It was.")
    assert opened.startswith("Opened by an intervention: “[CLS]” and the branches may see")
    assert interventions.why_now(some, 0, (cook, cls), "It was.") == "It was."
    assert interventions.why_now(run(graph), 0, (cook, apple), "It was.") == "It was."


# On the page


@pytest.fixture
def lab(monkeypatch, checkpoints, tmp_path):
    """The Lab with one tiny model for named entities."""
    (tmp_path / "tiny").symlink_to(checkpoints["ner"])
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    return opened()


def choose_cell(at, row, column):
    """What a click on the matrix does."""
    do(at, selection=Selection().with_cell(row, column))
    return at.run()


def standing(at):
    return session(at).standing


def click(at, key):
    at.button(key=key).click().run()
    assert not at.exception
    return at


@pytest.fixture
def on_link(lab):
    """With a cell chosen between a mention and its branch; returns the Lab."""
    write(lab, "患者有糖尿病史")
    lab.run()
    names = drawn_tokens(lab)
    branch = next(name for name in names if name[0] == "branch")
    return choose_cell(lab, ("trunk", 0, 3), branch)


def test_layer_and_direction_are_as_chosen(on_link):
    on_link.selectbox(key="lab.iv_layer").set_value(2).run()
    on_link.segmented_control(key="lab.iv_direction").set_value("one_way").run()
    click(on_link, "lab.iv_block")
    (one,) = standing(on_link)
    assert (one.both, one.layers) == (False, (2,))
    assert one.seer.identity == ("trunk", 0, 3)
    assert "in layer 2 only" in everything(on_link)
    click(on_link, "lab.iv_open")  # takes it back, and nothing more is needed
    assert standing(on_link) == ()


def compared_with(at):
    do(at, Show("matrix_view", "difference"))
    said = next(c.value for c in at.run().caption if "now −" in c.value).replace("\\", "")
    return said.partition(".")[0] + "."


def test_what_was_changed_last_is_what_is_compared(on_link):
    assert compared_with(on_link) == "Difference: now − no knowledge."
    click(on_link, "lab.iv_block")
    assert compared_with(on_link) == "Difference: now − without interventions."
    add_triple(on_link, "糖尿病", "症状", "头痛")
    assert compared_with(on_link) == "Difference: now − before the last edit."
    assert len(standing(on_link)) == 1
    on_link.selectbox(key="lab.compare").set_value("untouched").run()
    assert compared_with(on_link) == "Difference: now − without interventions."
    click(on_link, "lab.iv_clear")
    assert on_link.selectbox(key="lab.compare").value == "auto"
    assert compared_with(on_link) == "Difference: now − before the last edit."


def test_a_layer_the_model_lacks_is_refused_and_can_be_removed(on_link):
    deep = Intervention("block", TRUNK, BRANCHES, layers=(9,))
    do(on_link, Intervene((BLOCK, deep))).run()
    assert "for layer 9, and the encoder has 3" in everything(on_link)
    assert "2. The trunk and the branches may not see each other, in layer 9" in everything(on_link)
    click(on_link, "lab.iv_remove_1")
    assert standing(on_link) == (BLOCK,)
    assert not on_link.error


def test_a_cut_link_is_said_to_equal_no_graph_and_what_opens_everything_is_not(on_link):
    for name, equal in (("no_link", True), ("everything", False)):
        do(on_link, Intervene(PRESETS[name])).run()
        assert ("Equal to the model without any graph" in everything(on_link)) is equal


def test_a_marked_up_token_stays_text(lab):
    write(lab, "**bold** <b> 糖尿病 $x$ [CLS]")
    lab.run()
    names = drawn_tokens(lab)
    branch = next(name for name in names if name[0] == "branch")
    choose_cell(lab, ("trunk", 0, 0), branch)
    click(lab, "lab.iv_open")
    lines = [item.value for item in lab.markdown if item.value.startswith("1\\.")]
    assert len(lines) == 1
    assert "“\\*” " in lines[0] or "“\\* \\(1\\)” " in lines[0]


def test_the_number_of_interventions_is_bounded(on_link):
    many = tuple(
        Intervention("open", Tokens("token", identity=("trunk", 0, i)), BRANCHES)
        for i in range(100, 100 + MOST)
    )
    do(on_link, Intervene(many)).run()
    assert on_link.button(key="lab.iv_block").disabled
    assert f"{MOST} interventions are the most" in on_link.button(key="lab.iv_block").help
