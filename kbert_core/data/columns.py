"""Which column of a table holds what, by the names that are in use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kbert_core.errors import DataError, OptionError

OURS = ("text_a", "text_b", "label", "qid")
TEXTS = ("text_a", "text", "sentence", "content", "review")
TOKENS = ("text_a", "tokens", "words")
PAIRS = (
    ("text_a", "text_b"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "answer"),
    ("question", "sentence"),
    ("query", "passage"),
    ("query", "title"),
)
LABELS = ("label", "labels", "gold_label", "ner_tags", "tags", "target")
QUESTION = ("qid", "question_id", "query_id")
NEEDED = {
    "ner": ("label", "text_a"),
    "classify": ("label", "text_a"),
    "pair": ("label", "text_a", "text_b"),
    "rank": ("label", "text_a", "text_b"),
    "mask": ("text_a",),
}


@dataclass(frozen=True)
class Look:
    """The first rows of labelled data whose task isn't known yet.

    Attributes:
        name: of the file or data set.
        columns: their names there.
        fits: task → (our column → its name there), of the tasks whose columns
            are all there.
        rows: by the names there.
    """

    name: str
    columns: tuple[str, ...]
    fits: Mapping[str, Mapping[str, str]]
    rows: tuple[Mapping[str, Any], ...]


def columns_of(
    task: str, names: Sequence[str], given: Mapping[str, str] | None, where: str
) -> dict[str, str]:
    """Find the columns that a task needs.

    Args:
        task: a key of ``NEEDED``.
        names: the table's columns.
        given: our name → the table's, which go before any guess.
        where: for messages.

    Returns:
        Our name → the table's: those of ``NEEDED``, and qid for answer
        selection where there is one.

    Raises:
        DataError: a column is missing.
    """
    needed, ner = NEEDED[task], task == "ner"
    found = dict(given or {})
    _check_there(found, names, where)
    known_texts = PAIRS if "text_b" in needed else [(n,) for n in (TOKENS if ner else TEXTS)]
    if not found.keys() & {"text_a", "text_b"}:
        texts = next((p for p in known_texts if set(p) <= set(names)), ())
        found.update(zip(("text_a", "text_b"), texts, strict=False))
    for ours, known in (*((n, (n,)) for n in needed), ("label", LABELS), ("qid", QUESTION)):
        named = next((name for name in known if name in names), None)
        if named is not None:
            found.setdefault(ours, named)
    missing = [ours for ours in needed if ours not in found]
    if missing:
        absent = [ours for ours in needed if ours not in names and ours in missing]
        raise DataError(
            f"{where}: no column '{absent[0] if absent else missing[0]}' in "
            f"'{' | '.join(names)[:80]}'. Expected {', '.join(needed)}, or say which columns to "
            f"take: --columns {','.join(f'{ours}=NAME' for ours in missing)}."
        )
    wanted = {*needed, *(["qid"] if task == "rank" else [])}
    return {ours: theirs for ours, theirs in found.items() if ours in wanted}


def columns_by_task(
    names: Sequence[str], given: Mapping[str, Mapping[str, str] | None], where: str
) -> dict[str, dict[str, str]]:
    """Find the columns of every task that has them all, see :func:`columns_of`.

    Args:
        given: task → (our name → the table's).

    Raises:
        DataError: a column that was given isn't there.
    """
    found = {}
    for task, its in given.items():
        _check_there(its or {}, names, where)
        try:
            found[task] = columns_of(task, names, its, where)
        except DataError:  # some are missing, so it isn't this task
            continue
    return found


def parse_columns(text: str | None) -> dict[str, str]:
    """Read ``text_a=sentence1,label=gold``; None is none.

    Raises:
        OptionError: no such form, or an unknown name on the left.
    """
    found = {}
    for part in text.split(",") if text else ():
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        if ours not in OURS or not equals or not theirs:
            raise OptionError(
                f"--columns has '{part}', expected NAME=COLUMN with one of {', '.join(OURS)} as "
                "NAME, several of them with commas between."
            )
        found[ours] = theirs
    return found


def _check_there(given: Mapping[str, str], names: Sequence[str], where: str) -> None:
    for ours, theirs in given.items():
        if theirs not in names:
            raise DataError(
                f"{where}: no column '{theirs}' for {ours}. There are {_list(names)}. "
                "Correct --columns."
            )


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:12]) or "none"
