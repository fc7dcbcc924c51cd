"""`kbert tree`, `predict` and `rank`, and what all commands share, run as a user types it."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TIM_COOK, save_checkpoint
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

from kbert_core import (
    Ablation,
    Card,
    InjectionOptions,
    KnowledgeGraph,
    Pipeline,
    ReadConfig,
    Triple,
)
from kbert_core.errors import CheckpointError
from kbert_core.knowledge import load_graph
from kbert_lab import cli
from kbert_lab.cli.commands import COMMANDS

ROOT = Path(__file__).parents[3]
FIGURE_2 = str(ROOT / "demo_kgs" / "figure2.spo")
MEDICAL = str(ROOT / "demo_kgs" / "medical_zh.spo")
CODES = ["tokens", "soft_positions", "branch_ids", "anchor_ids", "segment_ids"]
FIELDS = [*CODES, "mentions", "passed_over", "dropped", "visible"]
OVER = "over the limit of triples per mention"


@pytest.fixture
def tree(kbert):
    """Run `kbert tree ... --json`; returns the object printed."""
    return lambda *arguments: kbert("tree", *arguments, "--json")


def figure_2(tree, *more, text=TIM_COOK):
    return tree(text, "--words", "--kg", FIGURE_2, *more)


def typed(monkeypatch, data, encoding="utf-8"):
    """Let it stand on standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding=encoding))


def test_figure_2_comes_out_as_in_the_paper(tree):
    found = figure_2(tree, "--special")
    assert list(found) == FIELDS
    assert " ".join(found["tokens"]) == (
        "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]"
    )
    assert found["soft_positions"] == [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 6, 7, 6, 7]
    assert found["visible"][4] == "01111000000000"  # Apple: its own branch and Tim Cook
    cook = found["mentions"][0]
    place = {"text": "Tim Cook", "start": 0, "end": 8, "entity": "tim cook"}
    assert cook.items() >= place.items()
    assert cook["used"] == [
        {"head": "Tim Cook", "relation": "CEO", "tail": "Apple", "why": "first in graph order"}
    ]
    found = figure_2(tree)
    assert found["tokens"][:2] == ["Tim", "Cook"]
    assert found["soft_positions"] == [0, 1, 2, 3, 2, 3, 4, 5, 6, 5, 6, 5]


def test_a_text_is_read_by_characters_or_by_whole_words(tree, tmp_path):
    found = tree("患者有糖尿病史", "--kg", MEDICAL)
    assert found["tokens"][:6] == list("患者有糖尿病")
    (mention,) = found["mentions"]
    assert len(mention["used"]) == 2
    assert {item["rule"] for item in mention["left_out"]} == {OVER}
    assert "ＣＯＯＫ" in figure_2(tree, text="ｔｉｍ  ＣＯＯＫ visits")["tokens"]
    graph = tmp_path / "kg.spo"
    graph.write_text("糖尿\tr\tt\n", encoding="utf-8")
    assert tree("患者 糖尿病", "--words", "--kg", graph)["mentions"] == []
    assert len(tree("患者 糖尿 病", "--words", "--kg", graph)["mentions"]) == 1


def printed(row):
    """What `kbert tree --json` has to print of a row that a model reads."""
    codes = ("soft_positions", "branch_ids", "anchor_ids")
    return [row.tokens, *(getattr(row, code) for code in codes), row.token_type_ids]


def test_a_models_tree_has_the_rows_that_it_reads_masks_left_alone(tree, checkpoints, tmp_path):
    found = tree("患者有糖尿病史", "--kg", MEDICAL, "--model", checkpoints["ner"])
    assert (found["tokens"][0], found["tokens"][-1]) == ("[CLS]", "[SEP]")
    assert len(found["mentions"][0]["used"]) == 3  # as its card says, and the relation isn't read
    assert "类" not in found["tokens"]
    graph = tmp_path / "kg.spo"
    graph.write_text("mask\tis_a\tcat\napple\tis_a\tcity\n", encoding="utf-8")
    model, text = checkpoints["mask"], "a [MASK] mask apple"
    found = tree(text, "--kg", graph, "--model", model)
    (row,) = Pipeline.from_pretrained(model, device="cpu")(text, graph=load_graph(graph)).rows
    assert [found[field] for field in CODES] == printed(row)
    assert found["tokens"][2] == "[MASK]"
    assert [(m["text"], m["start"]) for m in found["mentions"]] == [("mask", 9), ("apple", 14)]


