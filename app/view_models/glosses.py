"""What names of the Chinese demo graphs mean, for visitors who read English."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from app.texts import language
from kbert_core import Triple

GLOSSES = Path(__file__).parents[2] / "demo_kgs" / "glosses.tsv"


def gloss(name: str) -> str:
    """An entity's or a relation's English gloss; empty where there is none, or nobody needs it."""
    return _glosses().get(name, "") if language() == "en" else ""


def with_glosses(said: str, triple: Triple) -> str:
    """What is said of a triple, and what its names mean, as far as that is known."""
    found = [gloss(name) for name in (triple.head, triple.relation, triple.tail)]
    return f"{said} · {', '.join(filter(None, found))}" if any(found) else said


@cache
def _glosses() -> Mapping[str, str]:
    lines = GLOSSES.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)
