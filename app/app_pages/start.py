"""Start: six scenes, each played in the Lab by one button."""

from dataclasses import replace

import streamlit as st

from app import state
from kbert_core.knowledge.edit import Edit
from kbert_lab.lab.commands import Compare
from kbert_lab.lab.examples import FIRST, Example
from kbert_lab.lab.texts import N_, language, t
from kbert_lab.lab.views.styles import CSS

SCENES = {
    "triple": N_(
        "**:material/toggle_off: One triple, another answer.** One triple is switched off, and "
        "the prediction turns."
    ),
    "wrong": N_(
        "**:material/gpp_maybe: A wrong triple fools the model.** The graph says the wrong thing "
        "of a name, and the model believes it."
    ),
    "systems": N_(
        "**:material/view_column: Four ways to read a graph.** K-BERT, KnowBert, Roof-BERT and "
        "plain text: where knowledge enters, and what one edit moves in each."
    ),
    "mask": N_(
        "**:material/blur_on: Take the mask away.** Without the visible matrix every token sees "
        "every triple. What is left of the prediction?"
    ),
    "own": N_(
        "**:material/upload_file: Your own graph.** Open a file of triples, and try sentences "
        "that it changes."
    ),
    "figure": N_(
        "**:material/account_tree: Figure 2 of the paper.** The sentence tree, the soft positions "
        "and the visible matrix, as the paper draws them."
    ),
}
WRONG = {"gastroscopy": "疾病", "copd": "drug"}  # types that the models follow
ss = st.session_state


def page() -> None:
    """What this is, and the scenes, in the visitor's language where there is a model of it."""
    state.begin()
    st.html(CSS)
    st.header(t("What does injected knowledge do to a language model?"), anchor=False)
    st.markdown(
        t(
            "A knowledge graph's triples are hung on the names in a sentence. Switch one off, or "
            "make it wrong, and see what the model says then. Choose a scene:"
        )
    )
    there = {own.key: own for own in state.offer().examples().values()}
    first = there.get(FIRST[language()]) or there.get(FIRST["zh"]) or there.get(FIRST["en"])
    examples = {"systems": there.get(FIRST["zh"]), "figure": there.get("figure2")}
    columns = st.columns(3) + st.columns(3)
    for place, (name, said) in zip(columns, SCENES.items(), strict=True):
        example = examples.get(name, first)
        with place, st.container(border=True, height="stretch"):
            st.markdown(t(said))
            icon, disabled = ":material/play_arrow:", not example and name != "own"
            if st.button(t("Play"), key=f"start.{name}", icon=icon, disabled=disabled):
                play(name, example)
                st.switch_page("app_pages/lab.py")


def play(name: str, example: Example | None) -> None:
    """Put a scene into the Lab, on its graph as it was opened, and make its edit."""
    if example is None or name == "own":
        ss["lab.asking"] = "graph"
        return
    state.put(
        state.session().put(state.offer().with_example(state.session(), example), example.graph)
    )
    if name in ("triple", "wrong", "systems") and example.turn:
        triple, _ = example.turn
        edit = Edit("switch_off", triple)
        if name == "wrong":
            edit = Edit("replace", triple, replace(triple, tail=WRONG[example.key]))
        state.commit(edit)
    state.dispatch(Compare({"systems": "systems", "mask": "parts"}.get(name, state.AUTO)))


page()
