"""The graphs of this session as they were edited in it, for pages that choose among them."""

import streamlit as st

from app import state
from app.texts import t
from kbert_core import KnowledgeGraph
from kbert_core.knowledge.edit import Edit

ss = st.session_state


def graph_name(fingerprint: str) -> str:
    """What a graph is called in the chooser."""
    if not edits_of(fingerprint):
        return state.graph_label(fingerprint)
    edited = graph_as_edited(fingerprint)
    return t("{name}, {count} triples, edited", name=edited.name, count=f"{len(edited):,}")


def edits_of(fingerprint: str) -> tuple[Edit, ...]:
    """The edits that this visitor made to a graph."""
    log = ss["lab.logs"].get(fingerprint)
    return log.done if log else ()


def graph_as_edited(fingerprint: str) -> KnowledgeGraph:
    """A graph of this session with the edits made in the Lab."""
    return state.edited(ss["lab.graphs"][fingerprint], edits_of(fingerprint))
