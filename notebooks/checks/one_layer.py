"""Exercises of 14_one_layer."""

from collections.abc import Callable

import numpy as np

from _tools import exercise

POSITIONS, SEGMENTS = [0, 1, 2, 3, 4, 3, 4, 5], [0, 0, 0, 0, 0, 0, 1, 1]
STEPS = {
    "embedding sum": False,
    "layer norm": False,
    "mask-self-attention": True,
    "residual": False,
    "feed-forward": False,
    "pooler": False,
}


@exercise(
    "Positions run on through both sentences; only the segment says which sentence a token is in."
)
def check_embedding(positions: object, segments: object) -> str | None:
    """Soft positions and segments of a pair with a branch."""
    for name, answer in (("soft positions", positions), ("segments", segments)):
        if not isinstance(answer, (list, tuple)) or len(answer) != len(POSITIONS):
            return f"give {len(POSITIONS)} {name} in a list, one per token of the row."
    positions, segments = list(positions), list(segments)
    if positions != POSITIONS:
        if positions == list(range(8)):
            return (
                "these are the hard positions: [SEP] comes after 炎 in the sentence, not after 病."
            )
        if positions[:6] == POSITIONS[:6] and positions[6] in (0, 1):
            return "the second sentence doesn't begin again: 肺 comes after [SEP], at position 4."
        if positions[3:5] != POSITIONS[3:5]:
            return "a branch goes on from its mention: 炎 is at 2, so 疾 is at 3."
        wrong = next(n for n in range(8) if positions[n] != POSITIONS[n])
        return f"position {positions[wrong]} of token {wrong} isn't right: count along the trunk alone."
    if segments != SEGMENTS:
        if segments[3:5] != [0, 0]:
            return "a branch has the segment of its mention, and 肺炎 is in A."
        if segments[5] != 0:
            return "the [SEP] after A closes A, so it has segment 0."
        return "A is 0 and B is 1; B is the second 肺 and the [SEP] that closes it."
    return None


@exercise(
    "So the visible matrix, which acts in attention alone, decides who can ever hear of a triple."
)
def check_mixing(answer: object) -> str | None:
    """Which steps let a token depend on another."""
    if not isinstance(answer, dict):
        return "give a dictionary: each step with True or False."
    for step, right in STEPS.items():
        if not isinstance(answer.get(step), (bool, np.bool_)):
            return f"'{step}' needs True or False."
        if answer[step] == right:
            continue
        return {
            "embedding sum": "the three rows that are added belong to one token.",
            "layer norm": "mean and variance are taken over the H numbers of one token, not over tokens.",
            "mask-self-attention": "Eq. 6 makes a token's new vector a mean over the tokens it sees.",
            "residual": "a token's own old vector is added, nobody else's.",
            "feed-forward": "it is applied to each row of h alone: no product has N on both sides.",
            "pooler": "it reads one vector, that of [CLS].",
        }[step]
    return None


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
    found = answer(x.copy(), change.copy(), gain.copy(), bias.copy())
    found = np.asarray(found, dtype=float)
    if found.shape != x.shape:
        return f"for (5, 6) it gives the shape {found.shape}; expected (5, 6)."

    def norm(h: np.ndarray, axis: int = -1, root: bool = True, free: int = 0) -> np.ndarray:
        spread = h.var(axis=axis, keepdims=True, ddof=free) + 1e-12
        return (h - h.mean(axis=axis, keepdims=True)) / (np.sqrt(spread) if root else spread)

    h = x + change
    if np.allclose(found, norm(h) * gain + bias, atol=1e-6):
        return None
    mistakes = {
        "you normalised over the tokens (axis 0). Each token is normalised alone, over its H numbers.": norm(
            h, axis=0
        ),
        "you divided by the variance. Divide by its root, the standard deviation.": norm(
            h, root=False
        ),
        "the residual is missing: `x` isn't in what you normalise.": norm(change),
        "you normalised `x` alone: `change` isn't in it.": norm(x),
        "your deviation divides by H − 1 (`ddof=1`). Layer norm divides by H, as `var` does by itself.": norm(
            h, free=1
        ),
    }
    for said, made in mistakes.items():
        if np.allclose(found, made * gain + bias, atol=1e-6):
            return said
    if np.allclose(found, norm(h), atol=1e-6):
        return "normalised, but the learnt `gain` and `bias` aren't used: multiply by one and add the other."
    if np.allclose(found, x + norm(change) * gain + bias, atol=1e-6):
        return "you normalised first and added afterwards. BERT adds first."
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
    if count != matrices + biases + norms:
        return {
            matrices: "these are the matrices alone: each linear has a bias too, and there are two layer norms.",
            matrices
            + biases: "the layer norms are missing: two, each with a gain and a bias of 256.",
            matrices + norms: "the biases are missing: one number per column that comes out.",
            matrices + biases + norms // 2: "there are two layer norms in a layer.",
            matrices - H * H + biases - H + norms: (
                "attention has four matrices: query, key, value, and the one that mixes the heads."
            ),
            matrices + 3 * 3 * H * H + biases + norms: (
                "the heads share the 256 columns; they don't have 256 each."
            ),
        }.get(
            int(count),
            "count six linears (four of 256 × 256, two of the feed-forward) and two layer norms.",
        )
    if added != 0:
        return "the count is right. But soft positions look up the same table, and a mask has no weights."
    return None
