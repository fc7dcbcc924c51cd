"""A process that edits a graph file is killed at a random moment; nothing may be lost."""

import os
import random
import signal
import sqlite3
import time
from multiprocessing import get_context

from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs.store.importing import Source, import_triples
from kbert_lab.graphs.store.names import rebuild_names
from kbert_lab.graphs.store.store import GraphStore

LONGEST = 0.25  # seconds before the kill


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


def check_same(now, then):
    """Both hold the same triples, in the same order, and the same are on."""
    for entity in {*now.entities(), *then.entities()}:
        assert now.triples_of(entity) == then.triples_of(entity)
        assert [now.is_on(t) for t in now.triples_of(entity)] == [
            then.is_on(t) for t in then.triples_of(entity)
        ]


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
            check_same(store.graph(), expected(store.revision))
            last = store.revision
    return last
