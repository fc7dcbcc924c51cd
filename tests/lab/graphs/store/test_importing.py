"""Triples from text files into a graph file, and large text files indexed once."""

import gzip
import os
import shutil
import sqlite3
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple, find_mentions, load_graph
from kbert_core.errors import GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.io import open_rows
from kbert_lab.graphs.store import GraphBusy, graph_lock, names
from kbert_lab.graphs.store import importing as cache
from kbert_lab.graphs.store.importing import Source, import_triples
from kbert_lab.graphs.store.store import GraphStore

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
        assert find_mentions(["行胃镜"], store.graph())[0]
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
        assert not find_mentions(["行胃镜"], store.graph())[0]
        store.redo()
        assert set(store.graph()) == both
        assert find_mentions(["行胃镜"], store.graph())[0]
        store.undo(1)  # the first of the two
        assert [t.head for t in store.graph()] == ["心电图", "胃镜"]


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


def test_what_an_older_graph_of_that_name_left_doesnt_reach_a_new_one(path, file, tmp_path):
    with GraphStore.create(tmp_path / "old.kg") as old:
        for number in range(50):
            old.apply(Edit("add", Triple(f"old {number}", "r", "t")))
        for ending in ("-wal", "-shm"):
            shutil.copy(f"{old.path}{ending}", f"{path}{ending}")
        (tmp_path / "g.kg-journal").write_bytes(b"\0" * 512)
    import_file(path, file)
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with GraphStore(path) as store:
        assert len(store.graph()) == 3


def test_two_processes_that_make_the_same_graph_take_turns(path, file):
    def slow_rows():
        yield 1, "a", "r", "t"
        other.start()
        other.join(0.3)
        assert other.is_alive()  # it waits
        yield 2, "b", "r", "t"

    other = threading.Thread(target=import_file, args=(path, file))
    import_triples(path, [Source("slow", slow_rows())])
    other.join()
    with GraphStore(path) as store:
        assert len(store.graph()) == 5
        assert [entry.action for entry in store.history()] == ["import", "import", "create"]
    with pytest.raises(GraphFileError, match="is there already"):
        GraphStore.create(path)


def test_a_graph_being_made_isnt_waited_for_without_end(path, file):
    refused = pytest.raises(GraphBusy, match="another process has been making it")
    with graph_lock(path), refused, graph_lock(path, wait=0):
        pass
    import_file(path, file)
    assert not path.with_name("g.kg.lock").exists()


def test_a_file_that_another_program_put_there_is_kept(path):
    def rows():
        path.write_text("mine")
        yield 1, "a", "r", "t"

    with pytest.raises(GraphFileError, match="another program put a file there meanwhile"):
        import_triples(path, [Source("rows", rows())])
    assert path.read_text() == "mine"
    assert [p.name for p in path.parent.iterdir() if ".part" in p.name] == []


@pytest.mark.parametrize("there", [False, True])
def test_what_killed_imports_left_is_removed_by_the_next_one(path, file, tmp_path, there):
    if there:
        import_file(path, file)
    left = ["g.kg.part", "g.kg.0123abcd.part", "g.kg.names-0123abcd", "g.kg.names-4567cdef.part"]
    others = {"g.kg.names-mine", "other.kg.part", "kg.spo"}
    for name in (*left, *others - {"kg.spo"}):
        (tmp_path / name).write_text("x")
    import_file(path, file)
    now = {p.name for p in tmp_path.iterdir()}
    assert not now & set(left)
    assert others <= now
    assert len(now - others) == 2  # the graph and its names


triples = st.builds(
    Triple,
    st.sampled_from(["a", "A", "ab", "a-b", "abs", "ab (x)", "阿司匹林", "b c", "ａ"]),
    st.sampled_from(["r", "s", "别名"]),
    st.sampled_from(["x", "bc", "ab"]),
)


@pytest.mark.parametrize(("in_a_trie", "hashes"), [(names.PART, cache._HASHES), (1, 1), (3, 2)])
@given(st.lists(st.lists(triples, min_size=1, max_size=12), min_size=1, max_size=3))
def test_imports_do_what_loading_into_memory_does(tmp_path_factory, in_a_trie, hashes, files):
    path = tmp_path_factory.mktemp("g") / "g.kg"
    memory = KnowledgeGraph(triple for file in files for triple in file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names, "PART", in_a_trie)
        patch.setattr(cache, "_HASHES", hashes)
        for file in files:
            rows = [(n, t.head, t.relation, t.tail) for n, t in enumerate(file, start=1)]
            import_triples(path, [Source("f", rows)])
    with GraphStore(path) as store:
        graph = store.graph()
        assert sorted(graph.entities()) == sorted(memory.entities())
        assert all(graph.triples_of(e) == memory.triples_of(e) for e in memory.entities())
        assert len(graph) == len(memory)
        for key in ("a", "ab", "abc", "abs", "阿司匹林", "bc", "x"):
            assert graph.names.meant_by(key) == memory.names.meant_by(key)
        texts = ("ab a 阿司匹林 b c A", "ａ", "a-b abs bc x")
        assert list(find_mentions(texts, graph)) == list(find_mentions(texts, memory))


# The cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("KBERT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("kbert_core.knowledge.LARGE", 10)
    monkeypatch.setattr("kbert_core.knowledge.LARGE_PACKED", 10)
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


def test_a_large_text_file_that_stays_is_hashed_once(file, folder, monkeypatch):
    monkeypatch.setattr(cache, "SETTLED", -1)  # as if its last change were long ago
    first = load_graph(file)
    with monkeypatch.context() as patch:
        patch.setattr(cache.hashlib, "file_digest", None)
        assert load_graph(file).fingerprint == first.fingerprint
    stat = file.stat()
    file.write_text(LINES.replace("多饮", "多尿"), "utf-8")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # the same size and time
    assert Triple("糖尿病", "症状", "多尿") in load_graph(file)
    for remembered in folder.glob("*.hash"):
        remembered.write_text("../../harm")
    assert Triple("糖尿病", "症状", "多尿") in load_graph(file)


def test_a_large_packed_file_is_indexed_too_and_a_bad_line_refused(file, folder):
    packed = file.with_name("kg.spo.gz")
    packed.write_bytes(gzip.compress(LINES.encode()))
    assert len(load_graph(packed)) == 3
    packed.write_bytes(gzip.compress(LINES.encode() + b"bad\n"))
    with pytest.raises(GraphFileError, match="line 5"):
        load_graph(packed)
    assert len(load_graph(packed, skip_bad=True)) == 3
