"""Readings side by side: systems and parts, on one scale, and why two of them are equal."""

import re
from dataclasses import replace

import pytest
from explaining_pages import FIGURE_2, choose, drawn, models_in, opened, said, tagger, write
from roof_taggers import tagger as roof_tagger
from sessions import do, edit, read_by
from tiny_knowbert import SENSES, TEST, knowbert_in
from tiny_knowbert import TEXT as SENSE_TEXT

from app import explained
from app.app_pages import lab_columns
from kbert_core import Ablation, KnowledgeGraph, Pipeline, Triple
from kbert_core.explain.case import Case, Target
from kbert_core.kbert.interventions import PRESETS
from kbert_core.knowledge.edit import Edit
from kbert_lab.explain.compare import ablations_of, compare
from kbert_lab.lab.commands import ChangePanel, ChoosePanels, Intervene, Show
from kbert_lab.lab.comparing import Panel
from kbert_lab.lab.scene import GraphRef, Scene
from kbert_lab.lab.selection import Selection, code_of
from kbert_lab.lab.views import sides
from kbert_lab.lab.views.matrix import BLOCKED, LINK

TEXT = "患者有糖尿病史给予布洛芬口服好转"
IS_DISEASE = Triple("糖尿病", "类别", "疾病")
GRAPH = KnowledgeGraph([IS_DISEASE, Triple("布洛芬", "类别", "治疗")])
SPAN = Target("疾病", 3, 6)
NOW = Scene((TEXT,), "models/one", GraphRef("f", "kg"), ablation=Ablation("hard", "all"))
NAMES = {"BERT": "BERT", "K-BERT": "K-BERT", "hard positions": "H", "everything visible": "A"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    root = models_in(tmp_path_factory.mktemp("models"))
    tagger(root / "tags-zh-bert", num_hidden_layers=2, num_attention_heads=2)
    return root


@pytest.fixture(scope="module")
def case(models):
    reader = Pipeline.from_pretrained(models / "tags-zh-kbert", device="cpu")
    return Case.of(reader, TEXT, graph=GRAPH, target=SPAN)


# What stands side by side


def test_panels_are_named_and_what_is_unusual_is_said():
    panels = [Panel("bert", NOW), Panel("", NOW)]
    assert sides.names_of(panels) == ["BERT", "Panel 2"]
    assert sides.about(NOW, "", 3) == "3 triples, hard positions, everything visible"
    none = replace(NOW, ablation=Ablation(segments="none"))
    assert sides.about(none, "", 1) == "1 triple, no segments"
    assert sides.about(NOW.without_knowledge(), "one", 0) == "one, no graph"


# Why two are equal


def test_equal_panels_are_named_together_with_the_reason_and_what_was_measured(case):
    bare = Case.of(case.pipeline, "好转", graph=GRAPH, target=Target("疾病", 0, 2))
    words = sides.say_equal(compare(ablations_of(bare), of=bare), NAMES)
    assert words.startswith("BERT, K-BERT, H, A are equal: no triple of the graph stands in this")
    assert words.count("are equal") == 1
    assert words.endswith("the largest difference of any number in the last layer is 0.")
    assert sides.say_equal(compare(ablations_of(case), of=case), NAMES) == ""


def test_panels_equal_for_different_reasons_are_told_apart(case):
    made = compare({"1": case, "2": case.reading, "3": case.without_knowledge()}, of=case)
    words = sides.say_equal(made, {"1": "one", "2": "two", "3": "three"})
    assert words.startswith("one, two are equal: the same triples hang at the same mentions")
    assert "three" not in words


def test_states_are_compared_and_not_kept(case, monkeypatch):
    monkeypatch.setattr(explained, "case_of", lambda scene, graph, target: scene)
    other = Case.of(case.pipeline, TEXT, graph=KnowledgeGraph(), target=SPAN)
    made = explained.compared.__wrapped__([case, other], [GRAPH, KnowledgeGraph()], SPAN)
    whole = compare({"0": case, "1": other}, target=SPAN)
    assert made.pairs == whole.pairs
    assert made.pairs[0].largest > 0
    assert [side.states for side in made.sides] == [(), ()]
    assert all(side.states for side in whole.sides)


# One drawing for all systems


@pytest.fixture(scope="module")
def readers(checkpoints, tmp_path_factory):
    """One text and graph, as each system reads it: with the graph, and with a triple less."""
    folder = str(checkpoints["ner"])
    beside = roof_tagger(checkpoints["encoder"])
    linker = knowbert_in(tmp_path_factory.mktemp("linker"), checkpoints)
    kbert = Pipeline.from_pretrained(folder, device="cpu")
    systems = {"k-bert": kbert, "plain-text": kbert.read_as("plain-text"), "roof-bert": beside}
    less = GRAPH.switch_off(IS_DISEASE)
    read = {name: [own(TEXT, graph=g) for g in (GRAPH, less)] for name, own in systems.items()}
    less = SENSES.switch_off(TEST)
    read["knowbert"] = [linker(SENSE_TEXT, graph=g) for g in (SENSES, less)]
    return read


@pytest.mark.parametrize("system", ["k-bert", "plain-text", "roof-bert", "knowbert"])
def test_every_system_draws_text_and_triples_and_strikes_out_what_is_gone(readers, system):
    now, less = readers[system]
    gone = TEST if system == "knowbert" else IS_DISEASE
    view = sides.flow_view(less, 0, now)
    assert [b.triple for b in view.branches if b.status == "removed"] == [gone]
    assert {b.status for b in sides.flow_view(now, 0, less).branches} >= {"added"}
    text = "".join(token.text for node in view.nodes for token in node.tokens if not token.special)
    assert text == less.reading.sentences[0]
    if system != "k-bert":
        named = [token.name for node in view.nodes for token in node.tokens]
        assert named == [code_of(name) for name in sides.identities(less)]
    assert sides.system_of(now) == system
    assert sides.enters(now).split()[0] in ("K-BERT", "The", "Roof-BERT", "KnowBert")


def test_what_a_text_alone_costs_is_nothing(case):
    assert sides.enters(replace(case.trace, reading=case.without_knowledge())) == (
        "The text alone, without a graph."
    )
    assert "8 more tokens" in sides.enters(case.trace)


# The page


@pytest.fixture
def page(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    at = opened("lab.py")
    read_by(at, models / "tags-zh-kbert")
    return write(at, "患者行胃镜检查未见异常")


def preset(at, name):
    do(at, compare=name)
    at.run()
    assert not at.exception, at.exception
    return at


def titles(at):
    """What the columns are called."""
    return re.findall(r'class="kb-column"><b>([^<]*)</b>', drawn(at))


def test_page_says_why_columns_are_equal(page):
    write(preset(page, "parts"), "好转")
    assert "BERT, K-BERT, Hard positions, Everything visible are equal" in said(page)
    assert "the largest difference of any number in the last layer is 0" in said(page)


def test_page_puts_the_systems_side_by_side(page):
    """Of the tiny models, K-BERT's alone; it reads the triples as plain text too."""
    preset(page, "systems")
    assert titles(page) == ["K-BERT", "Plain text"]
    assert "hangs each triple on its name" in said(page)
    assert "No model of KnowBert, Roof-BERT for this task and language is here." in said(page)


def test_page_compares_with_the_twin_of_another_size(page):
    preset(page, "models")
    assert titles(page) == ["Now", "Graph off", "Twin"]
    do(page, Show("columns_view", "attention")).run()
    assert not page.exception
    assert "The models differ in layers or heads" in said(page)


def test_page_shows_what_the_last_edit_did_to_each(page):
    edit(page, Edit("remove", Triple("胃镜", "类别", "检查"))).run()
    preset(page, "graphs")
    assert titles(page) == ["BERT", "Graph as loaded", "Graph as edited"]


def test_page_lets_columns_be_chosen_freely(page, models):
    preset(page, "free")
    assert titles(page) == ["Panel 1", "Panel 2"]
    do(page, ChoosePanels(4)).run()
    assert not page.exception
    assert titles(page)[-1] == "Panel 4"
    choose(page, "lab.free.1.model", str(models / "tags-zh-bert"))
    assert "tags-zh-bert" in drawn(page)
    choose(page, "lab.free.1.graph", "none")
    do(page, ChangePanel(1, {"positions": "hard"})).run()
    assert not page.exception


@pytest.fixture
def matrices(monkeypatch):
    """The matrices that a page draws, in order."""
    views = []
    monkeypatch.setattr(lab_columns, "canvas", lambda view, *_, **__: views.append(view))
    return views


def test_a_blocked_cell_is_called_so_where_it_is_blocked(monkeypatch, tmp_path, matrices):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    at = opened("lab.py", **{"lab.example": FIGURE_2})
    preset(at, "parts")
    names = matrices[-1].identities
    apple = next(n for n in names if n[0] == "branch" and n[3].tail == "Apple" and n[4] == 1)
    cook = next(name for name in names if name[:3] == ("trunk", 0, 1))
    do(at, Intervene(PRESETS["no_link"]), selection=Selection().with_cell(cook, apple)).run()
    matrices.clear()
    preset(at, "matrix")
    assert titles(at) == ["Matrix by the tree", "Matrix as edited"]
    assert said(at).count("“Cook” may attend to “Apple”") == 2  # one of them without it
    assert said(at).count("Blocked by an intervention") == 1
    untouched, edited = (view.codes for view in matrices)
    assert set(untouched[edited == BLOCKED]) == {LINK} and BLOCKED not in untouched
