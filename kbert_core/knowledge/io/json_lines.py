"""JSON Lines, a triple a line; also nodes and relationships as Neo4j's APOC exports them."""

import json
from collections.abc import Iterator
from typing import Any

from kbert_core.knowledge.io.headings import columns_of
from kbert_core.knowledge.io.rows import ReadOptions, Row, checked
from kbert_core.knowledge.io.sources import source
from kbert_core.knowledge.io.text_lines import Bad, Lines, shown


def read_json_lines(lines: Lines, name: str, options: ReadOptions) -> Iterator[Row | Bad]:
    """Read a triple a line: ``{"head": …, "relation": …, "tail": …}`` or ``[…, …, …]``."""
    nodes: dict[Any, Any] = {}  # of Neo4j, by number
    for number, line in lines:
        if isinstance(line, Bad):
            yield line
            continue
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Bad(number, f"'{shown(line)}' is no JSON ({error}). Mend or delete the line.")
            continue
        neo4j = isinstance(found, dict) and found.get("type") in ("node", "relationship")
        fields = source("Neo4j's line")(found, nodes) if neo4j else _fields(found, options)
        if neo4j and fields is None:
            continue  # its relationships name it
        if isinstance(fields, list) and all(isinstance(f, str | int | float) for f in fields):
            yield checked(number, *map(str, fields))
            continue
        said = f"found '{shown(line)}', {fields}. Mend or delete the line."
        if not isinstance(fields, str):
            said = (
                f"found '{shown(line)}', expected an object with the texts head, relation and "
                "tail, or a list of the three. Mend or delete the line."
            )
        yield Bad(number, said)


def _fields(found: Any, options: ReadOptions) -> list[Any] | None:
    if not isinstance(found, dict):
        return found if isinstance(found, list) and len(found) == 3 else None
    if options.columns:
        folded = {str(key).casefold(): value for key, value in found.items()}
        return [folded.get(column.casefold()) for column in options.columns]
    values = [*found.values()]
    return [values[place] for place in columns_of([*found]) or ()] or None
