"""The matrix panel and the linked selection, run as Streamlit runs the page."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import BIO, save_checkpoint
from sessions import do, drawn, drawn_tokens, session
from streamlit.testing.v1 import AppTest
from transformers import AutoModelForTokenClassification

from app import services
from kbert_core import Card, InjectionOptions, ReadConfig, Triple
from kbert_lab.lab.selection import Selection

LAB = Path(__file__).resolve().parents[2] / "app" / "app_pages" / "lab.py"
PATIENCE = 120
FIGURE_2 = "Figure 2 of the paper, words as tokens"
APPLE = Triple("Tim Cook", "CEO", "Apple")
TEXT = "tim cook is here"


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """The Lab without any model, on the paper's Figure 2."""
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    at = AppTest.from_file(LAB, default_timeout=PATIENCE).run()
    return at.selectbox(key="lab.example").set_value(FIGURE_2).run()


@pytest.fixture
def read(monkeypatch, checkpoints):
    """The Lab with a tiny random tagger that reads "tim cook"."""
    monkeypatch.setenv("KBERT_MODELS", str(checkpoints["ner"].parent))
    at = AppTest.from_file(LAB, default_timeout=PATIENCE).run()
    at.selectbox(key="lab.task").set_value("ner").run()
    at.selectbox(key="lab.graph").set_value("figure2")
    at.text_area(key="lab.text").set_value(TEXT).run()
    assert not at.exception
    return at


def everything(at):
    parts = (at.caption, at.info, at.error, at.warning, at.markdown, at.code)
    return "\n".join(str(item.value) for part in parts for item in part).replace("\\", "")


def choose(at, selection):
    """What a click in the tree or the matrix leads to; AppTest can't click there."""
    do(at, selection=selection)
    at.run()
    assert not at.exception
    return at


def chosen(at):
    return session(at).selection


def names(at):
    return dict(zip(drawn(at, "matrix")[0]["tokens"], drawn_tokens(at), strict=True))


def test_a_chosen_token_is_said_in_words(lab):
    choose(lab, Selection().with_token(names(lab)["Cook"]))
    assert "“Cook” sees 10 of 14 tokens: 8 of the trunk, the branch “CEO Apple”" in everything(lab)


def test_a_triple_chosen_by_name_is_kept_and_one_that_is_left_out_says_so(lab):
    box = lab.selectbox(key="lab.triple")
    assert box.options[0] == "(Tim Cook, CEO, Apple)"
    box.select_index(0).run()
    assert not lab.exception
    assert chosen(lab).triple == APPLE
    lab.run()
    assert "Chosen: (Tim Cook, CEO, Apple)" in everything(lab)
    assert lab.selectbox(key="lab.triple").value == APPLE


def test_a_triple_that_is_not_injected_says_so_in_the_chooser(lab):
    lab.number_input(key="lab.max_triples").set_value(1).run()
    options = lab.selectbox(key="lab.triple").options
    assert "(Beijing, is_a, City) · not in the tree" in options


def test_clear_lets_everything_go(lab):
    cook, apple = names(lab)["Cook"], names(lab)["Apple"]
    choose(lab, Selection(triple=APPLE).with_cell(cook, apple))
    assert "Chosen: Cook → Apple" in everything(lab)
    lab.button(key="lab.clear_selection").click().run()
    assert not lab.exception
    assert chosen(lab).empty
    lab.run()
    assert lab.button(key="lab.clear_selection").disabled
    assert "Chosen:" not in everything(lab)


def test_the_selection_outlives_an_edit_and_says_what_is_gone(lab):
    cook, apple = names(lab)["Cook"], names(lab)["Apple"]
    choose(lab, Selection().with_cell(cook, apple))
    lab.number_input(key="lab.max_triples").set_value(0).run()
    assert not lab.exception
    assert "Chosen: Cook → not in this tree" in everything(lab)
    lab.number_input(key="lab.max_triples").set_value(2).run()
    assert "Chosen: Cook → Apple" in everything(lab)


def test_choosing_never_changes_the_scene(lab):
    def scene():
        return session(lab).scene()

    before = scene()
    choose(lab, Selection(triple=APPLE).with_token(names(lab)["Beijing"]))
    assert scene() == before


@pytest.fixture
def seen(monkeypatch):
    """The scene and graph that the page asked attention of last."""
    asked, attention = {}, services.attention

    def ask(scene, graph, window=0):
        asked["last"] = scene, graph
        return attention(scene, graph, window)

    monkeypatch.setattr(services, "attention", ask)
    return lambda: asked["last"]


