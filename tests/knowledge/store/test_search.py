"""Searching a graph: in memory and in a file the same is found."""

import sqlite3
import time
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.search import Facets, Found, Query
from kbert_core.knowledge.store import database as database_module
from kbert_core.knowledge.store import search as search_module
from kbert_core.knowledge.store.importing import Source, import_triples
from kbert_core.knowledge.store.search import GraphSearch, MemorySearch
from kbert_core.knowledge.store.store import GraphStore

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
    Query("炎", "head"): 2,
    Query("胃", "tail"): 2,
    Query("ct"): 1,
    Query("ASPIRIN"): 2,
    Query("drug", "tail"): 1,
    Query("%"): 1,
    Query("_"): 1,
    Query("' OR 1=1 --"): 0,
    Query(relations=("类别", "type")): 4,
    Query(types=("检查",)): 3,
    Query("胃", types=("检查",), relations=("部位",)): 1,
    Query(off=True): 0,
    Query("nothing"): 0,
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "graph.kg"
    rows = [(i, t.head, t.relation, t.tail) for i, t in enumerate(TRIPLES, start=1)]
    import_triples(path, [Source("made.spo", rows)])
    return path


@pytest.fixture
def graph():
    return KnowledgeGraph(TRIPLES)


@pytest.fixture
def searches(path, graph):
    """The same triples in memory and in a file."""
    return MemorySearch(graph), GraphSearch(path, 1)


@pytest.fixture
def large(monkeypatch):
    """Every graph counts as a large one, and its rows are read two at a time."""
    monkeypatch.setattr(database_module, "LARGE", 0)
    monkeypatch.setattr(search_module, "LARGE", 0)
    monkeypatch.setattr(search_module, "_CHUNK", 2)


def everything(search, query, **options):
    """All pages of what is found."""
    triples, start = [], None
    for _ in range(100):
        page = search.find(query, start=start, most=2, **options)
        triples += page.triples
        start = page.next
        if start is None:
            return triples
    raise AssertionError("pages without end")


@pytest.mark.parametrize(("query", "count"), QUERIES.items(), ids=str)
def test_a_query_finds_the_same_in_memory_and_in_a_file(searches, query, count):
    in_memory, in_file = (search.find(query) for search in searches)
    assert in_memory.total == in_file.total == len(in_file.triples) == count
    assert set(in_memory.triples) == set(in_file.triples)
    assert in_file.next is None and in_file.complete


@pytest.mark.parametrize("query", [Query(), Query("胃"), Query("胃", "head_starts")], ids=str)
def test_pages_follow_each_other_without_a_gap(searches, query):
    for search in searches:
        whole = search.find(query)
        assert everything(search, query) == list(whole.triples)
        assert len(whole.triples) == whole.total


def test_what_was_edited_is_found_as_it_is_now(searches, graph):
    now = graph.remove(TRIPLES[1]).add(Triple("胃镜", "别名", "gastroscopy"), index=0)
    now = now.add(Triple("心电图", "类别", "检查")).switch_off(TRIPLES[4])
    edited = {"graph": now, "changed": {"胃镜", "心电图", "ct"}}
    in_memory, in_file = (search.find(Query(types=("检查",)), **edited) for search in searches)
    assert [t.tail for t in in_memory.triples] == ["检查", "gastroscopy", "检查", "检查"]
    assert in_memory.on == (True, True, True, False)  # the new head, 胃镜, ＣＴ: the graph's order
    assert [t.head for t in in_file.triples] == ["ＣＴ", "心电图", "胃镜", "胃镜"]  # by name
    for search in searches:
        assert search.find(Query(off=True), **edited) == Found((TRIPLES[4],), (False,), 1)
        assert search.find(Query("部位"), **edited).total == 0


def test_tails_are_compared_as_names_are(tmp_path):
    triples = [Triple("scan", "by", "ＣＴ in  two ways"), Triple("scan", "wie", "GRÖẞE")]
    path = tmp_path / "g.kg"
    import_triples(path, [Source("f", [(1, t.head, t.relation, t.tail) for t in triples])])
    for search in (MemorySearch(KnowledgeGraph(triples)), GraphSearch(path, 1)):
        assert search.find(Query("ct in two", "tail")).triples == (triples[0],)
        assert search.find(Query("größe")).triples == (triples[1],)
        assert search.tails("", "ct") == [triples[0].tail]
        assert search.tailed("GRÖSSE") == [triples[1]]


