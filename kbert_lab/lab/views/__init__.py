"""Trace → plain dataclasses, sentences and HTML. No streamlit here."""
