"""All that the app uses of Streamlit's insides, which another version may change.

pyproject.toml bounds the version; ``tests/app/test_app_streamlit_private.py`` tries each use. What
the lab draws stands on the page as ``look.css`` says, which names some of its elements as well.
"""

from streamlit.runtime.scriptrunner import get_script_run_ctx

# What Streamlit's theme can't say of its own elements.
CSS = """
<style>
/* On the lighter blue of the dark theme white text has too little contrast. */
[data-testid="stApp"] span[data-tag], [data-testid="stApp"] span[data-tag] button,
[data-testid="stApp"] button[kind^="primary"]:enabled { color: light-dark(#FFFFFF, #0E161C); }
/* The choice of a language stands in the bar above the page; the links end before it. */
div:has(> .st-key-app_language) { position: fixed; top: .78rem; right: 1rem; width: auto;
  z-index: 999991; }
[data-testid="stToolbar"] { padding-right: 9rem; }
.st-key-app_language button { min-height: 0; padding: .12rem .55rem; font-size: .82rem; }
/* An upload speaks English alone. Its label, or the help beside it, says what it takes. */
:lang(zh) [data-testid="stFileUploaderDropzone"] > span button p { font-size: 0; }
:lang(zh) [data-testid="stFileUploaderDropzone"] > span button p::after { content: "选择文件";
  font-size: .9rem; }
:lang(zh) [data-testid="stFileUploaderDropzoneInstructions"] { display: none; }
</style>
"""


def in_a_page() -> bool:
    """Whether a visitor's page is being made, and not a test, a thread or an import."""
    return get_script_run_ctx(suppress_warning=True) is not None
