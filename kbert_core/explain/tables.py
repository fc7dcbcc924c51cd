"""What results of explanations share when they become rows, JSON or words."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kbert_core.errors import MissingPackageError
from kbert_core.explain.target import NO_SPAN, Target
from kbert_core.explain.variants import Outcome
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.triple import Triple

if TYPE_CHECKING:  # optional, and slow to start
    from pandas import DataFrame


def frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> "DataFrame":
    """Put rows into a table.

    Raises:
        MissingPackageError: pandas isn't installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingPackageError(
            "Tables need pandas, which isn't installed. `pip install pandas`."
        ) from error
    return pandas.DataFrame(list(rows), columns=list(columns))


def triple_dict(triple: Triple) -> dict[str, str]:
    """A triple as three fields."""
    return {"head": triple.head, "relation": triple.relation, "tail": triple.tail}


def name_of(triple: Triple) -> str:
    """A triple in a line."""
    return f"{triple.head} · {triple.relation} · {triple.tail}"


def mention_text(sentences: Sequence[str], mention: Mention) -> str:
    """What a mention reads in its text."""
    return sentences[mention.sentence][mention.start : mention.end]


def mention_dict(sentences: Sequence[str], mention: Mention) -> dict[str, Any]:
    """Where something hangs."""
    return {
        "text": mention_text(sentences, mention),
        "sentence": mention.sentence,
        "start": mention.start,
        "end": mention.end,
    }


def target_dict(target: Target) -> dict[str, Any]:
    """What is explained; without a place for a class."""
    if target.start == NO_SPAN:
        return {"label": target.label}
    return {"label": target.label, "start": target.start, "end": target.end}


def outcome_dict(outcome: Outcome) -> dict[str, Any]:
    """What a variant's run gave."""
    return {"score": outcome.score, "answer": outcome.answer}
