"""A graph on a PostgreSQL server does what a graph file does; against a server of our own."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from edited_graphs import STEPS, add_to_one_name, content, kill_once, run, step
from hypothesis import HealthCheck, given, settings
from postgres import running_cluster

from kbert_core import KnowledgeGraph, Triple, find_mentions, load_graph
from kbert_core.errors import GraphConflict, GraphEditError, GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations
from kbert_lab.graphs.store import anywhere, importing, log, server
from kbert_lab.graphs.store.anywhere import copy_graph, import_into, open_store
from kbert_lab.graphs.store.importing import Source, import_triples
from kbert_lab.graphs.store.names import rebuild_names
from kbert_lab.graphs.store.store import GraphStore
from kbert_lab.suites.grid import Experiment
from kbert_lab.suites.suite import read_suite

PEAR, PLUM = Triple("pear", "is", "fruit"), Triple("plum", "is", "fruit")


@pytest.fixture(scope="module")
def cluster():
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KBERT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "graphs"


def created(address):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fruits.kg"
        GraphStore.create(path).close()
        copy_graph(path, address)
    return open_store(address)


def wait_until(done):
    """Whoever is told of an edit is so in a moment; the benchmark measures it."""
    end = time.monotonic() + 10
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def address(cluster):
    address = cluster.address()
    with created(address) as store:
        store.apply(Edit("add", PEAR), who="ann")
    return address


@settings(max_examples=6, deadline=None, suppress_health_check=[*HealthCheck])
@given(steps=STEPS)
def test_random_edits_and_undos_give_what_values_give(cluster, cache, steps):
    def index(_):
        for mirror in cache.glob("server-*.kg"):
            rebuild_names(mirror)

    run(cluster.address(), steps, create=created, index=index)


def test_a_graph_is_read_edited_and_undone(address, kbert):
    assert load_graph(address).triples_of("Pear") == (PEAR,)
    for words in ("add pear alias nashi", "off pear is fruit", "undo 2", "redo"):
        command, *rest = words.split()
        kbert("kg", command, address, *rest, "--by", "bob")
    assert "Undo entry 3 first" in kbert("kg", "undo", address, 1, code=2).err
    with open_store(address) as store:
        assert [(e.action, e.who, e.undone) for e in store.history()][:3] == [
            ("undo", "bob", False), ("undo", "bob", True), ("switch_off", "bob", False)
        ]  # fmt: skip
        assert store.origin(PEAR).revision == 3
    assert [m.entity for m in find_mentions(["a nashi"], load_graph(address))[0]] == ["pear"]
    assert "nashi" in kbert("kg", "diff", f"{address}@1", address).out


def test_any_text_is_kept_as_it_is(address):
    strange = [
        Triple("100% ?", ":then", "a'b\"\\ $1 {x}"),
        Triple("长" * 20_000, "r" * 9_000, "尾" * 9_000),
        Triple("𝒳\u200d", "%s", "%(x)s"),
    ]
    with open_store(address, write=True) as store:
        store.apply(*(Edit("add", triple) for triple in strange))
    graph = load_graph(address)
    assert {*graph} == {PEAR, *strange}
    assert [m.entity for m in find_mentions(["is 100% ? yes"], graph)[0]] == ["100% ?"]


def test_triples_numbered_anew_stand_so_on_every_machine(address, tmp_path, monkeypatch):
    with open_store(address) as store:
        store.apply(Edit("add", Triple("pear", "is", "last")))
        for number in range(60):  # halves what is between two, until nothing is
            store.apply(Edit("add", Triple("pear", "is", str(number)), index=1))
        with other_machine(monkeypatch, tmp_path / "other"), open_store(address) as other:
            assert other.graph().triples_of("pear") == store.graph().triples_of("pear")
            store.apply(*(Edit("add", Triple("pear", "is", f"x{n}"), index=1) for n in range(60)))
            assert load_graph(address) == store.graph()
            assert content(other.at(30)) == content(store.at(30))


# Several at once


@contextmanager
def other_machine(monkeypatch, folder):
    """Whatever is opened in the block has a mirror of its own."""
    with monkeypatch.context() as patch:
        patch.setenv("KBERT_CACHE", str(folder))
        yield


def editing(address, acknowledged):
    store = open_store(address, write=True)
    while True:
        number = store.revision + 1
        store.apply(*step(number))
        os.write(acknowledged, b"%d\n" % number)


def test_kills_in_the_middle_of_edits_lose_and_halve_nothing(cluster):
    address, chance, last = cluster.address(), random.Random(1), 0
    reader = created(address)
    for _ in range(5):
        last = max(last, kill_once(address, chance.uniform(0.01, 0.3), editing))
        store = open_store(address, write=True)  # waits for what was cut off
        store.apply(*step(store.revision + 1))
        graph, then = reader.graph(), KnowledgeGraph()
        assert reader.revision == store.revision > last
        for number in range(1, reader.revision + 1):
            then = then.apply(*step(number))
        assert content(graph) == content(then)
        assert [e.revision for e in reader.history()] == list(range(reader.revision, -1, -1))
    assert last >= 5


def opened_on(machines, address, tmp_path, monkeypatch):
    stores = []
    for number in range(machines):
        with other_machine(monkeypatch, tmp_path / str(number)):
            stores.append(open_store(address, write=True))
    return stores


def test_an_edit_is_what_the_server_has_and_is_told_to_other_machines(
    address, tmp_path, monkeypatch
):
    asked, transaction = [], server.Server.transaction
    monkeypatch.setattr(server.Server, "transaction", lambda *a: asked.append(a) or transaction(*a))
    store, other = opened_on(2, address, tmp_path, monkeypatch)
    for edit in (
        Edit("add", PLUM, index=None),
        Edit("switch_off", PEAR),
        Edit("replace", PEAR, replace(PEAR, head="nashi")),
        Edit("add", PEAR),
    ):
        store.apply(edit)
        asked.clear()
        graph = store.graph()
        assert not asked  # its own edits it knows
        wait_until(lambda graph=graph: content(other.graph()) == content(graph))
        assert other.revision == store.revision
    assert find_mentions(["a plum"], other.graph())[0]


def test_of_two_edits_of_one_triple_one_wins_and_the_other_is_told(address, tmp_path, monkeypatch):
    stores = opened_on(2, address, tmp_path, monkeypatch)
    seen = stores[0].revision

    def rename(number):
        new = replace(PEAR, tail=f"tree {number}")
        try:
            stores[number].apply(Edit("replace", PEAR, new), who=f"user {number}", seen=seen)
        except GraphEditError as error:
            return number, error

    with ThreadPoolExecutor() as pool:
        told = [*filter(None, pool.map(rename, range(2)))]
    [(loser, error)] = told
    assert isinstance(error, GraphConflict)
    assert f"edited by user {1 - loser} meanwhile" in str(error)
    for store in stores:
        assert store.graph().triples_of("pear") == (replace(PEAR, tail=f"tree {1 - loser}"),)
        assert store.revision == seen + 1
    with pytest.raises(GraphEditError, match="has no such triple"):  # without ``seen``
        stores[loser].apply(Edit("remove", PEAR))


def test_additions_to_one_name_conflict_only_where_they_are_the_same(
    address, tmp_path, monkeypatch
):
    add_to_one_name(opened_on(3, address, tmp_path, monkeypatch))


# The server away


def cut(cluster):
    """End every connection to the server, as if it had been started anew."""
    cluster.ask(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )


@pytest.mark.parametrize("where", ["entry", "edit", "commit"])
def test_a_connection_lost_in_an_edit_leaves_nothing_and_the_edit_can_be_repeated(
    cluster, address, monkeypatch, where
):
    edits = [Edit("add", PLUM), Edit("switch_off", PEAR)]
    with open_store(address, write=True) as store, monkeypatch.context() as patch:
        before, revision = content(store.graph()), store.revision
        if where == "commit":
            send = server._send
            patch.setattr(server, "_send", lambda *a, **how: (send(*a, **how), cut(cluster)))
        else:
            write = getattr(log, f"write_{where}")

            def cut_after(*values):
                write(*values)
                cut(cluster)

            patch.setattr(log, f"write_{where}", cut_after)
        with pytest.raises(GraphFileError, match=r"lost.*(again|repeat)"):
            store.apply(*edits)
        patch.undo()
        with open_store(address) as other:
            assert (content(other.graph()), other.revision) == (before, revision)
        store.apply(*edits)
        assert not store.graph().is_on(PEAR)
        assert PLUM in store.graph()
        assert store.revision == revision + 1


def test_a_server_that_stops_and_comes_back_is_read_and_edited_on(cluster, address):
    with open_store(address, write=True) as store:
        graph = store.graph()
        cluster.stop()
        try:
            for work in (lambda: store.apply(Edit("add", PLUM)), lambda: load_graph(address)):
                with pytest.raises(GraphFileError, match="no connection to the server"):
                    work()
            assert graph.triples_of("pear") == (PEAR,)
        finally:
            cluster.start()
        store.apply(Edit("add", PLUM))
        assert load_graph(address).triples_of("plum") == (PLUM,)


# What is refused


def test_a_password_is_never_shown(cluster, address, monkeypatch, kbert):
    secret = "sw0rdfish"
    within = address.replace("kbert@", f"kbert:{secret}@")
    for wrong in (
        *(within, within.replace("postgresql:", "postgres:")),
        address.replace("kbert@", f"kbert:{secret}/@x@"),
        *(f"{address}&{n}={secret}" for n in ("password", "PASSWORD", "sslPassword", "p%61ssword")),
    ):
        for command in (("kg", "add", wrong, "a", "b", "c"), ("tree", "pear", "--kg", wrong)):
            said = "".join(kbert(*command, code=2))
            assert secret not in said
            assert "***" in said and "PGPASSWORD" in said
    cluster.ask("CREATE ROLE locked LOGIN PASSWORD 'other'")
    monkeypatch.setenv("PGPASSWORD", secret)
    with pytest.raises(GraphFileError, match="password authentication failed") as refused:
        load_graph(cluster.address(user="locked"))
    assert secret not in "".join(traceback.format_exception(refused.value))


def test_what_is_no_graph_of_ours_is_refused(cluster, address):
    with pytest.raises(GraphFileError, match="there is no graph"):
        load_graph(cluster.address())
    with pytest.raises(GraphFileError, match="can't be called 'A b'"):
        load_graph(cluster.address(graph="A b"))
    with pytest.raises(GraphFileError, match="no address of a graph"):
        load_graph("postgresql://kbert@host:port/x")
    schema = address.rpartition("=")[2]
    cluster.ask(f"UPDATE {schema}.fact SET value = '7' WHERE name = 'version'")
    with pytest.raises(GraphFileError, match=r"another version.*format 7"):
        load_graph(address)
    cluster.ask(f"UPDATE {schema}.fact SET value = CASE name WHEN 'id' THEN '../../x' ELSE '1' END")
    with pytest.raises(GraphFileError, match=r"damaged .*has the id '../../x'"):
        load_graph(address)


def test_a_user_who_may_only_read_reads(cluster, address):
    schema = address.rpartition("=")[2]
    cluster.ask(
        f"CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA {schema} TO reader; "
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader"
    )
    address = cluster.address(user="reader", graph=schema)
    assert load_graph(address).triples_of("pear") == (PEAR,)
    with open_store(address, write=True) as store:
        with pytest.raises(GraphFileError, match="may only read"):
            store.apply(Edit("add", PLUM))
        assert store.graph().triples_of("pear") == (PEAR,)


# Imports and copies


def test_an_import_into_a_server_does_what_it_does_in_a_file(cluster, tmp_path, kbert):
    first, more, empty, bad = (tmp_path / f"{name}.spo" for name in "abcd")
    first.write_text("b\tr\t1\nA\tr\t2\nb\tr\t1\na\tr\t3\n")
    more.write_text("a\tcalled\tz\nA\tr\t2\nnew\tr\t%s\na\tr\t3\n")
    empty.write_text("\n")
    bad.write_text("x\ty\tz\nx\ty\n")

    def imported(graph):
        for file in (bad, empty):
            kbert("kg", "import", file, "--output", graph, code=2)
            assert not anywhere.is_there(graph)
        said = []
        for words in ((first, first), (more, "--alias", "called", "--by", "ann")):
            report = kbert("kg", "import", *words, "--output", graph, "--json")
            said.append({k: v for k, v in report.items() if k not in ("graph", "seconds")})
            kbert("kg", "off", graph, "a", "r", "3", code=2 * (len(said) > 1))
        with open_store(graph, write=True) as store:
            graph = store.graph()
            return (
                said, content(graph), store.origins("a"), graph.aliases,
                [(e.action, e.edits, e.who) for e in store.history()],
                [content(store.at(revision)) for revision in range(4)],
                [m.entity for m in find_mentions(["a z"], graph)[0]],
                store.undo(3) and content(store.graph()),
            )  # fmt: skip

    of_file = imported(str(tmp_path / "g.kg"))
    assert imported(cluster.address()) == of_file
    assert [report["triples"] for report in of_file[0]] == [3, 2]
    assert of_file[6] == ["a", "a"]


def test_a_copy_has_the_whole_log_both_ways(cluster, tmp_path, kbert):
    path, back, address = tmp_path / "a.kg", tmp_path / "b.kg", cluster.address()
    aliases = AliasRelations(ALIAS_RELATIONS.names_of_head | {"called"})
    rows = [(n, f"name {n}", "is", str(n)) for n in range(300)]
    import_triples(path, [Source("rows.spo", rows)], aliases=aliases)
    with GraphStore(path, write=True) as store:
        store.apply(Edit("add", Triple("name 7", "called", "seven"), index=0), who="ann")
        store.apply(Edit("switch_off", Triple("name 8", "is", "8")))
        store.undo(2)
        store.redo()
    kbert("kg", "copy", path, address)
    kbert("kg", "copy", address, back)
    with (
        GraphStore(path) as first,
        open_store(address, write=True) as server,
        GraphStore(back) as last,
    ):
        for store in (server, last):
            assert store.history() == first.history()
            assert store.graph().aliases == aliases
            assert store.origins("name 7") == first.origins("name 7")
            for revision in range(first.revision + 1):
                assert content(store.at(revision)) == content(first.at(revision))
                assert store.changes(revision) == first.changes(revision)
            assert [m.entity for m in find_mentions(["seven"], store.graph())[0]] == ["name 7"]
        server.undo(3)
        server.undo(1)  # the import
        assert [*server.graph()] == [Triple("name 7", "called", "seven")]
        server.redo()
        assert len(server.graph()) == 301
    for target in (address, back):
        assert "is there already" in kbert("kg", "copy", path, target, code=2).err


def test_a_copy_that_is_cut_off_leaves_nothing(cluster, address, tmp_path, monkeypatch):
    def cut_off(*values, rows_since=anywhere.rows_since, **how):
        for table, rows in rows_since(*values, **how):
            yield table, rows
            if table == "entry":
                raise KeyboardInterrupt

    other, file = cluster.address(), tmp_path / "x.kg"
    with monkeypatch.context() as patch:
        patch.setattr(anywhere, "rows_since", cut_off)
        for target in (other, file):
            with pytest.raises(KeyboardInterrupt):
                copy_graph(address, target)
    assert not [*tmp_path.glob("x.kg*")]
    for target in (other, file):
        assert copy_graph(address, target) == 2
        assert load_graph(target).triples_of("pear") == (PEAR,)


def test_a_suite_reads_a_server_and_knows_when_its_graph_was_edited(address, tmp_path):
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.tsv").write_text("text_a\tlabel\n梨 好\tB-F O\n", "utf-8")
    suite = {
        "title": "t", "about": "a", "task": "ner", "data": {"folder": str(tmp_path)},
        "encoder": "scratch", "seeds": [1], "kg": address, "runs": [{"name": "K-BERT"}],
    }  # fmt: skip
    path = tmp_path / "suite.yaml"
    path.write_text(json.dumps(suite), "utf-8")  # which is YAML, too

    def made():
        experiment = Experiment(read_suite(path))
        (cell, *_) = experiment.cells()
        return experiment.inputs(cell)["kg"], [*experiment.covering]

    first, triples = made()
    assert triples == [PEAR] and first[0]["file"] == address
    assert made()[0] == first
    with open_store(address, write=True) as store:
        store.apply(Edit("add", PLUM))
    assert made()[0] != first


# The mirror


def test_the_mirror_is_made_once_and_made_anew_where_it_does_not_fit(
    cluster, address, cache, monkeypatch
):
    made = Mock(side_effect=importing.make_graph)
    monkeypatch.setattr(importing, "make_graph", made)

    def plum():
        return [m.entity for m in find_mentions(["a plum"], load_graph(address))[0]]

    with open_store(address, write=True) as store:
        store.apply(Edit("add", PLUM))
    assert (plum(), made.call_count) == (["plum"], 0)  # the fixture's mirror, and the log
    [mirror] = cache.glob("server-*.kg")
    mirror.write_bytes(b"x" * mirror.stat().st_size)
    assert (plum(), plum(), made.call_count) == (["plum"], ["plum"], 1)
    schema = address.rpartition("=")[2]
    cluster.ask(f"UPDATE {schema}.entry SET at = 'another time' WHERE revision = 2")
    assert (plum(), made.call_count) == (["plum"], 2)  # set back, and edited anew
    assert len([*cache.glob("server-*.kg")]) == len([*cache.glob("server-*.names-*")]) == 1


@pytest.mark.parametrize("when", ["first opened", "imported into while open"])
def test_several_that_need_the_mirror_at_once_get_one_and_none_is_refused(
    address, cache, when, tmp_path, monkeypatch
):
    stores = [open_store(address) for _ in range(5)] if when != "first opened" else []
    import_into(address, [Source("plums", [(n, f"plum {n}", "is", "fruit") for n in range(2000)])])
    if when == "first opened":
        shutil.rmtree(cache)
    start = threading.Barrier(5)
    made = Mock(side_effect=importing.make_graph)
    monkeypatch.setattr(importing, "make_graph", made)

    def look(number):
        start.wait()
        opened = stores[number].graph if stores else lambda: load_graph(address)
        wait_until(lambda: opened().triples_of("plum 7"))
        return [m.entity for m in find_mentions(["a plum 7"], opened())[0]]

    with ThreadPoolExecutor() as pool:
        assert [*pool.map(look, range(5))] == [["plum 7"]] * 5
    assert made.call_count == (0 if stores else 1)
    assert len([*cache.glob("server-*.names-*")]) == 1


def test_a_cache_that_cant_be_written_is_said(address, cache, monkeypatch):
    monkeypatch.setenv("KBERT_CACHE", "/dev/null/cache")
    with pytest.raises(GraphFileError, match=r"can't be written to.*Set KBERT_CACHE"):
        load_graph(address)


# Processes that open one graph at the same moment, again and again

ROUNDS, PROCESSES, TRIPLES = 6, 6, 20_000
PROGRAM = """
import sys
from kbert_core import find_mentions, load_graph
print("ready", flush=True)
sys.stdin.readline()
print(len(find_mentions(["name 7"], load_graph(sys.argv[1]))[0]), flush=True)
"""


@pytest.mark.soak
def test_processes_that_open_a_graph_at_once_all_get_it(cluster, tmp_path, figures):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    address = cluster.address()
    for number in range(ROUNDS):
        rows = [(n, f"name {n}", "round", str(number)) for n in range(TRIPLES)]
        import_into(address, [Source("rows", rows)])  # after which the index is made anew
        environment = {**os.environ, "KBERT_CACHE": str(tmp_path / str(number // 3))}
        command = [sys.executable, "-c", PROGRAM, address]
        started = [subprocess.Popen(command, env=environment, **pipes) for _ in range(PROCESSES)]
        assert [process.stdout.readline() for process in started] == ["ready\n"] * PROCESSES
        for process in started:
            process.stdin.write("\n")
            process.stdin.flush()
        assert [process.communicate()[0] for process in started] == ["1\n"] * PROCESSES
    figures["processes that open a graph at once"] = {"cases": ROUNDS * PROCESSES, "refused": 0}


# Without a server


def test_without_the_packages_the_error_names_them_and_nothing_else_needs_them():
    program = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from kbert_core import KBertError, load_graph\n"
        "load_graph('demo_kgs/figure2.spo')\n"
        "assert 'kbert_lab' not in sys.modules\n"
        "try: load_graph('postgresql://nobody@localhost/x')\n"
        "except KBertError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'kbert-lab[server]'" in done.stdout, done.stderr
