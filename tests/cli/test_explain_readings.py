"""`kbert explain counterfactuals`, `influence`, `noise` and `compare`, run as a user types them."""

import json
from typing import get_args

import pytest
from explaining import TEXT

from kbert_lab.cli.explain import Kind
from kbert_lab.explain import counterfactuals

SPAN = ("--target", "疾病", "--span", "3:6")


def test_kinds_of_changes_are_those_of_the_search():
    assert get_args(Kind) == counterfactuals.KINDS


@pytest.mark.parametrize(
    ("command", "key", "said"),
    [
        ("counterfactuals", "nearest", "edits"),
        ("influence", "triples", "糖尿病 · 类别 · 疾病"),
        ("noise", "points", "everything visible"),
        ("compare", "readings", "K-BERT          hard positions"),
    ],
)
def test_every_explanation_is_printed_as_json_and_as_text(explain, command, key, said, tmp_path):
    picture = tmp_path / "it.png"
    data = json.loads(explain(command, TEXT, *SPAN, "--json", "--picture", picture).out)
    assert data["text"] == [TEXT]
    assert data[key]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert said in explain(command, TEXT, *SPAN).out


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


def test_noise_is_drawn_from_the_graph_named(explain, tmp_path):
    (tmp_path / "other.spo").write_text("x\t好\t史\n", encoding="utf-8")
    asked = ("noise", TEXT, *SPAN, "--json", "--counts", 0, 3, "--seeds", 1)
    data = json.loads(explain(*asked, "--noise-from", tmp_path / "other.spo").out)
    assert [point["injected"] for point in data["points"]] == [0] * 3 + [2] * 3


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
