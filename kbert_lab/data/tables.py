"""Labelled rows in text files and JSON, and what their columns contain.

A text file has a header and tab-separated columns, as in the released K-BERT, or one token with
its tag per line, as in CoNLL-2003. The first lines decide which; the file's name doesn't matter.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic_core import ValidationError, from_json

from kbert_core.errors import DataError, GraphFileError, SplitError
from kbert_core.knowledge.io.compression import PROBLEMS, open_unpacked, plain_ending
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

EXPECTED = 'Expected objects such as {"text": "…", "label": "…"}, one a line or in a list'
KINDS: dict[type, str] = {  # anything else is a number
    str: "a text",
    list: "a list",
    dict: "an object",
}

Row = tuple[int, Mapping[str, Any]]  # its number, and our column → value
Record = Mapping[str, Any] | ValueError  # column → value, or what is wrong with the row


class ColumnError(DataError):
    """A column that a task needs isn't there."""


def problem_of(error: Exception) -> str:
    """What is wrong with data of JSON: "'text' is missing"; what pydantic says first, in a line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


class HiddenLabels(SplitError):
    """A split is there, but not its labels."""


@dataclass(frozen=True)
class Source:
    """Where examples stand, so that a message can say it."""

    name: str  # the file, or the data set and split
    unit: str = "line"  # what is counted there, from 1; or "row"

    def place(self, line: int) -> str:
        """Return the place of a row for a message: "dev.tsv, line 3"."""
        return f"{self.name}, {self.unit} {line}"


@dataclass(frozen=True)
class Table:
    """Labelled rows with named columns: of a text file, of JSON, of `datasets`, or of a batch.

    Attributes:
        records: yields of some columns each row's number and values, or what is wrong with it.
        where: the columns stand, for a message.
        classes: the names of a column's classes, where its values are their numbers.
        texts: columns of `datasets` that hold texts; its only one is taken whatever its name.
        tagged: tokens and tags are lists already.
        whole: it isn't a batch.
    """

    source: Source
    columns: Sequence[str]
    records: Callable[[Sequence[str]], Iterable[tuple[int, Record]]]
    where: str
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    texts: Sequence[str] = ()
    tagged: bool = False
    whole: bool = True

    @property
    def hint(self) -> str:
        """What to do if labelled spans are in it, as a sentence; lists within lists are such."""
        labels = [name for name in LABELS if name in self.columns]
        first = islice(self.records(labels), LOOKED_AT) if labels else ()
        deep = (isinstance(r, Mapping) and any(map(_is_deep, r.values())) for _, r in first)
        return SPANS if any(map(OF_SPANS.search, self.columns)) or any(deep) else ""

    def rows(self, task: str, columns: Mapping[str, str]) -> Iterator[Row]:
        """Read rows, classes by their names.

        Raises:
            DataError: a row doesn't fit.
            HiddenLabels: all labels are -1.
        """
        wanted, kinds = list(dict.fromkeys(columns.values())), dict[str, str]()
        if "label" in columns:
            label = [columns["label"]]
            hidden = (record == {label[0]: -1} for _, record in self.records(label))
            if next(hidden, False) and all(hidden):
                raise HiddenLabels(
                    f"{self.where}: the labels are hidden (all are -1), so it can't be scored. "
                    "Take another split."
                )
        for number, record in self.records(wanted):
            try:
                if isinstance(record, ValueError):
                    raise record
                for name in wanted:
                    if (value := record.get(name)) is not None:
                        kind = KINDS.get(type(value), "a number")
                        if kind != (before := kinds.setdefault(name, kind)):
                            raise ValueError(
                                f"'{name}' is {kind}, and {before} before. Write it in one way in "
                                "all rows."
                            )
                row = {o: self._value(record.get(t), task, o, t) for o, t in columns.items()}
            except ValueError as error:
                raise DataError(f"{self.source.place(number)}: {error}") from error
            yield number, row

    def _value(self, value: Any, task: str, ours: str, theirs: str) -> Any:
        """A value as text, or a list of texts; a ValueError if it is none."""
        if value is None or isinstance(value, str):
            return value or ""
        names = self.classes.get(theirs)
        if isinstance(value, list | dict):
            if _is_deep(value) or (task != "ner" and (task, ours) != ("multilabel", "label")):
                raise ValueError(
                    f"the column '{theirs}' for {ours} has several values per row, lists or "
                    f"objects, expected one. Choose another with --columns {ours}=NAME, or --task "
                    "ner for tokens with their tags, or --task multilabel for texts with several "
                    f"labels.{SPANS if _is_deep(value) else ''}"
                )
            return [self._value(item, task, ours, theirs) for item in value]
        if names is not None and isinstance(value, int):
            if not 0 <= value < len(names):
                raise ValueError(f"{ours} is {value}, which isn't a label. Correct the row.")
            return names[value]
        if task == "ner" and ours == "label":
            raise ValueError(
                f"the tags in '{theirs}' are numbers without names. Make the column a list of "
                "ClassLabel or of strings (O, B-TYPE, I-TYPE), or choose another with --columns "
                "label=NAME."
            )
        if isinstance(value, float) and not value.is_integer():
            raise ValueError(
                f"{ours} is {value}; labels are classes here. Take a data set with classes, or "
                "name another column with --columns."
            )
        return str(int(value)) if isinstance(value, bool | float) else str(value)

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
        if len(self.classes) == 1 and not {*LABELS} & {*names}:
            found.setdefault("label", *self.classes)
        if not found.keys() & {"text_a", "text_b"}:
            only = [name for name in self.texts if name not in (found.get("label"), *LABELS)]
            usual = TOKENS if task == "ner" else (*TEXTS, *only) if len(only) == 1 else TEXTS
            alone = [(name,) for name in usual]
            known_texts = PAIRS if "text_b" in needed else alone
            texts = next((known for known in known_texts if {*known} <= {*names}), ())
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


def _is_deep(value: Any) -> bool:
    """Say whether a value is an object, or a list of objects or lists."""
    within = value if isinstance(value, list) else ()
    return isinstance(value, dict) or any(isinstance(item, dict | list) for item in within)


def text_table(path: Path, task: str = "", given: Mapping[str, str] | None = None) -> Table:
    """A text file, packed or not. The task is "" where it isn't known yet.

    DataError where it can't be read, is empty, or is of another task's form.
    """
    lines, source = read_lines(path), Source(str(path))
    where = source.place(1)
    if not any(lines):
        raise DataError(f"{path}: the file is empty. Expected a header and labelled rows.")
    if is_object(first := next(filter(str.strip, lines), "")):
        raise DataError(
            f"{path}: found JSON, '{first[:40]}', expected a table or plain text. Give the "
            "file a name that ends with .jsonl."
        )
    if not given and task in ("", "ner", "mask") and is_conll(lines):
        if task == "mask":
            raise DataError(
                f"{path}: has one token with its tag per line, but the task is fill-mask. Give "
                "one text per line."
            )

        def tagged(_: Sequence[str]) -> Iterator[tuple[int, Record]]:
            for number, tokens, tags in conll_rows(lines, source):
                yield number, {"text_a": tokens, "label": tags}

        return Table(source, NEEDED["ner"], tagged, where, tagged=True)
    if task == "mask" and ".txt" in path.suffixes:
        texts = [(n, {"text_a": line.strip()}) for n, line in enumerate(lines, 1) if line.strip()]
        return Table(source, NEEDED["mask"], lambda _: texts, where)
    without_header = None if given or task != "rank" else _without_header(lines)
    columns = without_header or lines[0].split("\t")

    def cut(_: Sequence[str]) -> Iterator[tuple[int, Record]]:
        for number, line in enumerate(lines, start=1):
            fields = line.split("\t")
            if not line.strip() or (number == 1 and not without_header):
                continue
            if len(fields) == len(columns):  # of two columns of one name the first counts
                yield number, dict(zip(reversed(columns), reversed(fields), strict=True))
                continue
            yield (
                number,
                ValueError(
                    f"found {len(fields)} fields in '{line[:60]}', expected {len(columns)} "
                    f"({', '.join(columns)}), separated by tabs. Correct the line or delete it."
                ),
            )

    return Table(source, columns, cut, where)


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
    data = _json(text.removesuffix(",") + "]" * (text[:1] == "[" and text[-1] != "]"))
    within = data if isinstance(data, list) else ()
    several = any(isinstance(item, str | dict | list) for item in within)
    return text in ("[", "{") or isinstance(data, dict) or several  # the former of several lines


def is_object(line: str) -> bool:
    """Say whether a line is an object of JSON, and so no plain text and no row of a table."""
    return line.lstrip().startswith("{") and isinstance(_json(line), dict)


def _json(text: str) -> Any:
    """What a text of JSON says; None where it isn't any."""
    with suppress(ValueError):
        return from_json(text)


