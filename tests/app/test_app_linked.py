"""KnowBert models in the app: what they link, in words and tables; pages that need trees."""

import pytest
from explaining_pages import PATIENCE, drawn, opened, opened_on, said
from tiny_knowbert import PICTURE, PLACE, SENSES, TEST, TEXT, knowbert_in

from kbert_core.explain.targets import LinkTarget
from kbert_lab.lab.models import read_model
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import knowledge, sides, targets


@pytest.fixture(scope="module")
def root(tmp_path_factory, checkpoints):
    """A models folder with a KnowBert tagger and a linker."""
    root = tmp_path_factory.mktemp("models")
    knowbert_in(root / "tags-zh", checkpoints)
    knowbert_in(root / "links-zh", checkpoints, head=False)
    return root


@pytest.fixture
def trace(tmp_path, checkpoints):
    return knowbert_in(tmp_path, checkpoints, head=False)(TEXT, graph=SENSES)


# View-models


def test_rows_of_a_linked_text_say_which_triples_are_in_a_vector(trace):
    rows = knowledge.triple_rows(trace, SENSES)
    assert {(row.triple.relation, row.state) for row in rows} == {
        ("gloss", "in a vector"),
        ("synonym", "in no vector"),
        ("count", "sets the prior"),
    }
    assert knowledge.entities_of(trace) == {TEST.head, PICTURE.head}
    assert knowledge.names_in(trace) == [TEST.head]


def test_a_gloss_switched_off_stays_in_the_table_to_be_switched_on_again(tmp_path, checkpoints):
    linker = knowbert_in(tmp_path, checkpoints, head=False)
    graph = SENSES.switch_off(TEST)
    rows = knowledge.triple_rows(linker(TEXT, graph=graph), graph)
    assert {row.triple: row.state for row in rows[:2]} == {
        PICTURE: "in a vector",
        TEST: "switched off",
    }
    none = graph.switch_off(PICTURE)
    assert len(knowledge.triple_rows(linker(TEXT, graph=none), none)) == 5


def test_the_table_of_candidates_is_in_the_language_of_the_page(trace):
    table = sides.linked_table(trace.links, (TEXT,))
    assert t("what it says") in table and TEST.tail in table
    assert not sides.has_more(trace.links)


def test_a_link_is_a_target_with_its_candidates_and_its_score_in_words(root, trace):
    (target,) = targets.targets(trace)
    assert target == LinkTarget(trace.prediction.links[0].entity, *PLACE)
    assert targets.candidates_of(target, trace) == [TEST.head, PICTURE.head]
    info = read_model(str(root / "links-zh"))
    assert targets.name_of(target, trace, info) == f"“心电图” {target.label}"


# Pages


@pytest.fixture
def show(root, monkeypatch):
    """Open a page on the text, its graph and a model."""
    monkeypatch.setenv("KBERT_MODELS", str(root))
    return lambda page, model: opened_on(page, root / model, SENSES, TEXT)


@pytest.mark.parametrize("model", ["tags-zh", "links-zh"])
def test_the_lab_shows_linked_entities_in_place_of_tree_and_matrix(show, model):
    at = show("lab.py", model)
    seen = said(at) + drawn(at)
    assert "Linked entities" in seen and "has no sentence tree, no visible matrix" in seen
    assert TEST.tail in seen and "心电图.n.02" in seen
    assert not at.error
    at.text_area(key="lab.text").set_value("今天天气好").run()
    assert not at.exception
    assert "no triple is read" in said(at) + drawn(at)


def test_a_threshold_that_nothing_reaches_lets_every_name_mean_nothing(show):
    at = show("lab.py", "links-zh")
    assert "→ <b>NULL</b>" not in drawn(at)
    at.number_input(key="lab.threshold").set_value(1000.0).run()
    assert not at.exception
    seen = drawn(at)
    assert seen.count("→ <b>NULL</b>") == seen.count(" → <b>")
    at.session_state["lab.share"] = True
    link = next(code.value for code in at.run().code if "scene=" in code.value)
    other = opened(query={"scene": link.split("scene=")[1]})
    other.button(key="lab.card_open").click().run()
    assert other.number_input(key="lab.threshold").value == 1000.0
    assert drawn(other).count("→ <b>NULL</b>") == seen.count(" → <b>")
    at.number_input(key="lab.threshold").set_value(None).run()
    assert "→ <b>NULL</b>" not in drawn(at)


@pytest.mark.parametrize("model", ["tags-zh", "links-zh"])
def test_every_triple_is_measured_and_paths_say_that_they_need_trees(show, model):
    at = show("explain.py", model)
    at.session_state["explain.effects"][1].join(PATIENCE)
    assert at.run().dataframe and not at.error
    at.session_state["explain.part"] = "paths"
    at.run()
    assert not at.exception, at.exception
    assert "Paths need sentence trees, and this model reads none." in said(at)
