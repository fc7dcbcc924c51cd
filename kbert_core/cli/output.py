"""What commands print: JSON, or the same for reading; and how far a long run is."""

import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import StringIO
from itertools import chain
from types import NoneType
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

T = TypeVar("T")
PAUSE = 0.1  # seconds between two looks of someone at a terminal
WIDE = 100_000  # columns: nothing is wrapped or cut off
INLINE = 6  # fields that stand in one line
SHOWN = 20  # rows of a table; JSON has them all
TRIPLE = ("head", "relation", "tail")


def show(value: Any, text: Callable[[Any], str], args: Namespace) -> None:
    """Print plain data, or something with ``as_dict()``: as text, or as JSON.

    Of a file's texts it is always JSON, one object a line.
    """
    lines = getattr(args, "file", None) is not None
    if not args.json and not lines:
        print(text(value))
        return
    data = value if isinstance(value, Mapping) else value.as_dict()
    print(json.dumps(data, ensure_ascii=False, indent=None if lines else 1), flush=lines)


def report_text(data: Mapping[str, Any]) -> str:
    """Any report for reading: a line or a table for each of its fields; None is left out."""
    lines = []
    for name, value in data.items():
        block: list[str] = []
        if isinstance(value, Mapping) and not _is_triple(value):
            block = _block(value)
        elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            block = table(value)
        title = name.replace("_", " ")
        if block:
            lines += [f"{title}:", *(f"  {line}" for line in block)]
        elif value is not None:
            lines.append(f"{title}: {cell(value)}".rstrip())
    return "\n".join(lines)


def _block(data: Mapping[str, Any]) -> list[str]:
    """Several lines for what doesn't fit into one."""
    parts = [part for part in data.values() if isinstance(part, Mapping)]
    deep = any(isinstance(value, Mapping | list) for part in parts for value in part.values())
    if deep or 0 < len(parts) < len(data):
        return report_text(data).splitlines()
    if parts or len(data) > INLINE:
        rows = data.items()
        return table({"": name, **(part if parts else {" ": part})} for name, part in rows)
    return []


def table(rows: Iterable[Mapping[str, Any]], shown: int = SHOWN) -> list[str]:
    """Lay out so many rows (0: all) in columns, where a Chinese character takes two.

    A triple makes one column, and a column of nothing none.
    """
    every = [_with_triple(row) for row in rows]
    if not every:
        return []
    heads = [
        head for head in dict.fromkeys(chain(*every)) if any(cell(row.get(head)) for row in every)
    ]
    grid = Table(
        box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=any(map(str.strip, heads))
    )
    for head in heads:
        number = all(type(row.get(head)) in (int, float, NoneType) for row in every)
        grid.add_column(
            Text(head.replace("_", " ")), justify="right" if number else "left", no_wrap=True
        )
    for row in every[: shown or None]:
        grid.add_row(*(Text(cell(row.get(head))) for head in heads))
    printed = StringIO()
    plain: Any = {"color_system": None, "force_jupyter": False}  # a notebook takes text as well
    Console(file=printed, width=WIDE, **plain).print(grid)
    more = [f"… and {len(every) - shown:,} more"] if 0 < shown < len(every) else []
    return [line.rstrip() for line in printed.getvalue().splitlines()] + more


def cell(value: Any) -> str:
    """A value in a line: nothing for None, thousands apart, of a fraction four digits."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
        case Mapping() if _is_triple(value):
            return triple_line(value)
        case Mapping():
            return ", ".join(f"{name} {cell(part)}" for name, part in value.items())
        case list() | tuple():
            return ", ".join(map(cell, value))
    return str(value)


def triple_line(fields: Mapping[str, str]) -> str:
    """A triple's fields in a line."""
    return " · ".join(fields[name] for name in TRIPLE)


def per_cent(share: float) -> str:
    """A share as a table gives it."""
    return f"{100 * share:.1f}"


def _is_triple(data: Mapping[str, Any]) -> bool:
    return data.keys() == set(TRIPLE)


def _with_triple(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row, its head, relation and tail in one column."""
    if not set(TRIPLE) <= row.keys():
        return row
    others = {name: value for name, value in row.items() if name not in TRIPLE}
    return {"triple": triple_line(row), **others}


class Progress:
    """How far a long run is, on standard error: so many ``what`` of a total, if it is known.

    A terminal sees it all the time; a log gets a line after so many, if ``logged`` isn't 0.
    """

    def __init__(self, what: str = "", *, total: int | None = None, logged: int = 0) -> None:
        self.what, self.total, self.logged = what, total, logged
        self._begun = self._last = time.perf_counter()
        self._terminal, self._shown = sys.stderr.isatty(), False

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            print(file=sys.stderr)

    def __call__(self, count: int) -> None:
        """Tell that so many are done."""
        of = f" of {self.total:,}" if self.total is not None else ""
        now = time.perf_counter()
        if self._terminal and (now - self._last > PAUSE or count == self.total):
            self._last = now
            speed = count / max(now - self._begun, 1e-9)
            self.say(f"{count:,}{of} {self.what}, {speed:,.0f}/s")
        elif not self._terminal and self.logged and count % self.logged == 0:
            print(f"{count}{of} {self.what}", file=sys.stderr)

    def say(self, text: str) -> None:
        """Put another text in the terminal's line."""
        if self._terminal:
            self._shown = True
            print(f"\r{text}", end="", file=sys.stderr, flush=True)

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """Pass items on, each counted when the next is asked for."""
        with self:
            for number, item in enumerate(items, start=1):
                yield item
                self(number)


def last_of(results: Iterable[T], so_far: Callable[[T], str]) -> T:
    """The last of growing results; a terminal shows meanwhile what is said of each."""
    with Progress() as progress:
        for result in results:
            progress.say(so_far(result))
    return result
