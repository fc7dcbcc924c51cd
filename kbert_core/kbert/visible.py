"""The seeing layer: which tokens may attend to which (K-BERT, Eq. 3)."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor

from kbert_core.errors import ShapeError


def visible_matrix(
    branch_ids: Tensor, anchor_ids: Tensor, tree_ids: Tensor | None = None
) -> Tensor:
    """Say which tokens may attend to which (K-BERT, Eq. 3).

    Tokens see along one branch (the trunk is one), and between a mention
    and the branches that hang from it.

    Args:
        branch_ids: (B, N) int64; 0 trunk, 1.. branches, -1 padding.
        anchor_ids: (B, N) int64; mention number, 0 for none.
        tree_ids: (B, N) int64; which tree a token belongs to, where several
            share a row; None: one tree a row.

    Returns:
        (B, N, N) bool, True = row may attend to column. Padding sees
        padding, so softmax never meets an empty row.

    Raises:
        ShapeError: the codes differ in shape.
    """
    _check(branch_ids, anchor_ids)
    branch_ids, anchor_ids = branch_ids.int(), anchor_ids.int()  # compared twice as fast
    mention, hangs = _mentions(branch_ids, anchor_ids)
    visible = branch_ids[:, :, None] == branch_ids[:, None, :]
    visible |= mention[:, :, None] == hangs[:, None, :]  # in place: no tensor of a batch is larger
    visible |= hangs[:, :, None] == mention[:, None, :]
    return visible if tree_ids is None else _within_trees(visible, branch_ids, tree_ids)


def visible_everywhere(branch_ids: Tensor, tree_ids: Tensor | None = None) -> Tensor:
    """Hide only padding: the ablation without the visible matrix.

    Args:
        branch_ids: (B, N) int64; -1 at padding.
        tree_ids: as for :func:`visible_matrix`.

    Returns:
        (B, N, N) bool.
    """
    real = branch_ids >= 0
    visible = real[:, :, None] == real[:, None, :]
    return visible if tree_ids is None else _within_trees(visible, branch_ids, tree_ids)


def mask_mod(
    branch_ids: Tensor, anchor_ids: Tensor, tree_ids: Tensor | None = None
) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Say the same as :func:`visible_matrix` of single cells, as FlexAttention asks for it.

    No (B, N, N) tensor is made: blocks of a row that see nothing of each other, such as those
    of different trees, are never computed.

    Args:
        as of :func:`visible_matrix`.

    Returns:
        A function of batch, attention head, query and key, which are indices.
    """
    _check(branch_ids, anchor_ids)
    mention, hangs = _mentions(branch_ids, anchor_ids)
    trees = torch.zeros_like(branch_ids) if tree_ids is None else tree_ids

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        del head
        same_branch = branch_ids[batch, query] == branch_ids[batch, key]
        to_branch = mention[batch, query] == hangs[batch, key]
        to_mention = hangs[batch, query] == mention[batch, key]
        same_tree = trees[batch, query] == trees[batch, key]
        return (same_branch | to_branch | to_mention) & same_tree

    return sees


