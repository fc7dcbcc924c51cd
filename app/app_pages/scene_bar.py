"""Which scene a page explains: the Lab's, in a line, and the way back to it."""

import streamlit as st

from app import services
from app.scene import Scene
from app.state import NO_TASK
from app.texts import listed, t
from app.view_models.html import markdown
from kbert_core import KnowledgeGraph

ss = st.session_state
MOST_SHOWN = 120  # characters of a text


def scene_bar(now: Scene, graph: KnowledgeGraph, page: str) -> None:
    """Say what is explained, with a button to change it.

    Args:
        now: the Lab's scene.
        graph: its graph with the edits made.
        page: with which the keys of the widgets begin.
    """
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"{page}_scene"
    ):
        st.markdown(markdown(said(now, graph)), width="stretch")
        to_lab(page)


def said(now: Scene, graph: KnowledgeGraph) -> str:
    """The scene in a line; plain text."""
    texts = [t("scene.text", text=_short(text)) for text in now.sentences]
    parts = [model_name(now), t("graph.option", name=graph.name, count=f"{len(graph):,}")]
    if now.edits:
        key = "scene.edit" if len(now.edits) == 1 else "scene.edits"
        parts.append(t(key, count=len(now.edits)))
    ablation = [t("scene.hard")] if now.ablation.positions == "hard" else []
    ablation += [t("scene.all")] if now.ablation.visible == "all" else []
    return f"{listed(texts)} · {listed([*parts, *ablation])}"


def model_name(now: Scene) -> str:
    """What reads the scene."""
    if now.has_model:
        return services.model_info(now.model).name
    return t("reader." + now.model)


def to_lab(page: str) -> None:
    """A button that opens the Lab, where the scene is changed."""
    if st.button(
        t("scene.to_lab"), key=f"{page}.to_lab", icon=":material/account_tree:", type="tertiary"
    ):
        st.switch_page("app_pages/lab.py")


def readable(now: Scene, page: str) -> bool:
    """Whether the scene's text can be read; where not, say so, and what to do."""
    longest = max(map(len, now.sentences))
    if not all(sentence.strip() for sentence in now.sentences):
        said = t("scene.no_text")
    elif longest > services.LONGEST_TEXT:
        said = t("scene.too_long", count=f"{longest:,}", most=f"{services.LONGEST_TEXT:,}")
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
    key = "scene.no_trees_beside" if info.reads_beside else "scene.no_trees"
    return t(key, system=info.card.system)


def no_prediction(now: Scene, page: str) -> None:
    """Say that a page needs a prediction, and what to do."""
    if now.has_model and ss["lab.task"] != NO_TASK:
        mask = services.mask_token(now)
        said = t("scene.no_mask", mask=mask) if mask else t("scene.no_prediction")
    else:
        said = t("scene.no_model")
    st.info(markdown(said), icon=":material/info:")
    to_lab(f"{page}.none")


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"
