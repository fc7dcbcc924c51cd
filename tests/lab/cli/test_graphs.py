"""`kbert kg` on graph files, from import to undo."""

import os
import threading

import pytest

from kbert_core import load_graph, read_triples

LINES = "糖尿病\t类别\t疾病\n糖尿病\t症状\t多饮\n心电图\t类别\t检查\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kg.spo").write_text(LINES, encoding="utf-8")
    return tmp_path


@pytest.fixture
def kg(here, kbert):
    """Run a command that succeeds; returns its JSON."""
    return lambda *words: kbert("kg", *words, "--json")


@pytest.fixture
def said(here, kbert):
    """Run a command that succeeds; returns what it prints for reading."""
    return lambda *words: kbert("kg", *words).out


@pytest.fixture
def refused(here, kbert):
    return lambda *words: kbert("kg", *words, code=2).err


def test_a_graph_goes_from_text_to_a_file_through_edits_and_back(here, kg):
    done = kg("import", "kg.spo", "--output", "g.kg", "--by", "ann")
    assert (done["triples"], done["repeated"], done["entry"]) == (3, 0, 1)
    added = kg("add", "g.kg", "糖尿病", "别名", "消渴", "--by", "bob")
    assert (added["action"], added["who"], added["changes"][0]["before"]) == ("add", "bob", None)
    kg("replace", "g.kg", "心电图", "类别", "检查", "心电图", "类别", "治疗")
    kg("off", "g.kg", "糖尿病", "症状", "多饮")
    shown = kg("show", "g.kg", "糖尿病")
    assert [(t["tail"], t["on"], t["file"], t["line"]) for t in shown["triples"]] == [
        ("疾病", True, "kg.spo", 1),
        ("多饮", False, "kg.spo", 2),
        ("消渴", True, None, None),
    ]
    assert [e["revision"] for e in shown["history"]] == [4, 2, 1]
    assert len(shown["history"][2]["changes"]) == 2  # of the import, this entity's
    diff = kg("diff", "kg.spo", "g.kg")
    assert [t["tail"] for t in diff["removed"]] == ["检查"]
    assert {t["tail"] for t in diff["added"]} == {"治疗", "消渴"}
    assert [t["tail"] for t in diff["switched_off"]] == ["多饮"]
    exported = kg("export", "g.kg", "out.csv")
    assert (exported["triples"], exported["switched_off_left_out"]) == (3, 1)
    assert kg("export", "g.kg", "all.ttl.gz", "--all")["triples"] == 4
    assert len(read_triples(here / "all.ttl.gz").triples) == 4


def test_any_entry_is_undone_and_redone(kg, said, refused):
    kg("import", "kg.spo", "--output", "g.kg")
    kg("remove", "g.kg", "糖尿病", "类别", "疾病")
    kg("add", "g.kg", "胃镜", "类别", "检查")
    assert kg("undo", "g.kg", "2")["undoes"] == 2
    assert not kg("diff", "g.kg@1", "g.kg@4")["removed"]
    kg("redo", "g.kg")
    assert [t["tail"] for t in kg("diff", "g.kg@1", "g.kg")["removed"]] == ["疾病"]
    history = kg("history", "g.kg", "--most", "2")
    assert [e["action"] for e in history["entries"]] == ["undo", "undo"]
    assert history["of"] == 6
    text = said("history", "g.kg", "--most", "3")
    assert "5  20" in text
    assert "undo of 4" in text
    assert "… of 6; --most 0 shows all" in text
    assert "no entry 77" in refused("undo", "g.kg", "77")
    assert "no entry 77" in refused("diff", "g.kg@77", "g.kg")


def test_what_is_printed_can_be_read(here, said):
    assert "triples: 3" in said("import", "kg.spo", "--output", "g.kg")
    said("off", "g.kg", "糖尿病", "症状", "多饮")
    text = said("show", "g.kg", "糖尿病")
    assert "糖尿病 · 类别 · 疾病                kg.spo, line 1" in text
    assert "糖尿病 · 症状 · 多饮  switched off  kg.spo, line 2" in text
    assert "off 糖尿病 · 症状 · 多饮" in text
    assert said("diff", "g.kg", "g.kg") == "no difference\n"
    assert "off 糖尿病 · 症状 · 多饮" in said("diff", "g.kg@1", "g.kg")
    assert "relations used only once: 1\n  (糖尿病, 症状, 多饮)" in said("check", "kg.spo")
    (here / "plain.spo").write_text("糖尿病\t类别\t疾病\n")
    assert said("check", "plain.spo") == "plain.spo: nothing doubtful found.\n"


def test_check_says_where_a_doubtful_triple_comes_from(here, kg, said):
    (here / "more.spo").write_text("肝\t昵称\t心肝\n", encoding="utf-8")
    kg("import", "kg.spo", "more.spo", "--output", "g.kg")
    kg("add", "g.kg", "the", "类别", "词")
    findings = {f["kind"]: f for f in kg("check", "g.kg", "--alias", "昵称")["findings"]}
    liver = {"head": "肝", "relation": "昵称", "tail": "心肝"}
    origin = {"file": "more.spo", "line": 1, "revision": 1}
    assert findings["one_character"]["examples"] == [{"text": "肝", "triples": [liver | origin]}]
    assert findings["dangling_alias"]["count"] == 1
    printed = said("check", "g.kg", "--examples", "1")
    assert "  肝   (more.spo, line 1)\n" in printed
    assert "  the   (entry 2 of the log)\n" in printed


