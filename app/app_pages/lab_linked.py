"""What the names of a text may mean, where a linker chooses: in place of tree and matrix."""

from typing import Any

import streamlit as st

from app import services
from app.scene import Scene
from app.texts import t
from app.view_models import links
from app.view_models.html import markdown, scrolling

MANY = 12  # spans that are shown at their full height


def linked_panel(now: Scene, trace: Any) -> None:
    """The spans with their candidates, and what this system has none of."""
    found = trace.links
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="lab_head_linked"
    ):
        st.subheader(t("linked.title"), anchor=False, width="stretch")
        every = links.has_more(found) and st.checkbox(t("linked.all"), key="lab.linked_all")
    system = services.model_info(now.model).card.system
    st.caption(markdown(t("linked.no_trees", system=system)))
    table = links.linked_table(found, now.sentences, every=bool(every))
    st.html(scrolling(table, "kb-linked") if len(found) > MANY or every else table)
    if found:
        st.caption(t("linked.help"))