def test_a_cells_arithmetic_ends_at_the_weight_of_the_map(read, seen):
    read.segmented_control(key="lab.matrix_view").set_value("attention").run()
    found = names(read)
    choose(read, Selection(layer=2, head=3).with_cell(found["tim"], found["cook"]))
    said = everything(read)
    drawn = "".join(str(part.proto.body) for part in read.get("html"))
    line = re.search(r">softmax</th><td[^>]*>([\d.]+) %<", drawn)
    assert line and "layer 2, head 3" in said
    scene, graph = seen()
    assert scene.sentences == (TEXT,)
    maps = services.attention(scene, graph)
    flat = services.trace(scene, graph).rows[0]
    query, key = (flat.tokens.index(word) for word in ("tim", "cook"))
    assert float(line[1]) == pytest.approx(100 * float(maps[1, 2, query, key]), abs=0.06)
    assert f"“tim” gives “cook” {line[1]} % of its attention" in said


def test_a_mean_asks_for_one_map(read):
    read.segmented_control(key="lab.matrix_view").set_value("attention").run()
    found = names(read)
    choose(read, Selection(layer=3).with_cell(found["tim"], found["cook"]))
    assert "Choose one layer and one head" in everything(read)


def test_a_layer_and_a_head_are_part_of_the_selection(read):
    read.segmented_control(key="lab.matrix_view").set_value("attention").run()
    layer, head = read.selectbox(key="lab.layer").value, read.selectbox(key="lab.head").value
    assert f"in layer {layer}, head {head} (" in everything(read)
    read.selectbox(key="lab.layer").set_value(1).run()
    read.selectbox(key="lab.head").set_value(4).run()
    assert (chosen(read).layer, chosen(read).head) == (1, 4)
    assert not read.exception


def test_a_chosen_triples_attention_is_said_in_the_visible_panel_too(read):
    triple = next(iter(read.selectbox(key="lab.triple").options))
    read.selectbox(key="lab.triple").select_index(0).run()
    read.run()
    assert re.search(rf"Attention on {re.escape(triple)}, layer \d, head \d: “", everything(read))


def test_all_heads_are_drawn_of_one_scene_and_a_comparison_has_one_map(read):
    read.segmented_control(key="lab.matrix_view").set_value("attention").run()
    read.toggle(key="lab.all_heads").set_value(True).run()
    assert not read.exception
    assert "A row is a layer, a column an attention head" in everything(read)
    read.segmented_control(key="lab.matrix_view").set_value("difference").run()
    read.segmented_control(key="lab.difference_of").set_value("attention").run()
    assert not read.exception
    assert "A row is a layer, a column an attention head" not in everything(read)


def test_hiding_special_tokens_hides_them_in_the_drawing_only(read):
    read.segmented_control(key="lab.matrix_view").set_value("attention").run()
    choose(read, Selection(layer=1, head=1).with_token(names(read)["tim"]))
    before = everything(read)
    read.checkbox(key="lab.specials").set_value(True).run()
    assert not read.exception
    assert all(name[0] != "special" for name in drawn_tokens(read))
    assert re.search("“tim” attends most.*", everything(read))[0] in before


def test_attention_of_models_of_other_sizes_is_compared_as_far_as_each_goes(read, tmp_path):
    labels = {"id2label": dict(enumerate(BIO)), "label2id": {b: i for i, b in enumerate(BIO)}}
    card = Card("ner", ReadConfig(InjectionOptions(max_triples=3, tail_only=True), max_length=48))
    deep = save_checkpoint(
        tmp_path / "deep", AutoModelForTokenClassification, card, num_hidden_layers=5, **labels
    )
    read.button(key="lab.pin").click().run()
    do(read, pinned=replace(session(read).pinned, model=str(deep)))
    read.segmented_control(key="lab.matrix_view").set_value("difference").run()
    read.segmented_control(key="lab.difference_of").set_value("attention").run()
    assert not read.exception
    assert "taken as far as each has them" in everything(read)
    assert drawn_tokens(read)


def test_a_heads_link_is_blocked_alone_and_what_it_does_is_said_in_points(read):
    read.segmented_control(key="lab.matrix_view").set_value("attention").run()
    assert "by points" not in everything(read)
    read.toggle(key="lab.head_blocked").set_value(True).run()
    assert not read.exception
    assert re.search(
        r"in this head alone, the prediction changes by [\d.]+ points", everything(read)
    )
    assert session(read).standing == ()
    read.selectbox(key="lab.head").set_value(0).run()  # of a mean there is no link
    assert "in this head alone" not in everything(read)
