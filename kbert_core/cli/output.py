"""What commands print: text for reading or JSON, tables, how far a long run is."""

import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

T = TypeVar("T")
PAUSE = 0.1  # seconds between two looks of someone at a terminal
WIDE = 100_000  # columns: nothing is wrapped or cut off


def show(value: Any, text: Callable[[Any], str], args: Namespace) -> None:
    """Print a result: text for reading, or JSON.

    Args:
        value: plain data, or something with ``as_dict()``.
        text: makes text of it.
        args: whether JSON is wanted; of a file's texts it always is, one object a line.
    """
    lines = getattr(args, "file", None) is not None
    if not args.json and not lines:
        print(text(value))
        return
    data = value if isinstance(value, Mapping) else value.as_dict()
    print(json.dumps(data, ensure_ascii=False, indent=None if lines else 1), flush=lines)


def table(
    heads: Sequence[str], rows: Iterable[Iterable[Any]], *, numbers: bool = False
) -> list[str]:
    """Lay cells out in columns of a terminal, where a Chinese character takes two.

    Args:
        heads: of the columns; may be empty.
        rows: a cell may have several lines; what is no text becomes one as ``str`` makes it.
        numbers: whether all columns but the first stand to the right.
    """
    cells = [[Text(str(cell)) for cell in row] for row in rows]
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=bool(heads))
    for number, head in enumerate(heads or [""] * max(map(len, cells), default=0)):
        right = numbers and number > 0
        grid.add_column(Text(head), justify="right" if right else "left", no_wrap=True)
    for row in cells:
        grid.add_row(*row)
    printed = StringIO()
    Console(file=printed, width=WIDE, color_system=None).print(grid)
    return [line.rstrip() for line in printed.getvalue().splitlines()]


def fields_text(data: Mapping[str, Any]) -> str:
    """Any report, a line for each of its fields."""
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in data.items()
    )


def counts_text(data: Mapping[str, Any]) -> str:
    """The counts of a graph, a line for each."""
    return "\n".join(
        f"{name.replace('_', ' ')}: {f'{value:,}' if isinstance(value, int) else value}"
        for name, value in data.items()
    )


def triple_line(fields: Mapping[str, str]) -> str:
    """A triple's fields in a line."""
    return " · ".join(fields[name] for name in ("head", "relation", "tail"))


def per_cent(share: float) -> str:
    """A share as a table gives it."""
    return f"{100 * share:.1f}"


class Progress:
    """How far a long run is, on standard error.

    A terminal sees it all the time; a log gets a line now and then, or nothing.

    Args:
        what: is counted, in the plural.
        total: how many there will be, if that is known.
        logged: a log gets a line after so many; 0: none.
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
        if self._terminal:
            now = time.perf_counter()
            if now - self._last > PAUSE or count == self.total:
                self._last = now
                speed = count / max(now - self._begun, 1e-9)
                self.say(f"{count:,}{of} {self.what}, {speed:,.0f}/s")
        elif self.logged and count % self.logged == 0:
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
