"""Exercises that take a part away: 07a the bench, 07b ablations, 08 knowledge noise."""

import random
from collections.abc import Callable, Mapping
from statistics import mean, pstdev, stdev
from typing import Any

from _tools import choices, exercise

Measured = Mapping[str, Mapping[str, Mapping[str, float]]]  # row → language → scores
DIGITS = 0.06  # of an answer with one digit after the point


@exercise("Same change, two models: how much a part matters depends on what the model knows.")
def check_table(answer: object, measured: Measured) -> str | None:
    """A dictionary: (language, row) → difference to K-BERT in points of F1."""
    if not isinstance(answer, dict) or not answer:
        return "give a dictionary, as in the cell: (language, row) with a number."

    def differences(language: str, score: str) -> dict[str, float]:
        base = measured["K-BERT"][language][score]
        return {row: of[language][score] - base for row, of in measured.items()}

    for (language, row), given in answer.items():
        if not isinstance(given, (int, float)) or isinstance(given, bool):
            return f"{language}, {row}: give a number, such as -12.3."
        right = differences(language, "f1")[row]
        if abs(given - right) < DIGITS:
            continue
        (other,) = set(measured["K-BERT"]) - {language}
        said = f"measure('{language}', …)['f1'] minus measure('{language}')['f1'] gives it."
        for value, why in (
            (-right, "the sign is turned: the row's F1 minus K-BERT's."),
            (measured[row][language]["f1"], "that is the F1 itself. Subtract K-BERT's."),
            (right / 100, "F1 is in per cent here."),
            (
                100 * differences(language, "precision")[row],
                "that is the difference of precision.",
            ),
            (100 * differences(language, "recall")[row], "that is the difference of recall."),
            (differences(other, "f1")[row], f"that is the {other} model's."),
            *((v, f"that is the row '{n}'.") for n, v in differences(language, "f1").items()),
        ):
            if abs(given - value) < (DIGITS if value != right / 100 else DIGITS / 100):
                said = why
                break
        return f"{language}, {row}: {given:g} is not it; {said}"
    return None


check_claims = choices("claims")


@exercise(
    "But would you report it? You chose it on the sentences on which you scored it. Choose on a "
    "dev set, and score once on test."
)
def check_setting(answer: object, measure: Callable[..., Mapping[str, Any]]) -> str | None:
    """A dictionary of a setting in which the Chinese model scores higher than as trained."""
    if not isinstance(answer, dict):
        return 'give a dictionary, such as {"positions": "hard"}.'
    kept = {"graph": "medical", "tails": "true", "noise": 0, "language": "Chinese", "seed": 1}
    for name, value in answer.items():
        if kept.get(name, value) != value:
            return f"leave {name} as it is: {kept[name]!r}."
    try:
        score, trained = measure(**answer)["f1"], measure()["f1"]
    except TypeError:
        return f"{answer} is no setting. Look at the names that measure takes."
    if score <= trained:
        return f"F1 {score:.1f}, and as trained it is {trained:.1f}. Which control is left?"
    return None


check_controls = choices("controls")


@exercise("What is common to both rows of a seed, easy names or a lucky split, cancels out.")
def check_paired(answer: object) -> str | None:
    """A function: two rows → mean and standard deviation of the seeds' differences."""
    if not isinstance(answer, Callable):
        return "give a function: def paired(one, other): return ..."
    one, other = [75.0, 77.5, 71.0], [70.0, 71.5, 64.0]
    found = answer(list(one), list(other))
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        return "give two numbers: mean and standard deviation."
    gaps = [a - b for a, b in zip(one, other, strict=True)]
    if abs(found[0] + mean(gaps)) < 1e-6:
        return "the sign is turned: first row minus second."
    if abs(found[0] - mean(gaps)) > 1e-6:
        return (
            f"for {one} and {other} the mean is {found[0]:.2f}, and it should be {mean(gaps):.2f}."
        )
    for value, said in (
        (stdev(gaps), None),
        (
            pstdev(gaps),
            "nearly: three seeds are a sample, so divide by n − 1 (statistics.stdev).",
        ),
        (
            abs(stdev(one) - stdev(other)),
            "that is the difference of the spreads; take the spread of the differences.",
        ),
    ):
        if abs(found[1] - value) < 1e-6:
            return said
    return f"the standard deviation is {found[1]:.2f}, and of the differences {gaps} it is {stdev(gaps):.2f}."


CEILINGS = {  # row → answers between which a model has to choose, and why
    "K-BERT": (1, "nothing that it needs is hidden or missing."),
    "everything visible": (2, "the two tails of the asked name are a bag."),
    "constant tail": (24, "no branch says a kind, so all kinds are left."),
    "no place in the sentence": (3, "it can read every name, and doesn't know which one is meant."),
    "K-BERT, two layers": (
        2,
        "after two layers [CLS] has only read a name that knew a bag of tails.",
    ),
}
ABOUT = 0.03  # two names of a sentence may have the same kind


@exercise("A ceiling that is known before any training: no number of steps gets over it.")
def check_ceilings(answer: object) -> str | None:
    """Row → the largest share of right answers, of names with two triples each."""
    if not isinstance(answer, dict):
        return "give a dictionary: each row with a share from 0 to 1."
    for row, (between, why) in CEILINGS.items():
        given = answer.get(row)
        if not isinstance(given, (int, float)) or isinstance(given, bool):
            return f"'{row}': give a number, such as 0.25."
        if given > 1:
            return f"'{row}': a share is at most 1, so write {given:g} per cent as {given / 100:g}."
        if abs(given - 1 / between) > ABOUT:
            return f"'{row}': {why}"
    return None


check_bags = choices("bags")


@exercise("0 for twins, 1 for strangers; it is the largest difference any set of tags can show.")
def check_variation(answer: object) -> str | None:
    """A function: two lists of probabilities → their total variation."""
    if not isinstance(answer, Callable):
        return "give a function: def variation(p, q): return ..."
    dice = random.Random(0)
    for count in (2, 3, 3, 5):
        p, q = ([dice.random() for _ in range(count)] for _ in range(2))
        p, q = ([x / sum(some) for x in some] for some in (p, q))
        found = float(answer(list(p), list(q)))
        right = sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2
        if abs(found - right) < 1e-9:
            continue
        for value, said in (
            (
                2 * right,
                "twice too much: what one tag loses another gains, so each change counts twice.",
            ),
            (0, "0: gains and losses cancel out. Take their sizes, abs(…)."),
            (
                2 * right / count,
                "that is the mean over the tags; the formula has their sum, and a half.",
            ),
        ):
            if abs(found - value) < 1e-9:
                return said
        return f"for {count} tags it gives {found:.3f}, and it should be {right:.3f}."
    return None


check_reached = choices("reached")


@exercise("What a graph of another domain says is kept out by its relations, without any model.")
def check_options(kbert: Any, clean: Any, noisy: Any, answer: object) -> str | None:
    """Options with which no poured triple is injected, and true ones are."""
    from kbert_core import InjectionOptions

    if not isinstance(answer, InjectionOptions):
        return "give InjectionOptions(…); help(InjectionOptions) lists what there is."
    used = kbert("行胃镜检查，见胃体黏膜充血。", graph=noisy, options=answer).used
    if not used:
        return "nothing at all is injected; that keeps the noise out, and the knowledge too."
    if poured := [triple for triple in used if triple not in clean]:
        return (
            f"{len(poured)} of {len(used)} injected triples are poured ones, such as {poured[0]}."
        )
    return None
