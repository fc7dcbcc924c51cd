"""Labels of a text, one or several: read, learnt, predicted, scored and explained."""

import json
import random
import shutil
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support
from sklearn.preprocessing import MultiLabelBinarizer
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from kbert_core import KnowledgeGraph, Pipeline, Triple
from kbert_core.errors import DataError, OptionError, TextError
from kbert_core.explain.case import Case
from kbert_core.explain.effects import effects
from kbert_core.explain.targets import target_of
from kbert_core.labels import Labels
from kbert_core.tasks import TASKS, MultiLabel
from kbert_lab import cli
from kbert_lab.cli.corpus import schema_of
from kbert_lab.data.labelled import check_labels, labels_of, read_examples
from kbert_lab.data.sources import guess_task, read_split
from kbert_lab.data.splits import write_split
from kbert_lab.explain.counterfactuals import Search, counterfactuals
from kbert_lab.lab.texts import refusal, speaking
from kbert_lab.training.collator import KnowledgeCollator
from kbert_lab.training.scores import multilabel_scores

LABELS = ("drug", "pain", "sleep")
TASK = TASKS["multilabel"]
LEARNT = LABELS[:2]
SIGNS = {"drug": "药", "pain": "痛"}
TEXT = SimpleNamespace(sentences=("",))