def test_a_models_tree_of_a_long_text_has_the_windows_that_it_reads(kbert, tree, checkpoints):
    model, text = checkpoints["ner"], "患者有糖尿病史行心电图检查给予布洛芬口服。" * 31
    text = text[:660]
    found = tree(text, "--kg", MEDICAL, "--model", model)["windows"]
    rows = Pipeline.from_pretrained(model, device="cpu")(text, graph=load_graph(MEDICAL)).rows
    assert len(rows) > 20
    assert [[window[field] for field in CODES] for window in found] == [*map(printed, rows)]
    assert [w["mentions"][0]["text"] for w in found[:2]] == ["糖尿病", "心电图"]
    out = kbert("tree", text, "--kg", MEDICAL, "--model", model).out
    assert f"window {len(rows)} of {len(rows)}:" in out


def test_a_model_reads_triples_as_plain_text_where_that_system_is_named(kbert, tree, checkpoints):
    asked = ("糖尿病史", "--kg", MEDICAL, "--model", checkpoints["ner"])
    found = tree(*asked, "--system", "plain-text")
    text, triples = found["tokens"].index("[SEP]"), found["branch_ids"].index(1)
    assert text + 1 == triples == 6
    assert found["soft_positions"] == list(range(len(found["tokens"])))
    data = kbert("predict", *asked, "--system", "plain-text", "--json")
    assert data["prediction"] != kbert("predict", *asked, "--json")["prediction"]
    said = kbert("predict", *asked, "--system", "plain-text", "--visible", "all", code=2).err
    assert "--visible is given, but the system 'plain-text' doesn't use K-BERT's" in said
    assert "Name a model" in kbert("tree", "糖尿病", "--system", "plain-text", code=2).err


def test_options_reach_the_tree(tree, tmp_path):
    assert "capital" not in figure_2(tree, "--tail-only")["tokens"]
    assert len(figure_2(tree, "--max-triples", 1)["tokens"]) == 10
    assert "CEO" not in figure_2(tree, "--relations", "capital")["tokens"]
    assert figure_2(tree, "--positions", "hard")["soft_positions"] == list(range(12))
    assert set("".join(figure_2(tree, "--visible", "all")["visible"])) == {"1"}
    found = tree("Tim Cook", "in Beijing", "--words", "--special", "--kg", FIGURE_2)
    assert found["segment_ids"] == [0] * 6 + [1] * 7
    assert [m["sentence"] for m in found["mentions"]] == [0, 1]
    asked = ("Tim Cook", "in Beijing", "--words", "--special", "--segments")
    assert tree(*asked, "none")["segment_ids"] == [0] * 7
    found = figure_2(tree, "--max-length", 4)
    assert found["tokens"] == ["Tim", "Cook", "is", "visiting"]
    first, *_, cut = found["dropped"]
    assert (first["tail"], first["rule"]) == ("Apple", "does not fit the length limit")
    assert (cut["start"], cut["text"]) == (21, "Beijing now")
    more = tmp_path / "more.spo"
    more.write_text("Tim Cook\tlives_in\tAmerica\n", encoding="utf-8")
    found = figure_2(tree, "--kg", more, text="Tim Cook")  # after those of the first graph
    assert found["tokens"] == ["Tim", "Cook", "CEO", "Apple", "lives_in", "America"]