def additive_mask(visible: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn visibility into what is added to attention scores (the M of Eq. 3).

    Args:
        visible: (B, N, N) bool.
        dtype: the encoder's.

    Returns:
        (B, 1, N, N), 0 where visible and the dtype's least number (for the
        paper's minus infinity) where not: softmax makes it exactly 0.
    """
    mask = torch.zeros(visible.shape, dtype=dtype, device=visible.device)
    return mask.masked_fill(~visible, torch.finfo(dtype).min)[:, None]


def attention_mask(
    config: Any, visible: Tensor, positions: Tensor, dtype: torch.dtype
) -> Tensor | dict[str, Tensor]:
    """Turn the visible matrix into the mask an encoder takes.

    Where some layers attend only within a window (ModernBERT), these get a
    mask of their own; a token is as far as its position says, so that a
    branch is near its mention however many branches stand between.

    Args:
        config: the encoder's.
        visible: (B, N, N) bool.
        positions: (B, N) as the encoder gets them.
        dtype: the encoder's.

    Returns:
        (B, 1, N, N) additive, or two of them by kind of layer.
    """
    full = additive_mask(visible, dtype)
    window = local_window(config)
    if window is None:
        return full
    near = (positions[:, :, None] - positions[:, None, :]).abs() <= window
    return {
        "full_attention": full,
        "sliding_attention": additive_mask(visible & near, dtype),
    }


def layer_masks(
    config: Any, visible: Sequence[Tensor], positions: Tensor, dtype: torch.dtype
) -> list[Tensor]:
    """Turn a visible matrix a layer into an additive mask a layer.

    Args:
        visible: L of (B, N, N) bool.
        other arguments: as for :func:`attention_mask`.

    Returns:
        L of (B, 1, N, N), local windows cut out where a layer has one.
    """
    made: dict[int, Tensor | dict[str, Tensor]] = {}  # by the matrix: most layers share one
    masks = []
    for number, own in enumerate(visible):
        if id(own) not in made:
            made[id(own)] = attention_mask(config, own, positions, dtype)
        mask = made[id(own)]
        masks.append(mask[config.layer_types[number]] if isinstance(mask, dict) else mask)
    return masks


def local_window(config: Any) -> int | None:
    """How far a local layer sees to either side; None: every layer sees everything."""
    if "sliding_attention" not in (getattr(config, "layer_types", None) or ()):
        return None
    return int(config.sliding_window)


class Seeing(StrEnum):
    """Why one token sees another, or doesn't."""

    TRUNK = "both stand on the trunk"
    SAME_BRANCH = "both stand on the same branch"
    MENTION_AND_BRANCH = "one is the mention the other's branch hangs from"
    SIBLINGS = "they stand on two branches of one mention"
    OTHER_MENTION = "they stand on branches of different mentions"
    OFF_MENTION = "the branch hangs from another mention than this token"
    PADDING = "one of them is padding"

    @property
    def visible(self) -> bool:
        """Whether the visible matrix has True here."""
        return self in (Seeing.TRUNK, Seeing.SAME_BRANCH, Seeing.MENTION_AND_BRANCH)


def seeing(branch_a: int, anchor_a: int, branch_b: int, anchor_b: int) -> Seeing:
    """Name the clause of Eq. 3 that decides one cell, from the tokens' codes."""
    if branch_a < 0 or branch_b < 0:
        return Seeing.PADDING
    if branch_a == branch_b:
        return Seeing.SAME_BRANCH if branch_a else Seeing.TRUNK
    same_anchor = anchor_a == anchor_b and anchor_a > 0
    if branch_a == 0 or branch_b == 0:
        return Seeing.MENTION_AND_BRANCH if same_anchor else Seeing.OFF_MENTION
    return Seeing.SIBLINGS if same_anchor else Seeing.OTHER_MENTION


def _mentions(branch_ids: Tensor, anchor_ids: Tensor) -> tuple[Tensor, Tensor]:
    """Part the anchors: (B, N) the mention of a trunk token, or 0; that of a branch token, or -1.

    A mention and a branch that hangs from it have the same number; no others do.
    """
    mention = torch.where(branch_ids == 0, anchor_ids, 0)
    hangs = torch.where((branch_ids > 0) & (anchor_ids > 0), anchor_ids, -1)
    return mention, hangs


def _within_trees(visible: Tensor, branch_ids: Tensor, tree_ids: Tensor) -> Tensor:
    """Hide the trees of a row from each other."""
    _check(branch_ids, tree_ids)
    visible &= tree_ids[:, :, None] == tree_ids[:, None, :]
    return visible


def _check(first: Tensor, second: Tensor) -> None:
    if first.shape != second.shape:
        raise ShapeError(
            f"branch_ids has shape {tuple(first.shape)} and the other code "
            f"{tuple(second.shape)}; expected the same (B, N)."
        )
