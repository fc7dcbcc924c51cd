"""Texts with labelled spans, as annotation tools export them → rows of tokens with tags.

Read are JSON and JSON Lines of doccano, Label Studio, CLUENER, CMeEE, spaCy and
Prodigy's kind (``{text, spans}``); a folder of brat; and a table with one token a row and a
sentence's number. The content says which it is.
"""

import csv
import logging
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from kbert_core.errors import DataError
from kbert_core.knowledge.names import is_word_character
from kbert_core.labels import OUTSIDE
from kbert_lab.data.labelled import SHOWN, Example, tagged_examples
from kbert_lab.data.splits import write_rows
from kbert_lab.data.tables import LABELS, NUMBERED, Source, read_lines, read_objects

TEXTS = ("text", "sentence", "content", "data")
SPANS = ("spans", "ents", "entities", "label", "labels", "annotations")
STARTS = ("start", "start_offset", "start_idx", "begin")
ENDS = ("end", "end_offset", "end_idx")
TYPES = ("label", "type", "tag", "labels")
NAMES = ("text", "entity", "word")  # what stands there, for a check
WORDS = ("word", "words", "token", "tokens", "text", "char")
TAGS = ("tag", "ner", "ner_tag", *LABELS)
REFUSED = ("reject", "ignore")  # what Prodigy writes as "answer" of a text that isn't taken
WORD = re.compile(r"\w+(?:[-'’./]\w+)*|\S")
BRAT = re.compile(r"T\d+\t(?P<type>\S+) (?P<places>[\d ;]+)\t(?P<name>.*)")
EXPECTED = (
    "Expected texts with labelled spans, as doccano, Label Studio, CLUENER, spaCy or brat (a "
    "folder) export them, or a table with a column for the sentence, the token and its tag"
)
log = logging.getLogger(__name__)

Span = tuple[int, int, str]  # start and end in characters, end exclusive, and type
Labelled = tuple[str, str, Any]  # place, text, and its spans as they were found


def write_spans(
    source: str | Path, target: str | Path, *, skip_bad: bool = False
) -> dict[str, Any]:
    """Write the rows of a file or folder of spans as a file of tokens and tags; count them.

    Args:
        skip_bad: leave texts out whose spans overlap or aren't in them, and count these.

    Raises:
        DataError: with the place, where one of them is found otherwise; the source is of another
            form, or the target can't be written.
    """
    path, bad = Path(source), []
    if path.is_file() and (table := _tagged_table(path)):
        examples = table
    else:
        examples = []
        for place, text, found in _brat(path) if path.is_dir() else _json(path):
            try:
                examples += _rows(text, _spans(text, found, place), place)
            except DataError as error:
                if not skip_bad:
                    raise
                bad.append(str(error))
    for message in bad[:SHOWN]:
        log.warning("left out: %s", message)
    if not any(example.spans for example in examples):
        raise DataError(f"{source}: found no labelled span. {EXPECTED}.")
    write_rows(target, examples)
    spans = sum(len(example.spans) for example in examples)
    return {"output": str(target), "rows": len(examples), "entities": spans, "left out": len(bad)}


def _json(path: Path) -> Iterator[Labelled]:
    refused, (unit, rows) = 0, read_objects(path)
    for number, row in rows:
        place = f"{path}, {unit} {number}"
        if row.get("answer") in REFUSED:
            refused += 1
            continue
        texts = [row[name] for name in TEXTS if name in row]
        found: Any = next((row[n] for n in SPANS if isinstance(row.get(n), list | dict)), None)
        if isinstance(task := row.get("data"), dict):  # Label Studio
            texts = [task["text"]] if "text" in task else [*task.values()]
            try:
                done = row.get("annotations", row.get("completions")) or [{}]
                kept = [one for one in done if not one.get("was_cancelled")] or [{}]
                regions = (region.get("value", {}) for region in kept[0].get("result", ()))
                found = [region for region in regions if "labels" in region]
            except (AttributeError, TypeError):
                found = None
        if not texts or not isinstance(texts[0], str) or found is None:
            raise DataError(f"{place}: found {', '.join(row) or 'nothing'} in it. {EXPECTED}.")
        yield place, texts[0], found
    if refused:
        log.warning("%s: %d texts are left out, whose answer is reject or ignore", path, refused)


def _brat(folder: Path) -> Iterator[Labelled]:
    for path in sorted(folder.glob("*.ann")):
        lines = read_lines(path.with_suffix(".txt"))
        found = []
        for number, line in enumerate(read_lines(path), start=1):
            if not line.startswith("T"):
                continue  # relations, events, attributes, notes
            if (match := BRAT.fullmatch(line)) is None:
                raise DataError(
                    f"{path}, line {number}: found '{line[:60]}', expected its number, its type "
                    "with start and end, and its text, with tabs between. Correct the line."
                )
            places = [int(place) for place in re.findall(r"\d+", match["places"])]
            ends = {"start": places[0], "end": places[-1]}
            found.append({**ends, "label": match["type"], "text": match["name"]})
        texts = [end.join(lines) for end in ("\n", "\r\n")]  # brat counts a line end as it stands
        yield str(path), next((text for text in texts if _fits(text, found)), texts[0]), found


def _fits(text: str, found: Sequence[dict[str, Any]]) -> bool:
    return all(_plain(text[one["start"] : one["end"]]) == _plain(one["text"]) for one in found)


