"""What a visitor may try: the guided play, the examples, sentences that the graph changes."""

from itertools import islice

import streamlit as st

from app import services, state
from app.app_pages.parts import action
from app.components import draw_play
from app.language import PARAMETER
from kbert_core import KBertError, KnowledgeGraph, Triple
from kbert_lab.lab.commands import SelectTriple
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.start import flip_html, play_steps
from kbert_lab.lab.views.trying import said

ss = st.session_state
MOST_OFFERED = 6  # examples where there is no text


def guide() -> None:
    """Play the first example to a new visitor, unless the address asks for something."""
    ss.setdefault("lab.new", not set(st.query_params) - {PARAMETER})
    again = ss.get("lab.play_again", 0)
    if not again and not (ss["lab.new"] and not state.session().history.steps):
        return
    example = state.current_example()
    if example is not None and example.shows:
        draw_play(
            f'<div class="kb-small">{flip_html(example, "off")}</div>', play_steps(example), again
        )


def offer_examples() -> None:
    """Where there is no text: the examples, one click away."""
    with st.container(key="lab_examples", horizontal=True, gap="small"):
        texts = {own.sentences: own for own in reversed(state.offer().examples().values())}
        for sentences, example in islice(reversed(texts.items()), MOST_OFFERED):
            name, key = markdown(" / ".join(sentences)), f"lab.example.{example.key}"
            action(name, key, state.redrawn, state.choose_example, example.name)


def try_button() -> None:
    """Ask for sentences that the chosen graph changes."""
    action(
        t("Sentences to try"),
        "lab.try_graph",
        lambda: ss.update({"lab.try": state.session().graph}),
        icon="lightbulb",
    )


def try_bar() -> None:
    """Offer such sentences, where they were asked for or a graph was just opened."""
    if ss.get("lab.try") == state.session().graph:
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


def reader_changed() -> None:
    """Say that another model reads since a graph or a text came, and offer the way back."""
    replaced = state.session().replaced
    if replaced is None or replaced.model != state.session().model:
        return
    text = N_("This text is mostly {language}, so {model} reads it now.")
    if replaced.by == "graph":
        text = N_("The names in this graph are mostly {language}, so {model} reads it now.")
    info = services.model_info(replaced.model)
    said = t(text, language=t(info.language or ""), model=info.name)
    with st.container(key="lab_reader", horizontal=True, vertical_alignment="center", gap="small"):
        st.info(markdown(said), icon=":material/translate:", width="stretch")
        action(t("Back"), "lab.reader_back", state.read_as_before, icon="undo")


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
    if not any(now.sentences):
        state.put_sentences(found[0].candidate.sentences)
        st.rerun()
    st.markdown(t("Try:"), width="content")
    for number, one in enumerate(found):
        text = " / ".join(one.candidate.sentences)
        action(
            f"{markdown(text)} :gray[{markdown(said(one, info))}]",
            f"{page}.try_{number}",
            state.redrawn,
            state.put_sentences,
            one.candidate.sentences,
        )


def see_in_lab(triple: Triple) -> None:
    """Callback: put the text with a triple's head that the graph changes most into the Lab."""
    graph = state.graph()
    model = state.offer().reader(state.session(), [triple.head])
    if model != state.session().model:
        state.read_with(model)
    try:
        found = services.tried(state.scene(), graph, triple.head)
    except KBertError:
        found = ()
    state.put_sentences(found[0].candidate.sentences if found else (triple.head,))
    state.dispatch(SelectTriple(triple, toggle=False))
    ss["knowledge.to_lab"] = True
