"""The language a visitor reads: chosen above the page, asked by the address, or the browser's."""

import streamlit as st

from app.app_pages.parts import segments
from app.components import mark_document
from app.streamlit_private import in_a_page
from kbert_lab.lab import texts
from kbert_lab.lab.texts import LANGUAGES, t

PARAMETER = "lang"  # of the address, so that a link keeps the language
UNSENT = "lab.add_"  # a form's fields: what is typed there isn't told before it is sent
NAMES = {"zh": "中文", "en": "English"}  # each in itself

ss = st.session_state


def current() -> str:
    """The language of the visitor whose page is being made."""
    if not in_a_page():
        return texts.default_language()  # outside a page there is no visitor
    return ss.get("app.language") or ss.get("app.browser_language") or _of_browser()


def begin() -> None:
    """Take the language that a visit's first address asks for, and the browser's own."""
    asked = st.query_params.get(PARAMETER)
    if "app.browser_language" not in ss and asked in LANGUAGES:
        ss["app.language"] = asked
    ss["app.browser_language"] = _of_browser()


def chooser() -> None:
    """Draw the choice at the top right."""
    ss["app.language_chooser"] = current()
    with st.container(key="app_language"):
        segments(
            t("Language"),
            LANGUAGES,
            "app.language_chooser",
            lambda name: NAMES[name],
            on_change=_choose,
        )
        mark_document(current())


def _choose() -> None:
    _keep_choices()
    ss["app.language"] = ss["app.language_chooser"]


def _keep_choices() -> None:
    """Set every chooser again, as what it was.

    What a chooser sends is the option's text. In another language that is no
    option's any more, and would be taken for the value itself. What can't be
    set is left alone: a button's bool, a table's dict, files.
    """
    for key, value in list(ss.items()):
        if str(key).startswith(UNSENT):
            continue
        several = isinstance(value, list) and value and all(isinstance(v, str) for v in value)
        if several or (isinstance(value, str | int) and not isinstance(value, bool)):
            ss[key] = value


def _of_browser() -> str:
    """Chinese for a browser that asks for it, else the default."""
    locale = st.context.locale or ""
    return "zh" if locale.lower().startswith("zh") else texts.default_language()


texts.language_of = current
