"""A visitor's edits: one by one, taken back in any order, made again."""

import pytest

from app.edit_log import EditLog, checked, made
from kbert_core import KnowledgeGraph, Triple, find_mentions
from kbert_core.errors import GraphConflict, GraphEditError
from kbert_core.knowledge.edit import Edit

A, B, C = (Triple("a", "is", tail) for tail in ("one", "two", "three"))
OFF, ON = Edit("switch_off", A), Edit("switch_on", A)


def log_of(*edits):
    log = EditLog()
    for edit in edits:
        log = log.append(edit)
    return log


def test_a_log_goes_back_and_forth():
    log = log_of(OFF)
    assert (log.undo().done, log.undo().undone) == ((), (OFF,))
    assert log.undo().redo() == log
    assert EditLog().undo() == EditLog() == EditLog().redo()


def test_redo_leads_nowhere_once_another_edit_is_made_but_the_log_keeps_all():
    log = log_of(OFF).undo().append(ON)
    assert (log.done, log.undone) == ((ON,), ())
    assert log.redo() == log
    assert [step.number for step in log.steps] == [1, 2]
    assert log.redo(1).done == (OFF, ON)


def test_an_older_step_is_taken_back_while_later_ones_stay():
    graph = KnowledgeGraph([A])
    log = log_of(Edit("add", B), OFF)
    back = log.undo(1)
    assert back.done == (OFF,)
    assert list(checked(graph, log, back, 1)) == [A]
    assert back.redo().done == log.done


def test_a_step_that_a_later_one_rests_on_is_not_taken_back():
    graph = KnowledgeGraph([A])
    for log in (
        log_of(Edit("replace", A, B), Edit("replace", B, C)),
        log_of(Edit("add", B), Edit("switch_off", B)),
        log_of(Edit("remove", A), Edit("add", A)),
        log_of(OFF, ON),
    ):
        with pytest.raises(GraphConflict, match=r"Edit 1 can't be taken back: edit 2"):
            checked(graph, log, log.undo(1), 1)
        assert list(checked(graph, log, log.undo(2), 2)) is not None


def test_a_step_is_not_made_again_where_it_no_longer_fits():
    graph = KnowledgeGraph([A])
    log = log_of(Edit("replace", A, B)).undo().append(Edit("remove", A))
    with pytest.raises(GraphConflict, match=r"Edit 1 can't be made again: edit 2"):
        checked(graph, log, log.redo(1), 1)


def test_several_edits_are_one_step():
    log = EditLog().append(Edit("add", B), Edit("add", C), source="more.spo", lines=(1, 2))
    assert log.undo().done == ()
    assert log.undo().undone == (Edit("add", B), Edit("add", C))
    assert log.before_last() == log.undo()


def test_many_additions_give_the_same_graph_as_one_by_one():
    graph = KnowledgeGraph([A])
    new = [Triple(f"name {n % 7}", "is", f"tail {n}") for n in range(40)]
    edits = [OFF, *(Edit("add", t) for t in new), ON, Edit("add", B), Edit("remove", new[3])]
    quick, slow = made(graph, edits), graph.apply(*edits)
    assert quick.fingerprint == slow.fingerprint
    assert list(quick) == list(slow)
    text = "name 6 and name 5"
    assert find_mentions([text], quick)[0] == find_mentions([text], slow)[0] != ()


def test_additions_that_do_not_fit_say_why():
    with pytest.raises(GraphEditError, match=r"\(a, is, one\) is in the graph already"):
        made(KnowledgeGraph([A]), [Edit("add", B), Edit("add", A)])
    with pytest.raises(GraphEditError, match="its head is empty"):
        made(KnowledgeGraph([A]), [Edit("add", B), Edit("add", Triple("", "is", "x"))])
