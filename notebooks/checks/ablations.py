"""Exercises of 07_ablations."""

from collections.abc import Callable
from statistics import mean, pstdev, stdev

from _tools import exercise
from checks.choices import wrong_choice

CONTROLS = {
    "does the graph help at all?": "no knowledge (BERT)",
    "must the graph be true?": "shuffled graph",
    "is it good that other words can't see a branch?": "everything visible",
    "is it good that the sentence's words are counted as if there were no branch?": "hard positions",
}

BAGS = {
    "born_in Rome, lives_in Oslo  |  born_in Oslo, lives_in Rome": True,
    "born_in Rome  |  born_in Oslo": False,
    "born_in Rome, lives_in Oslo  |  lives_in Oslo, born_in Rome": True,
    "born_in New York, lives_in Oslo  |  born_in Oslo, lives_in New York": True,
    "was born in Rome, lives_in Oslo  |  was born in Oslo, lives_in Rome": False,
}


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


@exercise("One difference, one question: that is what makes a comparison an answer.")
def check_controls(answer: object) -> str | None:
    """Which row answers which question."""
    why = {
        "no knowledge (BERT)": "without the graph nothing is left but the text.",
        "shuffled graph": "it has all of the graph but that the tails belong to the names.",
        "everything visible": "the matrix alone decides who sees a branch.",
        "hard positions": "how words are counted is a matter of positions alone.",
    }

    def hint(question: str) -> str:
        return f"Which row differs in just this? Hint: {why[CONTROLS[question]]}"

    return wrong_choice(
        answer, CONTROLS, why, hint, each="question with the name of a row", no="no row"
    )


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
    if abs(found[1] - stdev(gaps)) < 1e-6:
        return None
    if abs(found[1] - pstdev(gaps)) < 1e-6:
        return "nearly: three seeds are a sample, so divide by n − 1 (statistics.stdev)."
    if abs(found[1] - abs(stdev(one) - stdev(other))) < 1e-6:
        return "that is the difference of the spreads; take the spread of the differences."
    return f"the standard deviation is {found[1]:.2f}, and of the differences {gaps} it is {stdev(gaps):.2f}."


@exercise("A ceiling that is known before any training: no number of steps gets over it.")
def check_ceilings(answer: object) -> str | None:
    """Row → the largest share of right answers, of names with two triples each."""
    if not isinstance(answer, dict):
        return "give a dictionary: each row with a share from 0 to 1."
    for row, (choices, why) in CEILINGS.items():
        given = answer.get(row, ...)
        if given is ...:
            return f"'{row}' has no answer yet."
        if not isinstance(given, (int, float)) or isinstance(given, bool):
            return f"'{row}': give a number, such as 0.25."
        if given > 1:
            return f"'{row}': a share is at most 1, so write {given:g} per cent as {given / 100:g}."
        if abs(given - 1 / choices) > ABOUT:
            return f"'{row}': {given:.2f} is not it. Hint: {why}"
    return None


@exercise(
    "To repair it: the visible matrix, hard positions, or a relation that tells itself apart."
)
def check_bags(answer: object) -> str | None:
    """Which pairs of graphs have the same tokens at the same soft positions."""
    if not isinstance(answer, dict):
        return "give a dictionary: each pair with True or False."
    for pair, same in BAGS.items():
        if pair not in answer:
            return f"'{pair}' has no answer yet."
        if not isinstance(answer[pair], bool):
            return f"'{pair}': write True or False, without quotes."
        if answer[pair] is not same:
            one, other = (bag_of(side) for side in pair.split("  |  "))
            only = sorted(one ^ other)
            why = f"in one of them alone: {', '.join(only)}" if only else "the lists are equal"
            return f"'{pair}': write each word with its position from the mention; {why}."
    return None


def bag_of(graph: str) -> set[str]:
    """The words of a mention's branches, each with its soft position counted from the mention."""
    branches = (branch.split() for branch in graph.split(", "))
    return {f"{word} at {place}" for words in branches for place, word in enumerate(words, 1)}
