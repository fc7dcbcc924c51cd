"""What someone may put into a graph to break it: kept as it is, bounded, and never run."""

import sqlite3
import time

import pytest

from kbert_core import (
    KnowledgeGraph,
    Triple,
    find_mentions,
    load_graph,
    write_triples,
)
from kbert_core.errors import GraphFileError
from kbert_core.kbert.sentence_tree import grow_trees
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.io import open_rows
from kbert_lab import cli
from kbert_lab.graphs.check import check
from kbert_lab.graphs.store.importing import Source, import_triples
from kbert_lab.graphs.store.store import GraphStore

HOSTILE = (
    *("'); DROP TABLE triple; --", '" OR 1=1; --', "%_*?", "<script>alert(1)</script>"),
    *("<img src=x onerror=alert(1)>", "=HYPERLINK(1)", "'=1+1", "@SUM(A1)", "${jndi:ldap://x}"),
    *("{{7*7}}", "../../etc/passwd", "%s%n", "$(touch x)", "`touch x`", "\\u0000", "null", "NaN"),
)
TRIPLES = [Triple(a, b, c) for a, b, c in zip(HOSTILE, HOSTILE[1:], HOSTILE[2:], strict=False)]


@pytest.fixture
def many(tmp_path, count):
    """One head with many triples."""
    path = tmp_path / "many.spo"
    write_triples((Triple("糖尿病", "r", f"t{number}") for number in range(count)), path)
    return path


def test_sql_and_html_in_every_field_are_stored_edited_and_found(tmp_path):
    with GraphStore.create(tmp_path / "g.kg", name=HOSTILE[0]) as store:
        for triple in TRIPLES:
            store.apply(Edit("add", triple), who=triple.tail)
        for triple in TRIPLES:
            assert store.origin(triple).file is None
            assert [entry.who for entry in store.history(entity=triple.head)] == [triple.tail]
            assert {m.entity for m in find_mentions([f" {triple.head} "], store.graph())[0]}
        store.apply(Edit("remove", TRIPLES[0]), who=HOSTILE[0])
        store.undo()
        assert set(store.graph()) == set(TRIPLES)
        assert store.graph().triples_of("'; DROP TABLE entry; --") == ()
    database = sqlite3.connect(tmp_path / "g.kg")
    assert database.execute("SELECT count(*) FROM entry").fetchone()[0] == len(TRIPLES) + 3


@pytest.mark.parametrize(
    "name", ["a'; b.kg", "a b?mode=ro#c.kg", "-- .kg", "%2e%2e.kg", "糖$(x).kg"]
)
def test_a_graph_of_any_file_name_stays_in_its_folder(name, tmp_path, capsys, monkeypatch):
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    assert cli.main(["kg", "add", f"./{name}", "a", "b", "c"]) == 0
    assert cli.main(["kg", "show", f"./{name}", "a"]) == 0
    assert list(tmp_path.iterdir()) == [inside]
    assert all(path.name.startswith(name) for path in inside.iterdir())
    capsys.readouterr()


@pytest.mark.parametrize("name", ["no\0where.spo", "x" * 300 + ".spo", "", "../missing/a.spo", "/"])
def test_a_path_that_is_no_file_is_refused(name):
    with pytest.raises(GraphFileError):
        load_graph(name)


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_many_triples_on_one_head_are_read_stored_and_injected(many, count, tmp_path):
    graph = load_graph(many)
    assert len(graph.triples_of("糖尿病")) == count
    node = grow_trees(["患糖尿病"], graph)[0].nodes[0]
    assert len(node.branches) == 2
    with_store = tmp_path / "g.kg"
    assert import_triples(with_store, [Source("many", open_rows(many))]).triples == count
    with GraphStore(with_store, write=True) as store:
        begun = time.perf_counter()
        store.apply(Edit("add", Triple("糖尿病", "r", "first"), index=0))
        store.undo()
        assert time.perf_counter() - begun < 30
        assert store.graph().triples_of("糖尿病")[-1].tail == f"t{count - 1}"
    assert {f.kind for f in check(graph)} == set()


def test_a_tail_of_50_000_characters_is_kept_and_a_longer_one_refused(tmp_path):
    long = Triple("糖尿病", "说明", "长" * 50_000)
    write_triples([long], tmp_path / "a.jsonl")
    graph = load_graph(tmp_path / "a.jsonl")
    with GraphStore.create(tmp_path / "g.kg") as store:
        store.apply(Edit("add", long))
        assert list(store.graph()) == list(graph) == [long]
    assert [f.kind for f in check(graph)] == ["long_tail"]
    write_triples([Triple("糖尿病", "说明", "长" * 50_001)], tmp_path / "a.jsonl")
    with pytest.raises(GraphFileError, match="a field of 50001 characters"):
        load_graph(tmp_path / "a.jsonl")


def test_aliases_in_a_circle_grow_a_tree_of_their_own_triples():
    graph = KnowledgeGraph(
        [
            Triple("消渴", "别名", "消渴症"),
            Triple("消渴症", "别名", "消渴"),
            Triple("糖", "别名", "糖"),
        ]
    )
    tree = grow_trees(["患消渴症"], graph)[0]
    assert [node.mention.entity for node in tree.nodes] == ["消渴症"]
