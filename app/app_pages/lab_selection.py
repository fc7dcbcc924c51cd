"""What is chosen in the Lab: said once, cleared, and a triple chosen by name."""

import streamlit as st

from app import selecting, state
from app.app_pages.parts import action, told_apart
from app.selecting import linked
from kbert_core import FlatTree
from kbert_lab.lab.selection import MEAN
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.knowledge import TripleRow
from kbert_lab.lab.views.selected import say_selection
from kbert_lab.lab.words import MATRIX_TEXTS

ss = st.session_state


@linked("lab.follow")
def follow_triple(rows: tuple[TripleRow, ...]) -> None:
    """Choose a triple: its branch, its rows and columns are then marked everywhere.

    The editable table can't tell which of its rows is chosen.
    """
    used = {row.triple: row.used for row in rows}
    said = N_("{triple} · not in the tree")
    names = {own: str(own) if used[own] else t(said, triple=own) for own in used}
    names = told_apart(names)
    chosen = state.selection().triple
    ss["lab.triple"] = chosen if chosen in used else None
    st.selectbox(
        t("Follow a triple"),
        list(used),
        key="lab.triple",
        format_func=lambda triple: names.get(triple, str(triple)),
        placeholder=t("None: choose one to see its branch, rows and columns"),
        on_change=selecting.choose_triple,
    )


def selection_bar(flat: FlatTree) -> None:
    """What is chosen, and the button that lets it go; of one height, so that nothing jumps."""
    chosen = state.selection()
    said = (
        t("Click a token to see which tokens it sees.")
        if chosen.empty
        else say_selection(flat, chosen)
    )
    st.caption(markdown(said), width="stretch", text_alignment="right")
    action(
        t("Clear"),
        "lab.clear_selection",
        selecting.clear,
        type="tertiary",
        disabled=chosen.empty,
        help=t("Choose nothing"),
    )


def choose_attention_map(
    layers: int, heads: int, shown: tuple[int, int] | None = None
) -> tuple[int, int]:
    """Choose a layer and an attention head of so many, from 1; 0 is the mean.

    Args:
        shown: what is until something is chosen; None: the mean of the last layer.
    """
    ss["lab.layer"], ss["lab.head"] = shown or state.selection().map_of(layers, heads)
    for name, options in (("layer", [*range(1, layers + 1), MEAN]), ("head", range(heads + 1))):
        st.selectbox(
            t(MATRIX_TEXTS[name]),
            options,
            key=f"lab.{name}",
            format_func=lambda i: str(i) if i else t("mean"),
            on_change=selecting.choose_map,
            width=92,
        )
    return ss["lab.layer"], ss["lab.head"]