def _tagged_table(path: Path) -> list[Example]:
    """Read a table with a sentence's number, a token and its tag in each row; [] for JSON."""
    lines = read_lines(path)
    first = next(filter(str.strip, lines), "")
    if first.lstrip()[:1] in ("{", "["):
        return []
    delimiter = max("\t,;", key=first.count)
    quoting: Any = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting)
    try:
        table = [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}. Correct the line.") from error
    names = [name.strip().lower() for _, header in table[:1] for name in header]
    sentence = [n for n, name in enumerate(names) if NUMBERED.search(name)]
    word, tag = ([names.index(n) for n in those if n in names] for those in (WORDS, TAGS))
    if not (sentence and word and tag):
        raise DataError(f"{path}, line 1: the columns are {', '.join(names)[:80]}. {EXPECTED}.")
    rows: list[tuple[int, list[str], list[str]]] = []
    last = None  # only the first token of a sentence may have its number
    for line, cells in table[1:]:
        if len(cells) != len(names):
            raise DataError(
                f"{path}, line {line}: found {len(cells)} cells, expected {len(names)} "
                f"({', '.join(names)[:80]}). Correct the line."
            )
        number = cells[sentence[0]].strip() or last
        if not rows or number != last:
            rows.append((line, [], []))
            last = number
        rows[-1][1].append(cells[word[0]].strip())
        rows[-1][2].append(cells[tag[0]].strip())
    return tagged_examples(rows, Source(str(path)))


def _spans(text: str, found: Any, place: str) -> list[Span]:
    """Return the spans of a text in order; DataError where one is of another form or elsewhere."""
    if isinstance(found, dict):  # CLUENER: type → what stands there → its places
        try:
            found = [
                {"start": start, "end": end, "label": type_, "text": name}
                for type_, names in found.items()
                for name, places in names.items()
                for start, end in places
            ]
        except (AttributeError, TypeError, ValueError) as error:
            raise DataError(f"{place}: found '{found}' for its spans. {EXPECTED}.") from error
    return sorted({_span(text, item, place) for item in found})


def _span(text: str, item: Any, place: str) -> Span:
    one: list[Any] = item if isinstance(item, list) and len(item) == 3 else [None] * 3
    if isinstance(item, dict):
        names = (STARTS, ENDS, TYPES, NAMES)
        one = [next((item[key] for key in keys if key in item), None) for keys in names]
    start, end, type_, name = [*one, None][:4]
    if isinstance(type_, list) and len(type_) == 1:
        type_ = type_[0]
    if [type(start), type(end), type(type_)] != [int, int, str] or not type_.strip():
        raise DataError(
            f"{place}: found '{item}', expected start, end and one type of a span. Correct it."
        )
    stands, longer = (_plain(text[start:stop]) for stop in (end, end + 1))
    if name is not None and stands != _plain(name) == longer:
        end += 1  # it is the number of the last character, as in CLUENER
    if not 0 <= start < end <= len(text) or not text[start:end].strip():
        raise DataError(
            f"{place}: the span [{start}, {end}) has no text in the {len(text)} characters. Give "
            "start and end in characters, the end exclusive."
        )
    if name is not None and _plain(name) not in (stands, longer):
        raise DataError(
            f"{place}: at [{start}, {end}) stands '{stands}', and the file says '{name}'. "
            "Correct start and end; a span of several pieces can't be used."
        )
    stands = text[start:end]
    within = end - len(stands.lstrip()), start + len(stands.rstrip())
    return *within, "_".join(type_.split())


def _plain(name: Any) -> str:
    return " ".join(str(name).split())


def _rows(text: str, spans: Sequence[Span], place: str) -> Iterator[Example]:
    """Make a row of each line of a text, or of several where a span goes on into the next."""
    begin = 0
    breaks = (match.start() for match in re.finditer("\n", text))
    inside = [at for at in breaks if not any(start < at < end for start, end, _ in spans)]
    for stop in (*inside, len(text)):
        own = [(a - begin, b - begin, type_) for a, b, type_ in spans if begin <= a and b <= stop]
        if words := _words(text[begin:stop], {at for start, end, _ in own for at in (start, end)}):
            yield _row(text[begin:stop], words, own, place)
        begin = stop + 1


def _row(text: str, words: Sequence[tuple[int, int]], spans: Sequence[Span], place: str) -> Example:
    for (start, end, one), (after, stop, other) in pairwise(spans):
        if after < end:
            raise DataError(
                f"{place}: '{text[start:end]}' ({one}) and '{text[after:stop]}' ({other}) overlap, "
                "and a token has one tag. Keep one of them."
            )
    tags = [OUTSIDE] * len(words)
    for start, end, type_ in spans:
        own = [n for n, (a, b) in enumerate(words) if start <= a and b <= end]
        for n in own:
            tags[n] = f"{'B' if n == own[0] else 'I'}-{type_}"
    return Example((text,), None, tuple(words), tuple(tags))


def _words(text: str, borders: set[int]) -> list[tuple[int, int]]:
    """Cut a text into words, or characters of a script without spaces, and where a span begins."""
    words = []
    for match in WORD.finditer(text):
        start = match.start()
        for at in range(start + 1, match.end() + 1):
            if at == match.end() or at in borders or _alone(text[at - 1]) or _alone(text[at]):
                words.append((start, at))
                start = at
    return words


def _alone(character: str) -> bool:
    return character.isalnum() and not is_word_character(character)