def test_in_a_large_graph_what_was_edited_comes_first(path, graph, large):
    now = graph.replace(TRIPLES[2], Triple("胃炎", "类别", "胃病"))
    found = GraphSearch(path, 1).find(Query("胃"), graph=now, changed=["胃炎"], most=1)
    assert [t.tail for t in found.triples] == ["胃病", "胃镜", "检查"]
    assert everything(GraphSearch(path, 1), Query("类别"), graph=now, changed=["胃炎"]) == [
        Triple("胃炎", "类别", "胃病"),
        TRIPLES[0],
        TRIPLES[4],
    ]


def test_facets_count_relations_and_types(path, graph):
    expected = Facets(
        {"类别": 3, "部位": 1, "检查": 1, "type": 1, "treats": 1},
        {"检查": 2, "疾病": 1, "Drug": 1},
    )
    assert MemorySearch(graph).facets() == GraphSearch(path, 1).facets() == expected
    after = expected.changed([TRIPLES[2]], [Triple("胃炎", "部位", "胃")], {"类别"})
    assert (after.relations["部位"], after.relations["类别"], "疾病" in after.types) == (
        2,
        2,
        False,
    )


def test_names_are_completed(searches):
    for completing in searches:
        assert len(completing.heads("胃")) == 2
        assert [head.casefold() for head in completing.heads("asp")] == ["aspirin"]
        assert completing.tails("类别", "") == ["检查", "疾病"]
        assert completing.tails("type", "dr") == ["Drug"]
        assert completing.tailed("胃镜") == [TRIPLES[3]]


def test_the_entity_that_is_called_so_comes_first(path, graph):
    more = (Triple("a", "r", "胃"), Triple("胃", "r", "t"))
    import_triples(path, [Source("more.spo", [(1, t.head, t.relation, t.tail) for t in more])])
    graph = KnowledgeGraph([*TRIPLES, *more])
    for found in (
        MemorySearch(graph).find(Query("胃")),
        GraphSearch(path, 2).find(Query("胃")),
    ):
        heads = [t.head for t in found.triples]
        assert heads[0] == "胃"
        assert set(heads[1:5]) == {"胃镜", "胃炎"}
        assert heads[5:] == ["a"]


def test_a_search_whose_time_is_over_goes_on_where_it_stopped(path, large, monkeypatch):
    search = GraphSearch(path, 1)
    clock = iter(range(1000))
    monkeypatch.setattr(search_module.time, "monotonic", lambda: next(clock))
    found, start, pages = [], None, 0
    while True:
        page = search.find(Query("胃镜", "tail"), start=start, seconds=0)
        found += page.triples
        start, pages = page.next, pages + 1
        if start is None:
            break
        assert not page.complete
    assert found == [TRIPLES[3]]
    assert pages > 2
    assert not search.facets(seconds=0).complete


def test_changes_since_leave_out_what_came_back(path):
    fruit = Triple("Aspirin", "is_a", "fruit")
    with GraphStore(path, write=True) as store:
        store.apply(Edit("replace", TRIPLES[0], Triple("胃镜", "类别", "手术")))
        store.apply(Edit("add", fruit))
        store.apply(Edit("remove", TRIPLES[6]))
        store.apply(Edit("add", TRIPLES[6]))
        store.apply(Edit("switch_off", TRIPLES[3]))
        store.undo(3)
        revision = store.revision
    changes = GraphSearch(path, revision).changes_since(1)
    assert {(c.before, c.after, c.is_on) for c in changes} == {
        (TRIPLES[0], Triple("胃镜", "类别", "手术"), True),
        (TRIPLES[3], TRIPLES[3], False),
    }
    assert GraphSearch(path, 1).changes_since(1) == []
    import_triples(path, [Source("more.spo", [(1, "x", "y", "z")])])
    added = [c.after for c in GraphSearch(path, revision + 1).changes_since(revision)]
    assert added == [Triple("x", "y", "z")]


def test_later_edits_are_not_seen_at_an_earlier_revision(path):
    with GraphStore(path, write=True) as store:
        store.apply(Edit("remove", TRIPLES[0]))
        store.apply(Edit("add", Triple("胃镜", "类别", "仪器")))
    assert TRIPLES[0] in GraphSearch(path, 1).find(Query("胃镜")).triples
    assert GraphSearch(path, 3).find(Query("仪器")).total == 1
    assert GraphSearch(path, 1).find(Query("仪器")).total == 0


