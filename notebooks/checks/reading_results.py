"""Exercises of 16_reading_results."""

from collections.abc import Callable

import numpy as np

from _tools import exercise

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
        s, half = float(np.std(values, ddof=1)), (high - low) / 2
        right = T[n] * s / n**0.5
        if abs(half - right) < 0.01 * right:
            continue
        for said, made in {
            "you went from the mean by −half: low and high are exchanged.": -right,
            "1.96 is for many seeds, or a deviation that is known. Take t for n − 1.": 1.96
            * s
            / n**0.5,
            "this is mean ± s, how far one training lies from the mean.": s,
            "divide s by √n: a mean of several seeds varies less than one seed.": T[n] * s,
            "your s divides by n; the seeds are a sample, so divide by n − 1 (`ddof=1`).": (
                T[n] * float(np.std(values)) / n**0.5
            ),
            "t and √n are right; you took the variance. Take its root, s.": T[n] * s**2 / n**0.5,
            "divide by √n, not by n.": T[n] * s / n,
        }.items():
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
    right = 3 / 5
    if abs(found - right) < 1e-9:
        return None
    for value, said in (
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


FOLLOWS = {
    "A and B are equally good": False,
    "with other seeds and sentences B may be ahead": True,
    "a gain of 8 points would be a surprise": True,
    "on other data A gains about as much": False,
    "A was ahead on average of the three seeds": True,
}


@exercise(
    "An interval that holds 0 says *not settled*. It doesn't say *no gain*, and more seeds make it narrower."
)
def check_follows(answer: object) -> str | None:
    """What follows from an interval that holds 0."""
    why = (
        "0 lies inside, and so does +3.0: the interval leaves both open.",
        "the interval reaches below 0.",
        "8 lies far outside of the interval.",
        "seeds and sentences were drawn anew, the data set wasn't.",
        "the mean, +1.3, is what happened in these three.",
    )
    if not isinstance(answer, dict):
        return "give a dictionary: each statement with True or False."
    for (statement, right), reason in zip(FOLLOWS.items(), why, strict=True):
        if not isinstance(answer.get(statement), (bool, np.bool_)):
            return f"'{statement}' needs True or False."
        if answer[statement] != right:
            return f"'{statement}': {reason}"
    return None


DECISIONS = {
    "A": "repair the split",
    "B": "no room",
    "C": "wrong graph",
    "D": "not independent",
    "E": "train",
}


@exercise(
    "In case E train three rows: without a graph, with it, and with a shuffled one; and set the dictionary beside them."
)
def check_decisions(answer: object) -> str | None:
    """What five audits say comes first."""
    why = {
        "A": "nearly half of the test texts were trained on. Nothing else matters before that.",
        "B": "no leak, but training shows 97 % of the names: there is nearly nothing to add.",
        "C": "half of the names are new, which is room enough. But the graph hardly knows any of them.",
        "D": "room and coverage are fine. But nearly all its heads are the data's own annotations.",
        "E": "no leak, room, coverage, and the graph was made by others: nothing stands against it.",
    }
    if not isinstance(answer, dict):
        return "give a dictionary: A to E, each with a decision."
    for case, right in DECISIONS.items():
        if answer.get(case) not in DECISIONS.values():
            return f"'{case}' needs one of {', '.join(DECISIONS.values())}."
        if answer[case] != right:
            return f"'{case}': {why[case]}"
    return None
