"""`kbert kg` on graph files, from import to undo."""

import json
import os
import threading

import pytest

from kbert_core import load_graph, read_triples
from kbert_lab import cli

LINES = "糖尿病\t类别\t疾病\n糖尿病\t症状\t多饮\n心电图\t类别\t检查\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kg.spo").write_text(LINES, encoding="utf-8")
    return tmp_path


def kg(capsys, *words):
    """Run a command that succeeds; return its JSON."""
    assert cli.main(["kg", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def said(capsys, *words):
    """Run a command that succeeds; return what it prints for reading."""
    assert cli.main(["kg", *words]) == 0
    return capsys.readouterr().out


def refused(capsys, *words):
    assert cli.main(["kg", *words]) == 2
    return capsys.readouterr().err


def test_a_graph_goes_from_text_to_a_file_through_edits_and_back(here, capsys):
    done = kg(capsys, "import", "kg.spo", "--output", "g.kg", "--by", "ann")
    assert (done["triples"], done["repeated"], done["entry"]) == (3, 0, 1)
    added = kg(capsys, "add", "g.kg", "糖尿病", "别名", "消渴", "--first", "--by", "bob")
    assert (added["action"], added["who"], added["changes"][0]["before"]) == ("add", "bob", None)
    kg(capsys, "replace", "g.kg", "心电图", "类别", "检查", "心电图", "类别", "治疗")
    kg(capsys, "off", "g.kg", "糖尿病", "症状", "多饮")
    shown = kg(capsys, "show", "g.kg", "糖尿病")
    assert [(t["tail"], t["on"], t["file"], t["line"]) for t in shown["triples"]] == [
        ("消渴", True, None, None),
        ("疾病", True, "kg.spo", 1),
        ("多饮", False, "kg.spo", 2),
    ]
    assert [e["revision"] for e in shown["history"]] == [4, 2, 1]
    assert len(shown["history"][2]["changes"]) == 2  # of the import, this entity's
    diff = kg(capsys, "diff", "kg.spo", "g.kg")
    assert [t["tail"] for t in diff["removed"]] == ["检查"]
    assert [t["tail"] for t in diff["added"]] == ["治疗", "消渴"]
    assert [t["tail"] for t in diff["switched_off"]] == ["多饮"]
    exported = kg(capsys, "export", "g.kg", "out.csv")
    assert (exported["triples"], exported["switched_off_left_out"]) == (3, 1)
    assert kg(capsys, "export", "g.kg", "all.ttl.gz", "--all")["triples"] == 4
    assert len(read_triples(here / "all.ttl.gz").triples) == 4


def test_any_entry_is_undone_and_redone(here, capsys):
    kg(capsys, "import", "kg.spo", "--output", "g.kg")
    kg(capsys, "remove", "g.kg", "糖尿病", "类别", "疾病")
    kg(capsys, "add", "g.kg", "胃镜", "类别", "检查")
    assert kg(capsys, "undo", "g.kg", "2")["undoes"] == 2
    assert not kg(capsys, "diff", "g.kg@1", "g.kg@4")["removed"]
    kg(capsys, "redo", "g.kg")
    assert [t["tail"] for t in kg(capsys, "diff", "g.kg@1", "g.kg")["removed"]] == ["疾病"]
    history = kg(capsys, "history", "g.kg", "--most", "2")
    assert [e["action"] for e in history["entries"]] == ["undo", "undo"]
    assert history["of"] == 6
    text = said(capsys, "history", "g.kg", "--most", "3")
    assert "5  20" in text
    assert "undo of 4" in text
    assert "… of 6; --most 0 shows all" in text
    assert "no entry 77" in refused(capsys, "undo", "g.kg", "77")
    assert "no entry 77" in refused(capsys, "diff", "g.kg@77", "g.kg")


def test_what_is_printed_can_be_read(here, capsys):
    assert "triples: 3" in said(capsys, "import", "kg.spo", "--output", "g.kg")
    said(capsys, "off", "g.kg", "糖尿病", "症状", "多饮")
    text = said(capsys, "show", "g.kg", "糖尿病")
    assert "糖尿病 · 类别 · 疾病                kg.spo, line 1" in text
    assert "糖尿病 · 症状 · 多饮  switched off  kg.spo, line 2" in text
    assert "off 糖尿病 · 症状 · 多饮" in text
    assert said(capsys, "diff", "g.kg", "g.kg") == "no difference\n"
    assert "off 糖尿病 · 症状 · 多饮" in said(capsys, "diff", "g.kg@1", "g.kg")
    assert "relations used only once: 1\n  (糖尿病, 症状, 多饮)" in said(capsys, "check", "kg.spo")
    (here / "plain.spo").write_text("糖尿病\t类别\t疾病\n")
    assert said(capsys, "check", "plain.spo") == "plain.spo: nothing doubtful found.\n"


def test_check_says_where_a_doubtful_triple_comes_from(here, capsys):
    (here / "more.spo").write_text("肝\t昵称\t心肝\n", encoding="utf-8")
    kg(capsys, "import", "kg.spo", "more.spo", "--output", "g.kg")
    kg(capsys, "add", "g.kg", "the", "类别", "词")
    findings = {f["kind"]: f for f in kg(capsys, "check", "g.kg", "--alias", "昵称")["findings"]}
    liver = {"head": "肝", "relation": "昵称", "tail": "心肝"}
    origin = {"file": "more.spo", "line": 1, "revision": 1}
    assert findings["one_character"]["examples"] == [{"text": "肝", "triples": [liver | origin]}]
    assert findings["dangling_alias"]["count"] == 1
    printed = said(capsys, "check", "g.kg", "--examples", "1")
    assert "  肝   (more.spo, line 1)\n" in printed
    assert "  the   (entry 2 of the log)\n" in printed


def test_graphs_are_merged_into_a_new_file(here, capsys):
    (here / "more.csv").write_text("胃镜,类别,检查\n糖尿病,类别,疾病\n", encoding="utf-8")
    kg(capsys, "import", "kg.spo", "--output", "g.kg")
    kg(capsys, "off", "g.kg", "糖尿病", "症状", "多饮")
    done = kg(capsys, "merge", "g.kg", "more.csv", "--output", "both.kg")
    assert (done["triples"], done["repeated"], done["switched_off"]) == (4, 1, 1)
    diff = kg(capsys, "diff", "g.kg", "both.kg")
    assert [t["tail"] for t in diff["added"]] == ["检查"]
    assert not diff["removed"] and not diff["switched_off"] and not diff["switched_on"]
    done = kg(capsys, "merge", "kg.spo", "g.kg", "--output", "off.kg")
    assert done["switched_off"] == 1, "as when both are given with --kg"
    joined, merged = load_graph("kg.spo", "g.kg"), load_graph("off.kg")
    assert joined.off == merged.off
    assert set(joined) == set(merged)
    assert "is there already" in refused(capsys, "merge", "g.kg", "--output", "both.kg")


def test_an_edit_that_changes_nothing_makes_no_entry(here, capsys):
    kg(capsys, "import", "kg.spo", "--output", "g.kg")
    sugar = ("糖尿病", "症状", "多饮")
    assert "is on already" in refused(capsys, "on", "g.kg", *sugar)
    kg(capsys, "off", "g.kg", *sugar)
    assert "is switched off already" in refused(capsys, "off", "g.kg", *sugar)
    assert "as you would have it" in refused(capsys, "replace", "g.kg", *sugar, *sugar)
    assert "no such triple" in refused(capsys, "off", "g.kg", "a", "b", "c")
    assert "can't be undone" in refused(capsys, "undo", "g.kg", "0")
    assert kg(capsys, "history", "g.kg")["of"] == 3  # made, imported, switched off
    assert "no entry of its log edits 'nobody'" in refused(
        capsys, "history", "g.kg", "--entity", "nobody"
    )
    assert "--most is -3" in refused(capsys, "history", "g.kg", "--most", "-3")


def test_places_and_formats_that_there_are_not_are_told(here, capsys):
    kg(capsys, "import", "kg.spo", "--output", "g.kg")
    assert "no folder nope" in refused(capsys, "add", "nope/n.kg", "a", "b", "c")
    (here / "folder.kg").mkdir()
    assert "is a folder" in refused(capsys, "history", "folder.kg")
    for name in ("out.json", "out.docx", "out.xz"):
        assert "no format with this ending" in refused(capsys, "export", "g.kg", name)
        assert not (here / name).exists()


def test_a_link_or_a_device_is_written_to_and_not_replaced(here, capsys):
    kg(capsys, "import", "kg.spo", "--output", "g.kg")
    (here / "real.spo").write_text("before\n", encoding="utf-8")
    (here / "link.spo").symlink_to(here / "real.spo")
    kg(capsys, "export", "g.kg", "link.spo")
    assert (here / "link.spo").is_symlink()
    assert set((here / "real.spo").read_text(encoding="utf-8").splitlines()) == {
        *LINES.splitlines()
    }
    os.mkfifo(here / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((here / "pipe").read_bytes()))
    reader.start()
    kg(capsys, "export", "g.kg", "pipe")
    reader.join()
    assert read[0].decode().count("\n") == 3 and (here / "pipe").is_fifo()


def test_rdf_is_numbered_by_statements_and_what_it_passed_over_is_told(here, capsys):
    (here / "r.ttl").write_text(
        '@prefix x: <http://x.org/> .\nx:a x:b [ x:c "d" ] .\nx:e\n  x:f x:g .\n', encoding="utf-8"
    )
    assert cli.main(["kg", "import", "r.ttl", "--output", "r.kg"]) == 0
    said_of = capsys.readouterr()
    assert "passed over: 2 with nodes without an address" in said_of.err
    assert "passed over: 2" in said_of.out
    assert "r.ttl, statement 3" in said(capsys, "show", "r.kg", "e")


def test_foreign_files_are_imported_as_the_options_say(here, capsys):
    table = "id,a,b,c\n1,糖尿病,疾病,类别\n"
    (here / "t.csv").write_bytes(table.encode("gb18030"))
    assert "--encoding gb18030" in refused(capsys, "import", "t.csv", "--output", "g.kg")
    assert not (here / "g.kg").exists()
    options = ("--encoding", "gb18030", "--columns", "a,c,b")
    kg(capsys, "import", "t.csv", "--output", "g.kg", "--name", "mine", *options)
    assert kg(capsys, "show", "g.kg", "糖尿病")["triples"][0]["tail"] == "疾病"
    assert "names 2 columns" in refused(
        capsys, "import", "t.csv", "--output", "h.kg", "--columns", "1,2"
    )
    (here / "bad.spo").write_text("a\tb\tc\nd\te\n", encoding="utf-8")
    assert "line 2" in refused(capsys, "import", "bad.spo", "--output", "h.kg")
    assert cli.main(["kg", "import", "bad.spo", "--output", "h.kg", "--skip-bad"]) == 0
    assert "left out: bad.spo, line 2" in capsys.readouterr().err


def test_a_neo4j_export_becomes_a_graph(here, capsys):
    (here / "graph.csv").write_text(
        '"start","kind","end"\n"阿司匹林","TREATS","头痛"\n"阿司匹林","TREATS","发热, 轻度"\n',
        encoding="utf-8",
    )
    columns = ("--columns", "start,kind,end")
    assert kg(capsys, "import", "graph.csv", *columns, "--output", "g.kg")["triples"] == 2
    (here / "graph.jsonl").write_text(
        '{"type":"node","id":"0","labels":["Drug"],"properties":{"name":"阿司匹林"}}\n'
        '{"type":"node","id":"1","labels":["Sign"],"properties":{"name":"头痛"}}\n'
        '{"id":"0","type":"relationship","label":"TREATS",'
        '"start":{"id":"0","labels":["Drug"],"properties":{"name":"阿司匹林"}},'
        '"end":{"id":"1","labels":["Sign"],"properties":{"name":"头痛"}}}\n',
        encoding="utf-8",
    )
    done = kg(capsys, "import", "graph.jsonl", "--output", "g.kg")
    assert (done["triples"], done["repeated"]) == (0, 1)  # the same triple
    shown = kg(capsys, "show", "g.kg", "阿司匹林")["triples"]
    assert [t["tail"] for t in shown] == ["头痛", "发热, 轻度"]


def test_what_a_sparql_endpoint_constructs_becomes_a_graph(here, capsys):
    label, treats = "<http://www.w3.org/2000/01/rdf-schema#label>", "<http://wd.org/prop/P2175>"
    aspirin, headache = "<http://wd.org/entity/Q18216>", "<http://wd.org/entity/Q86>"
    (here / "drugs.nt").write_text(
        f'{aspirin} {treats} {headache} .\n{aspirin} {label} "aspirin"@en .\n'
        f'{aspirin} {label} "阿司匹林"@zh .\n{headache} {label} "headache"@en .\n'
        f'{treats} {label} "treats"@en .\n{aspirin} {treats} <http://wd.org/entity/Q38933> .\n',
        encoding="utf-8",
    )
    kg(capsys, "import", "drugs.nt", "--language", "en", "--output", "g.kg")
    shown = kg(capsys, "show", "g.kg", "aspirin")["triples"]
    assert [(t["relation"], t["tail"]) for t in shown] == [
        ("treats", "headache"),
        ("treats", "Q38933"),  # no label was asked for
    ]
    (here / "select.csv").write_text("head,relation,tail\r\naspirin,treats,headache\r\n")
    assert kg(capsys, "import", "select.csv", "--output", "g.kg")["repeated"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("add", "kg.spo", "a", "b", "c"), "Make one: kbert kg import kg.spo --output kg.kg"),
        (("remove", "g.kg", "a", "b", "c"), "no such graph"),
        (("export", "kg.spo", "out.kg"), "Use `kbert kg merge kg.spo --output out.kg`"),
        (("show", "kg.spo", "糖尿"), "no entity is called '糖尿'. Names that hold it: 糖尿病."),
        (("import", "missing.spo", "--output", "g.kg"), "missing.spo: can't be read"),
        (("history", "kg.spo"), "need a graph file"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_remedy(here, capsys, words, message):
    assert message in refused(capsys, *words)


def test_a_graph_is_made_by_its_first_triple(here, capsys):
    assert kg(capsys, "add", "new.kg", "a", "b", "c")["revision"] == 1
    assert "in the graph already" in refused(capsys, "add", "new.kg", "a", "b", "c")
    assert "its head is empty" in refused(capsys, "add", "new.kg", " ", "b", "c")


def test_a_graph_file_serves_every_command_that_takes_a_graph(here, capsys):
    kg(capsys, "import", "kg.spo", "--output", "g.kg")
    assert cli.main(["tree", "患糖尿病", "--chars", "--kg", "g.kg", "--json"]) == 0
    stored = json.loads(capsys.readouterr().out)
    assert cli.main(["tree", "患糖尿病", "--chars", "--kg", "kg.spo", "--json"]) == 0
    assert stored == json.loads(capsys.readouterr().out)
    assert cli.main(["kg", "stats", "--kg", "g.kg", "--json"]) == 0
    stats = json.loads(capsys.readouterr().out)
    assert (stats["triples"], stats["entities"], stats["switched_off"]) == (3, 2, 0)
    kg(capsys, "off", "g.kg", "糖尿病", "症状", "多饮")
    stats = json.loads(said(capsys, "stats", "--kg", "g.kg", "--json"))
    assert (stats["triples"], stats["relations"], stats["switched_off"]) == (2, {"类别": 2}, 1)
    assert "\nswitched off: 1\n" in said(capsys, "stats", "--kg", "g.kg")
