"""JSON Lines, a triple a line; also nodes and relationships as Neo4j's APOC exports them."""

import json
from collections.abc import Iterator
from typing import Any

from kbert_core.knowledge.io.headings import columns_of
from kbert_core.knowledge.io.rows import ReadOptions, Row, checked
from kbert_core.knowledge.io.text_lines import Bad, Lines, shown

NODE_NAMES = ("name", "title", "label", "名称")  # properties that name a node of Neo4j


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
        fields = _relationship(found, nodes) if neo4j else _fields(found, options)
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


def _relationship(found: Any, names: dict[Any, Any]) -> list[Any] | str | None:
    """Read a line of APOC's JSON: a relationship gives a triple, a node only its name.

    Args:
        names: number → name of the nodes so far; the line may add one.

    Returns:
        Three fields; None for a node; an error text if an end has no name.
    """
    if found.get("type") == "node":
        if (name := _property(found)) is not None:
            names[str(found.get("id"))] = name
        return None
    ends = []
    for side in ("start", "end"):
        node = found.get(side)
        name = _property(node)
        if name is None and isinstance(node, dict):
            name = names.get(str(node.get("id")))
        if name is None:
            return (
                f"the node at its {side} has no name. Export the nodes before the relationships "
                f"(apoc.export.json.all), each with a property {', '.join(NODE_NAMES[:3])}; or "
                "delete the line."
            )
        ends.append(name)
    return [ends[0], found.get("label"), ends[1]]


def _property(node: Any) -> Any:
    about = node.get("properties", node) if isinstance(node, dict) else {}
    keys = (*NODE_NAMES, "id") if isinstance(node, dict) and about is not node else NODE_NAMES
    return next((about[k] for k in keys if k in about), None) if isinstance(about, dict) else None
