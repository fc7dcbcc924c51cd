"""Where train, dev and test come from: a folder, files by name, or the hub; and their task."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from kbert_core.errors import DataError, OptionError, SplitError
from kbert_core.files import shipped
from kbert_core.knowledge.io.compression import ENDINGS as PACKED
from kbert_core.knowledge.io.compression import plain_ending
from kbert_core.labels import OUTSIDE
from kbert_lab.data.files import DataFiles
from kbert_lab.data.hub import TABLES, hub_table, is_folder_of_tables, is_hub_name
from kbert_lab.data.labelled import (
    LINKS,
    SPLITS,
    Example,
    examples_of,
    look_like_several,
    read_links,
)
from kbert_lab.data.squad import read_comprehension
from kbert_lab.data.tables import SPANS, ColumnError, HiddenLabels, Table, text_table
from kbert_lab.data.tagging import LIKE_TAG

TASKS = {
    "ner": "named entities",
    "classify": "classification",
    "multilabel": "several labels a text",
    "pair": "sentence pairs",
    "rank": "answer selection",
}
ENDINGS = tuple(
    f"{ending}{packed}" for ending in (".tsv", ".txt", ".conll", ".bio") for packed in ("", *PACKED)
)
OF_FORM: dict[str, tuple[Sequence[str], Callable[[Path], list[Example]]]] = {  # no tables
    "link": (LINKS, read_links),
    "qa": ((".json",), read_comprehension),
}
MAY_BE_EITHER = ({"pair", "rank"}, {"classify", "multilabel"})
A_SHARE = "--dev-share 0.1 (in a suite dev_share: 0.1, under data)"
ALSO_CALLED = {"dev": ("devel", "validation", "valid")}  # a split, in other people's files
LOOKED_AT = 50  # rows that tell the task
log = logging.getLogger(__name__)


def read_split(
    name: str, split: str, task: str, columns: Mapping[str, str] | None = None
) -> list[Example]:
    """Read one split of a data set: of a folder, or of hf:NAME; a file is taken whatever the split.

    ``columns`` are our names → the data's, where they can't be guessed. SplitError where there is
    no such split, or its labels are hidden; DataError where it can't be read.
    """
    if task in OF_FORM:
        endings, read = OF_FORM[task]
        path = shipped(name)
        return read(find_split(path, split, endings) if path.is_dir() else path)
    return examples_of(_table(name, split, task, columns), task, columns)


def _table(name: str, split: str, task: str, columns: Mapping[str, str] | None) -> Table:
    path = shipped(name)
    if is_hub_name(name):
        return hub_table(name, split)
    if path.is_file() and plain_ending(path) in TABLES:
        return hub_table(str(path), split)
    try:
        return text_table(find_split(path, split) if path.is_dir() else path, task, columns)
    except SplitError:
        tables = is_folder_of_tables(path)
        with suppress(SplitError):  # a .json beside our train.tsv is no table
            tables = tables and not find_split(path, "train")
        if not tables:
            raise
    return hub_table(str(path), split)


def find_split(folder: str | Path, split: str, endings: Sequence[str] = ENDINGS) -> Path:
    """Find the file of a split in a folder; SplitError where there is none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder. Name the folder that holds train.tsv.")
    called = (split, *ALSO_CALLED.get(split, ()))
    files = (folder / f"{name}{ending}" for name in called for ending in endings)
    if (path := next(filter(Path.is_file, files), None)) is not None:
        return path
    there = sorted(p.name for p in folder.iterdir() if p.name.endswith(tuple(endings)))
    held = ", ".join(there[:8]) or f"no {endings[0]} file"
    hint = SPANS if any(folder.glob("*.ann")) else ""
    raise SplitError(
        f"{folder}: no {split}{endings[0]}; the folder holds {held}. "
        f"Add it, or name a file in place of the folder (`kbert train` takes --{split} FILE too, "
        f"and a suite files under data).{hint}"
    )


