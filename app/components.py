"""The drawings of the lab as components of Streamlit, and what it leaves undone in the document."""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from kbert_lab.lab.drawings import bundle, source
from kbert_lab.lab.texts import N_, t

if TYPE_CHECKING:  # not imported to run: the router draws with this before PyTorch is loaded
    from kbert_lab.lab.selection import Marks
    from kbert_lab.lab.views.heads import HeadsView
    from kbert_lab.lab.views.matrix import MatrixView

LANGUAGE_TAGS = {"zh": "zh-Hans", "en": "en"}
TRIPLE_TEXTS = {"save": N_("Save the change"), "off": N_("Switch off"), "on": N_("Switch on")}
COLOURS = (  # of Streamlit's theme, as the drawings call them
    ".root { --kb-ink: var(--st-text-color); --kb-page: var(--st-background-color); "
    "--kb-accent: var(--st-primary-color); --kb-soft: var(--st-secondary-background-color); "
    "--kb-line: var(--st-border-color); }\n"
)
PLAYED = 20  # seconds
ABOVE = 402  # pixels above the Lab's matrix, which is to be in sight without scrolling

ss = st.session_state
Message = Mapping[str, Any]
Heard = Callable[[Message], object]


def _drawing(name: str, **how: Any) -> Any:
    """A drawing as a component: its root gets the view, and what it sends is a trigger."""
    host = (
        "export default ({ data, parentElement, setTriggerValue }) => "
        f"${name}.draw(parentElement.querySelector('.root'), data[0], "
        "(sent) => setTriggerValue('sent', sent));"
    )
    return st.components.v2.component(
        f"kbert_{name}", html='<div class="root"></div>', js=bundle(name) + host, **how
    )


def _script(name: str, **how: Any) -> Any:
    text = (Path(__file__).parent / "scripts" / f"{name}.js").read_text(encoding="utf-8")
    return st.components.v2.component(f"kbert_{name}", js=text, **how)


_tree = _drawing("tree", isolate_styles=False)  # the page's own style sheet draws it
_tails = _drawing("tail")
_matrix = _drawing("matrix", css=COLOURS + source("matrix.css"))
_heads = _drawing("heads", css=COLOURS + source("heads.css"))
_graph = _drawing("graph", css=COLOURS + source("graph.css"))
_play = _drawing("play", isolate_styles=False)
_document, _address = _script("document"), _script("address")
_told = st.components.v2.component(
    "kbert_told",
    html='<p role="status" aria-live="polite"></p>',
    css="p { position: absolute; width: 1px; height: 1px; overflow: hidden; }",
    js="export default ({ data, parentElement }) => "
    '{ parentElement.querySelector("p").textContent = data.said; };',
)


def _draw(drawing: Any, view: Message, key: str, heard: Heard | None = None, **how: Any) -> None:
    """Show a view; what is sent is given to ``heard``, and then drawn anew, done or refused.

    The view is in a list: of a dict Streamlit asks pandas whether a part of it is a table.
    """
    answered = f"{key}.answered"

    def sent() -> None:
        ss[answered] = ss.get(answered, 0) + 1
        if heard is not None and (message := getattr(ss.get(key), "sent", None)):
            heard(message)

    data = [{**view, "answered": ss.get(answered, 0)}]
    drawing(key=key, data=data, on_sent_change=sent, **how)


def draw_tree(html: str, *, key: str, heard: Heard) -> None:
    """Draw a tree, or another line of tokens.

    Args:
        html: escaped, see ``kbert_lab.lab.views.tree.tree_html``; anything but plain
            elements is dropped before it is shown.
        heard: what is done with what a visitor does in it; see ``drawings/tree.js``.
    """
    _draw(_tree, {"html": html, "group": _group_of(key)}, key, heard)


def tell_tails(
    request: int,
    *,
    key: str,
    tails: Sequence[str] | None = None,
    glosses: Mapping[str, str] | None = None,
    asked: Sequence[str] = (),
    outcomes: Mapping[str, tuple[str, bool]] | None = None,
) -> None:
    """Answer a question of the box in which a tail is typed; part by part, as they are known.

    Args:
        request: of the question.
        key: of this part of the answer.
        tails: that there are; None: as said before.
        glosses: of some of them.
        asked: whose outcomes are still to come.
        outcomes: of tails: what would be predicted, and whether that is another prediction.
    """
    told = {"tails": tails, "glosses": glosses or {}, "asked": asked, "outcomes": outcomes or {}}
    _draw(_tails, {"request": request, **told}, key, height=0)


