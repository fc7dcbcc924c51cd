"""The search for what flips a prediction: how it is asked for, what it says, what it applies."""

import math
from contextlib import suppress
from dataclasses import replace

import pytest
from explaining_pages import models_in, opened, said, write
from sessions import do, session
from undecided import undecided

from app import services
from kbert_core import KnowledgeGraph, Pipeline, Triple
from kbert_core.explain.case import Case, Target
from kbert_core.knowledge.edit import Edit
from kbert_lab.explain.counterfactuals import Search, counterfactuals
from kbert_lab.lab.models import read_model
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import explaining as view
from kbert_lab.lab.views import targets as targets_view
from kbert_lab.lab.views.prediction import percent

TEXT = "患者有糖尿病史给予布洛芬口服好转"
GASTROSCOPY = "患者行胃镜检查未见异常"
GRAPH = KnowledgeGraph(
    [
        Triple("糖尿病", "类别", "疾病"),
        Triple("布洛芬", "类别", "治疗"),
        Triple("心电图", "类别", "<b>检查"),
        Triple("心电图", "部位", "心"),
    ]
)
OLD, NEW = Triple("a", "r", "b"), Triple("a", "r", "c")
SPAN = Target("疾病", 3, 6)
CHANCE = math.exp


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Tiny models that are hardly decided on the page's first text."""
    root = models_in(tmp_path_factory.mktemp("models"))
    graph = services.demo_graph("medical_zh")
    for name in ("tags-zh-kbert", "moods-zh-kbert"):
        pipeline = undecided(root / name, GASTROSCOPY, graph=graph, tokens=slice(4, 6))
        pipeline.encoder.model.save_pretrained(root / name)
    return root


@pytest.fixture(scope="module")
def info(models):
    return read_model(str(models / "tags-zh-kbert"))


@pytest.fixture(scope="module")
def found(models):
    reader = undecided(models / "tags-zh-kbert", TEXT, graph=GRAPH)
    case = Case.of(reader, TEXT, graph=GRAPH, target=SPAN)
    return counterfactuals(case, search=Search(larger_too=True, most_found=40))


def test_lines_say_what_is_edited_and_what_it_becomes(found, info):
    assert found.found
    for one in found.found:
        drawn = view.say_outcome(one, found, info, CHANCE)
        assert drawn.startswith("becomes ")
        assert drawn.endswith(" → ".join(percent(CHANCE(o.score)) for o in (one.before, one.after)))


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Edit("remove", OLD), "delete (a, r, b)"),
        (Edit("replace", OLD, NEW), "replace (a, r, b) with (a, r, c)"),
        (Edit("add", NEW, index=0), "add (a, r, c)"),
    ],
)
def test_edits_are_proposed_in_words(edit, words, found):
    assert view.say_edits(replace(found.found[0], edits=(edit,))) == words


def test_words_count_what_was_found_and_say_why_it_ended(models, found, info):
    assert f"{len(found.found)} sets of changes flip it" in view.say_found(found)
    assert f"{found.runs} runs" in view.say_end(found)
    reader = Pipeline.from_pretrained(models / "tags-zh-kbert", device="cpu")
    case = Case.of(reader, TEXT, graph=GRAPH, target=SPAN)
    none = replace(counterfactuals(case, search=Search(budget=2)), found=(), nearest=found.nearest)
    assert "The closest" in view.say_found(none)
    assert "stays" in view.say_outcome(none.nearest[0], none, info, CHANCE)
    nothing = counterfactuals(Case.of(reader, "好转", graph=GRAPH, target=Target("疾病", 0, 2)))
    assert view.say_found(nothing) == t("Nothing flips it.")


def test_targets_are_the_spans_predicted_then_mentions_without_one(models):
    reader = Pipeline.from_pretrained(models / "tags-zh-kbert", device="cpu")
    trace = reader(TEXT, graph=GRAPH)
    offered = targets_view.targets(trace)
    spans = [Target(s.label, s.start, s.end) for s in trace.prediction.spans]
    assert set(spans) <= set(offered)
    for target in set(offered) - set(spans):
        assert target.label == "O"
        assert not any(s.start < target.end and target.start < s.end for s in spans)


# The page


@pytest.fixture
def page(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    at = opened("explain.py", **{"explain.part": "flips"})
    do(at, task="classify")
    write(at, GASTROSCOPY)
    return at


def searched(at):
    at.button(key="explain.search").click().run()
    assert not at.exception, at.exception
    at.session_state["explain.search_run"][1].join(90)
    at.run()
    assert not has_stop(at)
    return at


def has_stop(at):
    return any(button.key == "explain.search.stop_run" for button in at.button)


def applying(at):
    return [button for button in at.button if (button.key or "").startswith("explain.apply")]


def test_applying_makes_the_edits_together_in_the_lab(page):
    searched(page)
    assert not session(page).history.steps
    with suppress(Exception):  # the test runs one page alone: there is no Lab to go to
        applying(page)[0].click().run()
    (step,) = session(page).history.steps
    edits = step.what.edits
    base = session(page).base
    reader = services.pipeline(session(page).model, "auto")
    labels = [
        reader(GASTROSCOPY, graph=graph).prediction.label for graph in (base, base.apply(*edits))
    ]
    assert labels[0] != labels[1]


def test_what_is_looked_for_can_be_changed_and_makes_results_stale(page):
    searched(page)
    page.session_state["explain.kinds"] = ["remove"]
    page.run()
    assert t("The scene, the prediction or the goal has changed: search again.") in said(page)
    assert not applying(page)
    page.session_state["explain.kinds"] = []
    page.run()
    assert t("Choose at least one kind of change.") in said(page)
    assert page.button(key="explain.search").disabled


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("flips", "There is no prediction to explain. In the Lab, choose a task and a model"),
        ("paths", "Nothing can be measured without a model."),
    ],
)
def test_page_without_a_model_says_what_to_do(monkeypatch, tmp_path, part, words):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    assert words in said(opened("explain.py", **{"explain.part": part}))
