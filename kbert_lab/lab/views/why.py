"""Why one token sees another, and whom a token sees, in sentences."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.visible import Ablation, why_visible
from kbert_lab.lab.texts import N_, listed, sentences, t

if TYPE_CHECKING:  # PyTorch takes seconds to start, and the first look doesn't wait for it
    from kbert_core.kbert.kbert import KBertTrace


MOST_NAMED = 6  # tokens or branches in a sentence
REASONS = {
    "SAME": N_("it is the same token"),
    "TRUNK": N_("both are on the trunk, and the trunk sees the trunk"),
    "SAME_BRANCH": N_("both are on the branch “{of_a}”, and a branch sees itself"),
    "MENTION_AND_BRANCH": N_(
        "the branch “{branch}” hangs from the mention “{mention}”, and a mention and its "
        "branches see each other"
    ),
    "OFF_MENTION": N_(
        "“{on_branch}” is on the branch “{branch}”, which hangs from “{mention}”; “{on_trunk}” is "
        "not part of that mention, and can learn about the branch only through it, one layer later"
    ),
    "SIBLINGS": N_(
        "the branches “{of_a}” and “{of_b}” both hang from “{mention}”, and branches of one "
        "mention don't see each other"
    ),
    "OTHER_MENTION": N_(
        "the branch “{of_a}” hangs from “{mention_a}” and “{of_b}” from “{mention_b}”, and "
        "branches of different mentions don't see each other"
    ),
}
SAID = {
    "visible": N_("“{a}” may attend to “{b}”: {reason}."),
    "hidden": N_("“{a}” may not attend to “{b}”: {reason}."),
    "all": N_(
        "“{a}” may attend to “{b}” only because everything is visible in this ablation. By the "
        "tree: {reason}."
    ),
}


def why(flat: FlatTree, row: int, column: int, ablation: Ablation) -> str:
    """Say in one or two sentences why a cell is visible or hidden; plain text."""
    found = why_visible(
        flat.branch_ids[row], flat.anchor_ids[row], flat.branch_ids[column], flat.anchor_ids[column]
    )
    one, other = (row, column) if flat.branch_ids[row] else (column, row)
    names = {
        "a": flat.tokens[row],
        "b": flat.tokens[column],
        "of_a": branch_of(flat, row),
        "of_b": branch_of(flat, column),
        "mention_a": mention_of(flat, row),
        "mention_b": mention_of(flat, column),
        "on_branch": flat.tokens[one],
        "on_trunk": flat.tokens[other],
        "branch": branch_of(flat, one),
        "mention": mention_of(flat, one),
    }
    reason = t(REASONS["SAME" if row == column else found.name], **names)
    how = "visible" if found.visible else "all" if ablation.visible == "all" else "hidden"
    return t(SAID[how], reason=reason, **names)


def in_browser(flat: FlatTree, places: Sequence[int], ablation: Ablation) -> dict[str, object]:
    """What the browser needs to say the same as :func:`why` of a cell, without asking.

    Args:
        places: of the tokens drawn.
    """
    return {
        "on": [(flat.branch_ids[place], flat.anchor_ids[place]) for place in places],
        "branches": [" ".join(placed.branch.texts) for placed in flat.branches],
        "mentions": [_text_of(flat, number) for number in range(len(flat.tree.nodes))],
        "texts": {name: t(text) for name, text in (REASONS | SAID).items()},
        "all": ablation.visible == "all",
    }


def mention_of(flat: FlatTree, index: int) -> str:
    """Return the text of the mention that a token belongs to or hangs from; empty for none."""
    anchor = flat.anchor_ids[index]
    return _text_of(flat, anchor - 1) if anchor > 0 else ""


def _text_of(flat: FlatTree, node: int) -> str:
    mention = flat.tree.nodes[node].mention
    return flat.tree.sentences[mention.sentence][mention.start : mention.end]


def branch_of(flat: FlatTree, index: int) -> str:
    """Return what the branch of a token reads; empty for one on the trunk."""
    number = flat.branch_ids[index]
    return " ".join(flat.branches[number - 1].branch.texts) if number > 0 else ""


def share_of_layers(trace: "KBertTrace", window: int) -> np.ndarray:
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


def visible_in(trace: "KBertTrace", window: int, layer: int = 0) -> np.ndarray:
    """Take a row's visible matrix out of a trace, interventions included.

    Args:
        window: its row, N tokens.
        layer: from 1; 0: seen in any layer.

    Returns:
        (N, N) bool, row may attend to column.
    """
    if layer and trace.visible_layers:
        size = len(trace.rows[window])
        return trace.visible_layers[layer - 1][window, :size, :size].cpu().numpy()
    return share_of_layers(trace, window) > 0


# A row of the matrix in words


def say_row(
    flat: FlatTree, row: int, visible: np.ndarray, weights: np.ndarray | None = None
) -> str:
    """Say whom a token sees, what is hidden from it, and where it looks most; plain text.

    Args:
        flat: N tokens.
        visible: (N, N) bool, row may attend to column.
        weights: (N, N) attention, if it is shown.
    """
    token, seen = flat.tokens[row], np.flatnonzero(visible[row]).tolist()
    hidden = [place for place in range(len(flat)) if not visible[row, place]]
    counts = {"a": token, "seen": len(seen), "n": len(flat)}
    said = [t("“{a}” sees {seen} of {n} tokens: {what}.", what=_named(flat, seen), **counts)]
    if hidden:
        said.append(t("Hidden from it: {what}.", what=_named(flat, hidden)))
    if weights is not None:
        seen.sort(key=lambda place: -weights[row, place])
        most = [f"“{flat.tokens[i]}” {share(float(weights[row, i]))}" for i in seen[:MOST_NAMED]]
        said.append(t("“{a}” attends most to: {what}.", a=token, what=listed(most)))
    return sentences(said)


def _named(flat: FlatTree, places: list[int]) -> str:
    """Name tokens: how many are of the trunk, and the branches, each once, in reading order."""
    trunk = sum(1 for place in places if flat.branch_ids[place] == 0)
    branches = dict.fromkeys(branch_of(flat, own) for own in places if flat.branch_ids[own] > 0)
    parts = [t("{n} of the trunk", n=trunk)] if trunk else []
    parts += [t("the branch “{branch}”", branch=branch) for branch in branches]
    more = len(parts) - MOST_NAMED
    return listed([*parts[:MOST_NAMED], *([t("and {n} more", n=more)] if more > 0 else [])])


def share(value: float) -> str:
    """A share of attention in per cent."""
    if value == 0:
        return "0"
    return f"{100 * value:.1f} %" if value >= 0.0005 else "< 0.1 %"
