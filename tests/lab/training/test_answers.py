"""Reading comprehension from a file to scores: for every system, and on the command line."""

import json

import pytest

from kbert_core import Pipeline
from kbert_core.explain.case import Case, target_of
from kbert_core.explain.effects import stream_effects
from kbert_core.knowledge import load_graph
from kbert_lab import cli
from kbert_lab.data.squad import read_comprehension
from kbert_lab.explain.counterfactuals import Search, counterfactuals
from kbert_lab.training.count_scores import (
    answer_columns,
    scores_of_answers,
    word_f1,
    words_of,
)
from kbert_lab.training.evaluate import evaluate
from kbert_lab.training.finetune import train
from kbert_lab.training.options import TrainOptions

NAMES = {"疾病": ["糖尿病", "肺炎", "胃炎", "肝炎"], "检查": ["心电图", "血常规", "彩超", "胸片"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1988年", ["1988", "年"]),
        ("《Red  Rose》，", ["red", "rose"]),
        ("ＡＢＣ公司的iPhone4。", ["abc", "公", "司", "的", "iphone4"]),
        ("北 京、天津", ["北", "京", "天", "津"]),
        ("a_b", ["a", "b"]),
        ("％", ["%"]),
        ("", []),
    ],
)
def test_answers_are_compared_by_words_of_latin_and_characters_of_chinese(text, words):
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("predicted", "gold", "f1"),
    [
        ("北京市", "北京", 2 * 2 / 5),
        ("北京", "北京。", 1),
        ("上海", "北京", 0),
        ("在1988年", "1988年5月", 2 * 2 / (3 + 4)),
        ("人人人", "人人", 4 / 5),
        ("the Red Rose", "red rose", 4 / 5),
        ("", "", 0),
    ],
)
def test_f1_of_an_answer_is_that_of_a_hand_computation(predicted, gold, f1):
    assert word_f1(predicted, gold) == pytest.approx(f1)


def test_scores_are_means_over_the_questions():
    columns = {"exact": [1, 0], "f1": [1, 0.5], "read": [1, 0], "count": [1, 1]}
    assert scores_of_answers(columns) == {"f1": 0.75, "exact": 0.5, "read": 0.5, "count": 2}


@pytest.fixture
def folder(tmp_path):
    """Questions after the disease and the test of a sentence, and the graph of both."""
    paragraphs = []
    for number in range(12):
        disease, test = (NAMES[kind][number % 4] for kind in NAMES)
        context = f"患者有{disease}，今查{test}。"
        asked = [(disease, "什么病？"), (test, "查什么？")]
        questions = [
            {
                "id": f"Q{number}.{n}",
                "question": question,
                "answers": [{"text": answer, "answer_start": context.index(answer)}],
            }
            for n, (answer, question) in enumerate(asked)
        ]
        paragraphs.append({"context": context, "qas": questions})
    for split in ("train", "dev", "test"):
        data = {"data": [{"paragraphs": paragraphs}]}
        (tmp_path / f"{split}.json").write_text(json.dumps(data), encoding="utf-8")
    lines = [f"{name}\t类别\t{kind}" for kind, names in NAMES.items() for name in names]
    (tmp_path / "kg.spo").write_text("\n".join(lines) + "\n")
    return tmp_path


def trained(folder, **options):
    given = {"data": str(folder), "kg": (str(folder / "kg.spo"),), "epochs": 1, "device": "cpu"}
    size = {} if "encoder" in options else {"hidden_size": 64, "num_hidden_layers": 2}
    options = {**given, **size, "task": "qa", "output": str(folder / "model"), **options}
    return train(TrainOptions.of(**options))


@pytest.mark.parametrize("system", ["k-bert", "plain-text", "knowbert"])
def test_every_system_trains_and_is_scored_alike(folder, checkpoints, system):
    encoder = {"encoder": str(checkpoints["encoder"])} if system == "knowbert" else {}
    report = trained(folder, system=system, **encoder)
    scores = report["scores"]["test"]
    assert set(scores) == {"f1", "exact", "read", "count"}
    assert (scores["count"], scores["read"]) == (24, 1)
    pipeline, graph = Pipeline.from_pretrained(folder / "model"), load_graph(folder / "kg.spo")
    examples = read_comprehension(folder / "test.json")
    assert evaluate(pipeline, examples, graph) == pytest.approx(scores, abs=0.05)  # half precision
    assert "| f1 | exact |" in (folder / "model" / "README.md").read_text()


