"""`kbert pretrain`, `train` and `evaluate` at toy size, and scores in the terminal."""

import copy
import json

import pytest

from kbert_core.kbert.visible import Ablation
from kbert_core.pipeline import Pipeline
from kbert_lab.cli.train import command_line, scores_text
from kbert_lab.training.scores import class_scores, ranking_scores, span_scores


@pytest.fixture(scope="module")
def kept():
    """The trained model's files and its report, by name."""
    return {}


@pytest.fixture
def trained(data, kbert, kept):
    if not kept:
        options = "--epochs 12 --hidden-size 64 --layers 2 --learning-rate 3e-3 --batch-tokens 128"
        command = ("train", "--task", "ner", "--data", data, "--output", data / "model")
        command += ("--kg", data / "kg.spo", *options.split(), "--counterfactual", "0.2")
        kept["report"] = kbert(*command, "--device", "cpu", "--json")
        kept["files"] = {file.name: file.read_bytes() for file in (data / "model").iterdir()}
    (data / "model").mkdir(exist_ok=True)
    for name, content in kept["files"].items():
        (data / "model" / name).write_bytes(content)
    return data, copy.deepcopy(kept["report"])


@pytest.fixture
def evaluated(trained, kbert):
    """Score the trained model on dev, or on other data; returns what was printed."""
    data, _ = trained

    def run(*more, of="dev.tsv", code=0):
        return kbert("evaluate", "--model", data / "model", "--data", data / of, *more, code=code)

    return run


SMALL = ("--epochs", 1, "--hidden-size", 64, "--layers", 1, "--device", "cpu")


def test_train_prints_a_report_and_evaluate_gives_the_same_scores(trained, evaluated):
    data, report = trained
    assert report["scores"]["dev"]["f1"] > 0.8
    assert report["edit_response"]["dev"]["seen"]["n"] > 0
    scores = evaluated("--kg", data / "kg.spo", "--release", "--json")
    assert scores["scores"]["f1"] == pytest.approx(report["scores"]["dev"]["f1"], abs=0.05)
    assert "without_knowledge" in scores
    text = evaluated("--kg", data / "kg.spo").out
    assert "with knowledge" in text and "graph off" in text
    rows = [line.split() for line in text.splitlines()]
    assert [row[0] for row in rows if len(row) == 7 and row[0] in "DE"] == ["D", "E"] * 2
    assert "release" not in text
    assert scores["scores"]["by_label"]["D"]["gold"] == 10
    assert 0 < scores["scores"]["release_f1"] <= 1


def test_data_that_do_not_fit_a_model_or_a_task_are_refused(trained, evaluated, kbert, tmp_path):
    data, _ = trained
    (data / "other.tsv").write_text("text_a\tlabel\n甲 乙\tB-X O\n", encoding="utf-8")
    said = evaluated(of="other.tsv", code=2).err
    assert "other.tsv, line 2: the label 'B-X' is not among those of the model (O, B-D, I-D" in said
    pairs, header = tmp_path / "pairs.tsv", "text_a\ttext_b\tlabel\n"
    pairs.write_text(f"{header}甲\t乙\t0\n丙\t丁\t1\n", encoding="utf-8")
    said = "The data look like sentence pairs, and the task is named entities."
    assert said in evaluated(of=pairs, code=2).err
    to = ("--output", tmp_path / "m", "--device", "cpu")
    assert (
        said in kbert("train", "--task", "ner", "--train", pairs, "--dev", pairs, *to, code=2).err
    )
    missing = kbert("train", "--task", "rank", "--data", pairs, *to, code=2).err
    assert "No dev set" in missing
    assert "look like" not in missing  # candidates without a number look like pairs, too
    pairs.write_text(f"{header}甲\t乙\tno\n", encoding="utf-8")
    wrong = kbert("train", "--task", "rank", "--data", pairs, *to, code=2).err
    assert wrong.rstrip().endswith("0 for any other sentence.")


def test_edits_are_measured_as_the_scores_above_them(trained, evaluated, monkeypatch):
    data, report = trained
    assert "--edits needs a --kg, --train-data" in evaluated("--edits", code=2).err
    asked = ("--kg", data / "kg.spo", "--train-data", data / "train.tsv", "--edits", "--json")
    response = evaluated(*asked)["edit_response"]
    assert response["seen"]["n"] == report["edit_response"]["dev"]["seen"]["n"]
    read = []
    plain = Pipeline.readings

    def noted(pipeline, texts, **how):
        read.append((how["config"].ablation, how["config"].max_length))
        return plain(pipeline, texts, **how)

    monkeypatch.setattr(Pipeline, "readings", noted)
    evaluated(*asked, "--positions", "hard", "--max-length", "12")
    assert len(read) > 2  # to be scored with and without the graph, and for the edits
    assert set(read) == {(Ablation(positions="hard"), 12)}


def test_classification_of_pairs_says_that_one_text_is_read(kbert, tmp_path, caplog):
    rows = "".join(f"甲{n}\t乙{n}\t{n % 2}\n" for n in range(40))
    (tmp_path / "train.tsv").write_text(f"text_a\ttext_b\tlabel\n{rows}", encoding="utf-8")
    (tmp_path / "one.tsv").write_text("text_a\tlabel\n很好\t1\n", encoding="utf-8")
    model, said = tmp_path / "model", "looks like sentence pairs, but only the first text of each"
    given = ("--data", tmp_path, "--dev-share", 0.2, "--output", model)
    kbert("train", "--task", "classify", *given, *SMALL)
    assert said in caplog.text
    for name, told in (("one.tsv", False), ("train.tsv", True)):
        caplog.clear()
        kbert("evaluate", "--model", model, "--data", tmp_path / name)
        assert (said in caplog.text) is told


