"""`kbert select-train`: which triples lower a model's loss, from the command line."""

import json

import pytest

from kbert_core import InjectionOptions, cli, load_graph
from kbert_core.data.labelled import read_examples
from kbert_core.pipeline import Pipeline
from kbert_core.scoring.learned import LearnedScorer
from kbert_core.training import select_train
from kbert_core.training.evaluate import evaluate


@pytest.fixture
def model(data):
    code = cli.main(
        [
            *("train", "--task", "ner", "--data", str(data), "--output", str(data / "model")),
            *("--kg", str(data / "kg.spo"), "--epochs", "1", "--hidden-size", "64"),
            *("--layers", "2", "--learning-rate", "3e-3", "--batch-tokens", "128"),
            *("--device", "cpu", "--json"),
        ]
    )
    assert code == 0
    return data / "model"


def test_scorer_is_learned_saved_and_used(model, data, capsys):
    capsys.readouterr()
    command = [
        *("select-train", "--model", str(model), "--data", str(data), "--kg"),
        *(str(data / "kg.spo"), "--noise", "2", "--output", str(data / "scorer"), "--device"),
        *("cpu", "--json"),
    ]
    assert cli.main(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["triples"] > 0
    scorer = LearnedScorer.load(data / "scorer")
    assert scorer.encoder == "model"
    assert scorer.notes["noise"] == 2
    assert str(data) not in (data / "scorer" / "scorer.json").read_text("utf-8")
    options = InjectionOptions(1, strategy="learned", scorer=str(data / "scorer"))
    pipeline = Pipeline.load(model, device="cpu")
    graph = load_graph(data / "kg.spo")
    examples = read_examples(data / "dev.tsv", "ner")
    assert 0 <= evaluate(pipeline, examples, graph, options=options)["f1"] <= 1
    trees = pipeline.kbert.trees([example.sentences for example in examples], graph, options)
    reasons = [branch.reason for tree in trees for node in tree.nodes for branch in node.branches]
    assert reasons and all(str(reason).startswith("usefulness ") for reason in reasons)


def test_gain_is_what_the_loss_falls_by(model, data):
    pipeline = Pipeline.load(model, device="cpu")
    graph = load_graph(data / "kg.spo")
    examples = read_examples(data / "dev.tsv", "ner")[:6]
    options = InjectionOptions()
    tried = list(select_train._tried(pipeline, examples, graph, options, seed=0))
    again = list(select_train._tried(pipeline, examples, graph, options, seed=0))
    assert tried and [one.gains for one in tried] == [one.gains for one in again]
    for one in tried:
        assert len(one.gains) == len(one.places) <= select_train.MOST_TRIPLES
        assert {*one.places} <= {*range(len(one.candidates.triples))}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "No graph given"),
        (("--kg", "{kg}", "--max-texts", "0"), "max_texts is 0"),
        (("--kg", "{kg}", "--noise", "-1"), "noise is -1"),
    ],
)
def test_options_that_cannot_be_are_refused(data, capsys, given, said):
    words = [word.format(kg=data / "kg.spo") for word in given]
    command = ["select-train", "--model", "none", "--data", str(data), "--output", str(data / "s")]
    assert cli.main([*command, *words]) == 2
    assert said in capsys.readouterr().err