def test_the_task_is_learnt(folder):
    report = trained(folder, epochs=12, batch_tokens=40, hidden_size=128, learning_rate=2e-3)
    assert report["scores"]["test"]["exact"] > 0.9


def test_answers_cut_off_or_not_given_are_not_found(folder):
    trained(folder, windows=False, max_length=12)
    pipeline, examples = (
        Pipeline.from_pretrained(folder / "model"),
        read_comprehension(folder / "test.json"),
    )
    assert pipeline.config.windows is False
    columns = answer_columns(pipeline, examples, load_graph(folder / "kg.spo"))
    assert columns["read"][:2] == [0.0, 0.0]
    assert all(len(row) <= 12 for row in pipeline.readings([examples[0].sentences])[0].rows)


def test_questions_are_answered_on_the_command_line(folder, capsys):
    trained(folder)
    model = ["--model", str(folder / "model"), "--kg", str(folder / "kg.spo"), "--device", "cpu"]
    paragraph = "患者有肺炎，今查彩超。"
    assert cli.main(["predict", paragraph, "--question", "什么病？", "--json", *model]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["text"] == ["什么病？", paragraph]
    assert len(data["prediction"]["answers"]) == 5
    best = data["prediction"]["answers"][0]
    assert paragraph[best["start"] : best["end"]] == best["text"]
    assert cli.main(["predict", "什么病？", paragraph, "--json", *model]) == 0
    assert json.loads(capsys.readouterr().out) == data
    assert cli.main(["predict", paragraph, "--question", "什么病？", *model]) == 0
    assert f" {best['text']} " in capsys.readouterr().out
    assert cli.main(["predict", "--file", str(folder / "dev.json"), *model]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 24
    assert lines[0]["text"] == ["什么病？", "患者有糖尿病，今查心电图。"]
    (folder / "pairs.tsv").write_text(f"什么病？\t{paragraph}\n")
    assert cli.main(["predict", "--file", str(folder / "pairs.tsv"), "--pair", *model]) == 0
    assert json.loads(capsys.readouterr().out) == data
    assert cli.main(["evaluate", "--data", str(folder), *model]) == 0
    assert "exact" in capsys.readouterr().out
    assert cli.main(["rank", "什么病？", "肺炎", *model]) == 2
    assert "for the task 'qa', and ranking needs" in capsys.readouterr().err
    effects = ["explain", "effects", paragraph, "--question", "什么病？", "--json", *model]
    assert cli.main(effects) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["target"]["label"] == best["text"]


def test_effects_are_on_the_log_probability_of_the_answer(folder):
    trained(folder)
    pipeline, graph = Pipeline.from_pretrained(folder / "model"), load_graph(folder / "kg.spo")
    case = Case.of(pipeline, "什么病？", "患者有肺炎，今查彩超。", graph=graph)
    best = case.trace.prediction.answers[0]
    score = case.base.score
    assert case.target.probability(score, pipeline.labels) == pytest.approx(best.probability)
    *_, effects = stream_effects(case)
    assert len(effects.each) == 2
    without = case.without(case.pieces[:1])
    (scored,) = case.run([without])
    assert effects.each[0].effect == pytest.approx(score - scored.score, abs=1e-5)
    other = target_of(case.trace.prediction, case.reading, label="彩超")
    assert (other.start, other.end, other.label) == (8, 10, "彩超")
    to = "彩超" if best.text != "彩超" else "肺炎"
    search = counterfactuals(case, Search(to=to, budget=20))
    assert search.target.label == to


def test_a_suite_of_the_task_runs_with_every_system(folder, checkpoints, capsys):
    systems = {"k-bert": "graph", "plain-text": "graph", "knowbert": "graph", "none": "none"}
    runs = [
        {
            "name": name,
            "knowledge": knowledge,
            **({} if knowledge == "none" else {"train": {"epochs": 1, "system": name}}),
        }
        for name, knowledge in systems.items()
    ]
    suite = {
        "task": "qa",
        "data": {"folder": str(folder)},
        "kg": [str(folder / "kg.spo")],
        "encoder": str(checkpoints["encoder"]),
        "train": {"epochs": 1},
        "seeds": [1],
        "compare_with": "none",
        "runs": runs,
    }
    (folder / "answers.yaml").write_text(json.dumps(suite))
    places = ["--results", str(folder / "results"), "--work", str(folder / "work")]
    places += ["--device", "cpu"]
    assert cli.main(["experiment", str(folder / "answers.yaml"), *places]) == 0
    shown = capsys.readouterr().out
    assert "exact match" in shown
    assert all(name in shown for name in systems)
