"""A visitor's session: each command leaves what it doesn't name, and anything can be undone."""

from dataclasses import dataclass, replace

import pytest

from kbert_core import Ablation, InjectionOptions, KnowledgeGraph, Triple
from kbert_core.errors import GraphConflict, GraphEditError
from kbert_core.kbert.interventions import PRESETS
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.selection import Strategy
from kbert_lab.lab import commands
from kbert_lab.lab.commands import (
    ChangePanel,
    ChooseGraph,
    ChoosePanels,
    CloseGraph,
    Intervene,
    MakeEdits,
    OpenGraph,
    Options,
    Redo,
    ReplaceTail,
    SelectToken,
    SelectTriple,
    Show,
    ShowWindow,
    Switch,
    Undo,
    Write,
    apply,
)
from kbert_lab.lab.scene import PANELS, Choice
from kbert_lab.lab.session import OpenedGraph, Session

CITY, COUNTRY = Triple("Paris", "is_a", "city"), Triple("Paris", "in", "France")
OTHER = Triple("Rome", "is_a", "city")
NEW = Triple("Paris", "is_a", "capital")
CITIES = KnowledgeGraph([CITY, COUNTRY, OTHER], name="cities")


@dataclass(frozen=True)
class Reading:
    """A model as a session knows it."""

    task: str | None = None
    options: InjectionOptions = InjectionOptions()
    ablation: Ablation = Ablation()
    has_trees: bool = True
    has_matrix: bool = True
    links: bool = False


def begun(graph=CITIES, text="Paris is large", **more):
    session = Session("words", Reading(), "a", {"a": OpenedGraph(graph)}, **more)
    return Write((text,))(session)


def done(session, *made):
    for command in made:
        session, error = apply(session, command)
        assert error is None, error
    return session


def test_of_two_graphs_with_one_name_and_size_the_chosen_one_is_read_and_edited():
    other = KnowledgeGraph([Triple("x", "r", "1"), Triple("x", "r", "2"), OTHER], name="cities")
    both = done(
        begun(), OpenGraph(OpenedGraph(other), "b"), ChooseGraph("a"), Switch((CITY,), False)
    )
    assert [both.graph_now("a").off, both.graph_now("b").off] == [{CITY}, set()]
    assert both.scene().graph.fingerprint == CITIES.fingerprint


@pytest.mark.parametrize(
    ("name", "edited", "same"),
    [("cities", False, True), ("cities", True, False), ("towns", False, False)],
)
def test_a_graph_opened_again_is_the_one_there_only_if_it_is_the_same_still(name, edited, same):
    before = done(begun(), *([Switch((CITY,), False)] if edited else []))
    again = done(before, OpenGraph(OpenedGraph(KnowledgeGraph(CITIES, name=name)), "again"))
    assert again.graph == ("a" if same else "again")
    assert again.graph_now().name == name and not again.graph_now().off


def test_a_scene_put_on_the_page_keeps_the_edits_before_it_and_undo_brings_all_back():
    mine = done(begun(), Switch((CITY,), False), MakeEdits((Edit("add", NEW),)), Write(("Rome",)))
    put = mine.put(mine.with_text("Paris"), "a")
    played = done(put, Switch((COUNTRY,), False))
    assert played.texts[0] == "Paris" and played.graph_now().off == {COUNTRY}
    back = done(played, Undo(), Undo())
    assert back.texts[0] == "Rome"
    assert (back.graph_now(), back.graph_now().off) == (mine.graph_now(), {CITY})
    again = done(back, Redo(), Redo())
    assert (again.texts, again.graph_now().off) == (played.texts, {COUNTRY})


def test_one_undo_takes_edits_and_interventions_back_in_the_order_they_were_made():
    block = PRESETS["no_link"]
    made = done(begun(), Switch((CITY,), False), Intervene(block), Switch((COUNTRY,), False))
    once = done(made, Undo())
    assert (once.graph_now().off, once.standing) == ({CITY}, block)
    twice = done(once, Undo())
    assert (twice.graph_now().off, twice.standing) == ({CITY}, ())
    assert done(twice, Redo(), Redo()).graph_now().off == {CITY, COUNTRY}


def test_a_new_step_leaves_nothing_to_redo_and_any_step_can_still_be_made_again():
    undone = done(begun(), Switch((CITY,), False), Undo(), Switch((COUNTRY,), False))
    assert undone.next_step() is None
    assert done(undone, Redo(entry=1)).graph_now().off == {CITY, COUNTRY}


@pytest.mark.parametrize(
    ("steps", "turn"),
    [
        ([ReplaceTail(CITY, "capital"), ReplaceTail(NEW, "town")], Undo(1)),
        ([MakeEdits((Edit("add", NEW),)), Switch((NEW,), False)], Undo(1)),
        ([MakeEdits((Edit("remove", CITY),)), Undo(), ReplaceTail(CITY, "town")], Redo(1)),
    ],
)
def test_a_step_that_later_ones_need_is_not_turned_and_nothing_changes(steps, turn):
    made = done(begun(), *steps)
    after, error = apply(made, turn)
    assert after is made and isinstance(error, GraphConflict)


