"""What commands print: JSON, or the same for reading; and how far a long run is."""

import json
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain
from types import NoneType
from typing import Any, TypeVar

from pydantic_core import to_json
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
    print(
        to_json(data).decode() if lines else json.dumps(data, ensure_ascii=False, indent=1),
        flush=lines,
    )


def report_text(data: Mapping[str, Any]) -> str:
    """Any report for reading: a line or a table for each of its fields; None is left out."""
    lines = []
    for name, value in data.items():
        title = name.replace("_", " ")
        if block := _block(value):
            lines += [f"{title}:", *(f"  {line}" for line in block)]
        elif value is not None:
            lines.append(f"{title}: {cell(value)}".rstrip())
    return "\n".join(lines)


def _block(value: Any) -> list[str]:
    """Several lines for what doesn't fit into one."""
    if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        return table(value)
    if not isinstance(value, Mapping) or value.keys() == set(TRIPLE):
        return []
    parts = [part for part in value.values() if isinstance(part, Mapping)]
    deep = any(isinstance(each, Mapping | list) for part in parts for each in part.values())
    if deep or 0 < len(parts) < len(value):
        return report_text(value).splitlines()
    if parts or len(value) > INLINE:
        rows = value.items()
        return table({"": name, **(part if parts else {" ": part})} for name, part in rows)
    return []


def table(rows: Iterable[Mapping[str, Any]], shown: int = SHOWN) -> list[str]:
    """Lay out so many rows (0: all) in columns, where a Chinese character takes two.

    A triple makes one column, and a column of nothing none.
    """
    every = [*map(_with_triple, rows)]
    heads = [head for head in dict.fromkeys(chain(*every)) if any(cell(r.get(head)) for r in every)]
    if not every:
        return []
    named = any(map(str.strip, heads))
    grid = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=named)
    for head in heads:
        number = all(type(row.get(head)) in (int, float, NoneType) for row in every)
        title = Text(head.replace("_", " "))
        grid.add_column(title, justify="right" if number else "left", no_wrap=True)
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
        case Mapping() if value.keys() == set(TRIPLE):
            return triple_line(value)
        case Mapping():
            return ", ".join(f"{name} {cell(part)}" for name, part in value.items())
        case list() | tuple():
            return ", ".join(map(cell, value))
    return str(value)


def triple_line(fields: Mapping[str, str]) -> str:
    """A triple's fields in a line."""
    return " · ".join(fields[name] for name in TRIPLE)


def text_of(sentences: Sequence[str]) -> str | list[str]:
    """What was read, as plain data."""
    return list(sentences) if len(sentences) > 1 else sentences[0]


def placed(mention: Any, sentences: Sequence[str], *more: str) -> dict[str, Any]:
    """A mention as plain data: what stands there, where, and more of it by name."""
    names = ("start", "end", "sentence", *more)
    text = sentences[mention.sentence][mention.start : mention.end]
    return {"text": text, **{name: getattr(mention, name) for name in names}}


def per_cent(share: float) -> str:
    """A share as a table gives it."""
    return f"{100 * share:.1f}"


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
        self.what, self.of, self.logged = what, "" if total is None else f" of {total:,}", logged
        self._begun = self._last = time.perf_counter()
        self._total, self._terminal, self._shown = total, sys.stderr.isatty(), False

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            print(file=sys.stderr)

    def __call__(self, count: int) -> None:
        """Tell that so many are done."""
        now = time.perf_counter()
        if self._terminal and (now - self._last > PAUSE or count == self._total):
            self._last = now
            speed = count / max(now - self._begun, 1e-9)
            self.say(f"{count:,}{self.of} {self.what}, {speed:,.0f}/s")
        elif not self._terminal and self.logged and count % self.logged == 0:
            print(f"{count}{self.of} {self.what}", file=sys.stderr)

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


def count_of(count: int, what: str) -> str:
    """A number of things: "2 branches"."""
    return f"{count} {what}{'' if count == 1 else 'es' if what.endswith('ch') else 's'}"


def prediction_text(data: Mapping[str, Any]) -> str:
    """A prediction, beside the one without knowledge where there is one."""
    text, without = data["text"], data.get("without_knowledge")
    cuts = [item for item in data["dropped"] if "head" not in item]
    rules = Counter(item["rule"] for item in data["dropped"] if "head" in item).items()
    facts = {
        "text": text if isinstance(text, str) else " ‖ ".join(text),
        "with knowledge": _predicted(data["prediction"]),
        "judged by the gate": _judged(data["prediction"].get("gate")),
        "without any": without and _predicted(without),
        "triples injected": data["triples"] or "none",
        "cut": [f"from character {cut['start']} on, {cut['rule']}" for cut in cuts] or None,
        "left out": [f"{count_of(count, 'triple')} {rule}" for rule, count in rules] or None,
    }
    return report_text(facts)


def _predicted(prediction: Mapping[str, Any]) -> Any:
    """What is shown of a prediction: spans, answers, candidates for each [MASK], or classes."""
    if (spans := prediction.get("spans")) is not None:
        return [
            {**s, "probability": f"{per_cent(s['probability'])} %"} for s in spans
        ] or "no entity"
    if (links := prediction.get("links")) is not None:
        return [
            {**own, "entity": own["entity"] or "NULL", "weight": f"{per_cent(own['weight'])} %"}
            for own in links
        ] or "no name of the graph"
    if (answers := prediction.get("answers")) is not None:
        return [{**own, "probability": f"{per_cent(own['probability'])} %"} for own in answers]
    if "fillings" in prediction:
        return {
            f"[MASK] {number}": [
                f"{token} {per_cent(p)} %" for token, p in filling["candidates"][:5]
            ]
            for number, filling in enumerate(prediction["fillings"], start=1)
        }
    given = prediction["labels"] if "labels" in prediction else [prediction["label"]]
    return [
        {"": "→" if label in given else "", "label": label, " ": f"{per_cent(p)} %"}
        for label, p in prediction["probabilities"].items()
    ]


def _judged(names: Iterable[Mapping[str, Any]] | None) -> list[dict[str, Any]] | str | None:
    """The graph's names in a text, as a gate judges them; None where there is no gate."""
    rows = [
        {
            "name": name["text"],
            "type": name["label"],
            "right": f"{per_cent(name['probability'])} %",
            "written": name["written"],
        }
        for name in names or ()
    ]
    return None if names is None else rows or "nothing"


def entry_text(entry: Mapping[str, Any]) -> str:
    """An entry of the log: when, what, who, and its first changes."""
    what = entry["action"].replace("_", " ")
    what += "" if entry["undoes"] is None else f" of {entry['undoes']}"
    what += f" by {entry['who']}" if entry["who"] else ""
    undone = "  (undone)" if entry["undone"] else ""
    lines = [f"{entry['revision']:>5}  {entry['at'][:19].replace('T', ' ')}  {what}{undone}"]
    for change in entry["changes"]:
        before, after = change["before"], change["after"]
        marks = [("-", before), ("+", after)]
        if before == after:
            marks = [("on" if change["is_on"] else "off", after)]
        lines += [f"       {mark} {triple_line(t)}" for mark, t in marks if t]
    if (left := entry["edits"] - len(entry["changes"])) > 0:
        more = f"… and {left:,} more" if entry["changes"] else f"{left:,} triples"
        lines.append(f"       {more}")
    return "\n".join(lines)


def history_text(data: Mapping[str, Any]) -> str:
    """Entries of the log, and how many there are."""
    lines = [*map(entry_text, data["entries"])]
    more = [f"… of {data['of']}; --most 0 shows all"] if data["of"] > len(lines) else []
    return "\n".join(lines + more)
