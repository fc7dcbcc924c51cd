"""What a link puts on a fresh page is what was on the page it was made on."""

from dataclasses import replace

import pytest
from explaining_pages import said as everything
from sessions import session
from streamlit.testing.v1 import AppTest

from app import services
from kbert_core import Ablation, InjectionOptions, KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.surface_forms import NameRules
from kbert_lab.lab.scene import GraphRef, Scene
from kbert_lab.lab.selection import Selection
from kbert_lab.lab.share import Shared, to_link

PATIENCE = 120
TEXT = "Tim Cook is visiting Beijing now"
CEO = Triple("Tim Cook", "CEO", "Apple")
EDITS = (
    Edit("switch_off", CEO),
    Edit("add", Triple("Beijing", "hosts", "games"), index=0),
    Edit("replace", Triple("Beijing", "is_a", "City"), Triple("Beijing", "is_a", "capital")),
)


CHOSEN = Selection().with_cell(("trunk", 0, 0), ("special", 0)).with_triple(CEO).with_map(1, 2)
NAMES = NameRules.of(["case", "width"])
VIEWS = {"matrix_view": "difference", "knowledge_view": "graph", "specials": True}


def page():
    import streamlit as st

    from app import sharing, state
    from app.app_pages.lab_share import something_waits

    ss = st.session_state
    state.begin()
    ss["waits"] = something_waits()
    ss["shared"], ss["scene"] = sharing.shared(), state.scene()
    ss["query"], ss["notes"] = sharing.query(), getattr(state.session().arrival, "notes", ())


@pytest.fixture
def models(monkeypatch, checkpoints):
    monkeypatch.setenv("KBERT_MODELS", str(checkpoints["ner"].parent))


@pytest.fixture
def no_models(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))


def opened(link=None):
    at = AppTest.from_function(page, default_timeout=PATIENCE)
    if link is not None:
        at.query_params["scene"] = link
    at.run()
    assert not at.exception
    return at


@pytest.fixture
def scene():
    graph = services.demo_graph("figure2")
    return Scene((TEXT,), "words", GraphRef.of(graph), EDITS, InjectionOptions(3))


@pytest.mark.parametrize(
    ("task", "model", "texts"), [("ner", "ner", 1), ("pair", "pair", 2), ("tree", "encoder", 1)]
)
def test_a_link_restores_texts_graph_edits_options_and_what_is_chosen(
    models, scene, task, model, texts
):
    scene = replace(
        scene,
        sentences=(TEXT, "A cat")[:texts],
        model=model,
        options=InjectionOptions(3, True, ("CEO",), not_relations=("is_a",), names=NAMES),
        ablation=Ablation("hard", "all"),
    )
    pinned = replace(scene, edits=EDITS[:1])
    shared = Shared(scene, task, (1, 2), "pinned", pinned, CHOSEN, VIEWS)
    at = opened(to_link(shared))
    assert at.session_state["shared"] == shared
    assert at.session_state["scene"].edits == EDITS and at.session_state["notes"] == ()
    assert [len(step.what.edits) for step in session(at).history.steps] == [1, 2]
    assert not at.session_state["waits"] and not at.error and not at.warning


def test_the_page_a_first_visit_shows_comes_back_from_its_own_link(models):
    first = opened().session_state["shared"]
    assert opened(to_link(first)).session_state["shared"] == first


def test_a_link_of_the_english_encoder_names_it_by_no_folder(no_models, scene):
    encoder = services.english_encoder()
    assert encoder
    shared = Shared(replace(scene, model="minilm"), "tree")
    at = opened(to_link(shared))
    assert at.session_state["scene"].model == encoder
    assert at.session_state["shared"] == shared


def test_a_text_that_waits_can_be_read_with_another_graph(no_models, scene):
    shared = Shared(replace(scene, graph=GraphRef("f" * 64, "hers")), "tree", compare="original")
    at = opened(to_link(shared))
    here = at.session_state["scene"].graph
    at.button(key="lab.share_otherwise").click().run()
    now = at.session_state["scene"]
    assert (now.sentences, now.edits, now.graph) == (scene.sentences, (), here)
    assert now.options == scene.options


