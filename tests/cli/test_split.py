"""`kbert split` and `kbert kg control` from the command line."""

import json

import pytest

from kbert_core.knowledge.io import read_triples
from kbert_lab import cli
from kbert_lab.data.labelled import SPLITS, read_examples
from results.tools import graph_controls

NAMES = [f"{a}{b}" for a in "甲乙丙丁戊己庚辛" for b in "病炎症痛"]


@pytest.fixture
def folder(tmp_path):
    rows = [f"有 {' '.join(n)}\tO B-D I-D" for n in NAMES]
    for split in SPLITS:
        (tmp_path / f"{split}.tsv").write_text("text_a\tlabel\n" + "\n".join(rows) + "\n")
    lines = [f"{n}\t类别\t{'疾病' if i % 2 else '症状'}" for i, n in enumerate(NAMES[:20])]
    (tmp_path / "kg.spo").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_split_writes_entity_disjoint_files_among_the_names_of_a_graph(folder, capsys):
    arguments = ["split", "--data", str(folder), "--output", str(folder / "new"), "--seed", "1"]
    assert cli.main([*arguments, "--kg", str(folder / "kg.spo"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["test"] == {
        "sentences": 7,
        "before": 32,
        "mentions": 7,
        "unseen in train": 7,
    }
    found = {
        split: {e.sentences[0][1:] for e in read_examples(folder / "new" / f"{split}.tsv", "ner")}
        for split in SPLITS
    }
    assert found["test"] | found["dev"] <= set(NAMES[:20])
    assert found["train"] | found["test"] | found["dev"] == set(NAMES)
    assert not found["train"] & (found["test"] | found["dev"])


def test_split_can_take_leaks_out_only(folder, capsys):
    (folder / "dev.tsv").write_text("text_a\tlabel\n无 痛\tO B-D\n")
    arguments = ["split", "--data", str(folder), "--output", str(folder / "new")]
    assert cli.main([*arguments, "--by", "deduplicated"]) == 2  # nothing is left for train
    (folder / "test.tsv").unlink()
    assert cli.main([*arguments, "--by", "deduplicated", "--json"]) == 0
    assert "No labelled row is left for train" in capsys.readouterr().err
    assert len(read_examples(folder / "new" / "train.tsv", "ner")) == 32


def test_split_by_substitution_says_the_share_of_new_names(folder, capsys):
    arguments = ["split", "--data", str(folder), "--output", str(folder / "new")]
    by = ["--by", "substitution", "--unseen", "0.25", "--seed", "1"]
    assert cli.main([*arguments, *by, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["test"] == {"sentences": 32, "before": 32, "mentions": 32, "unseen in train": 8}
    assert cli.main([*arguments, "--by", "substitution"]) == 2
    assert "--by substitution and --unseen go together" in capsys.readouterr().err


def test_split_keeps_the_numbers_of_questions(folder, capsys):
    rows = ["7\t1\t谁？\t他。", "8\t0\t谁？\t她。"]
    for split in SPLITS:
        text = "\n".join(["qid\tlabel\ttext_a\ttext_b", *rows])
        (folder / f"{split}.tsv").write_text(text.replace("。", f"{split}。") + "\n")
    arguments = ["split", "--data", str(folder), "--output", str(folder / "new"), "--task", "rank"]
    assert cli.main([*arguments, "--by", "deduplicated"]) == 0
    read = read_examples(folder / "new" / "dev.tsv", "rank")
    assert [(e.group, e.sentences[1]) for e in read] == [("7", "他dev。"), ("8", "她dev。")]


def test_split_reads_tables_with_the_columns_named(tmp_path, caplog):
    (tmp_path / "train.csv").write_text('satz,klasse\na,1\n"b\nc",2\n')
    (tmp_path / "test.csv").write_text("satz,klasse\na,1\n")
    arguments = ["split", "--data", str(tmp_path), "--output", str(tmp_path / "new")]
    columns = ["--columns", "text_a=satz,label=klasse"]
    assert cli.main([*arguments, "--by", "deduplicated", "--task", "classify", *columns]) == 0
    (left,) = read_examples(tmp_path / "new" / "train.tsv", "classify")
    assert (left.sentences, left.label) == (("b c",), "2")
    assert "1 rows have a tab or a line break" in caplog.text


def test_split_says_when_the_graph_knows_too_few_names(folder, capsys):
    (folder / "kg.spo").write_text("甲病\t类别\t疾病\n")
    arguments = ["split", "--data", str(folder), "--output", str(folder / "new")]
    assert cli.main([*arguments, "--kg", str(folder / "kg.spo")]) == 2
    assert "1 entity names that the graph kg knows (32 in all)" in capsys.readouterr().err


def test_kg_control_writes_a_graph_of_wrong_tails(folder, capsys):
    output = folder / "shuffled.spo"
    arguments = ["kg", "control", "--kg", str(folder / "kg.spo"), "--output", str(output)]
    assert cli.main([*arguments, "--tails", "shuffled", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["share with a true tail still"] == 0
    before = read_triples(folder / "kg.spo").triples
    after = read_triples(output).triples
    assert [t.head for t in before] == [t.head for t in after]
    assert not set(before) & set(after)


def test_a_graph_is_brought_to_shares_of_labelled_texts(folder, capsys):
    for split in SPLITS[1:]:
        (folder / f"{split}.tsv").write_text(
            "text_a\tlabel\n有 新 病 和 新 炎\tO B-D I-D O B-D I-D\n"
        )
    output = folder / "half.spo"
    arguments = ["--kg", str(folder / "kg.spo"), "--output", str(output)]
    graph_controls.main([*arguments, "--data", str(folder), "--known", "0.5"])
    shown = capsys.readouterr().out
    assert "'test': 0.5" in shown and "'added': 1" in shown
    assert "train: bits of tails about labels, 0.00 before, 0.00 now" in shown
    assert len(read_triples(output).triples) == len(read_triples(folder / "kg.spo").triples) + 1
