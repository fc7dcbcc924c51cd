"""Selection: what is looked at closely, in every panel alike; it never re-runs a model.

Kept apart from the Scene, and by what tokens are, not by where they stand, so
that it outlives an edit.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import cast

import numpy as np

from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.knowledge.triple import Triple
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.written import STRICT, Identity, Layer, OneTriple

FIELDS = attrgetter("head", "relation", "tail")  # of a triple
MEAN = 0  # in the place of a layer or an attention head


@dataclass(frozen=True, slots=True)
class Selection:
    """What is chosen."""

    __pydantic_config__ = STRICT

    token: Identity | None = None  # whose row and column are looked at
    triple: OneTriple | None = None  # whose branch is, at all its mentions
    # two tokens, who looks and at whom; the first is token
    cell: tuple[Identity, Identity] | None = None
    layer: Layer | None = None  # of the attention maps, from 1; MEAN of all; None: the last
    head: Layer = MEAN  # attention head, from 1; MEAN of all

    @property
    def empty(self) -> bool:
        """Whether no token, triple or cell is chosen."""
        return self.token is None and self.triple is None

    def with_token(self, token: Identity | None) -> "Selection":
        """Choose a token; one of a branch brings its triple along."""
        chosen = replace(self, token=token, cell=None)
        return replace(chosen, triple=triple_of(token)) if triple_of(token) else chosen

    def with_triple(self, triple: Triple | None) -> "Selection":
        """Choose a triple; the token stays."""
        return replace(self, triple=triple)

    def with_cell(self, looks: Identity, at: Identity) -> "Selection":
        """Choose a cell, and with it the token that looks."""
        return replace(self, token=looks, cell=(looks, at))

    def with_map(self, layer: int | None, head: int) -> "Selection":
        """Choose one attention map, or a mean."""
        return replace(self, layer=layer, head=head)

    def cleared(self) -> "Selection":
        """Choose nothing; the attention map stays."""
        return Selection(layer=self.layer, head=self.head)

    def map_of(self, layers: int, heads: int) -> tuple[int, int]:
        """The layer and head chosen, as far as a model has them.

        Args:
            layers, heads: how many it has.
        """
        layer = layers if self.layer is None else min(self.layer, layers)
        return layer, self.head if self.head <= heads else MEAN


def code_of(identity: Identity) -> str:
    """A token's identity, or a branch's, as the drawings of a page name it; see identity_of."""
    return json.dumps(identity, ensure_ascii=False, separators=(",", ":"), default=FIELDS)


def identity_of(code: str) -> Identity:
    """The identity that a drawing names."""
    return tuple(Triple(*part) if isinstance(part, list) else part for part in json.loads(code))


def triple_of(token: Identity | None) -> Triple | None:
    """The triple whose branch a token stands on, if it stands on one."""
    return cast(Triple, token[3]) if token is not None and token[0] == "branch" else None


# What it means for the tokens of one drawing


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
