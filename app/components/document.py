"""What Streamlit leaves undone in the document.

Its language, which screen readers and the shape of characters depend on; and
the menu of a narrow window, which would stay open over the page that it led to.
"""

import streamlit as st

LANGUAGE_TAGS = {"zh": "zh-Hans", "en": "en"}

_JS = """
const LINK = '[data-testid="stSidebarNavLink"]';
const CLOSE = '[data-testid="stSidebarCollapseButton"] button';

export default ({ data }) => {
  document.documentElement.lang = data.tag;
  if (document.documentElement.dataset.kbMenu) return;
  document.documentElement.dataset.kbMenu = "closes";
  document.addEventListener("click", (event) => {
    if (event.target.closest?.(LINK)) {
      setTimeout(() => document.querySelector(CLOSE)?.click());
    }
  });
};
"""
_document = st.components.v2.component("kbert_document", js=_JS)


def mark_document(language: str) -> None:
    """Set the language of the whole document, and have its menu close; draws nothing."""
    _document(key="app.document", data={"tag": LANGUAGE_TAGS[language]}, height=0)
