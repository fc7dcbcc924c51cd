"""`kbert explain`, run as a user types it."""

import json
from typing import get_args

import pytest
from explaining import GRAPH, TEXT
from tagged_texts import row, tagged

from kbert_core import read_triples
from kbert_lab.cli.explain import Kind
from kbert_lab.explain import counterfactuals

SPAN = ("--target", "疾病", "--span", "3:6")


def test_effects_are_printed_the_largest_first(explain):
    said = explain("effects", TEXT, *SPAN).out
    assert "explained: 疾病 [3, 6), in nats; 5 readings" in said
    values = [line.split()[0].replace("−", "-") for line in said.splitlines() if " · " in line]
    sizes = [abs(float(value)) for value in values]
    assert len(sizes) == 3 and sizes == sorted(sizes, reverse=True)


TRIPLE = "糖尿病 · 类别 · 疾病"


@pytest.mark.parametrize(
    ("command", "key", "printed"),
    [
        ("effects", "effects", TRIPLE),
        ("interactions", "interactions", "positive: together they raise the score by more"),
        ("shapley", "values", TRIPLE),
        ("attention", "pieces", TRIPLE),
        ("counterfactuals", "nearest", "edits"),
        ("influence", "triples", TRIPLE),
        ("noise", "points", "everything visible"),
        ("compare", "readings", "K-BERT          hard positions"),
    ],
)
def test_every_explanation_is_printed_as_json_and_as_text(explain, command, key, printed, tmp_path):
    asked, picture = (command, TEXT, *SPAN), tmp_path / "it.png"
    data = json.loads(explain(*asked, "--json", "--picture", picture).out)
    assert data["text"] == [TEXT]
    if command in ("effects", "interactions", "shapley", "attention"):
        assert len(data[key]) == 3
        assert data["target"] == {"label": "疾病", "start": 3, "end": 6}
    assert data[key]
    assert picture.read_bytes().startswith(b"\x89PNG")
    said = explain(*asked).out
    assert TEXT in said and printed in said


def test_every_token_is_printed_with_its_share_and_its_triple(explain):
    asked = ("attributions", TEXT, *SPAN)
    data = json.loads(explain(*asked, "--json").out)
    assert "".join(own["token"] for own in data["tokens"] if not own["triple"]) == TEXT
    tails = {own["triple"]["tail"] for own in data["tokens"] if own["triple"]}
    assert tails == {"疾病", "多饮", "治疗"}
    total = sum(own["share"] for own in data["tokens"]) + data["remainder"]
    assert total == pytest.approx(data["score"] - data["masked"])
    few = json.loads(explain(*asked, "--steps", 2, "--json").out)
    assert abs(few["remainder"]) > abs(data["remainder"])
    assert "all masked" in explain(*asked).out


def test_options_of_reading_count(explain):
    asked = ("effects", TEXT, *SPAN, "--json")
    one = json.loads(explain(*asked, "--max-triples", 1).out)
    assert [e["triple"]["tail"] for e in one["effects"]] == ["疾病", "治疗"]
    assert one["effects"][0]["moved_up"][0]["tail"] == "多饮"
    hard = json.loads(explain(*asked, "--positions", "hard").out)
    assert hard["base"]["score"] != one["base"]["score"]


def test_orders_and_seed_are_those_given(explain):
    asked = ("shapley", TEXT, "--span", "3:6", "--no-exact", "--json")
    data = json.loads(explain(*asked, "--orders", 4, "--seed", 7).out)
    assert (data["orders"], data["seed"], data["exact"]) == (4, 7, False)
    assert "\norders: 4\nseed: 7\n" in explain(*asked[:-1], "--orders", 4, "--seed", 7).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["effects"], "No text given"),
        (["effects", TEXT, "--span", "6:3"], "The span is '6:3'"),
        (["effects", TEXT, "--span", "x"], "The span is 'x'"),
        (["effects", TEXT, *SPAN, "--picture", "a.bmp"], "must end in .png, .svg or .pdf"),
        (["effects", TEXT, *SPAN, "--picture", "/no/such/a.png"], "can't be written"),
        (["effects", TEXT, "--target", "Q", "--span", "3:6"], "has no label 'B-Q'"),
    ],
)
def test_what_cannot_be_explained_is_said(explain, arguments, said):
    assert said in explain(*arguments, code=2).err
    assert "without a task head" in explain("effects", TEXT, code=2, model="encoder").err


