"""Tell the browser the page's language: for screen readers, and for the shape of characters."""

import streamlit as st

LANGUAGE_TAGS = {"zh": "zh-Hans", "en": "en"}

_mark = st.components.v2.component(
    "kbert_document_language",
    js="export default ({ data }) => { document.documentElement.lang = data.tag; };",
)


def mark_language(language: str) -> None:
    """Set the language of the whole document; draws nothing."""
    _mark(key="app.document_language", data={"tag": LANGUAGE_TAGS[language]}, height=0)
