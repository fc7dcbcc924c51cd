"""Random edits and undos of a graph file beside obvious second implementations of both.

And a process that edits a graph file and is killed at a random moment: nothing may be lost. And
graph files with flipped bits, spliced bytes and values of another kind: refused, or read whole.
"""

import os
import random
import shutil
import signal
import sqlite3
import time
from contextlib import closing, suppress
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple, find_mentions
from kbert_core.errors import GraphConflict, GraphEditError, GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs.search import GraphSearch, Query
from kbert_lab.graphs.store.anywhere import copy_graph, open_store
from kbert_lab.graphs.store.importing import Source, import_triples
from kbert_lab.graphs.store.names import rebuild_names
from kbert_lab.graphs.store.store import GraphStore

LONGEST = 0.25  # seconds before the kill
TEXT = "a b, ab 阿司匹林阿司 A"

names = st.sampled_from(["a", "A", "b", "ab", "阿司匹林", "阿司", "a b"])
triples = st.builds(Triple, names, st.sampled_from(["r", "s"]), st.sampled_from(["x", "y"]))
edits = st.one_of(
    st.builds(Edit, st.just("add"), triples, index=st.sampled_from([None, 0, 1])),
    st.builds(Edit, st.sampled_from(["remove", "switch_off", "switch_on"]), triples),
    st.builds(Edit, st.just("replace"), triples, triples),
)
STEPS = st.lists(
    st.one_of(
        edits.map(lambda edit: [edit]),
        st.lists(edits, min_size=2, max_size=4),
        st.integers(1, 12),  # the entry to undo
        st.just("undo"),
        st.just("reopen"),
        st.just("index"),
    ),
    max_size=25,
)


def content(graph):
    """Every triple, in order, with whether it is on."""
    return sorted(
        (entity, [(triple, graph.is_on(triple)) for triple in graph.triples_of(entity)])
        for entity in graph.entities()
    )


def run(path, steps, *, create=GraphStore.create, index=rebuild_names):
    """Take the steps with a store and with values, and compare after each.

    A value of a graph is edited by its own code. What an undo of an older
    entry must give is worked out from what the entry had changed.
    """
    store = create(path)
    contents = [content(store.graph())]  # by revision
    edited = [KnowledgeGraph()]  # the value graph, and what it was before each edit
    for step in steps:
        if step == "reopen":
            store.close()
            store = open_store(path, write=True)
        elif step == "index":
            index(path)
        elif isinstance(step, int):
            _undo_older(store, step, contents)
            edited = [_value(store.graph())]
        elif step == "undo":
            if len(edited) < 2:
                continue
            store.undo()
            edited.pop()
        elif not _edit(store, step, edited):
            continue
        now = store.graph()
        if store.revision == len(contents):
            contents.append(content(now))
        assert content(now) == contents[-1] == content(edited[-1])
        assert len(now) == len(edited[-1])
        assert find_mentions([TEXT], now)[0] == find_mentions([TEXT], edited[-1])[0]
    for revision, then in enumerate(contents):
        assert content(store.at(revision)) == then
    store.close()


def add_to_one_name(stores):
    """Several who look at one revision add to one name, and one of them repeats the others."""
    seen = stores[0].revision
    mine = [[Triple("stomach", "has", f"{n} of {i}") for n in range(4)] for i in range(len(stores))]
    for number in range(4):
        for store, triples in zip(stores, mine, strict=True):
            store.apply(Edit("add", triples[number], index=0), seen=seen)
    every = [triple for triples in mine for triple in triples]
    for triple in every:
        with pytest.raises(GraphConflict, match="was edited meanwhile"):
            stores[-1].apply(Edit("add", triple), seen=seen)
    assert {*stores[-1].graph().triples_of("stomach")} == {*every}


def _edit(store, edits, edited):
    """Edit both; return whether the edits fit."""
    try:
        value = edited[-1].apply(*edits)
    except GraphEditError as error:
        before = store.revision
        try:
            store.apply(*edits)
        except GraphEditError as refused:
            assert str(error).split(":")[0].split("'")[0] in str(refused)
        assert store.revision == before
        return False
    store.apply(*edits)
    edited.append(value)
    return True


def _undo_older(store, revision, contents):
    """Undo any entry: what it brought is gone, what it took is there, all else is as it was."""
    before = _triples(contents[-1])
    try:
        store.undo(revision)
    except GraphEditError:
        return
    took, brought = _triples(contents[revision - 1]), _triples(contents[revision])
    assert brought - took <= before
    assert _triples(content(store.graph())) == before - (brought - took) | (took - brought)


def _triples(content):
    return {item for _, triples in content for item in triples}


def _value(graph):
    """The same graph as a value of its own."""
    value = KnowledgeGraph(graph, name=graph.name)
    return value.updated({}, set(graph.off))


# Killed


def step(number):
    """The edits of one entry: several triples of several entities, never half of them."""
    edits = [
        Edit("add", Triple(f"name {number % 7}", "number", str(number))),
        Edit("add", Triple("all", "number", str(number)), index=0),
        Edit("add", Triple(f"own {number}", "is", "there")),
    ]
    if number > 3 and (number - 3) % 10:
        edits.append(Edit("remove", Triple("all", "number", str(number - 3))))
    if number > 2 and (number - 2) % 10:
        edits.append(Edit("switch_off", Triple(f"own {number - 2}", "is", "there")))
    return edits


def expected(revision):
    """What a graph holds after so many entries, worked out in memory."""
    graph = KnowledgeGraph()
    for number in range(1, revision + 1):
        if number % 10:
            graph = graph.apply(*step(number))
        else:
            for _, *fields in rows(number):
                graph = graph.add(Triple(*fields))
    return graph