def test_a_tree_is_drawn_for_reading_and_a_matrix_too_large_to_print_refused(kbert):
    out = kbert("tree", TIM_COOK, "--words", "--special", "--kg", FIGURE_2, "--max-triples", 1).out
    assert "● Tim/1 Cook/2" in out and "└─ CEO/3 Apple/4" in out
    assert f"left out: (Beijing, is_a, City), {OVER}" in out
    said = kbert("tree", "病" * 100_000, "--json", code=2)
    assert "100,000 tokens is too large to print" in said.err
    assert "100000 tokens, 0 mentions" in kbert("tree", "病" * 100_000).out
    long = ("tree", "糖尿病" * 1100, "--kg", MEDICAL)
    assert "1100 mentions" in kbert(*long).out
    assert len(kbert(*long, "--max-length", "20", "--json")["tokens"]) == 20


# Texts of a file, and of standard input


def test_a_file_gives_one_object_a_line_blank_lines_too(kbert, tmp_path, monkeypatch):
    texts = tmp_path / "texts.txt"
    texts.write_text("\ufeffTim Cook\n\n患者\n", encoding="utf-8")
    lines = kbert("tree", "--file", texts, "--kg", FIGURE_2).out.splitlines()
    tokens = [json.loads(line)["tokens"] for line in lines]
    assert tokens == [["Tim", "Cook", "CEO", "Apple"], [], ["患", "者"]]
    typed(monkeypatch, b"Tim Cook\tin Beijing\n")
    out = kbert("tree", "--file", "-", "--pair", "--kg", FIGURE_2, "--words").out
    assert json.loads(out)["segment_ids"] == [0] * 4 + [1] * 6
    typed(monkeypatch, b"\xef\xbb\xbfa \xe6\x82\xa3\r\n", "latin-1")
    assert json.loads(kbert("tree", "--file", "-", "--words").out)["tokens"] == ["a", "患"]
    typed(monkeypatch, b"\xff\n", "latin-1")
    assert "-: not UTF-8" in kbert("tree", "--file", "-", code=2).err


def test_a_bad_line_of_a_file_is_named_and_the_lines_before_it_stand(kbert, checkpoints, tmp_path):
    texts, asked = tmp_path / "texts.txt", ("--model", checkpoints["mask"])
    texts.write_text("a [MASK]\nb\n", encoding="utf-8")
    said = kbert("predict", "--file", texts, *asked, "--json", code=2)
    assert f"{texts}, line 2: No [MASK] to fill in" in said.err
    assert json.loads(said.out)["text"] == "a [MASK]"
    texts.write_bytes(b"a [MASK]\n" * 3 + b" " * 20_000 + b"[MASK]\n\xff\n")
    said = kbert("predict", "--file", texts, *asked, code=2)
    assert "not UTF-8" in said.err
    assert len(said.out.splitlines()) >= 3


def test_json_lines_where_plain_text_is_expected_are_refused_and_a_table_told(
    kbert, tmp_path, caplog
):
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n', encoding="utf-8")
    said = kbert("tree", "--file", tmp_path / "a.jsonl", "--kg", FIGURE_2, code=2)
    assert 'a.jsonl: found JSON, \'{"text": "a"}\', expected plain text. Write the' in said.err
    for name, told in (("a.csv", True), ("a.tsv", True), ("a.txt", False)):
        (tmp_path / name).write_text("text,label\na,1\n", encoding="utf-8")
        kbert("tree", "--file", tmp_path / name, "--kg", FIGURE_2)
        assert (f"{name}: every whole line is read as one text" in caplog.text) == told


def test_an_encoding_is_that_of_every_file_that_is_not_utf_8(kbert, tmp_path):
    texts, graph = tmp_path / "texts.txt", tmp_path / "mine.tsv"
    texts.write_bytes("有糖尿病\n".encode("gb18030"))
    graph.write_bytes("糖尿病\t类别\t疾病\n".encode("gb18030"))
    for named, line in ((("--kg", graph), "疾病"), (("--kg", "demo_kgs/medical_zh.spo"), "糖尿病")):
        command = ("tree", "--file", texts, *named)
        assert line in kbert(*command, "--encoding", "gb18030").out
        assert "--encoding gb18030" in kbert(*command, code=2).err
    said = kbert(*command, "--encoding", "klingon", code=2).err
    assert "The encoding 'klingon' is unknown" in said


# Predictions


