"""Start: six scenes, each with a small picture, opened in the Lab by one button."""

import streamlit as st

from app import services, state
from kbert_lab.lab.commands import Compare
from kbert_lab.lab.examples import FIRST, SCENES, Example, StartScene
from kbert_lab.lab.texts import language, t
from kbert_lab.lab.views.html import CSS, markdown
from kbert_lab.lab.views.start import picture_html

ss = st.session_state


def page() -> None:
    """What this is, and the scenes, in the visitor's language where there is a model of it."""
    state.begin()
    st.html(CSS)
    st.header(t("What does injected knowledge do to a language model?"), anchor=False)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown(
            t(
                "A knowledge graph's triples are hung on the names in a sentence. Switch one off, "
                "or make it wrong, and see what the model says then. Choose a scene:"
            ),
            width="stretch",
        )
        with st.container(key="start_play", width="content"):
            if st.button(t("Show it in 20 seconds"), key="start.guide", icon=":material/movie:"):
                ss["lab.play_again"] = ss.get("lab.play_again", 0) + 1
                open_scene(SCENES[0], edit=False)
    for row in SCENES[:3], SCENES[3:]:
        for place, scene in zip(st.columns(3), row, strict=True):
            with (
                place,
                st.container(border=True, height="stretch", vertical_alignment="distribute"),
            ):
                card(scene)


def card(scene: StartScene) -> None:
    """What a scene looks like and says, and its button."""
    example = example_of(scene)
    if example is not None:
        st.html(picture_html(scene, example, services.demo_graph(example.graph)))
    title, text = markdown(t(scene.title)), markdown(t(scene.text))
    st.markdown(f"**:material/{scene.icon}: {title}**  \n{text}")
    icon, disabled = ":material/play_arrow:", example is None and scene.key != "own"
    if st.button(t("Play"), key=f"start.{scene.key}", icon=icon, disabled=disabled):
        open_scene(scene)


def example_of(scene: StartScene) -> Example | None:
    """The example that a scene shows, if a model of it is here."""
    there = {own.key: own for own in state.offer().examples().values()}
    wished = (scene.example,) if scene.example else (FIRST[language()], *FIRST.values())
    return next((there[key] for key in wished if key in there), None)


def open_scene(scene: StartScene, *, edit: bool = True) -> None:
    """Put a scene into the Lab, on its graph as it was opened, make its edit, and go there."""
    example = example_of(scene)
    if scene.key == "own" or example is None:
        ss["lab.asking"] = "graph"
    else:
        shown = state.offer().with_example(state.session(), example)
        state.put(state.session().put(shown, example.graph))
        made = example.edit(scene.edit)
        if made is not None and edit:
            state.commit(made)
        state.dispatch(Compare(scene.compare or state.AUTO))
    ss["lab.new"] = False
    st.switch_page("app_pages/lab.py")


page()
