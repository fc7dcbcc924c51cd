"""The app's entry: `streamlit run app/main.py` from the repository root."""

import gc
import os
import sys
from importlib import import_module
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

# Threads of a model that wait for work would take the processor from the page, and from the
# browser where both are on one machine; read once, when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from app import language, logs, streamlit_private  # noqa: E402
from kbert_lab.lab.texts import speaking, t  # noqa: E402


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
    gc.disable()  # looking through all that is imported takes a quarter of the time
    try:
        import_module("app.state")
    finally:
        gc.freeze()  # it stays, so nobody looks through it later either
        gc.enable()
    st.rerun()


LOADED = hasattr(sys.modules.get("app.state"), "begin")  # not before it is imported to its end

logs.begin()
language.begin()
st.set_page_config(page_title=t("K-BERT Lab"), page_icon="🌿", layout="wide")
st.html(streamlit_private.CSS)
st.html(ROOT / "app" / "look.css")
st.logo(ROOT / "app" / "logo.svg", size="large")
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
