"""Escaping, templates and colours: every text that people or files give goes through here.

What is more than a few tags stands in templates beside the views, which escape what they are given.
"""

import html
import re
import unicodedata
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from jinja2.ext import Extension

from kbert_lab.lab.drawings import source
from kbert_lab.lab.texts import refusal, t

# Colours that drawings and charts share. Roles are Okabe and Ito's.
TRUNK = "#0072B2"
BRANCH = "#E69F00"
LINK = "#009E73"
CHANGED = "#CC79A7"
ENTITY_TINTS = ("#009E73", "#56B4E9", "#D55E00", "#F0E442", "#8A7FBF", "#7F8C8D")


class _Unbroken(Extension):
    """Templates are written in lines; what is drawn has none of their line breaks."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return re.sub(r"\s*\n\s*", "", source)


@cache
def _templates() -> Environment:
    found = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, extensions=[_Unbroken]
    )
    found.globals["t"], found.filters["shown"] = t, plain
    return found


def rendered(template: str, **values: object) -> str:
    """Fill a template of this folder; what it is given is escaped."""
    return _templates().get_template(f"{template}.html.jinja").render(values)


def escape(text: object) -> str:
    """Make a text safe inside HTML and inside a quoted attribute."""
    return html.escape(str(text), quote=True)


def shown(text: str) -> str:
    """Make a token visible and safe: white space and control characters by name."""
    return escape(plain(text))


def plain(text: str) -> str:
    """Make a token visible where nothing is read as HTML; see :func:`shown`."""
    return "".join(_visible(c) for c in text) or "∅"


def markdown(text: object) -> str:
    """Make a text safe inside Streamlit's Markdown, links and colours included.

    A bare address stays text: a word joiner, which is not seen, parts it where
    Markdown would link it, as a backslash there doesn't keep it from that.
    A command or an option that is named in it, as in `kbert audit`, stays code.
    An error is said in the visitor's language.
    """
    text = refusal(text) if isinstance(text, Exception) else text
    plain, said = _COMMAND.split(str(text)), _COMMAND.findall(str(text))
    return "".join(_marked(part) + code for part, code in zip(plain, [*said, ""], strict=True))


def _marked(text: str) -> str:
    parted = _ADDRESS.sub("\u2060", text)
    marked = (f"\\{c}" if c in "\\`*_{}[]()<>#+-.!|$:~^=&" else c for c in parted)
    return "".join(marked).replace("\n", " ")


_ADDRESS = re.compile(r"(?<=http)(?=s?://)|(?<=www)(?=\.)|(?=@)", re.IGNORECASE)
_COMMAND = re.compile("`(?:kbert |--)[A-Za-z0-9 ._-]*[A-Za-z0-9]`")


def shorten(text: str, most: int) -> str:
    """The beginning of a text that has more characters than are shown."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def scrolling(table: str, more: str = "") -> str:
    """Put a table where it scrolls when it is large; by the keyboard too.

    Args:
        table: HTML.
        more: further classes.
    """
    return f'<div class="{f"kb-scroll {more}".strip()}" tabindex="0">{table}</div>'


def _visible(character: str) -> str:
    if character == " ":
        return "␣"
    if "\ufe00" <= character <= "\ufe0f" or unicodedata.category(character) in (
        "Cc",
        "Cf",
        "Zl",
        "Zp",
        "Zs",
        "Cs",
    ):
        return f"U+{ord(character):04X}"
    return character


def faint(colour: str, share: float) -> str:
    """A colour of which only a share is seen."""
    red, green, blue = bytes.fromhex(colour[1:])
    return f"rgba({red},{green},{blue},{share})"


CSS = f"<style>\n{source('page.css')}{source('start.css')}\n</style>\n"
