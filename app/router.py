"""Which page a visitor sees, and its language; run by the server of ``main`` for each visitor."""

import sys
from importlib import import_module
from pathlib import Path

import streamlit as st

from app import language, load, logs, streamlit_private
from kbert_lab.lab.texts import speaking, t


def loading() -> None:
    """What the server's first visitor reads while PyTorch is imported."""
    with st.container(key="lab_top"):
        st.markdown(t("# One sentence, one graph, one BERT"))
        st.markdown(
            t(
                "The Lab hangs the triples of a knowledge graph on the names in a sentence, and "
                "shows what a language model makes of them. Switch a triple off, and watch the "
                "prediction change."
            )
        )
    waits = t(
        "PyTorch and a model are being loaded, once after each start of the server. This takes 3 "
        "to 10 seconds."
    )
    st.container(key="lab_waits").info(waits)
    load()
    st.rerun()


APP = Path(__file__).parent
LOADED = hasattr(sys.modules.get("app.state"), "begin")  # not before it is imported to its end

logs.begin()
language.begin()
st.set_page_config(page_title=t("K-BERT Lab"), page_icon="🌿", layout="wide")
st.html(streamlit_private.CSS)
st.html(APP / "look.css")
st.logo(APP / "logo.svg", size="large")
page = st.navigation(
    {
        "": [
            st.Page("app_pages/start.py", title=t("Start"), icon=":material/home:"),
            st.Page(
                "app_pages/lab.py" if LOADED else loading,
                title=t("Lab"),
                icon=":material/account_tree:",
                url_path="lab",
                default=True,
            ),
            st.Page("app_pages/explain.py", title=t("Explain"), icon=":material/route:"),
        ],
        t("Knowledge"): [
            st.Page("app_pages/knowledge.py", title=t("Knowledge"), icon=":material/hub:"),
            st.Page("app_pages/data.py", title=t("Data"), icon=":material/fact_check:"),
        ],
        t("More"): [
            st.Page("app_pages/learn.py", title=t("Learn"), icon=":material/school:"),
            st.Page("app_pages/about.py", title=t("About"), icon=":material/info:"),
        ],
    },
    position="top",
)
language.chooser()
with speaking(language.current()):  # looked up once, not for every text
    if LOADED or not page.url_path:
        page.run()
    else:
        loading()
    if LOADED:
        import_module("app.sharing").keep_address()
