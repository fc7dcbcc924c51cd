"""Every text of the interface, by key, in the language of whoever looks.

The texts stand in modules of their own, ``texts_<topic>.py``, each with the
same keys in ENGLISH and in CHINESE. This one knows no streamlit: whose
language counts is asked of ``language_of``, which the app's entry sets.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from app import (
    texts_about,
    texts_app,
    texts_audit,
    texts_compare,
    texts_effects,
    texts_examples,
    texts_file,
    texts_graphs,
    texts_interventions,
    texts_knowledge,
    texts_lab,
    texts_learn,
    texts_matrix,
    texts_models,
    texts_noise,
    texts_paths,
    texts_prediction,
    texts_scene,
    texts_search,
    texts_selection,
    texts_share,
    texts_start,
    texts_triples,
    texts_verdict,
    texts_work,
)

MODULES = [
    texts_app,
    texts_lab,
    texts_start,
    texts_models,
    texts_examples,
    texts_graphs,
    texts_triples,
    texts_matrix,
    texts_interventions,
    texts_selection,
    texts_prediction,
    texts_knowledge,
    texts_audit,
    texts_file,
    texts_verdict,
    texts_about,
    texts_learn,
    texts_share,
    texts_work,
    texts_scene,
    texts_paths,
    texts_noise,
    texts_effects,
    texts_search,
    texts_compare,
]
LANGUAGES = ("zh", "en")

ENGLISH = {key: text for module in MODULES for key, text in module.ENGLISH.items()}
CHINESE = {key: text for module in MODULES for key, text in module.CHINESE.items()}
_TEXTS: Mapping[str, Mapping[str, str]] = {"en": ENGLISH, "zh": ENGLISH | CHINESE}


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


def t(key: str, **values: object) -> str:
    """Return a text of the interface with its values filled in; plain text.

    Call it where the text is shown: what is kept, at import or in a cache that
    visitors share, keeps the language of whoever came first.
    """
    text = _TEXTS[language()][key]
    return text.format(**values) if values else text


def listed(items: Iterable[object]) -> str:
    """String words together: "a, b, c"."""
    return t("text.list").join(map(str, items))


def clauses(parts: Iterable[str]) -> str:
    """String clauses together: "a; b"."""
    return t("text.clauses").join(parts)


def sentences(parts: Iterable[str]) -> str:
    """String sentences together, each with its stop."""
    return t("text.gap").join(parts)
