"""Logs of a visit and of a workspace, read alike; and what the Knowledge page makes of a graph."""

import conftest
import pytest

from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs.search import GraphSearch, Query
from kbert_lab.graphs.store.importing import Source
from kbert_lab.lab.catalogue import Catalogue
from kbert_lab.lab.commands import Import, MakeEdits, Redo, Switch, Undo
from kbert_lab.lab.log import Log
from kbert_lab.lab.models import NOTHING
from kbert_lab.lab.scene import WORDS
from kbert_lab.lab.session import OpenedGraph, Session
from kbert_lab.lab.views.history import origin, rows, said
from kbert_lab.lab.views.structure import Structure

COOK, CHINA, CITY = conftest.FIGURE_2
FIGURE_2 = KnowledgeGraph(conftest.FIGURE_2, name="figure2")
MORE = Source("more.tsv", [(4, "Rome", "is_a", "City")])


def visit(*commands, graph=FIGURE_2):
    """A visit to a graph, after some commands."""
    session = Session(WORDS, NOTHING, "own", {"own": OpenedGraph(graph)})
    for command in commands:
        session = command(session)
    return session


def log_of(*edits):
    """The log of a visit, each of some edits a step."""
    return Log(visit(*(MakeEdits((own,)) for own in edits)), "own")


def test_a_log_says_what_each_entry_did_and_where_a_triple_is_from():
    new = Triple("Tim Cook", "CEO", "Pear")
    session = visit(
        Switch((COOK, CHINA, CITY), False),
        Switch((COOK, CHINA, CITY), True),
        Import(MORE),
        MakeEdits((Edit("replace", COOK, new),)),
        Undo(1),
    )
    log = Log(session, "own")
    assert [said(log, entry) for entry in log.entries()] == [
        f"changed {COOK} to {new}",
        "imported 1 triple from more.tsv",
        f"switched on {COOK}; switched on {CHINA}; switched on {CITY}",
        f"switched off {COOK}; switched off {CHINA}; switched off {CITY}",
    ]
    assert [entry.undone for entry in log.entries()] == [False, False, False, True]
    for triple, where in {
        new: "Edited by you (entry 4).",
        Triple("Rome", "is_a", "City"): "From more.tsv, line 4.",
        CITY: "From figure2, as it was opened.",
    }.items():
        assert origin(log, triple) == where


def test_a_log_goes_out_with_what_was_taken_back():
    log = log_of(Edit("remove", COOK), Edit("add", COOK))
    undone = Log(Undo()(log.session), log.id)
    first, last = rows(undone, reversed(undone.entries()))
    assert (first["what"], first["undone"], last["undone"]) == (f"deleted {COOK}", False, True)


def test_a_log_tells_changes_from_additions_and_forgets_what_came_back():
    new, added = Triple("Cook", "CEO", "Apple"), Triple("x", "y", "z")
    log = log_of(
        Edit("replace", COOK, new),
        Edit("switch_off", CHINA),
        Edit("remove", CITY),
        Edit("add", CITY, index=0),
        Edit("add", added),
    )
    assert {(c.before, c.after, c.is_on) for c in log.changes()} == {
        (COOK, new, True),
        (CHINA, CHINA, False),
        (None, added, True),
    }


def test_an_entry_is_taken_back_and_made_again_while_later_ones_stay():
    one, two = (Triple("Beijing", "hosts", tail) for tail in ("one", "two"))
    session = visit(*(MakeEdits((Edit("add", own),)) for own in (one, two)), Undo(1))
    assert one not in session.graph_now() and two in session.graph_now()
    assert one in Redo(1)(session).graph_now()


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_catalogue_finds_and_counts_what_was_edited(in_memory, tmp_path):
    added = Triple("Rome", "hosts", "games")
    log = log_of(Edit("add", added), Edit("remove", CHINA))
    graph = log.session.graph_now()
    if in_memory:
        search = GraphSearch.of(graph)
    else:
        from kbert_lab.graphs.store.importing import import_triples
        from kbert_lab.graphs.store.store import GraphStore

        path = tmp_path / "graph.kg"
        import_triples(path, [Source("x", [(0, t.head, t.relation, t.tail) for t in FIGURE_2])])
        with GraphStore(path) as store:
            search = GraphSearch(path, store.revision)
    look = Catalogue(graph, FIGURE_2, search, search.facets(), log)
    assert set(look.find(Query()).triples) == {COOK, CITY, added}
    assert look.facets.relations == {"hosts": 1, "CEO": 1, "is_a": 1}
    assert look.heads("ro") == ["Rome"] and look.around(CITY) == [CITY]


def test_the_structure_has_hubs_parts_and_the_way_between_two_names():
    more = (("Rome", "is_a", "City"), ("Rome", "twin", "Paris"), ("PARIS", "near", "Lyon"))
    seen = Structure.of(KnowledgeGraph((*FIGURE_2, *(Triple(*fields) for fields in more))))
    hubs = {*zip(*seen.hubs().values(), strict=True)}
    assert hubs >= {("Beijing", 2, 0), ("Rome", 2, 0), ("Paris", 1, 1)}
    assert seen.parts()["names in the part"] == [6, 2]
    assert seen.name("paris") == "Paris" and seen.name("Oslo") is None
    assert seen.way("Rome", "Lyon") == [("Paris", "twin", True), ("Lyon", "near", True)]
    assert seen.way("China", "Rome")[-1] == ("Rome", "is_a", False)
    assert seen.way("Rome", "Apple") is None
