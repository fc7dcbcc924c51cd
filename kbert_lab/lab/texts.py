"""Texts of the interface, in the language of whoever looks.

English stands where it is used, Chinese in ``locales/zh/LC_MESSAGES/app.po``
(``python -m kbert_lab.lab.locales.update`` after texts changed). A text that has no
translation is shown in English. This module knows no streamlit: whose language
counts is asked of ``language_of``, which the app's entry sets.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

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
def translations(language: str, of: str = "app") -> Mapping[str, str]:
    """The texts of a language by their English; one text serves one thing and several.

    Args:
        language: one of ``LANGUAGES``.
        of: "app", or "core": errors of ``kbert_core``, see :func:`refusal`.
    """
    path = LOCALES / language / "LC_MESSAGES" / f"{of}.po"
    found: dict[str, str] = {}
    if path.exists():
        from babel.messages.pofile import read_po  # of the app's packages: the lab goes without

        with path.open("rb") as file:
            for message in read_po(file, locale=language):
                ids, texts = (
                    [x] if isinstance(x, str) else x for x in (message.id, message.string)
                )
                if ids and texts and ids[0] and texts[0]:
                    found |= dict.fromkeys(ids, texts[0])
    return found


# Errors of the core


# Values of an error's text that are words of the core too, and no names, numbers or texts given.
WORDED = {
    *("by_hand", "card", "edit", "error", "field", "here", "how", "kind", "meant", "place"),
    *("problem", "reason", "remedy", "unit", "wanted", "what", "where", "who", "whose", "why"),
    "wrong",
}
DEEPEST = 4  # values within values


# The folders of this machine that whoever looks isn't to see; see ``services``.
hidden_folders: Callable[[], Iterable[Path]] = tuple


def without_folders(text: str) -> str:
    """A text without the folders of this machine, where whoever looks isn't at it."""
    for folder in hidden_folders():
        text = text.replace(f"{folder}{os.sep}", "").replace(str(folder), folder.name)
    return text


def refusal(error: object) -> str:
    """What the core refused, in the language of whoever looks; what isn't translated, in English.

    The core says it in English, its values filled in. The catalogues ``core.po`` hold the texts
    without their values, so that these can be found again in what was said: the Chinese one all of
    them, the English one those that name options of a command, with the page's fields in place.
    """
    said = without_folders(str(error))
    lines = said.split("\n")
    translated = [_translated(line) for line in lines]
    told = all(one != line for one, line in zip(translated, lines, strict=True))
    whole = said if told else _translated(said)  # a value of it may have lines too
    return whole if whole != said else "\n".join(translated)


def _translated(said: str, deep: int = 0) -> str:
    for parts, names, text in _refusals(language()) if deep < DEEPEST else ():
        found = _between(parts, said)
        if found is not None:
            given = dict(zip(names, found, strict=True))
            values = {
                name: _translated(value, deep + 1) if name in WORDED else value
                for name, value in given.items()
            }
            worded = [name for name in names if name in WORDED]
            says = re.search(r"\w", "".join(parts))
            if says or ("\n" not in said and all(values[n] != given[n] for n in worded)):
                return _filled(text, values)
    return said


def _filled(text: str, values: Mapping[str, str]) -> str:
    """A text with its values; other braces in it stay."""
    return re.sub(r"\{(\w+)\}", lambda place: values[place[1]], text)


def _between(parts: Sequence[str], said: str) -> list[str] | None:
    """What stands between parts of a text; None: they don't make it. In a time that is linear."""
    first, *rest = parts
    if not rest:
        return [] if said == first else None
    at, end = len(first), len(said) - len(rest[-1])
    if at > end or not (said.startswith(first) and said.endswith(rest[-1])):
        return None
    values = []
    for part in rest[:-1]:
        found = said.find(part, at, end)
        if found < 0:
            return None
        values.append(said[at:found])
        at = found + len(part)
    return [*values, said[at:end]]


@cache
def _refusals(language: str) -> list[tuple[list[str], list[str], str]]:
    """Texts as what stands between their values, these' names, and a translation.

    Those that say most are first.
    """
    found, own = [], translations(language, "core")
    for english in translations(LANGUAGES[0], "core"):
        text = own.get(english, english)
        parts, names = re.split(r"\{\w+\}", english), re.findall(r"\{(\w+)\}", english)
        found.append((parts, names, text))
    return sorted(found, key=lambda one: -sum(map(len, one[0])))


def listed(items: Iterable[object]) -> str:
    """String words together: "a, b, c"."""
    return t(", ").join(map(str, items))


def clauses(parts: Iterable[str]) -> str:
    """String clauses together: "a; b"."""
    return t("; ").join(parts)


def sentences(parts: Iterable[str]) -> str:
    """String sentences together, each with its stop."""
    return " ".join(parts) if language() == "en" else "".join(parts)
