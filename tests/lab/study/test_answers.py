"""The suite for answer selection, on a set made as its description says, without training."""

import json
from pathlib import Path

import pytest

from kbert_lab import cli
from kbert_lab.data.labelled import read_examples
from kbert_lab.suites.grid import Experiment
from kbert_lab.suites.suite import read_suite

SUITE = Path(__file__).parents[3] / "results" / "suites" / "answers.yaml"


def reading(questions):
    """Reading comprehension: two questions of the same text on every paragraph."""
    paragraphs = []
    for number in range(questions // 2):
        context = f"甲{number}在家。乙{number}在田里。丙{number}不在。"
        answers = [{"text": name, "answer_start": context.index(name)} for name in "乙丙"]
        asked = [
            {"id": f"{number}-{i}", "question": "谁不在家？", "answers": [answer]}
            for i, answer in enumerate(answers)
        ]
        paragraphs.append({"context": context, "qas": asked})
    return {"data": [{"paragraphs": paragraphs}]}


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    (tmp_path / "data" / "kbert").mkdir(parents=True)
    (tmp_path / "data" / "kbert" / "HowNet.spo").write_text("家\t义原\t处所\n田\t义原\t土地\n")
    (tmp_path / "ranking").mkdir()
    monkeypatch.setenv("KBERT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("KBERT_RANKING", str(tmp_path / "ranking"))
    for part, questions in (("dev", 20), ("trial", 6)):
        source = tmp_path / f"{part}.json"
        source.write_text(json.dumps(reading(questions)), encoding="utf-8")
        target = tmp_path / "ranking" / f"cmrc2018_{part}.tsv"
        assert cli.main(["data", "rank", "--input", str(source), "--output", str(target)]) == 0
    return Experiment(read_suite(SUITE), tmp_path / "results", tmp_path / "work")


def test_questions_stay_whole_and_apart_though_their_texts_are_the_same(experiment):
    folder, _ = experiment.split(1)
    groups = {}
    for split, questions in (("train", 18), ("dev", 2), ("test", 6)):
        examples = read_examples(folder / f"{split}.tsv", "rank")
        groups[split] = {e.group for e in examples}
        assert len(groups[split]) == questions
        assert len(examples) == 3 * questions
        assert sum(e.label == "1" for e in examples) == questions
    assert not groups["train"] & groups["dev"]
    assert experiment.split(2)[1] != experiment.split(1)[1]  # another seed, another dev


def test_the_rows_are_two_encoders_with_and_without_a_graph(experiment, tmp_path, capsys):
    runs = [run for run in experiment.suite.runs if not run.retrained]
    rows = [(run.knowledge, run.encoder, run.seeds) for run in runs]
    encoders = "results/encoders/comparing-zh", "models/matching-zh-bert"
    made = [("none", 0), ("graph", 0), ("constant", 0), ("none", 1), ("graph", 1)]
    assert rows == [(of, encoders[begun], (1, 2, 3)) for of, begun in made]
    places = ["--results", str(tmp_path / "results"), "--work", str(tmp_path / "work")]
    assert cli.main(["experiment", str(SUITE), "--list", *places]) == 0
    assert "0 of 18 done" in capsys.readouterr().out
