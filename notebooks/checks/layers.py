"""Exercises on a layer and on layers: 04 attention, 04b one layer, 05 from BERT to K-BERT."""

import math
from collections.abc import Callable

import numpy as np

from _tools import choices, exercise

POSITIONS, SEGMENTS = [0, 1, 2, 3, 4, 3, 4, 5], [0, 0, 0, 0, 0, 0, 1, 1]


@exercise(
    "Mask first, then normalise; and subtracting the largest score keeps e to its power small."
)
def check_softmax(answer: object) -> str | None:
    """A function: scores (N,), visible (N,) → weights (N,)."""
    if not isinstance(answer, Callable):
        return "give a function: def masked_softmax(scores, visible): return ..."
    random = np.random.default_rng(0)
    for size in (2, 5, 9):
        scores, visible = random.normal(size=size), random.random(size) < 0.6
        visible[0] = True
        found = np.asarray(answer(scores.copy(), visible.copy()), dtype=float)
        if found.shape != scores.shape:
            return f"for {size} scores it gives the shape {found.shape}, expected ({size},)."
        if np.any(found[~visible] != 0):
            return "a hidden token gets a weight above 0. Give it a score of minus infinity."
        whole = np.exp(scores) / np.exp(scores).sum()
        if np.allclose(found, np.where(visible, whole, 0)) and not visible.all():
            return (
                f"the visible weights add up to {found.sum():.2f}, not 1: you took the hidden ones "
                "away after normalising. Take them away before."
            )
        right = np.where(visible, np.exp(scores), 0)
        if not np.allclose(found, right / right.sum(), atol=1e-6):
            return f"the weights add up to {found.sum():.3f}, but aren't e^score over their sum."
    with np.errstate(all="ignore"):
        large = np.asarray(answer(np.array([1000.0, 999.0, 1.0]), np.array([True, True, False])))
    if not np.isfinite(large).all():
        return (
            "right for small scores, but e^1000 is infinite on a computer. Subtract the largest "
            "visible score from all of them first; the weights stay the same."
        )
    return None


@exercise("Where the mask is divided by the root of d_k too, it must be that much larger.")
def check_factor(answer: object) -> str | None:
    """What M = -10 multiplies e^score by in the order of Eq. 5, d_k = 64."""
    if not isinstance(answer, (int, float)) or isinstance(answer, bool):
        return "give a number."
    for value, said in (
        (math.exp(-10 / 8), None),
        (
            math.exp(-10),
            "that is e^−10, as if the mask weren't scaled. In Eq. 5 it is divided by √64 = 8 first.",
        ),
        (math.exp(-10 / 64), "you divided by d_k; Eq. 5 divides by its root, √64 = 8."),
        (
            -10 / 8,
            "that is what is added to the score. It stands in the exponent: e to the power of it.",
        ),
    ):
        if abs(answer - value) < min(0.01, abs(value)):
            return said
    return "softmax takes e^score. Adding −10/8 to a score multiplies e^score by e^(−10/8)."


check_masks = choices("masks")


@exercise(
    "Positions run on through both sentences; only the segment says which sentence a token is in."
)
def check_embedding(positions: object, segments: object) -> str | None:
    """Soft positions and segments of a pair with a branch."""
    for name, answer in (("soft positions", positions), ("segments", segments)):
        if not isinstance(answer, (list, tuple)) or len(answer) != len(POSITIONS):
            return f"give {len(POSITIONS)} {name} in a list, one per token of the row."
    positions, segments = list(positions), list(segments)
    if positions == list(range(8)):
        return "these are the hard positions: [SEP] comes after 炎 in the sentence, not after 病."
    if positions[:6] == POSITIONS[:6] and positions[6] in (0, 1):
        return "the second sentence doesn't begin again: 肺 comes after [SEP], at position 4."
    if positions[3:5] != POSITIONS[3:5]:
        return "a branch goes on from its mention: 炎 is at 2, so 疾 is at 3."
    if positions != POSITIONS:
        wrong = next(n for n in range(8) if positions[n] != POSITIONS[n])
        return f"position {positions[wrong]} of token {wrong} isn't right: count along the trunk alone."
    if segments[3:5] != [0, 0]:
        return "a branch has the segment of its mention, and 肺炎 is in A."
    if segments[5] != 0:
        return "the [SEP] after A closes A, so it has segment 0."
    if segments != SEGMENTS:
        return "A is 0 and B is 1; B is the second 肺 and the [SEP] that closes it."
    return None


check_mixing = choices("mixing")


