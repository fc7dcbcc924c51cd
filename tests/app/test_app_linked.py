"""KnowBert models in the app: what they link, in words and tables; pages that need trees."""

from pathlib import Path

import pytest
from sessions import add, do, read_by, write
from streamlit.testing.v1 import AppTest
from tiny_knowbert import PICTURE, PLACE, SENSES, TEST, TEXT, knowbert_in

from app import services
from kbert_core import Triple
from kbert_core.explain.targets import LinkTarget
from kbert_lab.lab.models import read_model
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import knowledge, sides, targets

PAGES = Path(__file__).resolve().parents[2] / "app" / "app_pages"
PATIENCE = 240


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
    assert [(row.triple.relation, row.state) for row in rows] == [
        ("gloss", "in a vector"),
        ("gloss", "in a vector"),
        ("synonym", "in no vector"),
        ("count", "sets the prior"),
        ("synonym", "in no vector"),
    ]
    off = knowledge.triple_rows(
        trace, SENSES.switch_off(Triple("心电图.n.01", "synonym", "心电图"))
    )
    assert "switched off" in [row.state for row in off]
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
    drawn = sides.linked_table(trace.links, (TEXT,))
    assert t("what it says") in drawn and TEST.tail in drawn
    assert not sides.has_more(trace.links)


def test_a_link_is_a_target_with_its_candidates_and_its_score_in_words(root, trace):
    (target,) = targets.targets(trace)
    assert target == LinkTarget(trace.prediction.links[0].entity, *PLACE)
    assert targets.candidates_of(target, trace) == [TEST.head, PICTURE.head]
    info = read_model(str(root / "links-zh"))
    assert targets.name_of(target, trace, info) == f"“心电图” {target.label}"


def test_a_model_says_whether_its_system_grows_trees(root):
    assert not read_model(str(root / "links-zh")).has_trees
    assert read_model(str(root / "links-zh")).ablation.visible == "tree"


def test_a_trace_of_vectors_has_a_size(trace):
    assert services.size_of_trace(trace) > 1000


# Pages


def opened(page, root, monkeypatch, model):
    """A page of the scene: the text, the senses and a model."""
    monkeypatch.setenv("KBERT_MODELS", str(root))
    at = AppTest.from_file(PAGES / page, default_timeout=PATIENCE).run()
    key = SENSES.fingerprint
    add(at, key, SENSES)
    if page == "lab.py":
        at.run()
        at.selectbox(key="lab.graph").set_value(key).run()
        if model == "links-zh":
            at.selectbox(key="lab.task").set_value("link").run()
        at.text_area(key="lab.text").set_value(TEXT).run()
        return at
    read_by(do(at, graph=key), root / model)
    write(at, TEXT)
    at.run()
    assert not at.exception, at.exception
    return at


def everything(at):
    parts = (at.caption, at.info, at.error, at.warning, at.markdown, at.subheader)
    said = "\n".join(str(x.value) for part in parts for x in part).replace("\\", "")
    return said + "\n".join(str(item.proto.body) for item in at.get("html"))


@pytest.mark.parametrize("model", ["tags-zh", "links-zh"])
def test_the_lab_shows_linked_entities_in_place_of_tree_and_matrix(root, monkeypatch, model):
    at = opened("lab.py", root, monkeypatch, model)
    seen = everything(at)
    assert "Linked entities" in seen and "has no sentence tree, no visible matrix" in seen
    assert TEST.tail in seen and "心电图.n.02" in seen
    assert not at.error
    at.text_area(key="lab.text").set_value("今天天气好").run()
    assert not at.exception
    assert "no entity is linked" in everything(at)


def test_an_edited_gloss_changes_candidates_and_prediction(root, monkeypatch):
    at = opened("lab.py", root, monkeypatch, "links-zh")
    before = everything(at)
    for key, value in (("head", TEST.head), ("relation", "gloss"), ("tail", "墙上的画")):
        at.text_input(key=f"lab.add_{key}").set_value(value)
    at.button[[b.label for b in at.button].index("Add")].click().run()
    after = everything(at)
    assert not at.exception
    assert "墙上的画" in after and "墙上的画" not in before
    assert "before the last edit" not in before
    assert t("Before") in after


def test_a_threshold_that_nothing_reaches_lets_every_name_mean_nothing(root, monkeypatch):
    at = opened("lab.py", root, monkeypatch, "links-zh")
    assert "→ <b>NULL</b>" not in everything(at)
    at.number_input(key="lab.threshold").set_value(1000.0).run()
    assert not at.exception
    seen = everything(at)
    assert seen.count("→ <b>NULL</b>") == seen.count(" → <b>")
    at.session_state["lab.share"] = True
    link = next(code.value for code in at.run().code if "scene=" in code.value)
    other = AppTest.from_file(PAGES / "lab.py", default_timeout=PATIENCE)
    other.query_params["scene"] = link.split("scene=")[1]
    other.run().button(key="lab.card_open").click().run()
    assert other.number_input(key="lab.threshold").value == 1000.0
    assert everything(other).count("→ <b>NULL</b>") == seen.count(" → <b>")
    at.number_input(key="lab.threshold").set_value(None).run()
    assert "→ <b>NULL</b>" not in everything(at)


def test_pages_that_need_trees_say_so_and_what_there_is(root, monkeypatch):
    at = opened("explain.py", root, monkeypatch, "tags-zh")
    at.session_state["explain.part"] = "paths"
    at.run()
    assert not at.exception, at.exception
    assert t(
        "Paths need sentence trees, and the system “{system}” has none. “Effects” says what each "
        "triple does.",
        system="knowbert",
    ) in everything(at)


@pytest.mark.parametrize("model", ["tags-zh", "links-zh"])
def test_what_flips_it_explains_a_knowbert(root, monkeypatch, model):
    at = opened("explain.py", root, monkeypatch, model)
    assert not at.exception, at.exception
    assert t(
        "Each triple is left out once, all others held fixed: what then becomes of the "
        "probability is its effect, exactly. Below, the same probability shared out among the "
        "tokens."
    ) in everything(at)
    at.session_state["explain.effects"][1].join(PATIENCE)
    assert at.run().dataframe
    assert not at.error