def read_objects(path: Path) -> tuple[str, list[tuple[int, dict[str, Any]]]]:
    """Read the objects of a file: whether lines or rows are counted, and each with its number.

    It is a list of objects, JSON Lines, or an object of columns. `datasets` isn't asked: its parser
    ends the process at some bad files, and shows its own traceback at others.

    Raises:
        DataError: with the line, where it isn't JSON of such a form.
    """
    lines, unit = read_lines(path), "row"
    first = next(filter(str.strip, lines), "").strip()
    if not first.startswith("[") and (plain_ending(path) == ".jsonl" or is_object(first)):
        unit, numbered = "line", [(n, line) for n, line in enumerate(lines, 1) if line.strip()]
        found = [(number, _parsed(line, f"{path}, line {number}")) for number, line in numbered]
    else:
        data = _parsed("\n".join(lines), str(path))
        if isinstance(data, dict) and all(isinstance(column, list) for column in data.values()):
            data = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=False)]
        found = [*enumerate(data if isinstance(data, list) else [data], 1)]
    for number, row in found:
        if not isinstance(row, dict):
            place, shown = f"{path}, {unit} {number}", json.dumps(row)[:40]
            raise DataError(f"{place}: found '{shown}'. {EXPECTED}.")
    if not found:
        raise DataError(f"{path}: found nothing in it. {EXPECTED}.")
    return unit, found


def _parsed(text: str, place: str) -> Any:
    """Parse JSON as the standard has it; DataError for NaN, half a character and deep brackets."""
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        why = str(error).replace(" at line 1 column", " at column")
        raise DataError(f"{place}: can't be read ({why}). Mend the file. {EXPECTED}.") from error


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
