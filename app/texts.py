"""Texts of the interface, in the language of whoever looks.

English stands where it is used, Chinese in ``locales/zh/LC_MESSAGES/app.po``
(``python -m app.locales.update`` after texts changed). A text that has no
translation is shown in English. This module knows no streamlit: whose language
counts is asked of ``language_of``, which the app's entry sets.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from babel.messages.pofile import read_po

LANGUAGES = ("zh", "en")
LOCALES = Path(__file__).parent / "locales"


def default_language() -> str:
    """The language where nobody has chosen one: KBERT_LANGUAGE, else English."""
    wanted = os.environ.get("KBERT_LANGUAGE", "")
    return wanted if wanted in LANGUAGES else "en"


language_of: Callable[[], str] = default_language
_spoken: ContextVar[str | None] = ContextVar("spoken", default=None)


def language() -> str:
    """The language texts are in now: that of :func:`speaking`, else of whoever looks."""
    return _spoken.get() or language_of()


@contextmanager
def speaking(name: str) -> Iterator[None]:
    """Have texts in one language, where nobody's page is being made: a download in the making."""
    token = _spoken.set(name)
    try:
        yield
    finally:
        _spoken.reset(token)


def t(text: str, /, **values: object) -> str:
    """Translate a text and fill its values in; plain text.

    Call it where the text is shown: what is kept, at import or in a cache that
    visitors share, keeps the language of whoever came first.
    """
    text = translations(language()).get(text, text)
    return text.format(**values) if values else text


def tn(one: str, many: str, n: int, /, **values: object) -> str:
    """Translate the text for one thing or for several; ``{n}`` is how many."""
    return t(one if n == 1 else many, n=f"{n:,}", **values)


def N_(text: str) -> str:
    """Mark a text that :func:`t` is given later, so that it is translated too."""
    return text


@cache
def translations(language: str) -> Mapping[str, str]:
    """The texts of a language by their English; one text serves one thing and several."""
    path = LOCALES / language / "LC_MESSAGES" / "app.po"
    found: dict[str, str] = {}
    if path.exists():
        with path.open("rb") as file:
            for message in read_po(file, locale=language):
                ids, texts = (
                    [x] if isinstance(x, str) else x for x in (message.id, message.string)
                )
                if ids and texts and ids[0] and texts[0]:
                    found |= dict.fromkeys(ids, texts[0])
    return found


def listed(items: Iterable[object]) -> str:
    """String words together: "a, b, c"."""
    return t(", ").join(map(str, items))


def clauses(parts: Iterable[str]) -> str:
    """String clauses together: "a; b"."""
    return t("; ").join(parts)


def sentences(parts: Iterable[str]) -> str:
    """String sentences together, each with its stop."""
    return " ".join(parts) if language() == "en" else "".join(parts)