def read_present(
    name: str,
    task: str,
    columns: Mapping[str, str] | None = None,
    *,
    others: Mapping[str, str | None] | None = None,
) -> dict[str, list[Example]]:
    """Read train, and dev and test if they are there; a single file is train.

    ``others`` are files to take dev or test from.
    """
    named = {split: file for split, file in (others or {}).items() if file}
    found = {"train": read_split(name, "train", task, columns)}
    for split in SPLITS[1:]:
        if split not in named and shipped(name).is_file():
            continue
        try:
            found[split] = read_split(named.get(split, name), split, task, columns)
        except HiddenLabels as error:
            log.warning("left out: %s", error)
        except SplitError:  # it isn't there
            continue
    return found


def unused_files(folder: Path, splits: Sequence[str], given: Iterable[Path] = ()) -> list[str]:
    """Return the names of a folder's labelled files that no split uses, nor is ``given``."""
    used = {file.name for file in given if file.resolve().parent == folder.resolve()}
    for split in splits:
        with suppress(SplitError):
            used.add(find_split(folder, split).name)
    labelled = {file.name for file in folder.iterdir() if file.name.endswith(ENDINGS)}
    return sorted(labelled - used) if used else []


def read_splits(files: DataFiles, task: str, *, seed: int = 0) -> dict[str, list[Example]]:
    """Read train, dev and test; only test may be missing, and dev where there is a ``dev_share``.

    SplitError where another is missing; OptionError where there is a dev set and a share too.
    """
    found = {"train": read_split(files.named("train"), "train", task, files.columns)}
    for split in SPLITS[1:]:
        try:
            if name := files.named(split):
                found[split] = read_split(name, split, task, files.columns)
        except SplitError as error:
            if split == "test":
                log.warning("no scores on test: %s", error)
            elif not files.dev_share:
                raise SplitError(
                    f"{error} Or take a part of the training set: {A_SHARE}"
                ) from error
    if files.dev_share:
        if "dev" in found:
            raise OptionError(
                f"{files.data} has a dev set, and --dev-share is given too. Leave the share out, "
                "or name the file to train on with --train instead of --data."
            )
        found["train"], found["dev"] = hold_out(found["train"], files.dev_share, seed=seed)
    elif "dev" not in found:
        raise SplitError(
            "No dev set. Name a file with --dev FILE, or take a part of the training set: "
            f"{A_SHARE}"
        )
    held = {frozenset(e.sentences) for split in SPLITS[1:] for e in found.get(split, ())}
    for name in files.also_train:  # but for texts of dev and test, a pair in either order
        more = read_split(name, "train", task, files.columns)
        kept = [e for e in more if frozenset(e.sentences) not in held]
        if len(kept) < len(more):
            log.warning("%s: %d rows of dev or test left out", name, len(more) - len(kept))
        found["train"] = [*found["train"], *kept]
    return {split: found[split] for split in SPLITS if split in found}


def hold_out(
    examples: Sequence[Example], share: float, *, seed: int
) -> tuple[list[Example], list[Example]]:
    """Divide examples at random into (the rest, a share), each in its old order.

    Rows of one question, and rows of the same text, stay together, and at least one text of every
    label stays in the rest. A SplitError is raised if a side would be empty.
    """
    texts: dict[tuple[str, ...], list[Example]] = {}
    for example in examples:
        group = (example.group,) if example.group else example.sentences
        if example.answers:
            group = example.sentences[1:]  # all that is asked about one paragraph
        texts.setdefault(group, []).append(example)
    if len(texts) < 2:
        raise SplitError(
            f"All {len(examples)} training rows have the same text or question, so none can be "
            "held out. Name a dev file with --dev FILE."
        )
    groups = [*texts.values()]
    labels = [{label for example in group for label in example.labels} for group in groups]
    left = Counter(label for those in labels for label in those)
    held: set[int] = set()
    rows = 0
    for number in np.random.default_rng(seed).permutation(len(groups))[:-1]:
        if held and rows >= share * len(examples):
            break
        if all(left[label] > 1 for label in labels[number]):
            left.subtract(labels[number])
            held.update(map(id, groups[number]))
            rows += len(groups[number])
    if not held:
        raise SplitError(
            "Every training row has a label that no other text has, so none can be held out. Name "
            "a dev file with --dev FILE, or give more rows of each label."
        )
    return [e for e in examples if id(e) not in held], [e for e in examples if id(e) in held]