def rows(number):
    return [(i, f"file {i}", "row", str(number)) for i in range(50)]


def edit_file(path, acknowledged):
    """Edit without end; tell of every entry once it is made."""
    store = GraphStore(path, write=True)
    while True:
        number = store.revision + 1
        if number % 10:
            store.apply(*step(number))
        else:
            import_triples(path, [Source("rows", rows(number))])
            store.graph()
        os.write(acknowledged, b"%d\n" % number)
        if number % 8 == 0:
            rebuild_names(path)


def kill_once(path, seconds, work=edit_file):
    """Let a process edit a graph and kill it; return the last entry it told of.

    Other work than ours is left time for its first entry.
    """
    here, there = os.pipe()
    process = get_context("fork").Process(target=work, args=(path, there))
    process.start()
    os.close(there)
    told = b"" if work is edit_file else os.read(here, 65536)
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    while more := os.read(here, 65536):
        told += more
    os.close(here)
    return int(told.split()[-1]) if told else 0


def kill_often(folder, times, seed):
    """Kill and look, so many times; return how far the graph came."""
    chance = random.Random(seed)
    path = folder / "killed.kg"
    GraphStore.create(path).close()
    last = 0
    for _ in range(times):
        last = max(last, kill_once(path, chance.uniform(0.01, LONGEST)))
        database = sqlite3.connect(path)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        database.close()
        with GraphStore(path, write=True) as store:
            assert store.revision >= last  # all it told of is there
            assert [e.revision for e in store.history()] == list(range(store.revision, -1, -1))
            assert content(store.graph()) == content(expected(store.revision))
            last = store.revision
    return last


# Damage

NAMED = "aspirin, asa and apples (fruit); 阿司匹林"
VALUES = (b"\xff\xfe", b"asa", 7, -1, 1 << 62, 1e300, 0.5, "", "x", "asa", "\x01", "5", "[1]")
COLUMNS = {
    "fact": ("value",),
    "source": ("name", "revision"),
    "triple": (
        *("id", "entity", "head", "relation", "tail", "place"),
        *("off", "source", "line", "added", "removed"),
    ),
    "entry": ("at", "who", "action", "edits", "undoes"),
    "touched": ("revision", "entity"),
}


def make_graph(path):
    """A graph file with all that one can hold."""
    rows = [(1, "aspirin", "also_known_as", "asa"), (2, "apples", "is", "fruit")]
    rows += [(3, "asa", "synonym_of", "阿司匹林"), (4, "apple (fruit)", "is", "sweet")]
    import_triples(path, [Source("a.spo", rows)])
    with GraphStore(path, write=True) as store:
        store.apply(Edit("add", Triple("pear", "is", "fruit")), who="ann")
        store.apply(Edit("switch_off", Triple("pear", "is", "fruit")))
        store.apply(Edit("replace", Triple("apples", "is", "fruit"), Triple("apple", "is", "red")))
        store.undo()


def damage(path, dice):
    """Change a graph file; return how."""
    if dice.random() < 0.5:
        table = dice.choice([*COLUMNS])
        column, value = dice.choice(COLUMNS[table]), dice.choice(VALUES)
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            rows = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            key = {"fact": "name", "touched": "revision"}.get(table, "rowid")
            chosen = f"SELECT {key} FROM {table} LIMIT 1 OFFSET {dice.randrange(rows)}"
            update = f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {key} = ({chosen})"
            database.execute(update, (value,))
        return f"{table}.{column} = {value!r}"
    data = bytearray(path.read_bytes())
    if dice.random() < 0.2:
        start, to, size = (dice.randrange(len(data)) for _ in range(3))
        data[to : to + size % 500] = data[start : start + size % 500]
    for _ in range(dice.choice([1, 3, 30])):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)
    return "bytes"


def use_or_refused(path):
    """Do with a graph file what can be done; say whether nothing of it was refused."""
    try:
        with GraphStore(path, write=True) as store:
            graph = store.graph()
            content(graph)
            find_mentions([NAMED], graph)
            for entry in store.history():
                store.changes(entry.revision)
                content(store.at(entry.revision))
            store.changes_between(0, store.revision)
            store.origins("apples")
            for work in (store.undo, store.redo, lambda: store.undo(2)):
                with suppress(GraphEditError):
                    work()
            store.apply(Edit("add", Triple("apples", "are", "new")), seen=store.revision)
            store.apply(Edit("add", Triple("apples", "are", "first"), index=0))
            search = GraphSearch(path, store.revision)
        for query in (Query(), Query("a"), Query("a", relations=("is",))):
            search.find(query)
        search.facets()
        search.heads("a")
        search.tails("is", "f")
        search.leading_to("fruit")
        copy_graph(path, path.with_name("copy.kg"))
    except (GraphFileError, GraphEditError) as error:
        assert str(error).startswith(str(path)) or isinstance(error, GraphEditError), error
        return False
    finally:
        path.with_name("copy.kg").unlink(missing_ok=True)
    return True


def try_damaged(folder, seeds):
    """Use one graph with other damage for every seed; how often it was read whole, and refused."""
    whole, read = folder / "whole.kg", {True: 0, False: 0}
    make_graph(whole)
    assert use_or_refused(Path(shutil.copy(whole, folder / "g.kg")))
    for seed in seeds:
        for left in folder.glob("g.kg*"):
            left.unlink()
        for file in folder.glob("whole.kg*"):
            shutil.copy(file, folder / file.name.replace("whole", "g"))
        dice = random.Random(seed)
        how = damage(folder / "g.kg", dice)
        try:
            read[use_or_refused(folder / "g.kg")] += 1
        except Exception as error:
            error.add_note(f"seed {seed}: {how}")
            raise
    return read
