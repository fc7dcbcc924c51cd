"""What a link puts on a fresh page is what was on the page it was made on."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sessions import add, session, write
from streamlit.testing.v1 import AppTest

from app import services
from kbert_core import Ablation, InjectionOptions, KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.surface_forms import RULES, NameRules
from kbert_lab.lab.scene import GraphRef, Scene
from kbert_lab.lab.selection import Selection
from kbert_lab.lab.share import Shared, from_link, to_link

PATIENCE = 120
TEXT = "Tim Cook is visiting Beijing now"
CEO = Triple("Tim Cook", "CEO", "Apple")
EDITS = (
    Edit("switch_off", CEO),
    Edit("add", Triple("Beijing", "hosts", "games"), index=0),
    Edit("replace", Triple("Beijing", "is_a", "City"), Triple("Beijing", "is_a", "capital")),
)


CHOSEN = Selection().with_cell(("trunk", 0, 0), ("special", 0)).with_triple(CEO).with_map(1, 2)
VIEWS = {"matrix_view": "difference", "knowledge_view": "graph", "specials": True}


def page():
    import streamlit as st

    from app import sharing, state
    from app.app_pages.lab_share import something_waits

    ss = st.session_state
    state.begin()
    ss["waits"] = something_waits()
    ss["shared"], ss["scene"] = sharing.shared(), state.scene()
    ss["log"], ss["notes"] = state.log(), getattr(sharing.arrival(), "notes", ())
    ss["query"], ss["link"] = sharing.query(), sharing.link_back()


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


def said(at):
    parts = (at.caption, at.info, at.error, at.warning, at.code, at.subheader)
    return "\n".join(str(item.value) for part in parts for item in part).replace("\\", "")


@pytest.fixture
def scene():
    graph = services.demo_graph("figure2")
    return Scene((TEXT,), "words", services.ref_of(graph), EDITS, InjectionOptions(3))


def test_a_link_restores_text_graph_edits_and_options(no_models, scene):
    shared = Shared(scene, "tree", steps=(1, 2), compare="original", selection=CHOSEN, views=VIEWS)
    at = opened(to_link(shared))
    assert at.session_state["shared"] == shared
    assert at.session_state["scene"] == scene
    assert [len(step.what.edits) for step in session(at).history.steps] == [1, 2]
    assert not at.session_state["waits"] and not at.error and not at.warning


options = st.builds(
    InjectionOptions,
    st.integers(0, 20),
    st.booleans(),
    st.none() | st.sampled_from([("CEO",), ("CEO", "is_a")]),
    not_relations=st.sampled_from([(), ("is_a",)]),
    first_relations=st.sampled_from([(), ("capital", "is_a")]),
    names=st.lists(st.sampled_from(RULES), unique=True).map(NameRules.of),
) | st.builds(
    InjectionOptions,
    strategy=st.sampled_from(["rare", "context"]),
    threshold=st.none() | st.floats(-1, 1),
    one_sense=st.booleans(),
)


@given(
    st.sampled_from([("ner", "ner", 1), ("pair", "pair", 2), ("tree", "encoder", 1)]),
    st.integers(0, 3),
    options,
    st.sampled_from(["soft", "hard"]),
    st.sampled_from(["tree", "all"]),
    st.sampled_from(["auto", "bert", "original", "pinned", "parts"]),
    st.sampled_from(["visible", "attention", "difference"]),
    st.tuples(st.none() | st.integers(0, 2), st.integers(0, 2)),
)
def test_a_link_restores_whatever_the_lab_can_show(
    models, scene, what, count, chosen, positions, visible, compare, panel, attention
):
    task, model, texts = what
    scene = replace(
        scene,
        sentences=(TEXT, "A cat")[:texts],
        model=model,
        edits=scene.edits[:count],
        options=chosen,
        ablation=Ablation(positions, visible),
    )
    pinned = replace(scene, edits=scene.edits[:1]) if compare == "pinned" else None
    views = {"matrix_view": panel} if panel != "visible" else {}
    selection = Selection().with_map(*attention)
    shared = Shared(scene, task, (), compare, pinned, selection, views)
    at = opened(to_link(shared))
    assert at.session_state["shared"] == shared
    assert at.session_state["notes"] == ()
    again = from_link(to_link(at.session_state["shared"]))
    assert again == shared


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


def test_a_link_with_a_graph_that_is_not_here_waits_and_shows_text_and_edits(no_models, scene):
    graph = KnowledgeGraph([CEO, Triple("Beijing", "is_a", "City")], name="<b>hers</b>")
    shared = Shared(replace(scene, graph=services.ref_of(graph)), "tree")
    at = opened(to_link(shared))
    assert at.session_state["waits"]
    assert "<b>hers</b>" in said(at) and "isn't here" in said(at) and TEXT in said(at)
    drawn = "".join(item.proto.body for item in at.get("html"))
    assert "switched off (Tim Cook, CEO, Apple)" in drawn and "(Beijing, hosts, games)" in drawn
    assert at.session_state["scene"].edits == (), "the page itself is still as it was"

    other = KnowledgeGraph([CEO], name="<b>hers</b>")
    take(at, other)
    assert at.session_state["waits"] and "with the same triples" in said(at)
    take(at, graph)
    assert not at.session_state["waits"]
    assert at.session_state["shared"] == shared
    assert at.session_state["scene"] == shared.scene


def take(at, graph):
    """What an upload does: the graph is in the session, and its name is told once."""
    add(at, graph.fingerprint, graph)
    at.session_state["lab.opened"] = (graph.name, (), ())
    at.run()
    assert not at.exception


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
    empty = services.ref_of(KnowledgeGraph(name="mine"))
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
    assert "the model hers, which isn't here" in said(at)
    assert "first in graph order" in said(at)
    chinese = replace(scene, model="hers", sentences=("患者行胃镜检查",), edits=())
    assert opened(to_link(Shared(chinese, "ner"))).session_state["scene"].model == "characters"


def test_a_missing_model_for_two_texts_shows_the_first(no_models, scene):
    pair = replace(scene, model="hers", sentences=(TEXT, "<i>A cat</i>"))
    at = opened(to_link(Shared(pair, "pair")))
    assert at.session_state["scene"].sentences == (TEXT,)
    assert "of two texts the first" in said(at)


def test_a_model_of_another_task_is_not_taken_for_the_one_meant(models, scene):
    at = opened(to_link(Shared(replace(scene, model="classify"), "ner")))
    assert at.session_state["scene"].model == "words"
    assert "classify" in said(at)


def test_a_scorer_that_is_not_here_is_said(models, scene):
    scored = InjectionOptions(3, strategy="context", scorer="hers")
    at = opened(to_link(Shared(replace(scene, model="ner", options=scored), "ner")))
    assert at.session_state["scene"].options == InjectionOptions(3)
    assert "chosen by a model that isn't here" in said(at)


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
    assert "don't fit the graph" in said(at)
    assert at.session_state["shared"] == opened().session_state["shared"]


def test_the_address_forgets_the_scene_once_the_page_shows_another(no_models, scene):
    at = opened(to_link(Shared(scene, "tree")))
    at.run()
    assert "scene" in at.session_state["query"]
    write(at, "something else")
    at.run()
    assert "scene" not in at.session_state["query"]
    assert at.session_state["scene"].sentences == ("something else",)


def test_the_address_names_an_example_only_while_the_page_shows_it_and_then_the_tab_keeps_a_link(
    no_models,
):
    at = AppTest.from_function(page, default_timeout=PATIENCE)
    at.query_params["example"] = "figure2"
    at.run()
    assert (at.session_state["query"], at.session_state["link"]) == ({"example": "figure2"}, None)
    write(at, "Beijing is mine")
    at.run()
    assert at.session_state["query"] == {}
    assert from_link(at.session_state["link"]).scene == at.session_state["shared"].scene
