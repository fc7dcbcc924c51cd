"""Labelled rows in text files, and what their columns contain.

A text file has a header and tab-separated columns, as in the released K-BERT, or one token with
its tag per line, as in CoNLL-2003. The first lines decide which; the file's name doesn't matter.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from kbert_core.errors import DataError, GraphFileError
from kbert_core.knowledge.io.compression import PROBLEMS, open_unpacked
from kbert_core.knowledge.io.formats import SEPARATOR, delimiter_of
from kbert_core.knowledge.io.text_lines import encoding_of
from kbert_core.knowledge.io.text_lines import lines as decoded_lines
from kbert_core.labels import RIGHT, WRONG
from kbert_lab.data.files import NEEDED
from kbert_lab.data.tagging import LIKE_TAG, tag_remedy

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
FILLINGS = ("filling",)  # what stands at the masks of a text
OPTIONAL = {"rank": "qid", "mask": "label"}  # a column that a task takes where there is one
DOCUMENT = "-DOCSTART-"
LOOKED_AT = 20  # lines that tell the form
NUMBERED = re.compile(r"\bsent(ence)?[ _]?(#|(id|idx|no|number)\b)|\bsent\b", re.IGNORECASE)
OF_SPANS = re.compile(rf"\b(entities|spans|annotations|completions)\b|{NUMBERED.pattern}", re.I)
SPANS = " Labelled spans, and tokens with a sentence's number, become rows by `kbert data spans`."

Row = tuple[int, Mapping[str, Any]]  # its number, and our column → value


class ColumnError(DataError):
    """A column that a task needs isn't there."""


@dataclass(frozen=True)
class Source:
    """Where examples stand, so that a message can say it."""

    name: str  # the file, or the data set and split
    unit: str = "line"  # what is counted there, from 1; or "row"

    def place(self, line: int) -> str:
        """Return the place of a row for a message: "dev.tsv, line 3"."""
        return f"{self.name}, {self.unit} {line}"


class Table:
    """Labelled rows with named columns; of a text file, or of `datasets`."""

    source: Source
    columns: Sequence[str]
    where: str  # the columns stand, for a message
    whole = True  # it isn't a batch

    @property
    def hint(self) -> str:
        """What to do if the columns are those of labelled spans, as a sentence."""
        return SPANS if any(map(OF_SPANS.search, self.columns)) else ""

    def rows(self, task: str, columns: Mapping[str, str], *, strict: bool = True) -> Iterator[Row]:
        """Read rows; a row that doesn't fit raises a DataError if ``strict``, else is left out."""
        raise NotImplementedError

    def columns_of(self, task: str, given: Mapping[str, str] | None) -> dict[str, str]:
        """Find a task's columns, and an optional one where there is one.

        Our name → the table's; those ``given`` go before any guess. DataError where one of these
        isn't there, ColumnError where one is missing.
        """
        needed, names, found = NEEDED[task], self.columns, dict(given or {})
        for ours, theirs in found.items():
            if theirs not in names:
                there = ", ".join(f"'{name}'" for name in names[:12]) or "none"
                raise DataError(
                    f"{self.where}: no column '{theirs}' for {ours}. There are {there}. Correct "
                    "--columns."
                )
        singles = [(name,) for name in (TOKENS if task == "ner" else TEXTS)]
        if not found.keys() & {"text_a", "text_b"}:
            known_texts = PAIRS if "text_b" in needed else singles
            texts = next((known for known in known_texts if set(known) <= set(names)), ())
            found.update(zip(("text_a", "text_b"), texts, strict=False))
        labels = FILLINGS if task == "mask" else LABELS
        for ours, known in (*((n, (n,)) for n in needed), ("label", labels), ("qid", QUESTION)):
            if (named := next((name for name in known if name in names), None)) is not None:
                found.setdefault(ours, named)
        if missing := [ours for ours in needed if ours not in found]:
            absent = next((ours for ours in missing if ours not in names), missing[0])
            raise ColumnError(
                f"{self.where}: no column '{absent}' in '{' | '.join(names)[:80]}'. Expected "
                f"the headings {', '.join(needed)}, or say which columns to take: --columns "
                f"{','.join(f'{ours}=NAME' for ours in missing)}.{self.hint}"
            )
        wanted = {*needed, OPTIONAL.get(task)}
        return {ours: theirs for ours, theirs in found.items() if ours in wanted}


