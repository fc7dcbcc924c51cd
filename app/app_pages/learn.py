"""Learn: seven short lessons, predict then reveal, each a scene of the Lab."""

from typing import Any

import streamlit as st

from app import learning, services
from app.app_pages.parts import action
from app.components import draw_matrix
from app.state import KEEP
from kbert_core import KBertError
from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.visible import FULL
from kbert_lab.lab.selection import Selection, marks_of
from kbert_lab.lab.texts import N_, t, without_folders
from kbert_lab.lab.views import lessons, matrix
from kbert_lab.lab.views.html import CSS, markdown
from kbert_lab.lab.views.lessons import LESSON, LESSONS, Exercise, Setting

ss = st.session_state


def page() -> None:
    """Where one is, the lesson, where one can go."""
    learning.begin()
    st.html(CSS)
    with st.container(key="learn_page"):
        st.header(t("Seven short lessons"), anchor=False)
        said = N_(
            "Read, predict, then reveal. What is revealed is computed at that moment, on a scene "
            "that you can open in the Lab and take apart."
        )
        st.caption(t(said))
        lesson = chooser()
        with st.container(border=True, key="learn_lesson"):
            show(lesson)
        steps(lesson)


def chooser() -> str:
    """The lessons by number and name, those revealed marked; how far one has come."""
    given = ss["learn.given"]
    names = {
        lesson: f"{number} {t(LESSON[lesson]['title'])}{' ✓' if lesson in given else ''}"
        for number, lesson in enumerate(LESSONS, start=1)
    }
    how: dict[str, Any] = {"required": True, "label_visibility": "collapsed", **KEEP}
    st.pills(t("Lesson"), LESSONS, key="learn.lesson", format_func=names.__getitem__, **how)
    done, right = len(given), sum(right for _, right in given.values())
    said = t("{done} of {all} revealed, {right} as predicted", done=done, all=7, right=right)
    st.progress(done / len(LESSONS), said)
    return str(ss["learn.lesson"])


def show(lesson: str) -> None:
    """Text, picture and question; then the answer."""
    own = LESSON[lesson]
    st.subheader(f"{LESSONS.index(lesson) + 1} · {t(own['title'])}", anchor=False)
    folder = services.models_folder()
    if lessons.needs_model(lesson) and not (folder / lessons.MODEL / "config.json").is_file():
        said = N_("This lesson runs the model {name}, which isn't in {folder}. Restore it with")
        st.info(markdown(t(said, name=lessons.MODEL, folder=without_folders(str(folder)))))
        st.code(t("git checkout -- models"), language="bash")
        return
    try:
        exercise = lessons.exercise(lesson, learning.read, services.demo_graph)
    except KBertError as error:
        st.error(markdown(error))
        return
    st.markdown(markdown(t(own["text"], **exercise.values)))
    if not lessons.needs_model(lesson):
        st.caption(t("The sentence and the triples are those of Figure 2 of the paper."))
    given = ss["learn.given"].get(lesson)
    if given is None:
        st.html(exercise.picture)
    st.markdown(f"**{markdown(t(own['question'], **exercise.values))}**")
    if given is None:
        ask(lesson, exercise)
    else:
        answer(lesson, exercise, *given)


def ask(lesson: str, exercise: Exercise) -> None:
    """The prediction."""
    chosen = st.radio(
        t("Your prediction"),
        list(exercise.choices),
        index=None,
        key=f"learn.answer.{lesson}",
        format_func=lambda name: markdown(exercise.choices[name]),
        **KEEP,
    )
    how: dict[str, Any] = {"icon": "visibility", "type": "primary", "disabled": chosen is None}
    action(t("Reveal"), f"learn.reveal.{lesson}", learning.reveal, lesson, exercise.right, **how)


def answer(lesson: str, exercise: Exercise, given: str, as_predicted: bool) -> None:
    """Whether the prediction was right, why, and the picture that tells it."""
    right = exercise.choices[exercise.right]
    if as_predicted:
        st.success(markdown(t("As predicted: {answer}", answer=right)), icon=":material/check:")
    else:
        said = N_("You predicted {given}. It is {answer}")
        said = t(said, given=exercise.choices.get(given, ""), answer=right)
        st.info(markdown(said), icon=":material/lightbulb:")
    if exercise.revealed:
        st.html(exercise.revealed)
    if exercise.matrix is not None:
        visible_matrix(exercise.matrix, exercise.setting)
    told = (t(text, **exercise.values) for text in LESSON[lesson].get("why", ()))
    for paragraph in (*exercise.reasons, *told):
        st.markdown(markdown(paragraph))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        help = t("Puts this scene into the Lab, in place of the one that is there.")
        icon = ":material/account_tree:"
        if st.button(t("Open in the Lab"), key=f"learn.open.{lesson}", icon=icon, help=help):
            learning.open_in_lab(exercise.setting)
            st.switch_page("app_pages/lab.py")
        label, key = t("Predict again"), f"learn.again.{lesson}"
        action(label, key, learning.again, lesson, icon="restart_alt")
        st.caption(t("Notebook: {name}", name=learning.notebook(lesson)))


def visible_matrix(flat: FlatTree, setting: Setting) -> None:
    """The matrix, the setting's cell chosen."""
    view = matrix.visible_view(flat, FULL)
    chosen = Selection().with_cell(*setting.cell) if setting.cell else Selection()
    marks = marks_of(view.identities, chosen)
    draw_matrix(view, marks, key="learn.matrix", heard=lambda _: None)


def steps(lesson: str) -> None:
    """To the lesson before, and to the next."""
    number = LESSONS.index(lesson)
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        for key, title, to, icon, side in (
            ("previous", t("Previous lesson"), number - 1, "arrow_back", "left"),
            ("next", t("Next lesson"), number + 1, "arrow_forward", "right"),
        ):
            go = {"learn.lesson": LESSONS[to % len(LESSONS)]}
            how: dict[str, Any] = {"icon": icon, "icon_position": side}
            action(title, f"learn.{key}", ss.update, go, disabled=not 0 <= to < len(LESSONS), **how)
    if len(ss["learn.given"]) == len(LESSONS):
        said = t("All seven are revealed. Now write a sentence of your own in the Lab.")
        st.success(said, icon=":material/school:")


page()
