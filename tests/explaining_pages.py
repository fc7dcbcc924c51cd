"""What the tests of the pages share: a tiny model, a sentence, what a page shows."""

import time
from pathlib import Path

import sessions
from conftest import BIO, save_checkpoint
from streamlit.testing.v1 import AppTest
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

from kbert_core import Card

PAGES = Path(__file__).resolve().parents[1] / "app" / "app_pages"
PATIENCE = 240
FIGURE_2 = "Figure 2 of the paper, words as tokens"


def tagger(folder, knowledge=(), **sizes):
    labels = {"id2label": dict(enumerate(BIO)), "label2id": {b: i for i, b in enumerate(BIO)}}
    card = Card("ner", knowledge=knowledge, notes={"data": "d", "encoder": "tiny"})
    return save_checkpoint(folder, AutoModelForTokenClassification, card, **labels, **sizes)


def classifier(folder, task, knowledge=(), **notes):
    labels = {"id2label": {0: "0", 1: "1"}, "label2id": {"0": 0, "1": 1}}
    card = Card(task, knowledge=knowledge, notes=notes)
    return save_checkpoint(folder, AutoModelForSequenceClassification, card, **labels)


def models_in(root):
    """A models folder with a tiny tagger and a tiny classifier, both with knowledge."""
    tagger(root / "tags-zh-kbert", ("kg",))
    classifier(root / "moods-zh-kbert", "classify", ("kg",), data="shopping")
    return root


def opened(page="lab.py", query=(), **state):
    """A page as a new visitor sees it, with some of its address or their state set before."""
    at = AppTest.from_file(PAGES / page, default_timeout=PATIENCE)
    for name, value in dict(query).items():
        at.query_params[name] = value
    for key, value in state.items():
        at.session_state[key] = value
    at.run()
    assert not at.exception, at.exception
    return at


def opened_on(page, folder, graph, text):
    """A page as a visitor sees it who has chosen a model's folder, a graph and a text before."""
    at = opened(page)
    sessions.do(sessions.add(at, graph.fingerprint, graph), graph=graph.fingerprint)
    sessions.read_by(at, folder)
    return write(at, text)


def said(at):
    """Every text of a page that is no HTML."""
    parts = (at.caption, at.info, at.error, at.warning, at.success, at.toast)
    parts += (at.markdown, at.subheader, at.code)
    return "\n".join(str(item.value) for part in parts for item in part).replace("\\", "")


def drawn(at):
    """Every piece of HTML on a page."""
    return "\n".join(str(item.proto.body) for item in at.get("html"))


def write(at, text):
    """Put another text into the Lab's scene, as a visitor did there."""
    sessions.write(at, text).run()
    assert not at.exception, at.exception
    return at


def choose(at, key, value):
    at.selectbox(key=key).set_value(value).run()
    assert not at.exception
    return at


def until(at, ready, seconds=60):
    """Look at the page again until something is so."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.3)
        at.run()
        assert not at.exception, at.exception
