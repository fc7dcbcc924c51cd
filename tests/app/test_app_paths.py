"""Paths of knowledge: what the page says and draws."""

import math
import threading

import numpy as np
import pytest
import torch
from conftest import tiny_config, tiny_tokenizer
from explaining_pages import FIGURE_2, choose, models_in, opened, said, until, write
from transformers import BertForSequenceClassification

from app import intervening
from app.intervening import InterventionLog
from app.texts import default_language, t
from app.view_models import paths as view
from kbert_core import (
    Ablation,
    Card,
    InjectionOptions,
    KnowledgeGraph,
    Pipeline,
    Triple,
    collate,
    visible_matrix,
)
from kbert_core.explain.case import Case
from kbert_core.kbert.interventions import PRESETS
from kbert_lab.explain.influence import influence, reach, stream_influence

TEXT = "患者有糖尿病史给予布洛芬口服好转"
DISEASE = Triple("糖尿病", "类别", "疾病")
GRAPH = KnowledgeGraph([DISEASE, Triple("布洛芬", "类别", "<治疗>")])


@pytest.fixture(scope="module")
def reader():
    torch.manual_seed(0)
    model = BertForSequenceClassification(tiny_config(max_position_embeddings=128)).eval()
    tokenizer = tiny_tokenizer()
    tokenizer.model_max_length = 128
    return Pipeline(model, tokenizer, Card("classify"))


@pytest.fixture(scope="module")
def found(reader):
    return influence(
        Case.of(reader, TEXT, graph=GRAPH, options=InjectionOptions(2, tail_only=True))
    )


def test_map_of_a_triple_has_a_row_a_token_and_a_column_a_layer(found):
    figure = view.change_chart(found, 0, 4)
    own, changes = (np.array(trace.z, float) for trace in figure.data)
    assert changes.shape == own.shape == (len(found.flat), found.layers + 1)
    assert np.isnan(changes[0, :2]).all() and not np.isnan(changes[0, 2:]).any()  # [CLS]
    here = list(found.own(0))
    assert not np.isnan(own[here]).any() and np.isnan(np.delete(own, here, 0)).all()
    mention = here[0] - 1
    for layer in range(1, found.layers + 1):
        share = 100 * float(found.measured[0, layer, mention])
        assert changes[mention, layer] == pytest.approx(share)
        assert figure.data[1].text[mention][layer] == view.short_percent(share / 100)
    (frame,) = figure.layout.shapes
    assert (frame.y0, frame.y1) == (3.5, 4.5)
    assert not any("<治疗>" in name for name in figure.layout.yaxis.ticktext)


def test_one_looks_first_at_the_first_mention_with_a_branch(found, tim_cook):
    flat = found.flat
    assert flat.tokens[view.first_token(flat)] == "糖"
    assert tim_cook.tokens[view.first_token(tim_cook)] == "Tim"
    assert view.first_token(flat.keeping(lambda *_: False)) == 0


def test_words_name_the_way_and_the_layer(found):
    said_ = view.say_arrival(found, 0, 0)
    assert "can differ from layer 2 on: “疾病” → “糖尿病” → “[CLS]”." in said_
    last = view.percent(float(found.measured[0, -1, 0]))
    assert f"{last} after layer {found.layers}" in said_
    own = found.own(0)[0]
    assert view.say_arrival(found, 0, own) == f"“疾” is part of {DISEASE} itself."
    mention = own - 1
    assert "from layer 1 on: “疾病” → “病”." in view.say_arrival(found, 0, mention)


def test_words_of_hard_positions_tell_of_the_move(reader):
    hard = influence(Case.of(reader, TEXT, graph=GRAPH, ablation=Ablation("hard", "tree")))
    last = len(hard.flat) - 1
    assert "stands at another position" in view.say_arrival(hard, 0, last)
    by_move = view.say_arrival(hard, 0, 0)
    assert "can differ from layer 1 on: it sees tokens that then stand at other" in by_move
    assert "By attention alone: “类别 疾病” → “糖尿病” → “[CLS]”." in by_move


def test_words_of_what_was_measured_out_of_reach_are_true(found):
    assert found.largest_beyond_reach < 1e-5
    assert "which is rounding" in view.say_agreement(found)
    assert view.power_of_ten(2.3e-7) == "2 × 10⁻⁷"


def test_arrivals_begin_with_the_triple_that_changes_most(found):
    *_, last = view.arrivals(found, 0).values()
    values = [float(value.removesuffix(" %")) for value in last]
    assert len(values) == 2 and values == sorted(values, reverse=True)
    assert t("gone") in [*view.arrivals(found, found.own(0)[0]).values()][-1]


