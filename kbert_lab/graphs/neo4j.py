"""Neo4j's tables, in and out: nodes by their names, relationships as triples; JSON Lines out.

A table is what ``neo4j-admin database import`` reads, relationships (``:START_ID,:END_ID,:TYPE``)
in one file and nodes (``:ID,name,:LABEL``) in others; or what ``apoc.export.csv.all`` writes, both
in one. A node is called by its ``name``, or the first of ``NODE_NAMES`` that it has.
"""

import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

from kbert_core.errors import GraphFileError
from kbert_core.knowledge.io.compression import plain_ending, unpacking
from kbert_core.knowledge.io.formats import quoted
from kbert_core.knowledge.io.rows import ReadOptions, Row, checked
from kbert_core.knowledge.io.text_lines import Bad, Cells, lines, shown
from kbert_core.knowledge.io.write import write_rows, write_triples
from kbert_core.knowledge.triple import Triple
from kbert_lab.files import or_refused

NODE_NAMES = ("name", "title", "label", "名称")  # properties that name a node
APOC = {"_id": "ID", "_start": "START_ID", "_end": "END_ID", "_type": "TYPE", "_labels": "LABEL"}
ADMIN = re.compile(r"(.*):(START_ID|END_ID|TYPE|ID|LABEL)(\(.*\))?", re.IGNORECASE)
NEEDED = ("START_ID", "TYPE", "END_ID")
KIND = "Entity"  # the label of every node that is written
Names = dict[tuple[str, str], str]  # (space of identifiers, identifier) → name


class Columns:
    """The columns of a Neo4j table, found by its headings."""

    def __init__(self, headings: list[str]) -> None:
        self.at: dict[str, int] = {}
        self.space: dict[str, str] = {}
        properties: dict[str, int] = {}
        for place, heading in enumerate(map(str.strip, headings)):
            if kind := APOC.get(heading.casefold()):
                self.at[kind], name = place, ""
            elif found := ADMIN.fullmatch(heading):
                name, kind = found[1], found[2].upper()
                self.at[kind], self.space[kind] = place, found[3] or ""
            else:
                name = heading.partition(":")[0]  # a type may follow
            properties.setdefault(name.casefold(), place)
        self.name = next((properties[n] for n in NODE_NAMES if n in properties), None)

    def key(self, kind: str, cells: list[str]) -> tuple[str, str]:
        """Return the identifier in a row, with its identifier space."""
        return self.space.get(kind, ""), cells[self.at[kind]].strip()

    def note(self, names: Names, cells: list[str], where: str) -> None:
        """Keep the name of the node in a row.

        Raises:
            GraphFileError: it has none, or is another node's already.
        """
        key = self.key("ID", cells)
        name = key[1] if self.name is None else cells[self.name].strip()
        if not name or not key[1]:
            what = "name" if key[1] else "identifier"
            raise GraphFileError(
                f"{where}: the node '{shown(key[1] or name)}' has no {what}. Write it into its "
                "column, or delete the line and the relationships of this node."
            )
        if names.setdefault(key, name) != name:
            raise GraphFileError(
                f"{where}: the node '{shown(key[1])}' is called '{shown(name)}', and "
                f"'{shown(names[key])}' before. Give each node an identifier of its own."
            )


def read_neo4j(
    headings: list[str], number: int, cells: Cells, name: str, options: ReadOptions
) -> Iterator[Row | Bad]:
    """Read the relationships of a table, after its line of headings, the ``number``-th.

    Raises:
        GraphFileError: it has none, or a table of nodes can't be read.
    """
    columns = Columns(headings)
    if absent := [f":{kind}" for kind in NEEDED if kind not in columns.at]:
        raise GraphFileError(
            f"{name}, line {number}: '{shown(','.join(headings))}' lacks {', '.join(absent)}, so "
            "these are no relationships of Neo4j. Write the heading; or, if these are nodes, open "
            f"the file of their relationships, and name this one beside it: --nodes {name}"
        )
    names: Names = {}
    for file in options.nodes:
        _read_nodes(file, names, options)
    known = bool(options.nodes) or "ID" in columns.at
    for line, found in cells:
        if isinstance(found, Bad):
            yield found
        elif len(found) != len(headings):
            yield Bad(
                line,
                f"found {len(found)} fields in '{shown(','.join(found))}', expected "
                f"{len(headings)} (as in line {number}). Mend or delete the line.",
            )
        elif "ID" in columns.at and found[columns.at["ID"]].strip():
            columns.note(names, found, f"{name}, line {line}")
        else:
            start, end = columns.key("START_ID", found), columns.key("END_ID", found)
            missing = next((key for key in (start, end) if known and key not in names), None)
            if missing:
                yield Bad(
                    line,
                    f"no node has the identifier '{shown(missing[1])}{missing[0]}'. Add it to the "
                    "file of nodes (--nodes), or delete the line.",
                )
                continue
            head, tail = (names.get(key, key[1]) for key in (start, end))
            yield checked(line, head, found[columns.at["TYPE"]], tail)