@exercise(
    "This is the order of BERT (*post-norm*). Many newer models normalise first and add afterwards."
)
def check_add_and_norm(answer: object) -> str | None:
    """A function: x (N, H), change (N, H), gain (H,), bias (H,) → (N, H)."""
    if not isinstance(answer, Callable):
        return "give a function: def add_and_norm(x, change, gain, bias): return ..."
    random = np.random.default_rng(0)
    x, change = random.normal(1, 2, size=(2, 5, 6))
    gain, bias = random.normal(size=(2, 6))
    found = np.asarray(answer(x.copy(), change.copy(), gain.copy(), bias.copy()), dtype=float)
    if found.shape != x.shape:
        return f"for (5, 6) it gives the shape {found.shape}; expected (5, 6)."

    def norm(h: np.ndarray, axis: int = -1, power: float = 0.5, free: int = 0) -> np.ndarray:
        spread = (h.var(axis=axis, keepdims=True, ddof=free) + 1e-12) ** power
        return (h - h.mean(axis=axis, keepdims=True)) / spread * gain + bias

    h = x + change
    for made, said in (
        (norm(h), None),
        (
            norm(h, axis=0),
            "you normalised over the tokens (axis 0). Each token is normalised alone, over its H numbers.",
        ),
        (
            norm(h, power=1),
            "you divided by the variance. Divide by its root, the standard deviation.",
        ),
        (norm(change), "the residual is missing: `x` isn't in what you normalise."),
        (norm(x), "you normalised `x` alone: `change` isn't in it."),
        (
            norm(h, free=1),
            "your deviation divides by H − 1 (`ddof=1`). Layer norm divides by H, as `var` does by itself.",
        ),
        (
            (norm(h) - bias) / gain,
            "normalised, but the learnt `gain` and `bias` aren't used: multiply by one and add the other.",
        ),
        (x + norm(change), "you normalised first and added afterwards. BERT adds first."),
    ):
        if np.allclose(found, made, atol=1e-6):
            return said
    return "add first, then take off the mean and divide by the standard deviation of each row, then gain and bias."


@exercise(
    "K-BERT adds none: any BERT checkpoint loads as it is, and its twin without a graph has the same size."
)
def check_parameters(count: object, added: object) -> str | None:
    """Parameters of a layer, and those that K-BERT adds."""
    if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) for n in (count, added)):
        return "give two whole numbers."
    H, F = 256, 1024
    matrices, biases, norms = 4 * H * H + 2 * H * F, 4 * H + F + H, 4 * H
    right = matrices + biases + norms
    if count != right:
        return {
            matrices: "these are the matrices alone: each linear has a bias too, and there are two layer norms.",
            matrices
            + biases: "the layer norms are missing: two, each with a gain and a bias of 256.",
            matrices + norms: "the biases are missing: one number per column that comes out.",
            right - norms // 2: "there are two layer norms in a layer.",
            right - H * H - H: (
                "attention has four matrices: query, key, value, and the one that mixes the heads."
            ),
            right + 9 * H * H: "the heads share the 256 columns; they don't have 256 each.",
        }.get(
            int(count),
            "count six linears (four of 256 × 256, two of the feed-forward) and two layer norms.",
        )
    if added != 0:
        return "the count is right. But soft positions look up the same table, and a mask has no weights."
    return None


check_layers = choices("layers")


@exercise("One product with the visible matrix a layer: what the library's `reach` computes.")
def check_reach(answer: object) -> str | None:
    """A function: visible (N, N), layers → (N, N) bool, whose information can be where."""
    if not isinstance(answer, Callable):
        return "give a function: def can_reach(visible, layers): return ..."
    import torch

    from kbert_lab.explain.influence import reach

    random = np.random.default_rng(0)
    for size, layers in ((4, 0), (5, 1), (8, 2), (8, 3), (10, 4)):
        visible = random.random((size, size)) < 0.25
        np.fill_diagonal(visible, True)
        found = np.asarray(answer(visible.copy(), layers))
        right = reach([torch.tensor(visible)] * 4)[layers].numpy()
        if found.shape != right.shape:
            return f"it gives the shape {found.shape}, expected {right.shape}."
        found = found.astype(bool)
        if np.array_equal(found, right):
            continue
        if np.array_equal(found, right.T):
            return (
                "right but transposed: row i should say what token i can know, not who knows of i."
            )
        if layers == 0:
            return "with no layer at all, a token knows only of itself: the identity matrix."
        if np.array_equal(found, visible):
            return f"that is one layer's step; for {layers} layers the matrix is multiplied {layers} times."
        i, j = np.argwhere(found != right)[0]
        return f"for {size} tokens and {layers} layers, can token {i} know of token {j}? You say {found[i, j]}."
    return None


check_same_as_bert = choices("same_as_bert")
