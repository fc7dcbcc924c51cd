"""Which part of a prediction a page explains."""

import streamlit as st

from app import services
from app.scene import Scene
from app.texts import t
from app.view_models import targets as view
from kbert_core import KBertTrace
from kbert_core.explain.case import Target


def choose_target(now: Scene, trace: KBertTrace, page: str) -> Target | None:
    """Choose what to explain, where there is a choice.

    Args:
        now: the scene.
        trace: of it.
        page: with which the keys of the widgets begin.

    Returns:
        None where nothing is predicted at all.
    """
    found = view.targets(trace)
    if not found:
        return None
    info = services.model_info(now.model)
    if len(found) == 1:
        return found[0]
    return st.selectbox(
        t("target.label"),
        found,
        key=f"{page}.target.{hash(found)}",
        format_func=lambda target: view.name_of(target, trace, info),
        width=300,
    )