def _read_nodes(file: str, names: Names, options: ReadOptions) -> None:
    columns: Columns | None = None
    remedy = "Check the name after --nodes."
    with or_refused(file, GraphFileError, remedy, doing="read"), Path(file).open("rb") as opened:
        stream = unpacking(opened, file)
        _, rows = quoted(lines(stream, file, encoding=options.encoding), file)
        for number, cells in rows:
            where = f"{file}, line {number}"
            if isinstance(cells, Bad):
                raise GraphFileError(f"{where}: {cells.problem}")
            if columns is None:
                columns, headings = Columns(cells), cells
                if "ID" not in columns.at:
                    raise GraphFileError(
                        f"{where}: no column is ':ID' in '{shown(','.join(cells))}', so these "
                        "are no nodes of Neo4j. Write it over their identifiers."
                    )
            elif len(cells) != len(headings):
                raise GraphFileError(
                    f"{where}: found {len(cells)} fields in '{shown(','.join(cells))}', "
                    f"expected {len(headings)} (as in line 1). Mend or delete the line."
                )
            else:
                columns.note(names, cells, where)


def relationship(found: Any, names: dict[Any, Any]) -> list[Any] | str | None:
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


def write_neo4j(triples: Iterable[Triple], path: str | Path) -> tuple[int, list[Path]]:
    """Write triples as Neo4j reads them; return how many, and the files.

    Args:
        triples: each a relationship between two nodes, the names that it says.
        path: ``.csv`` for ``neo4j-admin database import``, with the nodes beside it in
            ``…-nodes.csv``; ``.jsonl`` for ``apoc.import.json``. Packed as other files are.

    Raises:
        GraphFileError: a triple doesn't fit a line, or the place can't be
            written to; or the file is to be of another kind.
    """
    path, names = Path(path), dict[str, int]()
    if plain_ending(path) == ".jsonl":
        return write_triples(triples, path, partial(_write_json, names)), [path]
    if plain_ending(path) != ".csv":
        raise GraphFileError(
            f"{path}: Neo4j reads .csv and .jsonl. Give the file one of these endings."
        )
    stem, ending = path.name[: -len("".join(path.suffixes))] or path.name, "".join(path.suffixes)
    nodes = path.with_name(f"{stem}-nodes{ending}")
    count = write_triples(triples, path, partial(_write_relationships, names))
    write_triples((), nodes, partial(_write_nodes, names))
    return count, [path, nodes]


def _write_relationships(
    names: dict[str, int], triples: Iterable[Triple], stream: IO[bytes]
) -> None:
    def rows() -> Iterator[Iterable[str]]:
        yield ":START_ID", ":TYPE", ":END_ID"
        for t in triples:
            names.setdefault(t.head, len(names)), names.setdefault(t.tail, len(names))
            yield t.head, t.relation, t.tail

    write_rows(rows(), stream)


def _write_nodes(names: dict[str, int], _: Iterable[Triple], stream: IO[bytes]) -> None:
    write_rows([("name:ID", ":LABEL"), *((name, KIND) for name in names)], stream)


def _write_json(names: dict[str, int], triples: Iterable[Triple], stream: IO[bytes]) -> None:
    def write(**about: Any) -> None:
        stream.write((json.dumps(about, ensure_ascii=False) + "\n").encode())

    for number, t in enumerate(triples):
        ends = []
        for name in (t.head, t.tail):
            new = name not in names
            about = {"id": str(names.setdefault(name, len(names))), "labels": [KIND]}
            ends.append({**about, "properties": {"name": name}})
            if new:
                write(type="node", **ends[-1])
        between = {"label": t.relation, "properties": {}, "start": ends[0], "end": ends[1]}
        write(type="relationship", id=str(number), **between)