@pytest.fixture
def data(tmp_path):
    """A folder with dev and test."""
    folder = tmp_path / "data"
    folder.mkdir()
    texts = [
        tagged(TEXT, ("糖尿病", "疾病")),
        tagged("患者好转"),
        tagged("布洛芬", ("布洛芬", "治疗")),
    ]
    for split, some in (("dev", texts), ("test", texts[:2])):
        lines = "".join(row(text) + "\n" for text in some)
        (folder / f"{split}.tsv").write_text("text_a\tlabel\n" + lines, encoding="utf-8")
    return folder


def test_a_file_is_read_with_the_graph_and_without(explain, data):
    said = explain("file", "--data", data).out
    assert said.startswith("texts: 3\ngraph: three\ntexts with a triple of it: 2\n")
    assert "with the graph minus without a graph" in said
    assert "类别       2     0  0.0 to 65.8       0  0.0 to 65.8  " in said  # Wilson, of two texts
    found = json.loads(explain("file", "--data", data, "--json").out)
    assert (found["texts"], found["of"], found["with_knowledge"]) == (3, 3, 2)
    assert {group["name"] for group in found["groups"]["entity"]} == {"糖尿病", "布洛芬"}


@pytest.mark.parametrize("rule", ["counts", "leave-one-out"])
def test_a_graph_is_pruned(explain, data, rule, tmp_path):
    output = tmp_path / "pruned.spo"
    asked = ("file", "--data", data, "--prune", rule, "--output", output)
    found = json.loads(explain(*asked, "--json").out)
    gone = {(r["name"]) for r in found["pruned"]["removed"]}
    left = [f"{t.head} · {t.relation} · {t.tail}" for t in read_triples(output).triples]
    assert gone | set(left) == {f"{t.head} · {t.relation} · {t.tail}" for t in GRAPH}
    assert not gone & set(left)
    assert found["pruned"]["triples_left"] == len(left)
    said = explain(*asked[:-2], "--picture", tmp_path / "p.svg").out
    assert "pruned: every triple that hurt more texts" in said


def test_a_file_that_cannot_be_read_is_said(explain, data):
    asked = ("file", "--data", data)
    assert "no train.tsv" in explain(*asked, "--split", "train", code=2).err
    assert "there is no --prune" in explain(*asked, "--output", "pruned.spo", code=2).err


def test_kinds_of_changes_are_those_of_the_search():
    assert get_args(Kind) == counterfactuals.KINDS


def test_options_of_a_search_count(explain):
    asked = ("counterfactuals", TEXT, *SPAN, "--json")
    data = json.loads(explain(*asked, "--budget", 9, "--kinds", "remove", "--most-edits", 2).out)
    assert data["runs"] <= 9
    assert {e["action"] for one in data["nearest"] for e in one["edits"]} == {"remove"}
    assert "budget is 0" in explain(*asked, "--budget", 0, code=2).err
    assert "no label" in explain(*asked, "--to", "Q", code=2).err


def test_influence_is_of_the_token_asked_for(explain):
    said = explain("influence", TEXT, "--token", 4).out
    assert "token 4, “糖”" in said
    assert "after 3" in said
    assert "There is no token 99" in explain("influence", TEXT, "--token", 99, code=2).err
    encoder = json.loads(explain("influence", TEXT, "--json", model="encoder").out)
    assert [triple["first_layer"][0] for triple in encoder["triples"]] == [2, 2, 2]


def test_compare_says_why_two_readings_are_equal(explain):
    said = explain("compare", "好转", "--target", "疾病", "--span", "0:2").out
    assert said.count("no triple stands in the text") == 6
    assert "largest difference 0e+00" in said


def test_compare_puts_other_models_beside(explain, checkpoints):
    asked = ("compare", TEXT, *SPAN, "--beside", checkpoints["classify"])
    bert, own, other = json.loads(explain(*asked, "--json").out)["readings"]
    assert (bert["triples"], own["triples"]) == (0, 3)
    assert other["name"] == str(checkpoints["classify"])
    assert own["score"] is not None and other["score"] is None  # it has no such label
    assert str(checkpoints["classify"]) in explain(*asked).out
