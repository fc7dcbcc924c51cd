"""What changes the selection: only the parts of the page that are linked are drawn anew."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from app import state
from kbert_core.knowledge.names import normalise_name
from kbert_lab.lab.commands import (
    ClearSelection,
    Command,
    SelectCell,
    SelectMap,
    SelectToken,
    SelectTriple,
)

P = ParamSpec("P")
NONE = -1  # sent in the place of a token: choose nothing
ss = st.session_state


def linked(key: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Make a function of a page a part that is drawn anew when the selection changes.

    Args:
        key: of the part, unique; begins with the page's name.
    """

    def of(draw: Callable[P, None]) -> Callable[P, None]:
        part = st.fragment(draw, key=key)

        @wraps(draw)
        def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
            ss.setdefault("lab.linked", {})[key] = None
            part(*args, **kwargs)

        return drawn

    return of


def begin() -> None:
    """Forget the parts of the last run; those of this one tell of themselves."""
    ss["lab.linked"] = {}


def select(*commands: Command) -> None:
    """Change the selection; in a callback only: draws the linked parts and nothing else."""
    for command in commands:
        state.dispatch(command)
    st.rerun(list(ss["lab.linked"]))


# Callbacks


def clear() -> None:
    """Choose nothing."""
    select(ClearSelection())


def choose_triple() -> None:
    """Of the triple chooser."""
    select(SelectTriple(ss["lab.triple"], toggle=False))


def choose_token() -> None:
    """Of the token chooser."""
    select(SelectToken(ss["lab.token"], toggle=False))


def click_token(key: str) -> None:
    """Of a drawing: a token, or once more to let it go; Escape lets everything go.

    Args:
        key: of the component; with ``_names`` it is that of its tokens' identities.
    """
    names, place = ss.get(f"{key}_names", ()), getattr(ss.get(key), "token", None)
    if place == NONE:
        clear()
    elif place is not None and 0 <= int(place) < len(names):
        select(SelectToken(names[int(place)]))


def click_cell(key: str) -> None:
    """Of a matrix: a cell; see :func:`click_token`."""
    names, cell = ss.get(f"{key}_names", ()), getattr(ss.get(key), "cell", None)
    if cell is not None and all(0 <= int(place) < len(names) for place in cell):
        select(SelectCell(*(names[int(place)] for place in cell)))


def click_edge() -> None:
    """Of the graph: a triple, or once more to let it go."""
    number, (triples, _) = getattr(ss.get("lab.drawing"), "edge", None), ss["lab.drawn"]
    if number is not None and 0 <= int(number) < len(triples):
        select(SelectTriple(triples[int(number)]))


def click_name() -> None:
    """Of the graph: a name; what stands in the text is chosen there, else the triple it ends."""
    name, (triples, tokens) = getattr(ss.get("lab.drawing"), "node", None), ss["lab.drawn"]
    token = tokens.get(normalise_name(str(name)))
    if token is not None:
        select(ClearSelection(), SelectToken(token))
    for triple in triples:
        if name in (triple.head, triple.tail):
            select(SelectTriple(triple))


def choose_map() -> None:
    """Of the layer and the head chooser."""
    state.dispatch(SelectMap(ss["lab.layer"], ss["lab.head"]))


def click_map() -> None:
    """Of the thumbnails: a layer and an attention head."""
    chosen = getattr(ss.get("lab.heads"), "map", None)
    if chosen is not None:
        state.dispatch(SelectMap(int(chosen[0]), int(chosen[1])))
