"""The page as a file: what is kept is what was shown."""

import base64
import hashlib
import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

from app.export import Page, Side, page_html
from kbert_core import Ablation, Card, InjectionOptions, KnowledgeGraph, Triple
from kbert_core.kbert.interventions import Intervention, Tokens, intervene
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.surface_forms import NameRules
from kbert_core.tasks import ClassPrediction, Filling, MaskPrediction, NerPrediction, Span
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.scene import GraphRef, Scene
from kbert_lab.lab.texts import speaking, t
from kbert_lab.lab.views.matrix import PART_BLOCKED

HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "=1+1", "$x_2$ 患者\\")
TEXT = "Tim Cook is visiting Beijing now"
CAPITAL = Triple("Beijing", "capital", "China")


@pytest.fixture
def hostile(run):
    """A page on which whatever people give is hostile; without a model."""
    triples = [Triple("Tim Cook", relation, tail) for relation in HOSTILE for tail in HOSTILE]
    triples += [Triple(name, "is", "b") for name in (*HOSTILE, "Tim Cook")]
    graph = KnowledgeGraph(triples, name=HOSTILE[1])
    text = f"Tim Cook {' '.join(HOSTILE)} now"
    options = InjectionOptions(6)
    edits = (Edit("add", Triple(HOSTILE[0], HOSTILE[1], HOSTILE[0])),)
    scene = Scene((text,), "words", GraphRef("f", graph.name), edits, options)
    fewer = graph.remove(next(iter(graph)))
    before = Side("<i>before", scene, fewer, run(fewer, text, max_triples=6))
    now = Side("<i>now", scene, graph, run(graph, text, max_triples=6))
    return Page(now, before, task="<u>task")


@pytest.fixture
def plain(graph, run):
    scene = Scene((TEXT,), "words", GraphRef("f", "figure 2"))
    before = Side("before", scene, KnowledgeGraph(), run(KnowledgeGraph()))
    return Page(Side("now", scene, graph, run(graph)), before)


def with_prediction(page, now, was=None, **card):
    sides = [
        replace(side, trace=replace(side.trace, prediction=own))
        for side, own in ((page.now, now), (page.before, was))
    ]
    return replace(page, now=sides[0], before=sides[1], info=ModelInfo("m/x", "<b>x", Card(**card)))


