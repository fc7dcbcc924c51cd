"""The language is each visitor's own: chosen, asked by the address, or the browser's."""

import importlib
from pathlib import Path

import pytest
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.testing.v1 import AppTest

from app import language
from kbert_lab.lab import texts

MAIN = Path(__file__).resolve().parents[2] / "app" / "router.py"
PATIENCE = 180


@pytest.fixture(autouse=True)
def undisturbed(monkeypatch):
    """The hook and the environment are as they were afterwards."""
    monkeypatch.setattr(texts, "language_of", texts.default_language)
    monkeypatch.delenv("KBERT_LANGUAGE", raising=False)


def visit(asked=None):
    at = AppTest.from_file(MAIN, default_timeout=PATIENCE)
    if asked:
        at.query_params["lang"] = asked
    return shown(at)


def shown(at, last="en"):
    """Run the page.

    Args:
        at: the visitor.
        last: the language they read before: AppTest, which plays the browser,
            names the options chosen so far in it.
    """

    def of_page_or_browser():
        return language.current() if get_script_run_ctx(suppress_warning=True) else last

    texts.language_of = of_page_or_browser
    at.run()
    assert not at.exception
    return at


def title(at):
    return at.text_area(key="lab.text").label


def test_a_visitor_reads_english_where_nothing_says_otherwise():
    at = visit()
    assert title(at) == "Sentence"
    assert at.segmented_control(key="app.language_chooser").value == "en"
    assert "lang" not in at.query_params


@pytest.mark.parametrize(
    ("asked", "label"), [("zh", "句子"), ("en", "Sentence"), ("x", "Sentence")]
)
def test_the_address_says_which_language(asked, label):
    assert title(visit(asked)) == label


@pytest.mark.parametrize(
    ("locale", "label"),
    [("zh-CN", "句子"), ("zh", "句子"), ("de-DE", "Sentence"), (None, "Sentence")],
)
def test_the_browsers_language_is_the_default(monkeypatch, locale, label):
    monkeypatch.setattr(type(st.context), "locale", property(lambda self: locale))
    assert title(visit()) == label


def test_the_environments_language_is_for_browsers_of_others(monkeypatch):
    monkeypatch.setenv("KBERT_LANGUAGE", "zh")
    assert title(visit()) == "句子"
    assert title(visit("en")) == "Sentence"


def test_choosing_a_language_changes_the_page():
    at = visit()
    at.segmented_control(key="app.language_chooser").set_value("zh")
    at = shown(at)
    assert title(at) == "句子"
    assert at.session_state["app.language"] == "zh"
    at.segmented_control(key="app.language_chooser").set_value("en")
    at = shown(at, last="zh")
    assert title(at) == "Sentence"
    assert at.session_state["app.language"] == "en"


def test_two_visitors_each_read_their_own_language():
    one, other = visit("zh"), visit("en")
    for _ in range(2):
        assert title(shown(one, last="zh")) == "句子"
        assert title(shown(other)) == "Sentence"


def test_the_texts_ask_for_the_visitors_language_once_the_entry_has_run():
    importlib.reload(language)  # as the first visitor's run does
    assert texts.language_of is language.current


def test_outside_a_page_nobody_is_asked():
    assert language.current() == "en"
