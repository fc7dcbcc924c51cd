"""A graph as a ``pandas.DataFrame`` with a row for every triple, and back."""

from typing import Any

import pandas as pd

from kbert_core.errors import GraphEditError, GraphFileError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.headings import columns_of
from kbert_core.knowledge.triple import Triple

COLUMNS, ON = ["head", "relation", "tail"], "on"


def to_pandas(graph: KnowledgeGraph) -> pd.DataFrame:
    """Return a frame of the triples in order: ``head``, ``relation``, ``tail``, and ``on``.

    ``on`` is False where a triple is switched off. The frame's ``attrs`` keep the graph's name.
    """
    rows = [(t.head, t.relation, t.tail, graph.is_on(t)) for t in graph]
    frame = pd.DataFrame(rows, columns=[*COLUMNS, ON])
    frame.attrs["name"] = graph.name
    return frame


def from_pandas(
    frame: pd.DataFrame, columns: tuple[Any, Any, Any] | None = None, *, name: str = ""
) -> KnowledgeGraph:
    """Return the triples that a frame's rows say; a repeated one counts once.

    ``from_pandas(to_pandas(graph))`` holds what the graph holds. A triple is on where ``on``
    doesn't say.

    Args:
        columns: which are head, relation and tail; None: those that are called so, by the words
            that a file's headings may have too.
        name: of the graph; "": the frame's.

    Raises:
        GraphFileError: there are no such columns, or a row is no triple of texts.
    """
    there = [str(column) for column in frame.columns]
    places = columns_of(there) if columns is None else _places(frame, columns)
    if places is None:
        raise GraphFileError(
            f"The table has the columns {', '.join(there)}, expected {', '.join(COLUMNS)}. Rename "
            "three of them, or say which: columns=(HEAD, RELATION, TAIL)."
        )
    if there.count(ON) > 1:
        raise GraphFileError(
            f"The table has {there.count(ON)} columns called {ON}, expected one at most. Rename "
            "the others."
        )
    ons = [True] * len(frame)
    if ON in frame and all(isinstance(on, bool) for on in frame[ON].dropna().tolist()):
        ons = [on is not False for on in frame[ON].tolist()]  # one that is missing is on
    found: dict[Triple, bool] = {}
    values = zip(*(frame.iloc[:, place].tolist() for place in places), strict=True)
    for number, (fields, on) in enumerate(zip(values, ons, strict=True), start=1):
        where = f"the table, row {number} (index {frame.index[number - 1]!r})"
        odd = next((field for field in fields if not isinstance(field, str)), None)
        if odd is not None or not all(isinstance(field, str) for field in fields):
            raise GraphFileError(
                f"{where}: found {odd!r} in {fields!r}, expected three texts. Drop the row "
                "(frame.dropna()), or make texts of its values (frame.astype(str))."
            )
        try:
            found.setdefault(Triple.checked(*fields), on)
        except GraphEditError as error:
            raise GraphFileError(f"{where}: {error}") from error
    off = {triple for triple, on in found.items() if not on}
    return KnowledgeGraph(found, name=name or str(frame.attrs.get("name", "")), off=off)


def _places(frame: pd.DataFrame, columns: tuple[Any, Any, Any]) -> list[int] | None:
    known = list(frame.columns)
    return [known.index(column) for column in columns] if {*columns} <= {*known} else None
