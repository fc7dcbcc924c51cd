"""Where a page's labelled texts come from: the example, a folder of this machine, or an upload."""

import streamlit as st

from app import services
from app.state import KEEP
from app.texts import t

EXAMPLE, FOLDER, UPLOAD = "example", "folder", "upload"

ss = st.session_state


def data_kinds() -> list[str]:
    """Where data can come from here."""
    return [EXAMPLE, *([FOLDER] if services.may_open_paths() else []), UPLOAD]


def choose_data_source(page: str, label: str) -> str:
    """Choose one of them, and name the folder where it is one.

    Args:
        page: with which the keys of the widgets begin: "{page}.data", "{page}.folder".
        label: of the choice.

    Returns:
        What was chosen; the fields of an upload are the page's.
    """
    st.segmented_control(
        label,
        data_kinds(),
        key=f"{page}.data",
        format_func=lambda kind: t(f"audit.data_{kind}"),
        required=True,
        **KEEP,
    )
    chosen = str(ss[f"{page}.data"])
    if chosen == FOLDER:
        st.text_input(
            t("audit.folder"),
            key=f"{page}.folder",
            placeholder=t("audit.folder_placeholder"),
            **KEEP,
        )
    return chosen
