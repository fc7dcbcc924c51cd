"""Edits kept in memory: the log of a graph file over a graph that isn't copied."""

from contextlib import suppress

import pytest
from edited_graphs import STEPS, content
from hypothesis import given

from kbert_core import KnowledgeGraph, Triple
from kbert_core.errors import GraphConflict, GraphEditError
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs.store.importing import Source
from kbert_lab.graphs.store.memory import MemoryStore
from kbert_lab.graphs.store.store import GraphStore

A, B, C = (Triple("a", "is", tail) for tail in ("one", "two", "three"))
OFF, ON = Edit("switch_off", A), Edit("switch_on", A)
BASE = KnowledgeGraph([Triple("a", "r", "x"), Triple("b", "s", "y"), Triple("阿司", "r", "x")])
BASE = BASE.switch_off(Triple("b", "s", "y"))


def of(*edits, base=(A,)):
    store = MemoryStore(KnowledgeGraph(base, name="mine"))
    for edit in edits:
        store.apply(edit)
    return store


def told(store, since):
    """The log after a revision, and how the graph differs from what it was then."""
    entries = [
        (e.revision - since, e.action, e.edits, e.undoes and e.undoes - since, e.undone)
        for e in store.history()
        if e.revision > since
    ]
    changes = store.changes_between(since, store.revision)
    return entries, {(c.before, c.after, c.was_on, c.is_on) for c in changes}


def take(store, step, since):
    """Take a step as if the log began after a revision."""
    if isinstance(step, list):
        store.apply(*step)
        return
    if step == "undo":
        done = (e.revision for e in store.history() if e.undoes is None and not e.undone)
        step = max(0, next(done, 0) - since)
    if not step:
        raise GraphEditError("There is nothing to undo.")
    store.undo(step + since)


@given(STEPS)
def test_a_log_in_memory_is_as_that_of_a_file_and_its_steps_give_its_graph(tmp_path_factory, steps):
    file = GraphStore.create(tmp_path_factory.mktemp("graphs") / "g.kg")
    file.apply(*(Edit("add", triple) for triple in BASE))
    file.apply(Edit("switch_off", *BASE.off))
    began, store = file.revision, MemoryStore(BASE)
    for step in steps:
        if step in ("reopen", "index"):
            continue
        before = content(store.graph()), told(store, 0)
        try:
            take(store, step, 0)
        except GraphEditError as error:
            assert (content(store.graph()), told(store, 0)) == before
            if isinstance(error, GraphConflict):
                continue  # more is refused than in a file, where no list of edits has to fit
        with suppress(GraphEditError):
            take(file, step, began)
        replayed = BASE.apply(*(edit for own in store.standing() for edit in own.edits))
        assert store.graph().fingerprint == replayed.fingerprint
        there = {(t, store.graph().is_on(t)) for t in store.graph()}
        assert there == {(t, file.graph().is_on(t)) for t in file.graph()}
        assert told(store, 0) == told(file, began)
    file.close()


@pytest.mark.parametrize(
    "edits",
    [
        (Edit("replace", A, B), Edit("replace", B, C)),
        (Edit("add", B), Edit("switch_off", B)),
        (Edit("remove", A), Edit("add", A)),
        (OFF, ON),
        (OFF, ON, OFF),
    ],
)
def test_a_step_that_a_later_one_rests_on_is_not_undone(edits):
    store = of(*edits)
    now = content(store.graph())
    with pytest.raises(GraphConflict, match=r"^mine: entry 1 can't be undone"):
        store.undo(1)
    assert content(store.graph()) == now and store.revision == len(edits)
    store.undo()
    assert len(store.standing()) == len(edits) - 1


def test_triples_of_a_file_come_in_as_one_entry_that_says_where_they_are_from():
    store = of(OFF)
    entry = store.add(Source("more.spo", [(3, *("a", "is", "two")), (5, *("b", "is", "x"))]))
    assert (entry.action, entry.edits) == ("import", 2)
    origin = store.origin(Triple("b", "is", "x"))
    assert (origin.file, origin.line, origin.revision) == ("more.spo", 5, 2)
    assert store.origin(A).file is None
    with pytest.raises(GraphEditError, match="in the graph already"):
        store.add(Source("more.spo", [(1, *("c", "is", "x")), (2, *("a", "is", "one"))]))
    store.undo(2)
    assert list(store.graph()) == [A]
