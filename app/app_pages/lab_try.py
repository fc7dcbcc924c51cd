"""Sentences that the chosen graph changes, one click away."""

import streamlit as st

from app import services, state
from app.app_pages.parts import action
from app.scene import WORDS
from app.texts import t
from app.view_models.html import markdown
from app.view_models.trying import said
from kbert_core import KBertError, KnowledgeGraph, Triple

ss = st.session_state


def try_button() -> None:
    """Ask for sentences that the chosen graph changes."""
    action(
        t("Sentences to try"),
        "lab.try_graph",
        lambda: ss.update({"lab.try": ss["lab.graph"]}),
        icon="lightbulb",
    )


def try_bar() -> None:
    """Offer such sentences, where they were asked for or a graph was just opened."""
    if ss.get("lab.try") == ss["lab.graph"]:
        with st.container(key="lab_try", horizontal=True, vertical_alignment="center", gap="small"):
            sentences_to_try(state.graph())
            action(
                "",
                "lab.try_close",
                lambda: ss.pop("lab.try", None),
                icon="close",
                type="tertiary",
                help=t("Close"),
            )


def sentences_to_try(graph: KnowledgeGraph, page: str = "lab") -> None:
    """Three sentences of the graph's own names, each with what the graph changes in it."""
    now = state.scene()
    info = services.model_info(now.model) if now.has_model else None
    try:
        with st.spinner(t("Looking for sentences that this graph changes …"), show_time=False):
            found = services.tried(now, graph)
    except KBertError as error:  # the model can't be run: its panel says so too
        st.caption(markdown(error))
        return
    if not found:
        st.caption(
            t("No short sentence was found that this model reads differently with this graph.")
        )
        return
    st.markdown(t("Try:"), width="content")
    for number, one in enumerate(found):
        text = " / ".join(one.candidate.sentences)
        action(
            f"{markdown(text)} :gray[{markdown(said(one, info))}]",
            f"{page}.try_{number}",
            _put,
            one.candidate.sentences,
        )


def see_in_lab(triple: Triple) -> None:
    """Callback: put the text with a triple's head that the graph changes most into the Lab."""
    graph = state.graph()
    if not _reads(ss["lab.model"], triple.head):
        able = (i.path for i in state.known_models() if i.card.knowledge and i.problem is None)
        model = next((path for path in able if _reads(path, triple.head)), WORDS)
        task = services.model_info(model).card.task if model != WORDS else None
        state.put_text(("",), task=task or state.NO_TASK, model=model, graph=ss["lab.graph"])
    try:
        found = services.tried(state.scene(), graph, triple.head)
    except KBertError:
        found = ()
    _put(found[0].candidate.sentences if found else (triple.head,))
    ss["lab.selection"] = state.selection().with_triple(triple)
    ss["knowledge.to_lab"] = True


def _reads(model: str, name: str) -> bool:
    return model == WORDS or services.model_info(model).knows(name)


def _put(sentences: tuple[str, ...]) -> None:
    ss["lab.example"] = ss["lab.shown_example"] = None
    ss["lab.text"], ss["lab.text_b"] = (*sentences, "")[:2]
