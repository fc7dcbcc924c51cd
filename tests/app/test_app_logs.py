"""Nothing that a visitor types is logged: not by our code, not by what it is built on."""

import io
import logging
import threading
from pathlib import Path

import pytest
from load.visitor import Visitor
from served import served
from streamlit.testing.v1 import AppTest

from app import logs

SECRET = "vertraulich"
LAB = Path(__file__).resolve().parents[2] / "app" / "app_pages" / "lab.py"


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
def quiet():
    """The app's way of logging errors, for one test."""
    before = logging.getLogRecordFactory(), threading.excepthook, logs.sys.excepthook
    logs.begin()
    yield
    logging.setLogRecordFactory(before[0])
    threading.excepthook, logs.sys.excepthook = before[1:]


def test_a_sentence_typed_in_the_lab_is_in_no_log(everything_logged):
    at = AppTest.from_file(LAB, default_timeout=120).run()
    at.text_area(key="lab.text").set_value(f"患者{SECRET}行胃镜检查").run()
    at.text_input(key="lab.add_head").set_value(f"{SECRET}")
    at.text_input(key="lab.add_relation").set_value("类别")
    at.text_input(key="lab.add_tail").set_value(f"疾病{SECRET}")
    at.button[[b.label for b in at.button].index("Add")].click().run()
    assert not at.exception
    assert SECRET in at.session_state["lab.text"]
    assert everything_logged.getvalue()
    assert SECRET not in everything_logged.getvalue()


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


def test_the_environment_asks_for_messages(monkeypatch, quiet):
    monkeypatch.setenv("KBERT_LOG_MESSAGES", "1")
    logging.setLogRecordFactory(logging.LogRecord)
    logs.begin()
    assert logging.getLogRecordFactory() is logging.LogRecord


def test_an_error_in_a_thread_says_no_message_either(quiet, capsys):
    def work():
        raise ValueError(SECRET)

    thread = threading.Thread(target=work, name="long run")
    thread.start()
    thread.join()
    said = capsys.readouterr().err
    assert "Error in long run" in said
    assert "ValueError (message not logged" in said
    assert SECRET not in said


def test_causes_that_go_round_come_to_an_end():
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert logs.without_messages(one).count("ValueError") == 2


def test_a_server_at_debug_keeps_nothing_of_what_is_typed(app_for_many):
    with Visitor(app_for_many.stream, f"text={SECRET}") as page:
        page.open()
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
    assert "Running script" in app_for_many.written()  # of the level DEBUG
    kept = [path for path in app_for_many.log.parent.rglob("*") if path.is_file()]
    assert app_for_many.log in kept
    assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []


FAILS = """
import sys
sys.path.insert(0, {root!r})
import streamlit as st
from app import logs
logs.begin()
text = st.text_area("text", key="text")
if text:
    raise ValueError(f"can't read {{text}}")
"""


def test_a_server_writes_where_a_bug_is_and_not_what_was_typed(tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(FAILS.format(root=str(LAB.parents[2])), encoding="utf-8")
    with (
        served(tmp_path, script=str(script)) as server,
        Visitor(server.stream) as page,
    ):
        page.open()
        page.write("text", SECRET)
        page.run()
        assert page.problems
        assert SECRET not in str(page.problems)
        written = server.written()
    assert "ValueError (message not logged" in written
    assert "fails.py" in written
    assert SECRET not in written
