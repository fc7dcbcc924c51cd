"""Which scene a page explains: the Lab's, in a line, and the way back to it."""

import streamlit as st

from app import services, state
from kbert_core import KnowledgeGraph
from kbert_lab.lab.scene import Scene, is_blank
from kbert_lab.lab.session import NO_TASK
from kbert_lab.lab.texts import N_, listed, t, tn
from kbert_lab.lab.views import shared
from kbert_lab.lab.views.html import markdown, shorten

ss = st.session_state
MOST_SHOWN = 120  # characters of a text


def scene_bar(now: Scene, graph: KnowledgeGraph, page: str) -> None:
    """Say what is explained, with a button to change it."""
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"{page}_scene"
    ):
        st.markdown(markdown(said(now, graph)), width="stretch")
        to_lab(page)


def said(now: Scene, graph: KnowledgeGraph) -> str:
    """The scene in a line; plain text."""
    texts = [t("“{text}”", text=shorten(text, MOST_SHOWN)) for text in now.sentences]
    parts = [
        model_name(now),
        t("{name}, {count} triples", name=graph.name, count=f"{len(graph):,}"),
    ]
    if now.edits:
        count = len(now.edits)
        parts.append(tn("1 edit", "{n} edits", count))
    ablation = [t("hard positions")] if now.ablation.positions == "hard" else []
    ablation += [t("everything visible")] if now.ablation.visible == "all" else []
    return f"{listed(texts)} · {listed([*parts, *ablation])}"


def model_name(now: Scene) -> str:
    """What reads the scene."""
    return services.model_info(now.model).name if now.has_model else shared.model_name(now.model)


def to_lab(page: str) -> None:
    """A button that opens the Lab, where the scene is changed."""
    if st.button(
        t("Change it in the Lab"),
        key=f"{page}.to_lab",
        icon=":material/account_tree:",
        type="tertiary",
    ):
        st.switch_page("app_pages/lab.py")


def readable(now: Scene, page: str) -> bool:
    """Whether the scene's text can be read; where not, say so, and what to do."""
    longest = max(map(len, now.sentences))
    if any(map(is_blank, now.sentences)):
        said = t("There is no text to read yet: write one in the Lab.")
    elif longest > services.LONGEST_TEXT:
        said = t(
            "The text in the Lab is too long to be read here: {count} characters, at most {most}. "
            "Shorten it there.",
            count=f"{longest:,}",
            most=f"{services.LONGEST_TEXT:,}",
        )
    else:
        return True
    st.info(markdown(said), icon=":material/info:")
    to_lab(f"{page}.unread")
    return False


def has_trees(now: Scene, page: str) -> bool:
    """Whether what reads the scene grows trees; where not, say so, and what it has."""
    if services.has_trees(now):
        return True
    st.info(markdown(no_trees(now)), icon=":material/info:")
    to_lab(f"{page}.no_trees")
    return False


def no_trees(now: Scene) -> str:
    """Why a page that needs trees can't show a scene; plain text."""
    info = services.model_info(now.model)
    key = (
        N_(
            "This part needs sentence trees, and the system “{system}” has none: it reads the "
            "triples beside the text. The Lab shows them, and “Effects” what each of them does."
        )
        if info.reads_beside
        else N_(
            "This part needs sentence trees, and the system “{system}” has none: it links names "
            "to entities, whose vectors enter between two layers. The Lab shows its linked "
            "entities, and “Effects” what each triple does."
        )
    )
    return t(key, system=info.card.system)


def no_prediction(now: Scene, page: str) -> None:
    """Say that a page needs a prediction, and what to do."""
    if now.has_model and state.session().task != NO_TASK:
        mask = services.mask_token(now)
        said = (
            t(
                "There is no prediction to explain: the text has no {mask}. In the Lab, write "
                "{mask} where a token is missing.",
                mask=mask,
            )
            if mask
            else t("There is no prediction to explain. Choose another model in the Lab.")
        )
    else:
        said = t(
            "There is no prediction to explain: nothing in the Lab predicts. Choose a task and a "
            "model there."
        )
    st.info(markdown(said), icon=":material/info:")
    to_lab(f"{page}.none")
