"""Exercises of 04_mask_self_attention."""

import math
from collections.abc import Callable

import numpy as np

from _tools import exercise


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
        found = answer(scores.copy(), visible.copy())
        found = np.asarray(found, dtype=float)
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
    right = math.exp(-10 / 8)
    if abs(answer - right) < 0.01:
        return None
    if abs(answer - math.exp(-10)) < 1e-4:
        return (
            "that is e^−10, as if the mask weren't scaled. In Eq. 5 it is divided by √64 = 8 first."
        )
    if abs(answer - math.exp(-10 / 64)) < 0.01:
        return "you divided by d_k; Eq. 5 divides by its root, √64 = 8."
    if abs(answer + 10 / 8) < 0.01:
        return (
            "that is what is added to the score. It stands in the exponent: e to the power of it."
        )
    return "softmax takes e^score. Adding −10/8 to a score multiplies e^score by e^(−10/8)."


MASKS = {
    "0 and -inf, added": True,
    "0 and -10000, added": True,
    "True and False, added": False,
    "1 and 0, multiplied with the weights": False,
}


@exercise("Only what makes e^score 0 before the weights are normalised hides a token.")
def check_masks(answer: object) -> str | None:
    """Which masks hide a token without changing the proportions of the others."""
    if not isinstance(answer, dict):
        return "give a dictionary: each mask with True or False."
    for mask, right in MASKS.items():
        if mask not in answer:
            return f"'{mask}' has no answer yet."
        if bool(answer[mask]) is right:
            continue
        if mask.startswith("True"):
            return (
                "added to a score, True counts as 1 and False as 0: a hidden token keeps its score, "
                "and the visible ones get e times as much. Hidden means a weight of 0."
            )
        if mask.startswith("1"):
            return (
                "multiplied after softmax, hidden tokens are 0 but the rest adds up to less than 1: "
                "the token loses a part of what it takes in."
            )
        return f"'{mask}': e to the power of it is 0 in single precision, so it does hide."
    return None
