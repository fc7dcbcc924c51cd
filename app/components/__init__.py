"""The app's own Streamlit components, as thin as they can be."""