def test_what_a_token_can_know_grows_from_the_trunk_to_all(tim_cook):
    batch = collate([tim_cook])
    ways = reach([visible_matrix(batch.branch_ids, batch.anchor_ids)[0]] * 3)
    trunk, branch = (
        dict(zip(tim_cook.tokens, ~np.isnan(np.array(trace.z, float)), strict=True))
        for trace in view.known_chart(tim_cook, ways, 0).data
    )
    assert trunk["[CLS]"].tolist() == [True] * 4
    assert branch["Apple"].tolist() == [False, False, True, True]
    assert trunk["now"].tolist() == [False, True, True, True] and not branch["now"].any()
    words = view.say_known(tim_cook, ways, 0)
    assert "After layer 1, “[CLS]” can know 8 of 8 trunk tokens and 0 of 3 branches." in words
    assert "From layer 2 on, “[CLS]” can know everything in the tree." in words
    apple = view.say_known(tim_cook, ways, 4)
    assert "After layer 1, “Apple” can know 2 of 8 trunk tokens and 1 of 3 branches." in apple


def test_what_a_token_can_know_may_grow_again_in_a_later_layer(tim_cook):
    batch = collate([tim_cook])
    tree = visible_matrix(batch.branch_ids, batch.anchor_ids)[0]
    cut = tree & (batch.branch_ids[0] == batch.branch_ids[0][:, None])
    words = view.say_known(tim_cook, reach([cut, cut, cut, tree]), 2)
    assert "After layer 1, “Cook” can know 8 of 8 trunk tokens and 0 of 3 branches." in words
    assert "After layer 2" not in words and "After layer 3" not in words
    assert "After layer 4, “Cook” can know 8 of 8 trunk tokens and 1 of 3 branches." in words


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.0004, 0.004, 0.5, 1.7, math.inf])
def test_shares_are_written_in_few_characters(value):
    if math.isinf(value):
        return
    assert len(view.short_percent(value)) <= 3
    assert "%" in view.percent(value)


# The page


def page(text="患者行胃镜检查未见异常", **state):
    at = opened("explain.py", **{"explain.part": "paths", **state})
    return at if text is None else write(at, text)


def chosen(at, name):
    return next(box for box in at.selectbox if box.key.startswith(f"explain.path_{name}"))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return models_in(tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_page_follows_a_triple_to_its_mention_then_to_another_token(models, monkeypatch, language):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    monkeypatch.setenv("KBERT_LANGUAGE", language)
    monkeypatch.setattr("app.texts.language_of", default_language)
    at = page()
    until(at, lambda: t("How much “{token}” changes without each triple", token="胃") in said(at))
    assert len(at.get("plotly_chart")) == 1 and len(at.dataframe) == 1
    choose(at, chosen(at, "token").key, 0)
    assert t("How much “{token}” changes without each triple", token="[CLS]") in said(at)


def test_page_shows_how_far_it_is_and_what_was_found_when_stopped(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    go_on = threading.Event()
    go_on.set()

    def slowly(case, window):
        for found in stream_influence(case, window=window):
            yield found
            go_on.wait(60)

    monkeypatch.setattr(Case, "at_once", lambda _: 1)
    monkeypatch.setattr("app.app_pages.explain_paths.stream_influence", slowly)
    at = page(None)
    go_on.clear()
    write(at, "患者行胃镜检查未见异常。")
    counted = t("{done} of {total} done", done="1", total="2")
    until(at, lambda: counted in str([item.proto.text for item in at.get("progress")]))
    assert not at.get("plotly_chart")
    at.button(key="explain.paths.stop_run").click().run()
    go_on.set()
    until(at, lambda: at.get("plotly_chart"))
    assert t("Stopped; what was found by then is shown.") in said(at)
    assert len(chosen(at, "triple").options) == 1
    at.button(key="explain.paths.again").click().run()
    until(at, lambda: at.get("plotly_chart"))
    assert len(chosen(at, "triple").options) == 2


def test_page_without_a_triple_shows_what_a_token_can_know(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    at = page("好转")
    until(
        at,
        lambda: (
            t(
                "This text contains no triple of {graph}, so there is no knowledge to explain. "
                "Choose another text or graph in the Lab, or add a triple there.",
                graph="medical_zh",
            )
            in said(at)
        ),
    )
    assert t(
        "From layer {layer} on, “{token}” can know everything in the tree.", layer=1, token="[CLS]"
    ) in said(at)


def test_page_without_a_model_shows_what_can_be_and_asks_for_one(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    at = page(None, **{"lab.example": FIGURE_2})
    assert t(
        "Nothing can be measured without a model. What can have reached which token is shown for "
        "{layers} layers. Choose a model in the Lab to measure.",
        layers=4,
    ) in said(at)
    assert len(at.get("plotly_chart")) == 1


def test_page_without_a_model_follows_no_link_that_is_blocked(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    at = page(None, **{"lab.example": FIGURE_2})
    free = said(at)
    text = at.session_state[intervening.TEXT]
    linkless = InterventionLog(PRESETS["no_link"])
    at.session_state[intervening.LOGS] = {text: linkless}
    at.run()
    assert not at.exception, at.exception
    assert free != said(at)


def test_page_of_an_unreadable_text_says_so(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    assert t("There is no text to read yet: write one in the Lab.") in said(page(" "))