def test_the_command_on_a_card_names_no_folder_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_DATA", str(tmp_path))
    given = ["kbert", "train", "--data", str(tmp_path / "ner" / "set"), "--kg", "/home/me/a.spo"]
    monkeypatch.setattr("sys.argv", given)
    assert command_line() == 'kbert train --data "$KBERT_DATA"/ner/set --kg a.spo'


def test_train_takes_files_by_name_a_share_as_dev_and_columns_by_name(kbert, tmp_path):
    rows, file = [f"t{n}\t好{n}\t{n % 2}" for n in range(40)], tmp_path / "all_as_train.tsv"
    file.write_text("id\ttitle\tmark\n" + "\n".join(rows) + "\n")
    train = ["train", "--task", "classify", "--output", tmp_path / "model", *SMALL, "--json"]
    said = kbert(*train, "--data", tmp_path, code=2).err
    assert "the folder holds all_as_train.tsv" in said
    said = kbert(*train, code=2).err
    assert "No data given. Name a folder with --data, or a file with --train" in said
    train += ["--train", file]
    assert "no column 'label'" in kbert(*train, code=2).err
    train += ["--columns", "text_a=title,label=mark"]
    assert "--dev-share 0.1" in kbert(*train, code=2).err
    report = kbert(*train, "--dev-share", "0.2")
    assert report["scores"]["dev"]["count"] == 8
    assert list(report["scores"]) == ["dev"]


def test_evaluate_scores_the_split_asked_for_and_tables_of_other_kinds(
    trained, evaluated, tmp_path
):
    data, _ = trained
    asked = ("--kg", data / "kg.spo", "--json")
    found = evaluated(*asked, "--split", "dev", of="")
    assert found["data"] == str(data / "dev.tsv")
    header, *rows = (data / "dev.tsv").read_text(encoding="utf-8").splitlines()
    assert header == "text_a\tlabel"
    cells = [[cell.split(" ") for cell in row.split("\t")] for row in rows]
    lines = [json.dumps({"tokens": tokens, "tags": tags}) for tokens, tags in cells]
    (tmp_path / "x.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert evaluated(*asked, of=tmp_path / "x.jsonl")["scores"] == found["scores"]


ENTITIES = span_scores([[(0, 2, "疾病"), (3, 4, "B")]], [[(0, 2, "疾病"), (3, 4, "C")]])


def lines(**report):
    return [line.split() for line in scores_text(report).splitlines()]


def test_scores_are_in_per_cent_and_have_a_row_for_each_label_below_the_whole():
    rows = [
        " ".join(row) for row in lines(scores={**ENTITIES, "unseen": {"recall": 0.5, "gold": 3}})
    ]
    assert rows[:4] == ["with knowledge:", "right: 1", "predicted: 2", "gold: 2"]
    assert rows[6:9] == ["f1: 50.0", "by label:", "right predicted gold precision recall f1"]
    labels = ["B 0 0 1 0.0 0.0 0.0", "C 0 1 0 0.0 0.0 0.0", "疾病 1 1 1 100.0 100.0 100.0"]
    assert rows[9:] == [*labels, "unseen: recall 50.0, gold 3"]
    classes = lines(scores=class_scores(["a", "b"], ["a", "a"]))
    assert classes[1:4] == [["accuracy:", "50.0"], ["macro", "f1:", "33.3"], ["count:", "2"]]
    ranking = ranking_scores(["q", "q", "r"], [False, True, False], [0.9, 0.1, 0])
    assert lines(scores=ranking)[1:3] == [["mrr", "50.0"], ["p_at_1", "0.0"]]
    assert "perplexity 2" in scores_text({"scores": {"loss": 0.69, "perplexity": 2.0}})


def test_the_response_to_edits_is_a_table_for_replaced_tails_and_one_for_added_triples():
    replaced = {"new": 0.75, "lost": 0.0, "others_changed": 0.5, "others_new": None, "n": 4}
    added = {"right_before": 0.5, "missed": 1, "n": 2}
    groups = {"unseen": replaced, "seen": {"n": 0}}
    response = {**groups, "added": {"unseen": added, "seen": {"n": 0}}}
    response["invented"] = {"D": {"n": 4, "followed": 0.25}}
    rows = lines(edit_response=response)
    assert rows[0][:3] == ["response", "to", "edits"]
    assert rows[1:3] == [["tail", "replaced:"], ["n", "new", "lost", "others", "changed"]]
    assert rows[3:5] == [["unseen", "4", "75.0", "0.0", "50.0"], ["seen", "0"]]
    assert rows[7] == ["unseen", "2", "50.0", "1"]
    assert rows[9:] == [["name", "invented:"], ["n", "followed"], ["D", "4", "25.0"]]
    splits = scores_text({"edit_response": {"dev": groups, "test": groups}})
    assert "dev, response to edits" in splits and "test, response to edits" in splits
    for later in ("triple added", "name invented"):
        assert later not in splits  # a report made before there was one
