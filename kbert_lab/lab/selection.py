"""Selection: what is looked at closely, in every panel alike; it never re-runs a model.

Kept apart from the Scene, and by what tokens are, not by where they stand, so
that it outlives an edit.
"""

from dataclasses import dataclass, replace
from typing import cast

from kbert_core.knowledge.triple import Triple
from kbert_lab.lab.written import STRICT, Identity, Layer, OneTriple

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


def triple_of(token: Identity | None) -> Triple | None:
    """The triple whose branch a token stands on, if it stands on one."""
    return cast(Triple, token[3]) if token is not None and token[0] == "branch" else None