class TextTable(Table):
    """A text file, packed or not. The task is "" where it isn't known yet.

    DataError where it can't be read, is empty, or is of another task's form.
    """

    def __init__(self, path: Path, task: str = "", given: Mapping[str, str] | None = None) -> None:
        self._lines = lines = read_lines(path)
        if not any(lines):
            raise DataError(f"{path}: the file is empty. Expected a header and labelled rows.")
        if is_object(first := next(filter(str.strip, lines), "")):
            raise DataError(
                f"{path}: found JSON, '{first[:40]}', expected a table or plain text. Give the "
                "file a name that ends with .jsonl."
            )
        self.source, self._first = Source(str(path)), 2
        self.where = self.source.place(1)
        self.tagged = not given and task in ("", "ner", "mask") and is_conll(lines)
        self._cut = not (task == "mask" and ".txt" in path.suffixes)
        if self.tagged and task == "mask":
            raise DataError(
                f"{path}: has one token with its tag per line, but the task is fill-mask. Give "
                "one text per line."
            )
        if self.tagged:
            self.columns = NEEDED["ner"]
        elif not self._cut:
            self.columns, self._first = NEEDED["mask"], 1
            self._lines = [line.strip() for line in lines]
        elif task == "rank" and not given and (header := _without_header(lines)):
            self.columns, self._first = header, 1
        else:
            self.columns = lines[0].split("\t")

    def rows(self, task: str, columns: Mapping[str, str], *, strict: bool = True) -> Iterator[Row]:
        """Read rows; tokens and tags as lists where one stands in a line."""
        if self.tagged:
            for number, tokens, tags in conll_rows(self._lines, self.source):
                yield number, {"text_a": tokens, "label": tags}
            return
        places = {ours: self.columns.index(theirs) for ours, theirs in columns.items()}
        for number, line in enumerate(self._lines[self._first - 1 :], start=self._first):
            fields = line.split("\t") if self._cut else [line]
            if line.strip() and len(fields) == len(self.columns):
                yield number, {ours: fields[at] for ours, at in places.items()}
            elif line.strip() and strict:
                raise DataError(
                    f"{self.source.place(number)}: found {len(fields)} fields in '{line[:60]}', "
                    f"expected {len(self.columns)} ({', '.join(self.columns)}), separated by tabs. "
                    "Correct the line or delete it."
                )


def plain_lines(lines: Iterable[str], name: str) -> Iterator[str]:
    """Yield the lines of a plain text; DataError where its first one is JSON instead."""
    blank = True  # so far
    for line in lines:
        if blank and _begins_json(line.strip()):
            raise DataError(
                f"{name}: found JSON, '{line.strip()[:40]}', expected plain text. Write the texts "
                "alone, one a line; jq does it: `jq -r .text FILE`."
            )
        blank = blank and not line.strip()
        yield line


def _begins_json(text: str) -> bool:
    if text in ("[", "{"):  # of several lines
        return True
    with suppress(ValueError, RecursionError):
        data = json.loads(text.removesuffix(",") + "]" * (text[:1] == "[" and text[-1] != "]"))
        return isinstance(data, dict) or (
            isinstance(data, list) and any(isinstance(item, str | dict | list) for item in data)
        )
    return False


def is_object(line: str) -> bool:
    """Say whether a line is an object of JSON, and so no plain text and no row of a table."""
    with suppress(ValueError, RecursionError):
        return line.lstrip().startswith("{") and isinstance(json.loads(line), dict)
    return False


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file, packed or not; DataError where it can't be read."""
    return [*each_line(path)]


def each_line(path: str | Path) -> Iterator[str]:
    """Stream them."""
    try:
        with open_unpacked(path) as file:
            yield from (
                str(line) for _, line in decoded_lines(file, str(path), longest=sys.maxsize)
            )
    except GraphFileError as error:
        raise DataError(str(error)) from error
    except PROBLEMS as error:
        raise DataError(f"{path}: can't be read ({error}). {remedy(error)}") from error


