"""In Chinese no page shows an English text that has a Chinese one."""

import re
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict
from sessions import do, write
from streamlit.testing.v1 import AppTest

from app import language, services
from kbert_lab.lab import texts
from kbert_lab.lab.commands import Options

PAGES = Path(__file__).resolve().parents[2] / "app" / "app_pages"
PATIENCE = 180
FRAGMENT = re.compile(r"\{+[^}]*\}+")


def fragments():
    """What English texts read between their placeholders, as far as it is told by its words."""
    found = {}
    for english, chinese in texts.translations("zh").items():
        for part in FRAGMENT.split(english):
            words = part.strip(" .,;:()")
            told = len(words) > 9 and re.search(r"[a-z]{3,} [a-z]{2,}", words)
            if told and words not in chinese:
                found[words] = english
    return found


def shown(at):
    """Every text of a page, as it is sent to the browser."""
    said, left = [], [at._tree]
    while left:
        node = left.pop()
        left += list(getattr(node, "children", {}).values())
        proto = getattr(node, "proto", None)
        if proto is not None and hasattr(proto, "DESCRIPTOR"):
            left_over = [MessageToDict(proto)]
            while left_over:
                value = left_over.pop()
                if isinstance(value, dict):  # a component's program isn't read by anybody
                    left_over += [part for key, part in value.items() if key not in PROGRAM]
                elif isinstance(value, list):
                    left_over += value
                elif isinstance(value, str):
                    said.append(value.replace("\\", ""))
    return "\n".join(said)


PROGRAM = ("jsContent", "cssContent", "jsSourcePath", "cssSourcePath")


@pytest.fixture
def chinese(monkeypatch):
    assert language.PARAMETER  # imported: it sets the hook
    monkeypatch.setattr(texts, "language_of", lambda: "zh")
    monkeypatch.setattr(services, "model_readme", lambda path: None)  # models' cards are English


def visit(page):
    at = AppTest.from_file(PAGES / page, default_timeout=PATIENCE).run()
    return calm(at)


def calm(at):
    assert not at.exception
    page, english = shown(at), fragments()
    assert re.search("[\u4e00-\u9fff]{4}", page)
    assert [(key, words) for words, key in english.items() if words in page] == []
    return at


def test_english_would_be_noticed():
    at = AppTest.from_file(PAGES / "about.py", default_timeout=PATIENCE).run()
    page = shown(at)
    assert sum(words in page for words in fragments()) > 10


def registered():
    """The pages of the app, as its entry names them."""
    return re.findall(r'"app_pages/(\w+\.py)"', (PAGES.parent / "router.py").read_text("utf-8"))


@pytest.mark.parametrize("page", registered())
def test_a_page_in_chinese_shows_no_english_text(chinese, page):
    visit(page)


def test_the_lab_in_chinese_stays_chinese_whatever_is_chosen(chinese):
    at = visit("lab.py")
    at.number_input(key="lab.max_triples").set_value(1).run()
    do(at, Options({"visible": "all", "positions": "hard"}))
    calm(at.run())
    for name in ("systems", "parts", "models", "free"):
        do(at, compare=name)
        calm(at.run())
    at.number_input(key="lab.max_triples").set_value(0).run()
    calm(at)
    write(at, "")
    calm(at.run())


def test_the_lab_in_chinese_names_what_is_missing_without_models(chinese, monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    calm(visit("lab.py"))
    calm(visit("about.py"))


@pytest.mark.parametrize("view", ["import", "history", "difference", "check"])
def test_the_knowledge_page_in_chinese_stays_chinese(chinese, view):
    at = visit("knowledge.py")
    at.session_state["knowledge.view"] = view
    calm(at.run())
