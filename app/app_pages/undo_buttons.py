"""The buttons that take an edit back and make it again, on every page that edits."""

from collections.abc import Callable

import streamlit as st

from app.texts import t
from app.view_models.html import markdown


def undo_button(page: str, take_back: Callable[[], None], what: str | None) -> None:
    """Undo.

    Args:
        page: whose name the key begins with.
        take_back: what the button does.
        what: would be taken back; None: there is nothing.
    """
    said = t("Undo: {what}", what=what) if what else t("Nothing to undo.")
    st.button(
        t("Undo"),
        key=f"{page}.undo",
        icon=":material/undo:",
        on_click=take_back,
        disabled=what is None,
        help=markdown(said),
        shortcut="Mod+Shift+U",
    )


def redo_button(page: str, make_again: Callable[[], None], what: str | None) -> None:
    """Redo; the arguments as for :func:`undo_button`."""
    said = t("Redo: {what}", what=what) if what else None
    st.button(
        t("Redo"),
        key=f"{page}.redo",
        icon=":material/redo:",
        on_click=make_again,
        disabled=what is None,
        help=markdown(said) if said else None,
        shortcut="Mod+Shift+Y",
    )