def csv_form(*paths: Path) -> dict[str, Any]:
    """How tables with quotes are written, as pandas is told; DataError where one can't be read."""
    lines, *_ = [read_lines(path) for path in paths]
    with open_unpacked(paths[0]) as file:
        encoding = encoding_of(file.read(1 << 16))
    first = lines[0] if lines else ""
    told = SEPARATOR.fullmatch(first)
    return {
        "sep": told[1] if told else delimiter_of(first),
        "skiprows": 1 if told else 0,
        "encoding": encoding,
        "keep_default_na": False,  # "NA" and "None" are texts
        "na_values": [""],
    }


def is_conll(lines: Sequence[str]) -> bool:
    """Say whether at least half of the first lines are a token with a tag, and none a header."""
    rows = map(_token_columns, filter(str.strip, lines))
    first = list(islice((row for row in rows if row[0] != DOCUMENT), LOOKED_AT))
    header = any(name in LABELS for row in first[:1] for name in row)
    return bool(first) and not header and 2 * sum(map(_is_token, first)) >= len(first)


def conll_rows(lines: Sequence[str], source: Source) -> Iterator[tuple[int, list[str], list[str]]]:
    """Read sentences of one token a line: (line where it begins, from 1; tokens; tags).

    A line is TOKEN … TAG, separated by a tab or by spaces; an empty line ends a sentence.
    DataError, with the line, where a token or its tag is missing, or the first column numbers them.
    """
    tokens: list[str] = []
    tags: list[str] = []
    for number, line in enumerate([*lines, ""], start=1):
        columns = _token_columns(line)
        if not line.strip() or columns[0] == DOCUMENT:
            if len(tokens) > 2 and tokens == [str(n + 1) for n in range(len(tokens))]:
                raise DataError(
                    f"{source.place(number - 1)}: the first column numbers the tokens. Delete "
                    "this column: a line begins with the token and ends with its tag."
                )
            if tokens:
                yield number - len(tokens), tokens, tags
            tokens, tags = [], []
            continue
        if len(columns) > 1 and columns[-1] in ("B", "I"):
            raise DataError(
                f"{source.place(number)}: the tag '{columns[-1]}' names no type. Write it with "
                "one, as in B-Disease; any, if there is but one."
            )
        if not _is_token(columns):
            raise DataError(
                f"{source.place(number)}: '{line[:60]}' isn't a token followed by its tag, as "
                "the other lines are. Delete the line, or write 'TOKEN TAG' with a tab or a "
                "space between. Use the tag O for a token outside an entity, and an empty line "
                f"between two sentences.{tag_remedy(columns[-1]) if len(columns) > 1 else ''}"
            )
        tokens.append(columns[0])
        tags.append(columns[-1])


def _token_columns(line: str) -> list[str]:
    """Split a line that isn't empty; its first column may be white space, which is a token."""
    if "\t" not in line:
        return [part for part in line.split(" ") if part]
    first, *others = line.split("\t")
    return [first, *(part.strip() for part in others)]


def _is_token(columns: Sequence[str]) -> bool:
    token, tagged = columns[0], len(columns) > 1 and LIKE_TAG.fullmatch(columns[-1]) is not None
    return tagged and token != "" and (" " not in token or not token.strip(" "))


def _without_header(lines: Sequence[str]) -> list[str] | None:
    """The columns of NLPCC-DBQA, which has no header: the label last (2016) or first (2017)."""
    first = next(filter(None, lines)).split("\t")
    for at, header in ((2, ["text_a", "text_b", "label"]), (0, ["label", "text_a", "text_b"])):
        if len(first) == 3 and first[at] in (RIGHT, WRONG):
            return header
    return None


def remedy(error: Exception) -> str:
    """What to do about a text file that can't be opened, unpacked or decoded."""
    for kind, what in _REMEDIES.items():
        if isinstance(error, kind):
            return what
    return "Get or pack the file again."


_REMEDIES = {
    FileNotFoundError: "Check the name.",
    IsADirectoryError: "Name a file in it.",
    UnicodeDecodeError: "Save it as UTF-8.",
    PermissionError: "Give yourself the right to read it.",
}
