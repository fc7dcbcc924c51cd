"""What a visitor is told of the open workspace, on every page that edits it."""

import streamlit as st

from app import state
from app.texts import t
from app.view_models import history
from app.view_models.html import markdown
from kbert_core import KBertError

ss = st.session_state
EVERY = 20  # seconds between two looks at what others do
SHOWN = 3


def workspace_notices() -> None:
    """Say why a workspace can't be opened, and what others did in the open one."""
    problem = ss.pop("lab.workspace_problem", None)
    if problem:
        st.error(markdown(problem), icon=":material/link_off:")
    shared = state.workspace()
    if shared is None:
        return
    if shared.news:
        rows = history.rows_of(shared, shared.news[:SHOWN], history.now())
        lines = [
            t(
                "Entry {number}, {who}, {at}: {what}",
                who=row.who or t("somebody"),
                number=row.number,
                at=row.at,
                what=row.what,
            )
            for row in rows
        ]
        if len(shared.news) > SHOWN:
            lines.append(
                t("… and {count} more entries, see the history.", count=len(shared.news) - SHOWN)
            )
        said = "  \n".join(
            markdown(line)
            for line in [
                t("Others have edited this workspace in the meantime; you see its current state."),
                *lines,
            ]
        )
        st.info(said, icon=":material/group:")
    _watch()


@st.fragment(run_every=EVERY)
def _watch() -> None:
    """Tell of others' edits while this visitor does nothing."""
    shared = state.workspace()
    if shared is None:
        return
    try:
        store = shared.store
        store.graph()
        newer = store.revision > shared.revision
    except KBertError:
        newer = True  # it is gone: the page will say so
    if newer:
        with st.container(horizontal=True, vertical_alignment="center", key="workspace_newer"):
            st.warning(t("Somebody has just edited this workspace."), icon=":material/update:")
            if st.button(t("Show it as it is now"), key="workspace.show"):
                st.rerun()
