"""Reach: whose information can stand in whose state after how many layers.

Attention moves information from a token to those that see it, one step a
layer, and every token keeps its own: what can have come where is the product
of the layers' visible matrices, as booleans. With K-BERT's visible matrix a
branch reaches its mention after one layer and the whole trunk after two
(the paper's Figure 4); nothing else can have changed before.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kbert_core.errors import OptionError, ShapeError

NEVER = -1


@dataclass(frozen=True, eq=False)
class Reach:
    """Where information can have gone, layer by layer.

    Attributes:
        visible: L tensors (N, N) bool, True = row may attend to column.
        by_layer: (L + 1, N, N) bool; [l, i, j]: after l layers the state of
            token i can hold what token j said. Before the first layer that is
            a token's own.
    """

    visible: tuple[Tensor, ...]
    by_layer: Tensor

    @property
    def layers(self) -> int:
        """L."""
        return len(self.visible)

    @property
    def first(self) -> Tensor:
        """(N, N) int64: the layer after which token i can first hold what j said; -1: none."""
        return first_layer(self.by_layer)

    def into(self, token: int) -> Tensor:
        """(L + 1, N) bool: whose information a token's state can hold after each layer."""
        return self.by_layer[:, token, :]

    def out_of(self, tokens: Collection[int]) -> Tensor:
        """(L + 1, N) bool: whose state can hold what any of some tokens said."""
        return self.by_layer[:, :, sorted(tokens)].any(2)

    def way(self, source: int, token: int) -> tuple[int, ...]:
        """A quickest way from one token to another.

        Returns:
            Where the information stands before the first layer and after each
            of those it takes; empty where there is no way.
        """
        layer = int(self.first[token, source])
        if layer == NEVER:
            return ()
        stations = [token]
        for before in range(layer - 1, -1, -1):
            sees = self.visible[before][stations[-1]]
            there = self.by_layer[before, :, source]
            stations.append(int((sees & there).nonzero()[0]))
        return tuple(reversed(stations))


def reach(visible: Tensor | Sequence[Tensor], layers: int | None = None) -> Reach:
    """Multiply visible matrices out: V_l ... V_1 as booleans.

    Args:
        visible: (N, N) bool, True = row may attend to column, the same in
            every layer; or one for each of L layers.
        layers: L, where there is one matrix.

    Raises:
        OptionError: one matrix, and no number of layers.
        ShapeError: the matrices aren't square and alike.
    """
    if isinstance(visible, Tensor):
        if layers is None:
            raise OptionError("One visible matrix is given, so say how many layers there are.")
        visible = [visible] * layers
    size = visible[0].shape if visible else torch.Size((0, 0))
    if len(size) != 2 or size[0] != size[1] or any(one.shape != size for one in visible):
        raise ShapeError(
            f"The visible matrices have shapes {sorted({tuple(one.shape) for one in visible})}; "
            "expected one (N, N) for all."
        )
    now = torch.eye(size[0], dtype=torch.bool)
    found = [now]
    for one in visible:
        seen = one.cpu().float()  # booleans have no matrix product; sums are exact to 2^24
        now = now | ((seen @ now.float()) > 0)  # | : what a token holds it never loses
        found.append(now)
    return Reach(tuple(one.cpu() for one in visible), torch.stack(found))


def first_layer(reached: Tensor) -> Tensor:
    """Say after which layer something is first reached.

    Args:
        reached: (L + 1, ...) bool, never False again once True.

    Returns:
        (...) int64; -1 where it never is.
    """
    first = reached.shape[0] - reached.sum(0)
    return torch.where(reached[-1], first, NEVER)
