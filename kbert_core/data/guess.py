"""The kind of task, told from how labelled data look."""

import lzma
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from kbert_core.data.columns import NEEDED, Look, columns_by_task
from kbert_core.data.conll import TAG, is_conll
from kbert_core.data.hub import look_at_table
from kbert_core.data.sources import labelled_file
from kbert_core.errors import DataError
from kbert_core.knowledge.io.compression import remedy

TASKS = {
    "ner": "named entities",
    "classify": "classification",
    "pair": "sentence pairs",
    "rank": "answer selection",
}
LOOKED_AT = 50  # rows of the training set


def guess_task(
    name: str | Path, columns: Mapping[str, str] | None = None, *, split: str = "train"
) -> str:
    """Tell the task from a data set's columns and first rows.

    A second text makes it a pair, with a question's number answer selection;
    rows of tags, or lists of tokens and tags, make it named entities. So do
    they where a few rows are broken, which the reader can then name.

    Args:
        name: a file, a folder or hf:NAME, as for ``read_split``.
        columns: our names → the data's, where they aren't the usual ones.
        split: the one to look at.

    Raises:
        DataError: the data can't be read, or their columns fit no task.
    """
    return _told(_look(str(name), columns, split))[0]


def _told(look: Look) -> tuple[str, bool]:
    """The task, and whether no row speaks for another."""
    some = bool(look.rows)
    if "pair" in look.fits:
        return "rank" if "qid" in look.fits["rank"] else "pair", some
    sure = some
    if "ner" in look.fits:
        found = look.fits["ner"]
        votes = [_is_tagged(row[found["text_a"]], row[found["label"]]) for row in look.rows]
        tagged, other = votes.count(True), votes.count(False)
        sure = some and not (tagged and other)
        if some and tagged >= other:
            return "ner", sure
    if "classify" in look.fits:
        return "classify", sure
    raise DataError(
        f"{look.name}: its columns ({', '.join(look.columns)[:80]}) don't tell the kind of task. "
        f"Name it with --task ({', '.join(TASKS)}), and what the columns hold with "
        "--columns text_a=NAME,label=NAME where they aren't the usual ones."
    )


def other_task(
    name: str | Path,
    task: str,
    columns: Mapping[str, str] | None = None,
    *,
    split: str = "train",
) -> str:
    """Say that data look like another task's, for the end of an error; else nothing.

    Nothing too where there is no row, or rows look like several tasks'. Candidate
    answers without a question's number look like pairs, and may be either.
    """
    try:
        looks, sure = _told(_look(str(name), columns, split))
    except DataError:
        return ""
    if not sure or looks == task or task not in TASKS or {looks, task} == {"pair", "rank"}:
        return ""
    return f" The data look like {TASKS[looks]}, and the task is {TASKS[task]}."


def _look(name: str, columns: Mapping[str, str] | None, split: str) -> Look:
    path = labelled_file(name, split)
    if path is None:
        return look_at_table(name, split, TASKS, columns, rows=LOOKED_AT)
    try:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rb") as file:
            lines = [line.decode("utf-8-sig").rstrip("\r\n") for line in islice(file, LOOKED_AT)]
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise DataError(f"{path}: can't be read ({error}). {remedy(error)}") from error
    if not lines:
        raise DataError(f"{path}: the file is empty. Expected a header and labelled rows.")
    if not columns and is_conll(lines):
        both = {column: column for column in NEEDED["ner"]}
        return Look(str(path), tuple(both), {"ner": both}, ({column: [] for column in both},))
    header = lines[0].split("\t")
    rows = [line.split("\t") for line in lines[1:] if line]
    return Look(
        str(path),
        tuple(header),
        columns_by_task(header, dict.fromkeys(TASKS, columns), f"{path}, line 1"),
        tuple(dict(zip(header, row, strict=True)) for row in rows if len(row) == len(header)),
    )


def _is_tagged(text: Any, label: Any) -> bool | None:
    """Whether a label is tags, also where they aren't as many as the tokens.

    None: one character with one tag, which may be a class named like a tag.
    """
    if isinstance(text, list) or isinstance(label, list):
        return isinstance(text, list) and isinstance(label, list)
    tags = str(label).split(" ")
    if not all(map(TAG.fullmatch, tags)):
        return False
    if len(tags) > 1:
        return True
    return None if len(str(text)) == 1 else False
