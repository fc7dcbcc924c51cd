"""Ranking candidate answers: from Python and from the command line."""

import json

import pytest
from conftest import save_checkpoint
from transformers import AutoModelForSequenceClassification

from kbert_core import Card, KnowledgeGraph, Pipeline, Triple
from kbert_core.errors import CheckpointError
from kbert_core.labels import order
from kbert_core.tasks.classify import ClassPrediction, ranked
from kbert_lab import cli

ANSWERS = ["tim cook", "a city", "cats", "apple"]


@pytest.fixture(scope="module")
def ranker(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rank")
    labels = {"id2label": {0: "0", 1: "1"}, "label2id": {"0": 0, "1": 1}}
    return save_checkpoint(folder, AutoModelForSequenceClassification, Card("rank"), **labels)


def test_candidates_are_ordered_by_probability_and_equal_ones_as_they_came():
    assert order([0.1, 0.5, 0.5, 0.9, 0.5]) == [3, 1, 2, 4, 0]
    chances = {"a": 0.2, "b": 0.7, "c": 0.2}
    found = ranked(list(chances), [ClassPrediction("", {"1": p}) for p in chances.values()])
    assert [(a.rank, a.number, a.answer, a.probability) for a in found] == [
        (1, 1, "b", 0.7),
        (2, 0, "a", 0.2),
        (3, 2, "c", 0.2),
    ]


def test_a_pipeline_ranks_as_it_predicts_each_candidate_by_itself(ranker):
    pipeline = Pipeline.load(ranker, device="cpu")
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
        Pipeline.load(checkpoints["classify"], device="cpu").rank("a", ["b"])
    with pytest.raises(CheckpointError, match=r"labels LABEL_0, LABEL_1.*one named 1"):
        Pipeline.load(checkpoints["pair"], device="cpu").rank("a", ["b"])


def test_the_command_ranks_candidates_given_and_from_a_file(ranker, tmp_path, capsys):
    (tmp_path / "more.txt").write_text("cats\n\napple\n", encoding="utf-8")
    given = ["rank", "tim", "tim cook", "a city", "--candidates", str(tmp_path / "more.txt")]
    assert cli.main([*given, "--model", str(ranker), "--compare", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [a["rank"] for a in found["answers"]] == [1, 2, 3, 4]
    assert sorted(a["number"] for a in found["answers"]) == [0, 1, 2, 3]
    assert {a["answer"] for a in found["answers"]} == set(ANSWERS)
    assert found["without_knowledge"] == found["answers"]  # no graph is given
    assert cli.main([*given, "--model", str(ranker)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "question: tim"
    assert [line.split()[0] for line in lines[3:]] == ["1", "2", "3", "4"]


def test_the_command_says_what_is_cut_and_what_is_missing(ranker, tmp_path, capsys, caplog):
    given = ["rank", "tim", "a", "cat " * 100, "--model", str(ranker)]
    assert cli.main(given) == 0
    assert "1 of 2 candidates are longer than the length limit and were cut" in caplog.text
    assert cli.main(["rank", "tim", "--model", str(ranker)]) == 2
    assert "No candidate answer given" in capsys.readouterr().err
    missing = str(tmp_path / "nowhere")
    assert cli.main(["rank", "tim", "--candidates", missing, "--model", str(ranker)]) == 2
    assert "nowhere: can't be read" in capsys.readouterr().err
    given = ["rank", "tim", "--candidates", str(tmp_path / "c.txt"), "--model", str(ranker)]
    (tmp_path / "c.txt").write_text('["a", "b"]')
    assert cli.main(given) == 2
    assert 'found JSON, \'["a", "b"]\', expected plain text' in capsys.readouterr().err
    (tmp_path / "c.txt").write_bytes("苹果\n".encode("gb18030"))
    assert cli.main([*given, "--encoding", "gb18030"]) == 0
    assert "苹果" in capsys.readouterr().out


def test_predict_takes_a_question_with_one_candidate(ranker, capsys):
    assert cli.main(["predict", "tim", "apple", "--model", str(ranker), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["prediction"]
    assert set(found["probabilities"]) == {"0", "1"}
    assert cli.main(["predict", "tim", "--model", str(ranker)]) == 2
    assert "Answer selection takes two sentences, got 1" in capsys.readouterr().err
