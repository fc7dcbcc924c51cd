"""The sentence tree, with tokens that can be clicked and reached by arrow keys."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

_tree = st.components.v2.component(
    "kbert_tree",
    html='<div class="kb-tree-root"></div>',
    js=(Path(__file__).parent / "tree.js").read_text(encoding="utf-8"),
    isolate_styles=False,  # the page's own style sheet draws it
)


def draw_tree(html: str, *, key: str, on_token: Callable[[], None]) -> None:
    """Draw a tree; ``on_token`` runs when a token is chosen.

    The chosen token is then ``st.session_state[key].token``, its hard position.

    Args:
        html: escaped, see ``view_models.tree.tree_html``; anything but plain
            elements is dropped before it is shown.
        key: of the component.
        on_token: a callback.
    """
    _tree(key=key, data={"html": html}, on_token_change=on_token)
