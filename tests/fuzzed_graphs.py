"""Graph files with flipped bits, spliced bytes and values of another kind."""

import random
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from edited_graphs import content

from kbert_core import Triple, find_mentions
from kbert_core.errors import GraphEditError, GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs.search import GraphSearch, Query
from kbert_lab.graphs.store.anywhere import copy_graph
from kbert_lab.graphs.store.importing import Source, import_triples
from kbert_lab.graphs.store.store import GraphStore

FOREIGN = (  # what no graph of ours holds
    "CREATE TRIGGER t AFTER INSERT ON entry BEGIN UPDATE triple SET tail = 'EVIL'; END",
    "CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n",
    "CREATE TABLE t (a)",
    "CREATE INDEX i ON triple (tail, relation)",
    "CREATE VIRTUAL TABLE f USING fts5(a)",
)
TEXT = "aspirin, asa and apples (fruit); 阿司匹林"
VALUES = (None, b"\xff\xfe", b"asa", 7, -1, 1 << 62, 1e300, 0.5, "", "x", "asa", "\x01", "5", "[1]")
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
    if dice.random() < 0.1:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute(foreign := dice.choice(FOREIGN))
        return foreign
    if dice.random() < 0.5:
        table = dice.choice([*COLUMNS])
        column, value = dice.choice(COLUMNS[table]), dice.choice(VALUES)
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("PRAGMA writable_schema = ON")
            schema = database.execute("SELECT name, sql FROM sqlite_schema").fetchall()
            database.execute("UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '')")
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            rows = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            key = {"fact": "name", "touched": "revision"}.get(table, "rowid")
            chosen = f"SELECT {key} FROM {table} LIMIT 1 OFFSET {dice.randrange(rows)}"
            update = f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {key} = ({chosen})"
            database.execute(update, (value,))
            database.execute("PRAGMA writable_schema = ON")
            put = "UPDATE sqlite_schema SET sql = ? WHERE name = ?"
            database.executemany(put, [(sql, name) for name, sql in schema])
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
            find_mentions([TEXT], graph)
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
            used = use_or_refused(folder / "g.kg")
            assert not (used and how in FOREIGN)
            read[used] += 1
        except Exception as error:
            error.add_note(f"seed {seed}: {how}")
            raise
    return read
