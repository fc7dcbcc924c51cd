"""The matrix panel and the linked selection, run as Streamlit runs the page."""

import re
from dataclasses import replace

import pytest
from conftest import BIO, save_checkpoint
from explaining_pages import opened
from explaining_pages import said as everything
from sessions import do, drawn, drawn_tokens, session
from transformers import AutoModelForTokenClassification

from kbert_core import Card, InjectionOptions, ReadConfig
from kbert_lab.lab.selection import Selection

FIGURE_2 = "Figure 2 of the paper, words as tokens"
TEXT = "tim cook is here"


@pytest.fixture
def lab(monkeypatch, tmp_path):
    """The Lab without any model, on the paper's Figure 2."""
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    return opened().selectbox(key="lab.example").set_value(FIGURE_2).run()


@pytest.fixture
def read(monkeypatch, checkpoints):
    """The Lab with a tiny random tagger that reads "tim cook"."""
    monkeypatch.setenv("KBERT_MODELS", str(checkpoints["ner"].parent))
    at = opened()
    at.selectbox(key="lab.task").set_value("ner").run()
    at.selectbox(key="lab.graph").set_value("figure2")
    at.text_area(key="lab.text").set_value(TEXT).run()
    assert not at.exception
    return at


def choose(at, selection):
    """What a click in the tree or the matrix leads to; AppTest can't click there."""
    do(at, selection=selection)
    at.run()
    assert not at.exception
    return at


def names(at):
    return dict(zip(drawn(at, "matrix")[0]["tokens"], drawn_tokens(at), strict=True))


def test_a_triple_that_is_not_injected_says_so_in_the_chooser(lab):
    lab.number_input(key="lab.max_triples").set_value(1).run()
    options = lab.selectbox(key="lab.triple").options
    assert "(Beijing, is_a, City) · not in the tree" in options


def test_the_selection_outlives_an_edit_and_says_what_is_gone(lab):
    cook, apple = names(lab)["Cook"], names(lab)["Apple"]
    choose(lab, Selection().with_cell(cook, apple))
    lab.number_input(key="lab.max_triples").set_value(0).run()
    assert not lab.exception
    assert "Chosen: Cook → not in this tree" in everything(lab)
    lab.number_input(key="lab.max_triples").set_value(2).run()
    assert "Chosen: Cook → Apple" in everything(lab)


def test_a_mean_asks_for_one_map(read):
    read.segmented_control(key="lab.matrix_view").set_value("attention").run()
    found = names(read)
    choose(read, Selection(layer=3).with_cell(found["tim"], found["cook"]))
    assert "Choose one layer and one head" in everything(read)


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
