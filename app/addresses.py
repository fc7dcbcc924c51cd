"""Addresses of the app that are handed on."""

from urllib.parse import urlencode, urlsplit

import streamlit as st


def address(**query: str) -> str:
    """The address of the first page, with parameters."""
    here = urlsplit(st.context.url or "")
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    start = f"{here.scheme}://{here.netloc}/" if here.netloc else ""
    return f"{start}{base + '/' if base else ''}?{urlencode(query)}"
