"""The app's entry: `streamlit run app/main.py` from the repository root."""

import sys
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from app.texts import t  # noqa: E402

st.set_page_config(page_title=t("app.title"), page_icon="🌿", layout="wide")
st.logo(ROOT / "app" / "logo.svg", size="large")
st.navigation(
    [
        st.Page(
            "app_pages/lab.py", title=t("lab.page"), icon=":material/account_tree:", default=True
        ),
        st.Page("app_pages/knowledge.py", title=t("kg.page_name"), icon=":material/hub:"),
        st.Page("app_pages/audit.py", title=t("audit.page"), icon=":material/fact_check:"),
        st.Page("app_pages/about.py", title=t("about.page"), icon=":material/info:"),
    ],
    position="top",
).run()
