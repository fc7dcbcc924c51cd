"""A button that downloads a graph, where it isn't too large to be made in memory."""

import streamlit as st

from app import exports
from app.texts import t
from kbert_core import KnowledgeGraph


def graph_download(
    graph: KnowledgeGraph, label: str, *, key: str, file_name: str, help: str | None = None
) -> None:
    """Write the graph as ``.spo`` when asked; above ``MOST_TRIPLES`` say what does it instead."""
    large = len(graph) > exports.MOST_TRIPLES
    if large:
        said = t(
            "A graph of over {most} triples is better exported on the command line:",
            most=f"{exports.MOST_TRIPLES:,}",
        )
        help = f"{said} `kbert kg export GRAPH.kg FILE.spo.gz`"
    st.download_button(
        t(label),
        lambda: exports.graph_as(graph, ".spo"),
        file_name=file_name,
        mime="text/tab-separated-values",
        key=key,
        icon=":material/download:",
        on_click="ignore",
        help=help,
        disabled=large,
    )