def test_predict_gives_probabilities_beside_the_run_without_knowledge(kbert, checkpoints):
    arguments = ("predict", "患者有糖尿病史", "--model", checkpoints["ner"], "--kg", MEDICAL)
    found = kbert(*arguments, "--compare", "--json")
    token = found["prediction"]["tokens"][0]
    assert sum(token["probabilities"].values()) == pytest.approx(1)
    assert [triple["head"] for triple in found["triples"]] == ["糖尿病"] * 3
    assert found["without_knowledge"] != found["prediction"]
    assert "with knowledge:" in kbert(*arguments).out
    few = ("predict", "糖尿病", *arguments[2:], "--max-length", 5, "--json")
    found = kbert(*few)  # no room for a branch
    assert found["triples"] == []
    assert {t["rule"] for t in found["dropped"]} >= {"does not fit the length limit"}


def test_a_cards_positions_and_tails_are_kept_unless_other_ones_are_asked_for(tree, tmp_path):
    how = ReadConfig(InjectionOptions(tail_only=True), ablation=Ablation("hard", "all"))
    made = save_checkpoint(tmp_path / "m", AutoModelForTokenClassification, Card("ner", how))
    asked = ("糖尿病", "--model", made, "--kg", MEDICAL)
    found = tree(*asked)
    assert found["soft_positions"] == list(range(len(found["tokens"])))
    assert set("".join(found["visible"])) == {"1"}
    assert "别" not in found["tokens"]
    found = tree(*asked, "--positions", "soft", "--no-tail-only")
    assert found["soft_positions"] != list(range(len(found["tokens"])))
    assert "别" in found["tokens"]


def test_bfloat16_predicts_nearly_the_same_and_ends_with_its_command(kbert, checkpoints):
    arguments = ("predict", "Tim Cook", "--model", checkpoints["classify"], "--json")
    before, half, after = (
        kbert(*arguments, *more)["prediction"]["probabilities"] for more in ((), ("--bf16",), ())
    )
    assert half == pytest.approx(before, abs=0.02)
    assert half != before == after


def test_the_model_that_none_named_is_told_where_a_text_is_not_chinese(kbert, caplog):
    for text, told in (("a flu", True), ("癫痫 ok", False)):
        caplog.clear()
        kbert("predict", text, "--device", "cpu")
        assert ("medical-ner-kbert reads Chinese" in caplog.text) is told


def test_a_model_that_reads_the_graph_is_named_once_the_graph_is_read(kbert, caplog):
    predict = ("predict", "a flu", "--model", "models/ner-en", "--device", "cpu", "--kg")
    kbert(*predict, "demo_kgs/medical_zh.spo")
    assert "names in the graph 'medical_zh' are in another script" in caplog.text
    assert "--model models/medical-ner-kbert" in caplog.text
    caplog.clear()
    (said,) = kbert(*predict, "nowhere.spo", code=2).err.splitlines()
    assert said.startswith("kbert: nowhere.spo: can't be read")
    assert not caplog.text


# What is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tree", "a", "--kg", "nowhere.spo"], "nowhere.spo: can't be read"),
        (["tree"], "No text given"),
        (["tree", "a", "b", "c"], "Got 3 sentences"),
        (["tree", "a", "--file", "b"], "Give one of them"),
        (["tree", "--file", "nowhere.txt"], "nowhere.txt: can't be read"),
        (["tree", "a", "--max-triples", "-1"], "expected 0 to 1000"),
        (["tree", "a\ud800"], "half a character"),
        (["predict", "a", "--model", "nowhere"], "Found no model 'nowhere'"),
        (["tree", "--relations", "CEO", "a text"], "--relations that take every word after them"),
        (["predict", "a", "--device", "mps"], "There is no device 'mps'. Use auto, cpu or cuda"),
        (["kg", "stats"], "No graph given"),
        (["kg", "stats", "http://x.org/sparql"], "`kbert kg import http://x.org/sparql --output"),
        (["predict", "a", "--model", ""], "found no config.json"),
    ],
)
def test_a_mistake_is_said_with_exit_code_2(kbert, arguments, message):
    said = kbert(*arguments, code=2)
    assert message in said.err
    assert "Traceback" not in said.err
    assert said.out == ""


