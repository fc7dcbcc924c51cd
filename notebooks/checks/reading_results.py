"""Exercises of 06b_reading_results."""

from collections.abc import Callable

import numpy as np

from _tools import choices, exercise

T = {2: 12.706, 3: 4.303, 5: 2.776}  # Student's t, 97.5 %, by the number of seeds


@exercise(
    "With three seeds the factor is more than twice 1.96, with ten it is 2.26: seeds are worth their time."
)
def check_interval(answer: object) -> str | None:
    """A function: differences of all seeds → (low, high)."""
    if not isinstance(answer, Callable):
        return "give a function: def interval(differences): return low, high"
    for values in ([7.7, 9.6, 8.0], [0.5, -1.0, 1.4, 2.0, 0.1], [1.0, 3.0]):
        found = answer(list(values))
        if not isinstance(found, (tuple, list, np.ndarray)) or len(found) != 2:
            return "return two numbers: low and high."
        n, mean = len(values), float(np.mean(values))
        low, high = map(float, found)
        if abs((low + high) / 2 - mean) > 1e-6:
            return f"for {values} the middle is {(low + high) / 2:.2f}; it should be the mean, {mean:.2f}."
        s, half, root, t = float(np.std(values, ddof=1)), (high - low) / 2, n**0.5, T[n]
        right = t * s / root
        if abs(half - right) < 0.01 * right:
            continue
        for made, said in (
            (-right, "you went from the mean by −half: low and high are exchanged."),
            (
                1.96 * s / root,
                "1.96 is for many seeds, or a deviation that is known. Take t for n − 1.",
            ),
            (s, "this is mean ± s, how far one training lies from the mean."),
            (t * s, "divide s by √n: a mean of several seeds varies less than one seed."),
            (
                t * float(np.std(values)) / root,
                "your s divides by n; the seeds are a sample, so divide by n − 1 (`ddof=1`).",
            ),
            (t * s**2 / root, "t and √n are right; you took the variance. Take its root, s."),
            (t * s / n, "divide by √n, not by n."),
        ):
            if abs(half - made) < 0.01 * abs(made):
                return said
        return f"for {values} the half-width is {half:.2f}, and it should be {right:.2f}."
    return None


@exercise("Now try it on data of your own: `kbert audit` does this for all pairs of splits.")
def check_leaked(answer: object) -> str | None:
    """A function: train, test → the share of test rows whose text stands in train."""
    if not isinstance(answer, Callable):
        return "give a function: def leaked(train, test): return ..."
    train = [("a", 0), ("b", 1), ("b", 1), ("c", 0), ("d", 1), ("e", 0), ("f", 1), ("g", 1)]
    test = [("a", 0), ("a", 0), ("c", 1), ("x", 1), ("y", 0)]
    found = answer(list(train), list(test))
    if isinstance(found, bool) or not isinstance(found, (int, float, np.floating, np.integer)):
        return "return a number from 0 to 1."
    for value, said in (
        (3 / 5, None),
        (2 / 5, "a text with another label in train leaks as well: compare texts, not rows."),
        (3, "return a share: divide by the number of test rows."),
        (60, "return a share from 0 to 1, not per cent."),
        (3 / 8, "you divide by the rows of train. The question is about test."),
        (2 / 8, "that is the share of train rows; count the rows of test."),
        (2 / 4, "a test text that stands there twice counts twice: rows, not different texts."),
    ):
        if abs(found - value) < 1e-9:
            return said
    return (
        f"for test texts a, a, c, x, y and train texts a to g it gives {found:.2f}, expected 0.60."
    )


check_follows = choices("follows")
check_decisions = choices("decisions")
