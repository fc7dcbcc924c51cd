"""A graph file: edits, the log, undo, and what others see meanwhile."""

import os
import resource
import shutil
import signal
import sqlite3
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import pytest
from edited_graphs import LONGEST, STEPS, add_to_one_name, content, kill_often, run, try_damaged
from fuzzed_files import HOSTILE
from hypothesis import given

from kbert_core import Triple, find_mentions
from kbert_core.errors import GraphConflict, GraphEditError, GraphFileError
from kbert_core.knowledge.edit import Edit
from kbert_lab.graphs.store import store as store_module
from kbert_lab.graphs.store.importing import Source, import_triples
from kbert_lab.graphs.store.store import GraphStore

COOK = Triple("Tim Cook", "CEO", "Apple")
COMPANY = Triple("Apple", "is_a", "company")
PHONES = Triple("Apple", "makes", "phones")
FRUIT = Triple("Apple", "is_a", "fruit")
PEAR = Triple("Pear", "is_a", "fruit")


def add(*triples):
    return [Edit("add", triple) for triple in triples]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "my graph#1?.kg"


@pytest.fixture
def store(path):
    with GraphStore.create(path, name="mine") as store:
        store.apply(*add(COOK, COMPANY, PHONES), who="ann")
        yield store


def test_an_edit_is_there_when_the_file_is_opened_again(store, path):
    store.apply(Edit("replace", COMPANY, FRUIT), Edit("switch_off", PHONES))
    expected = content(store.graph())
    store.close()
    left = sorted(p.name for p in path.parent.iterdir())
    assert left[0] == path.name
    assert [name[: len(path.name) + 7] for name in left[1:]] == [f"{path.name}.names-"]
    assert content(GraphStore(path).graph()) == expected


def test_triples_keep_their_order_at_any_place(store):
    for number in range(120):  # always before the last: the places between two are used up
        last = len(store.graph().triples_of("Apple")) - 1
        store.apply(Edit("add", Triple("Apple", "n", str(number)), index=last))
    tails = [triple.tail for triple in store.graph().triples_of("Apple")]
    assert tails == ["company", *map(str, range(120)), "phones"]
    assert content(store.at(store.revision)) == content(store.graph())


def test_ten_thousand_triples_of_one_head_are_edited_in_a_moment(store, path):
    rows = [(number, "pear", "r", f"t{number}") for number in range(10_000)]
    assert import_triples(path, [Source("many", rows)]).triples == 10_000
    begun = time.perf_counter()
    store.apply(Edit("add", Triple("pear", "r", "first"), index=0))
    store.undo()
    assert time.perf_counter() - begun < 30
    assert store.graph().triples_of("pear")[-1].tail == "t9999"


def test_sql_and_html_in_every_field_are_stored_edited_and_found(store):
    triples = [Triple(a, b, c) for a, b, c in zip(HOSTILE, HOSTILE[1:], HOSTILE[2:], strict=False)]
    for triple in triples:
        store.apply(Edit("add", triple), who=triple.tail)
        assert [entry.who for entry in store.history(entity=triple.head)] == [triple.tail]
        assert find_mentions([f" {triple.head} "], store.graph())[0]
    store.apply(Edit("remove", triples[0]), who=HOSTILE[0])
    store.undo()
    assert {*store.graph()} == {COOK, COMPANY, PHONES, *triples}
    assert store.graph().triples_of("'; DROP TABLE entry; --") == ()


def test_the_log_says_what_was_done_by_whom(store):
    store.apply(Edit("replace", COMPANY, FRUIT), who="bob")
    store.apply(Edit("switch_off", PHONES))
    off, replaced, added, created = store.history()
    assert (created.action, created.revision) == ("create", 0)
    assert (added.action, added.edits, added.who) == ("edits", 3, "ann")
    assert (replaced.action, replaced.who, replaced.undone) == ("replace", "bob", False)
    assert off.at >= replaced.at
    assert [e.revision for e in store.history(entity="tim  cook")] == [1]
    assert len(store.history(most=2)) == 2
    (change,) = store.changes(replaced.revision)
    assert (change.before, change.after) == (COMPANY, FRUIT)
    (change,) = store.changes(off.revision)
    assert (change.before, change.after) == (PHONES, PHONES)
    assert (change.was_on, change.is_on) == (True, False)
    assert [c.after for c in store.changes(added.revision)] == [COOK, COMPANY, PHONES]
    origin = store.origin(COOK)
    assert (origin.file, origin.line, origin.revision) == (None, None, 1)


