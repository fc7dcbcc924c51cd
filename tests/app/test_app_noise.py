"""Knowledge noise: the dial, the curve, and the sentence that says what they show."""

import pytest
import torch
from conftest import tiny_config, tiny_tokenizer
from explaining_pages import models_in, opened, said, until, write
from transformers import BertForSequenceClassification

from app.models import read_model
from app.texts import t
from app.view_models import noise as view
from app.view_models.prediction import percent
from app.view_models.targets import answer_name
from kbert_core import Card, KnowledgeGraph, Pipeline, Triple
from kbert_core.errors import OptionError
from kbert_core.explain.case import Case, Outcome, Target
from kbert_lab.explain.noise import ABLATIONS, NoiseCurve, Point, noise_curve

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
    reading, _, probability, moved, distance = view.dial(found, 4, 2, info, "").values()
    assert reading == [t("BERT, no knowledge"), *map(view.way_name, WAYS)]
    for number, way in enumerate(WAYS, start=1):
        point = next(p for p in found.points if (p.ablation, p.count, p.seed) == (way, 4, 2))
        assert moved[number] == percent(point.moved)
        assert distance[number] == percent(point.variation)
        assert probability[number] == percent(point.probability)


def test_a_prediction_that_noise_flips_is_marked(info):
    _, answer, *_ = view.dial(made_up((0.1, 0.2, 0.3), flips=WAYS[1:2]), 16, 1, info, "").values()
    assert answer == ["A", "A", "B ⚡", "A"]


def test_a_system_that_reads_in_one_way_is_compared_with_no_other(info):
    curve = made_up((0.2,), ways=("plain-text",))
    value = t("{value} ({way})", value="20.0 %", way=t("triples as plain text"))
    assert view.say_dial(curve, 16, 1) == t(
        "Here this noise moves the prediction by {values}.", values=value
    )
    assert value in view.say_curve(curve)
    assert t("All are moved alike here.") not in view.say_curve(curve)


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        ((0.1, 0.3, 0.4), t("K-BERT is moved least here.")),
        (
            (0.3, 0.31, 0.1),
            t("Here {way} is moved least, not K-BERT.", way=t("everything visible")),
        ),
        ((0.3, 0.31, 0.305), t("All are moved alike here.")),
        ((0.3, 0.31, 0.6), t("K-BERT and {way} are moved least here.", way=t("hard positions"))),
    ],
)
def test_sentence_names_the_way_that_noise_moves_least(moved, words):
    assert words in view.say_curve(made_up(moved))
    assert words in view.say_dial(made_up(moved), 16, 2)


def test_sentence_counts_the_draws_that_flip_the_prediction():
    words = view.say_curve(made_up((0.1, 0.2, 0.3), flips=WAYS[1:]))
    for way in WAYS[1:]:
        assert (
            t("{count} of {total} draws for {way}", count=2, total=2, way=view.way_name(way))
            in words
        )
    assert t("No draw flips the prediction.") in view.say_curve(made_up((0.1, 0.2, 0.3)))
    assert t("One text shows how noise works, not how often.") in words


def test_chart_has_a_line_and_a_band_a_way_and_the_dial(found):
    figure = view.chart(found, "moved", 4, "x")
    assert len(figure.data) == 2 * len(WAYS)
    lines = [line for line in figure.data if line.name]
    assert [line.name for line in lines] == [*map(view.way_name, WAYS)]
    assert lines[0].y[1] == pytest.approx(100 * found.spread(WAYS[0], 4, "moved").mean)
    assert len(figure.layout.shapes) == 1
    assert not view.chart(found, "moved", 3, "x").layout.shapes


def test_what_was_drawn_is_named_by_mention():
    columns = view.drawn([("胃镜", [Triple("胃镜", "部位", "入院")])])
    assert list(columns.values()) == [["胃镜"], ["部位 入院"]]


def test_answers_of_spans_are_named_by_their_text(info):
    assert answer_name("疾病 [3, 5), 治疗 [9, 12)", info, TEXT) == "“糖尿” 疾病, “布洛芬” 治疗"
    assert answer_name("疾病", info, TEXT) == "疾病"
    assert answer_name("O", info, TEXT) == "O (none)"


# The page


@pytest.fixture
def page(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    at = opened("explain.py", **{"explain.part": "noise"})
    return choose_task(at, "classify", "患者行胃镜检查未见异常")


def choose_task(at, task, text):
    """Another task in the Lab's scene, as a visitor chose it there."""
    at.session_state["lab.task"] = task
    at.session_state["lab.text"] = text
    at.run()
    assert not at.exception, at.exception
    return at


def table(at):
    return at.dataframe[0].value.to_dict("list")


def test_dial_draws_more_noise_and_other_noise(page):
    before = table(page)
    page.slider(key="explain.noise").set_value(9).run()
    assert not page.exception
    more = table(page)
    assert more != before
    page.number_input(key="explain.seed").set_value(2).run()
    assert table(page) != more
    page.slider(key="explain.noise").set_value(0).run()
    assert t("No noise: every reading has only its own triples.") in said(page)


def test_curve_is_drawn_in_the_background_and_told_in_a_sentence(page):
    page.button(key="explain.draw").click().run()
    until(page, lambda: t("One text shows how noise works, not how often.") in said(page))
    write(page, "患者行心电图检查未见异常")
    assert t("The scene has changed since the curve was drawn.") in said(page)


def test_a_curve_that_cannot_be_drawn_says_why(page, monkeypatch):
    page.slider(key="explain.noise").set_value(0).run()

    def refused(*_):
        raise OptionError("The model is gone.")

    monkeypatch.setattr("app.explained.case_of", refused)
    page.button(key="explain.draw").click().run()
    assert not page.exception
    assert "The model is gone" in said(page)


def test_page_without_a_prediction_or_a_mention_says_what_to_do(page):
    choose_task(page, "tree", "患者行胃镜检查未见异常")
    assert t(
        "There is no prediction to explain: nothing in the Lab predicts. Choose a task and a "
        "model there."
    ) in said(page)
    choose_task(page, "classify", "好转")
    assert t(
        "No entity of {graph} is named in this text, so there is nowhere to hang noise. Choose "
        "another text or graph in the Lab.",
        graph="medical_zh",
    ) in said(page)
