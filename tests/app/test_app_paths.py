"""Paths of knowledge: what the page says and draws."""

import threading

import numpy as np
import pytest
from explaining_pages import models_in, opened, said, until, write

from kbert_core import InjectionOptions, KnowledgeGraph, Triple
from kbert_core.explain.case import Case
from kbert_lab.explain.influence import influence, stream_influence
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import explaining as view

TEXT = "患者有糖尿病史给予布洛芬口服好转"
DISEASE = Triple("糖尿病", "类别", "疾病")
GRAPH = KnowledgeGraph([DISEASE, Triple("布洛芬", "类别", "<治疗>")])


@pytest.fixture(scope="module")
def found(classifier):
    return influence(
        Case.of(classifier, TEXT, graph=GRAPH, options=InjectionOptions(2, tail_only=True))
    )


def test_map_of_a_triple_has_a_row_a_token_and_a_column_a_layer(found):
    figure = view.change_chart(found, 0)
    changes, own = (np.array(trace.z, float) for trace in figure.data)
    assert changes.shape == own.shape == (len(found.flat), found.layers + 1)
    assert np.isnan(changes[0, :2]).all() and not np.isnan(changes[0, 2:]).any()  # [CLS]
    here = list(found.own(0))
    assert not np.isnan(own[here]).any() and np.isnan(np.delete(own, here, 0)).all()
    mention = here[0] - 1
    for layer in range(1, found.layers + 1):
        share = 100 * float(found.measured[0, layer, mention])
        assert changes[mention, layer] == pytest.approx(share)
    assert not any("<治疗>" in name for name in figure.layout.yaxis.ticktext)


def test_words_count_the_tokens_that_a_triple_can_have_come_to(found):
    words = view.say_reach(found, 0)
    assert words.startswith(  # 糖尿病, then the trunk, then the other branch
        f"The information of {DISEASE} can reach 22 of 22 other tokens, the last of them in layer "
        "3. It changes “"
    )


# The page


@pytest.fixture
def models(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models_in(tmp_path_factory.mktemp("models"))))


def page():
    return opened("explain.py", **{"explain.part": "paths"})


def test_page_shows_how_far_it_is_and_what_was_found_when_stopped(models, monkeypatch):
    go_on = threading.Event()
    go_on.set()

    def slowly(case, window):
        for found in stream_influence(case, window=window):
            yield found
            go_on.wait(60)

    monkeypatch.setattr(Case, "at_once", lambda _: 1)
    monkeypatch.setattr("app.app_pages.explain_parts.stream_influence", slowly)
    at = page()
    go_on.clear()
    write(at, "患者行胃镜检查未见异常。")
    counted = t("{done} of {total} done", done="1", total="2")
    until(at, lambda: counted in str([item.proto.text for item in at.get("progress")]))
    assert not at.get("plotly_chart")
    at.button(key="explain.paths.stop_run").click().run()
    go_on.set()
    until(at, lambda: at.get("plotly_chart"))
    assert t("Stopped; what was found by then is shown.") in said(at)
    triples = lambda: at.selectbox[-1].options  # noqa: E731
    assert len(triples()) == 1
    at.button(key="explain.paths.again").click().run()
    until(at, lambda: at.get("plotly_chart"))
    assert len(triples()) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "好转",
            "This text contains no triple of medical_zh, so there is no knowledge to explain.",
        ),
        (" ", "The text in the Lab is empty, or over 5,000 characters."),
    ],
)
def test_page_of_a_text_without_a_triple_says_so(models, text, words):
    assert words in said(write(page(), text))
