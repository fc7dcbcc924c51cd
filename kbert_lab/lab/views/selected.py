"""What a selection means for the tokens of one drawing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kbert_core.kbert.flat_tree import FlatTree
from kbert_lab.lab.selection import Selection, triple_of
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.written import Identity


@dataclass(frozen=True, slots=True)
class Marks:
    """What is marked, as places among the tokens drawn."""

    token: int | None = None  # the one that looks; None: none is chosen, or it isn't here
    target: int | None = None  # the one looked at, where a cell is chosen
    branch: tuple[int, ...] = ()  # the tokens of the chosen triple's branches, in order
    # whom the chosen token may attend to; None where none is chosen
    seen: frozenset[int] | None = None

    @property
    def cell(self) -> tuple[int, int] | None:
        """The chosen cell, row and column."""
        if self.token is None or self.target is None:
            return None
        return self.token, self.target


def marks_of(
    identities: Sequence[Identity],
    selection: Selection,
    visible: np.ndarray | None = None,
) -> Marks:
    """Find what is chosen among tokens.

    Args:
        selection: what is chosen.
        visible: (N, N) bool, row may attend to column; None: not asked for.
    """
    places = {name: place for place, name in enumerate(identities)}
    token = places.get(selection.token) if selection.token is not None else None
    target = places.get(selection.cell[1]) if selection.cell is not None else None
    branch = (
        tuple(i for i, name in enumerate(identities) if triple_of(name) == selection.triple)
        if selection.triple is not None
        else ()
    )
    seen = None
    if visible is not None and token is not None:
        seen = frozenset(np.flatnonzero(visible[token]).tolist())
    return Marks(token, target, branch, seen)


def say_selection(flat: FlatTree, selection: Selection) -> str:
    """Name what is chosen; plain text."""
    texts = dict(zip(flat.identities, flat.tokens, strict=True))
    parts = []
    if selection.cell is not None:
        a, b = (texts.get(name, t("not in this tree")) for name in selection.cell)
        parts.append(t("{a} → {b}", a=a, b=b))
    elif selection.token is not None:
        text = N_("{a}; faint tokens are hidden from it")
        parts.append(t(text, a=texts.get(selection.token, t("not in this tree"))))
    if selection.triple is not None:
        parts.append(str(selection.triple))
    return t("Chosen: {what}", what=" · ".join(parts))


def chosen_characters(rows: Sequence[FlatTree], selection: Selection) -> dict[int, str]:
    """What of a text is chosen, by the first character of each of its tokens.

    Args:
        rows: of a trace of one sentence.
        selection: what is chosen.

    Returns:
        "token" for the chosen token; "mention" for the mentions that the
        chosen triple's branches hang from.
    """
    found: dict[int, str] = {}
    for flat in rows:
        starts = flat.trunk_tokens[0].starts
        for placed in flat.branches:
            if placed.branch.triple == selection.triple:
                mention = flat.tree.nodes[placed.node].mention
                inside = (x for x in starts if mention.start <= x < mention.end)
                found.update(dict.fromkeys(inside, "mention"))
        if selection.token in flat.identities and selection.token[0] == "trunk":
            found[starts[int(str(selection.token[2]))]] = "token"
    return found
