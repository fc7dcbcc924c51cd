"""Start: six cards, each a scene that one button plays in the Lab."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from app import state
from app.examples import Example
from app.read_languages import CHINESE, ENGLISH, SPOKEN
from app.texts import N_, language, t
from app.view_models.html import markdown
from kbert_core import Triple
from kbert_core.knowledge.edit import Edit

START_TEXTS = {
    "triple": N_("One triple, another answer"),
    "wrong": N_("A wrong triple fools the model"),
    "systems": N_("Four ways to read a graph"),
    "mask": N_("Take the mask away"),
    "own": N_("Your own graph"),
    "figure": N_("Figure 2 of the paper"),
}

START_WHAT = {
    "triple": N_("One triple is switched off, and the prediction turns."),
    "wrong": N_("The graph calls a disease an examination, and the model believes it."),
    "systems": N_(
        "K-BERT, KnowBert, Roof-BERT and plain text: where knowledge enters, and what one edit "
        "moves in each."
    ),
    "mask": N_(
        "Without the visible matrix every token sees every triple. What is left of the prediction?"
    ),
    "own": N_("Open a file of triples, and try sentences that it changes."),
    "figure": N_(
        "The sentence tree, the soft positions and the visible matrix, as the paper draws them."
    ),
}

ss = st.session_state
LINE = 3  # cards


@dataclass(frozen=True)
class Card:
    """One of the cards.

    Attributes:
        name: of its texts, ``start.NAME`` and ``start.NAME_what``.
        icon: above them.
        play: puts the scene into the Lab; None: no model here can play it.
        page: where it is then seen.
    """

    name: str
    icon: str
    play: Callable[[], None] | None
    page: str = "lab"


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
    found = cards()
    for first in range(0, len(found), LINE):
        for place, card in zip(st.columns(LINE), found[first : first + LINE], strict=False):
            with place, st.container(border=True, height="stretch"):
                draw(card)


def draw(card: Card) -> None:
    """A card: what it shows, the sentence, a button."""
    st.subheader(f":material/{card.icon}: {t(START_TEXTS[card.name])}", anchor=False)
    st.markdown(t(START_WHAT[card.name]))
    pressed = st.button(
        t("Play"),
        key=f"start.{card.name}",
        icon=":material/play_arrow:",
        disabled=card.play is None,
        help=None if card.play else markdown(t("No model here can play this scene: see *About*.")),
    )
    if pressed and card.play:
        card.play()
        st.switch_page(f"app_pages/{card.page}.py")


def cards() -> list[Card]:
    """What can be played with the models there are, in the visitor's language where possible."""
    turning = [own for own in state.examples().values() if own.turn and own.task == "ner"]
    turning.sort(key=lambda own: own.language != SPOKEN[language()])
    first = turning[0] if turning else None
    chinese = [
        own for own in turning if own.language == CHINESE
    ]  # a model of every system reads it
    figure = next((own for own in state.examples().values() if own.key == "figure2"), None)

    def playing(example: Example | None, **how: Any) -> Callable[[], None] | None:
        return partial(play, example, **how) if example else None

    return [
        Card("triple", "toggle_off", playing(first, edit=True)),
        Card("wrong", "gpp_maybe", playing(wrong_of(turning), edit=True, wrong=True)),
        Card("systems", "view_column", playing(wrong_of(chinese), edit=True, compare="systems")),
        Card("mask", "blur_on", playing(first, compare="parts")),
        Card("own", "upload_file", open_own),
        Card("figure", "account_tree", playing(figure)),
    ]


def wrong_of(turning: list[Example]) -> Example | None:
    """An example whose prediction is what its triple says, whatever it says."""
    return next((own for own in turning if own.rests_on_triple), None)


def play(
    example: Example, *, edit: bool = False, wrong: bool = False, compare: str = state.AUTO
) -> None:
    """Put an example into the Lab as if it had never been edited, and make its edit.

    Args:
        example: that is put there.
        edit: make the edit that turns its prediction.
        wrong: give its triple another type instead.
        compare: what stands beside it.
    """
    state.use_example(example)
    ss["lab.logs"].pop(ss["lab.graph"], None)
    if edit and example.turn:
        triple, tail = example.turn
        if wrong:
            tail = next(own for own in WRONG[example.language] if own != triple.tail)
        if tail is None:
            state.commit(Edit("switch_off", triple))
        else:
            new = Triple(triple.head, triple.relation, tail)
            state.commit(Edit("replace", triple, new))
    ss["lab.compare"] = compare


WRONG = {  # types that the demo graphs name and the models follow
    CHINESE: ("疾病", "检查"),
    ENGLISH: ("disease", "drug"),
}


def open_own() -> None:
    """Ask for a graph of the visitor's own."""
    ss["lab.asking"] = "graph"


page()
