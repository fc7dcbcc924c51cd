"""Texts with the entities that their spans mean, as JSON Lines: data for the task "link".

A line has ``text`` and ``labels``, each with ``span`` (start, end in characters) and ``entity_id``,
as entity-linking benchmarks are published. Three more fields are ours: ``also``, other entities
that are right too; ``word``, under which the entity is looked up; ``candidates``, what the span
may mean, the most common first, where the task says so.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbert_core.errors import DataError
from kbert_core.knowledge.names import normalise_name
from kbert_lab.data.labelled import Example, GoldLink
from kbert_lab.data.tables import Source, read_lines

ENDINGS = (".jsonl", ".jsonl.xz")


def read_links(path: str | Path) -> list[Example]:
    """Read labelled texts.

    Raises:
        DataError: with file and line, where a line isn't as above.
    """
    path = Path(path)
    source = Source(path.name, "line")
    lines = enumerate(read_lines(path), start=1)
    examples = [_example(line, source, number) for number, line in lines if line.strip()]
    if not examples:
        raise DataError(f"{path}: no labelled text, so nothing to learn or to score. Add one.")
    return examples


def _example(line: str, source: Source, number: int) -> Example:
    try:
        row = json.loads(line)
        text, labels = row["text"], row["labels"]
        links = tuple(_link(label) for label in labels)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise DataError(
            f"{source.place(number)}: found no labelled text ({error!r}), expected 'text' and "
            "'labels', each with 'span' and 'entity_id'. Mend or delete the line."
        ) from error
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{source.place(number)}: the text is blank. Write it, or delete the line.")
    for link in links:
        if not 0 <= link.start < link.end <= len(text):
            raise DataError(
                f"{source.place(number)}: the span [{link.start}, {link.end}) isn't in the text of "
                f"{len(text)} characters. Give start and end, the end exclusive."
            )
    return Example((text,), links=links, source=source, line=number)


def _link(label: Mapping[str, Any]) -> GoldLink:
    start, end = map(int, label["span"])
    entities, candidates = (
        tuple(normalise_name(str(entity)) for entity in some)  # as a graph knows it
        for some in ((label["entity_id"], *label.get("also", ())), label.get("candidates", ()))
    )
    return GoldLink(start, end, entities, str(label.get("word", "")), candidates)