def test_a_page_of_a_large_graph_comes_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(database_module, "LARGE", 2_000)
    monkeypatch.setattr(search_module, "LARGE", 2_000)
    path = tmp_path / "large.kg"
    rows = ((i, f"名{i}号", "类别", f"类{i % 7}") for i in range(20_000))
    import_triples(path, [Source("made.spo", rows)])
    search = GraphSearch(path, 1)
    for query, total in (
        (Query(), None),
        (Query("名1999", "head_starts"), 11),
        (Query("类3", "tail"), None),
        (Query("名1999"), 11),
    ):
        begun = time.perf_counter()
        found = search.find(query, most=100)
        assert found.triples
        assert found.total == total
        assert time.perf_counter() - begun < 5  # a busy machine; a quiet one takes 0.05 s


def test_new_versions_reach_the_index_of_trigrams(path, large):
    import_triples(path, [Source("more.spo", [(1, "electrocardiogram", "is", "an Examination")])])
    with GraphStore(path, write=True) as store:
        store.apply(Edit("add", Triple("radiogram", "is", "an examination")))
        store.apply(Edit("replace", TRIPLES[6], Triple("Aspirin", "treats", "cardiopathy")))
        store.undo(2)
        search = GraphSearch(path, store.revision)
        select = search_module._Select(Query("RADIOGRAM"), store.revision, None, ())
        with search._reading() as database:
            assert database_module.texts_are_indexed(database)
            assert search_module._few(database, select) is False  # LARGE is 0
            assert "triple_text" in select.stored
    assert [t.head for t in everything(search, Query("EXAMINATION"))] == ["radiogram"]
    assert [t.tail for t in everything(search, Query("cardio"))] == ["cardiopathy"]
    assert everything(GraphSearch(path, 2), Query("cardio"))[0].head == "electrocardiogram"


@pytest.mark.parametrize("harm", ["DROP TABLE triple_text", "SELECT 1"])
def test_a_graph_without_an_index_of_trigrams_is_searched_and_edited(path, large, harm):
    import_triples(path, [Source("more.spo", [(1, "x", "y", "z")])])
    with closing(sqlite3.connect(path)) as database:
        database.execute(harm)
        database.execute("DELETE FROM fact WHERE name = 'texts'")
        database.commit()
    with GraphStore(path, write=True) as store:
        store.apply(Edit("add", Triple("Aspirin", "is", "acetylsalicylic acid")))
    assert len(everything(GraphSearch(path, 3), Query("acetyl"))) == 1


texts = st.text(st.sampled_from("aAＡbÄäﬁi胃镜炎（%_!\"' "), min_size=1, max_size=5)
some_triples = st.lists(
    st.builds(Triple, texts, texts, texts).filter(lambda t: normalise_name(t.head)),
    min_size=1,
    max_size=12,
)
some_queries = st.builds(
    Query, texts, st.sampled_from(["anywhere", "head", "head_starts", "tail", "tail_is"])
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(some_triples, some_queries)
def test_every_search_finds_what_an_obvious_one_does(tmp_path_factory, large, triples, query):
    folder, graph = tmp_path_factory.mktemp("g"), KnowledgeGraph(triples)
    rows = [(1, t.head, t.relation, t.tail) for t in triples]
    import_triples(folder / "indexed.kg", [Source("f", rows)])
    import_triples(folder / "read.kg", [Source("f", rows)], searchable=False)
    wanted = normalise_name(query.text)

    def is_found(triple):
        head, relation, tail = map(normalise_name, (triple.head, triple.relation, triple.tail))
        return {
            "anywhere": wanted in head or wanted in relation or wanted in tail,
            "head": wanted in head,
            "head_starts": head.startswith(wanted),
            "tail": wanted in tail,
            "tail_is": wanted in ("", tail),
        }[query.where]

    expected = {triple for triple in graph if is_found(triple)}
    for search in (
        MemorySearch(graph),
        GraphSearch(folder / "indexed.kg", 1),
        GraphSearch(folder / "read.kg", 1),
    ):
        found = everything(search, query)
        assert set(found) == expected
        assert len(found) == len(expected)
