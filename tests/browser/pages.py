"""The pages of the app, as its entry names them."""

import ast
from pathlib import Path

MAIN = Path(__file__).resolve().parents[2] / "app" / "router.py"


def pages_of(source: str) -> list[str]:
    """The place in the address of every `st.Page(…)` in a program; "" is the first page's."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != "st.Page":
            continue
        place = node.args[0].body if isinstance(node.args[0], ast.IfExp) else node.args[0]
        if not isinstance(place, ast.Constant):
            continue  # an old address, which leads to another page
        options = {word.arg: ast.literal_eval(word.value) for word in node.keywords if _plain(word)}
        if options.get("visibility") == "hidden":  # leads to another
            continue
        file = ast.literal_eval(place)
        found.append("" if options.get("default") else options.get("url_path") or Path(file).stem)
    return found


def _plain(word: ast.keyword) -> bool:
    return isinstance(word.value, ast.Constant)


PAGES = pages_of(MAIN.read_text(encoding="utf-8"))
