"""Exercises of 07_ablation_bench."""

from collections.abc import Callable, Mapping
from typing import Any

from _tools import exercise
from checks.choices import wrong_choice

Measured = Mapping[str, Mapping[str, Mapping[str, float]]]  # row → language → scores
KINDS = ("read", "trained", "neither")
CLAIMS = {
    "This Chinese model, as it is, can't read a tree with everything visible.": (
        "read",
        "it speaks of one finished model and of an input.",
    ),
    "A model trained with everything visible still gains from the graph.": (
        "trained",
        "look for the F1 of a model that had everything visible from its first step.",
    ),
    "The visible matrix is worth about 40 points of F1.": (
        "neither",
        "40 points are lost when a model meets an input that it was never shown; a model that was "
        "trained so loses 6. Neither number is what the matrix is worth in general.",
    ),
    "This model believes what its graph says, true or false.": (
        "read",
        "the false graph was given to a finished model.",
    ),
    "In English, training with a false graph gave the same F1 as training with the true one.": (
        "trained",
        "it speaks of two trainings.",
    ),
    "Hard positions cost nothing, whatever the task.": (
        "neither",
        "two tasks were measured, and F1 is not all that can be lost.",
    ),
}
DIGITS = 0.06  # of an answer with one digit after the point


@exercise("Same change, two models: how much a part matters depends on what the model knows.")
def check_table(answer: object, measured: Measured) -> str | None:
    """A dictionary: (language, row) → difference to K-BERT in points of F1."""
    if not isinstance(answer, dict) or not answer:
        return "give a dictionary, as in the cell: (language, row) with a number."

    def differences(language: str, score: str) -> dict[str, float]:
        base = measured["K-BERT"][language][score]
        return {row: of[language][score] - base for row, of in measured.items()}

    for place, given in answer.items():
        language, row = place
        if not isinstance(given, (int, float)) or isinstance(given, bool):
            return f"{language}, {row}: give a number, such as -12.3."
        right = differences(language, "f1")[row]
        if abs(given - right) < DIGITS:
            continue
        where = f"{language}, {row}: {given:g} is not it."
        if abs(given + right) < DIGITS:
            return f"{where} The sign is turned: the row's F1 minus K-BERT's."
        if abs(given - measured[row][language]["f1"]) < DIGITS:
            return f"{where} That is the F1 itself. Subtract K-BERT's."
        if abs(100 * given - right) < 100 * DIGITS:
            return f"{where} F1 is in per cent here, so the difference is {right:.0f} points or so."
        for score in ("precision", "recall"):
            if abs(given - 100 * differences(language, score)[row]) < DIGITS:
                return f"{where} That is the difference of {score}."
        for other in measured["K-BERT"]:
            if other != language and abs(given - differences(other, "f1")[row]) < DIGITS:
                return f"{where} That is the {other} model's."
        for other, value in differences(language, "f1").items():
            if abs(given - value) < DIGITS:
                return f"{where} That is the row '{other}'."
        return f"{where} measure('{language}', …)['f1'] minus measure('{language}')['f1'] gives it."
    return None


@exercise("A number belongs to the question that was asked, and to no larger one.")
def check_claims(answer: object) -> str | None:
    """A dictionary: sentence → the kind of ablation that supports it."""

    def hint(claim: str) -> str:
        _, why = CLAIMS[claim]
        return why[0].upper() + why[1:]

    right = {claim: kind for claim, (kind, _) in CLAIMS.items()}
    return wrong_choice(
        answer, right, KINDS, hint, each="sentence with one of three words", no="none of the three"
    )


@exercise(
    "But would you report it? You chose it on the sentences on which you scored it. Choose on a "
    "dev set, and score once on test."
)
def check_setting(answer: object, measure: Callable[..., Mapping[str, Any]]) -> str | None:
    """A dictionary of a setting in which the Chinese model scores higher than as trained."""
    if not isinstance(answer, dict):
        return 'give a dictionary, such as {"positions": "hard"}.'
    forbidden = {
        "graph": "medical",
        "tails": "true",
        "noise": 0,
        "language": "Chinese",
        "seed": 1,
    }
    for name, value in answer.items():
        if name in forbidden and value != forbidden[name]:
            return f"leave {name} as it is: {forbidden[name]!r}."
    try:
        score, trained = measure(**answer)["f1"], measure()["f1"]
    except TypeError:
        return f"{answer} is no setting. Look at the names that measure takes."
    if score <= trained:
        return f"F1 {score:.1f}, and as trained it is {trained:.1f}. Which control is left?"
    return None