def draw_matrix(
    view: "MatrixView", marks: "Marks", *, key: str, heard: Heard, why: Message | None = None
) -> None:
    """Draw a matrix.

    Args:
        marks: what of it is chosen.
        heard: what is done with what a visitor does in it; see ``drawings/matrix.js``.
        why: see ``kbert_lab.lab.views.why.in_browser``; None: nothing is said of a chosen cell.
    """
    shown = {**view.data(marks), "group": _group_of(key), "why": why, "above": ABOVE}
    _draw(_matrix, shown, key, heard)


def draw_heads(view: "HeadsView", chosen: tuple[int, int], *, key: str, heard: Heard) -> None:
    """Draw small maps; ``chosen`` are the layer and head shown large, from 1; 0 is a mean."""
    _draw(_heads, view.data(*chosen), key, heard)


def draw_graph(data: Message, *, key: str, heard: Heard, editable: bool = False) -> None:
    """Draw a graph by vis-network; see ``kbert_lab.lab.views.neighbourhood``.

    Its script, pyvis's copy of it, is in a component of its own that never changes, so a
    browser gets its half megabyte once a visit; the drawing itself is a few kilobytes.
    """
    texts = {
        "alt": t("Entities and their triples as a graph"),
        "tail": t("tail"),
        **{name: t(text) for name, text in TRIPLE_TEXTS.items()},
    }
    _library()(key=f"{key}.library", data={}, height=0)
    _draw(_graph, {**data, "texts": texts, "editable": editable}, key, heard)


def draw_play(html: str, steps: Sequence[str], again: int) -> None:
    """Play a picture to a new visitor in a corner of the page, once in a browser.

    Args:
        html: the picture; escaped.
        steps: what is said of it, one after the other.
        again: how often it was asked for; 0: it is for new visitors alone.
    """
    said = {"title": t("K-BERT Lab in 20 seconds"), "skip": t("Skip"), "turn": t("Your turn")}
    view = {"html": html, "steps": list(steps), "again": again, "seconds": PLAYED, **said}
    _draw(_play, view, "lab.play", height=0)


@st.cache_resource(show_spinner=False)
def _library() -> Any:
    home = Path((find_spec("pyvis").submodule_search_locations or [""])[0])  # type: ignore[union-attr]
    text = (home / "lib" / "vis-9.1.2" / "vis-network.min.js").read_text(encoding="utf-8")
    return st.components.v2.component("kbert_vis_network", js=f"{text}\nexport default () => {{}};")


def _group_of(key: str) -> str:
    """What a tree and its matrix have in common: the number of their column, if they have one."""
    last = key.rsplit(".", 1)[-1]
    return last if last.isdigit() else ""


# The document


def mark_document(language: str) -> None:
    """Set the language of the whole document, on which screen readers and the shape of characters
    depend; and have the menu of a narrow window close over the page that it led to."""
    _document(key="app.document", data={"tag": LANGUAGE_TAGS[language]}, height=0)


def tell(said: str, key: str) -> None:
    """Have screen readers say what has changed; draws nothing. Only another text is said."""
    _told(key=key, data={"said": said}, height=0)


def keep_address(
    query: Mapping[str, str], link: str | None, run: int, *, key: str, on_found: Callable[[], None]
) -> None:
    """Have the address say what the page shows, and the tab remember it; draws nothing.

    Args:
        query: the address's parameters.
        link: to what the page shows; empty: there is nothing to come back to; None: the tab
            remembers what it does. In the first run that is then ``st.session_state[key].found``.
        run: the number of the page's run, so that the browser hears of each.
        key: of the component.
        on_found: is called with what the tab remembers.
    """
    data = {"query": dict(query), "link": link, "begins": run == 1, "run": run}
    _address(key=key, data=data, on_found_change=on_found, height=0)