def test_a_link_that_waits_can_be_left(no_models, scene):
    before = opened().session_state["shared"]
    at = opened(to_link(Shared(replace(scene, graph=GraphRef("f" * 64, "hers")), "tree")))
    at.button(key="lab.share_leave").click().run()
    assert not at.session_state["waits"]
    assert at.session_state["shared"] == before


def test_a_link_of_an_empty_graph_brings_its_own(no_models, scene):
    empty = GraphRef.of(KnowledgeGraph(name="mine"))
    add = (Edit("add", CEO, index=0),)
    shared = Shared(replace(scene, graph=empty, edits=add), "tree")
    assert opened(to_link(shared)).session_state["shared"] == shared


def test_a_missing_model_leaves_everything_but_the_prediction_and_says_so(no_models, scene):
    chosen = InjectionOptions(3, strategy="context", threshold=0.5)
    shared = Shared(replace(scene, model="hers", options=chosen), "ner")
    at = opened(to_link(shared))
    now = at.session_state["scene"]
    assert (now.model, now.sentences, now.edits, now.graph) == (
        "words",
        *(scene.sentences, scene.edits, scene.graph),
    )
    assert now.options == InjectionOptions(3)
    assert "the model hers, which isn't here" in everything(at)
    assert "first in graph order" in everything(at)
    chinese = replace(scene, model="hers", sentences=("患者行胃镜检查",), edits=())
    assert opened(to_link(Shared(chinese, "ner"))).session_state["scene"].model == "characters"


SCORED = InjectionOptions(3, strategy="context", scorer="hers")
NOT_HERE = [  # what a link is of, what the page shows in its place, and what it says of it
    ("pair", {"model": "hers", "sentences": (TEXT, "A cat")}, {"sentences": (TEXT,)}, "the first"),
    ("ner", {"model": "classify"}, {"model": "words"}, "classify"),
    ("ner", {"options": SCORED}, {"options": InjectionOptions(3)}, "a model that isn't here"),
]


@pytest.mark.parametrize(("task", "sent", "shown", "why"), NOT_HERE)
def test_what_is_not_here_is_left_out_and_said(models, scene, task, sent, shown, why):
    scene = replace(scene, model="ner")
    at = opened(to_link(Shared(replace(scene, **sent), task)))
    now = at.session_state["scene"]
    assert now == replace(now, **shown) and why in everything(at)


def test_a_pinned_scene_that_is_not_here_is_not_compared_with(models, scene):
    pinned = replace(scene, graph=GraphRef("f" * 64, "hers"))
    at = opened(to_link(Shared(replace(scene, model="ner"), "ner", (), "pinned", pinned)))
    assert at.session_state["shared"].compare == "auto"


def test_what_a_later_page_does_not_know_is_passed_over(no_models, scene):
    odd = Shared(scene, "later", (9,), views={"later": True, "matrix_view": "later"})
    at = opened(to_link(odd))
    assert at.session_state["scene"].edits == scene.edits
    assert at.session_state["shared"].views == {}


@pytest.mark.parametrize("link", ["", "nonsense", "eNo", "x" * 9000, "<script>alert(1)</script>"])
def test_a_bad_link_says_so_in_a_sentence_and_shows_the_first_visit(no_models, link):
    at = opened(link)
    assert len(at.error) == 1
    assert at.session_state["shared"] == opened().session_state["shared"]
    assert "scene" not in at.session_state["query"]
    at.run()
    assert not at.error


def test_edits_that_do_not_fit_their_graph_open_nothing(no_models, scene):
    wrong = (Edit("remove", Triple("no", "such", "<b>triple</b>")),)
    at = opened(to_link(Shared(replace(scene, edits=wrong), "tree")))
    assert "don't fit the graph" in everything(at)
    assert at.session_state["shared"] == opened().session_state["shared"]
