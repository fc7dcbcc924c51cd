"""Learn: seven short lessons, predict then reveal, each a scene of the Lab."""

import streamlit as st

from app import learning, services
from app.app_pages.parts import action
from app.components import draw_matrix
from app.state import KEEP
from kbert_core import KBertError
from kbert_core.kbert.visible import FULL
from kbert_lab.lab.selection import Selection
from kbert_lab.lab.texts import N_, t, without_folders
from kbert_lab.lab.views import lessons, matrix
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.lessons import LESSON, LESSONS, Exercise
from kbert_lab.lab.views.selected import marks_of
from kbert_lab.lab.views.styles import CSS

ss = st.session_state


def page() -> None:
    """Where one is, the lesson, where one can go."""
    learning.begin()
    st.html(CSS)
    with st.container(key="learn_page"):
        st.header(t("Seven short lessons"), anchor=False)
        st.caption(
            t(
                "Read, predict, then reveal. What is revealed is computed at that moment, on a "
                "scene that you can open in the Lab and take apart."
            )
        )
        chooser()
        lesson = ss["learn.lesson"]
        with st.container(border=True, key="learn_lesson"):
            show(lesson)
        steps(lesson)


def chooser() -> None:
    """The lessons by number and name, those revealed marked; how far one has come."""
    names = {}
    for lesson, texts in LESSON.items():
        mark = " ✓" if learning.given(lesson) is not None else ""
        names[lesson] = f"{lessons.place(lesson)} {t(texts['title'])}{mark}"
    st.pills(
        t("Lesson"),
        LESSONS,
        key="learn.lesson",
        format_func=lambda lesson: names[lesson],
        required=True,
        label_visibility="collapsed",
        **KEEP,
    )
    done, right = learning.progress()
    said = N_("{done} of {all} revealed, {right} as predicted")
    st.progress(done / len(LESSONS), t(said, done=done, all=len(LESSONS), right=right))


def show(lesson: str) -> None:
    """Text, picture and question; then the answer."""
    title = f"{lessons.place(lesson)} · {t(LESSON[lesson]['title'])}"
    st.subheader(title, anchor=False)
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
    st.markdown(markdown(t(LESSON[lesson]["text"], **exercise.values)))
    if not lessons.needs_model(lesson):
        st.caption(t("The sentence and the triples are those of Figure 2 of the paper."))
    if learning.given(lesson) is None:
        ask(lesson, exercise)
    else:
        answer(lesson, exercise)


def ask(lesson: str, exercise: Exercise) -> None:
    """The picture that doesn't tell it, the question, and the prediction."""
    st.html(exercise.picture)
    st.markdown(f"**{markdown(exercise.question)}**")
    chosen = st.radio(
        t("Your prediction"),
        list(exercise.choices),
        index=None,
        key=f"learn.answer.{lesson}",
        format_func=lambda name: markdown(exercise.choices[name]),
        **KEEP,
    )
    action(
        t("Reveal"),
        f"learn.reveal.{lesson}",
        learning.reveal,
        lesson,
        exercise,
        icon="visibility",
        type="primary",
        disabled=chosen is None,
        help=t("Choose an answer first.") if chosen is None else None,
    )


def answer(lesson: str, exercise: Exercise) -> None:
    """Whether the prediction was right, why, and the picture that tells it."""
    st.markdown(f"**{markdown(exercise.question)}**")
    given, right = learning.given(lesson), exercise.choices[exercise.right]
    if given == exercise.right:
        said = t("As predicted: {answer}", answer=right)
        st.success(markdown(said), icon=":material/check_circle:")
    else:
        predicted = exercise.choices.get(given or "", "")
        said = t("You predicted {given}. It is {answer}", given=predicted, answer=right)
        st.info(markdown(said), icon=":material/lightbulb:")
    if exercise.revealed:
        st.html(exercise.revealed)
    if exercise.matrix is not None:
        view = matrix.visible_view(exercise.matrix, FULL)
        st.html(matrix.legend_html(view))
        cell = exercise.setting.cell
        chosen = Selection().with_cell(*cell) if cell else Selection()
        marks = marks_of(view.identities, chosen)
        draw_matrix(view, marks, key="learn.matrix", heard=lambda _: None)
    for paragraph in exercise.why:
        st.markdown(markdown(paragraph))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button(
            t("Open in the Lab"),
            key=f"learn.open.{lesson}",
            icon=":material/account_tree:",
            help=t("Puts this scene into the Lab, in place of the one that is there."),
        ):
            learning.open_in_lab(exercise.setting)
            st.switch_page("app_pages/lab.py")
        action(
            t("Predict again"), f"learn.again.{lesson}", learning.again, lesson, icon="restart_alt"
        )
        st.caption(t("Notebook: {name}", name=learning.notebook(lesson)))


def steps(lesson: str) -> None:
    """To the lesson before, and to the next."""
    number, last = LESSONS.index(lesson), len(LESSONS) - 1
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        for name, title, icon, to, end in (
            ("previous", N_("Previous lesson"), "arrow_back", max(number - 1, 0), 0),
            ("next", N_("Next lesson"), "arrow_forward", min(number + 1, last), last),
        ):
            how = {"icon": icon, "disabled": number == end}
            how["icon_position"] = "right" if name == "next" else "left"
            action(t(title), f"learn.{name}", learning.go, LESSONS[to], **how)
    if learning.progress()[0] == len(LESSONS):
        said = t("All seven are revealed. Now write a sentence of your own in the Lab.")
        st.success(said, icon=":material/school:")


page()
