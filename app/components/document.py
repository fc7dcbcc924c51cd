"""What Streamlit leaves undone in the document.

Its language, which screen readers and the shape of characters depend on; and
the menu of a narrow window, which would stay open over the page that it led to.
"""

import streamlit as st

from app.components import source

LANGUAGE_TAGS = {"zh": "zh-Hans", "en": "en"}

_document = st.components.v2.component("kbert_document", js=source("document.js"))


def mark_document(language: str) -> None:
    """Set the language of the whole document, and have its menu close; draws nothing."""
    _document(key="app.document", data={"tag": LANGUAGE_TAGS[language]}, height=0)