def test_undo_goes_back_step_by_step_and_redo_forth(store):
    states = [content(store.graph())]
    for edits in ([Edit("remove", COOK)], [Edit("replace", COMPANY, PEAR)], add(FRUIT)):
        store.apply(*edits)
        states.append(content(store.graph()))
    for state in reversed(states[:-1]):
        store.undo()
        assert content(store.graph()) == state
    for state in states[1:]:
        store.redo()
        assert content(store.graph()) == state
    store.undo()
    store.apply(*add(COMPANY))
    with pytest.raises(GraphEditError, match="nothing was undone since the last edit"):
        store.redo()


@pytest.mark.parametrize("later", [Edit("switch_off", PHONES), Edit("remove", COOK)])
def test_an_entry_isnt_undone_under_a_later_one(store, later):
    store.apply(later)
    before = content(store.graph())
    with pytest.raises(GraphConflict, match=r"entry 1 can't be undone.*Undo entry 2 first"):
        store.undo(1)
    assert content(store.graph()) == before
    store.undo(2)
    store.undo(1)
    assert len(store.graph()) == len([*store.graph().entities()]) == 0


@pytest.mark.parametrize(
    ("revision", "message"), [(7, "no entry 7"), (1, "undone already"), (0, "nothing to undo")]
)
def test_an_undo_that_makes_no_sense_is_refused(store, revision, message):
    store.undo(1)
    with pytest.raises(GraphEditError, match=message):
        store.undo(revision or None)
    with pytest.raises(GraphEditError, match="no entry 9"):
        store.at(9)
    with pytest.raises(GraphEditError, match="has no triple"):
        store.origin(COOK)
    with pytest.raises(GraphEditError, match="No edits"):
        store.apply()


def test_edits_of_a_session_lie_over_the_file_and_dont_reach_it(store):
    mine = store.graph().add(PEAR).remove(COOK)
    assert [m.entity for m in find_mentions(["pear, tim cook"], mine)[0]] == ["pear"]
    assert content(mine.undo().undo()) == content(store.graph())
    assert not store.graph().triples_of("pear")


# Several at once


def test_two_writers_take_turns_and_see_each_others_edits_and_undos(store, path):
    with GraphStore(path, write=True) as other:
        store.apply(*add(PEAR))
        other.apply(*add(FRUIT))
        assert content(other.graph()) == content(store.graph())
        assert {PEAR, FRUIT} <= set(store.graph())
        assert store.undo().undoes == 3
        assert FRUIT not in other.graph()
        assert other.redo().revision == 5
        assert FRUIT in store.graph()


def test_whoever_edits_what_was_edited_meanwhile_is_told(store, path):
    with GraphStore(path, write=True) as other:
        seen = other.revision
        store.apply(Edit("replace", COMPANY, FRUIT), who="ann")
        for edit in (Edit("switch_off", COMPANY), Edit("replace", PHONES, FRUIT), *add(FRUIT)):
            with pytest.raises(GraphConflict, match=r"was edited by ann meanwhile \(entry 2\)"):
                other.apply(edit, seen=seen)
        other.apply(Edit("remove", PHONES), *add(PEAR), seen=seen)  # of the same entity, another
        store.apply(Edit("add", Triple("Apple", "sells", "music"), index=0), seen=seen)
        assert [t.tail for t in store.graph().triples_of("apple")] == ["music", "fruit"]


def test_additions_to_one_name_conflict_only_where_they_are_the_same(store, path):
    add_to_one_name([store, GraphStore(path, write=True), GraphStore(path, write=True)])


def test_threads_edit_and_read_one_store(store):
    def work(name):
        for number in range(20):
            store.apply(*add(Triple(name, "n", str(number))))
            graph = store.graph()
            assert len(graph.triples_of(name)) == number + 1
            assert graph.triples_of("apple") == (COMPANY, PHONES)

    with ThreadPoolExecutor() as pool:
        list(pool.map(work, "abcd"))
    assert len(store.graph()) == 83


# The index of names


