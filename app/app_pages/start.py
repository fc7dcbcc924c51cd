"""Start: six cards, each a scene that one button plays in the Lab."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from app import state
from app.examples import Example
from app.texts import N_, language, t
from app.view_models.html import markdown
from app.words import CHINESE, ENGLISH, SPOKEN
from kbert_core import Triple
from kbert_core.knowledge.edit import Edit
from kbert_lab.lab.commands import Compare

CARDS = {  # icon, title, what is shown
    "triple": (
        "toggle_off",
        N_("One triple, another answer"),
        N_("One triple is switched off, and the prediction turns."),
    ),
    "wrong": (
        "gpp_maybe",
        N_("A wrong triple fools the model"),
        N_("The graph says the wrong thing of a disease, and the model believes it."),
    ),
    "systems": (
        "view_column",
        N_("Four ways to read a graph"),
        N_(
            "K-BERT, KnowBert, Roof-BERT and plain text: where knowledge enters, and what one edit "
            "moves in each."
        ),
    ),
    "mask": (
        "blur_on",
        N_("Take the mask away"),
        N_(
            "Without the visible matrix every token sees every triple. What is left of the "
            "prediction?"
        ),
    ),
    "own": (
        "upload_file",
        N_("Your own graph"),
        N_("Open a file of triples, and try sentences that it changes."),
    ),
    "figure": (
        "account_tree",
        N_("Figure 2 of the paper"),
        N_(
            "The sentence tree, the soft positions and the visible matrix, as the paper draws them."
        ),
    ),
}
WRONG = {CHINESE: ("疾病", "检查"), ENGLISH: ("disease", "drug")}  # types that the models follow

ss = st.session_state
LINE = 3  # cards


def page() -> None:
    """What this is, and the cards."""
    state.begin()
    st.header(t("What does injected knowledge do to a language model?"), anchor=False)
    st.markdown(
        t(
            "A knowledge graph's triples are hung on the names in a sentence. Switch one off, or "
            "make it wrong, and see what the model says then. Choose a scene:"
        )
    )
    found = list(scenes().items())
    for first in range(0, len(found), LINE):
        for place, card in zip(st.columns(LINE), found[first : first + LINE], strict=False):
            with place, st.container(border=True, height="stretch"):
                draw(*card)


def draw(name: str, play: Callable[[], None] | None) -> None:
    """A card: what it shows, and a button; ``play`` is None where no model here can play it."""
    icon, title, what = CARDS[name]
    st.subheader(f":material/{icon}: {t(title)}", anchor=False)
    st.markdown(t(what))
    pressed = st.button(
        t("Play"),
        key=f"start.{name}",
        icon=":material/play_arrow:",
        disabled=play is None,
        help=None if play else markdown(t("No model here can play this scene: see *About*.")),
    )
    if pressed and play:
        play()
        st.switch_page("app_pages/lab.py")


def scenes() -> dict[str, Callable[[], None] | None]:
    """What puts each card's scene into the Lab, in the visitor's language where possible."""
    examples = list(state.examples().values())
    turning = [own for own in examples if own.turn and own.task == "ner"]
    turning.sort(key=lambda own: own.language != SPOKEN[language()])
    chinese = [own for own in turning if own.language == CHINESE]  # read by every system
    figure = [own for own in examples if own.key == "figure2"]

    def playing(examples: list[Example], **how: Any) -> Callable[[], None] | None:
        return partial(play, examples[0], **how) if examples else None

    def resting(examples: list[Example]) -> list[Example]:
        return [own for own in examples if own.rests_on_triple]

    return {
        "triple": playing(turning, edit=True),
        "wrong": playing(resting(turning), edit=True, wrong=True),
        "systems": playing(resting(chinese), edit=True, compare="systems"),
        "mask": playing(turning, compare="parts"),
        "own": lambda: ss.update({"lab.asking": "graph"}),
        "figure": playing(figure),
    }


def play(
    example: Example, *, edit: bool = False, wrong: bool = False, compare: str = state.AUTO
) -> None:
    """Put an example into the Lab on its graph as it was opened, and make its edit.

    Args:
        example: that is put there.
        edit: make the edit that turns its prediction.
        wrong: give its triple another type instead.
        compare: what stands beside it.
    """
    now = state.with_example(example)
    state.put(state.session().put(now, example.graph))
    if edit and example.turn:
        triple, tail = example.turn
        if wrong:
            tail = next(own for own in WRONG[example.language] if own != triple.tail)
        new = Triple(triple.head, triple.relation, tail) if tail is not None else None
        state.commit(Edit("replace", triple, new) if new else Edit("switch_off", triple))
    state.dispatch(Compare(compare))


page()
