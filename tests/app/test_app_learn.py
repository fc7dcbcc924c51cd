"""The Learn page: predict, reveal, go on, and open the scene in the Lab."""

import re
from pathlib import Path

import pytest
from explaining_pages import PATIENCE, opened, said
from streamlit.testing.v1 import AppTest

from app import learning
from kbert_lab.lab import texts
from kbert_lab.lab.views.lessons import LESSONS

ROOT = Path(__file__).resolve().parents[2]


def predict(at, lesson, answer):
    at.radio(key=f"learn.answer.{lesson}").set_value(answer).run()
    at.button(key=f"learn.reveal.{lesson}").click().run()
    assert not at.exception
    return at


def go_to(at, lesson):
    at.pills(key="learn.lesson").set_value(lesson).run()
    assert not at.exception
    return at


def progress(at):
    return at.main.get("progress")[0].proto.text


def test_nothing_is_told_before_a_prediction_is_made():
    at = opened("learn.py")
    assert at.radio(key="learn.answer.tokens").value is None
    assert at.button(key="learn.reveal.tokens").disabled
    assert "How many tokens" in said(at)
    assert "14" not in said(at)
    assert progress(at) == "0 of 7 revealed, 0 as predicted"


def test_a_wrong_prediction_is_told_with_what_is_right():
    at = predict(opened("learn.py"), "tokens", "8")
    assert "You predicted 8. It is 14" in said(at)
    assert progress(at) == "1 of 7 revealed, 0 as predicted"
    at.button(key="learn.again.tokens").click().run()
    assert at.radio(key="learn.answer.tokens").value is None
    assert "14" not in said(at)
    assert progress(at) == "0 of 7 revealed, 0 as predicted"
    predict(at, "tokens", "14")
    assert progress(at) == "1 of 7 revealed, 1 as predicted"


def test_all_seven_can_be_worked_through():
    at = opened("learn.py")
    right = ["14", "CEO", "3", "Cook", "masked", "only_all", "Examine"]
    for lesson, answer in zip(LESSONS, right, strict=True):
        predict(go_to(at, lesson), lesson, answer)
    assert progress(at) == "7 of 7 revealed, 7 as predicted"
    assert "All seven are revealed" in said(at)
    assert at.button(key="learn.next").disabled
    assert "As predicted: 14" in said(go_to(at, "tokens"))
    assert at.button(key="learn.previous").disabled


def test_without_the_model_two_lessons_name_the_remedy_and_five_work(monkeypatch, tmp_path):
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    at = opened("learn.py")
    for lesson in LESSONS[:5]:
        assert go_to(at, lesson).radio(key=f"learn.answer.{lesson}").options
    for lesson in LESSONS[5:]:
        go_to(at, lesson)
        assert "This lesson runs the model medical-ner-kbert" in said(at)
        assert "git checkout -- models" in said(at)
        assert not at.radio


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_leads_to_the_notebook_on_its_subject(lesson, monkeypatch):
    for spoken in ("en", "zh"):
        monkeypatch.setattr(texts, "language_of", lambda spoken=spoken: spoken)
        name, address = re.fullmatch(
            r"\[(\w+\.ipynb)\]\((.+)\)", learning.notebook(lesson)
        ).groups()
        where = address.removeprefix(learning.NOTEBOOKS)
        assert where in (f"/{name}", f"/{spoken}/{name}")
        assert (ROOT / "notebooks" / where[1:]).is_file()
    address = learning.notebook("tokens")
    assert address in said(predict(opened("learn.py"), "tokens", "8"))


def test_the_page_speaks_chinese(monkeypatch):
    monkeypatch.setattr(texts, "language_of", lambda: "zh")
    at = predict(opened("learn.py"), "tokens", "8")
    assert "您预测的是 8，实际是 14" in said(at)
    assert "主干 8 个" in said(at)
    predict(go_to(at, "hurts"), "hurts", "Disease")
    assert "用错误的三元组：Examine" in said(at)


# Into the Lab


def lab_state(lesson, before=""):
    """What the Lab's state is once a lesson is opened in it."""

    def script(lesson, before):
        import streamlit as st

        from app import learning, services, state
        from kbert_core import Triple
        from kbert_core.knowledge.edit import Edit
        from kbert_lab.lab.commands import ChooseGraph, Undo
        from kbert_lab.lab.views.lessons import exercise

        learning.begin()
        if before:
            state.dispatch(ChooseGraph("figure2"))
            state.commit(Edit("add", Triple("Beijing", "hosts", before)))
        found = exercise(lesson, learning.read, services.demo_graph)
        learning.open_in_lab(found.setting)
        st.session_state["scene"] = state.scene()
        st.session_state["wanted"] = learning.scene_of(found.setting)
        st.session_state["again"] = state.dispatch(Undo()) and state.scene().edits

    at = AppTest.from_function(
        script, default_timeout=PATIENCE, kwargs={"lesson": lesson, "before": before}
    ).run()
    assert not at.exception
    return at.session_state


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_lab_opens_just_the_scene_of_the_lesson(lesson):
    state = lab_state(lesson)
    assert state["scene"] == state["wanted"]
    shown = "attention" if lesson == "attention" else "visible"
    assert state["session"].view("matrix_view") == shown


def test_opening_a_lesson_loses_no_edit_of_the_same_graph():
    state = lab_state("tokens", before="games")
    assert state["scene"].edits == ()
    assert [str(edit) for edit in state["again"]] == ["add (Beijing, hosts, games)"]