def written(folder, rows, split="train", header="label\ttext_a"):
    lines = "\n".join([header, *(f"{label}\t{text}" for label, text in rows)])
    (folder / f"{split}.tsv").write_text(f"{lines}\n", encoding="utf-8")
    return folder / f"{split}.tsv"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Short notes; each has none, one or both of two labels, by its characters."""
    folder, dice = tmp_path_factory.mktemp("notes"), random.Random(0)
    for split, count in (("train", 64), ("dev", 16), ("test", 16)):
        rows = []
        for number in range(count):
            given = [label for bit, label in enumerate(LEARNT) if number >> bit & 1]
            signs = dice.sample([SIGNS[label] for label in given], len(given))
            rows.append(("|".join(given), f"{dice.choice('今昨')}{''.join(signs)}。"))
        written(folder, rows, split)
    return folder


@pytest.fixture(scope="module")
def trained(data):
    """The folder of a model that the command line trained."""
    command = ["train", "--task", "multilabel", "--data", str(data), "--output"]
    command += [str(data / "model"), "--hidden-size", "64", "--layers", "1", "--dropout", "0"]
    command += ["--learning-rate", "2e-3", "--batch-tokens", "32", "--epochs", "16"]
    assert cli.main([*command, "--device", "cpu", "--json"]) == 0
    return data / "model"


# Data


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["drug|pain", "", "sleep"], [("drug", "pain"), (), ("sleep",)]),
        (["a, b|c", "a, b"], [("a, b", "c"), ("a, b")]),
        (["1,3", "1, 2", "0"], [("1", "3"), ("1", "2"), ("0",)]),
        (
            ["头痛；失眠", "用药、头痛", "用药，失眠"],
            [("头痛", "失眠"), ("用药", "头痛"), ("用药", "失眠")],
        ),
        (["a; b;", "|a|"], None),
        (['["a, b", "c"]', "['c']", "[]"], [("a, b", "c"), ("c",), ()]),
        (["Use(e2,e1),Other", "Other"], [("Use(e2,e1)", "Other"), ("Other",)]),
    ],
)
def test_labels_of_a_cell_are_taken_apart(tmp_path, cells, labels):
    path = written(tmp_path, [(cell, f"text {n}") for n, cell in enumerate(cells)])
    found = [example.classes for example in read_examples(path, "multilabel")]
    expected = [("a; b;",), ("a",)] if labels is None else labels
    assert found == [(own,) if isinstance(own, str) else own for own in expected]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("a|b|a", "line 2: a label stands twice in 'a, b, a'"),
        ("0,1,0,0", "not a 0 or 1 for every label"),
        ("[a, b", "line 2: the labels '[a, b' are no list"),
    ],
)
def test_a_cell_that_has_no_clear_labels_is_refused(tmp_path, cell, said):
    with pytest.raises(DataError) as error:
        read_examples(written(tmp_path, [(cell, "text")]), "multilabel")
    assert said in str(error.value)
    with speaking("zh"):
        assert "标签" in refusal(error.value)


def test_lists_of_tables_are_labels_and_written_files_are_read_as_they_were(tmp_path):
    rows = [{"text": "t1", "labels": ["a, b", "c"]}, {"text": "t2", "labels": []}]
    lines = "\n".join(map(json.dumps, rows))
    (tmp_path / "train.jsonl").write_text(lines, encoding="utf-8")
    examples = read_split(str(tmp_path), "train", "multilabel")
    assert [example.classes for example in examples] == [("a, b", "c"), ()]
    assert labels_of(examples) == ["a, b", "c"]
    assert guess_task(tmp_path) == "multilabel"
    write_split(tmp_path / "again", {"train": examples})
    assert read_split(str(tmp_path / "again"), "train", "multilabel") == examples
    with pytest.raises(DataError, match="'c' is not among those of the model"):
        check_labels(examples, ["a, b"], "the model")


@pytest.mark.parametrize(
    ("labels", "several"),
    [
        (["0", "1,2", "1,3"], True),
        (["a|b", "b"], True),
        (["food, drink", "sport"], False),
        (["Use(e1,e2)", "Use(e2,e1)", "Part(e1,e2)"], False),
    ],
)
def test_several_labels_read_as_one_class_are_told(tmp_path, caplog, labels, several):
    path = written(tmp_path, [(label, f"text {label}") for label in labels])
    read_examples(path, "classify")
    assert ("looks like several of one text" in caplog.text) == several
    assert guess_task(path) == ("multilabel" if several else "classify")


# The task


def test_loss_is_that_of_transformers_and_a_trainer_gets_it(checkpoints):
    names = {
        "id2label": dict(enumerate(LABELS)),
        "label2id": {la: n for n, la in enumerate(LABELS)},
    }
    model = AutoModelForSequenceClassification.from_pretrained(checkpoints["encoder"], **names)
    tokenizer = AutoTokenizer.from_pretrained(checkpoints["encoder"])
    collate = KnowledgeCollator(model, tokenizer, task="multilabel")
    rows = [{"text": "患者头痛", "labels": ["pain", "drug"]}, {"text": "无", "labels": []}]
    batch = collate(rows)
    assert batch["labels"].tolist() == [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    output = model(**batch)
    own = TASK.loss(output.logits, batch["labels"].long()) / batch["labels"].numel()
    torch.testing.assert_close(own, output.loss)


def test_a_hugging_face_folder_of_this_kind_is_read_so(checkpoints, tmp_path):
    folder = shutil.copytree(checkpoints["classify"], tmp_path / "model")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    del config["kbert"]
    config["problem_type"] = "multi_label_classification"
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    pipeline = Pipeline.from_pretrained(folder, device="cpu")
    trace = pipeline("患者头痛")
    assert pipeline.card.task == "multilabel"
    assert [*trace.prediction.probabilities.values()] == pytest.approx(
        trace.logits.sigmoid()[0].tolist()
    )


def test_labels_as_probable_as_the_threshold_are_given():
    labels, logits = Labels(enumerate(LABELS)), torch.tensor([0.0, -3.0, 2.0])
    prediction = TASK.decode(TEXT, logits, labels)
    assert (prediction.labels, prediction.label) == (("drug", "sleep"), "sleep")
    assert prediction.probabilities == pytest.approx(
        {"drug": 0.5, "pain": 0.0474, "sleep": 0.8808}, abs=1e-4
    )
    assert MultiLabel(0.9).decode(TEXT, logits, labels).labels == ()
    with pytest.raises(OptionError, match=r"is 1\.5, expected a probability"):
        MultiLabel(1.5)


# A training, and what follows


SOME = st.frozensets(st.sampled_from("abc")).map(sorted).map(tuple)


@given(st.lists(st.tuples(SOME, SOME), min_size=1))
def test_scores_are_those_of_scikit_learn(pairs):
    gold, predicted = zip(("ab", "ba"), *pairs, strict=True)  # two labels at least, as sklearn asks
    scores = multilabel_scores(gold, predicted)
    binary = MultiLabelBinarizer().fit([*gold, *predicted])
    columns = [binary.transform(side) for side in (gold, predicted)]
    assert [*scores["by_label"]] == [*binary.classes_]
    assert scores["subset_accuracy"] == pytest.approx(accuracy_score(*columns))
    for average, ours in (("micro", [scores]), (None, scores["by_label"].values())):
        theirs = precision_recall_fscore_support(*columns, average=average, zero_division=0.0)
        for score, values in zip(("precision", "recall", "f1"), theirs, strict=False):
            assert [one[score] for one in ours] == pytest.approx(np.atleast_1d(values).tolist())
    macro = f1_score(*columns, average="macro", zero_division=0.0)
    assert scores["macro_f1"] == pytest.approx(macro)


def test_training_learns_the_labels_and_the_model_is_one_of_transformers(trained):
    config = json.loads((trained / "config.json").read_text(encoding="utf-8"))
    assert config["problem_type"] == "multi_label_classification"
    scores = config["kbert"]["notes"]["scores"]["test"]
    assert scores["f1"] > 0.9
    assert scores["subset_accuracy"] > 0.8
    assert "subset_accuracy" in (trained / "README.md").read_text(encoding="utf-8")
    pipeline = Pipeline.from_pretrained(trained, device="cpu")
    assert pipeline("今痛药。").prediction.labels == LEARNT
    pipeline.task = MultiLabel(0.0)
    assert pipeline("今。").prediction.labels == LEARNT


@pytest.mark.parametrize(
    ("options", "given"), [((), ["pain"]), (("--label-threshold", "0"), [*LEARNT])]
)
def test_the_command_line_predicts(trained, tmp_path, kbert, options, given):
    model = ("--model", str(trained), *options)
    found = kbert("predict", "今痛。", *model, "--json")["prediction"]
    assert found["labels"] == given
    assert list(found["probabilities"]) == [*LEARNT]
    assert kbert("predict", "今痛。", *model).out.count("→") == len(given)


def test_a_corpus_gets_lists_of_labels():
    prediction = TASK.decode(TEXT, torch.tensor([1.0, -1.0, 1.0]), Labels(enumerate(LABELS)))
    schema = schema_of("multilabel", sentences=1, compare=False, gate=False)
    (read,) = pa.Table.from_pylist([prediction.as_dict()], schema).to_pylist()
    assert read["labels"] == ["drug", "sleep"]
    assert dict(read["probabilities"])["pain"] == pytest.approx(0.2689, abs=1e-4)


def test_evaluate_and_audit_take_such_data(trained, data, tmp_path, kbert):
    arguments = ("evaluate", "--model", str(trained), "--data", str(data))
    scores = kbert(*arguments, "--json")["scores"]
    assert scores["count"] == 16
    assert scores["by_label"]["pain"]["gold"] == 8
    assert "subset accuracy" in kbert(*arguments).out
    (tmp_path / "kg.spo").write_text("痛\t类别\t症状\n", encoding="utf-8")
    audit = kbert("audit", "--data", data, "--kg", tmp_path / "kg.spo", "--json")
    assert (audit["task"], audit["splits"]["train"]["labels"]["pain"]) == ("multilabel", 32)
    assert audit["splits"]["test"]["majority"] is None


def test_a_threshold_is_for_models_of_this_task_alone(checkpoints, kbert):
    model = ("--model", str(checkpoints["classify"]), "--device", "cpu")
    said = kbert("predict", "头痛", *model, "--label-threshold", "0.3", code=2).err
    assert "--label-threshold is for models of the task 'multilabel'" in said


def test_a_label_is_explained_and_what_flips_it_is_found(trained):
    pipeline = Pipeline.from_pretrained(trained, device="cpu").read_as("plain-text")
    graph = KnowledgeGraph([Triple("今", "今", "药")])
    case = Case.of(pipeline, "今痛。", graph=graph)
    assert case.base.prediction.labels == LEARNT
    target = target_of(case.base.prediction, label="drug")
    about = Case.of(pipeline, "今痛。", graph=graph, target=target)
    outcome = about.base.outcome
    assert outcome.answer == "drug"
    assert outcome.score == pytest.approx(float(about.trace.logits_on_text()[0]), abs=1e-4)
    (effect,) = effects(about).each
    assert (effect.without.answer, effect.flips) == ("not drug", True)
    found = counterfactuals(about, Search(budget=60)).found
    assert {one.after.answer for one in found} == {"not drug"}
    with pytest.raises(TextError, match="has the label 'pain' already"):
        counterfactuals(about, Search(to="pain"))


def test_likeliest_class_is_the_label():
    labels = Labels({0: "bad", 1: "fair", 2: "good"})
    text = SimpleNamespace(sentences=("",))
    prediction = TASKS["classify"].decode(text, torch.tensor([0.0, 2.0, 1.0]), labels)
    assert prediction.label == "fair"
    assert list(prediction.probabilities) == ["bad", "fair", "good"]
    assert sum(prediction.probabilities.values()) == pytest.approx(1, abs=1e-6)
