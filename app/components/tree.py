"""The sentence tree, with tokens that can be clicked and reached by arrow keys."""

from collections.abc import Callable

import streamlit as st

from app.components import source

_tree = st.components.v2.component(
    "kbert_tree",
    html='<div class="kb-tree-root"></div>',
    js=source("hover.js", "tree.js"),
    isolate_styles=False,  # the page's own style sheet draws it
)


def draw_tree(
    html: str,
    *,
    key: str,
    on_token: Callable[[], None],
    on_branch: Callable[[], None] = lambda: None,
) -> None:
    """Draw a tree; ``on_token`` runs when a token is chosen, ``on_branch`` when one is switched.

    The chosen token is then ``st.session_state[key].token``, its hard position; the branch
    ``st.session_state[key].branch``, its number as drawn.

    Args:
        html: escaped, see ``view_models.tree.tree_html``; anything but plain
            elements is dropped before it is shown.
        key: of the component.
        on_token, on_branch: callbacks.
    """
    data = {"html": html, "group": group_of(key)}
    _tree(key=key, data=data, on_token_change=on_token, on_branch_change=on_branch)


def group_of(key: str) -> str:
    """What a tree and its matrix have in common: the number of their column, if they have one."""
    last = key.rsplit(".", 1)[-1]
    return last if last.isdigit() else ""
