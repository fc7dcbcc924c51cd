"""Ablation: which of K-BERT's two mechanisms is on. Data, not model switches."""

from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from kbert_core.errors import OptionError
from kbert_core.kbert.flat_tree import Batch, PackedBatch
from kbert_core.kbert.visible import visible_everywhere, visible_matrix

Positions = Literal["soft", "hard"]
Visible = Literal["tree", "all"]


@dataclass(frozen=True)
class Ablation:
    """How a flat tree is read (the paper's Figure 5).

    Attributes:
        positions: "soft" as in the paper; "hard" counts straight through.
        visible: "tree" as in the paper; "all" hides only padding.
    """

    positions: Positions = "soft"
    visible: Visible = "tree"

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("positions", self.positions, get_args(Positions)),
            ("visible", self.visible, get_args(Visible)),
        ):
            if value not in allowed:
                raise OptionError(f"{name} is '{value}', expected one of {', '.join(allowed)}.")

    def position_ids(self, batch: Batch) -> Tensor:
        """(B, N) int64, from 0; soft or hard positions."""
        if self.positions == "soft":
            return batch.soft_positions
        straight = (batch.real.cumsum(dim=1) - 1).clamp(min=0)
        if not isinstance(batch, PackedBatch):
            return straight
        first = batch.tree_ids.diff(dim=1, prepend=batch.tree_ids[:, :1] - 1) != 0
        return straight - (straight * first).cummax(dim=1).values  # each tree counts from 0

    def visible_in(self, batch: Batch) -> Tensor:
        """(B, N, N) bool, True = row may attend to column."""
        trees = batch.tree_ids if isinstance(batch, PackedBatch) else None
        if self.visible == "tree":
            return visible_matrix(batch.branch_ids, batch.anchor_ids, trees)
        return visible_everywhere(batch.branch_ids, trees)


FULL = Ablation()