@pytest.mark.parametrize("harm", ["gone", "cut", "flipped"])
def test_lost_names_are_indexed_again(store, path, harm):
    store.close()
    (names,) = path.parent.glob("*.names-????????")
    whole = names.read_bytes()
    if harm == "gone":
        names.unlink()
    elif harm == "cut":
        os.truncate(names, 10)
    else:
        names.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    graph = GraphStore(path).graph()
    assert len(find_mentions(["Tim Cook left Apple"], graph)[0]) == 2
    (mended,) = path.parent.glob("*.names-????????")
    assert mended != names and mended.stat().st_size > 10


def test_a_reader_survives_its_index_being_cut_short(store, path):
    graph = GraphStore(path).graph()
    (names,) = path.parent.glob("*.names-????????")
    os.truncate(names, 0)
    assert len(find_mentions(["Tim Cook left Apple"], graph)[0]) == 2


def test_names_that_cant_be_indexed_are_told_and_the_edit_stays(store, path, monkeypatch, caplog):
    monkeypatch.setattr(store_module, "PENDING", 0)
    store.apply(*add(PEAR))

    def no_room(path):
        raise GraphFileError("no room.")

    monkeypatch.setattr(store_module, "rebuild_names", no_room)
    store.close()
    assert "its names could not be indexed: no room." in caplog.text
    assert PEAR in GraphStore(path).graph()


# What is no graph


def test_what_is_no_graph_is_refused(tmp_path):
    text = tmp_path / "text.kg"
    text.write_text("a\tb\tc\n" * 400)
    with pytest.raises(GraphFileError, match="damaged or no graph"):
        GraphStore(text)
    other = tmp_path / "other.kg"
    sqlite3.connect(other).execute("CREATE TABLE t (x)").connection.commit()
    with pytest.raises(GraphFileError, match="not one of triples"):
        GraphStore(other)
    with pytest.raises(GraphFileError, match="no such graph"):
        GraphStore(tmp_path / "missing.kg")
    with pytest.raises(GraphFileError, match="is there already"):
        GraphStore.create(other)


def test_a_file_from_a_newer_version_is_refused(store, path):
    store.close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 2")
    with pytest.raises(GraphFileError, match=r"newer version .*format 2; this one reads up to 1"):
        GraphStore(path)


def exit_code_of(work, *values):
    process = get_context("fork").Process(target=work, args=values)
    process.start()
    process.join()
    return process.exitcode


def read_as_nobody(path):
    """In a process that may not write: whether the graph is read, and editing it refused."""
    if os.geteuid() == 0:
        os.setuid(65534)
    refused = False
    try:
        GraphStore(path, write=True)
    except GraphFileError as error:
        refused = "may only be read here" in str(error)
    found = content(GraphStore(path).graph())
    os._exit(0 if refused and [entity for entity, _ in found] == ["apple", "tim cook"] else 1)


def test_a_read_only_folder_is_read(store):
    store.close()
    with tempfile.TemporaryDirectory() as name:  # pytest's own is closed to others
        folder = Path(name)
        for file in store.path.parent.glob(f"{store.path.name}*"):
            shutil.copy(file, folder)
        folder.chmod(0o555)
        before = sorted(folder.iterdir())
        assert exit_code_of(read_as_nobody, folder / store.path.name) == 0
        assert sorted(folder.iterdir()) == before
        folder.chmod(0o700)


def test_edits_not_yet_in_the_file_arent_passed_over_in_a_read_only_folder(
    store, path, tmp_path, monkeypatch
):
    copy = tmp_path / "copy"
    copy.mkdir()
    store.apply(*add(PEAR))
    for file in path.parent.glob(f"{path.name}*"):
        shutil.copy(file, copy)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(GraphFileError, match="-wal beside it holds edits"):
        GraphStore(copy / path.name)


def test_a_full_disk_leaves_the_graph_as_it_was(store):
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count = {pages}")
    before = content(store.graph())
    with pytest.raises(GraphFileError, match="the disk is full, so nothing was changed"):
        store.apply(*add(*(Triple(f"name {n}", "n", "x" * 200) for n in range(500))))
    assert content(store.graph()) == before
    store._database.execute(f"PRAGMA max_page_count = {pages + 1000}")
    store.apply(*add(PEAR))
    assert PEAR in store.graph()


