"""The guided play of a new visitor."""

from collections.abc import Sequence

import streamlit as st

from kbert_lab.lab.drawings import source
from kbert_lab.lab.texts import t

_play = st.components.v2.component("kbert_play", js=source("play.js"))
SECONDS = 20


def draw_play(html: str, steps: Sequence[str], again: int) -> None:
    """Play a picture in a corner of the page, once in a browser.

    Args:
        html: the picture; escaped.
        steps: what is said of it, one after the other.
        again: how often it was asked for; 0: it is for new visitors alone.
    """
    said = {"title": t("K-BERT Lab in 20 seconds"), "skip": t("Skip"), "turn": t("Your turn")}
    data = {"html": html, "steps": list(steps), "again": again, "seconds": SECONDS, **said}
    _play(key="lab.play", data=data, height=0)
