"""What the README says to type works, by K-BERT and by a KnowBert."""

import json
import re
import shlex
from pathlib import Path

import pytest
from PIL import Image

from kbert_lab import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh.md").read_text(encoding="utf-8")
KNOWBERT, DATA = "medical-ner-knowbert", "demo_kgs/example_data/medical_ner"
PAGES = pytest.mark.parametrize("page", [README, CHINESE], ids=["en", "zh"])


@PAGES
def test_the_python_example_prints_what_the_page_says(capsys, monkeypatch, page):
    blocks = dict(re.findall(r"```(python|text)\n(.*?)```", page, flags=re.DOTALL))
    monkeypatch.chdir(ROOT)
    exec(blocks["python"], {})
    assert capsys.readouterr().out == blocks["text"]


def test_a_knowbert_takes_the_python_example(capsys, monkeypatch):
    (example,) = re.findall(r"```python\n(.*?)```", CHINESE, flags=re.DOTALL)
    monkeypatch.chdir(ROOT)
    exec(example.replace("medical-ner-kbert", KNOWBERT), {})
    first, after = capsys.readouterr().out.splitlines()
    assert "('胃镜', 'Examine')" in first
    assert "('胃镜', 'Disease')" in after


@PAGES
def test_every_figure_of_what_we_found_stands_in_the_results(page):
    """There they are filled in from the runs."""
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"\n## (?:What we found|我们的发现)\n([^#]*)", page)
    figures = re.findall(r"\d+\.\d|\d+(?= %)", found)
    assert len(figures) >= 8
    assert not [figure for figure in figures if not re.search(rf"(?<![\d.]){figure}\b", results)]


def test_the_readme_is_short_and_shows_two_pictures():
    assert len(README.split()) <= 600
    pictures = re.findall(r"!\[[^\]]{20,}\]\((.*?)\)", README)
    moving = [Image.open(ROOT / picture).is_animated for picture in pictures]
    assert sorted(moving) == [False, True]


def test_the_command_in_a_line_of_the_readme_runs(capsys, monkeypatch):
    (command,) = re.findall(r"`kbert (.*?)`", README)
    monkeypatch.chdir(ROOT)
    assert cli.main(shlex.split(command)) == 0
    assert "Disease" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("predict 患者行胃镜检查未见异常 --compare", "Examine"),
        (f"evaluate --data {DATA}/test.tsv --train-data {DATA}/train.tsv --edits", "tail replaced"),
        ("explain effects 患者行胃镜检查未见异常", "胃镜 · 类别 · 检查"),
        ("explain counterfactuals 患者行胃镜检查未见异常", "found to flip it"),
        (f"explain file --data {DATA} --prune leave-one-out", "texts with a triple of it: 6"),
        (f"audit --data {DATA} --all", "0.0 % (0 of 92)"),  # tokens that triples add
        ("link 患者行胃镜检查未见异常", "→  胃镜"),
    ],
)
def test_a_command_takes_a_knowbert_model(command, says, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    read_by = ["--kg", "demo_kgs/medical_zh.spo", "--model", f"models/{KNOWBERT}"]
    assert cli.main([*shlex.split(command), *read_by]) == 0
    assert says in capsys.readouterr().out


def test_an_experiment_takes_a_knowbert_model(tmp_path, capsys):
    suite = {
        "task": "ner",
        "encoder": str(ROOT / "models" / KNOWBERT),
        "data": {"folder": str(ROOT / DATA), "split": "official"},
        "kg": str(ROOT / "demo_kgs" / "medical_zh.spo"),
        "seeds": [1],
        "train": {"epochs": 1},
        "runs": [{"name": "KnowBert"}],
    }
    (tmp_path / "suite.yaml").write_text(json.dumps(suite), encoding="utf-8")
    places = ["--results", str(tmp_path), "--work", str(tmp_path / "work"), "--device", "cpu"]
    assert cli.main(["experiment", str(tmp_path / "suite.yaml"), *places]) == 0
    assert "1 of 1 done" in capsys.readouterr().out


def test_the_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("app", "test", "lint", "lab", "notebooks", "docs", "bench", "soak", "help"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
