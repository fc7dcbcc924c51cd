"""Rows of JSON: a list of objects, JSON Lines, or an object of columns; checked before all else.

`datasets` isn't asked: its parser ends the process at some bad files, and shows its own traceback
at others.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kbert_core.errors import DataError
from kbert_core.knowledge.io.compression import plain_ending
from kbert_lab.data.tables import is_object, read_lines

EXPECTED = 'Expected objects such as {"text": "…", "label": "…"}, one a line or in a list'
KINDS: dict[type, str] = {
    str: "a text",
    list: "a list",
    dict: "an object",
}  # anything else is a number

Placed = tuple[str, dict[str, Any]]  # an object, after its place for a message


def read_objects(path: Path) -> list[Placed]:
    """Read the objects of a file; DataError, with the line, where it isn't JSON of such a form."""
    lines = read_lines(path)
    first = next(filter(str.strip, lines), "").strip()
    if not first.startswith("[") and (plain_ending(path) == ".jsonl" or is_object(first)):
        places = ((f"{path}, line {number}", line) for number, line in enumerate(lines, 1))
        placed = [(place, parsed(line, place)) for place, line in places if line.strip()]
    else:
        data = parsed("\n".join(lines), str(path))
        if isinstance(data, dict) and all(isinstance(column, list) for column in data.values()):
            data = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=False)]
        data = data if isinstance(data, list) else [data]
        placed = [(f"{path}, row {number}", row) for number, row in enumerate(data, 1)]
    for place, row in placed:
        if not isinstance(row, dict):
            raise DataError(f"{place}: found '{json.dumps(row)[:40]}'. {EXPECTED}.")
    if not placed:
        raise DataError(f"{path}: found nothing in it. {EXPECTED}.")
    return placed


def parsed(text: str, place: str) -> Any:
    """Parse JSON as the standard has it; DataError for NaN, half a character and deep brackets."""
    try:
        data = json.loads(text, parse_constant=_refused)
        if "\\ud" in text.lower():
            json.dumps(data, ensure_ascii=False).encode()
        return data
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: can't be read ({error}). Mend the file. {EXPECTED}.") from error


class JsonRows:
    """Objects as rows of a table, with what a table of `datasets` has that is used here."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._placed = [placed for path in paths for placed in read_objects(path)]
        names = dict.fromkeys(name for _, row in self._placed for name in row)
        self.features = {name: _feature(self.column(name)) for name in names}

    def column(self, name: str) -> list[Any]:
        """The values of one column, None where a row has none."""
        return [row.get(name) for _, row in self._placed]

    unique = column  # a set is made of it

    def select_columns(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield rows of some columns; DataError where the values of one aren't of one kind."""
        kinds: dict[str, str] = {}
        for place, row in self._placed:
            for name in names:
                if (value := row.get(name)) is None:
                    continue
                kind = KINDS.get(type(value), "a number")
                if kind != kinds.setdefault(name, kind):
                    raise DataError(
                        f"{place}: '{name}' is {kind}, and {kinds[name]} before. Write it in one "
                        "way in all rows."
                    )
            yield {name: row.get(name) for name in names}


def _feature(values: Iterable[Any]) -> Any:
    """The kind of a column, said as `datasets` does."""
    given = [value for value in values if value is not None]
    if any(isinstance(value, dict) for value in given):
        return {}
    if any(isinstance(value, list) for value in given):
        items = chain.from_iterable(value for value in given if isinstance(value, list))
        return SimpleNamespace(feature=_feature(items))
    texts = bool(given) and all(isinstance(value, str) for value in given)
    return SimpleNamespace(dtype="string" if texts else "float64")


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no value in JSON")
