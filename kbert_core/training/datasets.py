"""Labelled data in the released K-BERT's formats, read exactly as published.

A file has a header and tab-separated columns: ``text_a`` and ``label``, for
pairs ``text_b``. For named entities the text is tokens separated by single
spaces with as many BIO tags, separated likewise. ``.tsv.xz`` is read too.
"""

import logging
import lzma
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kbert_core.errors import DataError
from kbert_core.tasks.ner import OUTSIDE, bio_spans

SPLITS = ("train", "dev", "test")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled input.

    Attributes:
        sentences: one text or two.
        label: for classification; None otherwise.
        words: for named entities the gold tokens' spans in the text, in
            characters, end exclusive.
        tags: and their BIO tags.
    """

    sentences: tuple[str, ...]
    label: str | None = None
    words: tuple[tuple[int, int], ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def spans(self) -> tuple[tuple[int, int, str], ...]:
        """Gold entities: (start, end, label) in characters."""
        return tuple(
            (self.words[first][0], self.words[last - 1][1], label)
            for first, last, label in bio_spans(self.tags)
        )


def find_split(folder: str | Path, split: str) -> Path:
    """Find ``train``, ``dev`` or ``test`` in a data folder.

    Raises:
        DataError: the folder or the file isn't there.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder. Name the folder that holds train.tsv.")
    for ending in (".tsv", ".tsv.xz", ".txt", ".txt.xz"):
        path = folder / f"{split}{ending}"
        if path.is_file():
            return path
    raise DataError(f"{folder}: no {split}.tsv. Expected train.tsv, dev.tsv and test.tsv there.")


def read_examples(path: str | Path, task: str) -> list[Example]:
    """Read a labelled file.

    Args:
        path: ``.tsv`` or ``.tsv.xz``; for fill-mask also plain ``.txt``.
        task: "ner", "classify", "pair" or "mask".

    Raises:
        DataError: with file and line, if a row doesn't fit.
    """
    path = Path(path)
    lines = _lines(path)
    if task == "mask" and ".txt" in path.suffixes:
        return _not_empty([Example((line.strip(),)) for line in lines if line.strip()], path)
    if not lines:
        raise DataError(f"{path}: the file is empty. Expected a header and labelled rows.")
    header = lines[0].split("\t")
    wanted = {"pair": ["label", "text_a", "text_b"], "mask": ["text_a"]}.get(
        task, ["label", "text_a"]
    )
    missing = [column for column in wanted if column not in header]
    if missing:
        raise DataError(
            f"{path}, line 1: no column '{missing[0]}' in the header '{' | '.join(header)[:80]}'. "
            f"Expected {' and '.join(wanted)}, separated by tabs."
        )
    places = {column: header.index(column) for column in wanted}
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) < len(header):
            raise DataError(
                f"{path}, line {number}: found {len(fields)} fields in '{line[:60]}', expected "
                f"{len(header)} ({', '.join(header)}). Add the missing field or delete the line."
            )
        rows.append((number, {column: fields[at] for column, at in places.items()}))
    if task == "ner":
        return _not_empty(_ner(path, rows), path)
    return _not_empty([_plain(task, row) for _, row in rows], path)


def labels_of(examples: Sequence[Example]) -> list[str]:
    """Every label, sorted; for named entities O first, then B-, I- by type."""
    if examples and examples[0].tags:
        types = sorted({tag[2:] for e in examples for tag in e.tags if tag != OUTSIDE})
        return [OUTSIDE, *(f"{border}-{type_}" for type_ in types for border in "BI")]
    return sorted({e.label for e in examples if e.label is not None})


def _lines(path: Path) -> list[str]:
    try:
        data = path.read_bytes()
        if path.suffix == ".xz":
            data = lzma.decompress(data)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: not UTF-8. Save the file as UTF-8.") from error
    except (OSError, lzma.LZMAError) as error:
        raise DataError(f"{path}: can't be read ({error}). Check the name.") from error
    return [line.removesuffix("\r") for line in text.split("\n")]


def _plain(task: str, row: dict[str, str]) -> Example:
    if task == "pair":
        return Example((row["text_a"], row["text_b"]), row["label"])
    return Example((row["text_a"],), row.get("label"))


def _ner(path: Path, rows: Sequence[tuple[int, dict[str, str]]]) -> list[Example]:
    """Join tokens to texts: without spaces where all are single characters."""
    split = [(n, row["text_a"].split(" "), row["label"].split(" ")) for n, row in rows]
    characters = all(len(token) <= 1 for _, tokens, _ in split for token in tokens)
    examples = []
    stray: list[int] = []  # lines of entities without a B-
    for number, tokens, tags in split:
        if len(tokens) != len(tags):
            raise DataError(
                f"{path}, line {number}: {len(tokens)} tokens and {len(tags)} labels. "
                "Expected one label for each token, both separated by single spaces."
            )
        wrong = next((t for t in tags if t != OUTSIDE and t[:2] not in ("B-", "I-")), None)
        if wrong is not None:
            raise DataError(
                f"{path}, line {number}: the label '{wrong}' is no BIO tag. "
                "Expected O, B-TYPE or I-TYPE."
            )
        stray += [number] * sum(
            tag.startswith("I-") and before not in (f"B-{tag[2:]}", tag)
            for before, tag in pairwise([OUTSIDE, *tags])
        )
        joint = "" if characters else " "
        words = []
        at = 0
        for token in tokens:
            words.append((at, at + len(token)))
            at += len(token) + len(joint)
        examples.append(Example((joint.join(tokens),), None, tuple(words), tuple(tags)))
    if stray:
        log.warning(
            "%s: %d entities begin with I- instead of B- and are read as O, the first in line %d",
            path,
            len(stray),
            stray[0],
        )
    return examples


def _not_empty(examples: list[Example], path: Path) -> list[Example]:
    if not examples:
        raise DataError(f"{path}: no labelled row. Add at least one.")
    return examples
