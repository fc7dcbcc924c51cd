"""In place of tree and matrix: what names may mean, or the triples read beside the text."""

from functools import partial
from typing import Any

import streamlit as st

from app import state
from app.app_pages.parts import bind, table
from kbert_core import KnowledgeGraph
from kbert_core.roof.roof_bert import RoofTrace
from kbert_lab.lab.commands import Options
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views import sides
from kbert_lab.lab.views.html import markdown, scrolling
from kbert_lab.lab.views.knowledge import triple_rows

MANY = 12  # spans that are shown at their full height
TALL = 460  # pixels of a table at the most
NO_TREE = N_("This system has no sentence tree, no visible matrix and no interventions.")


def linked_panel(now: Scene, trace: Any) -> None:
    """The spans with their candidates, and what this system has none of."""
    found = trace.links
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="lab_head_linked"
    ):
        st.subheader(t("Linked entities"), anchor=False, width="stretch")
        bind(
            partial(st.number_input, t("Threshold δ"), value=None, step=0.5),
            "lab.threshold",
            state.session().threshold,
            lambda least: state.dispatch(Options({"threshold": least})),
            placeholder=t("none"),
            help=t(
                "An entity whose score ψ is less isn't linked. A name of which none is left means "
                "NULL. Empty: as the model was trained."
            ),
            width=150,
        )
        every = sides.has_more(found) and st.checkbox(
            t("Show every candidate"), key="lab.linked_all"
        )
    st.markdown(markdown(sides.enters(trace)))
    st.caption(t(NO_TREE))
    drawn = sides.linked_table(found, now.sentences, every=bool(every))
    st.html(scrolling(drawn, "kb-linked") if len(found) > MANY or every else drawn)
    if found:
        st.caption(
            t(
                "Prior: how often the name means the entity. ψ: the linker's score, made of the "
                "prior and of the dot product. Weight: the softmax of ψ, the entity's share in "
                "the vector that enters. NULL: the name means nothing. Rewrite a gloss or a count "
                "in the table, or switch a gloss off, and the choice follows; a new entity needs a "
                "gloss and a synonym."
            )
        )


def beside_panel(graph: KnowledgeGraph, trace: RoofTrace) -> None:
    """The string of the triples that are read, and each name's triples with whether they are."""
    assert trace.reading.kb is not None
    st.subheader(t("Triples read beside the text"), anchor=False)
    st.markdown(markdown(sides.enters(trace)))
    st.caption(t(NO_TREE))
    st.code(trace.reading.kb.text, language=None, wrap_lines=True)
    rows = triple_rows(trace, graph)
    if rows:
        table(sides.beside_table(rows, trace.reading), most=TALL)