def test_a_bad_graph_line_is_refused_or_left_out_and_listed(kbert, tmp_path, caplog):
    graph = tmp_path / "kg.spo"
    graph.write_text("a\tb\tc\naspirin\ttreats\n", encoding="utf-8")
    assert f"{graph}, line 2: found 2 fields" in kbert("tree", "a", "--kg", graph, code=2).err
    said = kbert("tree", "a", "--kg", graph, "--skip-bad")
    assert f"left out: {graph}, line 2: found 2 fields" in caplog.text
    assert "1 mention," in said.out


@pytest.mark.parametrize("problem", [ZeroDivisionError, KeyboardInterrupt])
def test_a_bug_of_ours_surfaces_and_a_stopped_command_ends_with_130(kbert, monkeypatch, problem):
    def broken(*_, **__):
        raise problem

    monkeypatch.setattr("kbert_core.kbert.sentence_tree.grow_trees", broken)
    if problem is KeyboardInterrupt:
        assert kbert("tree", "a", code=130).err == "kbert: stopped\n"
        return
    with pytest.raises(ZeroDivisionError):
        cli.main(["tree", "a"])


def test_a_reader_that_leaves_early_is_no_error(tmp_path, monkeypatch, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text("Tim Cook is visiting Beijing now\n" * 300, encoding="utf-8")
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert cli.main(["tree", "--json", "--file", str(texts)]) == 0
        out.write("as Python does at its exit")
    assert not capsys.readouterr().err


# Help


def helped(capsys, *words, code=0):
    """What a command prints that ends the program."""
    with pytest.raises(SystemExit) as ended:
        cli.main([*words])
    assert ended.value.code == code
    said = capsys.readouterr()
    return said.err if code else said.out


def test_every_command_has_help_and_so_has_each_of_its_arguments(capsys):
    cli.parser()  # imports the modules of all
    assert len(COMMANDS) > 30
    for command in ("", *{**cli.WORDS, **COMMANDS}):
        out = helped(capsys, *command.split(), "--help")
        assert "usage: kbert" in out
        assert ("--json" in out) == (command in COMMANDS)
        if command in cli.WORDS and command in COMMANDS:
            first, _, _ = COMMANDS[command].help.partition("\n")
            assert first == f"{cli.WORDS[command][1]}."
    said = helped(capsys, "kg", "check", "a.spo", "b.spo", code=2)
    assert "kbert kg check: error: unrecognized arguments: b.spo" in said


@pytest.mark.parametrize("command", ["tree", "predict", "train", "evaluate"])
def test_a_part_that_cannot_be_taken_away_is_refused_with_the_choices(capsys, command):
    said = helped(capsys, command, "--segments", "one", code=2)
    assert re.search(r"--segments: invalid choice: 'one' \(choose from '?sentences'?, '?none", said)


def test_help_names_all_commands_and_loads_none():
    code = "import sys; from kbert_lab.cli import main\ntry: main(['--help'])\n"
    code += "except SystemExit: print(sorted(m for m in sys.modules if m.startswith('kbert_')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert all(f"    {word} " in out or f"    {word}\n" in out for word in cli.WORDS)
    loaded = ["kbert_core", "kbert_core.errors", "kbert_lab", "kbert_lab.cli"]
    assert out.splitlines()[-1] == str(loaded)


# Graphs of a text file


def test_kg_stats_counts_what_a_graph_holds_and_kg_get_says_where_it_is(
    kbert, monkeypatch, tmp_path
):
    from kbert_lab.graphs import download as public

    graph = tmp_path / "kg.spo"
    graph.write_text("a\tr\tb\na\tr\tb\na\ts\tc\nlonger\tr\td\n", encoding="utf-8")
    found = kbert("kg", "stats", "--kg", graph, "--json")
    assert (found["triples"], found["entities"]) == (3, 2)
    assert found["files"][0]["duplicates"] == 1
    assert found["relations"] == {"r": 2, "s": 1}
    assert found["entities_with_several_triples"] == 1
    assert found["longest_name"] == "longer"
    assert "\ntriples: 3\n" in kbert("kg", "stats", "--kg", graph).out
    monkeypatch.setattr(public, "fetch", lambda name, target: target)
    get = ("kg", "get", "medical", "--output", tmp_path / "Medical.spo")
    found = kbert(*get, "--json")
    assert (found["file"], found["triples"]) == (str(get[-1]), 13_864)
    assert f"--kg {get[-1]}" in kbert(*get).out


# Candidate answers

ANSWERS = ["tim cook", "a city", "cats", "apple"]


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rank")
    labels = {"id2label": {0: "0", 1: "1"}, "label2id": {"0": 0, "1": 1}}
    return save_checkpoint(folder, AutoModelForSequenceClassification, Card("rank"), **labels)


def test_a_pipeline_ranks_as_it_predicts_each_candidate_by_itself(ranker):
    pipeline = Pipeline.from_pretrained(ranker, device="cpu")
    graph = KnowledgeGraph([Triple("tim cook", "ceo", "apple")])
    found = pipeline.rank("tim", ANSWERS, graph=graph)
    alone = {a: pipeline("tim", a, graph=graph).prediction.probabilities["1"] for a in ANSWERS}
    assert [a.answer for a in found] == sorted(ANSWERS, key=lambda a: -alone[a])
    for answer in found:
        assert ANSWERS[answer.number] == answer.answer
        assert answer.probability == pytest.approx(alone[answer.answer], abs=1e-5)
    assert pipeline.rank("tim", []) == []
    plain = {a.answer: a.probability for a in pipeline.rank("tim", ANSWERS)}
    assert plain["tim cook"] != pytest.approx(alone["tim cook"], abs=1e-6)  # knowledge is read
    assert plain["cats"] == pytest.approx(alone["cats"], abs=1e-5)


def test_a_model_for_something_else_does_not_rank(checkpoints):
    with pytest.raises(CheckpointError, match=r"task 'classify'.*kbert train --task rank"):
        Pipeline.from_pretrained(checkpoints["classify"], device="cpu").rank("a", ["b"])
    with pytest.raises(CheckpointError, match=r"labels LABEL_0, LABEL_1.*one named 1"):
        Pipeline.from_pretrained(checkpoints["pair"], device="cpu").rank("a", ["b"])


def test_the_command_ranks_candidates_given_and_from_a_file(kbert, ranker, tmp_path):
    (tmp_path / "more.txt").write_text("cats\n\napple\n", encoding="utf-8")
    given = ["rank", "tim", "tim cook", "a city", "--candidates", tmp_path / "more.txt"]
    given += ["--model", ranker]
    found = kbert(*given, "--compare", "--json")
    assert [a["rank"] for a in found["answers"]] == [1, 2, 3, 4]
    assert sorted(a["number"] for a in found["answers"]) == [0, 1, 2, 3]
    assert {a["answer"] for a in found["answers"]} == set(ANSWERS)
    assert found["without_knowledge"] == found["answers"]  # no graph is given
    lines = kbert(*given).out.splitlines()
    assert lines[0] == "question: tim"
    assert [line.split()[0] for line in lines[3:]] == ["1", "2", "3", "4"]
    found = kbert("predict", "tim", "apple", "--model", ranker, "--json")["prediction"]
    assert set(found["probabilities"]) == {"0", "1"}
    said = kbert("predict", "tim", "--model", ranker, code=2).err
    assert "Answer selection takes two sentences, got 1" in said


def test_the_command_says_what_is_cut_and_what_is_missing(kbert, ranker, tmp_path, caplog):
    kbert("rank", "tim", "a", "cat " * 100, "--model", ranker)
    assert "1 of 2 candidates are longer than the length limit and were cut" in caplog.text
    given, file = ["rank", "tim", "--model", ranker], tmp_path / "c.txt"
    assert "No candidate answer given" in kbert(*given, code=2).err
    file.write_bytes("苹果\n".encode("gb18030"))
    given += ["--candidates", file, "--encoding", "gb18030"]
    assert "苹果" in kbert(*given).out
