"""The sentence tree, with tokens that can be clicked and reached by arrow keys."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from kbert_lab.lab.drawings import source

SCRIPTS = ("hover.js", "moving.js", "tail.js", "tree.js")
_tree = st.components.v2.component(
    "kbert_tree",
    html='<div class="kb-tree-root"></div>',
    js=source(*SCRIPTS),
    isolate_styles=False,  # the page's own style sheet draws it
)
_tails = st.components.v2.component(
    "kbert_tails",
    js="export default ({ data }) => "
    '{ document.dispatchEvent(new CustomEvent("kbert-tails", { detail: data })); };',
)


def draw_tree(
    html: str,
    *,
    key: str,
    on_token: Callable[[], None],
    on_branch: Callable[[], None] = lambda: None,
    on_edit: Callable[[], None] = lambda: None,
    on_ask: Callable[[], None] = lambda: None,
    switched: int = 0,
) -> None:
    """Draw a tree; ``on_token`` runs when a token is chosen, ``on_branch`` when one is switched.

    The chosen token is then ``st.session_state[key].token``, its hard position; the branch
    ``st.session_state[key].branch``, [its name, whether it is to be on]. Where a tail is typed,
    ``.edit`` is [the branch's name, its new tail], and ``.ask`` [the name, of the question,
    tails]: what tails there are, and what would be predicted; :func:`tell_tails` answers.

    Args:
        html: escaped, see ``kbert_lab.lab.views.tree.tree_html``; anything but plain
            elements is dropped before it is shown.
        switched: how many switches were answered, so that one that was refused is taken back.
    """
    _tree(
        key=key,
        data={"html": html, "group": group_of(key), "switched": switched},
        on_token_change=on_token,
        on_branch_change=on_branch,
        on_edit_change=on_edit,
        on_ask_change=on_ask,
    )


def tell_tails(
    request: int,
    *,
    key: str,
    tails: Sequence[str] | None = None,
    glosses: Mapping[str, str] | None = None,
    asked: Sequence[str] = (),
    outcomes: Mapping[str, tuple[str, bool]] | None = None,
) -> None:
    """Answer a question of the box in which a tail is typed; part by part, as they are known.

    Args:
        request: of the question.
        key: of this part of the answer.
        tails: that there are; None: as said before.
        glosses: of some of them.
        asked: whose outcomes are still to come.
        outcomes: of tails: what would be predicted, and whether that is another prediction.
    """
    told = {"tails": tails, "glosses": glosses or {}, "asked": asked, "outcomes": outcomes or {}}
    _tails(key=key, data={"request": request, **told}, height=0)


def group_of(key: str) -> str:
    """What a tree and its matrix have in common: the number of their column, if they have one."""
    last = key.rsplit(".", 1)[-1]
    return last if last.isdigit() else ""
