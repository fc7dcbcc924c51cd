"""Several labels in one cell of a table: ``sports|politics``, or a list.

Between labels stands ``|`` or, where no cell of the file has one, a comma or semicolon, also a
Chinese one. A list is one of JSON or Python. An empty cell says that a text has none of the labels.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from kbert_core.errors import DataError

BAR = re.compile(r"\|")
SIGNS = re.compile(r"[|,;，；、](?![^(]*\))")  # but not in Cause-Effect(e2,e1)


def labels_of_cells(cells: Sequence[tuple[str, Any]]) -> list[tuple[str, ...]]:
    """Take cells (place, text or list) apart; DataError for a broken list or a label twice."""
    lists = [(where, _as_list(where, cell)) for where, cell in cells]
    sign = BAR if any(isinstance(cell, str) and "|" in cell for _, cell in lists) else SIGNS
    return [_labels(where, cell, sign) for where, cell in lists]


def look_like_several(cells: Iterable[Any]) -> list[str]:
    """Return the cells that may have several labels: lists, and those that share a part."""
    cells = list(cells)
    if lists := [", ".join(map(str, cell)) for cell in cells if isinstance(cell, list)]:
        return lists
    parts = {label: {part.strip() for part in SIGNS.split(label)} for label in set(cells)}
    count = Counter(part for own in parts.values() for part in own)
    found = (la for la, own in parts.items() if len(own) > 1 and any(count[p] > 1 for p in own))
    return sorted(found)


def _as_list(where: str, cell: Any) -> Any:
    """Read a list that is written as a text; JSON's lists of texts are Python's, too."""
    if not isinstance(cell, str) or not cell.lstrip().startswith("["):
        return cell
    try:
        return ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError) as error:
        raise DataError(
            f'{where}: the labels \'{cell[:60]}\' are no list. Write them as ["one", "another"], '
            "or as one|another."
        ) from error


def _labels(where: str, cell: Any, sign: re.Pattern[str]) -> tuple[str, ...]:
    parts = sign.split(cell) if isinstance(cell, str) else map(str, cell)
    labels = tuple(part.strip() for part in parts if part.strip())
    if len(set(labels)) < len(labels):
        raise DataError(
            f"{where}: a label stands twice in '{', '.join(labels)[:60]}'. Expected the names of "
            "the labels that the text has, each once, and not a 0 or 1 for every label."
        )
    return labels
