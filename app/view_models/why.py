"""Why one token sees another, in a sentence."""

import numpy as np
from torch import Tensor

from app.texts import t
from kbert_core import Ablation, FlatTree, KBertTrace, Visibility, why_visible
from kbert_core.kbert.interventions import intervene


def clause(flat: FlatTree, row: int, column: int) -> Visibility:
    """Name the clause of Eq. 3 that decides a cell."""
    return why_visible(
        flat.branch_ids[row],
        flat.anchor_ids[row],
        flat.branch_ids[column],
        flat.anchor_ids[column],
    )


def is_visible(flat: FlatTree, row: int, column: int, ablation: Ablation) -> bool:
    """Say whether row may attend to column."""
    return ablation.visible == "all" or clause(flat, row, column).visible


def why(flat: FlatTree, row: int, column: int, ablation: Ablation) -> str:
    """Say in one or two sentences why a cell is visible or hidden; plain text."""
    found = clause(flat, row, column)
    a, b = flat.tokens[row], flat.tokens[column]
    names = {"a": a, "b": b, "of_a": branch_of(flat, row), "of_b": branch_of(flat, column)}
    if row == column:
        reason = t("it is the same token", **names)
    elif found in (Visibility.MENTION_AND_BRANCH, Visibility.OFF_MENTION):
        on_branch = row if flat.branch_ids[row] else column
        reason = t(
            "the branch “{branch}” hangs from the mention “{mention}”, and a mention and its "
            "branches see each other"
            if found.visible
            else "“{on_branch}” is on the branch “{branch}”, which hangs from “{mention}”; "
            "“{on_trunk}” is not part of that mention, and can learn about the branch only "
            "through it, one layer later",
            branch=branch_of(flat, on_branch),
            mention=mention_of(flat, on_branch),
            on_branch=flat.tokens[on_branch],
            on_trunk=flat.tokens[column if on_branch == row else row],
        )
    elif found is Visibility.SIBLINGS:
        reason = t(
            "the branches “{of_a}” and “{of_b}” both hang from “{mention}”, and branches of one "
            "mention don't see each other",
            mention=mention_of(flat, row),
            **names,
        )
    elif found is Visibility.OTHER_MENTION:
        reason = t(
            "the branch “{of_a}” hangs from “{mention_a}” and “{of_b}” from “{mention_b}”, and "
            "branches of different mentions don't see each other",
            mention_a=mention_of(flat, row),
            mention_b=mention_of(flat, column),
            **names,
        )
    else:
        reason = t(
            "both are on the trunk, and the trunk sees the trunk"
            if found is Visibility.TRUNK
            else "both are on the branch “{of_a}”, and a branch sees itself",
            **names,
        )
    if ablation.visible == "all" and not found.visible:
        return t(
            "“{a}” may attend to “{b}” only because everything is visible in this ablation. By "
            "the tree: {reason}.",
            a=a,
            b=b,
            reason=reason,
        )
    return t(
        "“{a}” may attend to “{b}”: {reason}."
        if found.visible
        else "“{a}” may not attend to “{b}”: {reason}.",
        a=a,
        b=b,
        reason=reason,
    )


def mention_of(flat: FlatTree, index: int) -> str:
    """Return the text of the mention that a token belongs to or hangs from."""
    mention = flat.tree.nodes[flat.anchor_ids[index] - 1].mention
    return flat.tree.sentences[mention.sentence][mention.start : mention.end]


def branch_of(flat: FlatTree, index: int) -> str:
    """Return what the branch of a token reads; empty for one on the trunk."""
    number = flat.branch_ids[index]
    return " ".join(flat.branches[number - 1].branch.texts) if number > 0 else ""


def share_of_layers(trace: KBertTrace, window: int) -> np.ndarray:
    """Say in which share of the layers a row's tokens see each other, interventions included.

    Returns:
        (N, N) float32, 0 to 1; only 0 and 1 where all layers are alike.
    """
    size = len(trace.rows[window])
    layers = trace.visible_layers or (trace.visible,)
    total = np.zeros((size, size), dtype=np.float32)
    for one in {id(one): one for one in layers}.values():
        count = sum(layer is one for layer in layers)
        total += count * one[window, :size, :size].cpu().numpy()
    return total / len(layers)


def visible_in(trace: KBertTrace, window: int, layer: int = 0) -> np.ndarray:
    """Take a row's visible matrix out of a trace, interventions included.

    Args:
        window: its row, N tokens.
        layer: from 1; 0: seen in any layer.

    Returns:
        (N, N) bool, row may attend to column.
    """
    size = len(trace.rows[window])
    layers = trace.visible_layers or (trace.visible,)
    chosen = (layers[layer - 1],) if layer and trace.visible_layers else layers
    seen = np.zeros((size, size), dtype=bool)
    for one in {id(one): one for one in chosen}.values():
        seen |= one[window, :size, :size].cpu().numpy()
    return seen


def layers_without_model(trace: KBertTrace, window: int, count: int) -> list[Tensor]:
    """The visible matrices of a row in as many layers as are asked for, interventions included.

    Returns:
        One (N, N) bool per layer; at least as many as the interventions name.
    """
    size = len(trace.rows[window])
    visible = trace.ablation.visible_in(trace.batch)
    count = max(count, *(layer for one in trace.interventions for layer in one.layers), 1)
    layers = intervene(visible, trace.rows, trace.interventions, count).layers
    return [layer[window, :size, :size] for layer in layers]
