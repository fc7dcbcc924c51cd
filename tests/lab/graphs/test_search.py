"""Searching a graph: in memory and in a file the same is found."""

import pytest

from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs import search as search_module
from kbert_lab.graphs.search import Facets, Found, GraphSearch, Query
from kbert_lab.graphs.store.anywhere import import_into, open_store
from kbert_lab.graphs.store.importing import Source

TRIPLES = (
    Triple("胃镜", "类别", "检查"),
    Triple("胃镜", "部位", "胃"),
    Triple("胃炎", "类别", "疾病"),
    Triple("胃炎", "检查", "胃镜"),
    Triple("ＣＴ", "类别", "检查"),
    Triple("Aspirin", "type", "Drug"),
    Triple("Aspirin", "treats", "100% of_it"),
)
QUERIES = {
    Query(): 7,
    Query("胃镜"): 3,
    Query("胃", "head_starts"): 4,
    Query("胃", "tail"): 2,
    Query("ct"): 1,
    Query("ASPIRIN"): 2,
    Query("drug", "tail"): 1,
    Query("%"): 1,
    Query("' OR 1=1 --"): 0,
    Query(relations=("类别", "type")): 4,
    Query(types=("检查",)): 3,
    Query("胃", types=("检查",), relations=("部位",)): 1,
    Query(off=True): 0,
}


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The file of a graph."""
    path = tmp_path / "graph.kg"
    rows = [(i, t.head, t.relation, t.tail) for i, t in enumerate(TRIPLES, start=1)]
    import_into(path, [Source("made.spo", rows)])
    return path


@pytest.fixture
def graph():
    return KnowledgeGraph(TRIPLES)


@pytest.mark.parametrize(("query", "count"), QUERIES.items(), ids=str)
def test_a_query_finds_the_same_in_memory_and_in_a_file(path, graph, query, count):
    in_memory = GraphSearch.of(graph).find(query)
    in_file = GraphSearch(path, 1).find(query)
    assert in_memory.total == in_file.total == len(in_file.triples) == count
    assert set(in_memory.triples) == set(in_file.triples)
    assert in_file.next is None and in_file.complete


@pytest.mark.parametrize("most", [50_000, 0])
@pytest.mark.parametrize("query", [Query(), Query("胃"), Query("胃", "head_starts")], ids=str)
def test_pages_follow_each_other_without_a_gap(path, graph, query, most, monkeypatch):
    monkeypatch.setattr(search_module, "COUNTED", most)
    whole = GraphSearch(path, 1).find(query).triples
    for search in (GraphSearch(path, 1), GraphSearch.of(graph)):
        pages, start = [], None
        for _ in range(20):
            page = search.find(query, start=start, most=2)
            pages += page.triples
            start = page.next
            if start is None:
                break
        assert len(pages) == len(whole)
        assert page.total in (len(whole), None)
        assert set(pages) == set(whole)


def test_what_was_edited_is_found_as_it_is_now(path, graph):
    now = graph.remove(TRIPLES[1]).add(Triple("胃镜", "别名", "gastroscopy"), index=0)
    now = now.add(Triple("心电图", "类别", "检查")).switch_off(TRIPLES[4])
    search = GraphSearch.of(now, first={"心电图"})
    found = search.find(Query(types=("检查",)))
    assert [t.tail for t in found.triples] == ["检查", "gastroscopy", "检查", "检查"]
    by_row = GraphSearch(path, 1)
    assert by_row.find(Query("胃镜", "tail")).triples == (TRIPLES[3],)
    assert found.on == (True, True, True, False)
    off = search.find(Query(off=True))
    assert off == Found((TRIPLES[4],), (False,), 1)
    without = GraphSearch(path, 1).find(Query("胃镜"), without=["胃镜"])
    assert without.triples == (TRIPLES[3],)


def test_facets_count_relations_and_types(path, graph):
    expected = Facets(
        {"类别": 3, "部位": 1, "检查": 1, "type": 1, "treats": 1}, {"检查": 2, "疾病": 1, "Drug": 1}
    )
    assert GraphSearch.of(graph).facets() == GraphSearch(path, 1).facets() == expected
    after = expected.changed([TRIPLES[2]], [Triple("胃炎", "部位", "胃")], {"类别"})
    assert after.relations["部位"] == after.relations["类别"] == 2
    assert "疾病" not in after.types


@pytest.mark.parametrize("most", [50_000, 0])
def test_names_are_completed(path, graph, most, monkeypatch):
    monkeypatch.setattr(search_module, "COUNTED", most)
    for completing in (GraphSearch.of(graph), GraphSearch(path, 1)):
        assert len(completing.heads("胃")) == 2
        assert [head.casefold() for head in completing.heads("asp")] == ["aspirin"]
        assert completing.tails("类别", "") == ["检查", "疾病"]
        assert completing.tails("type", "dr") == ["Drug"]
        assert completing.leading_to("胃镜") == [TRIPLES[3]]


def test_the_entity_that_is_called_so_comes_first(path, graph):
    more = (Triple("a", "r", "胃"), Triple("胃", "r", "t"))
    import_into(path, [Source("more.spo", [(1, t.head, t.relation, t.tail) for t in more])])
    graph = KnowledgeGraph([*TRIPLES, *more])
    for found in (GraphSearch.of(graph).find(Query("胃")), GraphSearch(path, 2).find(Query("胃"))):
        heads = [t.head for t in found.triples]
        assert heads[0] == "胃"
        assert set(heads[1:5]) == {"胃镜", "胃炎"}
        assert heads[5:] == ["a"]


def test_a_search_whose_time_is_over_goes_on_where_it_stopped(path, monkeypatch):
    monkeypatch.setattr(search_module, "_CHUNK", 2)
    monkeypatch.setattr(search_module, "COUNTED", 0)
    monkeypatch.setattr(search_module, "SECONDS", 0)
    search = GraphSearch(path, 1)
    clock = iter(range(1000))
    monkeypatch.setattr(search_module.time, "monotonic", lambda: next(clock))
    found, start, pages = [], None, 0
    while True:
        page = search.find(Query("胃镜", "tail"), start=start)
        found += page.triples
        start, pages = page.next, pages + 1
        if start is None:
            break
        assert not page.complete
    assert found == [TRIPLES[3]]
    assert pages > 2
    assert not search.facets().complete


def test_changes_since_leave_out_what_came_back(path):
    fruit = Triple("Aspirin", "is_a", "fruit")
    with open_store(path, write=True) as store:
        store.apply(Edit("replace", TRIPLES[0], Triple("胃镜", "类别", "手术")))
        store.apply(Edit("add", fruit))
        store.apply(Edit("remove", TRIPLES[6]))
        store.apply(Edit("add", TRIPLES[6]))
        store.apply(Edit("switch_off", TRIPLES[3]))
        store.undo(3)
        changes = store.changes_between(1, store.revision)
        assert store.changes_between(1, 1) == []
    assert {(c.before, c.after, c.is_on) for c in changes} == {
        (TRIPLES[0], Triple("胃镜", "类别", "手术"), True),
        (TRIPLES[3], TRIPLES[3], False),
    }


def test_later_edits_are_not_seen_at_an_earlier_revision(path):
    with open_store(path, write=True) as store:
        store.apply(Edit("remove", TRIPLES[0]))
        store.apply(Edit("add", Triple("胃镜", "类别", "仪器")))
    assert TRIPLES[0] in GraphSearch(path, 1).find(Query("胃镜")).triples
    assert GraphSearch(path, 3).find(Query("仪器")).total == 1
    assert GraphSearch(path, 1).find(Query("仪器")).total == 0
