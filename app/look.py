"""What Streamlit's theme can't say of its own elements."""

CSS = """
<style>
/* On the lighter blue of the dark theme white text has too little contrast. */
[data-testid="stApp"] span[data-tag], [data-testid="stApp"] span[data-tag] button,
[data-testid="stApp"] button[kind^="primary"]:enabled { color: light-dark(#FFFFFF, #0E161C); }
</style>
"""