class Reader(HTMLParser):
    """Elements, what they ask for, scripts, and the text of a page."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.asked, self.handlers, self.text = [], [], [], ""
        self.data, self.scripts, self.policy = [], [], ""
        self._into = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.asked += [v for k, v in attrs if k in ("src", "href", "action", "data", "srcset")]
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"]
        if tag == "script":
            self._into = self.data if attrs == [("type", "application/json")] else self.scripts

    def handle_endtag(self, tag):
        if tag == "script":
            self._into = None

    def handle_data(self, data):
        if self._into is None:
            self.text += data
        else:
            self._into.append(data)


def page_of(page):
    return page_html(page).decode()


def matrices(found):
    """The data of each matrix in a page."""
    return [json.loads(text) for text in found.data]


def test_page_holds_all_asks_for_nothing_and_may_run_its_one_script(hostile):
    page = page_of(hostile)
    found = Reader(page)
    assert not {"iframe", "object", "embed", "link", "form", "base", "img"} & {*found.tags}
    assert not found.asked and not found.handlers and len(found.scripts) == 1
    digest = base64.b64encode(hashlib.sha256(found.scripts[0].encode()).digest()).decode()
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src "
    assert found.policy == f"{policy}'sha256-{digest}'"
    assert "url(" not in page.split("<script>")[0] and "@import" not in page
    for given in (*hostile.now.scene.sentences, "<u>task"):
        assert given in found.text
    for triple in hostile.now.trace.used:
        assert triple.tail in found.text
    for data in matrices(found):
        assert data["n"] in (len(hostile.now.trace.rows[0]), len(hostile.before.trace.rows[0]))


def test_page_switches_between_before_and_now_and_marks_what_changed(plain, run, graph):
    gone = replace(
        plain,
        before=replace(plain.before, trace=run(graph)),
        now=replace(plain.now, trace=run(graph.remove(CAPITAL))),
    )
    page = page_of(gone)
    before, now = page.split('class="kb-now"')
    assert before.count("kb-branch kb-removed") == 0
    assert now.count("kb-branch kb-removed") == 1
    assert [data["n"] for data in matrices(Reader(page))] == [
        *(len(run(graph).rows[0]), len(gone.now.trace.rows[0]))
    ]
    assert 'id="kb-now" checked' in page and 'id="kb-before"' in page
    alone = page_of(replace(gone, before=None))
    assert 'id="kb-now"' not in alone and len(matrices(Reader(alone))) == 1
    other = replace(gone, before=replace(gone.before, trace=run(graph, "another text")))
    assert 'id="kb-now"' not in page_of(other), "texts that differ aren't laid over each other"


def test_page_tells_text_options_edits_graph_and_versions(plain):
    scene = replace(
        plain.now.scene,
        options=InjectionOptions(
            7, True, ("CEO",), not_relations=("x",), names=NameRules.of(["case"])
        ),
        ablation=Ablation("hard", "all"),
        edits=(Edit("switch_off", Triple("Tim Cook", "CEO", "Apple")),),
    )
    page = replace(plain, now=replace(plain.now, scene=scene))
    text = Reader(page_of(page)).text
    for wanted in (
        *(TEXT, "7 triples per mention, tail only", "only CEO", "without x"),
        *("switched off (Tim Cook, CEO, Apple)", "figure 2", "hard positions", torch.__version__),
    ):
        assert wanted in text


def test_page_tells_what_interventions_did(plain):
    made = (Intervention("block", Tokens("trunk"), Tokens("branches"), layers=(1,)),)
    trace = plain.now.trace
    visible = intervene(trace.visible, trace.rows, made, 2).layers
    reading = replace(trace.reading, config=replace(trace.reading.config, interventions=made))
    trace = replace(trace, reading=reading, visible_layers=visible, visible=visible[-1])
    scene = replace(plain.now.scene, interventions=made)
    page = page_of(replace(plain, now=replace(plain.now, scene=scene, trace=trace)))
    assert "layer 1" in Reader(page).text
    assert matrices(Reader(page))[0]["cells"] != matrices(Reader(page))[1]["cells"]
    assert PART_BLOCKED in base64.b64decode(matrices(Reader(page))[1]["cells"])


def test_page_of_a_label_of_fillings_and_of_entities(plain):
    now = ClassPrediction("a", {"a": 0.7, "<b>": 0.3})
    was = ClassPrediction("<b>", {"a": 0.1, "<b>": 0.9})
    found = Reader(page_of(with_prediction(plain, now, was)))
    assert "70.0 %" in found.text and "<b>" in found.text and "+60.0" in found.text
    mask = MaskPrediction((Filling(0, 6, (("<词>", 0.5),)),))
    assert "<词>" in Reader(page_of(with_prediction(plain, mask))).text
    spans = (NerPrediction((Span(0, 3, "<i>", "Tim", 0.5),), ()), NerPrediction((), ()))
    assert "<i>" in Reader(page_of(with_prediction(plain, *spans))).text


def test_page_speaks_the_language_it_was_asked_for_in(plain):
    with speaking("zh"):
        page = page_of(plain)
    assert '<html lang="zh">' in page and t("Visible matrix") not in Reader(page).text
    assert '<html lang="en">' in page_of(plain)


def test_attention_is_kept_as_shown(plain):
    count = len(plain.now.trace.rows[0])
    weights = np.tile(np.arange(count) / sum(range(count)), (count, 1))
    seen = replace(plain, now=replace(plain.now, attention=lambda: weights), map="Layer 1")
    found = Reader(page_of(seen))
    kinds = [data["kind"] for data in matrices(found)]
    assert kinds == ["visible", "visible", "attention"]  # before, then now
    assert "Layer 1" in found.text