def read_without_room(path, number):
    """In a process that may not make any file longer: whether the graph is read."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    found = content(GraphStore(path).graph())
    try:
        GraphStore(path, write=True)
    except GraphFileError as error:
        refused = "can't make the files" in str(error) and "Nothing is lost" in str(error)
    os._exit(0 if refused and len(found) == number else 1)


def test_a_graph_is_read_on_a_full_disk_and_not_called_damaged(store, path):
    store.close()
    assert exit_code_of(read_without_room, path, 2) == 0


def test_a_graph_that_another_process_holds_is_refused_in_time_and_closed(store, monkeypatch):
    store.apply(*add(PEAR))
    store._database.execute("PRAGMA busy_timeout = 100")
    with closing(sqlite3.connect(store.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(GraphFileError, match="another process has been writing to it for 30 s"):
            store.apply(*add(FRUIT))
        store._database.execute("PRAGMA busy_timeout = 30000")
        begun = time.monotonic()
        store.close()
        assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("DELETE FROM fact WHERE name = 'names_token'", "lacks 'names_token'"),
        ("UPDATE fact SET value = 'x' WHERE name = 'names_longest'", "lacks 'names_longest'"),
        ("UPDATE fact SET value = '../../x' WHERE name = 'names_token'", "token is '../../x'"),
        ("INSERT INTO fact VALUES ('aliases', '[')", "other names can't be read"),
        ("UPDATE triple SET tail = x'ff', off = 1", "b'.xff' stands where another kind"),
        ("UPDATE touched SET entity = x'61' WHERE entity = 'apple'", "b'a' stands where another"),
        ("DELETE FROM entry", "its log has no entries"),
    ],
)
def test_a_file_that_lacks_what_it_must_say_is_damaged(store, path, harm, said):
    store.close()
    sqlite3.connect(path).execute(harm).connection.commit()
    with pytest.raises(GraphFileError, match=f"my graph.*damaged or no graph .*{said}.*a copy"):
        content(GraphStore(path).graph())


def test_a_graph_with_any_damage_is_used_or_refused_with_a_clear_message(tmp_path):
    assert min(try_damaged(tmp_path, range(40)).values()) > 5


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "CREATE TRIGGER t AFTER INSERT ON entry BEGIN UPDATE triple SET tail = 'EVIL'; END",
            "the trigger 't'",
        ),
        (f"DROP TABLE entry; CREATE VIEW entry AS {ENDLESS}", "the view 'entry'"),
        ("CREATE VIRTUAL TABLE words USING fts5(word)", "the table 'words'"),
        ("CREATE TABLE more (x)", "the table 'more'"),
        ("CREATE INDEX odd ON triple (lower(head))", "the index 'odd'"),
        ("ALTER TABLE fact ADD COLUMN x AS (hex(value))", "the table 'fact'"),
        ("DROP TABLE touched; CREATE TABLE touched (revision, entity)", "the table 'touched'"),
    ],
)
def test_a_file_that_carries_sql_is_refused_before_it_is_read(store, path, more, said):
    store.close()
    with closing(sqlite3.connect(path)) as database:
        database.executescript(more)
    for write in (False, True):
        with pytest.raises(GraphFileError, match=f"holds more than a graph.*{said}"):
            GraphStore(path, write=write)
    with pytest.raises(GraphFileError, match="holds more than a graph"):
        import_triples(path, [Source("a.spo", [(1, "a", "b", "c")])])


@given(STEPS)
def test_a_store_does_what_the_graph_in_memory_does(tmp_path_factory, steps):
    run(tmp_path_factory.mktemp("g") / "g.kg", steps)


def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path):
    assert kill_often(tmp_path, times=20, seed=1) > 20  # it did get to edit


@pytest.mark.soak
def test_a_graph_killed_hundreds_of_times_holds_all_that_was_acknowledged(tmp_path, figures):
    rounds, kills, entries = 15, 20, 0
    for number in range(rounds):
        folder = tmp_path / str(number)
        folder.mkdir()
        entries += kill_often(folder, times=kills, seed=100 + number)
    figures["killed_graphs"] = {
        "kills": rounds * kills,
        "longest_seconds_before_a_kill": LONGEST,
        "entries_kept": entries,
        "acknowledged_entries_lost": 0,
    }
