"""Knowledge noise: the dial, the curve, and the sentence that says what they show."""

import pytest
import torch
from conftest import tiny_config, tiny_tokenizer
from explaining_pages import choose, drawn, models_in, opened, said, until, write
from transformers import BertForSequenceClassification

from app.models import read_model
from app.view_models import noise as view
from app.view_models.targets import answer_name
from kbert_core import Card, KnowledgeGraph, Pipeline, Triple
from kbert_core.errors import OptionError
from kbert_core.explain.case import Case, Outcome, Target
from kbert_core.explain.noise import ABLATIONS, NoiseCurve, Point, noise_curve

TEXT = "患者有糖尿病史给予布洛芬口服好转"
GRAPH = KnowledgeGraph(
    [
        Triple("糖尿病", "类别", "疾病"),
        Triple("布洛芬", "类别", "治疗"),
        *(Triple("心电图", "部位", part) for part in ("心", "口", "检查", "<b>入院", "异常")),
    ]
)
WAYS = tuple(ABLATIONS)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return models_in(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def info(models):
    return read_model(str(models / "tags-zh-kbert"))


@pytest.fixture(scope="module")
def found():
    torch.manual_seed(0)
    model = BertForSequenceClassification(tiny_config(max_position_embeddings=256)).eval()
    tokenizer = tiny_tokenizer()
    tokenizer.model_max_length = 256
    reader = Pipeline(model, tokenizer, Card("classify"))
    return noise_curve(Case.of(reader, TEXT, graph=GRAPH), counts=(0, 4), seeds=(1, 2))


def made_up(moved, flips=(), ways=WAYS):
    """A curve in which each way is moved so far by 16 triples; some flip."""
    points = []
    for way, value in zip(ways, moved, strict=True):
        points.append(Point(way, 0, 1, 0, Outcome(0, "A"), 0.5, 0, 0.1, 0))
        for seed in (1, 2):
            answer = "B" if way in flips else "A"
            points.append(Point(way, 16, seed, 16, Outcome(0, answer), 0.5, 0, 0.3, value))
    return NoiseCurve(
        (TEXT,), Target("A"), Outcome(0, "A"), 0.5, ways, (0, 16), tuple(points), 9, 1
    )


def test_table_at_the_dial_has_plain_bert_and_every_way_of_reading(found, info):
    html = view.dial_html(found, 4, 2, info, "x")
    assert html.count("<tr>") == 1 + 1 + len(WAYS)
    point = next(p for p in found.points if (p.ablation, p.count, p.seed) == (WAYS[1], 4, 2))
    assert f"{point.moved:.2f}" in html and f"{point.variation:.2f}" in html
    assert "BERT, no knowledge" in html


def test_a_prediction_that_noise_flips_is_ringed(info):
    html = view.dial_html(made_up((0.1, 0.2, 0.3), flips=WAYS[1:2]), 16, 1, info, "x")
    assert html.count("kb-badge") == 1
    assert view.dial_html(made_up((0.1, 0.2, 0.3)), 16, 1, info, "x").count("kb-badge") == 0


def test_a_system_that_reads_in_one_way_is_compared_with_no_other(info):
    curve = made_up((0.2,), ways=("plain-text",))
    assert "0.20 for triples as plain text" in view.say_curve(curve)
    assert "least" not in view.say_curve(curve) and "alike" not in view.say_curve(curve)
    assert "triples as plain text" in view.dial_html(curve, 16, 1, info, "x")


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        ((0.1, 0.3, 0.4), "Here K-BERT as the paper has it is moved least."),
        ((0.3, 0.31, 0.1), "Here everything visible is moved least, and K-BERT as the paper"),
        ((0.3, 0.31, 0.305), "Here the three are moved alike."),
        ((0.3, 0.31, 0.6), "Here K-BERT as the paper has it and hard positions are moved least."),
    ],
)
def test_sentence_names_the_way_that_noise_moves_least(moved, words):
    assert words in view.say_curve(made_up(moved))


def test_sentence_counts_the_draws_that_flip_the_prediction():
    words = view.say_curve(made_up((0.1, 0.2, 0.3), flips=WAYS[1:]))
    assert "flips in 2 of 2 draws for hard positions" in words
    assert "2 of 2 draws for everything visible" in words
    assert "No draw flips the prediction." in view.say_curve(made_up((0.1, 0.2, 0.3)))
    assert "not how often" in words


def test_chart_has_a_line_and_a_band_a_way_and_the_dial(found):
    figure = view.chart(found, "moved", 4, "x")
    assert len(figure.data) == 2 * len(WAYS)
    lines = [line for line in figure.data if line.name]
    assert [line.name for line in lines] == ["K-BERT", "hard positions", "everything visible"]
    assert lines[0].y[1] == pytest.approx(found.spread(WAYS[0], 4, "moved").mean)
    assert len(figure.layout.shapes) == 1
    assert not view.chart(found, "moved", 3, "x").layout.shapes


def test_what_was_drawn_is_shown_without_its_html():
    html = view.drawn_html([("胃镜", [Triple("胃镜", "部位", "<b>入院")])])
    assert "部位 &lt;b&gt;入院" in html


def test_answers_of_spans_are_named_by_their_text(info):
    assert answer_name("疾病 [3, 5), 治疗 [9, 12)", info, TEXT) == "“糖尿” 疾病, “布洛芬” 治疗"
    assert answer_name("疾病", info, TEXT) == "疾病"
    assert answer_name("O", info, TEXT) == "O (none)"


# The page


@pytest.fixture
def page(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    return choose_task(opened("noise.py"), "classify", "患者行胃镜检查未见异常")


def choose_task(at, task, text):
    """Another task in the Lab's scene, as a visitor chose it there."""
    at.session_state["lab.task"] = task
    at.session_state["lab.text"] = text
    at.run()
    assert not at.exception, at.exception
    return at


def test_dial_draws_more_noise_and_other_noise(page):
    assert "unrelated triples stand in the text" in said(page)
    before = drawn(page)
    page.slider(key="noise.count").set_value(9).run()
    assert not page.exception
    assert drawn(page) != before
    more = drawn(page)
    page.number_input(key="noise.seed").set_value(2).run()
    assert drawn(page) != more
    page.slider(key="noise.count").set_value(0).run()
    assert "No noise: every reading has its own triples alone." in said(page)


def test_noise_is_drawn_from_another_graph(page):
    other = next(
        name
        for name, graph in page.session_state["lab.graphs"].items()
        if graph.name == "everyday_zh"
    )
    before = drawn(page)
    choose(page, "noise.source", other)
    assert drawn(page) != before


def test_curve_is_drawn_in_the_background_and_told_in_a_sentence(page):
    page.button(key="noise.draw").click().run()
    until(page, lambda: "noise moves the prediction by" in said(page))
    assert "mean of 3 draws" in said(page)
    write(page, "患者行心电图检查未见异常")
    assert "has changed since the curve was drawn" in said(page)


def test_a_curve_that_cannot_be_drawn_says_why(page, monkeypatch):
    page.slider(key="noise.count").set_value(0).run()

    def refused(*_):
        raise OptionError("The model is gone.")

    monkeypatch.setattr("app.explained.case_of", refused)
    page.button(key="noise.draw").click().run()
    assert not page.exception
    assert "The model is gone" in said(page)


def test_page_without_a_prediction_or_a_mention_says_what_to_do(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    at = opened("noise.py")
    choose_task(at, "tree", "患者行胃镜检查未见异常")
    assert "Choose a task and a model in the Lab" in said(at)
    choose_task(at, "classify", "好转")
    assert "nowhere to hang noise" in said(at)