@pytest.mark.parametrize("command", [Undo(), Redo(), Undo(7)])
def test_nothing_to_undo_is_said(command):
    after, error = apply(begun(), command)
    assert isinstance(error, GraphEditError) and not after.history.steps


def test_a_command_twice_does_what_it_does_once():
    for command in (Switch((CITY,), False), ReplaceTail(CITY, "capital"), Write(("Rome",))):
        once = done(begun(), command)
        assert done(once, command) == once


def test_a_triple_that_is_not_in_the_graph_is_refused_and_an_empty_tail_too():
    for command in (Switch((NEW,), False), ReplaceTail(CITY, " ")):
        before = begun()
        after, error = apply(before, command)
        assert after is before and error is not None


def test_undo_on_the_page_is_about_the_page_and_the_graph_that_is_open():
    other = OpenedGraph(KnowledgeGraph([OTHER], name="other"))
    made = done(begun(), OpenGraph(other, "b"), Switch((OTHER,), False), ChooseGraph("a"))
    assert made.last_step() is None
    assert made.last_step("b").number == 1


def test_a_graph_that_is_closed_takes_its_edits_along():
    other = OpenedGraph(KnowledgeGraph([OTHER], name="other"))
    made = done(begun(), OpenGraph(other, "b"), Switch((OTHER,), False), CloseGraph("b"))
    assert (made.graph, [*made.graphs], made.last_step("b")) == ("a", ["a"], None)


def test_another_text_keeps_the_graph_and_drops_what_was_chosen_in_the_one_before():
    chosen = done(begun(), SelectToken(("trunk", 0, 0)), SelectTriple(CITY), Switch((CITY,), False))
    after = done(chosen, Write(("Rome is old",)))
    assert after.selection.empty and after.graph_now().off == {CITY}


def test_interventions_belong_to_their_text_but_for_those_that_name_no_place_in_it():
    preset = PRESETS["no_link"]
    first = done(begun(), Intervene(preset))
    second = done(first, Write(("Rome is old",)))
    assert second.standing == tuple(one for one in preset if not one.tied_to_text)
    assert done(second, Intervene(()), Write(("Paris is large",))).standing == preset


def test_the_selection_follows_a_tail_that_is_replaced():
    chosen = done(begun(), SelectTriple(CITY), ReplaceTail(CITY, "capital"))
    assert chosen.selection.triple == NEW


def test_panels_chosen_freely_keep_what_was_chosen_as_others_come_and_go():
    session = done(begun(), ChangePanel(1, {"visible": "all", "graph": "none"}), ChoosePanels(4))
    assert session.panels[1] == Choice(graph="none", ablation=Ablation("soft", "all"))
    assert done(session, ChoosePanels(2)).panels == (PANELS[0], session.panels[1])


def test_a_panel_shows_what_it_can_and_nothing_else():
    session = done(begun(), Show("matrix_view", "attention"), Show("matrix_view", "later"))
    assert session.view("matrix_view") == "attention" and session.view("specials") is False


def test_another_text_begins_with_its_first_window():
    session = done(begun(), ShowWindow(2))
    assert session.window == 2 and done(session, Write(("Rome",))).window == 0


def test_options_of_a_strategy_go_with_it():
    own = InjectionOptions(strategy=Strategy.CONTEXT, threshold=0.3)
    session = replace(begun(), reads=Reading(options=own), options=own)
    first = done(session, Options({"strategy": Strategy.FIRST, "max_triples": 1}))
    assert (first.options.threshold, first.options.max_triples) == (None, 1)
    assert done(first, Options({"strategy": Strategy.CONTEXT})).options.threshold == 0.3
    hard = done(first, Options({"positions": "hard", "segments": "none", "relations": ["is_a"]}))
    assert hard.ablation == Ablation(positions="hard", segments="none")
    assert hard.options.relations == ("is_a",)


def test_a_triple_that_is_switched_off_leaves_its_place_empty_whatever_the_model():
    assert begun().options.keep_places
    assert begun().with_model("m", Reading(options=InjectionOptions(1))).options.keep_places
    moving = done(begun(), Options({"keep_places": False}))
    assert not moving.with_model("m", Reading()).options.keep_places


def test_a_model_without_a_matrix_is_read_without_what_was_done_to_it():
    made = done(begun(), Intervene(PRESETS["no_link"]), Options({"visible": "all"}))
    scene = replace(made, reads=Reading(has_matrix=False)).scene()
    assert (scene.interventions, scene.ablation) == ((), Ablation())


def test_a_visit_keeps_so_many_edits(monkeypatch):
    monkeypatch.setattr(commands, "MOST_EDITS", 1)
    full = done(begun(), Switch((CITY,), False))
    assert "at most 1 edits" in str(apply(full, Switch((COUNTRY,), False))[1])
