"""JSON Lines: an object or a list of three texts a line; also what Neo4j's APOC exports."""

import json
from collections.abc import Iterator
from typing import Any

from kbert_core.knowledge.io.rows import Bad, ReadOptions, Row, checked, shown
from kbert_core.knowledge.io.tables import HEADERS, Lines

_NAMES = ("name", "title", "label", "名称", "id")  # properties that name a node of Neo4j


def read_json_lines(lines: Lines, name: str, options: ReadOptions) -> Iterator[Row | Bad]:
    """Read a triple a line: ``{"head": …, "relation": …, "tail": …}`` or ``[…, …, …]``."""
    del name
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
        if isinstance(found, dict) and found.get("type") == "node":
            continue  # a node of Neo4j; its relationships name it
        fields = _fields(found, options)
        if fields is None or not all(isinstance(field, str | int | float) for field in fields):
            yield Bad(
                number,
                f"found '{shown(line)}', expected an object with the texts head, relation and "
                "tail, or a list of the three. Mend or delete the line.",
            )
            continue
        yield checked(number, *(str(field) for field in fields))


def _fields(found: Any, options: ReadOptions) -> tuple[Any, Any, Any] | None:
    if isinstance(found, list) and len(found) == 3:
        return found[0], found[1], found[2]
    if not isinstance(found, dict):
        return None
    if found.get("type") == "relationship" and "label" in found:
        return _node(found.get("start")), found["label"], _node(found.get("end"))
    folded = {str(key).casefold(): value for key, value in found.items()}
    fields: list[Any] = []
    for place, names in enumerate(HEADERS.values()):
        wanted = {options.columns[place].casefold()} if options.columns else names
        fields.append(next((folded[name] for name in folded if name in wanted), None))
    return fields[0], fields[1], fields[2]


def _node(node: Any) -> Any:
    properties = node.get("properties", node) if isinstance(node, dict) else {}
    if not isinstance(properties, dict):
        return None
    return next((properties[name] for name in _NAMES if name in properties), None)
