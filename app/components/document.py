"""What Streamlit leaves undone in the document.

Its language, which screen readers and the shape of characters depend on; and
the menu of a narrow window, which would stay open over the page that it led to.
"""

from collections.abc import Callable, Mapping

import streamlit as st

from kbert_lab.lab.drawings import source

LANGUAGE_TAGS = {"zh": "zh-Hans", "en": "en"}

_told = st.components.v2.component(
    "kbert_told",
    html='<p role="status" aria-live="polite"></p>',
    css="p { position: absolute; width: 1px; height: 1px; overflow: hidden; }",
    js="export default ({ data, parentElement }) => "
    '{ parentElement.querySelector("p").textContent = data.said; };',
)
_address = st.components.v2.component("kbert_address", js=source("address.js"))
_document = st.components.v2.component("kbert_document", js=source("document.js"))


def mark_document(language: str) -> None:
    """Set the language of the whole document, and have its menu close; draws nothing."""
    _document(key="app.document", data={"tag": LANGUAGE_TAGS[language]}, height=0)


def tell(said: str, key: str) -> None:
    """Have screen readers say what has changed; draws nothing. Only another text is said."""
    _told(key=key, data={"said": said}, height=0)


def keep_address(
    query: Mapping[str, str], link: str | None, run: int, *, key: str, on_found: Callable[[], None]
) -> None:
    """Have the address say what the page shows, and the tab remember it; draws nothing.

    Args:
        query: the address's parameters.
        link: to what the page shows; empty: there is nothing to come back to; None: the tab
            remembers what it does. In the first run that is then ``st.session_state[key].found``.
        run: the number of the page's run, so that the browser hears of each.
        key: of the component.
        on_found: is called with what the tab remembers.
    """
    data = {"query": dict(query), "link": link, "begins": run == 1, "run": run}
    _address(key=key, data=data, on_found_change=on_found, height=0)
