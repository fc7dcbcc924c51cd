"""Paths of knowledge: what the page says and draws."""

import math
import re
import threading

import pytest
import torch
from conftest import tiny_config, tiny_tokenizer
from explaining_pages import FIGURE_2, choose, drawn, models_in, opened, said, until, write
from transformers import BertForSequenceClassification

from app import intervening
from app.intervention_log import InterventionLog
from app.texts import default_language
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
from kbert_core.explain.influence import influence, reach, stream_influence
from kbert_core.kbert.interventions import PRESETS

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


def rows(html):
    """(token, cells) of a drawn table; a cell is its text, or its class in brackets."""
    made = []
    for row in re.findall(r"<tr[^>]*><th scope=\"row\".*?</tr>", html):
        name = re.search(r'name">(.*?)</th>', row)[1]
        cells = [
            text or f"({css})"
            for css, text in re.findall(r'<td (?:class="kb-p-(\w+)")?[^>]*>([^<]*)</td>', row)
        ]
        made.append((name, cells))
    return made


def test_table_of_a_triple_has_a_row_a_token_and_a_column_a_layer(found):
    html = view.influence_html(found, 0, 0)
    table = rows(html)
    assert [name for name, _ in table] == [
        name.replace("<", "&lt;").replace(">", "&gt;") for name in found.flat.tokens
    ]
    assert all(len(cells) == found.layers + 1 for _, cells in table)
    cells = dict(enumerate(cells for _, cells in table))
    assert cells[0][:2] == ["(out)", "(out)"]  # [CLS]: by the second layer
    own = found.own(0)
    assert all(cells[at] == ["(own)"] * 4 for at in own)
    mention = own[0] - 1
    assert cells[mention][0] == "(out)"
    for layer in range(1, found.layers + 1):
        share = 100 * float(found.measured[0, layer, mention])
        assert float(cells[mention][layer]) == pytest.approx(share, abs=0.51)
    assert html.count('aria-current="true"') == 1
    assert "<治疗>" not in html


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


def test_table_of_arrivals_puts_the_triple_that_changes_most_first(found):
    html = view.arrivals_html(found, 0)
    shown = [float(x) for x in re.findall(r">([\d.]+) %<", html)]
    assert len(shown) == 2 and shown == sorted(shown, reverse=True)
    own = view.arrivals_html(found, found.own(0)[0])
    assert "gone" in own and "nan" not in own


def test_chart_has_a_line_a_triple_and_no_html_of_theirs(found):
    figure = view.chart(found, 0)
    assert len(figure.data) == 2
    assert all("<治疗>" not in line.name for line in figure.data)
    by_name = {line.name: line.y for line in figure.data}
    assert by_name[str(DISEASE)][-1] == pytest.approx(100 * float(found.measured[0, -1, 0]))
    own = view.chart(found, found.own(0)[0])
    assert any(value is None for line in own.data for value in line.y)


def test_what_a_token_can_know_grows_from_the_trunk_to_all(tim_cook):
    batch = collate([tim_cook])
    ways = reach([visible_matrix(batch.branch_ids, batch.anchor_ids)[0]] * 3)
    table = rows(view.known_html(tim_cook, ways, 0))
    assert table[0] == ("[CLS]", ["(trunk)"] * 4)
    assert dict(table)["Apple"] == ["(out)", "(out)", "(branch)", "(branch)"]
    assert dict(table)["now"] == ["(out)", "(trunk)", "(trunk)", "(trunk)"]
    words = view.say_known(tim_cook, ways, 0)
    assert "After layer 1, “[CLS]” can know 8 of 8 trunk tokens and 0 of 3 branches." in words
    assert "From layer 2 on, “[CLS]” can know all that stands in the tree." in words
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


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return models_in(tmp_path_factory.mktemp("models"))


def test_page_follows_a_triple_to_cls_and_to_another_token(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    at = opened("paths.py")
    write(at, "患者行胃镜检查未见异常")
    until(at, lambda: "can differ from layer 2 on" in said(at))
    assert "which is rounding" in said(at)
    assert '<div class="kb-paths">' in drawn(at)
    tokens = next(box for box in at.selectbox if box.key.startswith("paths.token"))
    choose(at, tokens.key, 5)
    assert "can differ from layer 1 on" in said(at)


@pytest.mark.parametrize(
    ("language", "title"), [("en", "Every triple, and “[CLS]”"), ("zh", "各三元组与“[CLS]”")]
)
def test_page_names_a_token_without_its_number(models, monkeypatch, language, title):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    monkeypatch.setenv("KBERT_LANGUAGE", language)
    monkeypatch.setattr("app.texts.language_of", default_language)
    at = write(opened("paths.py"), "患者行胃镜检查未见异常")
    until(at, lambda: title in said(at))


def test_page_shows_how_far_it_is_and_what_was_found_when_stopped(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    go_on = threading.Event()
    go_on.set()

    def slowly(case, window):
        for found in stream_influence(case, window=window):
            yield found
            go_on.wait(60)

    monkeypatch.setattr(Case, "at_once", lambda _: 1)
    monkeypatch.setattr("kbert_core.explain.influence.stream_influence", slowly)
    at = opened("paths.py")
    go_on.clear()
    write(at, "患者行胃镜检查未见异常。")
    until(at, lambda: "1 of 2 done" in str([item.proto.text for item in at.get("progress")]))
    assert '<div class="kb-paths">' not in drawn(at)
    at.button(key="paths.stop_run").click().run()
    go_on.set()
    until(at, lambda: '<div class="kb-paths">' in drawn(at))
    assert "Stopped; what was found by then is shown." in said(at)
    triples = next(box for box in at.selectbox if box.key.startswith("paths.triple"))
    assert len(triples.options) == 1
    at.button(key="paths.run.again").click().run()
    until(at, lambda: '<div class="kb-paths">' in drawn(at))
    triples = next(box for box in at.selectbox if box.key.startswith("paths.triple"))
    assert len(triples.options) == 2


def test_page_without_a_triple_shows_what_a_token_can_know(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    at = write(opened("paths.py"), "好转")
    until(at, lambda: "No triple of medical_zh stands in this text" in said(at))
    assert "From layer 1 on, “[CLS]” can know all" in said(at)


def test_page_without_a_model_shows_what_can_be_and_asks_for_one(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    at = opened("paths.py", **{"lab.example": FIGURE_2})
    assert "Nothing is measured without a model" in said(at)
    assert "can know" in said(at)
    assert 'class="kb-p-branch"' in drawn(at)


def test_page_without_a_model_follows_no_link_that_is_blocked(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    at = opened("paths.py", **{"lab.example": FIGURE_2})
    at.session_state["paths.token.14"] = 2
    at.run()
    free = said(at)
    text = at.session_state[intervening.TEXT]
    linkless = InterventionLog(PRESETS["no_link"])
    at.session_state[intervening.LOGS] = {text: linkless}
    at.run()
    assert not at.exception, at.exception
    assert free != said(at)


def test_page_of_an_unreadable_text_says_so(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    at = write(opened("paths.py"), " ")
    assert "no text" in said(at)