def test_graphs_are_merged_into_a_new_file(here, kg, refused):
    (here / "more.csv").write_text("胃镜,类别,检查\n糖尿病,类别,疾病\n", encoding="utf-8")
    kg("import", "kg.spo", "--output", "g.kg")
    kg("off", "g.kg", "糖尿病", "症状", "多饮")
    done = kg("merge", "g.kg", "more.csv", "--output", "both.kg")
    assert (done["triples"], done["repeated"], done["switched_off"]) == (4, 1, 1)
    diff = kg("diff", "g.kg", "both.kg")
    assert [t["tail"] for t in diff["added"]] == ["检查"]
    assert not diff["removed"] and not diff["switched_off"] and not diff["switched_on"]
    done = kg("merge", "kg.spo", "g.kg", "--output", "off.kg")
    assert done["switched_off"] == 1, "as when both are given with --kg"
    joined, merged = load_graph("kg.spo", "g.kg"), load_graph("off.kg")
    assert joined.off == merged.off
    assert set(joined) == set(merged)
    assert "is there already" in refused("merge", "g.kg", "--output", "both.kg")


def test_places_and_formats_that_there_are_not_are_told(here, kg, refused):
    kg("import", "kg.spo", "--output", "g.kg")
    assert "no folder nope" in refused("add", "nope/n.kg", "a", "b", "c")
    (here / "folder.kg").mkdir()
    assert "is a folder" in refused("history", "folder.kg")
    for name in ("out.json", "out.docx", "out.xz"):
        assert "no format with this ending" in refused("export", "g.kg", name)
        assert not (here / name).exists()


def test_a_link_or_a_device_is_written_to_and_not_replaced(here, kg):
    kg("import", "kg.spo", "--output", "g.kg")
    (here / "real.spo").write_text("before\n", encoding="utf-8")
    (here / "link.spo").symlink_to(here / "real.spo")
    kg("export", "g.kg", "link.spo")
    assert (here / "link.spo").is_symlink()
    assert set((here / "real.spo").read_text(encoding="utf-8").splitlines()) == {
        *LINES.splitlines()
    }
    os.mkfifo(here / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((here / "pipe").read_bytes()))
    reader.start()
    kg("export", "g.kg", "pipe")
    reader.join()
    assert read[0].decode().count("\n") == 3 and (here / "pipe").is_fifo()


def test_rdf_is_numbered_by_statements_and_what_it_passed_over_is_told(here, kbert, said):
    (here / "r.ttl").write_text(
        '@prefix x: <http://x.org/> .\nx:a x:b [ x:c "d" ] .\nx:e\n  x:f x:g .\n', encoding="utf-8"
    )
    printed = kbert("kg", "import", "r.ttl", "--output", "r.kg")
    assert "passed over: 2 with nodes without an address" in printed.err
    assert "passed over: 2" in printed.out
    assert "r.ttl, statement 3" in said("show", "r.kg", "e")


def test_foreign_files_are_imported_as_the_options_say(here, kbert, kg, refused):
    table = "id,a,b,c\n1,糖尿病,疾病,类别\n"
    (here / "t.csv").write_bytes(table.encode("gb18030"))
    assert "--encoding gb18030" in refused("import", "t.csv", "--output", "g.kg")
    assert not (here / "g.kg").exists()
    options = ("--encoding", "gb18030", "--columns", "a,c,b")
    kg("import", "t.csv", "--output", "g.kg", *options)
    assert kg("show", "g.kg", "糖尿病")["triples"][0]["tail"] == "疾病"
    assert "names 2 columns" in refused("import", "t.csv", "--output", "h.kg", "--columns", "1,2")
    (here / "bad.spo").write_text("a\tb\tc\nd\te\n", encoding="utf-8")
    assert "line 2" in refused("import", "bad.spo", "--output", "h.kg")
    printed = kbert("kg", "import", "bad.spo", "--output", "h.kg", "--skip-bad")
    assert "left out: bad.spo, line 2" in printed.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add", "kg.spo", "a", "b", "c"), "Make one: kbert kg import kg.spo --output kg.kg"),
        (("remove", "g.kg", "a", "b", "c"), "no such graph"),
        (("export", "kg.spo", "out.kg"), "graph file: `kbert kg merge kg.spo --output out.kg`"),
        (("show", "kg.spo", "糖尿"), "no entity is called '糖尿'. Names that hold it: 糖尿病."),
        (("import", "missing.spo", "--output", "g.kg"), "missing.spo: can't be read"),
        (("history", "kg.spo"), "need a graph file"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_remedy(refused, words, message):
    assert message in refused(*words)


def test_a_graph_is_made_by_its_first_triple(kg, refused):
    assert kg("add", "new.kg", "a", "b", "c")["revision"] == 1
    assert "in the graph already" in refused("add", "new.kg", "a", "b", "c")
    assert "its head is empty" in refused("add", "new.kg", " ", "b", "c")


def test_a_graph_file_serves_every_command_that_takes_a_graph(kbert, kg, said):
    kg("import", "kg.spo", "--output", "g.kg")
    tree = ("tree", "患糖尿病", "--json", "--kg")
    assert kbert(*tree, "g.kg") == kbert(*tree, "kg.spo")
    stats = kg("stats", "--kg", "g.kg")
    assert (stats["triples"], stats["entities"], stats["switched_off"]) == (3, 2, 0)
    kg("off", "g.kg", "糖尿病", "症状", "多饮")
    stats = kg("stats", "--kg", "g.kg")
    assert (stats["triples"], stats["relations"], stats["switched_off"]) == (2, {"类别": 2}, 1)
    assert "\nswitched off: 1\n" in said("stats", "--kg", "g.kg")