def guess_task(
    name: str | Path, columns: Mapping[str, str] | None = None, *, split: str = "train"
) -> str:
    """Find the task by a data set's columns and first rows; DataError if none fits.

    A second text makes it a pair, with a question's number answer selection;
    rows of tags, or lists of tokens and tags, make it named entities. So do
    they where a few rows are broken, which the reader can then name.
    """
    return _guess(str(name), columns, split)[0]


def other_task(
    name: str | Path, task: str, columns: Mapping[str, str] | None = None, *, split: str = "train"
) -> str:
    """Return a sentence for an error if data look like those of another task; else nothing.

    Nothing too where there is no row, or rows look like several tasks'. Candidate
    answers without a question's number look like pairs, and may be either; so may texts with a
    label.
    """
    if task not in TASKS:
        return ""
    try:
        looks, sure = _guess(str(name), columns, split)
    except DataError:
        return ""
    if not sure or looks == task or {looks, task} in MAY_BE_EITHER:
        return ""
    return f" The data look like {TASKS[looks]}, and the task is {TASKS[task]}."


def _guess(name: str, columns: Mapping[str, str] | None, split: str) -> tuple[str, bool]:
    """Return the task, and whether all rows agree with it."""
    table = _table(name, split, "", columns)
    if table.tagged:
        return "ner", True
    fits: dict[str, Mapping[str, str]] = {}
    for kind in TASKS:
        with suppress(ColumnError):
            fits[kind] = table.columns_of(kind, columns)
    task = next((task for task in ("pair", "ner", "classify") if task in fits), "")
    if not task:
        raise DataError(
            f"{table.source.name}: its columns ({', '.join(table.columns)[:80]}) don't show "
            f"which task this is. Name the task with --task ({', '.join(TASKS)}), or --task qa for "
            "questions in SQuAD's form. If the columns have unusual names, name them too: "
            "--columns text_a=NAME,label=NAME. If these are no headings, write such above them."
            f"{table.hint}"
        )
    text, label = fits[task]["text_a"], fits[task]["label"]
    some = (row for _, row in table.records([text, label]) if isinstance(row, Mapping))
    rows = [(row.get(text), row.get(label)) for row in islice(some, LOOKED_AT)]
    if task == "pair":
        return "rank" if "qid" in fits["rank"] else "pair", bool(rows)
    votes = [_is_tagged(*row) for row in rows if task == "ner"]
    tagged, other = votes.count(True), votes.count(False)
    classes = "classify" in fits and (task == "classify" or not rows or tagged < other)
    kind = "classify" if classes else "ner"
    if classes and look_like_several(label for _, label in rows):
        kind = "multilabel"
    return kind, bool(rows) and not (tagged and other)


def _is_tagged(text: Any, label: Any) -> bool | None:
    """Say whether a label consists of tags, even if there are too many or too few.

    None: one character with one tag, which may be a class named like a tag.
    """
    if isinstance(text, list) or isinstance(label, list):
        return isinstance(text, list) and isinstance(label, list)
    tags = str(label).split(" ")
    if len(tags) == len(str(text)) == 1 and LIKE_TAG.fullmatch(tags[0]):
        return None
    with_types = OUTSIDE in tags and len(tags) == len(str(text).split(" "))  # O O LOC O
    return len(tags) > 1 and (with_types or all(map(LIKE_TAG.fullmatch, tags)))
