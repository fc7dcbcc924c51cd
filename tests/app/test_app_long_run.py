"""How a page shows a long run."""

import threading

import pytest
from streamlit.testing.v1 import AppTest

from app.background import Run
from kbert_core import KBertError

PATIENCE = 20


def page():
    import streamlit as st

    from app.app_pages.long_run import follow

    follow(st.session_state["run"], lambda now: st.write(*now.results), key="test")


@pytest.fixture
def show():
    """Show a run on a page of its own."""
    started = []

    def shown(make):
        run = Run.start(make, visitor="anna")
        started.append(run)
        at = AppTest.from_function(page, default_timeout=120)
        at.session_state["run"] = run
        return at, run

    yield shown
    for run in started:
        run.stop()
        run.join(PATIENCE)


def test_a_run_that_is_done_shows_its_results_and_nothing_else(show):
    at, run = show(lambda: ["one", "two"])
    run.join(PATIENCE)
    at.run()
    assert [item.value for item in at.markdown] == ["one two"]
    assert not at.button
    assert not at.caption


def test_an_error_of_the_data_is_said_and_a_bug_surfaces(show):
    def refused():
        raise KBertError("a <b>word</b> that can't be read")
        yield

    at, run = show(refused)
    run.join(PATIENCE)
    at.run()
    assert "can't be read" in at.error[0].value
    assert "<b>" not in at.error[0].value

    def bug():
        raise ZeroDivisionError("a bug")
        yield

    at, run = show(bug)
    run.join(PATIENCE)
    at.run()
    assert at.exception


def test_a_page_waits_no_longer_than_for_what_it_draws(monkeypatch):
    def effects_page():
        import streamlit as st

        from app import state
        from app.app_pages.long_run import begin
        from tests.app.test_app_long_run import two_steps

        state.visitor()
        run = begin("run", (), two_steps, enough=lambda look: "effects" in look.results)
        st.write(run.look().results)

    monkeypatch.setattr("app.app_pages.long_run.AT_FIRST", PATIENCE)
    at = AppTest.from_function(effects_page, default_timeout=120).run()
    assert not at.exception
    run = at.session_state["run"][1]
    assert not run.look().ended and run.look().results == ("effects",)
    HOLD.set()
    run.join(PATIENCE)


HOLD = threading.Event()


def two_steps():
    """The effects, and after a long time their shares."""
    yield "effects"
    HOLD.wait(PATIENCE)
    yield "shares"
