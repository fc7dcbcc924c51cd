"""What the page compares with is made of the session: one scene of before, or several beside."""

from dataclasses import replace
from functools import reduce
from pathlib import Path

import pytest

from kbert_core import Ablation, KnowledgeGraph, Triple
from kbert_core.kbert.interventions import PRESETS
from kbert_core.knowledge.edit import Edit
from kbert_lab.lab import comparing
from kbert_lab.lab.commands import (
    ChangePanel,
    ChooseModel,
    Compare,
    Intervene,
    MakeEdits,
    Options,
    Pin,
    Undo,
)
from kbert_lab.lab.models import NOTHING, read_model
from kbert_lab.lab.offer import Offer
from kbert_lab.lab.scene import NO_GRAPH, WORDS
from kbert_lab.lab.session import OpenedGraph, Session
from kbert_lab.lab.views import sides

ADD, MORE = (MakeEdits((Edit("add", Triple("胃镜", "又称", x)),)) for x in ("镜一", "镜二"))
BLOCK = Intervene(PRESETS["no_link"])


MODELS = Path(__file__).resolve().parents[3] / "models"
TEXT = "患者行胃镜检查未见异常"
GRAPH = KnowledgeGraph([Triple("胃镜", "类别", "检查")], name="examinations")


@pytest.fixture(scope="module")
def offer():
    names = ("medical-ner-kbert", "medical-ner-bert", "medical-ner-roof")
    return Offer(tuple(read_model(str(MODELS / name)) for name in names))


@pytest.fixture
def lab(offer):
    model = offer.models[0].path
    session = Session(model, offer.reads(model), "a", {"a": OpenedGraph(GRAPH)})
    return session.with_model(model, offer.reads(model)).with_text(TEXT)


def done(session, *made):
    return reduce(lambda now, command: command(now), made, session)


@pytest.mark.parametrize(
    ("made", "kind", "edits"),
    [
        ((), "bert", 0),
        ((ADD,), "auto", 0),
        ((ADD, BLOCK), "untouched", 1),
        ((ADD, BLOCK, Undo()), "auto", 0),
        ((BLOCK, ADD), "auto", 0),
        ((ADD, Compare("bert")), "bert", 0),
        ((ADD, MORE, Compare("original")), "original", 0),
        ((BLOCK, Compare("untouched"), Undo()), "bert", 0),  # there is nothing untouched any more
        ((ADD, Pin(), MORE), "pinned", 1),
        ((ADD, Compare("parts")), "auto", 0),
    ],
)
def test_the_page_compares_with_what_was_chosen_or_changed_last(lab, offer, made, kind, edits):
    scene, found = comparing.earlier(done(lab, *made), offer)
    assert (found, len(scene.edits), scene.graph == NO_GRAPH) == (kind, edits, kind == "bert")


def test_a_pinned_scene_keeps_its_graph(lab, offer):
    session = done(lab, ADD, Pin(), MORE)
    scene, _ = comparing.earlier(session, offer)
    assert session.graph_of(scene) == session.base.apply(*ADD.edits)


def test_side_by_side_stands_what_there_is_something_for(lab, offer):
    words = done(lab, ChooseModel(WORDS, NOTHING))
    assert list(comparing.presets(words, offer)) == ["parts"]
    every = ["systems", "parts", "matrix", "models", "graphs"]
    found = comparing.presets(done(lab, ADD, BLOCK), offer)
    assert list(found) == every
    assert [panel.scene.interventions for panel in found["matrix"]] == [(), PRESETS["no_link"]]
    assert [len(panel.scene.edits) for panel in found["graphs"]] == [0, 0, 1]


def test_parts_are_the_papers_whatever_the_scenes_own_ablation_is(lab, offer):
    session = done(lab, Options({"positions": "hard", "visible": "all"}), BLOCK)
    panels = comparing.presets(session, offer)["parts"]
    assert [one.scene.ablation for one in panels] == [
        *(Ablation(), Ablation(), Ablation("hard", "tree"), Ablation("soft", "all"))
    ]
    assert panels[0].scene.graph == NO_GRAPH and not any(one.scene.interventions for one in panels)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"graph": "none"}, {"graph": NO_GRAPH, "edits": ()}),
        ({"graph": "loaded"}, {"edits": ()}),
        ({"visible": "all"}, {"ablation": Ablation("soft", "all")}),
        ({"system": "plain-text", "visible": "all"}, {"ablation": Ablation()}),
        ({"model": WORDS}, {}),  # it is for another task
    ],
)
def test_a_free_panel_is_what_was_chosen_as_far_as_it_is_here(lab, offer, changes, found):
    session = done(lab, ADD, Compare("free"), ChangePanel(1, changes))
    (_, panel), own = comparing.beside(session, offer), session.scene()
    assert replace(panel.scene, system="") == replace(own, **found)
    about = sides.about(panel.scene, "", 3)
    assert ("triples as plain text" in about) == ("system" in changes)
