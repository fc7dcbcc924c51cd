"""Triples from text files into a graph file, and large text files indexed once."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple, find_mentions, load_graph
from kbert_core.errors import GraphConflict, GraphFileError
from kbert_core.kbert.bulk import scan
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.io import open_rows
from kbert_core.knowledge.store import cache
from kbert_core.knowledge.store.importing import Source, import_triples
from kbert_core.knowledge.store.store import GraphStore

LINES = "糖尿病\t类别\t疾病\n糖尿病\t症状\t多饮\n心电图\t类别\t检查\n糖尿病\t类别\t疾病\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "kg.spo"
    path.write_text(LINES, encoding="utf-8")
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "g.kg"


def import_file(path, file, **options):
    return import_triples(path, [Source(file.name, open_rows(file))], **options)


def test_an_import_makes_a_graph_with_the_triples_in_file_order(path, file):
    done = import_file(path, file, name="clinic", who="ann")
    assert (done.triples, done.repeated, done.revision) == (3, 1, 1)
    with GraphStore(path) as store:
        graph = store.graph()
        assert graph.name == "clinic"
        assert set(graph) == set(load_graph(file))
        assert graph.triples_of("糖尿病") == load_graph(file).triples_of("糖尿病")
        entry = store.history()[0]
        assert (entry.action, entry.edits, entry.who) == ("import", 3, "ann")
        origin = store.origin(Triple("心电图", "类别", "检查"))
        assert (origin.file, origin.line, origin.revision) == ("kg.spo", 3, 1)


def test_a_second_import_adds_what_is_new(path, file, tmp_path):
    import_file(path, file)
    more = tmp_path / "more.tsv"
    more.write_text(
        "糖尿病\t类别\t疾病\n糖尿病\t别名\t消渴\n胃镜\t类别\t检查\n胃镜\t类别\t检查\n", "utf-8"
    )
    done = import_file(path, more)
    assert (done.triples, done.repeated, done.revision) == (2, 2, 2)
    with GraphStore(path, write=True) as store:
        assert [t.tail for t in store.graph().triples_of("糖尿病")] == ["疾病", "多饮", "消渴"]
        assert find_mentions("行胃镜", store.graph())
        assert store.origin(Triple("胃镜", "类别", "检查")).file == "more.tsv"
        assert [c.after.tail for c in store.changes(2)] == ["消渴", "检查"]


def test_an_import_is_undone_and_made_again_whole(path, file, tmp_path):
    import_file(path, file)
    more = tmp_path / "more.tsv"
    more.write_text("胃镜\t类别\t检查\n心电图\t用于\t心\n", "utf-8")
    import_file(path, more)
    with GraphStore(path, write=True) as store:
        both = set(store.graph())
        store.undo()
        assert set(store.graph()) == set(load_graph(file))
        assert not find_mentions("行胃镜", store.graph())
        store.redo()
        assert set(store.graph()) == both
        assert find_mentions("行胃镜", store.graph())
        store.undo(1)  # the first of the two
        assert [t.head for t in store.graph()] == ["心电图", "胃镜"]


def test_an_import_that_was_edited_since_isnt_undone(path, file):
    import_file(path, file)
    with GraphStore(path, write=True) as store:
        store.apply(Edit("remove", Triple("心电图", "类别", "检查")))
        with pytest.raises(GraphConflict, match=r"entry 1 can't be undone.*心电图.*Undo entry 2"):
            store.undo(1)
        store.undo(2)
        store.undo(1)
        assert not list(store.graph())


def test_an_import_that_fails_leaves_nothing(path, file, tmp_path):
    file.write_text(LINES + "half a line\n", "utf-8")
    with pytest.raises(GraphFileError, match="line 5: found 1 field"):
        import_file(path, file)
    assert [p.name for p in tmp_path.iterdir()] == ["kg.spo"]
    file.write_text(LINES, "utf-8")
    import_file(path, file)
    before = sorted(p.name for p in tmp_path.iterdir())
    file.write_text("新\t类别\t病\nhalf a line\n", "utf-8")
    with pytest.raises(GraphFileError, match="line 2"):
        import_file(path, file)
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    with GraphStore(path) as store:
        assert len(store.graph()) == 3
        assert store.revision == 1


def test_an_import_tells_how_far_it_is(path, monkeypatch):
    from kbert_core.knowledge.store import importing

    monkeypatch.setattr(importing, "_STEP", 2)
    told = []
    rows = [(n, f"name {n}", "r", "t") for n in range(1, 6)]
    import_triples(path, [Source("rows", rows)], progress=told.append)
    assert told == [2, 4, 5]


triples = st.builds(
    Triple,
    st.sampled_from(["a", "A", "ab", "阿司匹林", "b c", "ａ"]),
    st.sampled_from("rs"),
    st.sampled_from("xyz"),
)


@given(st.lists(st.lists(triples, min_size=1, max_size=8), min_size=1, max_size=3))
def test_imports_do_what_loading_into_memory_does(tmp_path_factory, files):
    path = tmp_path_factory.mktemp("g") / "g.kg"
    memory = KnowledgeGraph(triple for file in files for triple in file)
    for file in files:
        rows = [(n, t.head, t.relation, t.tail) for n, t in enumerate(file, start=1)]
        import_triples(path, [Source("f", rows)])
    with GraphStore(path) as store:
        graph = store.graph()
        assert sorted(graph.entities()) == sorted(memory.entities())
        assert all(graph.triples_of(e) == memory.triples_of(e) for e in memory.entities())
        assert len(graph) == len(memory)
        texts = ("ab a 阿司匹林 b c A", "ａ")
        assert [find_mentions(t, graph) for t in texts] == [find_mentions(t, memory) for t in texts]
        assert scan(texts, graph).entities == scan(texts, memory).entities


# The cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KBERT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "LARGE", 10)
    monkeypatch.setattr(cache, "LARGE_PACKED", 10)
    return tmp_path / "cache" / "graphs"


def test_a_large_text_file_is_indexed_once_for_its_content(file, folder):
    memory = KnowledgeGraph(load_graph(file))
    graph = load_graph(file)
    assert graph.name == "kg"
    assert set(graph) == set(memory)
    (made,) = folder.glob("*.kg")
    when = made.stat().st_mtime_ns
    file.rename(file.with_name("other.spo"))
    again = load_graph(file.with_name("other.spo"))
    assert (again.fingerprint, again.name) == (graph.fingerprint, "other")
    assert made.stat().st_mtime_ns == when
    file.write_text(LINES + "胃镜\t类别\t检查\n", "utf-8")
    assert load_graph(file).fingerprint != graph.fingerprint
    assert len(list(folder.glob("*.kg"))) == 2


def test_a_large_packed_file_is_indexed_too_and_a_bad_line_refused(file, folder):
    packed = file.with_name("kg.spo.gz")
    packed.write_bytes(gzip.compress(LINES.encode()))
    assert len(load_graph(packed)) == 3
    packed.write_bytes(gzip.compress(LINES.encode() + b"bad\n"))
    with pytest.raises(GraphFileError, match="line 5"):
        load_graph(packed)
    assert len(load_graph(packed, skip_bad=True)) == 3


def test_a_graph_file_opens_beside_text_files(path, file, tmp_path):
    import_file(path, file)
    more = tmp_path / "more.spo"
    more.write_text("糖尿病\t别名\t消渴\n糖尿病\t类别\t疾病\n", "utf-8")
    graph = load_graph(path, more)
    assert graph.name == "g + more"
    assert [t.tail for t in graph.triples_of("糖尿病")] == ["疾病", "多饮", "消渴"]
    assert len(graph) == 4
    one = load_graph(path)
    assert find_mentions("糖尿病，心电图", one) == find_mentions("糖尿病，心电图", graph)
