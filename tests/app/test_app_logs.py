"""Nothing that a visitor types is logged: not by our code, not by what it is built on."""

import io
import logging

import pytest
from load.visitor import Visitor
from streamlit.testing.v1 import AppTest

from app import logs

SECRET = "vertraulich"
PROXIED = {"X-Forwarded-For": "203.0.113.9"}


@pytest.fixture
def everything_logged():
    """All that any logger of this process says, at DEBUG; read it when the test has run."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    handler.setLevel(logging.DEBUG)
    loggers = [logging.getLogger(), *map(logging.getLogger, logging.root.manager.loggerDict)]
    before = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        logger.addHandler(handler)
    yield said
    for logger, level in before:
        logger.setLevel(level)
        logger.removeHandler(handler)


@pytest.fixture
def quiet(everything_logged):
    """The app's way of logging errors, for one test."""
    logs.begin()
    yield
    for name in (None, *logging.root.manager.loggerDict):
        logging.getLogger(name).removeFilter(logs._FILTER)


def test_an_error_is_logged_without_its_message(quiet, everything_logged):
    def inner():
        raise ValueError(f"can't read {SECRET}")

    try:
        try:
            inner()
        except ValueError as error:
            raise KeyError(SECRET) from error
    except KeyError:
        logging.getLogger("streamlit.error_util").exception("Uncaught app execution")
    said = everything_logged.getvalue()
    assert SECRET not in said
    assert "KeyError (message not logged" in said
    assert "ValueError (message not logged" in said
    assert "inner()" in said
    assert "Uncaught app execution" in said


def test_the_environment_asks_for_messages(monkeypatch, everything_logged):
    monkeypatch.setenv("KBERT_LOG_MESSAGES", "1")
    logs.begin()
    logging.getLogger("streamlit").error("it failed", exc_info=ValueError(SECRET))
    assert f"ValueError: {SECRET}" in everything_logged.getvalue()


def test_a_bug_on_a_page_is_logged_without_what_was_typed(quiet, everything_logged):
    def page():
        import streamlit as st

        if text := st.text_area("text", key="text"):
            raise ValueError(f"can't read {text}")

    at = AppTest.from_function(page, default_timeout=120).run()
    at.text_area(key="text").set_value(SECRET).run()
    assert at.exception
    said = everything_logged.getvalue()
    assert "ValueError (message not logged" in said and "in page" in said
    assert SECRET not in said


def test_causes_that_go_round_come_to_an_end():
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert logs.without_messages(one).count("ValueError") == 2


def test_a_server_at_debug_keeps_nothing_of_what_is_typed_behind_a_proxy(app_here):
    with Visitor(app_here.stream, f"text={SECRET}", headers=PROXIED) as page:
        page.open()
        page.unfold("lab.drawer")
        page.press("lab.open_graph")
        assert page.has("lab.encoding")
        assert not page.has("lab.path") and not page.has("lab.open_model")
        page.write("lab.text", f"患者{SECRET}行胃镜检查")
        page.run()
        page.write("lab.add_head", SECRET)
        page.write("lab.add_relation", "类别")
        page.write("lab.add_tail", f"疾病{SECRET}")
        page.press("FormSubmitter:lab.add-Add")
        assert SECRET in "".join(page.tree())
        page.open("knowledge")
        page.write("knowledge.text", SECRET)
        page.run()
    assert "Running script" in app_here.written()  # of the level DEBUG
    kept = [path for path in app_here.log.parent.rglob("*") if path.is_file()]
    assert app_here.log in kept
    assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []


def test_who_sits_at_the_machine_is_offered_paths(app_here):
    with Visitor(app_here.stream) as page:
        page.open()
        page.unfold("lab.drawer")
        page.press("lab.open_graph")
        assert page.has("lab.path") and page.has("lab.open_model")
